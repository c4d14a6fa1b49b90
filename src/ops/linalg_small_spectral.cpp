// Eigenvalues and singular values of small real matrices; see linalg_small.h.
//
// G. Golub, C. Van Loan, "Matrix Computations" (4th ed., 2013), sections 8.5 (Jacobi's method) and
// 8.6 (its one-sided form, of M. Hestenes, "Inversion of matrices by biorthogonalization and
// related results", 1958). Rotations are written out, those of each pair of columns one after the
// other, in a loop over such sweeps.
#include <cmath>

#include "ops/limits.h"
#include "ops/linalg_small.h"
#include "ops/loop_layout.h"
#include "ops/regions.h"

namespace weft::linalg {

namespace {

// Each sweep about squares what is left, or better: five are usual.
constexpr double kMostSweeps = 30;

double eps_of(Val x) { return x.dtype() == DType::kF64 ? 0x1p-52 : 0x1p-23; }

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
    Val c = spread(cosine, x, x.rank() - cosine.rank());
    Val s = spread(sine, x, x.rank() - sine.rank());
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

}  // namespace

Vals small_eigh(Val a, bool lower) {
  auto n = static_cast<size_t>(rows_of(a.type()));
  // The lower triangle, row by row, then the vectors.
  Vals state;
  for (size_t i = 0; i < n; ++i)
    for (size_t j = 0; j <= i; ++j) {
      auto row = static_cast<int64_t>(i), column = static_cast<int64_t>(j);
      state.push_back(lower ? element(a, row, column) : element(a, column, row));
    }
  const size_t count = state.size();
  Val good, largest;
  for (Val x : state) {
    good = good ? logical_and(good, is_finite(x)) : is_finite(x);
    largest = largest ? max(largest, abs(x)) : abs(x);
  }
  Val scale = power_of_two_in(largest);
  for (Val& x : state) x = x / scale;
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
  if (n == 2) sweep(state);  // which leaves nothing
  if (n > 2) sweep_over(state, sweep);

  Vals w, v(std::span<const Val>(state).subspan(count));
  for (size_t i = 0; i < n; ++i) w.push_back(state[i * (i + 1) / 2 + i]);
  for (size_t i = 0; i < n; ++i)
    for (size_t j = i + 1; j < n; ++j) {
      Val is_larger = gt(w[i], w[j]);
      exchange_where(is_larger, w[i], w[j]);
      exchange_where(is_larger, v[i], v[j]);
    }
  return {where_good(good, stacked(v)), scaled_where_good(good, scale, stacked(w))};
}

// Columns are turned until all are orthogonal: A V = U S. Where singular values are 0, or almost,
// what is left of columns gives no vectors; so U comes from reflectors, which are orthogonal
// always.
Vals small_svd(Val a, bool full, bool vectors) {
  bool is_wide = rows_of(a.type()) < columns_of(a.type());
  Val tall = is_wide ? mT(a) : a;
  const int64_t m = rows_of(tall.type()), n = columns_of(tall.type());
  const int last = tall.rank() - 2;  // the axis of vectors
  Val largest = reduce_max(abs(tall), {last, last + 1});
  Val good = is_finite(largest), scale = power_of_two_in(largest);
  Vals state = columns_in(tall / spread(scale, tall, 2));
  if (vectors)
    state.append(columns_in(eye(*a.builder, with_axes(batch_of(a.shape()), a.dtype(), {n, n}))));

  const auto count = static_cast<size_t>(n);
  auto sweep = [count, last, m, vectors](Vals& all) {
    Val is_busy;
    for (size_t p = 0; p < count; ++p)
      for (size_t q = p + 1; q < count; ++q) {
        auto product = [&](Val x, Val y) { return reduce_sum(x * y, {last}); };
        Val d = product(all[p], all[p]), e = product(all[p], all[q]), f = product(all[q], all[q]);
        Val rounding = sqrt(d) * sqrt(f) * (std::sqrt(static_cast<double>(m)) * eps_of(d));
        Val is_left = gt(abs(e), rounding);
        is_busy = is_busy ? logical_or(is_busy, is_left) : is_left;
        Rotation rotation(d, e, f);
        rotation.turn(all[p], all[q]);
        if (vectors) rotation.turn(all[count + p], all[count + q]);
      }
    return is_busy;
  };
  if (n > 1) sweep_over(state, sweep);

  Vals s;
  for (size_t j = 0; j < count; ++j) s.push_back(norm_of(state[j]));
  for (size_t i = 0; i < count; ++i)
    for (size_t j = i + 1; j < count; ++j) {
      Val is_smaller = lt(s[i], s[j]);
      exchange_where(is_smaller, s[i], s[j]);
      exchange_where(is_smaller, state[i], state[j]);
      if (vectors) exchange_where(is_smaller, state[count + i], state[count + j]);
    }
  Val values = scaled_where_good(good, scale, stacked(s));
  if (!vectors) return {values};
  std::span<const Val> turned(state);
  Vals packed = small_geqrf(stacked(turned.first(count)));
  Val u = small_householder_product(full ? padded(packed[0], 0, m - n) : packed[0], packed[1]);
  Val r = diagonal(rows(packed[0], 0, n));
  Val signs = select(lt(r, zeros_like(r)), -ones_like(r), ones_like(r));
  if (int64_t more = columns_of(u.type()) - n; more > 0) {
    Dims shape = signs.shape();
    shape.back() = more;
    Val all[] = {signs, weft::full(*a.builder, make_type(a.dtype(), shape), 1.0)};
    signs = concatenate(all, last);
  }
  u = where_good(good, scaled_columns(u, signs));
  Val v = where_good(good, stacked(turned.subspan(count)));
  return is_wide ? Vals{values, v, mT(u)} : Vals{values, u, mT(v)};
}

}  // namespace weft::linalg
