// Ops about the order and the life of values. optimization_barrier: ties values together, so that
// the compiler makes all of them before any of the results is used, and moves nothing across.
// dce_sink: keeps a value in the program. create_token, after_all: tokens, which are arrays without
// elements; what has to happen in order does so without them.
#include "ops/def/axes.h"
#include "ops/def/hlo_text.h"
#include "ops/def/place.h"
#include "ops/def/presets.h"
#include "ops/def/regions.h"
#include "ops/host/family.h"

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
  // That what is computed again is not found equal to what was computed before, to save memory, is
  // all that the barrier is there for.
  d.attrs = {{"prevent_cse", AttrType::kBool, AttrSpec::kHideDefault, false}};
  d.infer = [](const InferCtx& c) { return TypeRefs(c.operands); };
  hands_on(d, behind_barrier);
  d.batch = [](BatchCtx& c) {
    Vals xs;
    for (Value v : c.operands) xs.push_back(c.val(v));
    Vals results = apply(c.op, xs, c.attrs);
    for (size_t i = 0; i < xs.size(); ++i) c.result(results[i], c.dim(i));
  };
  // XLA takes no barriers in kernels if it is to keep them. What a kernel computes is small.
  d.for_kernel = [](RuleCtx& c) {
    return c.attr().boolean("prevent_cse") ? vals_of(c.b, c.operands) : Vals();
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

OpDef dce_sink_op() {
  OpDef d;
  d.name = "dce_sink";
  d.doc = "Uses a value, so that what makes it stays in the program.";
  d.attrs = {{"prevent_mlir_dce", AttrType::kBool, AttrSpec::kHideDefault, false}};
  d.num_operands = 1;
  d.multiple_results = true;
  d.effects = kUnordered;
  d.infer = [](const InferCtx&) { return TypeRefs(); };
  zero_tangent(d);
  d.batch = [](BatchCtx& c) { apply(c.op, Vals{c.x(0)}, c.attrs); };
  d.emit = [](EmitCtx&) {};
  d.cost = [](const CostCtx&) { return Cost{}; };
  return d;
}

TypeRef token_type() { return make_type(DType::kBool, {0}); }

OpDef token_op(std::string name, std::string doc, int num_operands) {
  OpDef d;
  d.name = std::move(name);
  d.doc = std::move(doc);
  d.num_operands = num_operands;
  d.infer = [](const InferCtx& c) {
    for (TypeRef t : c.operands)
      if (t != token_type()) c.fail(ErrorKind::kType, "expected tokens; got ", operand_types(c));
    return TypeRefs{token_type()};
  };
  zero_tangent(d);
  d.emit = [](EmitCtx& c) {
    c.set_out(0, c.constant(make_literal(DType::kBool, int64_t{0}), token_type()->shape()));
  };
  d.cost = [](const CostCtx&) { return Cost{}; };
  return d;
}

// Tokens have no elements: those of all lanes are one.
OpDef after_all_op() {
  OpDef d = token_op("after_all", "A token that comes after others.", -1);
  d.batch = [](BatchCtx& c) { c.result(zeros(c.b, token_type()), kNotBatched); };
  return d;
}

}  // namespace

void register_barrier(OpRegistry& r) {
  r.add(optimization_barrier_op());
  r.add(dce_sink_op());
  r.add(token_op("create_token", "A token, which comes after nothing.", 0));
  r.add(after_all_op());
}

}  // namespace weft
