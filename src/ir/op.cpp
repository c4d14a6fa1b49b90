// Inference and effects of one op.
#include "weft/op.h"

#include <algorithm>

#include "weft/graph.h"

namespace weft {

namespace {

std::string describe(std::span<const TypeRef> types) {
  Text out;
  for (TypeRef type : types) out << (out.size() ? " " : "") << type;
  return out.take();
}

}  // namespace

TypeRefs infer_types(const OpInfo& op, std::span<const TypeRef> operands, const AttrsRef& attrs) {
  if (op.num_operands >= 0 && operands.size() != static_cast<size_t>(op.num_operands)) {
    fail(ErrorKind::kType, "[", op.name, "] expected ", op.num_operands,
         op.num_operands == 1 ? " operand; got " : " operands; got ", operands.size(),
         operands.empty() ? "" : ": ", describe(operands));
  }
  if (!attrs && op.attrs.size() != 0) {
    fail(ErrorKind::kType, "[", op.name, "] expected attributes; got none");
  }
  if (!op.infer) fail(ErrorKind::kNotImplemented, "[", op.name, "] has no type inference");
  return op.infer(InferCtx{op, operands, attrs.get()});
}

uint32_t effects_of(const OpInfo& op, const AttrsRef& attrs) {
  uint32_t effects = op.effects;
  if (attrs && !op.ordered_by.empty() && attrs->boolean(op.ordered_by)) effects |= kOrdered;
  if (attrs) for_each_graph(attrs, [&](const GraphRef& graph) { effects |= graph->effects(); });
  return effects;
}

uint32_t depth_of(const AttrsRef& attrs) {
  uint32_t depth = 0;
  if (attrs)
    for_each_graph(attrs, [&](const GraphRef& graph) { depth = std::max(depth, graph->depth()); });
  return depth;
}

}  // namespace weft
