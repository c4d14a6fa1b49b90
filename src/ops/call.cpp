// Ops that call a graph: jit, made by a jitted function called inside another program, and fusion,
// made by passes to keep a group of ops together. Effects are those of the graph.
//
// They have no jvp, transpose or batch slots: a rule sees one op and builds ops, while these need a
// whole graph transformed (and the result cached on it), which is for the transform drivers.
#include "ops/families.h"
#include "ops/hlo_text.h"
#include "weft/op_def.h"

namespace weft {
namespace {

TypeRefs infer_call(const InferCtx& c, std::string_view attr) {
  const Graph& callee = *c.attr().graph(attr);
  if (callee.num_inputs() != c.size())
    c.fail(ErrorKind::kType, "expected ", callee.num_inputs(), " operands, one per input of ", attr,
           "; got ", c.size());
  for (size_t i = 0; i < c.size(); ++i)
    if (c.in(i) != callee.input_types()[i])
      c.fail(ErrorKind::kType, "expected operand ", i, " of type ", callee.input_types()[i],
             ", as input ", i, " of ", attr, "; got ", c.in(i));
  TypeRefs out;
  for (TypeRef t : callee.output_types()) out.push_back(t);
  return out;
}

OpDef call_op(std::string name, std::string doc, std::string attr, CallKind kind) {
  OpDef d;
  d.name = std::move(name);
  d.doc = std::move(doc);
  d.attrs = {{"name", AttrType::kString, AttrSpec::kCosmetic, std::string("f")},
             {attr, AttrType::kGraph}};
  d.call = kind;
  d.multiple_results = true;
  d.infer = [attr](const InferCtx& c) { return infer_call(c, attr); };
  d.emit = [attr](EmitCtx& c) {
    std::string callee = c.function(c.attr().graph(attr), c.attr().string("name"));
    emit_results(c, cat("func.call ", callee, "(", operand_list(c), ") : ", signature(c)));
  };
  return d;
}

}  // namespace

void register_call(OpRegistry& r) {
  r.add(call_op("jit", "Calls a graph.", "jaxpr", CallKind::kInline));
  r.add(
      call_op("fusion", "Calls a graph whose ops are to stay together.", "body", CallKind::kKeep));
}

}  // namespace weft
