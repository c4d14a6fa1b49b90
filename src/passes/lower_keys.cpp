// lower_keys: arrays of random keys become arrays of their words, uint32 with a further last axis.
// That axis is one more mapped axis to the ops that move elements about, so their batch rules say
// all there is to say; ops that hold graphs pass keys on as they are.
#include "ops/def/walk.h"
#include "passes/pass_list.h"
#include "transforms/driver.h"
#include "weft/build.h"

namespace weft {
namespace {

const std::string kLowerKey = "lower_key";

bool is_key(TypeRef type) { return is_key(type->dtype()); }

// The type of the words.
TypeRef lowered(TypeRef type) {
  if (!is_key(type)) return type;
  Dims shape = type->shape();
  shape.push_back(key_words(type->dtype()));
  return make_type(DType::kU32, shape);
}

// A type as the batch rules see it: of elements whose words are those of different lanes.
TypeRef of_lane(TypeRef type) { return is_key(type) ? with_dtype(type, DType::kU32) : type; }

class LowerRun {
 public:
  GraphRef run(const GraphRef& graph) {
    if (!applies(graph)) return graph;
    GraphBuilder b;
    ValueMap map(*graph, b);
    std::vector<Value> inputs;
    for (uint32_t i = 0; i < graph->num_inputs(); ++i) {
      inputs.push_back(b.input(lowered(graph->input_types()[i])));
      map.set(graph->input(i), inputs.back());
    }
    auto lower = [&](Value v) {
      return is_key(graph->type(v)) ? words(*graph, b, map, v) : map(v);
    };
    for (const Op& op : graph->ops()) {
      b.set_loc(op.loc);
      Values operands;
      for (Value v : graph->operands(op)) operands.push_back(lower(v));
      at_op(op, [&] { map.set_results(op, visit(*graph, b, op, operands)); });
    }
    std::vector<Value> outputs;
    for (Value v : graph->outputs()) outputs.push_back(lower(v));
    return b.finish(outputs, std::span<const Value>(inputs).first(graph->num_consts()));
  }

  // Whether there are keys: most programs have none, and are not copied.
  bool applies(const GraphRef& graph) {
    auto [known, fresh] = applies_.try_emplace(graph.get(), false);
    if (fresh) applies_[graph.get()] = find_keys(*graph);
    return applies_[graph.get()];
  }
  uint32_t num_lowered() const { return num_lowered_; }

 private:
  bool find_keys(const Graph& graph) {
    for (uint32_t i = 0; i < graph.num_values(); ++i)
      if (is_key(graph.type(Value{i}))) return true;
    if (graph.depth() == 1) return false;
    for (const Op& op : graph.ops()) {
      if (!op.attrs || !takes_graphs(*op.info)) continue;
      bool found = false;
      for_each_graph(op.attrs, [&](const GraphRef& g) { found |= applies(distinct_(g)); });
      if (found) return true;
    }
    return false;
  }

  // The words of a key. Literals are made by rules that need some element: all their words are 0.
  Value words(const Graph& graph, Builder& b, ValueMap& map, Value v) {
    return v.is_literal() ? zeros(b, lowered(graph.type(v))).value : map(v);
  }

  Values visit(const Graph& graph, GraphBuilder& b, const Op& op, std::span<const Value> operands) {
    std::span<const TypeRef> results = graph.result_types(op);
    TypeRefs in_types = operand_types(graph, op), out_types, lanes;
    for (TypeRef t : results) out_types.push_back(lowered(t));
    if (op.attrs && takes_graphs(*op.info)) {
      AttrsRef attrs = map_graphs(op.attrs, [this](const GraphRef& g) { return regions_(g); });
      return b.add_typed(*op.info, operands, attrs, out_types);
    }
    TypeRef key = nullptr;
    for (TypeRef t : in_types)
      if (is_key(t)) key = t;
    for (TypeRef t : results)
      if (is_key(t)) key = t;
    if (!key) return copy_op(graph, b, op, operands);
    ++num_lowered_;
    if (op.info == &op_named<"bitcast_convert_type">())
      return {reshape({&b, operands[0]}, out_types[0]->shape()).value};
    BatchDims dims;
    for (TypeRef& t : in_types) {
      dims.push_back(is_key(t) ? t->rank() : kNotBatched);
      t = of_lane(t);
    }
    for (TypeRef t : results) lanes.push_back(of_lane(t));
    const OpDef& d = def(*op.info);
    if (!d.batch) missing_rule(d, "keys");
    BatchCtx c{{b, d, op.attrs, operands, in_types, lanes, &transforms()},
               key_words(key->dtype()),
               dims,
               {},
               {}};
    d.batch(c);
    Values made;
    for (size_t i = 0; i < results.size(); ++i) {
      Val x = c.out[i];
      int dim = c.out_dims[i], last = results[i]->rank();
      if (is_key(results[i])) {
        made.push_back(dim == kNotBatched ? broadcast_to_words(x, out_types[i])
                                          : move_axis(x, dim, last).value);
      } else if (dim == kNotBatched) {
        made.push_back(x.value);
      } else {
        // Keys are equal if all of their words are.
        bool all = op.info == &op_named<"eq">();
        made.push_back(apply1(all ? "reduce_and" : "reduce_or", {x}, {{"axes", Dims{dim}}}).value);
      }
    }
    return made;
  }

  static Value broadcast_to_words(Val x, TypeRef type) {
    Dims kept;
    for (int i = 0; i < x.rank(); ++i) kept.push_back(i);
    return broadcast_in_dim(x, type->shape(), kept).value;
  }

  GraphMemo regions_{[this](const GraphRef& graph) { return run(graph); }};
  GraphMemo distinct_{[](const GraphRef& graph) { return graph; }};
  std::unordered_map<const Graph*, bool> applies_;
  uint32_t num_lowered_ = 0;
};

GraphRef lower_keys(const GraphRef& graph, const PassOptions& options, PassStats& stats) {
  LowerRun run;
  RewriteFilter filter(options);
  if (!filter.allows(kLowerKey) || !run.applies(graph)) return graph;
  GraphRef result = run.run(graph);
  filter.applied(kLowerKey, run.num_lowered(), stats);
  return result;
}

}  // namespace

Pass lower_keys_pass() {
  return {"lower_keys",
          "Replaces arrays of random keys by arrays of their words.",
          lower_keys,
          {{kLowerKey, "an op on random keys -> ops on their words"}},
          Phase::kFinal};
}

}  // namespace weft
