// SPDX-License-Identifier: Apache-2.0
// Typed builders of the ops that rules and passes use. Each appends one op (or none, where the
// result is an operand) to the builder of its first operand. Elementwise builders take operands of
// the same dtype and of the same shape, or scalars.
#pragma once

#include "weft/api.h"
#include "weft/op_def.h"

namespace weft {

// Appends any op of the registry.
WEFT_API Vals apply(const OpDef& op, std::span<const Val> xs, const AttrsRef& attrs);
WEFT_API Vals apply(std::string_view op, std::initializer_list<Val> xs,
                    std::initializer_list<NamedAttr> attrs = {});
inline Val apply1(std::string_view op, std::initializer_list<Val> xs,
                  std::initializer_list<NamedAttr> attrs = {}) {
  return apply(op, xs, attrs)[0];
}

// Constants: a scalar literal of x's dtype; zeros/ones/full of a type (a broadcast unless scalar).
WEFT_API Val scalar_like(Val x, double value);
WEFT_API Val full(Builder& b, TypeRef type, double value);
// A size as a scalar: a literal, or what a symbolic dimension will be.
WEFT_API Val size_value(Builder& b, int64_t size, DType dtype);
inline Val zeros(Builder& b, TypeRef type) { return full(b, type, 0.0); }
inline Val zeros_like(Val x) { return zeros(*x.builder, x.type()); }
inline Val ones_like(Val x) { return full(*x.builder, x.type(), 1.0); }
WEFT_API Val iota(Builder& b, TypeRef type, int dimension);

// Elementwise.
// clang-format off
#define WEFT_UNARY_BUILDERS(X) \
  X(neg) X(sign) X(abs) X(sqrt) X(rsqrt) X(exp) X(log) X(log1p) X(sin) X(cos) X(tan) \
  X(tanh) X(sinh) X(cosh) X(logistic) X(square) X(real) X(imag) X(digamma) X(floor) \
  X(ceil) X(erf) X(erfc)
// clang-format on
#define X(name) WEFT_API Val name(Val x);
WEFT_UNARY_BUILDERS(X)
#undef X
WEFT_API Val logical_not(Val x);  // `not`
WEFT_API Val conj(Val x);         // complex numbers only
// clang-format off
#define WEFT_BINARY_BUILDERS(X) \
  X(add) X(add_any) X(sub) X(mul) X(div) X(rem) X(pow) X(max) X(min) X(atan2) X(complex) \
  X(eq) X(ne) X(lt) X(le) X(gt) X(ge)
// clang-format on
#define X(name) WEFT_API Val name(Val x, Val y);
WEFT_BINARY_BUILDERS(X)
#undef X
WEFT_API Val logical_and(Val x, Val y);
WEFT_API Val logical_or(Val x, Val y);
WEFT_API Val integer_pow(Val x, int64_t y);
WEFT_API Val select(Val pred, Val on_true, Val on_false);  // select_n with a bool predicate
WEFT_API Val convert(Val x, DType dtype);                  // no op when the dtype is right already

inline Val operator+(Val x, Val y) { return add(x, y); }
inline Val operator-(Val x, Val y) { return sub(x, y); }
inline Val operator*(Val x, Val y) { return mul(x, y); }
inline Val operator/(Val x, Val y) { return div(x, y); }
inline Val operator-(Val x) { return neg(x); }
// With a number: a literal of the other side's dtype.
inline Val operator+(Val x, double y) { return add(x, scalar_like(x, y)); }
inline Val operator-(Val x, double y) { return sub(x, scalar_like(x, y)); }
inline Val operator*(Val x, double y) { return mul(x, scalar_like(x, y)); }
inline Val operator/(Val x, double y) { return div(x, scalar_like(x, y)); }
inline Val operator+(double x, Val y) { return add(scalar_like(y, x), y); }
inline Val operator-(double x, Val y) { return sub(scalar_like(y, x), y); }
inline Val operator*(double x, Val y) { return mul(scalar_like(y, x), y); }
inline Val operator/(double x, Val y) { return div(scalar_like(y, x), y); }

// Shape.
WEFT_API Val broadcast_in_dim(Val x, const Dims& shape, const Dims& broadcast_dimensions);
WEFT_API Val broadcast_to(Val x, const Dims& shape);  // a scalar to any shape; else the same shape
WEFT_API Val reshape(Val x, const Dims& shape);
WEFT_API Val transpose(Val x, const Dims& permutation);
WEFT_API Val move_axis(Val x, int from, int to);
WEFT_API Val sharded(Val x, ShardingRef sharding);
WEFT_API Val expand_dim(Val x, int axis);
WEFT_API Val squeeze(Val x, const Dims& dimensions);
WEFT_API Val rev(Val x, const Dims& dimensions);
WEFT_API Val concatenate(std::span<const Val> xs, int dimension);
WEFT_API Val pad(Val x, Val value,
                 const std::vector<Dims>& config);  // {low, high, interior} per axis
WEFT_API Val slice(Val x, const Dims& start, const Dims& limit, const Dims& strides = {});
// `in_bounds`: the start indices are known to be in range, so that nothing clamps them.
WEFT_API Val dynamic_slice(Val x, std::span<const Val> starts, const Dims& sizes,
                           bool in_bounds = false);
WEFT_API Val dynamic_update_slice(Val x, Val update, std::span<const Val> starts,
                                  bool in_bounds = false);

// A loop along the leading axes of its last operands. `body` takes constants, carries and a slice
// of each of these arrays, and gives the next carries and slices of results.
struct ScanParts {
  int64_t length, num_consts = 0, num_carry = 0;
  bool reverse = false;
  int64_t unroll = 1;
};
WEFT_API Vals scan_over(Builder& b, std::span<const Val> operands, GraphRef body,
                        const ScanParts& parts);

// At least one value. `prevent_cse`: the barrier only keeps what is computed again from being found
// equal to what was computed before.
WEFT_API Vals optimization_barrier(std::span<const Val> xs, bool prevent_cse = false);

// Reductions.
WEFT_API Val reduce_sum(Val x, const Dims& axes);
WEFT_API Val reduce_max(Val x, const Dims& axes);
WEFT_API Val reduce_min(Val x, const Dims& axes);
WEFT_API Val reduce_prod(Val x, const Dims& axes);
WEFT_API Val reduce_or(Val x, const Dims& axes);
// Sums a cotangent down to the shape of an operand that was broadcast as a scalar.
WEFT_API Val unbroadcast(Val ct, TypeRef to);

struct DotDims {
  Dims lhs_contract, rhs_contract, lhs_batch, rhs_batch;
};
WEFT_API Val dot_general(Val x, Val y, const DotDims& dims,
                         std::optional<DType> preferred_element_type = std::nullopt,
                         const Attr& precision = std::monostate{});

}  // namespace weft
