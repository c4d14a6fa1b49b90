// Householder reflectors of small real matrices; see linalg_small.h.
//
// G. Golub, C. Van Loan, "Matrix Computations" (4th ed., 2013): algorithms 5.1.1 and 5.2.1, and
// section 5.1.6 for the product of reflectors. Signs are those of LAPACK: R's diagonal has the
// opposite sign of what it replaces, and where there is nothing to eliminate there is no
// reflection.
#include "ops/products/linalg_small.h"

namespace weft::linalg {

namespace {

// x - v (tau v^T x) of matrices x, for vectors v.
Val reflected(Val x, Val v, Val tau) {
  Val tall = spread(v, x, 1);
  Val along = reduce_sum(tall * x, {x.rank() - 2});
  return x - tall * in_rows(spread(tau, along, 1) * along, x);
}

// Also of zeros.
Val has_minus(Val x) {
  DType whole = x.dtype() == DType::kF64 ? DType::kI64 : DType::kI32;
  Val bits = apply1("bitcast_convert_type", {x}, {{"new_dtype", whole}});
  return lt(bits, zeros_like(bits));
}

}  // namespace

Vals small_geqrf(Val a) {
  int last = a.rank() - 2;  // the axis of vectors
  Val carries[] = {a};
  Vals done = loop(
      {}, carries, smaller_of(a.type()), false, [last](std::span<const Val> xs, Val c) -> Vals {
        Val x = xs[0];
        Val column = at_index(x, c, last + 1), alpha = at_index(column, c, last);
        Val r = position(column, last), here = broadcast_to(c, r.shape());
        Val is_below = gt(r, here);
        Val below = select(is_below, column, zeros_like(column));
        Val largest = reduce_max(abs(below), {last}), is_done = eq(largest, zeros_like(largest));
        Val norm = norm_of(select(ge(r, here), column, zeros_like(column)));
        Val beta = select(is_done, alpha, select(has_minus(alpha), norm, -norm));
        Val tau = select(is_done, zeros_like(beta), (beta - alpha) / beta);
        Val divisor = select(is_done, ones_like(beta), alpha - beta);
        Val v = below / spread(divisor, below, 1);
        Val is_here = eq(r, here);
        Val packed = select(is_below, v, select(is_here, spread(beta, v, 1), column));
        Val next = reflected(x, select(is_here, ones_like(v), v), tau);
        Val i = position(x, last), j = position(x, last + 1), from = broadcast_to(c, x.shape());
        Val is_changed = logical_and(gt(j, from), ge(i, from));
        return {select(is_changed, next, select(eq(j, from), spread(packed, x, 1), x)), tau};
      });
  return {done[0], move_axis(done[1], 0, last)};
}

Val small_householder_product(Val a, Val taus) {
  int last = a.rank() - 2;
  Val consts[] = {a, taus}, carries[] = {eye(*a.builder, a.type())};
  return loop(consts, carries, taus.type()->dim(last), true,
              [last](std::span<const Val> xs, Val c) -> Vals {
                Val column = at_index(xs[0], c, last + 1), r = position(column, last);
                Val here = broadcast_to(c, r.shape());
                Val v = select(gt(r, here), column,
                               select(eq(r, here), ones_like(column), zeros_like(column)));
                return {reflected(xs[2], v, at_index(xs[1], c, last))};
              })[0];
}

}  // namespace weft::linalg
