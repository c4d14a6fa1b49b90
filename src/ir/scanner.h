// Characters to tokens for the parser: white space, words, numbers, and errors that say where.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "weft/error.h"

namespace weft {

class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  size_t position() const { return pos_; }
  void seek(size_t position) { pos_ = position; }

  // Skips spaces, line ends and "# ..." comments.
  void skip_space();
  // The next character after white space; 0 at the end.
  char peek();
  bool at_end() { return peek() == 0; }
  // Takes the text if it comes next.
  bool accept(std::string_view token);
  // Likewise, where no white space comes before it.
  bool accept_here(std::string_view token);
  // As accept(), or fails; `what` describes the place for the message.
  void expect(std::string_view token, std::string_view what);
  // "(", or the name of a named tuple and "(".
  void expect_tuple(std::string_view what);
  // "name=", if it comes next: the field of a named tuple.
  void skip_field();

  // [A-Za-z_][A-Za-z0-9_]*; empty when something else comes next.
  std::string_view identifier();
  // Everything up to white space or one of `stops`.
  std::string_view word(std::string_view stops);
  // "f32[3,4]" up to the closing bracket, whether or not it is well formed.
  std::string_view type_text();
  // From "{" past the matching "}".
  void skip_braces();
  // A value of any form: up to a space, a comma or a bracket that it has not opened.
  void skip_value();
  // A string between two of these.
  std::string quoted(char quote);
  int64_t integer();
  double real();

  // What was read from a position on.
  std::string_view since(size_t position) const { return text_.substr(position, pos_ - position); }

  // Throws kParse: "line 3, column 7: expected ...; got ...".
  [[noreturn]] void fail_expected(std::string_view what);
  // Throws kParse with a message of its own, at a position.
  [[noreturn]] void fail_at(size_t position, std::string_view message) const;

 private:
  std::string_view text_;
  size_t pos_ = 0;
};

}  // namespace weft
