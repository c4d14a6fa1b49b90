// optimization_barrier: ties values together, so that the compiler makes all of them before any of
// the results is used, and moves nothing across.
#include "ops/families.h"
#include "ops/hlo_text.h"
#include "ops/presets.h"

namespace weft {
namespace {

// The values that are not none behind a barrier of their own.
Vals behind_barrier(const RuleCtx& c, std::span<const Value> values) {
  Vals present;
  for (Value v : values)
    if (v) present.push_back(c.val(v));
  Vals made = apply(c.op, present, c.attrs), results;
  size_t next = 0;
  for (Value v : values) results.push_back(v ? made[next++] : Val{});
  return results;
}

OpDef optimization_barrier_op() {
  OpDef d;
  d.name = "optimization_barrier";
  d.doc = "The operands; the compiler moves no computation from before to after, or back.";
  d.multiple_results = true;
  d.infer = [](const InferCtx& c) { return TypeRefs(c.operands); };
  d.jvp_kind = JvpKind::kCustom;
  d.jvp = [](JvpCtx& c) { return behind_barrier(c, c.tangents); };
  d.transpose = [](TransposeCtx& c) {
    Vals cts = behind_barrier(c, c.cotangents);
    for (size_t i = 0; i < cts.size(); ++i)
      if (cts[i] && c.linear(i)) c.add(i, cts[i]);
  };
  d.batch = [](BatchCtx& c) {
    Vals xs;
    for (Value v : c.operands) xs.push_back(c.val(v));
    Vals results = apply(c.op, xs, c.attrs);
    for (size_t i = 0; i < xs.size(); ++i) c.result(results[i], c.dim(i));
  };
  d.emit = [](EmitCtx& c) {
    if (c.size() == 0) return;
    c.note_barrier();
    Text types;
    for (size_t i = 0; i < c.size(); ++i) types << (i ? ", " : "") << mlir_type(c.in_type(i));
    emit_results(c, cat("stablehlo.optimization_barrier ", operand_list(c), " : ", types.view()));
  };
  d.cost = [](const CostCtx&) { return Cost{}; };
  return d;
}

}  // namespace

void register_barrier(OpRegistry& r) { r.add(optimization_barrier_op()); }

}  // namespace weft
