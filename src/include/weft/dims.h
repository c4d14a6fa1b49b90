// SPDX-License-Identifier: Apache-2.0
// Sizes that are symbols. A size is a 64-bit number; one that depends on variables is a handle: a
// number of a range that no size is in, which stands for an interned expression. Equal expressions
// have equal handles. Handles are strewn over their range, so that what arithmetic makes of one by
// mistake is no handle, and `make_type` refuses it.
//
// An expression is a polynomial with integer coefficients over atoms: variables, and floordiv, mod,
// max and min of two sizes. Variables are integers of at least 1, and belong to a scope, which also
// holds what else is known of them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/api.h"

namespace weft {

inline constexpr int64_t kFirstSymbol = -(int64_t{1} << 61);
inline constexpr uint64_t kSymbolRange = uint64_t{1} << 59;

// Whether a number is in the range of handles.
constexpr bool is_symbolic(int64_t d) {
  return static_cast<uint64_t>(d) - static_cast<uint64_t>(kFirstSymbol) < kSymbolRange;
}
// The same, and there is an expression for it.
WEFT_API bool is_known_symbol(int64_t d);
constexpr bool has_symbols(std::span<const int64_t> dims) {
  for (int64_t d : dims)
    if (is_symbolic(d)) return true;
  return false;
}

// Of a size: a number below 0.
constexpr bool is_negative(int64_t d) { return d < 0 && !is_symbolic(d); }

using DimScope = uint32_t;
// A scope in which constraints "e1 >= e2", "e1 <= e2" and "e1 == e2" hold. Throws kValue for
// others, and for an equality whose left side is not a product of variables, floordiv, ... and a
// number.
WEFT_API DimScope make_dim_scope(std::span<const std::string> constraints);
WEFT_API const std::vector<std::string>& constraints_of(DimScope scope);
// The scope of an expression; 0 for a number.
WEFT_API DimScope scope_of(int64_t d);

// Reads "2*n + floordiv(b, 3)", of variables of the scope; throws kParse, kValue if there is none.
WEFT_API int64_t parse_dim(std::string_view text, DimScope scope);
// The scope of the names in programs that this thread reads; 0: they may not have any.
class WEFT_API ReadingScope {
 public:
  explicit ReadingScope(DimScope scope);
  ~ReadingScope();
  ReadingScope(const ReadingScope&) = delete;
  static DimScope current();

 private:
  DimScope outer_;
};
// How far a size goes at the beginning of a text: to the first comma, bracket or space that is in
// no parentheses.
WEFT_API size_t end_of_dim(std::string_view text);
// Terms are separated by " + " or, for programs, "+".
WEFT_API std::string dim_text(int64_t d, bool spaces = true);

// Of numbers plain arithmetic. Throw kShape for what does not fit, kValue for symbols of two
// scopes, and for a divisor that is 0.
WEFT_API int64_t dim_add(int64_t a, int64_t b);
WEFT_API int64_t dim_sub(int64_t a, int64_t b);
WEFT_API int64_t dim_mul(int64_t a, int64_t b);
WEFT_API int64_t dim_floordiv(int64_t a, int64_t b);
WEFT_API int64_t dim_mod(int64_t a, int64_t b);
WEFT_API int64_t dim_max(int64_t a, int64_t b);
WEFT_API int64_t dim_min(int64_t a, int64_t b);

// Whether a >= b for all values of the variables, or for none; else nothing.
WEFT_API std::optional<bool> decide_at_least(int64_t a, int64_t b);
// The same; throws kInconclusive where that is not decided, with the constraint to add.
WEFT_API bool dim_at_least(int64_t a, int64_t b);
// Whether some values of the variables may have d <= most, as far as its lower bound tells.
WEFT_API bool dim_may_be_at_most(int64_t d, int64_t most);
struct DimBounds {
  std::optional<int64_t> lower, upper;  // none: no bound is known
};
WEFT_API DimBounds dim_bounds(int64_t d);

using DimValues = std::map<std::string, int64_t, std::less<>>;
// The names of the variables in an expression.
WEFT_API std::vector<std::string> dim_variables(int64_t d);
// The number, or the expression of those variables that have no value. Values may be sizes of
// another scope. Throws kValue for a division by 0.
WEFT_API int64_t dim_evaluate(int64_t d, const DimValues& values);

}  // namespace weft
