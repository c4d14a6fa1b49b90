// What bounds, constraints and the kinds of atoms decide about expressions of sizes.
#include <algorithm>

#include "support/dim_table.h"
#include "weft/error.h"

namespace weft::dims {

namespace {

// Coefficients beyond this are not multiplied any further on the way.
constexpr int64_t kLargestScaled = int64_t{1} << 36;

}  // namespace

std::optional<bool> DimTable::decide(int64_t a, int64_t b) {
  Poly p = poly_of(a);
  add_scaled(p, poly_of(b), -1);
  normalize(p, scope_of(p));
  Bound low = lower(p, kMaxSteps);
  if (low && *low >= 0) return true;
  Bound high = upper(p, kMaxSteps);
  if (high && *high < 0) return false;
  return std::nullopt;
}

Bound DimTable::upper(const Poly& p, int steps) {
  Poly negative;
  add_scaled(negative, p, -1);
  Bound low = lower(negative, steps);
  return low ? Bound(-*low) : low;
}

Bound DimTable::lower(const Poly& p, int steps) {
  Bound best = interval_lower(p, steps);
  if (steps <= 0 || is_constant(p)) return best;
  auto take = [&](Bound b) {
    if (b && (!best || *b > *best)) best = b;
  };
  std::set<AtomId> atoms;
  for (const auto& [m, c] : p)
    for (auto [id, power] : m) atoms.insert(id);
  // max(a, b) is one of the two.
  for (AtomId id : atoms) {
    Atom atom = atoms_[id];
    if (atom.kind != AtomKind::kMax && atom.kind != AtomKind::kMin) continue;
    Bound a = lower(substituted(p, id, poly_of(atom.a)), steps - 1);
    Bound b = lower(substituted(p, id, poly_of(atom.b)), steps - 1);
    if (a && b) take(std::min(*a, *b));
  }
  bool is_large = std::any_of(p.begin(), p.end(), [](const auto& term) {
    return term.second > kLargestScaled || term.second < -kLargestScaled;
  });
  if ((best && *best >= 0) || is_large) return best;
  std::vector<Poly> facts;
  if (DimScope s = scope_of(p)) facts = scopes_[s - 1].positive;
  for (AtomId id : atoms) add_facts(id, facts);
  for (const auto& [m, c] : p)
    if (c > 0 && degree(m) > 1) add_product_facts(m, steps - 1, facts);
  for (const Poly& fact : facts) {
    for (const auto& [m, c] : fact) {
      if (m.empty()) continue;
      auto it = p.find(m);
      if (it == p.end() || (it->second > 0) != (c > 0)) continue;
      // p * |c| - fact * |coefficient| has a smaller bound, and no such term.
      int64_t by = std::abs(c), factor = std::abs(it->second);
      constexpr int64_t kSmall = int64_t{1} << 20;
      if (by > kSmall || factor > kSmall) continue;
      Poly rest;
      add_scaled(rest, p, by);
      add_scaled(rest, fact, -factor);
      Bound low = lower(rest, steps - 1);
      if (low) take(-floor_of(-*low, by));
    }
  }
  return best;
}

Bound DimTable::atom_lower(AtomId id, int steps) {
  Atom atom = atoms_[id];
  if (atom.kind == AtomKind::kVariable) return 1;
  if (steps <= 0) return std::nullopt;
  Bound a = lower(poly_of(atom.a), steps - 1), b = lower(poly_of(atom.b), steps - 1);
  switch (atom.kind) {
    case AtomKind::kMax:
      return a && b ? Bound(std::max(*a, *b)) : a ? a : b;
    case AtomKind::kMin:
      return a && b ? Bound(std::min(*a, *b)) : std::nullopt;
    case AtomKind::kFloordiv: {
      Bound most = upper(poly_of(atom.b), steps - 1);
      if (!b || *b <= 0 || !a) return std::nullopt;
      if (*a >= 0) return most ? floor_of(*a, *most) : 0;
      return floor_of(*a, *b);
    }
    case AtomKind::kMod:
      return b && *b > 0 ? Bound(0) : std::nullopt;
    case AtomKind::kVariable:
      break;
  }
  return std::nullopt;
}

Bound DimTable::atom_upper(AtomId id, int steps) {
  Atom atom = atoms_[id];
  if (atom.kind == AtomKind::kVariable || steps <= 0) return std::nullopt;
  Bound a = upper(poly_of(atom.a), steps - 1), b = upper(poly_of(atom.b), steps - 1);
  switch (atom.kind) {
    case AtomKind::kMax:
      return a && b ? Bound(std::max(*a, *b)) : std::nullopt;
    case AtomKind::kMin:
      return a && b ? Bound(std::min(*a, *b)) : a ? a : b;
    case AtomKind::kFloordiv: {
      Bound least = lower(poly_of(atom.b), steps - 1);
      if (!least || *least <= 0 || !a) return std::nullopt;
      return *a >= 0 ? floor_of(*a, *least) : (b ? floor_of(*a, *b) : -1);
    }
    case AtomKind::kMod: {
      Bound least = lower(poly_of(atom.b), steps - 1);
      return b && least && *least > 0 ? Bound(*b - 1) : std::nullopt;
    }
    case AtomKind::kVariable:
      break;
  }
  return std::nullopt;
}

std::pair<Bound, Bound> DimTable::monomial_bounds(const Monomial& m, int steps) {
  if (m.empty()) return {1, 1};
  if (m.size() == 1 && m[0].second == 1)
    return {variable_lower(m[0].first, steps), variable_upper(m[0].first, steps)};
  Bound low = 1, high = 1;
  for (auto [id, power] : m) {
    Bound a = variable_lower(id, steps), b = variable_upper(id, steps);
    if (!a || *a < 0) return {std::nullopt, std::nullopt};
    for (int i = 0; i < power; ++i) {
      if (__builtin_mul_overflow(*low, *a, &*low)) return {0, std::nullopt};
      if (high && (!b || __builtin_mul_overflow(*high, *b, &*high))) high = std::nullopt;
    }
  }
  return {low, high};
}

Bound DimTable::variable_lower(AtomId id, int steps) {
  Bound low = atom_lower(id, steps);
  for (const Poly& p : constraints(id)) {
    auto [c, rest] = linear_in(p, id);
    if (c <= 0) continue;  // c*x + rest >= 0
    int64_t bound = -floor_of(rest, c);
    low = low ? std::max(*low, bound) : bound;
  }
  return low;
}

Bound DimTable::variable_upper(AtomId id, int steps) {
  Bound high = atom_upper(id, steps);
  for (const Poly& p : constraints(id)) {
    auto [c, rest] = linear_in(p, id);
    if (c >= 0) continue;
    int64_t bound = floor_of(rest, -c);
    high = high ? std::min(*high, bound) : bound;
  }
  return high;
}

const std::vector<Poly>& DimTable::constraints(AtomId id) const {
  static const std::vector<Poly> none;
  DimScope s = atoms_[id].scope;
  return s ? scopes_[s - 1].positive : none;
}

std::pair<int64_t, int64_t> DimTable::linear_in(const Poly& p, AtomId id) {
  int64_t c = 0, k = 0;
  for (const auto& [m, x] : p) {
    if (m.empty()) {
      k = x;
    } else if (m.size() == 1 && m[0] == std::pair(id, 1)) {
      c = x;
    } else {
      return {0, 0};
    }
  }
  return {c, k};
}

Bound DimTable::interval_lower(const Poly& p, int steps) {
  int64_t sum = 0;
  for (const auto& [m, c] : p) {
    auto [low, high] = monomial_bounds(m, steps);
    Bound bound = c > 0 ? low : high;
    int64_t term;
    if (!bound || __builtin_mul_overflow(*bound, c, &term) ||
        __builtin_add_overflow(sum, term, &sum))
      return std::nullopt;
  }
  return sum;
}

void DimTable::add_facts(AtomId id, std::vector<Poly>& facts) {
  Atom atom = atoms_[id];
  if (atom.kind == AtomKind::kVariable) return;
  Poly self{{{{id, 1}}, 1}}, a = poly_of(atom.a), b = poly_of(atom.b);
  auto difference = [](Poly x, const Poly& y) {
    add_scaled(x, y, -1);
    return x;
  };
  switch (atom.kind) {
    case AtomKind::kMax:
      facts.push_back(difference(self, a));
      facts.push_back(difference(self, b));
      break;
    case AtomKind::kMin:
      facts.push_back(difference(a, self));
      facts.push_back(difference(b, self));
      break;
    case AtomKind::kMod:
    case AtomKind::kFloordiv: {
      Bound least = lower(b, 1);
      if (!least || *least <= 0) break;
      if (atom.kind == AtomKind::kMod) {
        Poly room = difference(b, self);
        add_term(room, {}, -1);
        facts.push_back(room);
        Bound low = lower(a, 1);
        if (low && *low >= 0) facts.push_back(difference(a, self));
        break;
      }
      Poly back = multiply(b, self);
      facts.push_back(difference(a, back));
      Poly room = difference(back, a);
      add_scaled(room, b, 1);
      add_term(room, {}, -1);
      facts.push_back(room);
      break;
    }
    case AtomKind::kVariable:
      break;
  }
}

void DimTable::add_product_facts(const Monomial& m, int steps, std::vector<Poly>& facts) {
  Bound whole = monomial_bounds(m, steps).first;
  if (!whole || *whole < 0) return;  // not all are at least 0
  for (auto [id, power] : m) {
    Bound low = variable_lower(id, steps);
    if (!low || *low < 1) continue;
    Poly fact{{m, 1}};
    add_term(fact, *quotient(m, {{id, 1}}), -*low);
    facts.push_back(fact);
  }
}

Poly DimTable::substituted(const Poly& p, AtomId id, const Poly& value) {
  Poly r;
  for (const auto& [m, c] : p) {
    Poly term = constant(c);
    Monomial rest;
    for (auto [atom, power] : m) {
      if (atom != id) {
        rest.push_back({atom, power});
        continue;
      }
      for (int i = 0; i < power; ++i) term = multiply(term, value);
    }
    add_scaled(r, multiply(term, Poly{{rest, 1}}), 1);
  }
  return r;
}

}  // namespace weft::dims
