// Mutants of programs of every op and of regions (programs.txt, from
// tests/support/dump_programs.py). What the parser accepts has to verify, to print and read back as
// it is, and to go through passes, transforms and emission: with a result or with a typed error.
// WEFT_MUTATIONS says how many mutants there are (a million take about an hour with sanitizers),
// WEFT_SEED which.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "check.h"
#include "weft/emit.h"
#include "weft/passes.h"
#include "weft/registry.h"
#include "weft/transforms.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif

using namespace weft;

namespace {

std::string current;  // what is being tried, to be shown if it is the end of the process
std::string step;

[[maybe_unused]] void show_current() {
  std::fprintf(stderr, "\nin %s of\n%s\n", step.c_str(), current.c_str());
}

const std::vector<std::string>& programs() {
  static const std::vector<std::string> all = [] {
    std::ifstream in(WEFT_TEST_PROGRAMS);
    std::vector<std::string> lines;
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    return lines;
  }();
  return all;
}

// A program as words, numbers and punctuation.
using Tokens = std::vector<std::string>;

bool in_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '.' || c == '-';
}

Tokens tokens_of(std::string_view text) {
  Tokens tokens;
  for (size_t i = 0; i < text.size();) {
    size_t end = i + 1;
    if (in_word(text[i]))
      while (end < text.size() && in_word(text[end])) ++end;
    tokens.emplace_back(text.substr(i, end - i));
    i = end;
  }
  return tokens;
}

bool is_number(const std::string& token) {
  return (token[0] >= '0' && token[0] <= '9') ||
         (token.size() > 1 && token[0] == '-' && token[1] >= '0' && token[1] <= '9');
}

constexpr std::array kNumbers = {"0",
                                 "1",
                                 "-1",
                                 "2",
                                 "3",
                                 "4",
                                 "7",
                                 "-2",
                                 "100",
                                 "2147483647",
                                 "2147483648",
                                 "-2147483648",
                                 "4294967296",
                                 "36028797018963968",
                                 "1152921504606846975",
                                 "1152921504606846976",
                                 "2305843009213693952",
                                 "4611686018427387903",
                                 "4611686018427387904",
                                 "-4611686018427387904",
                                 "9223372036854775807",
                                 "9223372036854775806",
                                 "-9223372036854775808",
                                 "9223372036854775808",
                                 "18446744073709551615",
                                 "1e999",
                                 "-0.0",
                                 "nan"};

class Mutator {
 public:
  explicit Mutator(uint32_t seed) : random_(seed) {}

  std::string mutant() {
    Tokens tokens = tokens_of(pick(programs()));
    for (size_t n = 1 + below(3); n > 0 && !tokens.empty(); --n) mutate(tokens);
    std::string text;
    for (const std::string& token : tokens) text += token;
    if (below(20) == 0 && !text.empty()) text[below(text.size())] = static_cast<char>(below(256));
    return text;
  }
  size_t below(size_t n) { return random_() % n; }

 private:
  template <typename T>
  const typename T::value_type& pick(const T& from) {
    return from[below(from.size())];
  }

  // A random token for which f holds, if there is one.
  template <typename F>
  size_t find(const Tokens& tokens, F&& f) {
    size_t start = below(tokens.size());
    for (size_t i = 0; i < tokens.size(); ++i) {
      size_t at = (start + i) % tokens.size();
      if (f(tokens[at])) return at;
    }
    return start;
  }

  void mutate(Tokens& tokens) {
    auto is_word = [](const std::string& t) { return in_word(t[0]) && !is_number(t); };
    size_t at = below(tokens.size()), other = below(tokens.size());
    switch (below(10)) {
      case 0:
      case 1:
      case 2:
      case 3:
        tokens[find(tokens, is_number)] = pick(kNumbers);
        return;
      case 4:  // one word for another
        tokens[find(tokens, is_word)] = tokens[find(tokens, is_word)];
        return;
      case 5: {  // one for one of another program
        Tokens from = tokens_of(pick(programs()));
        tokens[find(tokens, is_word)] = from[find(from, is_word)];
        return;
      }
      case 6: {  // an item more or less
        size_t number = find(tokens, is_number);
        if (below(2)) {
          tokens.insert(tokens.begin() + static_cast<std::ptrdiff_t>(number),
                        {pick(kNumbers), ",", " "});
        } else {
          tokens.erase(tokens.begin() + static_cast<std::ptrdiff_t>(number));
        }
        return;
      }
      case 7:
        std::swap(tokens[at], tokens[other]);
        return;
      case 8: {  // a stretch again, elsewhere
        size_t length = std::min(1 + below(40), tokens.size() - at);
        Tokens stretch(tokens.begin() + static_cast<std::ptrdiff_t>(at),
                       tokens.begin() + static_cast<std::ptrdiff_t>(at + length));
        tokens.insert(tokens.begin() + static_cast<std::ptrdiff_t>(other), stretch.begin(),
                      stretch.end());
        return;
      }
      default:
        size_t length = std::min(1 + below(6), tokens.size() - at);
        tokens.erase(tokens.begin() + static_cast<std::ptrdiff_t>(at),
                     tokens.begin() + static_cast<std::ptrdiff_t>(at + length));
    }
  }

  std::mt19937 random_;
};

// "line 1, column 57: expected result 0 of pad to be f32[9]; got f32[7]": the text with the type
// that was expected, so that what follows from changed attributes is seen.
bool repaired(std::string& text, std::string_view message) {
  size_t column_at = message.find("column "), expected_at = message.find(" to be ");
  size_t end = message.find("; got ");
  if (message.find(": expected result ") == message.npos || expected_at == message.npos ||
      end == message.npos || message.find("line 1,") != 0)
    return false;
  size_t column = static_cast<size_t>(std::atoll(message.data() + column_at + 7));
  size_t colon = text.find(':', column - 1), close = text.find(']', column - 1);
  if (colon == text.npos || close == text.npos || colon > close) return false;
  text.replace(colon + 1, close - colon, message.substr(expected_at + 7, end - expected_at - 7));
  return true;
}

// Runs f, which may throw a typed error.
template <typename F>
void try_step(const char* name, F&& f) {
  step = name;
  try {
    f();
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kInternal)
      weft::test::report_failure(__FILE__, __LINE__, cat(step, ": ", error.what(), "\n", current));
  }
}

void try_everything(const GraphRef& graph) {
  step = "printing";
  std::string text = print(*graph);
  GraphRef again = parse(text);
  if (!equal(*again, *graph) || print(*again) != text ||
      again->structural_hash() != graph->structural_hash())
    weft::test::report_failure(__FILE__, __LINE__, "reads back differently: " + current);
  step = "verify";
  verify(*graph);
  Mask differentiable;
  for (TypeRef type : graph->input_types()) differentiable.push_back(is_inexact(type->dtype()));
  try_step("emission", [&] { emit_stablehlo(*graph); });
  try_step("cost", [&] { graph_cost(*graph); });
  try_step("passes", [&] {
    GraphRef made = optimize(graph);
    verify(*made);
    std::string names[] = {"inline", "canonicalize", "fuse"};
    verify(*run_passes(made, names));
  });
  try_step("jvp", [&] { verify(*jvp(graph, {.in_mask = differentiable})->graph); });
  try_step("vjp", [&] { verify(*vjp(graph, {.in_mask = differentiable})->graph); });
  for (int64_t size : {int64_t{2}, int64_t{1} << 59}) {
    try_step("vmap", [&] {
      BatchDims dims(graph->num_inputs(), 0);
      verify(*vmap(graph, {.in_dims = dims, .size = size})->graph);
    });
  }
}

}  // namespace

TEST(programs_read_back_as_they_are) {
  CHECK(programs().size() > 300);
  for (const std::string& program : programs()) {
    GraphRef graph = parse(program);
    verify(*graph);
    CHECK(is_portable(*graph));
    CHECK(equal(*parse(print(*graph)), *graph));
  }
}

TEST(mutants_never_crash) {
  if (programs().empty()) return;
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_set_death_callback(show_current);
#endif
  int64_t count = weft::test::number_from_environment("WEFT_MUTATIONS", 20'000);
  Mutator mutator(static_cast<uint32_t>(weft::test::number_from_environment("WEFT_SEED", 1)));
  int64_t parsed = 0;
  for (int64_t i = 0; i < count; ++i) {
    current = mutator.mutant();
    GraphRef graph;
    for (int repairs = 0; repairs < 20 && !graph; ++repairs) {
      step = "parsing";
      try {
        graph = parse(current);
      } catch (const Error& error) {
        if (error.kind() != ErrorKind::kParse)
          weft::test::report_failure(__FILE__, __LINE__, cat(error.what(), "\n", current));
        if (!repaired(current, error.what())) break;
      }
    }
    if (!graph) continue;
    ++parsed;
    if (std::getenv("WEFT_TRACE")) std::fprintf(stderr, "%s\n", current.c_str());
    try_everything(graph);
  }
  CHECK(parsed * 20 > count);
  std::printf("%lld mutants, %lld of them programs\n", static_cast<long long>(count),
              static_cast<long long>(parsed));
}
