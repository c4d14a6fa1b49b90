// Expressions of sizes: polynomials over atoms, interned, and what is known of them.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "support/polynomial.h"
#include "weft/dims.h"

namespace weft::dims {

enum class AtomKind : uint8_t { kVariable, kFloordiv, kMod, kMax, kMin };
constexpr std::string_view kNames[] = {"", "floordiv", "mod", "max", "min"};

struct Atom {
  AtomKind kind;
  DimScope scope;
  std::string name;  // of a variable
  int64_t a = 0, b = 0;
  std::string text;
};

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

// Of numbers that may be infinite.
using Bound = std::optional<int64_t>;

// One for the process (`table()`). Its functions are called with the mutex held.
class DimTable {
 public:
  std::recursive_mutex mutex;

  // ---- Expressions and their handles

  Poly poly_of(int64_t d);
  bool knows(int64_t d) const { return by_handle_.contains(d); }
  int64_t handle_of(Poly p);
  DimScope scope_of(const Poly& p) const;
  DimScope scope_of_handle(int64_t d) const;
  Poly variable(const std::string& name, DimScope scope);

  // ---- Arithmetic

  int64_t floordiv(int64_t a, int64_t b);
  int64_t mod(int64_t a, int64_t b);
  int64_t extreme(AtomKind kind, int64_t a, int64_t b);

  // ---- What is known (dim_bounds.cpp)

  // Whether a >= b.
  std::optional<bool> decide(int64_t a, int64_t b);
  Bound lower(const Poly& p) { return lower(p, kMaxSteps); }
  Bound upper(const Poly& p) { return upper(p, kMaxSteps); }

  // ---- Scopes

  DimScope new_scope(std::span<const std::string> constraints);
  bool has_scope(DimScope s) const { return s <= scopes_.size(); }
  const Scope& scope(DimScope s) const { return scopes_[s - 1]; }

  // ---- Values

  void add_variables(const Poly& p, std::set<std::string>& names);
  int64_t evaluate(int64_t d, const DimValues& values);

  // ---- Text

  std::string text_of(const Poly& p, bool spaces) const;

 private:
  struct Expr {
    Poly poly;
    int64_t handle;
    DimScope scope;
  };
  // a = by * quotient + rest: either rest is 0 here and `mod` is what is left, or it needs an atom.
  struct Parts {
    Poly quotient, rest, mod;
    int64_t by;
    bool negated = false;
  };
  static constexpr int kMaxSteps = 4;  // constraints that are combined to find a bound

  static DimScope joined(DimScope a, DimScope b);
  AtomId atom(Atom a);
  Poly plus_atom(Poly p, AtomKind kind, int64_t a, int64_t b);
  // Applies the equalities of the scope.
  void normalize(Poly& p, DimScope scope);
  Parts divided(int64_t a, int64_t b);
  // Long division by the leading term, as far as it goes; the rest.
  Poly divide_exactly(Poly p, const Poly& q, Poly& result);
  void add_constraint(DimScope s, const std::string& text);
  int64_t evaluate_atom(AtomId id, const DimValues& values);
  // Higher degrees first, then operations before variables, each by name from the end.
  std::tuple<int, std::vector<std::tuple<bool, std::string, int>>> order_key(
      const Monomial& m) const;

  Bound upper(const Poly& p, int steps);
  Bound lower(const Poly& p, int steps);
  Bound atom_lower(AtomId id, int steps);
  Bound atom_upper(AtomId id, int steps);
  // Of a monomial whose atoms are all at least 0; else nothing is said of products.
  std::pair<Bound, Bound> monomial_bounds(const Monomial& m, int steps);
  // With what constraints say of the one atom.
  Bound variable_lower(AtomId id, int steps);
  Bound variable_upper(AtomId id, int steps);
  const std::vector<Poly>& constraints(AtomId id) const;
  // (c, k) of c*x + k; c is 0 for another polynomial.
  static std::pair<int64_t, int64_t> linear_in(const Poly& p, AtomId id);
  Bound interval_lower(const Poly& p, int steps);
  // Polynomials that are at least 0 by what an atom is.
  void add_facts(AtomId id, std::vector<Poly>& facts);
  // x*y - 3*y is at least 0 where y is and x is at least 3.
  void add_product_facts(const Monomial& m, int steps, std::vector<Poly>& facts);
  Poly substituted(const Poly& p, AtomId id, const Poly& value);

  std::deque<Scope> scopes_;
  std::deque<Atom> atoms_;
  std::map<std::tuple<AtomKind, DimScope, std::string, int64_t, int64_t>, AtomId> atom_ids_;
  std::deque<Expr> exprs_;
  std::unordered_map<int64_t, uint32_t> by_handle_;
  std::map<Poly, uint32_t> by_poly_;
};

DimTable& table();

}  // namespace weft::dims
