#include "ops/regions.h"

#include <algorithm>

namespace weft {
namespace {

// Copies the ops for which keep(index) holds.
template <typename Keep>
void copy_ops(const Graph& graph, Builder& b, ValueMap& map, Keep&& keep) {
  Loc outer = b.loc();
  for (uint32_t index = 0; index < graph.ops().size(); ++index) {
    if (!keep(index)) continue;
    const Op& op = graph.op(index);
    b.set_loc(op.loc != kNoLoc ? op.loc : outer);
    map.set_results(
        op, b.add_typed(*op.info, map(graph.operands(op)), op.attrs, graph.result_types(op)));
  }
  b.set_loc(outer);
}

}  // namespace

Vals inlined_part(Builder& b, const Graph& graph, std::span<const Val> args,
                  std::span<const Value> wanted) {
  std::vector<bool> live(graph.num_values());
  auto mark = [&](Value v) {
    if (!v.is_literal()) live[v.id] = true;
  };
  for (Value v : wanted) mark(v);
  std::vector<bool> needed(graph.ops().size());
  for (uint32_t index = static_cast<uint32_t>(graph.ops().size()); index-- > 0;) {
    const Op& op = graph.op(index);
    for (uint32_t i = 0; i < op.num_results; ++i)
      needed[index] = needed[index] || live[op.results_begin + i];
    if (!needed[index]) continue;
    for (Value v : graph.operands(op)) mark(v);
  }
  ValueMap map(graph, b);
  for (uint32_t i = 0; i < args.size(); ++i)
    if (args[i].builder) map.set(graph.input(i), args[i].value);
  copy_ops(graph, b, map, [&](uint32_t index) { return needed[index]; });
  Vals out;
  for (Value v : wanted) out.push_back({&b, map(v)});
  return out;
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
    int64_t bytes_in = 0, bytes_out = 0;
    for (Value v : graph.operands(op)) {
      if (v.is_literal()) continue;
      from_consts = from_consts && early[v.id];
      bytes_in += graph.type(v)->num_bytes();
    }
    for (TypeRef type : graph.result_types(op)) bytes_out += type->num_bytes();
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
    ValueMap map(graph, b);
    size_t n = hoisted.values.size();
    for (size_t i = 0; i < n; ++i) map.set(hoisted.values[i], xs[i].value);
    for (uint32_t i = 0; i < graph.num_inputs(); ++i) map.set(graph.input(i), xs[n + i].value);
    copy_ops(graph, b, map, [&](uint32_t index) { return !is_hoisted[index]; });
    return vals_of(b, map(graph.outputs()));
  });
  return hoisted;
}

void check_region_type(const InferCtx& c, std::string_view graph, std::string_view what, size_t i,
                       TypeRef expected, TypeRef got) {
  if (expected != got)
    c.fail(ErrorKind::kType, "expected ", what, ' ', i, " of ", graph, " to be ", expected,
           "; got ", got);
}

}  // namespace weft
