// Arithmetic of sizes: of numbers at once, of symbols by the table of expressions.
#include "weft/dims.h"

#include <algorithm>
#include <mutex>
#include <set>

#include "support/dim_table.h"
#include "weft/error.h"

namespace weft {

using dims::AtomKind, dims::Poly, dims::add_scaled, dims::floor_of, dims::multiply, dims::plus,
    dims::table, dims::times, dims::too_large;

bool is_known_symbol(int64_t d) {
  if (!is_symbolic(d)) return false;
  std::lock_guard lock(table().mutex);
  return table().knows(d);
}

DimScope make_dim_scope(std::span<const std::string> constraints) {
  std::lock_guard lock(table().mutex);
  return table().new_scope(constraints);
}
const std::vector<std::string>& constraints_of(DimScope scope) {
  static const std::vector<std::string> none;
  std::lock_guard lock(table().mutex);
  return scope ? table().scope(scope).constraints : none;
}
DimScope scope_of(int64_t d) {
  std::lock_guard lock(table().mutex);
  return table().scope_of_handle(d);
}

std::string dim_text(int64_t d, bool spaces) {
  if (!is_symbolic(d)) return cat(d);
  std::lock_guard lock(table().mutex);
  return table().knows(d) ? table().text_of(table().poly_of(d), spaces) : std::to_string(d);
}

int64_t dim_add(int64_t a, int64_t b) {
  if (!is_symbolic(a) && !is_symbolic(b)) return plus(a, b);
  std::lock_guard lock(table().mutex);
  Poly p = table().poly_of(a);
  add_scaled(p, table().poly_of(b), 1);
  return table().handle_of(std::move(p));
}
int64_t dim_sub(int64_t a, int64_t b) {
  if (!is_symbolic(a) && !is_symbolic(b)) {
    int64_t r;
    if (__builtin_sub_overflow(a, b, &r)) too_large();
    return r;
  }
  std::lock_guard lock(table().mutex);
  Poly p = table().poly_of(a);
  add_scaled(p, table().poly_of(b), -1);
  return table().handle_of(std::move(p));
}
int64_t dim_mul(int64_t a, int64_t b) {
  if (!is_symbolic(a) && !is_symbolic(b)) return times(a, b);
  std::lock_guard lock(table().mutex);
  return table().handle_of(multiply(table().poly_of(a), table().poly_of(b)));
}
int64_t dim_floordiv(int64_t a, int64_t b) {
  if (!is_symbolic(a) && !is_symbolic(b) && b != 0) return floor_of(a, b);
  std::lock_guard lock(table().mutex);
  return table().floordiv(a, b);
}
int64_t dim_mod(int64_t a, int64_t b) {
  if (!is_symbolic(a) && !is_symbolic(b) && b != 0) return a - b * floor_of(a, b);
  std::lock_guard lock(table().mutex);
  return table().mod(a, b);
}
int64_t dim_max(int64_t a, int64_t b) {
  if (!is_symbolic(a) && !is_symbolic(b)) return std::max(a, b);
  std::lock_guard lock(table().mutex);
  return table().extreme(AtomKind::kMax, a, b);
}
int64_t dim_min(int64_t a, int64_t b) {
  if (!is_symbolic(a) && !is_symbolic(b)) return std::min(a, b);
  std::lock_guard lock(table().mutex);
  return table().extreme(AtomKind::kMin, a, b);
}

std::optional<bool> decide_at_least(int64_t a, int64_t b) {
  if (!is_symbolic(a) && !is_symbolic(b)) return a >= b;
  std::lock_guard lock(table().mutex);
  return table().decide(a, b);
}
bool dim_at_least(int64_t a, int64_t b) {
  std::optional<bool> known = decide_at_least(a, b);
  if (known) return *known;
  std::string x = dim_text(a), y = dim_text(b);
  fail(ErrorKind::kInconclusive, "Symbolic dimension comparison '", x, "' >= '", y,
       "' is inconclusive: it holds for some sizes only\n  If it always holds, say so: "
       "symbolic_shape(..., constraints=[\"",
       x, " >= ", y, "\"]).");
}
bool dim_may_be_at_most(int64_t d, int64_t most) {
  std::optional<int64_t> lower = dim_bounds(d).lower;
  return !lower || *lower <= most;
}
DimBounds dim_bounds(int64_t d) {
  if (!is_symbolic(d)) return {d, d};
  std::lock_guard lock(table().mutex);
  Poly p = table().poly_of(d);
  return {table().lower(p), table().upper(p)};
}

std::vector<std::string> dim_variables(int64_t d) {
  std::set<std::string> names;
  std::lock_guard lock(table().mutex);
  table().add_variables(table().poly_of(d), names);
  return {names.begin(), names.end()};
}
int64_t dim_evaluate(int64_t d, const DimValues& values) {
  std::lock_guard lock(table().mutex);
  return table().evaluate(d, values);
}

}  // namespace weft
