// What of a module's text decides how hard XLA's compiler should try.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace weft::py {

// Counts of operations, but for those that only move elements or make constants.
struct ModuleSurvey {
  size_t operations = 0;
  // Those that differ in more than their operands and lines.
  size_t distinct = 0;
  // Those that differ in this, or in what their operands come from, a few operations back: of the
  // kernels that XLA will make, about as many are unlike others.
  size_t unlike = 0;
  size_t shifts = 0;
  size_t reductions = 0;
  // About how many kernels XLA makes, beside the last one.
  size_t kernels = 0;
  // Operations that only move elements.
  size_t moves = 0;
  // Operations on single elements, functions counted as three, of kernels that the old emitters
  // leave scalar.
  int64_t scalar_work = 0;
  // Whether there are complex numbers, or types of 4 and 8 bits.
  bool has_rare_types = false;
};

ModuleSurvey survey(std::string_view module);

void bind_module_survey(nanobind::module_& m);

}  // namespace weft::py
