// Presets fill most slots of an OpDef from a few facts about the op.
#pragma once

#include "weft/build.h"
#include "weft/op_def.h"

namespace weft {

// Sets of dtypes an operand may have.
enum DTypeSet : uint8_t {
  kBools = 1,
  kSignedInts = 2,
  kUnsignedInts = 4,
  kFloats = 8,
  kComplexes = 16,
  kKeys = 32,
  kInts = kSignedInts | kUnsignedInts,
  kBoolsAndInts = kBools | kInts,
  kReals = kInts | kFloats,
  kInexact = kFloats | kComplexes,
  kNumbers = kReals | kComplexes,
  kAnyDType = kBools | kNumbers,
  kAnyElement = kAnyDType | kKeys,  // also those that are no numbers
};
bool contains(DTypeSet set, DType d);
// "float or complex", for messages.
std::string describe(DTypeSet set);

// Element-wise ops: operands of one dtype, each of the result's shape or scalar (scalars broadcast
// implicitly). Inference, batching, emission ("stablehlo.sine") and cost follow from this.
struct Elementwise {
  std::string name;
  std::string doc;
  std::string hlo;  // empty: set emit or decompose afterwards
  DTypeSet dtypes = kNumbers;
  std::function<DType(DType)> result_dtype = nullptr;  // default: the operands' dtype
  JvpKind jvp_kind = JvpKind::kArgs;
  std::vector<JvpArgRule> jvp = {};
  TransposeRule transpose = nullptr;
  FoldRule fold = nullptr;
  std::vector<Rewrite> simplify = {};
  AttrSchema attrs = {};
  double flops = 1;
  bool transcendental = false;
  bool commutative = false;
};
OpDef unary(Elementwise e);
OpDef binary(Elementwise e);
// hlo is the comparison direction, "LT"; the result is bool.
OpDef compare(Elementwise e);

// Parts of presets, for ops that are almost standard.
// The shape that element-wise operands have in common: that of those which are not scalars.
const Dims& common_shape(const InferCtx& c);
TypeRefs infer_elementwise(const InferCtx& c, DTypeSet dtypes,
                           const std::function<DType(DType)>& result = nullptr);
void batch_elementwise(BatchCtx& c);
// Operand i for a result of shape `full`, mapped at dim: an unmapped scalar stays one.
Val batched_operand(const BatchCtx& c, size_t i, const Dims& full, int dim);
void emit_elementwise(EmitCtx& c, std::string_view hlo);
// As the ops that `write` makes of the operands, which give the results, or the one result.
void emit_all_as(EmitCtx& c, const std::function<Vals(const Vals& operands)>& write);
void emit_as(EmitCtx& c, const std::function<Val(const Vals& operands)>& write);
Cost cost_elementwise(const CostCtx& c, double flops, bool transcendental);
// The result of an op on operands of the result's shape: "stablehlo.add %0, %1 : tensor<3xf32>".
std::string emit_op(EmitCtx& c, std::string_view hlo, std::span<const std::string> operands,
                    std::span<const TypeRef> in_types, TypeRef out_type);
// "stablehlo.compare LT, ..." of two values of one type; total_order puts -nan < -inf, nan > inf.
std::string emit_compare(EmitCtx& c, std::string_view direction, std::string_view lhs,
                         std::string_view rhs, TypeRef type, bool total_order = false);
// "stablehlo.select"; the predicate may be a scalar.
std::string emit_select(EmitCtx& c, std::string_view pred, TypeRef pred_type,
                        std::string_view on_true, std::string_view on_false, TypeRef type);
// A contribution to a result's tangent, of an operand that may have been a broadcast scalar.
JvpArgRule broadcast_tangent(JvpArgRule rule);
// Fails: the op has no derivative with respect to an argument.
JvpArgRule no_derivative(std::string op, std::string argument);
// Replaces the (single) result by v: a scalar v is broadcast.
Vals replacement(const SimplifyCtx& c, Val v);
// The InKernelRule of ops that a kernel computes as a program does, bit for bit: of float32,
// float64, complex numbers, bool, and integers of 8 bits and more, and of no empty arrays.
bool is_same_in_kernel(const CostCtx& c);
// Bytes read and written, no flops.
Cost cost_bytes(const CostCtx& c);

// Exact folds of one or two operands (the second is 0 for one) of the result's dtype. The double
// form rounds to the dtype (use for ops that IEEE rounds correctly, and not for f64-inexact
// formulas); the integer form wraps. A null form and complex numbers are not folded.
FoldRule fold_real(double (*f)(double, double), int64_t (*i)(int64_t, int64_t));
// Wrapping integer arithmetic, for folds, is done on the bits.
inline int64_t wrapped(uint64_t x) { return static_cast<int64_t>(x); }
inline uint64_t bits(int64_t x) { return static_cast<uint64_t>(x); }
// x < y for literals of one real dtype or bool; false for nan.
bool less_than(const Literal& x, const Literal& y);
// The larger (or smaller) of two such literals: nan if either is, 0 above -0.
Literal extremum(const Literal& x, const Literal& y, bool largest);

// The JvpKind::kZero and kLinear presets.
OpDef& zero_tangent(OpDef& def);
OpDef& linear(OpDef& def, TransposeRule transpose, std::vector<size_t> linear_args = {});
// Placement and derivatives of an op whose results are its operands. `again` applies it to tangents
// or cotangents, of which some may be missing.
OpDef& hands_on(OpDef& def, Vals (*again)(const RuleCtx& c, std::span<const Value> values));

// Reductions over `axes`, one operand: inference (drop axes), batching (shift axes), cost.
struct Reducer {
  std::string name;
  std::string doc;
  std::string hlo;  // the combining op, "stablehlo.add"
  DTypeSet dtypes = kNumbers;
  // Identity element for a dtype.
  std::function<Literal(DType)> identity;
};
OpDef reducer(Reducer r);

}  // namespace weft
