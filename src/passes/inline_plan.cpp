#include "passes/inline_plan.h"

#include <algorithm>

#include "weft/op_def.h"

namespace weft {
namespace {

constexpr uint64_t kTinyOps = 8;
// Calls and regions in each other, beyond which calls are inlined although their graphs are not
// tiny.
constexpr uint32_t kMaxCallDepth = 64;
// Copies that bounded depth may make of a graph, in ops.
constexpr uint64_t kMaxCopiedOps = 10'000;

bool may_be_inlined(const Op& op) { return def(*op.info).call == CallKind::kInline; }

template <typename F>
void for_each_live_op_with_graphs(const Graph& graph, F&& f) {
  if (graph.depth() == 1) return;
  std::vector<uint32_t> uses = live_uses(graph);
  for (const Op& op : graph.ops())
    if (op.attrs && takes_graphs(*op.info) && is_live(op, uses)) f(op);
}

}  // namespace

bool is_live(const Op& op, const std::vector<uint32_t>& uses) {
  for (uint32_t i = 0; i < op.num_results; ++i)
    if (uses[op.results_begin + i] > 0) return true;
  return effects_of(*op.info, op.attrs) != kPure;
}

std::vector<uint32_t> live_uses(const Graph& graph) {
  std::vector<uint32_t> uses(graph.num_values());
  auto use = [&](Value v) {
    if (!v.is_literal()) ++uses[v.id];
  };
  for (Value v : graph.outputs()) use(v);
  for (uint32_t index = static_cast<uint32_t>(graph.ops().size()); index-- > 0;) {
    const Op& op = graph.op(index);
    if (!is_live(op, uses)) continue;
    for (Value v : graph.operands(op)) use(v);
  }
  return uses;
}

InlinePlan::InlinePlan(const GraphRef& graph, InlineDepth depth)
    : bounds_depth_(depth == InlineDepth::kBounded) {
  count_calls(*graph);
  Callee whole;
  measure(*graph, whole);
}

bool InlinePlan::inlines(const Op& op) const {
  if (!any_ || !may_be_inlined(op)) return false;
  auto known = is_inlined_.find(callee(op).get());
  return known != is_inlined_.end() && known->second;
}

// Counts the calls of each distinct callee in the distinct graphs of the program.
void InlinePlan::count_calls(const Graph& graph) {
  for_each_live_op_with_graphs(graph, [&](const Op& op) {
    for_each_graph(op.attrs, [&](const GraphRef& any_graph) {
      GraphRef region = distinct_(any_graph);
      auto [known, fresh] = callees_.try_emplace(region.get());
      if (may_be_inlined(op)) ++known->second.num_calls;
      if (fresh) count_calls(*region);
    });
  });
}

void InlinePlan::measure(const Graph& graph, Callee& out) {
  out.num_ops = graph.ops().size();
  for_each_live_op_with_graphs(graph, [&](const Op& op) {
    for_each_graph(op.attrs, [&](const GraphRef& any_graph) {
      Callee& inner = find(any_graph);
      if (inner.num_ops == 0) {
        measure(*distinct_(any_graph), inner);
        inner.is_inlined = is_worth_it(inner);
        inner.num_ops = std::max<uint64_t>(inner.num_ops, 1);  // has been measured
      }
      bool is_inlined = may_be_inlined(op) && inner.is_inlined;
      if (may_be_inlined(op)) is_inlined_[any_graph.get()] = is_inlined;
      any_ |= is_inlined;
      out.depth = std::max(out.depth, inner.depth + (is_inlined ? 0 : 1));
      if (is_inlined) out.num_ops += inner.num_ops;
    });
  });
}

bool InlinePlan::is_worth_it(const Callee& callee) const {
  if (callee.num_calls == 1 || callee.num_ops <= kTinyOps) return true;
  return bounds_depth_ && callee.depth >= kMaxCallDepth &&
         callee.num_ops * callee.num_calls <= kMaxCopiedOps;
}

}  // namespace weft
