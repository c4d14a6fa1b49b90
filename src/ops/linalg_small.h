// Factorizations and solutions of small matrices in terms of other ops: for less time than a call
// of LAPACK takes, and where there may be no call, in kernels.
#pragma once

#include "ops/linalg.h"

namespace weft::linalg {

// Matrices with at most this many rows and columns are written out element by element, which is
// faster than LAPACK in every program. Beyond it XLA's fusions compute elements again and again.
// Measured: tools/bench/README.md.
inline constexpr int64_t kMostWrittenOut = 4;
// Those of kernels with at most this many are factored in a loop over their columns.
inline constexpr int64_t kMostInLoop = 8;

// Whether a program for the platform has such matrices written out.
bool is_written_out(TypeRef a, std::string_view platform);

// As the ops: the lower triangle of `a` counts, results that fail are nan.
Val small_cholesky(Val a);
// Both factors, the row swaps, the permutation: as the op's results.
Vals small_lu(Val a);
Val small_triangular_solve(Val a, Val b, const Triangular& how);
// The permutation that row swaps [..., k] amount to, of size <= kMostWrittenOut.
Val small_permutation(Val pivots, int64_t size);

// `OpDef::for_kernel` of an op on matrices, of which operand 0 are some: what it is written as
// where they are small, else nothing.
std::function<Vals(RuleCtx&)> while_small(Vals (*rule)(RuleCtx&));

}  // namespace weft::linalg
