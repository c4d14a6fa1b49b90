// The data of programs as JSON (weft/view.h). Numbers of ops, operands and memory are differences
// to those before, so that what repeats in a program has the same text, which compresses well.
#include "weft/view.h"

#include <cmath>
#include <map>
#include <unordered_map>

#include "ir/attr_text.h"
#include "ops/def/walk.h"
#include "weft/passes.h"
#include "weft/text.h"

namespace weft {
namespace {

Text& json(Text& out, std::string_view s) {
  static constexpr char kHex[] = "0123456789abcdef";
  out << '"';
  for (char c : s) {
    auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out << '\\' << c;
    } else if (byte < ' ') {
      out << "\\u00" << kHex[byte >> 4] << kHex[byte & 15];
    } else {
      out << c;
    }
  }
  return out << '"';
}

// Counts are doubles, beyond any integer where calls of calls multiply.
Text& json(Text& out, double x) {
  if (!std::isfinite(x)) return out << "null";
  if (std::abs(x) < 9e15 && x == std::floor(x)) return out << static_cast<int64_t>(x);
  return out << x;
}

// Attributes may hold arrays: nobody reads all of their elements.
std::string shortened(std::string text) {
  constexpr size_t kMost = 400;
  if (text.size() <= kMost) return text;
  size_t end = kMost;
  while (end && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return text.substr(0, end) + "...";
}

template <typename List, typename Write>
Text& json_list(Text& out, const List& list, const Write& write) {
  out << '[';
  bool is_first = true;
  for (const auto& x : list) {
    if (!is_first) out << ',';
    is_first = false;
    write(x);
  }
  return out << ']';
}
template <typename List>
Text& json_list(Text& out, const List& list) {
  return json_list(out, list, [&](const auto& x) { out << x; });
}

// Things that have numbers, in the order in which they came, each with its JSON.
template <typename Key>
class Numbered {
 public:
  template <typename Make>
  size_t number(const Key& key, const Make& make) {
    auto [at, is_new] = numbers_.try_emplace(key, entries_.size());
    if (is_new) entries_.push_back(make());
    return at->second;
  }
  const std::vector<std::string>& entries() const { return entries_; }

 private:
  std::unordered_map<Key, size_t> numbers_;
  std::vector<std::string> entries_;
};

class Viewer {
 public:
  void add(const GraphRef& program);
  std::string take();

 private:
  size_t graph(const Graph& g);
  size_t type(TypeRef t);
  size_t place(Loc loc);
  int64_t literal(const Graph& graph, Value v);
  size_t kind(const Graph& graph, const Op& op, const OpFigures& figures);
  std::string text_of(const Graph& graph, const GraphFigures& figures);

  Numbered<TypeRef> types_;
  Numbered<Loc> places_;
  Numbered<std::string> literals_, kinds_;
  std::unordered_map<const Graph*, size_t> graphs_;
  std::vector<std::string> texts_;
  std::vector<size_t> programs_;
};

size_t Viewer::type(TypeRef t) {
  return types_.number(t, [&] {
    Text out;
    json(out << '[', cat(t)) << ',';
    json(out, short_name(t->dtype())) << ',' << t->num_bytes() << ']';
    return out.take();
  });
}

size_t Viewer::place(Loc loc) {
  return places_.number(loc, [&] {
    const LocInfo& at = loc_info(loc);
    Text out;
    json(out << '[', at.file) << ',' << at.line << ',';
    json(out, at.function) << ',';
    json(out, at.scope) << ',';
    json(out, loc & kCotangentLoc ? "cotangent" : loc & kTangentLoc ? "tangent" : "") << ']';
    return out.take();
  });
}

int64_t Viewer::literal(const Graph& graph, Value v) {
  std::string text = cat(graph.literal(v), ':', graph.type(v));
  size_t number = literals_.number(text, [&] {
    Text out;
    json(out, text);
    return out.take();
  });
  return -static_cast<int64_t>(number) - 1;
}

size_t Viewer::graph(const Graph& g) {
  auto [at, is_new] = graphs_.try_emplace(&g, texts_.size());
  if (is_new) texts_.emplace_back();
  return at->second;
}

size_t Viewer::kind(const Graph& graph, const Op& op, const OpFigures& figures) {
  Text attrs, graphs;
  for (size_t i = 0; op.attrs && i < op.attrs->values().size(); ++i) {
    const AttrSpec& spec = op.attrs->schema().specs()[i];
    const Attr& value = op.attrs->values()[i];
    auto add = [&](const GraphRef& g, const std::string& label) {
      json(graphs << (graphs.size() ? ",[" : "["), label) << ',' << this->graph(*g) << ']';
    };
    if (const auto* one = std::get_if<GraphRef>(&value)) {
      add(*one, spec.name);
    } else if (const auto* all = std::get_if<std::vector<GraphRef>>(&value)) {
      for (size_t k = 0; k < all->size(); ++k) add((*all)[k], cat(spec.name, ' ', k));
    } else if (is_printed(spec, value)) {
      attrs << (attrs.size() ? " " : "");
      if (!spec.name.empty()) attrs << spec.name << '=';
      print_value(attrs, spec.type, value);
    }
  }
  Text out;
  json(out << '[', op.info->name) << ',';
  json(out, shortened(attrs.take())) << ",[" << graphs.view() << "]," << op.num_operands << ',';
  json_list(out, graph.result_types(op), [&](TypeRef t) { out << type(t); });
  const Cost& cost = figures.cost;
  for (double x : {cost.flops, cost.transcendentals, cost.bytes}) json(out << ',', x);
  json(out << ',', std::round(figures.seconds * 1e10) / 10) << ']';
  std::string text = out.take();
  return kinds_.number(text, [&] { return text; });
}

std::string Viewer::text_of(const Graph& g, const GraphFigures& figures) {
  Text out;
  json_list(out << "{\"inputs\":", g.input_types(), [&](TypeRef t) { out << type(t); });
  out << ",\"consts\":" << g.num_consts() << ",\"ops\":[";
  for (size_t i = 0; i < g.ops().size(); ++i) {
    const Op& op = g.ops()[i];
    out << (i ? "," : "") << kind(g, op, figures.ops[i]) << ',' << place(op.loc);
    for (Value v : g.operands(op)) {
      out << ',';
      if (v.is_literal()) {
        out << literal(g, v);
      } else {
        out << op.results_begin - v.id;
      }
    }
  }
  json_list(out << "],\"outputs\":", g.outputs(), [&](Value v) {
    if (v.is_literal()) {
      out << literal(g, v);
    } else {
      out << v.id;
    }
  });
  double live = 0;
  json_list(out << ",\"live\":", figures.ops, [&](const OpFigures& op) {
    json(out, op.live - live);
    live = op.live;
  });
  out << ",\"peak\":" << figures.peak;
  json_list(out << ",\"held\":", figures.at_peak, [&](Value v) { out << v.id; });
  std::vector<size_t> critical;
  size_t last = 0;
  for (size_t i = 0; i < figures.ops.size(); ++i) {
    if (!figures.ops[i].critical) continue;
    critical.push_back(i - last);
    last = i;
  }
  json_list(out << ",\"critical\":", critical);
  json(out << ",\"chain\":", std::round(figures.chain_seconds * 1e9)) << '}';
  return out.take();
}

void Viewer::add(const GraphRef& program) {
  programs_.push_back(graph(*program));
  for (const GraphFigures& figures : figures_of_ops(*program)) {
    size_t number = graph(*figures.graph);
    if (!texts_[number].empty()) continue;
    std::string text = text_of(*figures.graph, figures);
    texts_[number] = std::move(text);
  }
}

std::string Viewer::take() {
  Text out;
  out << '{';
  auto table = [&](std::string_view name, const std::vector<std::string>& entries) {
    json_list(json(out, name) << ':', entries) << ",\n";
  };
  table("types", types_.entries());
  table("places", places_.entries());
  table("literals", literals_.entries());
  table("kinds", kinds_.entries());
  table("graphs", texts_);
  json_list(out << "\"programs\":", programs_) << '}';
  return out.take();
}

}  // namespace

std::string view_json(std::span<const GraphRef> programs) {
  Viewer viewer;
  for (const GraphRef& program : programs) viewer.add(program);
  return viewer.take();
}

}  // namespace weft
