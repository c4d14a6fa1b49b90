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
  kInts = kSignedInts | kUnsignedInts,
  kBoolsAndInts = kBools | kInts,
  kReals = kInts | kFloats,
  kInexact = kFloats | kComplexes,
  kNumbers = kReals | kComplexes,
  kAnyDType = kBools | kNumbers,
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
};
OpDef unary(Elementwise e);
OpDef binary(Elementwise e);
// hlo is the comparison direction, "LT"; the result is bool.
OpDef compare(Elementwise e);

// Parts of presets, for ops that are almost standard.
TypeRefs infer_elementwise(const InferCtx& c, DTypeSet dtypes, DType (*result)(DType) = nullptr);
void batch_elementwise(BatchCtx& c);
void emit_elementwise(EmitCtx& c, std::string_view hlo);
Cost cost_elementwise(const CostCtx& c, double flops, bool transcendental);
// Bytes read and written, no flops.
Cost cost_bytes(const CostCtx& c);

// Exact folds. The double form rounds to the dtype (use for ops that IEEE rounds correctly, and
// not for f64-inexact formulas); the integer form wraps.
FoldRule fold_real(double (*f)(double, double), int64_t (*i)(int64_t, int64_t));

// The JvpKind::kZero and kLinear presets.
OpDef& zero_tangent(OpDef& def);
OpDef& linear(OpDef& def, TransposeRule transpose, std::vector<size_t> linear_args = {});

// Reductions over `axes`, one operand: inference (drop axes), batching (shift axes), cost.
struct Reducer {
  std::string name;
  std::string doc;
  std::string hlo;        // the combining op, "stablehlo.add"
  DTypeSet dtypes = kNumbers;
  // Identity element for a dtype.
  std::function<Literal(DType)> identity;
};
OpDef reducer(Reducer r);

}  // namespace weft
