// A small test harness. TEST(name) { CHECK(...); CHECK_EQ(a, b); CHECK_THROWS(kind, text, expr); }
// registers itself; a failed check is printed and counted, and the test goes on.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "weft/error.h"

namespace weft::test {

// How many random inputs a test makes, and which.
inline int64_t number_from_environment(const char* name, int64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::atoll(text) : otherwise;
}

struct Registration {
  Registration(const char* file, const char* name, void (*run)());
};

void report_failure(const char* file, int line, const std::string& message);
// The rest of the running test is left out, which the program says at its end.
void leave_out(const std::string& why);

// What a failed CHECK_EQ prints of a value.
template <typename T>
std::string show(const T& x) {
  if constexpr (requires(Text& t) { t << x; }) {
    return cat(x);
  } else {
    return "<value>";
  }
}

template <typename A, typename B>
void check_equal(const char* file, int line, const char* what, const A& a, const B& b) {
  if (!(a == b)) {
    report_failure(file, line, cat(what, "\n  left:  ", show(a), "\n  right: ", show(b)));
  }
}

template <typename F>
void check_throws(const char* file, int line, const char* what, ErrorKind kind,
                  std::string_view text, F&& f) {
  try {
    f();
  } catch (const Error& error) {
    if (error.kind() != kind || std::string_view(error.what()).find(text) == text.npos) {
      report_failure(file, line,
                     cat(what, "\n  threw: ", error.what(), "\n  kind ",
                         static_cast<int>(error.kind()), ", expected: ", text));
    }
    return;
  }
  report_failure(file, line, cat(what, "\n  threw nothing; expected: ", text));
}

}  // namespace weft::test

#define TEST(name)                                                                           \
  static void test_##name();                                                                 \
  static const ::weft::test::Registration registration_##name(__FILE__, #name, test_##name); \
  static void test_##name()

#define CHECK(condition)                                                            \
  do {                                                                              \
    if (!(condition)) ::weft::test::report_failure(__FILE__, __LINE__, #condition); \
  } while (false)

#define CHECK_EQ(a, b) ::weft::test::check_equal(__FILE__, __LINE__, #a " == " #b, (a), (b))

// `text` must occur in the message.
#define CHECK_THROWS(kind, text, expression)                                                 \
  ::weft::test::check_throws(__FILE__, __LINE__, #expression, ::weft::ErrorKind::kind, text, \
                             [&] { (void)(expression); })
