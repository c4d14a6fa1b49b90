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
  if (!attrs) return effects;
  if (!op.effects_if.empty() && !attrs->boolean(op.effects_if)) effects = kPure;
  if (!op.ordered_by.empty() && attrs->boolean(op.ordered_by)) effects |= kOrdered;
  if (attrs->holds_graphs())
    for_each_graph(attrs, [&](const GraphRef& graph) { effects |= graph->effects(); });
  return effects;
}

uint32_t depth_of(const AttrsRef& attrs) {
  uint32_t depth = 0;
  if (attrs)
    for_each_graph(attrs, [&](const GraphRef& graph) { depth = std::max(depth, graph->depth()); });
  return depth;
}

void merge_names(std::vector<std::string>& names, const std::vector<std::string>& more) {
  for (const std::string& name : more) {
    auto at = std::lower_bound(names.begin(), names.end(), name);
    if (at == names.end() || *at != name) names.insert(at, name);
  }
}

std::vector<std::string> axis_names_of(const AttrsRef& attrs) {
  std::vector<std::string> names;
  if (!attrs || !attrs->may_name_axes()) return names;
  for_each_graph(attrs, [&](const GraphRef& graph) { merge_names(names, graph->axis_names()); });
  // Names are bound for the graphs; those that the op itself refers to are others.
  for (bool binds : {true, false}) {
    for (size_t i = 0; i < attrs->values().size(); ++i) {
      const AttrSpec& spec = attrs->schema().specs()[i];
      const auto* own = std::get_if<std::vector<std::string>>(&attrs->values()[i]);
      if (!own || bool(spec.flags & AttrSpec::kBinds) != binds) continue;
      if (!binds) merge_names(names, *own);
      if (binds) {
        std::erase_if(names, [&](const std::string& name) {
          return std::find(own->begin(), own->end(), name) != own->end();
        });
      }
    }
  }
  return names;
}

}  // namespace weft
