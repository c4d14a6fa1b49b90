// What the ops of linear algebra share: matrices lie in the last two axes of arrays, axes before
// these count them.
#pragma once

#include <string>

#include "ops/def/axes.h"
#include "ops/def/presets.h"
#include "weft/build.h"
#include "weft/dims.h"
#include "weft/registry.h"

namespace weft {

namespace linalg {

// ---- Types

inline Dims batch_of(const Dims& shape, int matrix_axes = 2) {
  return Dims(shape.begin(), shape.end() - matrix_axes);
}
inline int64_t rows_of(TypeRef t) { return t->dim(t->rank() - 2); }
inline int64_t columns_of(TypeRef t) { return t->dim(t->rank() - 1); }
inline int64_t smaller_of(TypeRef t) { return dim_min(rows_of(t), columns_of(t)); }
inline TypeRef with_axes(const Dims& batch, DType dtype, std::initializer_list<int64_t> axes) {
  Dims shape = batch;
  for (int64_t n : axes) shape.push_back(n);
  return make_type(dtype, shape);
}

// Whether LAPACK and its like on GPUs have solvers of a dtype.
bool has_solvers(DType d);
// Operand i, found to hold matrices (square ones) of a dtype that solvers take; with `halves`, also
// of float16 and bfloat16.
TypeRef check_matrices(const InferCtx& c, size_t i = 0, bool halves = false);
TypeRef check_square(const InferCtx& c, size_t i = 0, bool halves = false);
// Operand i, found to be of the dtype and the batch axes of operand 0, `axes` after these.
TypeRef check_beside(const InferCtx& c, size_t i, std::string_view what,
                     std::initializer_list<int64_t> axes);

// ---- Values

Val mT(Val x);       // transposed matrices
Val adjoint(Val x);  // the same, conjugated
Val conjugate(Val x);
Val real_part(Val x);
Val matmul(Val x, Val y);
Val tril(Val x, int64_t k = 0);  // the other elements are zero
Val triu(Val x, int64_t k = 0);
// Ones on the diagonal, or where row and column are equal.
Val eye(Builder& b, TypeRef type);
// Where row and column are equal: a predicate of x's shape.
Val on_diagonal(Val x);
Val diagonal(Val x);  // of square matrices: [..., n]
Val scaled_columns(Val x,
                   Val scale);  // column j times scale[..., j], which is real or of x's dtype
Val scaled_rows(Val x, Val scale);
Val columns(Val x, int64_t begin, int64_t end);
Val rows(Val x, int64_t begin, int64_t end);
// The Hermitian matrix of which x has one triangle.
Val hermitian(Val x, bool lower);
Val nan_like(Val x);
// Zero-padded at the end.
Val padded(Val x, int64_t more_rows, int64_t more_columns);
// Matrices with their rows reordered: row i is row order[..., i].
Val take_rows(Val x, Val order);

struct Triangular {
  bool left_side = true, lower = true, transpose_a = false, conjugate_a = false;
  bool unit_diagonal = false;
};
Val triangular_solve(Val a, Val b, const Triangular& how);
// a^-1 b, for general square matrices.
Val solve(Val a, Val b);

// ---- Rules

void place_matrices(PlaceCtx& c);
// All operands with a leading axis for the mapped one.
void batch_leading(BatchCtx& c);
// Cost of `flops` per matrix of operand 0, of which m x n is the shape.
CostRule cost_per_matrix(double (*flops)(double m, double n));
// An op on matrices: attributes and rules are those that all have.
OpDef matrix_op(std::string name, std::string doc, int num_operands, AttrSchema attrs,
                InferRule infer, std::function<Vals(RuleCtx&)> decompose,
                double (*flops)(double m, double n));

// ---- Calls of solvers

// A call of LAPACK on CPU, of the kernels beside the plugin on GPUs. '?' in a target's name stands
// for the letter of the dtype (s, d, c, z).
class SolverCall {
 public:
  // `gpu` is empty if there is nothing there. Throws kNotImplemented on platforms without.
  SolverCall(const RuleCtx& c, DType dtype, std::string_view cpu, std::string_view gpu);

  // The attributes, as text: "uplo = 76 : ui8", one for each platform.
  SolverCall& attributes(std::string cpu, std::string gpu);
  // Operands: matrices are passed with rows next to each other, as Fortran has them.
  SolverCall& matrix(Val x) { return operand(x, true); }
  SolverCall& array(Val x) { return operand(x, false); }
  // Operands that a result, the next one, is written over.
  SolverCall& overwritten_matrix(Val x);
  SolverCall& overwritten_array(Val x);
  // Results.
  SolverCall& gives_matrix(TypeRef type) { return result(type, true); }
  SolverCall& gives(TypeRef type) { return result(type, false); }

  Vals results();
  // With one more result: what the solver reports for each matrix. Where that is not 0 (or, for
  // factors that are good all the same, negative) floats are nan. The report is left out.
  Vals checked(bool positive_is_fine = false);

 private:
  SolverCall& operand(Val x, bool is_matrix);
  SolverCall& result(TypeRef type, bool is_matrix);

  const RuleCtx& c_;
  bool is_gpu_;
  std::string target_;
  std::string attributes_;
  Vals operands_;
  std::vector<TypeRef> types_;
  std::vector<Dims> in_layouts_, out_layouts_;
  std::vector<Dims> aliases_;
};
// "76 : ui8"
std::string letter(char c);
// "lapack_?orgqr_ffi", of complex matrices "lapack_?ungqr_ffi".
std::string_view real_or_complex(DType dtype, std::string_view real, std::string_view complex);

void register_factorizations(OpRegistry& r);
void register_orthogonal(OpRegistry& r);
void register_spectral(OpRegistry& r);
void register_tridiagonal(OpRegistry& r);

}  // namespace linalg
}  // namespace weft
