// Polynomials with integer coefficients: of sizes that are symbols (weft/dims.h). Arithmetic throws
// kShape where a coefficient has no room in 64 bits.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace weft::dims {

using AtomId = uint32_t;
// Atoms with their powers, in the order of their numbers.
using Monomial = std::vector<std::pair<AtomId, int>>;
// Without terms that are 0. The empty monomial is the constant.
using Poly = std::map<Monomial, int64_t>;

[[noreturn]] void too_large();
int64_t plus(int64_t a, int64_t b);
int64_t times(int64_t a, int64_t b);
int64_t floor_of(int64_t a, int64_t b);  // of the quotient

Poly constant(int64_t x);
bool is_constant(const Poly& p);
int64_t value_of(const Poly& p);  // of a constant
void add_term(Poly& p, const Monomial& m, int64_t coefficient);
void add_scaled(Poly& p, const Poly& q, int64_t factor);
Poly multiply(const Poly& a, const Poly& b);

int degree(const Monomial& m);
// a / b, if b divides a.
std::optional<Monomial> quotient(const Monomial& a, const Monomial& b);

}  // namespace weft::dims
