// Householder reflectors; see linalg_small.h.
//
// G. Golub, C. Van Loan, "Matrix Computations" (4th ed., 2013): algorithms 5.1.1 and 5.2.1, and
// section 5.1.6 for the product of reflectors. Signs are those of LAPACK: R's diagonal is real,
// with the opposite sign of the real part of what it replaces, and where there is nothing to
// eliminate there is no reflection. The reflectors are 1 - tau v v^H; R is of their adjoints.
#include "ops/products/linalg_small.h"

namespace weft::linalg {

namespace {

// x - v (tau v^H x) of matrices x, for vectors v.
Val reflected(Val x, Val v, Val tau) {
  Val tall = spread(v, x, 1);
  Val along = reduce_sum(conjugate(tall) * x, {x.rank() - 2});
  return x - tall * in_rows(spread(tau, along, 1) * along, x);
}

// Reflector c: column c of `a` below the diagonal, 1 on it, 0 above.
Val reflector(Val a, Val c) {
  int last = a.rank() - 2;
  Val column = at_index(a, c, last + 1), r = position(column, last);
  Val here = broadcast_to(c, r.shape());
  return select(gt(r, here), column, select(eq(r, here), ones_like(column), zeros_like(column)));
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
        if (is_complex(x.dtype()))
          is_done = logical_and(is_done, eq(imag(alpha), zeros_like(imag(alpha))));
        Val norm = norm_of(select(ge(r, here), column, zeros_like(column)));
        norm = select(has_minus(real_part(alpha)), norm, -norm);
        Val beta = select(is_done, alpha, convert(norm, x.dtype()));
        Val tau = select(is_done, zeros_like(beta), divided(beta - alpha, norm));
        Val divisor = select(is_done, ones_like(beta), alpha - beta);
        Val v = below / spread(divisor, below, 1);
        Val is_here = eq(r, here);
        Val packed = select(is_below, v, select(is_here, spread(beta, v, 1), column));
        Val next = reflected(x, select(is_here, ones_like(v), v), conjugate(tau));
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
                return {reflected(xs[2], reflector(xs[0], c), at_index(xs[1], c, last))};
              })[0];
}

// x Q is the adjoint of Q^H x^H.
Val small_ormqr(Val a, Val taus, Val x, bool left, bool adjoint) {
  if (!left) return linalg::adjoint(small_ormqr(a, taus, linalg::adjoint(x), true, !adjoint));
  int last = a.rank() - 2;
  Val consts[] = {a, adjoint ? conjugate(taus) : taus}, carries[] = {x};
  return loop(consts, carries, taus.type()->dim(last), !adjoint,
              [last](std::span<const Val> xs, Val c) -> Vals {
                return {reflected(xs[2], reflector(xs[0], c), at_index(xs[1], c, last))};
              })[0];
}

}  // namespace weft::linalg
