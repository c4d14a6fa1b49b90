// MLIR text: where a piece of it stands, and the tokens that all of it is made of. Pieces are views
// into the text, so that each knows its line and column when an error needs them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "weft/error.h"

namespace weft::reader {

// An error that says where it is.
struct Located : Error {
  using Error::Error;
};

class Source {
 public:
  explicit Source(std::string_view text) : text_(text) {}

  std::string_view text() const { return text_; }
  bool holds(const char* at) const {
    return at >= text_.data() && at <= text_.data() + text_.size();
  }
  // The number of a place's line, from 1 on. Places that are asked for in order cost one pass.
  int line(const char* at) const;
  // Throws a Located error of a kind: "line 3, column 7: ...".
  [[noreturn]] void fail(const char* at, ErrorKind kind, std::string_view message) const;

 private:
  std::string_view text_;
  mutable const char* known_ = nullptr;  // a place of which the line is known
  mutable int known_line_ = 1;
};

// Reads tokens of a piece of the text, from its beginning on.
class Cursor {
 public:
  Cursor(const Source& source, std::string_view piece)
      : source_(&source), at_(piece.data()), end_(piece.data() + piece.size()) {}

  const Source& source() const { return *source_; }
  const char* position() const { return at_; }
  void seek(const char* position) { at_ = position; }
  // What is left of the piece.
  std::string_view rest() const { return {at_, static_cast<size_t>(end_ - at_)}; }
  std::string_view since(const char* from) const { return {from, static_cast<size_t>(at_ - from)}; }

  // Skips white space and "// ..." comments.
  void skip_space() {
    if (at_ < end_ && *at_ > ' ' && *at_ != '/') return;
    skip_spaces();
  }
  // The next character after white space; 0 at the end.
  char peek() {
    skip_space();
    return at_ < end_ ? *at_ : '\0';
  }
  bool at_end() {
    skip_space();
    return at_ == end_;
  }
  // The character at a place, without skipping; 0 at the end.
  char here(size_t ahead = 0) const {
    return ahead < static_cast<size_t>(end_ - at_) ? at_[ahead] : '\0';
  }
  bool accept(char c) {
    if (peek() != c || at_ == end_) return false;
    ++at_;
    return true;
  }
  bool accept(std::string_view token) {
    skip_space();
    if (!rest().starts_with(token)) return false;
    at_ += token.size();
    return true;
  }
  // A word that ends where the token does.
  bool accept_word(std::string_view word);
  void expect(std::string_view token, std::string_view what) {
    if (!accept(token)) fail_expected(cat('"', token, "\" ", what));
  }

  // [A-Za-z_][A-Za-z0-9_$.]*; empty when something else comes next.
  std::string_view word();
  // What follows a sigil (%, @, #, !, ^): digits, or a word with - and $ in it. For @ also a
  // string.
  std::string_view name();
  // The inside of a quoted string, escapes as they stand.
  std::string_view quoted();
  int64_t integer();

  // From an opening bracket past the one that closes it.
  std::string_view group();
  // One value: a group, a string, or a word or number with the groups that follow it at once.
  std::string_view value();
  // Everything up to a comma or closing bracket of the group that it stands in.
  std::string_view element();

  [[noreturn]] void fail_expected(std::string_view what);
  [[noreturn]] void fail_at(const char* at, std::string_view message) const {
    source_->fail(at, ErrorKind::kParse, message);
  }

 private:
  void skip_spaces();
  // Past one token of balanced text, of which `open` brackets are still open.
  void skip_token(size_t& open);

  const Source* source_;
  const char* at_;
  const char* end_;
};

// A string without its escapes: \n, \t, \\, \" and \0A.
std::string unescaped(std::string_view quoted);

}  // namespace weft::reader
