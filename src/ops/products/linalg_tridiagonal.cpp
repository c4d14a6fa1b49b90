// tridiagonal_solve: linear systems with three diagonals.
#include "ops/products/linalg.h"
#include "weft/registry.h"

namespace weft::linalg {

namespace {

TypeRefs infer_tridiagonal_solve(const InferCtx& c) {
  TypeRef b = check_matrices(c, 3);
  TypeRef wanted = with_axes(batch_of(b->shape()), b->dtype(), {rows_of(b)});
  for (size_t i = 0; i < 3; ++i) {
    if (c.in(i)->dtype() != b->dtype())
      c.fail(ErrorKind::kDtype, "expected operands of one dtype; got ", operand_types(c));
    if (c.in(i) != wanted)
      c.fail(ErrorKind::kShape, "expected dl, d and du to be ", wanted, " beside b: ", b, "; got ",
             operand_types(c));
  }
  return {b};
}

// Two equations, by determinants.
Val solved_pair(Val dl, Val d, Val du, Val b) {
  int last = d.rank() - 1;
  auto at = [&](Val x, int64_t i) {
    Dims from(x.shape().size()), to = x.shape();
    from[static_cast<size_t>(last)] = i;
    to[static_cast<size_t>(last)] = i + 1;
    return slice(x, from, to);
  };
  Val below = at(dl, 1), above = at(du, 0), d0 = at(d, 0), d1 = at(d, 1);
  Val scale = 1.0 / (d0 * d1 - above * below);
  Val diagonal[] = {d1 * scale, d0 * scale}, other[] = {above * scale, below * scale};
  Val swapped = rev(b, {b.rank() - 2});
  return scaled_rows(b, concatenate(diagonal, last)) -
         scaled_rows(swapped, concatenate(other, last));
}

Vals decompose_tridiagonal_solve(RuleCtx& c) {
  Val b = c.x(3);
  if (b.type()->num_elements() == 0) return {b};
  if (rows_of(b.type()) == 1) return {scaled_rows(b, 1.0 / c.x(1))};
  if (c.attr().boolean("perturb_singular")) {
    SolverCall call(c, b.dtype(), "tridiagonal_solve_perturbed_ffi",
                    "cu_tridiagonal_solve_perturbed");
    return call.array(c.x(0))
        .array(c.x(1))
        .array(c.x(2))
        .matrix(b)
        .gives_matrix(b.type())
        .results();
  }
  if (c.platform == "cuda") {
    // cuSPARSE takes three equations or more.
    if (rows_of(b.type()) == 2) return {solved_pair(c.x(0), c.x(1), c.x(2), b)};
    SolverCall call(c, b.dtype(), "", "cusparse_gtsv2_ffi");
    return call.array(c.x(0)).array(c.x(1)).array(c.x(2)).overwritten_matrix(b).results();
  }
  SolverCall call(c, b.dtype(), "lapack_?gtsv_ffi", "cusparse_gtsv2_ffi");
  for (size_t i = 0; i < 3; ++i) call.overwritten_array(c.x(i));
  return {call.overwritten_matrix(b).checked()[3]};
}

// Rows one further down (by 1) or up (by -1), with zeros coming in.
Val shifted_rows(Val x, int64_t by) {
  std::vector<Dims> config(x.shape().size(), Dims{0, 0, 0});
  config[config.size() - 2] = {by, -by, 0};
  return pad(x, scalar_like(x, 0), config);
}
Val shifted_entries(Val x, int64_t by) {
  std::vector<Dims> config(x.shape().size(), Dims{0, 0, 0});
  config.back() = {by, -by, 0};
  return pad(x, scalar_like(x, 0), config);
}

Val solved(const RuleCtx& c, Val dl, Val d, Val du, Val b) {
  Val xs[] = {dl, d, du, b};
  return apply(c.op, xs, c.attrs)[0];
}

// T X = B: dX = T^-1 (dB - dT X), where row i of T X is dl[i] X[i-1] + d[i] X[i] + du[i] X[i+1].
JvpArgRule tangent_of_diagonal(int64_t shift) {
  return [shift](const JvpArgCtx& c) {
    Val x = shift == 0 ? c.y() : shifted_rows(c.y(), shift);
    return solved(c, c.x(0), c.x(1), c.x(2), -scaled_rows(x, c.t()));
  };
}

OpDef tridiagonal_solve_op() {
  OpDef d;
  d.name = "tridiagonal_solve";
  d.doc = "X with T X = B, where T has the diagonals dl, d and du.";
  d.num_operands = 4;
  d.attrs = {{"perturb_singular", AttrType::kBool, AttrSpec::kHideDefault, false}};
  d.infer = infer_tridiagonal_solve;
  d.place = place_matrices;
  d.batch = batch_leading;
  d.decompose = decompose_tridiagonal_solve;
  d.jvp_kind = JvpKind::kArgs;
  d.jvp_args = {tangent_of_diagonal(1), tangent_of_diagonal(0), tangent_of_diagonal(-1),
                [](const JvpArgCtx& c) { return solved(c, c.x(0), c.x(1), c.x(2), c.t()); }};
  d.transpose = [](TransposeCtx& c) {
    Val dl = shifted_entries(c.x(2), 1), du = shifted_entries(c.x(0), -1);
    c.add(3, solved(c, dl, c.x(1), du, c.ct()));
  };
  d.cost = [](const CostCtx& c) {
    Cost cost = cost_bytes(c);
    cost.flops = 8 * static_cast<double>(c.out_types[0]->num_elements());
    return cost;
  };
  return d;
}

}  // namespace

void register_tridiagonal(OpRegistry& r) { r.add(tridiagonal_solve_op()); }

}  // namespace weft::linalg
