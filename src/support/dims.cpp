// Expressions of sizes: polynomials over atoms, interned; what bounds and constraints decide.
#include "weft/dims.h"

#include <algorithm>
#include <deque>
#include <mutex>
#include <set>
#include <unordered_map>

#include "weft/error.h"
#include "weft/hash.h"

namespace weft {
namespace {

enum class AtomKind : uint8_t { kVariable, kFloordiv, kMod, kMax, kMin };
constexpr std::string_view kNames[] = {"", "floordiv", "mod", "max", "min"};

using AtomId = uint32_t;
struct Atom {
  AtomKind kind;
  DimScope scope;
  std::string name;  // of a variable
  int64_t a = 0, b = 0;
  std::string text;
};

// Atoms with their powers, in the order of their numbers.
using Monomial = std::vector<std::pair<AtomId, int>>;
// Without terms that are 0. The empty monomial is the constant.
using Poly = std::map<Monomial, int64_t>;

// The left side of an equality, `coefficient` times `monomial`, is written as `value`.
struct Rule {
  Monomial monomial;
  int64_t coefficient;
  Poly value;
};
struct Scope {
  std::vector<std::string> constraints;
  std::vector<Rule> rules;
  std::vector<Poly> positive;  // at least 0
};

[[noreturn]] void too_large() {
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

Monomial product(const Monomial& a, const Monomial& b) {
  std::map<AtomId, int> powers(a.begin(), a.end());
  for (auto [atom, power] : b) powers[atom] += power;
  return Monomial(powers.begin(), powers.end());
}
// a / b, if b divides a.
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

// Of numbers that may be infinite.
using Bound = std::optional<int64_t>;

constexpr int kMaxSteps = 4;  // constraints that are combined to find a bound
// Coefficients beyond this are not multiplied any further on the way.
constexpr int64_t kLargestScaled = int64_t{1} << 36;

class Table {
 public:
  std::recursive_mutex mutex;

  // ---- Expressions and their handles

  Poly poly_of(int64_t d) {
    if (!is_symbolic(d)) return constant(d);
    auto it = by_handle_.find(d);
    if (it == by_handle_.end())
      fail(ErrorKind::kNotImplemented,
           "expected sizes that are numbers; got what arithmetic has made of a symbolic dimension");
    return exprs_[it->second].poly;
  }
  bool knows(int64_t d) const { return by_handle_.contains(d); }

  int64_t handle_of(Poly p) {
    DimScope scope = scope_of(p);
    normalize(p, scope);
    if (is_constant(p)) {
      int64_t x = value_of(p);
      if (x > -kLargest && x < kLargest) return x;
      too_large();
    }
    auto found = by_poly_.find(p);
    if (found != by_poly_.end()) return exprs_[found->second].handle;
    std::string text = text_of(p, false);
    uint64_t h = hash_combine(hash_bytes(text), scope);
    int64_t handle;
    do {
      handle = kFirstSymbol + static_cast<int64_t>(h % kSymbolRange / kHandleStep * kHandleStep);
      h = mix(h + 1);
    } while (by_handle_.contains(handle));
    auto index = static_cast<uint32_t>(exprs_.size());
    by_handle_.emplace(handle, index);
    by_poly_.emplace(p, index);
    exprs_.push_back({std::move(p), handle, scope});
    return handle;
  }

  DimScope scope_of(const Poly& p) const {
    DimScope scope = 0;
    for (const auto& [m, c] : p)
      for (auto [atom, power] : m) scope = joined(scope, atoms_[atom].scope);
    return scope;
  }
  DimScope scope_of_handle(int64_t d) const {
    auto it = by_handle_.find(d);
    return it == by_handle_.end() ? 0 : exprs_[it->second].scope;
  }

  Poly variable(const std::string& name, DimScope scope) {
    return {{{{atom({AtomKind::kVariable, scope, name, 0, 0, name}), 1}}, 1}};
  }

  // ---- Arithmetic

  int64_t floordiv(int64_t a, int64_t b) {
    Parts parts = divided(a, b);
    if (parts.rest.empty()) return handle_of(parts.quotient);
    return handle_of(
        plus_atom(parts.quotient, AtomKind::kFloordiv, handle_of(parts.rest), parts.by));
  }
  int64_t mod(int64_t a, int64_t b) {
    Parts parts = divided(a, b);
    if (parts.rest.empty()) return handle_of(parts.mod);
    if (parts.negated)  // mod(a, -d) = -mod(-a, d)
      return dim_sub(0, handle_of(plus_atom({}, AtomKind::kMod, handle_of(parts.rest), parts.by)));
    return handle_of(plus_atom({}, AtomKind::kMod, handle_of(parts.rest), parts.by));
  }
  int64_t extreme(AtomKind kind, int64_t a, int64_t b) {
    std::optional<bool> at_least = decide(a, b);
    if (!at_least) {
      // max(a, b) where a <= b holds, or where a >= b does, without being decided strictly
      if (decide(b, a).value_or(false)) at_least = false;
    }
    if (at_least) return (*at_least == (kind == AtomKind::kMax)) ? a : b;
    if (!is_symbolic(a) || (is_symbolic(b) && dim_text(b) < dim_text(a))) std::swap(a, b);
    return handle_of(plus_atom({}, kind, a, b));
  }

  // ---- What is known

  // Whether a >= b.
  std::optional<bool> decide(int64_t a, int64_t b) {
    Poly p = poly_of(a);
    add_scaled(p, poly_of(b), -1);
    normalize(p, scope_of(p));
    Bound low = lower(p, kMaxSteps);
    if (low && *low >= 0) return true;
    Bound high = upper(p, kMaxSteps);
    if (high && *high < 0) return false;
    return std::nullopt;
  }
  Bound lower(const Poly& p) { return lower(p, kMaxSteps); }
  Bound upper(const Poly& p) { return upper(p, kMaxSteps); }

  // ---- Scopes

  DimScope new_scope(std::span<const std::string> constraints) {
    scopes_.push_back({});
    auto scope = static_cast<DimScope>(scopes_.size());
    try {
      for (const std::string& c : constraints) add_constraint(scope, c);
    } catch (...) {
      scopes_.pop_back();
      throw;
    }
    return scope;
  }
  const Scope& scope(DimScope s) const { return scopes_[s - 1]; }

  // ---- Values

  void add_variables(const Poly& p, std::set<std::string>& names) {
    for (const auto& [m, c] : p)
      for (auto [id, power] : m) {
        const Atom& atom = atoms_[id];
        if (atom.kind == AtomKind::kVariable) {
          names.insert(atom.name);
        } else {
          add_variables(poly_of(atom.a), names);
          add_variables(poly_of(atom.b), names);
        }
      }
  }
  int64_t evaluate(int64_t d, const DimValues& values) {
    if (!is_symbolic(d)) return d;
    int64_t sum = 0;
    for (const auto& [m, c] : poly_of(d)) {
      int64_t term = c;
      for (auto [id, power] : m) {
        int64_t x = evaluate_atom(id, values);
        for (int i = 0; i < power; ++i) term = dim_mul(term, x);
      }
      sum = dim_add(sum, term);
    }
    return sum;
  }

  // ---- Text

  std::string text_of(const Poly& p, bool spaces) const {
    std::vector<std::pair<Monomial, int64_t>> terms(p.begin(), p.end());
    std::stable_sort(terms.begin(), terms.end(), [&](const auto& x, const auto& y) {
      return order_key(x.first) > order_key(y.first);
    });
    Text out;
    for (size_t i = 0; i < terms.size(); ++i) {
      auto [m, c] = terms[i];
      bool first = i == 0;
      std::string_view sign =
          c < 0 ? (spaces ? (first ? "- " : " - ") : "-") : (first ? "" : (spaces ? " + " : "+"));
      int64_t size = c < 0 ? -c : c;
      out << sign;
      if (m.empty() || size != 1) out << size;
      bool needs_star = size != 1;
      for (auto [id, power] : m) {
        if (needs_star) out << '*';
        needs_star = true;
        out << atoms_[id].text;
        if (power != 1) out << '^' << power;
      }
    }
    return terms.empty() ? "0" : out.take();
  }

 private:
  struct Expr {
    Poly poly;
    int64_t handle;
    DimScope scope;
  };
  static constexpr int64_t kLargest = int64_t{1} << 60;
  // So that a handle is also a double, and is found out where a rule makes a number of it.
  static constexpr uint64_t kHandleStep = 1024;

  static DimScope joined(DimScope a, DimScope b) {
    if (a && b && a != b)
      fail(ErrorKind::kValue,
           "Invalid mixing of symbolic scopes: expected symbolic dimensions of one scope; got some "
           "of two\n  Pass scope=... where the second is made.");
    return a ? a : b;
  }

  AtomId atom(Atom a) {
    auto key = std::tuple(a.kind, a.scope, a.name, a.a, a.b);
    auto [it, is_new] = atom_ids_.try_emplace(key, static_cast<AtomId>(atoms_.size()));
    if (is_new) atoms_.push_back(std::move(a));
    return it->second;
  }
  Poly plus_atom(Poly p, AtomKind kind, int64_t a, int64_t b) {
    DimScope scope = joined(scope_of_handle(a), scope_of_handle(b));
    std::string text =
        cat(kNames[static_cast<size_t>(kind)], '(', dim_text(a), ", ", dim_text(b), ')');
    add_term(p, {{atom({kind, scope, "", a, b, std::move(text)}), 1}}, 1);
    return p;
  }

  // Applies the equalities of the scope.
  void normalize(Poly& p, DimScope scope) {
    if (scope == 0) return;
    const std::vector<Rule>& rules = scopes_[scope - 1].rules;
    constexpr int kMost = 100;  // of rules that lead to each other
    for (int step = 0; step < kMost; ++step) {
      bool changed = false;
      for (const Rule& rule : rules) {
        for (const auto& [m, c] : Poly(p)) {
          std::optional<Monomial> rest = quotient(m, rule.monomial);
          if (!rest || c % rule.coefficient != 0) continue;
          add_term(p, m, -c);
          add_scaled(p, multiply(rule.value, Poly{{*rest, 1}}), c / rule.coefficient);
          changed = true;
        }
      }
      if (!changed) return;
    }
  }

  // a = by * quotient + rest: either rest is 0 here and `mod` is what is left, or it needs an atom.
  struct Parts {
    Poly quotient, rest, mod;
    int64_t by;
    bool negated = false;
  };
  Parts divided(int64_t a, int64_t b) {
    if (b == 0)
      fail(ErrorKind::kValue, "expected a divisor that is not 0 for the size ", dim_text(a));
    Parts parts{{}, {}, {}, b};
    Poly p = poly_of(a), q = poly_of(b);
    if (upper(q).value_or(1) < 0) {  // floordiv(a, -d) = floordiv(-a, d)
      Poly negative;
      add_scaled(negative, p, -1);
      p = negative;
      parts.by = dim_sub(0, b);
      q = poly_of(parts.by);
      parts.negated = true;
    }
    Poly rest;
    if (is_constant(q)) {
      int64_t d = value_of(q);
      for (const auto& [m, c] : p) {
        int64_t n = floor_of(c, d);
        add_term(parts.quotient, m, n);
        add_term(rest, m, c - n * d);
      }
    } else {
      rest = divide_exactly(p, q, parts.quotient);
    }
    Bound low = lower(rest);
    Poly room = q;
    add_scaled(room, rest, -1);
    Bound left = lower(room);
    bool is_small = low && *low >= 0 && left && *left >= 1;
    if (is_small) {
      parts.mod = rest;
      if (parts.negated) {
        parts.mod.clear();
        add_scaled(parts.mod, rest, -1);
      }
    } else {
      parts.rest = rest;
    }
    return parts;
  }
  // Long division by the leading term, as far as it goes; the rest.
  Poly divide_exactly(Poly p, const Poly& q, Poly& result) {
    auto lead = std::max_element(q.begin(), q.end(), [&](const auto& x, const auto& y) {
      return std::pair(degree(x.first), x.first) < std::pair(degree(y.first), y.first);
    });
    Poly rest;
    for (int steps = 0; !p.empty() && steps < 100; ++steps) {
      auto top = std::max_element(p.begin(), p.end(), [&](const auto& x, const auto& y) {
        return std::pair(degree(x.first), x.first) < std::pair(degree(y.first), y.first);
      });
      std::optional<Monomial> m = quotient(top->first, lead->first);
      if (!m || top->second % lead->second != 0) {
        rest.insert(*top);
        p.erase(top);
        continue;
      }
      Poly term{{*m, top->second / lead->second}};
      add_scaled(result, term, 1);
      add_scaled(p, multiply(term, q), -1);
    }
    add_scaled(rest, p, 1);
    return rest;
  }

  // ---- Bounds

  Bound upper(const Poly& p, int steps) {
    Poly negative;
    add_scaled(negative, p, -1);
    Bound low = lower(negative, steps);
    return low ? Bound(-*low) : low;
  }

  Bound atom_lower(AtomId id, int steps) {
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
  Bound atom_upper(AtomId id, int steps) {
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

  // Of a monomial whose atoms are all at least 0; else nothing is said of products.
  std::pair<Bound, Bound> monomial_bounds(const Monomial& m, int steps) {
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
  // With what constraints say of the one atom.
  Bound variable_lower(AtomId id, int steps) {
    Bound low = atom_lower(id, steps);
    for (const Poly& p : constraints(id)) {
      auto [c, rest] = linear_in(p, id);
      if (c <= 0) continue;  // c*x + rest >= 0
      int64_t bound = -floor_of(rest, c);
      low = low ? std::max(*low, bound) : bound;
    }
    return low;
  }
  Bound variable_upper(AtomId id, int steps) {
    Bound high = atom_upper(id, steps);
    for (const Poly& p : constraints(id)) {
      auto [c, rest] = linear_in(p, id);
      if (c >= 0) continue;
      int64_t bound = floor_of(rest, -c);
      high = high ? std::min(*high, bound) : bound;
    }
    return high;
  }
  const std::vector<Poly>& constraints(AtomId id) const {
    static const std::vector<Poly> none;
    DimScope s = atoms_[id].scope;
    return s ? scopes_[s - 1].positive : none;
  }
  // (c, k) of c*x + k; c is 0 for another polynomial.
  static std::pair<int64_t, int64_t> linear_in(const Poly& p, AtomId id) {
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

  Bound interval_lower(const Poly& p, int steps) {
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

  // Polynomials that are at least 0 by what an atom is.
  void add_facts(AtomId id, std::vector<Poly>& facts) {
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

  // x*y - 3*y is at least 0 where y is and x is at least 3.
  void add_product_facts(const Monomial& m, int steps, std::vector<Poly>& facts) {
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

  Bound lower(const Poly& p, int steps) {
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

  Poly substituted(const Poly& p, AtomId id, const Poly& value) {
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

  void add_constraint(DimScope s, const std::string& text) {
    size_t at = std::string::npos;
    std::string_view op;
    for (std::string_view candidate : {"==", ">=", "<="}) {
      at = text.find(candidate);
      if (at == std::string::npos) continue;
      op = candidate;
      break;
    }
    if (op.empty())
      fail(ErrorKind::kValue,
           "Constraint parsing error: must contain one of '==' or '>=' or '<='; got '", text, "'");
    int64_t a = parse_dim(std::string_view(text).substr(0, at), s);
    int64_t b = parse_dim(std::string_view(text).substr(at + 2), s);
    if (op == "<=") std::swap(a, b);
    Poly p = poly_of(a);
    add_scaled(p, poly_of(b), -1);
    if (is_constant(p)) {
      bool holds = op == "==" ? value_of(p) == 0 : value_of(p) >= 0;
      if (!holds) fail(ErrorKind::kValue, "Unsatisfiable constraint: ", text);
    } else if (op == "==") {
      Poly left = poly_of(a);
      if (left.size() != 1 || is_constant(left))
        fail(ErrorKind::kValue, "Invalid equality constraint: '", text,
             "': expected a left side that is one term, such as '2*a' or 'floordiv(a, 2)'");
      scopes_[s - 1].rules.push_back({left.begin()->first, left.begin()->second, poly_of(b)});
    } else {
      scopes_[s - 1].positive.push_back(p);
    }
    scopes_[s - 1].constraints.push_back(text);
  }

  int64_t evaluate_atom(AtomId id, const DimValues& values) {
    Atom atom = atoms_[id];
    if (atom.kind == AtomKind::kVariable) {
      auto it = values.find(atom.name);
      return it != values.end() ? it->second : handle_of(variable(atom.name, atom.scope));
    }
    int64_t a = evaluate(atom.a, values), b = evaluate(atom.b, values);
    switch (atom.kind) {
      case AtomKind::kFloordiv:
        return dim_floordiv(a, b);
      case AtomKind::kMod:
        return dim_mod(a, b);
      case AtomKind::kMax:
        return dim_max(a, b);
      default:
        return dim_min(a, b);
    }
  }

  // Higher degrees first, then operations before variables, each by name from the end.
  std::tuple<int, std::vector<std::tuple<bool, std::string, int>>> order_key(
      const Monomial& m) const {
    std::vector<std::tuple<bool, std::string, int>> parts;
    for (auto [id, power] : m)
      parts.emplace_back(atoms_[id].kind != AtomKind::kVariable, atoms_[id].text, power);
    std::sort(parts.rbegin(), parts.rend());
    return {degree(m), parts};
  }

  std::deque<Scope> scopes_;
  std::deque<Atom> atoms_;
  std::map<std::tuple<AtomKind, DimScope, std::string, int64_t, int64_t>, AtomId> atom_ids_;
  std::deque<Expr> exprs_;
  std::unordered_map<int64_t, uint32_t> by_handle_;
  std::map<Poly, uint32_t> by_poly_;
};

Table& table() {
  static Table& made = *new Table;  // never destroyed, as types are not
  return made;
}

thread_local DimScope reading_scope = 0;

class DimParser {
 public:
  DimParser(std::string_view text, DimScope scope) : text_(text), scope_(scope) {}

  int64_t run() {
    int64_t d = sum();
    skip();
    if (at_ < text_.size()) expected("an operator or the end");
    return d;
  }

 private:
  void skip() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
  }
  char peek() {
    skip();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool accept(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  [[noreturn]] void expected(std::string_view what) {
    fail(ErrorKind::kParse, "syntax error in symbolic shape '", text_, "': expected ", what,
         "; got '", text_.substr(std::min(at_, text_.size())), "'");
  }
  int64_t sum() {
    int64_t d = accept('-') ? dim_sub(0, term()) : term();
    while (true) {
      if (accept('+')) {
        d = dim_add(d, term());
      } else if (accept('-')) {
        d = dim_sub(d, term());
      } else {
        return d;
      }
    }
  }
  int64_t term() {
    int64_t d = power();
    while (accept('*')) d = dim_mul(d, power());
    return d;
  }
  int64_t power() {
    int64_t base = atom(), d = base;
    if (!accept('^')) return d;
    int64_t n = number();
    if (n < 1 || n > 64) expected("an exponent between 1 and 64");
    for (int64_t i = 1; i < n; ++i) d = dim_mul(d, base);
    return d;
  }
  int64_t number() {
    char c = peek();
    if (!is_digit(c)) expected("a number");
    int64_t n = 0;
    while (at_ < text_.size() && is_digit(text_[at_])) n = plus(times(n, 10), text_[at_++] - '0');
    return n;
  }
  int64_t atom() {
    char c = peek();
    if (is_digit(c)) return number();
    if (accept('(')) {
      int64_t d = sum();
      if (!accept(')')) expected("')'");
      return d;
    }
    if (c == '-') {
      ++at_;
      return dim_sub(0, atom());
    }
    auto is_letter = [](char x) {
      return (x >= 'a' && x <= 'z') || (x >= 'A' && x <= 'Z') || x == '_';
    };
    if (!is_letter(c)) expected("a name, a number or '-'");
    size_t begin = at_;
    while (at_ < text_.size() && (is_letter(text_[at_]) || is_digit(text_[at_]))) ++at_;
    std::string name(text_.substr(begin, at_ - begin));
    auto function = [&](std::string_view known,
                        int64_t (*f)(int64_t, int64_t)) -> std::optional<int64_t> {
      if (name != known || peek() != '(') return std::nullopt;
      ++at_;
      int64_t a = sum();
      if (!accept(',')) expected("','");
      int64_t b = sum();
      if (!accept(')')) expected("')'");
      return f(a, b);
    };
    if (auto d = function("floordiv", dim_floordiv)) return *d;
    if (auto d = function("mod", dim_mod)) return *d;
    if (auto d = function("max", dim_max)) return *d;
    if (auto d = function("min", dim_min)) return *d;
    if (scope_ == 0)
      fail(ErrorKind::kParse, "expected a number; got the name '", name, "' in '", text_,
           "', outside of a scope of symbolic dimensions");
    Table& t = table();
    std::lock_guard lock(t.mutex);
    return t.handle_of(t.variable(name, scope_));
  }

  std::string_view text_;
  DimScope scope_;
  size_t at_ = 0;
};

}  // namespace

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

int64_t parse_dim(std::string_view text, DimScope scope) { return DimParser(text, scope).run(); }

ReadingScope::ReadingScope(DimScope scope) : outer_(reading_scope) { reading_scope = scope; }
ReadingScope::~ReadingScope() { reading_scope = outer_; }
DimScope ReadingScope::current() { return reading_scope; }

size_t end_of_dim(std::string_view text) {
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '(') ++depth;
    if (depth == 0 && (c == ',' || c == ')' || c == ']' || c == '}' || c == ';' || c <= ' '))
      return i;
    if (c == ')') --depth;
  }
  return text.size();
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
