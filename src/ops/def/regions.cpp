#include "ops/def/regions.h"

#include <algorithm>

namespace weft {
namespace {

Vals inlined_ops(Builder& b, const Graph& graph, std::span<const Val> args,
                 std::span<const Value> wanted, std::span<const Value> given,
                 std::span<const Val> by, bool with_effects) {
  std::vector<bool> live(graph.num_values());
  auto mark = [&](Value v) {
    if (!v.is_literal()) live[v.id] = true;
  };
  std::vector<bool> is_given(graph.num_values());
  for (Value v : given) is_given[v.id] = true;
  for (Value v : wanted) mark(v);
  std::vector<bool> needed(graph.ops().size());
  for (uint32_t index = static_cast<uint32_t>(graph.ops().size()); index-- > 0;) {
    const Op& op = graph.op(index);
    needed[index] = with_effects && effects_of(*op.info, op.attrs) != kPure;
    for (uint32_t i = op.results_begin; i < op.results_begin + op.num_results; ++i)
      needed[index] = needed[index] || (live[i] && !is_given[i]);
    if (!needed[index]) continue;
    for (Value v : graph.operands(op)) mark(v);
  }
  ValueMap map(graph, b);
  for (uint32_t i = 0; i < args.size(); ++i)
    if (args[i].builder) map.set(graph.input(i), args[i].value);
  for (size_t i = 0; i < given.size(); ++i) map.set(given[i], by[i].value);
  Loc outer = b.loc();
  for (uint32_t index = 0; index < graph.ops().size(); ++index) {
    if (!needed[index]) continue;
    const Op& op = graph.op(index);
    b.set_loc(op.loc != kNoLoc ? op.loc : outer);
    // What is computed for its values alone, next to the graph itself, must not run callbacks
    // again.
    AttrsRef attrs = with_effects ? op.attrs : without_effects(op.attrs);
    Values results = b.add_typed(*op.info, map(graph.operands(op)), attrs, graph.result_types(op));
    for (uint32_t i = 0; i < op.num_results; ++i)
      if (!is_given[op.results_begin + i]) map.set(graph.result(op, i), results[i]);
  }
  b.set_loc(outer);
  Vals out;
  for (Value v : wanted) out.push_back({&b, map(v)});
  return out;
}

}  // namespace

Vals inlined_part(Builder& b, const Graph& graph, std::span<const Val> args,
                  std::span<const Value> wanted, std::span<const Value> given,
                  std::span<const Val> by) {
  return inlined_ops(b, graph, args, wanted, given, by, false);
}

Vals inlined_with(Builder& b, const Graph& graph, std::span<const Val> args,
                  std::span<const Value> outputs, std::span<const Value> given,
                  std::span<const Val> by) {
  return inlined_ops(b, graph, args, outputs, given, by, true);
}

void check_lanes_may_run(const BatchCtx& c, std::span<const GraphRef> graphs,
                         std::string_view chosen_by) {
  for (const GraphRef& graph : graphs) {
    if (!(graph->effects() & kActs)) continue;
    fail(ErrorKind::kNotImplemented, "[", c.op.name,
         "] expected no io_callback or ffi_call with effects where ", chosen_by,
         " differs between the lanes of vmap, since it would run for lanes that did not choose it; "
         "got one\n  Use lax.map, which takes one lane after the other, debug.callback, or "
         "pure_callback.");
  }
}

Hoisted hoist(const GraphRef& body, size_t num_consts) {
  const Graph& graph = *body;
  std::vector<bool> early(graph.num_values());  // made of consts alone, by ops worth hoisting
  for (size_t i = 0; i < num_consts; ++i) early[i] = true;
  std::vector<bool> is_hoisted(graph.ops().size());
  bool any_hoisted = false;
  for (uint32_t index = 0; index < graph.ops().size(); ++index) {
    const Op& op = graph.op(index);
    // Graphs may hold loops that end only in the iterations that there are.
    if (op.info->effects != kPure || takes_graphs(*op.info)) continue;
    bool from_consts = true;
    double bytes_in = 0, bytes_out = 0;
    for (Value v : graph.operands(op)) {
      if (v.is_literal()) continue;
      from_consts = from_consts && early[v.id];
      bytes_in += static_cast<double>(graph.type(v)->num_bytes());
    }
    for (TypeRef type : graph.result_types(op)) bytes_out += static_cast<double>(type->num_bytes());
    // What is made of literals is as cheap inside; what grows costs memory outside.
    if (!from_consts || bytes_in == 0 || bytes_out > bytes_in) continue;
    is_hoisted[index] = any_hoisted = true;
    for (uint32_t i = 0; i < op.num_results; ++i) early[op.results_begin + i] = true;
  }
  if (!any_hoisted) return {};

  // Of the hoisted values, those that the rest of the body uses.
  std::vector<bool> is_used(graph.num_values());
  auto use = [&](Value v) {
    if (!v.is_literal() && v.id >= graph.num_inputs() && early[v.id]) is_used[v.id] = true;
  };
  for (uint32_t index = 0; index < graph.ops().size(); ++index)
    if (!is_hoisted[index])
      for (Value v : graph.operands(graph.op(index))) use(v);
  for (Value v : graph.outputs()) use(v);
  Hoisted hoisted;
  TypeRefs types;
  for (uint32_t id = 0; id < graph.num_values(); ++id) {
    if (!is_used[id]) continue;
    hoisted.values.push_back({id});
    types.push_back(graph.type({id}));
  }
  if (hoisted.values.empty()) return {};
  types.append(graph.input_types());
  hoisted.body = make_graph(types, [&](Builder& b, std::span<const Val> xs) {
    size_t n = hoisted.values.size();
    return inlined_with(b, graph, xs.subspan(n), graph.outputs(), hoisted.values, xs.first(n));
  });
  return hoisted;
}

void check_region_type(const InferCtx& c, std::string_view graph, std::string_view what, size_t i,
                       TypeRef expected, TypeRef got) {
  if (expected != got)
    c.fail(ErrorKind::kType, "expected ", what, ' ', i, " of ", graph, " to be ", expected,
           "; got ", got);
}

bool casts_must_be_written(const ShardCtx& c) {
  return c.strict && !c.attr().boolean("auto_pcast");
}

std::string axes_text(const std::vector<std::string>& axes, AxisSet set) {
  std::string names;
  for (size_t i = 0; i < axes.size(); ++i)
    if (set >> i & 1) names += cat(names.empty() ? "'" : ", '", axes[i], "'");
  return names;
}

std::string cast_text(const ShardCtx& c, AxisSet set) {
  return cat("pcast(x, (", axes_text(c.axes, set), ",), to='varying')");
}

namespace {

[[noreturn]] void fail_carry(const ShardCtx& c, size_t i, TypeRef type, AxisSet before,
                             AxisSet after) {
  AxisSet grown = without_marks(after & ~before), lost = without_marks(before & ~after);
  std::string to_do = grown  ? cat("Start from ", cast_text(c, grown),
                                   ", or take the psum or pmax over the axis in the body.")
                      : lost ? cat("Let the body give ", cast_text(c, lost), '.')
                             : "Bring one into the form of the other with lax.pcast or psum.";
  fail(ErrorKind::kType, "[", c.op.name, "] expected a carry to vary over the same axes of the ",
       "mesh in all iterations; got carry ", i, ", ", c.text(type, before),
       ", that an iteration makes ", c.text(type, after), "\n  ", to_do);
}

}  // namespace

std::shared_ptr<const ShardedGraph> sharded_body(const ShardCtx& c, const GraphRef& body,
                                                 SmallVector<AxisSet, 8>& inputs, Carries carries) {
  bool written = casts_must_be_written(c);
  for (;;) {
    ShardOptions options{.axes = c.axes, .inputs = inputs, .at_least = {}, .strict = c.strict};
    options.at_least = SmallVector<AxisSet, 8>(body->outputs().size(), 0);
    for (size_t i = 0; i < carries.num && !written; ++i)
      options.at_least[i] = inputs[carries.first_input + i];
    auto made = c.transforms->shard(body, options);
    bool same = true;
    for (size_t i = 0; i < carries.num; ++i) {
      AxisSet& own = inputs[carries.first_input + i];
      if (made->outputs[i] == own) continue;
      if (written)
        fail_carry(c, i, body->input_types()[carries.first_input + i], own, made->outputs[i]);
      own = joined(own, made->outputs[i]);
      same = false;
    }
    if (same) return made;
  }
}

}  // namespace weft
