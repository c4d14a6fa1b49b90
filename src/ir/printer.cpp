// The printer. Layout: a group (a graph, an attribute list) is written on one line if it fits the
// width, else each of its parts on a line of its own; lists of variables and operands are filled.
// A group is first written flat, and taken back as soon as it is too long; so printing is linear.
#include <algorithm>
#include <array>

#include "ir/attr_text.h"
#include "ir/shared_graphs.h"
#include "weft/error.h"
#include "weft/format.h"

namespace weft {

namespace {

// a, b, ..., z, ba, bb, ...: numbers in base 26.
std::string letters(uint32_t index) {
  std::string name;
  do {
    name.insert(name.begin(), static_cast<char>('a' + index % 26));
    index /= 26;
  } while (index);
  return name;
}

constexpr uint32_t index_of(std::string_view name) {
  uint32_t index = 0;
  for (char c : name) index = index * 26 + static_cast<uint32_t>(c - 'a');
  return index;
}

// Names that could be taken for a keyword or a number when read back, in ascending order.
constexpr std::array kReserved = {index_of("in"),  index_of("inf"),  index_of("let"),
                                  index_of("nan"), index_of("infj"), index_of("nanj")};
static_assert(std::is_sorted(kReserved.begin(), kReserved.end()));

// The names of a graph's values, given in order of appearance. Results without a use are "_".
class Names {
 public:
  explicit Names(const Graph& graph) : indices_(graph.num_values(), kUnused) {
    auto use = [&](Value v) {
      if (!v.is_literal()) indices_[v.id] = 0;
    };
    for (const Op& op : graph.ops()) {
      for (Value v : graph.operands(op)) use(v);
    }
    for (Value v : graph.outputs()) use(v);
    for (uint32_t i = 0; i < graph.num_inputs(); ++i) indices_[i] = 0;
    uint32_t next = 0;
    auto reserved = kReserved.begin();
    for (uint32_t& index : indices_) {
      if (index == kUnused) continue;
      while (reserved != kReserved.end() && next == *reserved) ++next, ++reserved;
      index = next++;
    }
  }

  std::string operator[](Value v) const {
    uint32_t index = indices_[v.id];
    return index == kUnused ? "_" : letters(index);
  }

 private:
  static constexpr uint32_t kUnused = 0xffffffffu;
  std::vector<uint32_t> indices_;
};

class Printer {
 public:
  // Without `shared`, regions are left out.
  Printer(const PrintOptions& options, const SharedGraphs* shared)
      : options_(options), shared_(shared) {}

  std::string program(const Graph& graph) {
    for (const SharedGraphs::Definition& definition : shared_->definitions()) {
      out_ << "let " << definition.name << " = ";
      print_graph(*definition.graph, 0);
      out_ << " in";
      new_line(0);
    }
    print_graph(graph, 0);
    return out_.take();
  }

  std::string op(const Graph& graph, const Op& op) {
    if (!shared_) {
      flat_ = true;
      limit_ = std::string::npos;
    }
    print_op(graph, Names(graph), op, 0);
    return out_.take();
  }

 private:
  size_t column() const { return out_.size() - line_begin_; }
  bool too_long() const { return flat_ && out_.size() > limit_; }

  void new_line(int indent) {
    out_ << '\n';
    line_begin_ = out_.size();
    out_.spaces(indent);
  }

  // A space, or a new line where there is no room for it.
  void fill(int indent) {
    if (!flat_ && column() + 1 > static_cast<size_t>(options_.width)) {
      new_line(indent);
    } else {
      out_ << ' ';
    }
  }

  // Writes a group flat if it fits what is left of the line; else leaves the text as it was.
  template <typename F>
  bool try_flat(F&& write) {
    if (flat_) {
      write();
      return true;
    }
    size_t begin = out_.size();
    flat_ = true;
    limit_ = line_begin_ + static_cast<size_t>(options_.width);
    write();
    bool fits = !too_long();
    flat_ = false;
    if (!fits) out_.raw().resize(begin);
    return fits;
  }

  void print_region(const Graph& graph, int indent) {
    if (!shared_) {
      out_ << "{ ... }";
    } else if (const std::string* name = shared_->name(&graph)) {
      out_ << *name;
    } else {
      print_graph(graph, indent);
    }
  }

  void print_graph(const Graph& graph, int indent) {
    // Too many ops for one line need no try; nor must it cost a scan of them inside a flat group.
    constexpr size_t kShortestOp = 4;
    if (flat_ && graph.ops().size() * kShortestOp > limit_ - std::min(limit_, line_begin_)) {
      out_.spaces(options_.width + 1);
      return;
    }
    Names names(graph);
    if (!options_.locations && try_flat([&] { print_graph_flat(graph, names); })) return;
    print_header(graph, names, indent);
    for (const Op& op : graph.ops()) {
      new_line(indent + 4);
      print_op(graph, names, op, indent + 4);
      if (options_.locations && op.loc != kNoLoc) out_ << "  # " << loc_text(op.loc);
    }
    new_line(indent + 2);
    out_ << "in (";
    print_outputs(graph, names, indent + 4);
  }

  void print_graph_flat(const Graph& graph, const Names& names) {
    print_header(graph, names, 0);
    out_ << ' ';
    for (size_t i = 0; i < graph.ops().size() && !too_long(); ++i) {
      if (i) out_ << "; ";
      print_op(graph, names, graph.ops()[i], 0);
    }
    out_ << " in (";
    print_outputs(graph, names, 0);
  }

  // "{ lambda a:f32[3]; b:f32[]. let"
  void print_header(const Graph& graph, const Names& names, int indent) {
    out_ << "{ lambda ";
    for (uint32_t i = 0; i < graph.num_inputs() && !too_long(); ++i) {
      if (i == graph.num_consts()) {
        out_ << "; ";
      } else if (i) {
        fill(indent + 4);
      }
      Value v = graph.input(i);
      out_ << names[v] << ':' << graph.type(v);
    }
    if (graph.num_inputs() == graph.num_consts()) out_ << "; ";
    out_ << ". let";
  }

  void print_outputs(const Graph& graph, const Names& names, int indent) {
    std::span<const Value> outputs = graph.outputs();
    for (size_t i = 0; i < outputs.size() && !too_long(); ++i) {
      if (i) fill(indent);
      print_value_use(graph, names, outputs[i]);
      if (i + 1 < outputs.size() || i == 0) out_ << ',';
    }
    out_ << ") }";
  }

  void print_value_use(const Graph& graph, const Names& names, Value v) {
    if (v.is_literal()) {
      out_ << graph.literal(v) << ':' << graph.type(v);
    } else {
      out_ << names[v];
    }
  }

  void print_op(const Graph& graph, const Names& names, const Op& op, int indent) {
    for (uint32_t i = 0; i < op.num_results && !too_long(); ++i) {
      if (i) fill(indent + 2);
      Value v = graph.result(op, i);
      out_ << names[v] << ':' << graph.type(v);
    }
    if (op.num_results) out_ << " = ";
    out_ << op.info->name;
    print_attrs(op, indent);
    std::span<const Value> operands = graph.operands(op);
    for (size_t i = 0; i < operands.size() && !too_long(); ++i) {
      if (i == 0) {
        out_ << ' ';
      } else {
        fill(indent + 2);
      }
      print_value_use(graph, names, operands[i]);
    }
  }

  void print_attrs(const Op& op, int indent) {
    SmallVector<size_t, 8> printed;
    for (size_t i = 0; op.attrs && i < op.attrs->values().size(); ++i) {
      if (is_printed(op.attrs->schema().specs()[i], op.attrs->values()[i])) printed.push_back(i);
      // Names lead: jit[name=f jaxpr={ ... }].
      std::stable_partition(printed.begin(), printed.end(), [&](size_t i) {
        return op.attrs->schema().specs()[i].flags & AttrSpec::kCosmetic;
      });
    }
    if (printed.empty()) {
      // The brackets tell an op without results from an operand of the op before it.
      if (op.num_results == 0) out_ << "[]";
      return;
    }
    bool flat = try_flat([&] {
      out_ << '[';
      for (size_t i : printed) {
        if (too_long()) break;
        if (i != printed[0]) out_ << ' ';
        print_attr(*op.attrs, i, 0);
      }
      out_ << ']';
    });
    if (flat) return;
    out_ << '[';
    for (size_t i : printed) {
      new_line(indent + 2);
      print_attr(*op.attrs, i, indent + 2);
    }
    new_line(indent);
    out_ << ']';
  }

  void print_attr(const AttrRecord& attrs, size_t i, int indent) {
    const AttrSpec& spec = attrs.schema().specs()[i];
    const Attr& value = attrs.values()[i];
    if (!spec.name.empty()) out_ << spec.name << '=';
    if (const GraphRef* graph = std::get_if<GraphRef>(&value)) {
      print_region(**graph, indent);
    } else if (const auto* graphs = std::get_if<std::vector<GraphRef>>(&value)) {
      print_regions(*graphs, indent);
    } else {
      print_value(out_, spec.type, value);
    }
  }

  void print_regions(const std::vector<GraphRef>& graphs, int indent) {
    bool flat = try_flat([&] {
      out_ << '(';
      for (size_t i = 0; i < graphs.size() && !too_long(); ++i) {
        if (i) out_ << ' ';
        print_region(*graphs[i], 0);
      }
      out_ << ')';
    });
    if (flat) return;
    out_ << '(';
    for (const GraphRef& graph : graphs) {
      new_line(indent + 2);
      print_region(*graph, indent + 2);
    }
    new_line(indent);
    out_ << ')';
  }

  const PrintOptions& options_;
  const SharedGraphs* shared_;
  Text out_;
  size_t line_begin_ = 0;
  bool flat_ = false;
  size_t limit_ = 0;
};

}  // namespace

std::string print(const Graph& graph, const PrintOptions& options) {
  SharedGraphs shared(graph);
  return Printer(options, &shared).program(graph);
}

std::string print_op(const Graph& graph, const Op& op) {
  return Printer(PrintOptions{}, nullptr).op(graph, op);
}

std::string print_op(const Graph& graph, const Op& op, const PrintOptions& options) {
  SharedGraphs shared;
  return Printer(options, &shared).op(graph, op);
}

std::vector<std::string> value_names(const Graph& graph) {
  Names names(graph);
  std::vector<std::string> out;
  out.reserve(graph.num_values());
  for (uint32_t i = 0; i < graph.num_values(); ++i) out.push_back(names[Value{i}]);
  return out;
}

}  // namespace weft
