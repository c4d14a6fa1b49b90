// Eigenvalues and singular values; see linalg_small.h.
//
// G. Golub, C. Van Loan, "Matrix Computations" (4th ed., 2013), sections 8.5 (Jacobi's method, and
// the order in which pairs are independent) and 8.6 (its one-sided form); M. Hestenes, "Inversion
// of matrices by biorthogonalization and related results" (1958).
#include <cmath>

#include "ops/control/loop_layout.h"
#include "ops/def/limits.h"
#include "ops/def/regions.h"
#include "ops/products/linalg_small.h"

namespace weft::linalg {

namespace {

// Each sweep about squares what is left, or better: five are usual.
constexpr double kMostSweeps = 30;
// Matrices of at most this size are turned from both sides, element by element.
constexpr int64_t kMostTurnedInPlace = 3;

bool is_double(Val x) { return real_dtype(x.dtype()) == DType::kF64; }
double eps_of(Val x) { return is_double(x) ? 0x1p-52 : 0x1p-23; }
// About the smallest number whose square is not 0.
double least_of(Val x) { return is_double(x) ? 0x1p-511 : 0x1p-63; }

// Of the angle, at most 45 degrees, that makes [[d, e], [e, f]] diagonal (algorithm 8.5.1).
struct Rotation {
  Val tangent, cosine, sine;

  Rotation(Val d, Val e, Val f) {
    Val tau = (f - d) / (e * 2.0), one = ones_like(e), zero = zeros_like(e);
    Val t = one / (abs(tau) + sqrt(square(tau) + 1.0));
    tangent = select(eq(e, zero), zero, select(lt(tau, zero), -t, t));
    cosine = one / sqrt(square(tangent) + 1.0);
    sine = tangent * cosine;
  }
  // Of columns, or of elements.
  void turn(Val& x, Val& y) const {
    Val c = spread(convert(cosine, x.dtype()), x, x.rank() - cosine.rank());
    Val s = spread(convert(sine, x.dtype()), x, x.rank() - sine.rank());
    Val old = x;
    x = c * x - s * y;
    y = s * old + c * y;
  }
};

// Runs sweep(state), which says whether a further one is needed, until it is not.
void sweep_over(Vals& state, const std::function<Val(Vals& state)>& sweep) {
  Builder& b = *state[0].builder;
  Val count = full(b, scalar_type(DType::kI32), 0);
  Val is_busy = full(b, scalar_type(DType::kBool), 1);
  Vals carry = joined({Vals{count, is_busy}, state});
  auto condition = make_graph(types_of(carry), [](Builder&, std::span<const Val> in) {
    return Vals{logical_and(in[1], lt(in[0], scalar_like(in[0], kMostSweeps)))};
  });
  auto body = make_graph(types_of(carry), [&](Builder&, std::span<const Val> in) {
    Vals next(in.subspan(2));
    Val busy = sweep(next);
    return joined({Vals{in[0] + 1.0, reduce_or(busy, count_up(busy.rank()))}, next});
  });
  Vals made = while_loop(b, condition, body, {}, carry);
  state = Vals(std::span<const Val>(made).subspan(2));
}

void exchange_where(Val is_it, Val& x, Val& y) {
  Val here = spread(is_it, x, x.rank() - is_it.rank());
  Val old = x;
  x = select(here, y, x);
  y = select(here, old, y);
}

Val is_finite(Val x) { return lt(abs(x), full(*x.builder, x.type(), kInfinity)); }

// Eigenvalues or singular values [..., n], or nan.
Val scaled_where_good(Val good, Val scale, Val x) {
  return select(spread(good, x, 1), x * spread(scale, x, 1), nan_like(x));
}

// The columns of matrices.
Vals columns_in(Val a) {
  Vals all;
  for (int64_t j = 0; j < columns_of(a.type()); ++j)
    all.push_back(squeeze(columns(a, j, j + 1), {a.rank() - 1}));
  return all;
}

// ---- Written out

// The lower triangle of matrices, element by element, divided by a power of two.
struct Triangle {
  Vals elements;  // row by row
  Val good, scale;

  Triangle(Val a, bool is_lower) {
    Val largest;
    for (int64_t i = 0; i < rows_of(a.type()); ++i)
      for (int64_t j = 0; j <= i; ++j) {
        Val x = is_lower ? element(a, i, j) : element(a, j, i);
        elements.push_back(x);
        good = good ? logical_and(good, is_finite(x)) : is_finite(x);
        largest = largest ? max(largest, abs(x)) : abs(x);
      }
    scale = power_of_two_in(largest);
    for (Val& x : elements) x = x / scale;
  }
};

// [[a, b], [b, c]] in closed form, with the signs of LAPACK's: its vectors are (x, y) of the
// eigenvalue that is larger in size and (-y, x) of the other, which is the determinant divided by
// that one. The tangent of the angle is 2 b / (|a - c| + sqrt((a - c)^2 + 4 b^2)).
Vals eigh_of_two(Val matrices, bool lower) {
  Triangle t(matrices, lower);
  Val a = t.elements[0], b = t.elements[1], c = t.elements[2];
  Val zero = zeros_like(a), one = ones_like(a);
  Val sum = a + c, difference = a - c, twice = abs(b * 2.0);
  Val root = sqrt(square(difference) + square(twice));
  Val is_negative = lt(sum, zero);
  Val first = select(is_negative, sum - root, sum + root) * 0.5;
  Val is_first_larger = ge(abs(a), abs(c));
  Val more = select(is_first_larger, a, c), less = select(is_first_larger, c, a);
  Val second = more / first * less - b / first * b;

  Val reach = abs(difference) + root;
  Val tangent = twice / reach, cosine = one / sqrt(square(tangent) + 1.0);
  Val sine = tangent * cosine;
  Val is_descending = ge(difference, zero);
  Val minus_sine = select(eq(lt(b, zero), is_descending), sine, -sine);
  Val is_turned = ne(is_descending, is_negative);
  Val x = select(is_turned, -cosine, minus_sine), y = select(is_turned, minus_sine, cosine);
  // At 45 degrees the signs of the other half of cases are chosen.
  Val is_other = logical_and(le(reach, twice), lt(minus_sine, zero));
  x = select(is_other, -x, x);
  y = select(is_other, -y, y);

  // What is diagonal but for rounding stays, and what has a square of 0.
  Val rounding = sqrt(abs(a)) * sqrt(abs(c)) * (0.5 * eps_of(a));
  Val is_done = le(abs(b), max(rounding, full(*a.builder, a.type(), least_of(a))));
  first = select(is_done, a, first);
  second = select(is_done, c, second);
  x = select(is_done, one, x);
  Val w[] = {first, second};
  Val left[] = {x, select(is_done, zero, y)}, right[] = {select(is_done, zero, -y), x};
  Val v[] = {stacked(left), stacked(right)};
  Val is_larger = gt(w[0], w[1]);
  exchange_where(is_larger, w[0], w[1]);
  exchange_where(is_larger, v[0], v[1]);
  return {where_good(t.good, stacked(v)), scaled_where_good(t.good, t.scale, stacked(w))};
}

Vals written_eigh(Val a, bool lower) {
  auto n = static_cast<size_t>(rows_of(a.type()));
  Triangle triangle(a, lower);
  Vals state = triangle.elements;
  const size_t count = state.size();
  state.append(columns_in(eye(*a.builder, a.type())));

  auto sweep = [n, count](Vals& all) {
    auto at = [&](size_t i, size_t j) -> Val& {
      if (i < j) std::swap(i, j);
      return all[i * (i + 1) / 2 + j];
    };
    for (size_t p = 0; p < n; ++p)
      for (size_t q = p + 1; q < n; ++q) {
        Val off = at(p, q);
        Rotation rotation(at(p, p), off, at(q, q));
        at(p, p) = at(p, p) - rotation.tangent * off;
        at(q, q) = at(q, q) + rotation.tangent * off;
        at(p, q) = zeros_like(off);
        for (size_t r = 0; r < n; ++r)
          if (r != p && r != q) rotation.turn(at(r, p), at(r, q));
        rotation.turn(all[count + p], all[count + q]);
      }
    // What is left is to be small beside both of the eigenvalues, not only beside the largest one.
    Val is_busy;
    for (size_t p = 0; p < n; ++p)
      for (size_t q = p + 1; q < n; ++q) {
        Val allowed = min(abs(at(p, p)), abs(at(q, q))) * (0.5 * eps_of(at(p, p)));
        Val is_left = gt(abs(at(p, q)), allowed);
        is_busy = is_busy ? logical_or(is_busy, is_left) : is_left;
      }
    return is_busy;
  };
  if (n > 1) sweep_over(state, sweep);

  Vals w, v(std::span<const Val>(state).subspan(count));
  for (size_t i = 0; i < n; ++i) w.push_back(state[i * (i + 1) / 2 + i]);
  for (size_t i = 0; i < n; ++i)
    for (size_t j = i + 1; j < n; ++j) {
      Val is_larger = gt(w[i], w[j]);
      exchange_where(is_larger, w[i], w[j]);
      exchange_where(is_larger, v[i], v[j]);
    }
  return {where_good(triangle.good, stacked(v)),
          scaled_where_good(triangle.good, triangle.scale, stacked(w))};
}

// ---- In a loop over steps, each of which turns half as many pairs of rows as there are rows

// x / |x|, 1 where x is 0.
Val phase_of(Val x) {
  Val size = abs(x), is_zero = eq(size, zeros_like(size));
  return select(is_zero, ones_like(x), divided(x, select(is_zero, ones_like(size), size)));
}

// Turns the rows of x [..., n, k] until all are orthogonal in their first `length` elements. Row i
// meets row i + n / 2; then all but the first move on one place, so that after n - 1 steps each has
// met every other and all are where they were.
Val with_orthogonal_rows(Val x, int64_t length) {
  const int64_t odd = rows_of(x.type()) % 2, n = rows_of(x.type()) + odd, half = n / 2;
  const int axis = x.rank() - 2;
  const double rounding = std::sqrt(static_cast<double>(length)) * eps_of(x);
  auto step = [=](std::span<const Val> carry, Val) -> Vals {
    Val upper = rows(carry[0], 0, half), lower = rows(carry[0], half, n);
    auto product = [&](Val a, Val b) {
      return reduce_sum(columns(a, 0, length) * conjugate(columns(b, 0, length)), {axis + 1});
    };
    Val d = real_part(product(upper, upper)), e = product(upper, lower);
    Val f = real_part(product(lower, lower));
    if (is_complex(x.dtype())) {
      lower = lower * spread(phase_of(e), lower, 1);  // which makes the product |e|
      e = abs(e);
    }
    // Angles whose squares are 0 are not turned by.
    Val is_left = gt(abs(e), max(sqrt(d) * sqrt(f) * rounding, max(d, f) * least_of(e)));
    Rotation(d, e, f).turn(upper, lower);
    Vals parts{rows(upper, 0, 1), rows(lower, 0, 1)};
    if (half > 2) parts.push_back(rows(upper, 1, half - 1));
    if (half > 1) parts.append(Vals{rows(lower, 1, half), rows(upper, half - 1, half)});
    return {concatenate(parts, axis), logical_or(carry[1], reduce_or(is_left, count_up(axis + 1)))};
  };
  Vals state{padded(x, odd, 0)};
  sweep_over(state, [&](Vals& all) {
    Val carries[] = {all[0], full(*all[0].builder, scalar_type(DType::kBool), 0)};
    Vals done = loop({}, carries, n - 1, false, step);
    all[0] = done[0];
    return done[1];
  });
  return rows(state[0], 0, n - odd);
}

// |x|^2
Val size_squared(Val x) { return real_part(x * conjugate(x)); }

// Rows divided by the lengths of those of y.
Val in_length_one(Val x, Val y) {
  return divided(x, spread(sqrt(reduce_sum(size_squared(y), {y.rank() - 1})), x, 1));
}

// Without a precision: few terms are added up one after the other.
Val multiplied(Val x, Val y) {
  Dims batch = count_up(x.rank() - 2);
  return dot_general(convert(x, y.dtype()), y,
                     {.lhs_contract = {x.rank() - 1},
                      .rhs_contract = {y.rank() - 2},
                      .lhs_batch = batch,
                      .rhs_batch = batch});
}

// The matrices P with which P x are the rows of x in ascending order of numbers [..., n].
Val ordering(Val x) {
  const int axis = x.rank() - 1;
  Dims shape = x.shape(), first = count_up(x.rank());
  shape.push_back(shape.back());
  Val here = broadcast_in_dim(x, shape, first);
  Val other = in_rows(x, here);
  Val i = position(here, axis), j = position(here, axis + 1);
  Val is_before = logical_or(lt(other, here), logical_and(eq(other, here), lt(j, i)));
  Val place = reduce_sum(convert(is_before, DType::kI32), {axis + 1});
  return convert(eq(i, in_rows(place, i)), x.dtype());
}

// The matrix is made positive definite: then its rows, once orthogonal, are the vectors times the
// eigenvalues of that matrix. Those of `a` are the quotients of Rayleigh of the vectors.
Vals looped_eigh(Val a, bool lower) {
  const int axis = a.rank() - 2;
  Val x = hermitian(a, lower);
  Val largest = reduce_max(abs(x), {axis, axis + 1});
  Val good = is_finite(largest), scale = power_of_two_in(largest);
  x = divided(x, spread(scale, x, 2));
  // No eigenvalue is larger than the norm, which is at least 1 but for matrices of zeros.
  Val shift = sqrt(reduce_sum(size_squared(x), {axis, axis + 1})) * 1.0625;
  shift = convert(max(shift, ones_like(shift)), x.dtype());
  Val v = with_orthogonal_rows(x + spread(shift, x, 2) * eye(*x.builder, x.type()),
                               columns_of(x.type()));
  v = in_length_one(v, v);
  Val w = real_part(reduce_sum(multiplied(v, x) * conjugate(v), {axis + 1}));
  Val order = ordering(w);
  Val values = reduce_sum(order * in_rows(w, order), {axis + 1});
  return {where_good(good, adjoint(multiplied(order, v))), scaled_where_good(good, scale, values)};
}

}  // namespace

Vals small_eigh(Val a, bool lower) {
  int64_t n = rows_of(a.type());
  if (is_complex(a.dtype()) || n > kMostTurnedInPlace) return looped_eigh(a, lower);
  return n == 2 ? eigh_of_two(a, lower) : written_eigh(a, lower);
}

// The columns of A are turned until all are orthogonal: A V = U S. Where singular values are 0, or
// almost, what is left of columns gives no vectors, so U comes from reflectors, which are
// orthogonal always.
Vals small_svd(Val a, bool full, bool vectors) {
  bool is_wide = rows_of(a.type()) < columns_of(a.type());
  Val x = is_wide ? a : mT(a);  // columns of the taller one are rows here
  const int64_t n = rows_of(x.type()), m = columns_of(x.type());
  const int axis = x.rank() - 2;
  Val largest = reduce_max(abs(x), {axis, axis + 1});
  Val good = is_finite(largest), scale = power_of_two_in(largest);
  x = divided(x, spread(scale, x, 2));
  if (vectors) {
    Val both[] = {x, eye(*x.builder, with_axes(batch_of(x.shape()), x.dtype(), {n, n}))};
    x = concatenate(both, axis + 1);
  }
  x = with_orthogonal_rows(x, m);
  // Each turn is rounded: vectors, and what was turned with them, are no longer as long.
  if (vectors) x = in_length_one(x, columns(x, m, m + n));
  Val s = norm_of(columns(x, 0, m));
  Val order = ordering(-s);
  Val values = reduce_sum(order * in_rows(s, order), {axis + 1});
  values = scaled_where_good(good, scale, values);
  if (!vectors) return {values};
  x = multiplied(order, x);
  Vals packed = small_geqrf(mT(columns(x, 0, m)));
  Val u = small_householder_product(full ? padded(packed[0], 0, m - n) : packed[0], packed[1]);
  Val r = real_part(diagonal(rows(packed[0], 0, n)));
  Val signs = select(lt(r, zeros_like(r)), -ones_like(r), ones_like(r));
  if (int64_t more = columns_of(u.type()) - n; more > 0) {
    Dims shape = signs.shape();
    shape.back() = more;
    Val all[] = {signs, weft::full(*a.builder, make_type(signs.dtype(), shape), 1.0)};
    signs = concatenate(all, axis);
  }
  u = where_good(good, scaled_columns(u, signs));
  Val vh = where_good(good, conjugate(columns(x, m, m + n)));
  return is_wide ? Vals{values, mT(vh), mT(u)} : Vals{values, u, vh};
}

}  // namespace weft::linalg
