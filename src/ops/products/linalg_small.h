// Factorizations and solutions of matrices in terms of other ops: of small ones for less time than
// a call of LAPACK takes, and of any size where there may be no call, in kernels and in programs
// for other compilers (ops/def/plain.h).
#pragma once

#include "ops/products/linalg.h"

namespace weft::linalg {

// A matrix with at most this many rows and columns is written out element by element, and so is a
// stack of smaller ones: that is faster than LAPACK in every program. Beyond it XLA takes too long
// to compile, and computes elements again and again. Measured: tools/bench/README.md.
inline constexpr int64_t kMostWrittenOut = 4, kMostWrittenOutOfMany = 3;
// Those of kernels with at most this many are factored in a loop over their columns.
inline constexpr int64_t kMostInLoop = 8;

// Whether `count` matrices of this many rows or columns are written out.
inline bool is_written_out(int64_t size, int64_t count) {
  return size <= (count > 1 ? kMostWrittenOutOfMany : kMostWrittenOut);
}
// Whether a program for the platform has such matrices written out.
bool is_written_out(TypeRef a, std::string_view platform);

// As the ops: the lower triangle of `a` counts, results that fail are nan.
Val small_cholesky(Val a);
// Both factors, the row swaps, the permutation: as the op's results.
Vals small_lu(Val a);
Val small_triangular_solve(Val a, Val b, const Triangular& how);
// The permutation of this size that row swaps [..., k] amount to, written out.
Val small_permutation(Val pivots, int64_t size);

// Eigenvectors and eigenvalues of matrices, of which one triangle is read.
Vals small_eigh(Val a, bool lower);
// Singular values, U, V^H; the values alone without `vectors`.
Vals small_svd(Val a, bool full, bool vectors);
// R and the reflectors, their factors; the first columns of the reflectors' product; the product,
// or its adjoint, times matrices.
Vals small_geqrf(Val a);
Val small_householder_product(Val a, Val taus);
Val small_ormqr(Val a, Val taus, Val x, bool left, bool adjoint);

// `OpDef::for_kernel` of an op on matrices, of which operand 0 are some: what it is written as
// where they are small, else nothing.
std::function<Vals(RuleCtx&)> while_small(Vals (*rule)(RuleCtx&));
// The same of an op whose form of complex matrices is slower than LAPACK; and of one whose form of
// large stacks is, too.
std::function<Vals(RuleCtx&)> while_small_and_real(Vals (*rule)(RuleCtx&));
std::function<Vals(RuleCtx&)> while_small_and_few(Vals (*rule)(RuleCtx&));

// ---- Parts of these forms. Elements and columns of matrices [..., m, n] are arrays [...] and
// [..., m].

Val element(Val a, int64_t i, int64_t j);
// Arrays [...] as one of shape [..., n].
Val stacked(std::span<const Val> xs);
// An array [...] along the axes of `like` that come before the last `more`.
Val spread(Val x, Val like, int more);
// Vectors [..., n] as the rows of matrices like `x`: the same in each.
Val in_rows(Val v, Val x);
// Matrices are good as a whole or nan.
Val where_good(Val good, Val x);
// Element `at`, or row or column, along an axis of all arrays; the axis is left out.
Val at_index(Val x, Val at, int axis);
// The number of each element along an axis.
Val position(Val x, int axis);
// Runs step(carries, i) for i = 0, 1, ..., or down from the last: its first results are the next
// carries, others are stacked along axis 0. `consts` come before the carries.
Vals loop(std::span<const Val> consts, std::span<const Val> carries, int64_t length, bool reverse,
          const std::function<Vals(std::span<const Val> xs, Val i)>& step);
// The power of two that real numbers are divided by to be between 1 and 2 in size; 1 of those that
// are 0 or not finite.
Val power_of_two_in(Val x);
// x / y, for real y of the same shape.
Val divided(Val x, Val y);
// The lengths of vectors [..., n], whose squares may be too large or too small for the dtype.
Val norm_of(Val v);

}  // namespace weft::linalg
