// Between owned references and nanobind, for functions that nanobind binds.
#pragma once

#include <nanobind/nanobind.h>

#include "references/core.h"

namespace weft::py {

inline nanobind::object take(Ref r) { return nanobind::steal(r.release()); }
inline nanobind::object or_none(const Ref& r) {
  return r ? nanobind::borrow(r.get()) : nanobind::none();
}

// Runs f, which calls Python through nanobind; its errors become ours, which the drivers let
// through.
template <typename F>
auto calling_python(F&& f) {
  try {
    return f();
  } catch (nanobind::python_error& e) {
    e.restore();
    throw PythonError{};
  }
}

}  // namespace weft::py
