// Factorizations and solutions of small matrices in terms of other ops: for less time than a call
// of LAPACK takes, and where there may be no call, in kernels.
#pragma once

#include "ops/linalg.h"

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

// `OpDef::for_kernel` of an op on matrices, of which operand 0 are some: what it is written as
// where they are small, else nothing.
std::function<Vals(RuleCtx&)> while_small(Vals (*rule)(RuleCtx&));

}  // namespace weft::linalg
