#include "support/dim_table.h"

#include <algorithm>

#include "weft/error.h"
#include "weft/hash.h"

namespace weft::dims {

namespace {

constexpr int64_t kLargest = int64_t{1} << 60;
// So that a handle is also a double, and is found out where a rule makes a number of it.
constexpr uint64_t kHandleStep = 1024;

}  // namespace

Poly DimTable::poly_of(int64_t d) {
  if (!is_symbolic(d)) return constant(d);
  auto it = by_handle_.find(d);
  if (it == by_handle_.end())
    fail(ErrorKind::kNotImplemented,
         "expected sizes that are numbers; got what arithmetic has made of a symbolic dimension");
  return exprs_[it->second].poly;
}

int64_t DimTable::handle_of(Poly p) {
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

DimScope DimTable::scope_of(const Poly& p) const {
  DimScope scope = 0;
  for (const auto& [m, c] : p)
    for (auto [atom, power] : m) scope = joined(scope, atoms_[atom].scope);
  return scope;
}

DimScope DimTable::scope_of_handle(int64_t d) const {
  auto it = by_handle_.find(d);
  return it == by_handle_.end() ? 0 : exprs_[it->second].scope;
}

Poly DimTable::variable(const std::string& name, DimScope scope) {
  return {{{{atom({AtomKind::kVariable, scope, name, 0, 0, name}), 1}}, 1}};
}

int64_t DimTable::floordiv(int64_t a, int64_t b) {
  Parts parts = divided(a, b);
  if (parts.rest.empty()) return handle_of(parts.quotient);
  return handle_of(plus_atom(parts.quotient, AtomKind::kFloordiv, handle_of(parts.rest), parts.by));
}

int64_t DimTable::mod(int64_t a, int64_t b) {
  Parts parts = divided(a, b);
  if (parts.rest.empty()) return handle_of(parts.mod);
  if (parts.negated)  // mod(a, -d) = -mod(-a, d)
    return dim_sub(0, handle_of(plus_atom({}, AtomKind::kMod, handle_of(parts.rest), parts.by)));
  return handle_of(plus_atom({}, AtomKind::kMod, handle_of(parts.rest), parts.by));
}

int64_t DimTable::extreme(AtomKind kind, int64_t a, int64_t b) {
  std::optional<bool> at_least = decide(a, b);
  if (!at_least) {
    // max(a, b) where a <= b holds, or where a >= b does, without being decided strictly
    if (decide(b, a).value_or(false)) at_least = false;
  }
  if (at_least) return (*at_least == (kind == AtomKind::kMax)) ? a : b;
  if (!is_symbolic(a) || (is_symbolic(b) && dim_text(b) < dim_text(a))) std::swap(a, b);
  return handle_of(plus_atom({}, kind, a, b));
}

DimScope DimTable::new_scope(std::span<const std::string> constraints) {
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

void DimTable::add_variables(const Poly& p, std::set<std::string>& names) {
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

int64_t DimTable::evaluate(int64_t d, const DimValues& values) {
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

std::string DimTable::text_of(const Poly& p, bool spaces) const {
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

DimScope DimTable::joined(DimScope a, DimScope b) {
  if (a && b && a != b)
    fail(ErrorKind::kValue,
         "Invalid mixing of symbolic scopes: expected symbolic dimensions of one scope; got some "
         "of two\n  Pass scope=... where the second is made.");
  return a ? a : b;
}

AtomId DimTable::atom(Atom a) {
  auto key = std::tuple(a.kind, a.scope, a.name, a.a, a.b);
  auto [it, is_new] = atom_ids_.try_emplace(key, static_cast<AtomId>(atoms_.size()));
  if (is_new) atoms_.push_back(std::move(a));
  return it->second;
}

Poly DimTable::plus_atom(Poly p, AtomKind kind, int64_t a, int64_t b) {
  DimScope scope = joined(scope_of_handle(a), scope_of_handle(b));
  std::string text =
      cat(kNames[static_cast<size_t>(kind)], '(', dim_text(a), ", ", dim_text(b), ')');
  add_term(p, {{atom({kind, scope, "", a, b, std::move(text)}), 1}}, 1);
  return p;
}

void DimTable::normalize(Poly& p, DimScope scope) {
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

DimTable::Parts DimTable::divided(int64_t a, int64_t b) {
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

Poly DimTable::divide_exactly(Poly p, const Poly& q, Poly& result) {
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

void DimTable::add_constraint(DimScope s, const std::string& text) {
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

int64_t DimTable::evaluate_atom(AtomId id, const DimValues& values) {
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

std::tuple<int, std::vector<std::tuple<bool, std::string, int>>> DimTable::order_key(
    const Monomial& m) const {
  std::vector<std::tuple<bool, std::string, int>> parts;
  for (auto [id, power] : m)
    parts.emplace_back(atoms_[id].kind != AtomKind::kVariable, atoms_[id].text, power);
  std::sort(parts.rbegin(), parts.rend());
  return {degree(m), parts};
}

DimTable& table() {
  static DimTable& made = *new DimTable;  // never destroyed, as types are not
  return made;
}

}  // namespace weft::dims
