// Element-wise ops that take loops or long formulas. Each is a function of the program, written in
// terms of other ops and computed in f64: in f32 its parts would lose most of their digits. Its
// slopes, of any order, are those of that function, but where a formula is known.
#pragma once

#include "ops/def/presets.h"

namespace weft {

// The `decompose` rule of an op that is a function: what it is written as is called by the program,
// once emitted for all uses on operands of the same types, and passes see its ops.
struct FunctionRule {
  std::function<Vals(RuleCtx&)> body;
  Vals operator()(RuleCtx& c) const { return body(c); }
};
inline bool is_function(const OpDef& op) { return op.decompose.target<FunctionRule>(); }

// What an op with a `decompose` rule is written as, for operands of these types; rules may ask for
// `transforms`.
GraphRef decomposed(const OpDef& op, const AttrsRef& attrs, std::span<const TypeRef> in_types,
                    std::span<const TypeRef> out_types, const Transforms& transforms,
                    std::string_view platform = {});
// A key for what an op is written as.
uint64_t hash_use(const OpDef& op, const AttrsRef& attrs, std::span<const TypeRef> in_types);
// The same by the op's rule `for_kernel`; null if that has no form for these types.
GraphRef written_for_kernel(const OpDef& op, const AttrsRef& attrs,
                            std::span<const TypeRef> in_types, std::span<const TypeRef> out_types,
                            const Transforms& transforms);

struct WideFunction {
  const char* name;
  const char* doc;
  size_t num_operands;
  double flops;
  // The result of operands in f64, all of one shape.
  std::function<Val(const RuleCtx& c, std::span<const Val> xs)> value;
  std::vector<JvpArgRule> jvp = {};  // null, or none at all: the slope of the function itself
};
OpDef wide_function(WideFunction f);

// The derivative of a wide function with respect to operands, one after the other.
Val derivative(std::string_view function, std::span<const Val> xs, const Dims& by);
// The tangent that the tangent t() of operand i gives a function whose slope is `function` itself.
JvpArgRule times_slope(std::string function);

// The value that f gives, and its slope by xs[by].
struct ValueAndSlope {
  Val value, slope;
};
ValueAndSlope value_and_slope(const RuleCtx& c, std::span<const Val> xs, size_t by,
                              const std::function<Val(std::span<const Val>)>& f);

// Repeats state = step(count, state) while any element of the mask state[0] is set, at most
// max_steps times. An element keeps its values once its mask is clear.
using Step = std::function<Vals(Val count, std::span<const Val> state)>;
Vals repeat(std::span<const Val> state, int64_t max_steps, const Step& step);

// The op whose results `derivative` gives.
OpDef derivative_op();

}  // namespace weft
