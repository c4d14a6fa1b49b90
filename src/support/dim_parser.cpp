// The text of sizes that are symbols: "2*n + floordiv(b, 3)".
#include <algorithm>

#include "support/dim_table.h"
#include "weft/error.h"
#include "weft/text.h"

namespace weft {

namespace {

using dims::plus, dims::table, dims::times;

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
    bool negative = accept('-');
    if (!negative) accept('+');
    int64_t d = negative ? dim_sub(0, term()) : term();
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
    dims::DimTable& t = table();
    std::lock_guard lock(t.mutex);
    return t.handle_of(t.variable(name, scope_));
  }

  std::string_view text_;
  DimScope scope_;
  size_t at_ = 0;
};

}  // namespace

int64_t parse_dim(std::string_view text, DimScope scope) {
  {
    std::lock_guard lock(table().mutex);
    if (!table().has_scope(scope))
      fail(ErrorKind::kValue, "expected the number of a scope; got ", scope);
  }
  return DimParser(text, scope).run();
}

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

}  // namespace weft
