#include "support/polynomial.h"

#include "weft/error.h"

namespace weft::dims {

void too_large() {
  fail(ErrorKind::kShape, "expected sizes below 2**60; got an expression of sizes that is larger");
}
int64_t plus(int64_t a, int64_t b) {
  int64_t r;
  if (__builtin_add_overflow(a, b, &r)) too_large();
  return r;
}
int64_t times(int64_t a, int64_t b) {
  int64_t r;
  if (__builtin_mul_overflow(a, b, &r)) too_large();
  return r;
}
int64_t floor_of(int64_t a, int64_t b) { return a / b - ((a % b != 0) && ((a < 0) != (b < 0))); }

void add_term(Poly& p, const Monomial& m, int64_t coefficient) {
  if (coefficient == 0) return;
  auto [it, is_new] = p.try_emplace(m, coefficient);
  if (is_new) return;
  it->second = plus(it->second, coefficient);
  if (it->second == 0) p.erase(it);
}
void add_scaled(Poly& p, const Poly& q, int64_t factor) {
  for (const auto& [m, c] : q) add_term(p, m, times(c, factor));
}
Poly constant(int64_t x) {
  Poly p;
  add_term(p, {}, x);
  return p;
}
bool is_constant(const Poly& p) { return p.empty() || (p.size() == 1 && p.begin()->first.empty()); }
int64_t value_of(const Poly& p) { return p.empty() ? 0 : p.begin()->second; }

namespace {

Monomial product(const Monomial& a, const Monomial& b) {
  std::map<AtomId, int> powers(a.begin(), a.end());
  for (auto [atom, power] : b) powers[atom] += power;
  return Monomial(powers.begin(), powers.end());
}

}  // namespace

std::optional<Monomial> quotient(const Monomial& a, const Monomial& b) {
  std::map<AtomId, int> powers(a.begin(), a.end());
  for (auto [atom, power] : b) {
    auto it = powers.find(atom);
    if (it == powers.end() || it->second < power) return std::nullopt;
    if ((it->second -= power) == 0) powers.erase(it);
  }
  return Monomial(powers.begin(), powers.end());
}
int degree(const Monomial& m) {
  int sum = 0;
  for (auto [atom, power] : m) sum += power;
  return sum;
}
Poly multiply(const Poly& a, const Poly& b) {
  Poly r;
  for (const auto& [m, c] : a)
    for (const auto& [n, d] : b) add_term(r, product(m, n), times(c, d));
  return r;
}

}  // namespace weft::dims
