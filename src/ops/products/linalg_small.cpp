// Triangular factors and systems; see linalg_small.h.
//
// G. Golub, C. Van Loan, "Matrix Computations" (4th ed., 2013): algorithms 3.1.1 and 3.1.2
// (triangular systems), 3.4.1 (partial pivoting), 4.2.1 and 4.2.2 (Cholesky). Each element is a
// sum of products that are subtracted one after the other, first the one of the column that was
// eliminated first.
#include "ops/products/linalg_small.h"

#include <algorithm>

#include "ops/def/limits.h"

namespace weft::linalg {

Val element(Val a, int64_t i, int64_t j) {
  return reshape(columns(rows(a, i, i + 1), j, j + 1), batch_of(a.shape()));
}

Val stacked(std::span<const Val> xs) {
  Vals parts;
  for (Val x : xs) parts.push_back(expand_dim(x, x.rank()));
  return concatenate(parts, parts[0].rank() - 1);
}

Val spread(Val x, Val like, int more) {
  return broadcast_in_dim(x, like.shape(), count_up(like.rank() - more));
}

Val where_good(Val good, Val x) { return select(spread(good, x, 2), x, nan_like(x)); }

Val at_index(Val x, Val at, int axis) {
  Vals starts(x.shape().size(), scalar_like(at, 0));
  starts[static_cast<size_t>(axis)] = at;
  Dims sizes = x.shape();
  sizes[static_cast<size_t>(axis)] = 1;
  return squeeze(dynamic_slice(x, starts, sizes, /*in_bounds=*/true), {axis});
}

Val position(Val x, int axis) { return iota(*x.builder, make_type(DType::kI32, x.shape()), axis); }

Val in_rows(Val v, Val x) {
  Dims axes = count_up(x.rank() - 1);
  axes.back() = x.rank() - 1;
  return broadcast_in_dim(v, x.shape(), axes);
}

Vals loop(std::span<const Val> consts, std::span<const Val> carries, int64_t length, bool reverse,
          const std::function<Vals(std::span<const Val> xs, Val i)>& step) {
  Builder& b = *carries[0].builder;
  Vals all(consts.begin(), consts.end());
  for (Val carry : carries) all.push_back(carry);
  all.push_back(iota(b, make_type(DType::kI32, {length}), 0));
  GraphBuilder body;
  Vals in;
  for (size_t i = 0; i + 1 < all.size(); ++i) in.push_back({&body, body.input(all[i].type())});
  Val index{&body, body.input(scalar_type(DType::kI32))};
  Values out;
  for (Val v : step(in, index)) out.push_back(v.value);
  return scan_over(b, all, body.finish(out),
                   {.length = length,
                    .num_consts = static_cast<int64_t>(consts.size()),
                    .num_carry = static_cast<int64_t>(carries.size()),
                    .reverse = reverse});
}

Val power_of_two_in(Val x) {
  bool wide = x.dtype() == DType::kF64;
  Val bits = apply1("bitcast_convert_type", {x}, {{"new_dtype", wide ? DType::kI64 : DType::kI32}});
  Val exponent = logical_and(bits, full(*x.builder, bits.type(), wide ? 0x7ffp52 : 0xffp23));
  Val power = apply1("bitcast_convert_type", {exponent}, {{"new_dtype", x.dtype()}});
  Val is_power = logical_and(gt(power, zeros_like(power)),
                             lt(power, full(*x.builder, power.type(), kInfinity)));
  return select(is_power, power, ones_like(power));
}

Val divided(Val x, Val y) {
  return is_complex(x.dtype()) ? complex(real(x) / y, imag(x) / y) : x / y;
}

Val norm_of(Val v) {
  if (is_complex(v.dtype())) v = abs(v);
  Val scale = power_of_two_in(reduce_max(abs(v), {v.rank() - 1}));
  return scale * sqrt(reduce_sum(square(v / spread(scale, v, 1)), {v.rank() - 1}));
}

namespace {

// Elements of matrices [..., m, n], each an array [...].
using Row = std::vector<Val>;
using Rows = std::vector<Row>;

Rows elements(Val a) {
  Rows x(static_cast<size_t>(rows_of(a.type())));
  for (size_t i = 0; i < x.size(); ++i)
    for (int64_t j = 0; j < columns_of(a.type()); ++j)
      x[i].push_back(element(a, static_cast<int64_t>(i), j));
  return x;
}

Val matrix_of(const Rows& x, TypeRef type) {
  Row all;
  for (const Row& row : x) all.insert(all.end(), row.begin(), row.end());
  return reshape(stacked(all), type->shape());
}

// What LAPACK compares to find pivots.
Val magnitude(Val x) { return is_complex(x.dtype()) ? abs(real(x)) + abs(imag(x)) : abs(x); }

// |x|^2
Val squared(Val x) { return is_complex(x.dtype()) ? square(real(x)) + square(imag(x)) : square(x); }

// The factors of a column of L. Where the pivot is 0 so is the column below.
Val divided_by_pivot(Val x, Val pivot) {
  return select(eq(pivot, zeros_like(pivot)), x, x / pivot);
}

// 0, 1, ..., each as an array [...].
Row counted(Builder& b, const Dims& batch, int64_t count) {
  Row all;
  for (int64_t i = 0; i < count; ++i)
    all.push_back(full(b, make_type(DType::kI32, batch), static_cast<double>(i)));
  return all;
}

void swap_where(Val is_it, Val& x, Val& y, Val old_x) {
  x = select(is_it, y, x);
  y = select(is_it, old_x, y);
}

Val written_cholesky(Val a) {
  size_t n = static_cast<size_t>(rows_of(a.type()));
  Rows l(n, Row(n));
  Val good;
  for (size_t j = 0; j < n; ++j) {
    auto at = [&](size_t i) {
      return element(a, static_cast<int64_t>(i), static_cast<int64_t>(j));
    };
    Val pivot = real_part(at(j));
    for (size_t k = 0; k < j; ++k) pivot = pivot - squared(l[j][k]);
    Val positive = gt(pivot, zeros_like(pivot));
    good = good ? logical_and(good, positive) : positive;
    Val root = sqrt(pivot);
    l[j][j] = convert(root, a.dtype());
    for (size_t i = j + 1; i < n; ++i) {
      Val x = at(i);
      for (size_t k = 0; k < j; ++k) x = x - l[i][k] * conjugate(l[j][k]);
      l[i][j] = divided(x, root);
      l[j][i] = zeros_like(x);
    }
  }
  return tril(where_good(good, matrix_of(l, a.type())));
}

Vals written_lu(Val a) {
  Rows x = elements(a);
  size_t m = x.size(), n = x[0].size();
  const Row number = counted(*a.builder, batch_of(a.shape()), rows_of(a.type()));
  Row order = number, pivots;
  for (size_t c = 0; c < std::min(m, n); ++c) {
    Val largest = magnitude(x[c][c]), at = number[c];
    for (size_t i = c + 1; i < m; ++i) {
      Val size = magnitude(x[i][c]), is_larger = gt(size, largest);
      largest = select(is_larger, size, largest);
      at = select(is_larger, number[i], at);
    }
    pivots.push_back(at);
    const Row top = x[c];
    const Val top_order = order[c];
    for (size_t i = c + 1; i < m; ++i) {
      Val is_it = eq(at, number[i]);
      for (size_t j = 0; j < n; ++j) swap_where(is_it, x[c][j], x[i][j], top[j]);
      swap_where(is_it, order[c], order[i], top_order);
    }
    for (size_t i = c + 1; i < m; ++i) {
      x[i][c] = divided_by_pivot(x[i][c], x[c][c]);
      for (size_t j = c + 1; j < n; ++j) x[i][j] = x[i][j] - x[i][c] * x[c][j];
    }
  }
  return {matrix_of(x, a.type()), stacked(pivots), stacked(order)};
}

// Of each the system T X = B, with right-hand sides in the rows of B, one row after the other.
struct System {
  Val t, b;
  bool lower, unit_diagonal;
};

System system_of(Val a, Val b, const Triangular& how) {
  // X op(A) = B is op(A)^T X^T = B^T.
  bool transposed = how.transpose_a == how.left_side;
  Val t = transposed ? mT(a) : a;
  return {.t = how.conjugate_a ? conjugate(t) : t,
          .b = how.left_side ? b : mT(b),
          .lower = how.lower != transposed,
          .unit_diagonal = how.unit_diagonal};
}

Val written_solution(const System& s) {
  int64_t n = rows_of(s.t.type());
  Vals x(static_cast<size_t>(n));
  auto at = [&](int64_t i) -> Val& { return x[static_cast<size_t>(i)]; };
  for (int64_t step = 0; step < n; ++step) {
    int64_t i = s.lower ? step : n - 1 - step;
    Val row = rows(s.b, i, i + 1);
    auto factor = [&](int64_t j) { return spread(element(s.t, i, j), row, 2); };
    for (int64_t done = 0; done < step; ++done) {
      int64_t j = s.lower ? done : n - 1 - done;
      row = row - factor(j) * at(j);
    }
    at(i) = s.unit_diagonal ? row : row / factor(i);
  }
  return concatenate(x, s.b.rank() - 2);
}

// ---- In a loop over columns

// Row `at[...]` of each matrix, or element of each vector: `axis` is left out.
Val picked(Val x, Val is_it, int axis) {
  return reduce_sum(select(is_it, x, zeros_like(x)), {axis});
}

Val looped_cholesky(Val a) {
  Val good = broadcast_to({a.builder, a.builder->literal(make_literal(DType::kBool, 1.0))},
                          batch_of(a.shape()));
  Val carries[] = {a, good};
  Vals done =
      loop({}, carries, rows_of(a.type()), false, [](std::span<const Val> xs, Val c) -> Vals {
        Val x = xs[0];
        Val column = at_index(x, c, x.rank() - 1);
        Val pivot = real_part(at_index(column, c, column.rank() - 1));
        Val is_good = logical_and(xs[1], gt(pivot, zeros_like(pivot)));
        column = divided(column, spread(sqrt(pivot), column, 1));
        Val rest = x - spread(column, x, 1) * in_rows(conjugate(column), x);
        Val j = position(x, x.rank() - 1);
        Val next = select(eq(j, broadcast_to(c, j.shape())), spread(column, x, 1), x);
        return {select(gt(j, broadcast_to(c, j.shape())), rest, next), is_good};
      });
  return tril(where_good(done[1], done[0]));
}

Vals looped_lu(Val a) {
  int64_t m = rows_of(a.type()), k = smaller_of(a.type());
  Dims counted = batch_of(a.shape());
  int last = static_cast<int>(counted.size());
  counted.push_back(m);
  Val carries[] = {a, iota(*a.builder, make_type(DType::kI32, counted), last)};
  Vals done = loop({}, carries, k, false, [m, last](std::span<const Val> xs, Val c) -> Vals {
    Val x = xs[0], order = xs[1];
    Val r = position(order, last), i = position(x, last), j = position(x, last + 1);
    Val here = broadcast_to(c, order.shape());
    Val size = magnitude(at_index(x, c, last + 1));
    size = select(ge(r, here), size, full(*x.builder, size.type(), -1.0));
    Val is_largest = eq(size, spread(reduce_max(size, {last}), size, 1));
    Val none = full(*x.builder, r.type(), static_cast<double>(m));
    Val at = reduce_min(select(is_largest, r, none), {last});
    // No number is equal to a nan.
    Val is_found = lt(at, full(*x.builder, at.type(), static_cast<double>(m)));
    at = select(is_found, at, broadcast_to(c, at.shape()));
    auto swapped = [&](Val y, Val row, Val is_it) {
      Val upper = at_index(y, c, last), lower = picked(y, is_it, last);
      auto whole = [&](Val v) { return y.rank() == last + 1 ? spread(v, y, 1) : in_rows(v, y); };
      return select(eq(row, broadcast_to(c, row.shape())), whole(lower),
                    select(is_it, whole(upper), y));
    };
    x = swapped(x, i, eq(i, spread(at, i, 2)));
    order = swapped(order, r, eq(r, spread(at, r, 1)));
    Val row = at_index(x, c, last), column = at_index(x, c, last + 1);
    Val pivot = at_index(row, c, last);
    Val factors = spread(divided_by_pivot(column, spread(pivot, column, 1)), x, 1);
    Val right = broadcast_to(c, x.shape());
    Val next =
        select(gt(j, right), x - factors * in_rows(row, x), select(eq(j, right), factors, x));
    return {select(gt(i, right), next, x), order, at};
  });
  return {done[0], move_axis(done[2], 0, last), done[1]};
}

Val looped_solution(const System& s) {
  Val consts[] = {s.t, s.b}, carries[] = {zeros_like(s.b)};
  bool lower = s.lower, unit = s.unit_diagonal;
  return loop(consts, carries, rows_of(s.t.type()), !lower,
              [lower, unit](std::span<const Val> xs, Val i) -> Vals {
                Val x = xs[2];
                int axis = x.rank() - 2;
                Val factors = at_index(xs[0], i, axis), j = position(factors, axis);
                Val here = broadcast_to(i, j.shape());
                Val is_done = lower ? lt(j, here) : gt(j, here);
                Val weights = select(is_done, factors, zeros_like(factors));
                Val row = at_index(xs[1], i, axis) - reduce_sum(spread(weights, x, 1) * x, {axis});
                if (!unit) row = row / spread(at_index(factors, i, axis), row, 1);
                Vals starts(x.shape().size(), scalar_like(i, 0));
                starts[static_cast<size_t>(axis)] = i;
                return {dynamic_update_slice(x, expand_dim(row, axis), starts, /*in_bounds=*/true)};
              })[0];
}

int64_t larger_of(TypeRef a) { return std::max(rows_of(a), columns_of(a)); }

bool is_written_out(TypeRef a) {
  return linalg::is_written_out(larger_of(a), product(batch_of(a->shape())));
}

}  // namespace

bool is_written_out(TypeRef a, std::string_view platform) {
  return platform == "cpu" && has_solvers(a->dtype()) && is_written_out(a);
}

Val small_cholesky(Val a) {
  return is_written_out(a.type()) ? written_cholesky(a) : looped_cholesky(a);
}

Vals small_lu(Val a) { return is_written_out(a.type()) ? written_lu(a) : looped_lu(a); }

Val small_triangular_solve(Val a, Val b, const Triangular& how) {
  System s = system_of(a, b, how);
  Val x = is_written_out(a.type()) ? written_solution(s) : looped_solution(s);
  return how.left_side ? x : mT(x);
}

Val small_permutation(Val pivots, int64_t size) {
  Dims batch = batch_of(pivots.shape(), 1);
  const Row number = counted(*pivots.builder, batch, size);
  Row order = number;
  for (int64_t c = 0; c < pivots.type()->dim(pivots.rank() - 1); ++c) {
    Dims from(pivots.shape().size(), 0), to = pivots.shape();
    from.back() = c;
    to.back() = c + 1;
    Val at = reshape(slice(pivots, from, to), batch);
    Val& here = order[static_cast<size_t>(c)];
    const Val old = here;
    for (size_t i = 0; i < order.size(); ++i)
      if (i != static_cast<size_t>(c)) swap_where(eq(at, number[i]), here, order[i], old);
  }
  return stacked(order);
}

std::function<Vals(RuleCtx&)> while_small(Vals (*rule)(RuleCtx&)) {
  return [rule](RuleCtx& c) -> Vals {
    TypeRef a = c.in_types[0];
    bool is_empty =
        std::ranges::any_of(c.in_types, [](TypeRef t) { return t->num_elements() == 0; });
    bool is_small = !is_empty && has_solvers(a->dtype()) && larger_of(a) <= kMostInLoop;
    return is_small ? rule(c) : Vals{};
  };
}

std::function<Vals(RuleCtx&)> while_small_and_real(Vals (*rule)(RuleCtx&)) {
  return [form = while_small(rule)](RuleCtx& c) -> Vals {
    return is_complex(c.in_types[0]->dtype()) ? Vals{} : form(c);
  };
}

std::function<Vals(RuleCtx&)> while_small_and_few(Vals (*rule)(RuleCtx&)) {
  // Measured.
  constexpr int64_t kMostMatrices = 16, kMostOfMany = 4;
  return [form = while_small_and_real(rule)](RuleCtx& c) -> Vals {
    TypeRef a = c.in_types[0];
    bool is_many = product(batch_of(a->shape())) > kMostMatrices;
    return is_many && smaller_of(a) > kMostOfMany ? Vals{} : form(c);
  };
}

}  // namespace weft::linalg
