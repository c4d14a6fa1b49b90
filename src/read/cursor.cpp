// Tokens of MLIR text.
#include "read/cursor.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "weft/text.h"

namespace weft::reader {

namespace {

enum Kind : uint8_t {
  kSpace = 1,
  kLetter = 2,
  kDigit = 4,
  kOfWord = 8,
  kOfName = 16,
  kBracket = 32,
  kPlain = 64  // nothing to who looks for the bracket that closes another
};

constexpr std::array<uint8_t, 256> kKinds = [] {
  std::array<uint8_t, 256> kinds{};
  auto add = [&](std::string_view chars, int kind) {
    for (char c : chars) kinds[static_cast<unsigned char>(c)] |= static_cast<uint8_t>(kind);
  };
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
  constexpr std::string_view kDigits = "0123456789";
  add(" \n\t\r", kSpace);
  add(kLetters, kLetter | kOfWord | kOfName);
  add(kDigits, kDigit | kOfWord | kOfName);
  add("$.", kOfWord | kOfName);
  add("-", kOfName);
  add("()[]{}<>", kBracket);
  for (size_t c = 0; c < kinds.size(); ++c) {
    constexpr std::string_view kSpecial = "()[]{}<>\"-/";
    if (kSpecial.find(static_cast<char>(c)) == kSpecial.npos) kinds[c] |= kPlain;
  }
  return kinds;
}();

bool is(char c, int kinds) { return kKinds[static_cast<unsigned char>(c)] & kinds; }

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

int Source::line(const char* at) const {
  if (!known_ || at < known_) {
    known_ = text_.data();
    known_line_ = 1;
  }
  known_line_ += static_cast<int>(std::count(known_, at, '\n'));
  known_ = at;
  return known_line_;
}

void Source::fail(const char* at, ErrorKind kind, std::string_view message) const {
  if (!holds(at)) at = text_.data();
  std::string_view before = text_.substr(0, static_cast<size_t>(at - text_.data()));
  size_t line_begin = before.rfind('\n') + 1;  // 0 where there is none
  TextPlace place{static_cast<size_t>(line(at)), before.size() - line_begin + 1};
  throw Located(kind, cat("line ", place.line, ", column ", place.column, ": ", message), place);
}

void Cursor::skip_spaces() {
  while (at_ < end_) {
    if (is(*at_, kSpace)) {
      ++at_;
    } else if (*at_ == '/' && here(1) == '/') {
      at_ = std::find(at_, end_, '\n');
    } else {
      return;
    }
  }
}

bool Cursor::accept_word(std::string_view word) {
  skip_space();
  if (!rest().starts_with(word) || is(here(word.size()), kOfWord)) return false;
  at_ += word.size();
  return true;
}

std::string_view Cursor::word() {
  skip_space();
  const char* begin = at_;
  if (at_ < end_ && is(*at_, kLetter))
    while (at_ < end_ && is(*at_, kOfWord)) ++at_;
  return since(begin);
}

std::string_view Cursor::name() {
  if (here() == '"') return quoted();
  const char* begin = at_;
  if (is(here(), kDigit)) {
    while (at_ < end_ && is(*at_, kDigit)) ++at_;
  } else {
    while (at_ < end_ && is(*at_, kOfName)) ++at_;
  }
  if (at_ == begin) fail_expected("a name");
  return since(begin);
}

std::string_view Cursor::quoted() {
  expect("\"", "to begin a string");
  const char* begin = at_;
  while (at_ < end_ && *at_ != '"') at_ += *at_ == '\\' && at_ + 1 < end_ ? 2 : 1;
  if (at_ >= end_) fail_at(begin - 1, "expected a closing \" for this string; got the end");
  return {begin, static_cast<size_t>(at_++ - begin)};
}

int64_t Cursor::integer() {
  skip_space();
  int64_t x = 0;
  auto [end, error] = std::from_chars(at_, end_, x);
  if (error != std::errc{}) fail_expected("an integer of 64 bits");
  at_ = end;
  return x;
}

void Cursor::skip_token(size_t& open) {
  char c = *at_;
  if (c == '"') {
    quoted();
  } else if (c == '-' && here(1) == '>') {  // of a function's type: no bracket
    at_ += 2;
  } else if (c == '/' && here(1) == '/') {
    skip_space();
  } else {
    if (is(c, kBracket)) (c == '(' || c == '[' || c == '{' || c == '<') ? ++open : --open;
    ++at_;
    if (open > 0)
      while (at_ < end_ && is(*at_, kPlain)) ++at_;
  }
}

std::string_view Cursor::group() {
  skip_space();
  const char* begin = at_;
  size_t open = 0;
  do {
    if (at_ == end_) fail_at(begin, "expected this bracket to be closed; got the end");
    skip_token(open);
  } while (open > 0);
  return since(begin);
}

std::string_view Cursor::value() {
  skip_space();
  const char* begin = at_;
  for (;;) {
    if (here() == '"') {
      quoted();
    } else if (is(here(), kBracket) && here() != ')' && here() != ']' && here() != '}' &&
               here() != '>') {
      group();
    } else if (is(here(), kOfName) || here() == '#' || here() == '@' || here() == '!' ||
               here() == '+') {
      if (here() == '-' && here(1) == '>') break;
      ++at_;
    } else {
      break;
    }
  }
  if (at_ == begin) fail_expected("a value");
  return since(begin);
}

std::string_view Cursor::element() {
  skip_space();
  const char* begin = at_;
  size_t open = 0;
  while (at_ < end_) {
    char c = *at_;
    if (open == 0 && (c == ',' || c == ')' || c == ']' || c == '}' || c == '>')) break;
    skip_token(open);
  }
  std::string_view found = since(begin);
  while (!found.empty() && is(found.back(), kSpace)) found.remove_suffix(1);
  return found;
}

void Cursor::fail_expected(std::string_view what) {
  skip_space();
  constexpr size_t kLongest = 40;
  const char* begin = at_;
  const char* end = at_;
  while (end < end_ && is(*end, kOfName) && end - begin < static_cast<std::ptrdiff_t>(kLongest))
    ++end;
  if (end == begin && end < end_) ++end;
  std::string_view got(begin, static_cast<size_t>(end - begin));
  fail_at(begin, cat("expected ", what, "; got ",
                     got.empty() ? std::string("the end of the text") : cat('"', got, '"')));
}

std::string unescaped(std::string_view quoted) {
  std::string out;
  out.reserve(quoted.size());
  for (size_t i = 0; i < quoted.size(); ++i) {
    if (quoted[i] != '\\' || i + 1 == quoted.size()) {
      out.push_back(quoted[i]);
      continue;
    }
    char next = quoted[++i];
    int high = hex_digit(next), low = i + 1 < quoted.size() ? hex_digit(quoted[i + 1]) : -1;
    if (high >= 0 && low >= 0) {
      out.push_back(static_cast<char>(high * 16 + low));
      ++i;
    } else {
      out.push_back(next == 'n' ? '\n' : next == 't' ? '\t' : next);
    }
  }
  return out;
}

}  // namespace weft::reader
