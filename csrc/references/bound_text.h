// std::string to and from Python, for functions that nanobind binds; in place of nanobind's own
// header, which refuses text that is no UTF-8.
#pragma once

#include "references/bound.h"

namespace nanobind::detail {

template <>
struct type_caster<std::string> {
  NB_TYPE_CASTER(std::string, const_name("str"))

  bool from_python(handle source, uint8_t, cleanup_list*) noexcept {
    if (!PyUnicode_Check(source.ptr())) return false;
    try {
      value = weft::py::readable(source.ptr());
      return true;
    } catch (const weft::py::PythonError&) {
      PyErr_Clear();
      return false;
    }
  }
  static handle from_cpp(const std::string& text, rv_policy, cleanup_list*) noexcept {
    return PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size()));
  }
};

}  // namespace nanobind::detail
