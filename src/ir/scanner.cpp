// Tokens, and the line and column of a position when an error needs them.
#include "ir/scanner.h"

#include <charconv>

#include "weft/dims.h"

namespace weft {

namespace {

class CharSet {
 public:
  constexpr explicit CharSet(std::string_view chars) {
    for (char c : chars) words_[index(c)] |= bit(c);
  }
  constexpr bool operator()(char c) const { return words_[index(c)] & bit(c); }

 private:
  static constexpr size_t index(char c) { return static_cast<unsigned char>(c) / 64; }
  static constexpr uint64_t bit(char c) {
    return uint64_t{1} << (static_cast<unsigned char>(c) % 64);
  }
  uint64_t words_[4] = {};
};

constexpr CharSet is_space(" \n\t\r");
constexpr CharSet is_letter("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_");
constexpr CharSet is_letter_or_digit(
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789");

}  // namespace

void Scanner::skip_space() {
  while (pos_ < text_.size()) {
    if (is_space(text_[pos_])) {
      ++pos_;
    } else if (text_[pos_] == '#') {
      while (pos_ < text_.size() && text_[pos_] != '\n') ++pos_;
    } else {
      return;
    }
  }
}

char Scanner::peek() {
  skip_space();
  return pos_ < text_.size() ? text_[pos_] : 0;
}

bool Scanner::accept(std::string_view token) {
  skip_space();
  return accept_here(token);
}

bool Scanner::accept_here(std::string_view token) {
  if (!text_.substr(pos_).starts_with(token)) return false;
  pos_ += token.size();
  return true;
}

void Scanner::expect(std::string_view token, std::string_view what) {
  if (!accept(token)) fail_expected(cat('"', token, "\" ", what));
}

void Scanner::expect_tuple(std::string_view what) {
  skip_space();
  size_t begin = pos_;
  identifier();
  if (accept_here("(")) return;
  pos_ = begin;
  expect("(", what);
}

void Scanner::skip_field() {
  skip_space();
  size_t begin = pos_;
  if (identifier().empty() || !accept_here("=")) pos_ = begin;
}

std::string_view Scanner::identifier() {
  skip_space();
  size_t end = pos_;
  if (end < text_.size() && is_letter(text_[end])) {
    while (end < text_.size() && is_letter_or_digit(text_[end])) ++end;
  }
  std::string_view found = text_.substr(pos_, end - pos_);
  pos_ = end;
  return found;
}

std::string_view Scanner::word(std::string_view stops) {
  skip_space();
  CharSet is_stop(stops);
  size_t end = pos_;
  while (end < text_.size() && !is_space(text_[end]) && !is_stop(text_[end])) ++end;
  std::string_view found = text_.substr(pos_, end - pos_);
  pos_ = end;
  return found;
}

std::string_view Scanner::type_text() {
  size_t begin = pos_;
  identifier();
  if (accept_here("<")) {  // "key<fry>"
    while (pos_ < text_.size() && text_[pos_] != '>' && text_[pos_] != '[') ++pos_;
    accept_here(">");
  }
  if (pos_ < text_.size() && text_[pos_] == '[') {
    while (pos_ < text_.size() && text_[pos_] != ']') ++pos_;
    if (pos_ < text_.size()) ++pos_;
  }
  return text_.substr(begin, pos_ - begin);
}

void Scanner::skip_braces() {
  size_t begin = pos_;
  size_t open = 0;
  do {
    char c = peek();
    if (c == 0) fail_at(begin, "expected a \"}\" for this \"{\"; got the end of the text");
    if (c == '"' || c == '\'') {
      quoted(c);
      continue;
    }
    if (c == '{') ++open;
    if (c == '}') --open;
    ++pos_;
  } while (open > 0);
}

void Scanner::skip_value() {
  skip_space();
  size_t open = 0;
  while (pos_ < text_.size()) {
    char c = text_[pos_];
    if (c == '"' || c == '\'') {
      quoted(c);
    } else if (c == '{') {
      skip_braces();
    } else if (c == '(' || c == '[' || c == '<') {
      ++open, ++pos_;
    } else if (c == ')' || c == ']' || c == '>') {
      if (open == 0) return;
      --open, ++pos_;
    } else if (open == 0 && (c == ',' || is_space(c))) {
      return;
    } else {
      ++pos_;
    }
  }
}

std::string Scanner::quoted(char quote) {
  expect({&quote, 1}, "to begin a string");
  size_t begin = pos_;
  std::string out;
  while (pos_ < text_.size() && text_[pos_] != quote) {
    char c = text_[pos_++];
    if (c == '\\' && pos_ < text_.size()) {
      c = text_[pos_++];
      if (c == 'n') c = '\n';
    }
    out.push_back(c);
  }
  if (pos_ == text_.size())
    fail_at(begin, cat("expected a closing ", quote, "; got the end of the text"));
  ++pos_;
  return out;
}

int64_t Scanner::integer() {
  skip_space();
  bool is_numpys = accept_here("np.int64(");  // JAX prints some of its attributes so
  int64_t x = 0;
  auto [end, error] = std::from_chars(text_.data() + pos_, text_.data() + text_.size(), x);
  size_t size = ReadingScope::current() ? end_of_dim(text_.substr(pos_)) : 0;
  if (!is_numpys && size > 0 && end != text_.data() + pos_ + size) {
    x = parse_dim(text_.substr(pos_, size), ReadingScope::current());
    pos_ += size;
    return x;
  }
  if (error != std::errc{}) fail_expected("an integer");
  pos_ = static_cast<size_t>(end - text_.data());
  if (is_numpys) expect(")", "after an integer of NumPy");
  return x;
}

double Scanner::real() {
  skip_space();
  double x = 0;
  auto [end, error] = std::from_chars(text_.data() + pos_, text_.data() + text_.size(), x);
  if (error != std::errc{}) fail_expected("a number");
  pos_ = static_cast<size_t>(end - text_.data());
  return x;
}

void Scanner::fail_expected(std::string_view what) {
  skip_space();
  size_t begin = pos_;
  std::string_view got = word("[](){}=:;,");
  if (got.empty()) got = text_.substr(begin, 1);
  constexpr size_t kLongest = 40;
  std::string found = got.empty() ? "the end of the text" : cat('"', got.substr(0, kLongest), '"');
  fail_at(begin, cat("expected ", what, "; got ", found));
}

void Scanner::fail_at(size_t position, std::string_view message) const {
  size_t line = 1;
  size_t line_begin = 0;
  for (size_t i = 0; i < position && i < text_.size(); ++i) {
    if (text_[i] == '\n') {
      ++line;
      line_begin = i + 1;
    }
  }
  TextPlace place{line, position - line_begin + 1};
  throw Error(ErrorKind::kParse, cat("line ", place.line, ", column ", place.column, ": ", message),
              place);
}

}  // namespace weft
