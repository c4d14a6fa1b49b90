// shard: finds over which axes of a mesh each value varies, and makes that explicit: where values
// that vary over different axes meet, `pvary` stands.
#include "transforms/driver.h"
#include "weft/varying.h"

namespace weft {
namespace {

const Literal& literal_of(const Graph& program, Value v) { return program.literal(v); }
const Literal& literal_of(const GraphBuilder& program, Value v) { return *program.as_literal(v); }

// Of a Graph, or of a GraphBuilder as far as it goes: the values made of its own, and over which of
// the axes they vary.
template <typename Program>
class Sharder {
 public:
  Sharder(Builder& b, const Program& program, const std::vector<std::string>& axes, bool strict)
      : b_(b), program_(program), axes_(axes), strict_(strict) {}

  AxisSet varying(Value v) const {
    return v.is_literal() || v.id >= varying_.size() ? 0 : varying_[v.id];
  }
  bool has(Value v) const { return v.id < values_.size() && !values_[v.id].is_none(); }
  void set(Value v, Value made, AxisSet set) {
    at(values_, v.id) = made;
    at(varying_, v.id) = set;
  }

  void visit(const Op& op) {
    b_.set_loc(op.loc);
    at_op(op, [&] { apply(op); });
  }

  // The value as one that varies over these axes too, with their marks, and over which it varies
  // then. A mark takes nothing to add: what varies may be taken for summands.
  std::pair<Value, AxisSet> at_least(Value v, AxisSet least) {
    AxisSet own = varying(v), missing = without_marks(least & ~own);
    Val x{&b_, mapped(v)};
    return {missing ? pvary(x, names_of(missing)).value : x.value,
            weft::without(own, without_marks(least)) | least};
  }

 private:
  template <typename T>
  static T& at(std::vector<T>& table, size_t i) {
    if (i >= table.size()) table.resize(i + 1);
    return table[i];
  }

  Value mapped(Value v) {
    if (!v.is_literal()) return values_[v.id];
    Value& made = at(literals_, v.literal_index());
    if (made.is_none()) made = b_.literal(literal_of(program_, v));
    return made;
  }

  std::vector<std::string> names_of(AxisSet set) const {
    std::vector<std::string> names;
    for (size_t i = 0; i < axes_.size(); ++i)
      if (set >> i & 1) names.push_back(axes_[i]);
    return names;
  }

  void apply(const Op& op) {
    const OpDef& d = def(*op.info);
    Values operands;
    SmallVector<AxisSet, 8> sets;
    TypeRefs in_types, out_types;
    for (Value v : program_.operands(op)) {
      operands.push_back(mapped(v));
      sets.push_back(varying(v));
      in_types.push_back(program_.type(v));
    }
    for (uint32_t i = 0; i < op.num_results; ++i)
      out_types.push_back(program_.type(Value{op.results_begin + i}));
    ShardCtx c{{b_, d, op.attrs, operands, in_types, out_types, &transforms()},
               axes_,
               sets,
               strict_,
               {},
               {}};
    if (d.shard) {
      d.shard(c);
    } else {
      // Within the op's graphs all values are taken to vary alike, which collectives would change.
      if (op.attrs && c.set_of(axis_names_of(op.attrs)))
        missing_rule(d, "collectives over axes of a mesh in its graphs");
      c.apply(c.of_results());
    }
    for (uint32_t i = 0; i < op.num_results; ++i)
      set(Value{op.results_begin + i}, c.results[i], c.result_varying[i]);
  }

  Builder& b_;
  const Program& program_;
  const std::vector<std::string>& axes_;
  bool strict_;
  std::vector<Value> values_, literals_;
  std::vector<AxisSet> varying_;
};

std::shared_ptr<const ShardedGraph> make_sharded(const Graph& graph, const ShardOptions& options) {
  GraphBuilder b;
  Sharder<Graph> sharder(b, graph, options.axes, options.strict);
  std::vector<Value> args;
  for (uint32_t i = 0; i < graph.num_inputs(); ++i) {
    args.push_back(b.input(graph.type(graph.input(i))));
    sharder.set(graph.input(i), args[i], options.inputs[i]);
  }
  for (const Op& op : graph.ops()) sharder.visit(op);
  auto result = std::make_shared<ShardedGraph>();
  Values outputs;
  for (size_t i = 0; i < graph.outputs().size(); ++i) {
    AxisSet least = options.at_least.empty() ? 0 : options.at_least[i];
    auto [made, set] = sharder.at_least(graph.outputs()[i], least);
    outputs.push_back(made);
    result->outputs.push_back(set);
  }
  result->graph = b.finish_ordered(outputs, args, graph.num_consts());
  return result;
}

}  // namespace

std::shared_ptr<const ShardedGraph> shard(const GraphRef& graph, const ShardOptions& options) {
  check_mask("shard", "input", options.inputs.size(), graph->num_inputs());
  if (options.axes.size() > kMaxManualAxes)
    fail(ErrorKind::kValue, "expected at most ", kMaxManualAxes, " axes; got ",
         options.axes.size());
  std::string key = options.strict ? "shard_strict" : "shard";
  for (const std::string& axis : options.axes) key += cat(':', axis.size(), ':', axis);
  for (AxisSet set : options.inputs) key += cat(',', set);
  key += ';';
  for (AxisSet set : options.at_least) key += cat(',', set);
  return graph->cached<ShardedGraph>(key, [&] { return make_sharded(*graph, options); });
}

// ---- A program that is being built

struct Varying::State {
  State(const GraphBuilder& built, std::vector<std::string> names)
      : program(built), axes(std::move(names)), sharder(made, program, axes, true) {}

  const GraphBuilder& program;
  std::vector<std::string> axes;
  GraphBuilder made;  // the rules' results, which nobody asks for
  Sharder<GraphBuilder> sharder;
  uint32_t next = 0;
};

Varying::Varying(const GraphBuilder& program, std::vector<std::string> axes)
    : state_(std::make_unique<State>(program, std::move(axes))) {}
Varying::~Varying() = default;

const std::vector<std::string>& Varying::axes() const { return state_->axes; }

void Varying::set(Value input, AxisSet set) {
  State& s = *state_;
  s.sharder.set(input, s.made.input(s.program.type(input)), set);
}

AxisSet Varying::of(Value v) {
  State& s = *state_;
  if (v.is_literal()) return 0;
  while (s.next <= v.id) {
    Value at{s.next};
    const Op* op = s.program.producer(at);
    if (!op) {
      if (!s.sharder.has(at)) set(at, 0);
      ++s.next;
      continue;
    }
    s.next = op->results_begin + op->num_results;
    try {
      s.sharder.visit(*op);
    } catch (const Error&) {
      for (uint32_t i = op->results_begin; i < s.next; ++i) set(Value{i}, 0);
      throw;
    }
  }
  return s.sharder.varying(v);
}

}  // namespace weft
