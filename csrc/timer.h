// How long something took, for what the user is told of it.
#pragma once

#include <chrono>

#include "core.h"

namespace weft::py {

class Timer {
 public:
  Ref seconds() const {
    std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start_;
    return Ref::checked(PyFloat_FromDouble(passed.count()));
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace weft::py
