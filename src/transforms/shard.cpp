// shard: finds over which axes of a mesh each value varies, and makes that explicit: where values
// that vary over different axes meet, `pvary` stands.
#include "transforms/driver.h"

namespace weft {
namespace {

class Sharder {
 public:
  Sharder(Builder& b, const Graph& graph, const ShardOptions& options)
      : b_(b), graph_(graph), options_(options), values_(graph, b), varying_(graph.num_values()) {}

  Values run(std::span<const Value> args, SmallVector<AxisSet, 8>& outputs) {
    for (uint32_t i = 0; i < graph_.num_inputs(); ++i) {
      values_.set(graph_.input(i), args[i]);
      varying_[i] = options_.inputs[i];
    }
    for (const Op& op : graph_.ops()) {
      b_.set_loc(op.loc);
      at_op(op, [&] { visit(op); });
    }
    Values out;
    for (size_t i = 0; i < graph_.outputs().size(); ++i) {
      Value v = graph_.outputs()[i];
      AxisSet set = varying(v), least = options_.at_least.empty() ? 0 : options_.at_least[i];
      AxisSet missing = least & ~set;
      Val x{&b_, values_(v)};
      out.push_back(missing ? pvary(x, names_of(missing)).value : x.value);
      outputs.push_back(set | least);
    }
    return out;
  }

 private:
  AxisSet varying(Value v) const { return v.is_literal() ? 0 : varying_[v.id]; }

  std::vector<std::string> names_of(AxisSet set) const {
    std::vector<std::string> names;
    for (size_t i = 0; i < options_.axes.size(); ++i)
      if (set >> i & 1) names.push_back(options_.axes[i]);
    return names;
  }

  void visit(const Op& op) {
    const OpDef& d = def(*op.info);
    Values operands = values_(graph_.operands(op));
    SmallVector<AxisSet, 8> sets;
    for (Value v : graph_.operands(op)) sets.push_back(varying(v));
    TypeRefs in_types = operand_types(graph_, op);
    ShardCtx c{
        rule_ctx(b_, graph_, op, operands, in_types), options_.axes, sets, options_.strict, {}, {}};
    if (d.shard) {
      d.shard(c);
    } else {
      // Within the op's graphs all values are taken to vary alike, which collectives would change.
      if (op.attrs && c.set_of(axis_names_of(op.attrs)))
        missing_rule(d, "collectives over axes of a mesh in its graphs");
      c.apply(c.all());
    }
    values_.set_results(op, c.results);
    for (uint32_t i = 0; i < op.num_results; ++i)
      varying_[op.results_begin + i] = c.result_varying[i];
  }

  Builder& b_;
  const Graph& graph_;
  const ShardOptions& options_;
  ValueMap values_;
  std::vector<AxisSet> varying_;
};

std::shared_ptr<const ShardedGraph> make_sharded(const Graph& graph, const ShardOptions& options) {
  GraphBuilder b;
  std::vector<Value> args;
  for (TypeRef type : graph.input_types()) args.push_back(b.input(type));
  auto result = std::make_shared<ShardedGraph>();
  Values outputs = Sharder(b, graph, options).run(args, result->outputs);
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

}  // namespace weft
