// Rules that ops which call a graph share: jit and fusion have these and no others; custom rules
// and checkpoint have some of them.
#pragma once

#include <string>

#include "weft/op_def.h"

namespace weft {

// An op that calls the graph in attribute `attr`, with all rules of such an op.
OpDef call_op(std::string name, std::string doc, std::string attr, CallKind kind);

// The same op calling another graph.
Values call(const RuleCtx& c, std::span<const Value> args, const GraphRef& graph);
// Vectorised: the callee's outputs stand where `mapped` says.
void batch_call(BatchCtx& c);

// The transposed callee and the operands it takes: those that are not linear, then the cotangents.
struct TransposedCall {
  std::shared_ptr<const TransposedGraph> transposed;
  Values args;
};
TransposedCall transposed_call(const TransposeCtx& c);
// Adds the results of a transposed callee to the linear operands' cotangents.
void add_cotangents(TransposeCtx& c, const TransposedGraph& transposed,
                    std::span<const Value> results);

inline void append_present(Values& to, std::span<const Value> from) {
  for (Value v : from)
    if (v) to.push_back(v);
}
// One value per entry of the mask, none where it does not hold.
inline Values scattered(const Mask& mask, std::span<const Value> values) {
  Values out;
  size_t next = 0;
  for (bool present : mask) out.push_back(present ? values[next++] : Value{});
  return out;
}

}  // namespace weft
