// How long something took, for what the user is told of it.
#pragma once

#include <chrono>

#include "references/core.h"

namespace weft::py {

inline Ref py_seconds(double count) { return Ref::checked(PyFloat_FromDouble(count)); }

class Timer {
 public:
  double passed() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }
  Ref seconds() const { return py_seconds(passed()); }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace weft::py
