// Runs the registered tests; an argument selects those whose "file.name" contains it.
#include <cstdio>
#include <exception>
#include <vector>

#include "check.h"

namespace weft::test {

namespace {

struct Test {
  std::string name;
  void (*run)();
};

std::vector<Test>& tests() {
  static std::vector<Test> all;
  return all;
}

int failures_in_test = 0;
std::string left_out;  // why the running test is, in part

}  // namespace

Registration::Registration(const char* file, const char* name, void (*run)()) {
  std::string_view stem(file);
  stem.remove_prefix(stem.find_last_of('/') + 1);
  stem = stem.substr(0, stem.find('.'));
  tests().push_back({cat(stem, ".", name), run});
}

void report_failure(const char* file, int line, const std::string& message) {
  ++failures_in_test;
  std::fprintf(stderr, "%s:%d: %s\n", file, line, message.c_str());
}

void leave_out(const std::string& why) { left_out = why; }

}  // namespace weft::test

int main(int argc, char** argv) {
  using namespace weft::test;
  int passed = 0;
  int failed = 0;
  int in_part = 0;
  for (const auto& test : tests()) {
    if (argc > 1 && test.name.find(argv[1]) == std::string::npos) continue;
    failures_in_test = 0;
    left_out.clear();
    try {
      test.run();
    } catch (const std::exception& error) {
      report_failure(test.name.c_str(), 0, weft::cat("threw ", error.what()));
    }
    if (failures_in_test) std::fprintf(stderr, "FAILED %s\n", test.name.c_str());
    if (!left_out.empty())
      std::fprintf(stderr, "LEFT OUT %s: %s\n", test.name.c_str(), left_out.c_str());
    in_part += !left_out.empty();
    ++(failures_in_test ? failed : passed);
  }
  std::printf("%d passed, %d failed", passed, failed);
  if (in_part) std::printf("; %d left out in part", in_part);
  std::printf("\n");
  return failed == 0 ? 0 : 1;
}
