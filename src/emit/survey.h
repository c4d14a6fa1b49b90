// Counting what a module is made of while it is written: see ModuleSurvey in weft/emit.h.
#pragma once

#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "weft/emit.h"

namespace weft {

// The lines of one function, whose values have names of its own.
class FunctionSurvey {
 public:
  // A line "%2 = stablehlo.add %0, %1 : ...", given without its results; `name` is that of the
  // first of them.
  void add(std::string_view name, std::string_view line);

 private:
  friend class Surveyor;
  static constexpr uint32_t kArgument = UINT32_MAX;
  struct Row {
    uint64_t own = 0;  // a hash of all but the names of operands
    std::vector<uint32_t> operands;
    size_t uses = 0;
    double elements = 0;  // of the largest array
    double size = 0;      // of the largest result
    bool computes, is_function, is_stored, joins;
    bool reads_stored = false;  // directly or not, an array that the program itself has stored
  };
  // The old emitters' kernels that read such arrays write results of the same size into them. LLVM
  // does not vectorise those.
  void count_scalar_work();

  std::unordered_map<uint64_t, uint32_t> numbers_;  // by hashes of names
  std::vector<Row> rows_;
  ModuleSurvey counts_;
};

// The survey of a module, from those of its functions.
class Surveyor {
 public:
  // Once all lines of the function are there.
  void add(FunctionSurvey& function);
  // A value of the module.
  void note(TypeRef type);
  ModuleSurvey survey() const;

 private:
  ModuleSurvey counts_;
  std::unordered_set<uint64_t> distinct_, unlike_;
};

}  // namespace weft
