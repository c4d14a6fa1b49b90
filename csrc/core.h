// Shared by all files of the extension module: owned references, error translation and settings.
// C++ code throws; every function that Python calls directly runs its body under guard(), which
// turns exceptions into Python errors.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/weft.h"

namespace weft::py {

// A Python error is set; unwinds to guard().
struct PythonError {};

// An owned reference.
class Ref {
 public:
  Ref() = default;
  static Ref steal(PyObject* o) { return Ref(o); }
  static Ref borrow(PyObject* o) {
    Py_XINCREF(o);
    return Ref(o);
  }
  // For results of C API calls: null means that a Python error is set.
  static Ref checked(PyObject* o) {
    if (!o) throw PythonError{};
    return Ref(o);
  }
  Ref(const Ref& o) : object_(o.object_) { Py_XINCREF(object_); }
  Ref(Ref&& o) noexcept : object_(std::exchange(o.object_, nullptr)) {}
  Ref& operator=(Ref o) noexcept {
    std::swap(object_, o.object_);
    return *this;
  }
  ~Ref() { Py_XDECREF(object_); }

  PyObject* get() const { return object_; }
  PyObject* release() { return std::exchange(object_, nullptr); }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  explicit Ref(PyObject* o) : object_(o) {}
  PyObject* object_ = nullptr;
};

inline void check(int status) {
  if (status < 0) throw PythonError{};
}

// Sets the Python error of the exception in flight.
void translate_exception();

template <typename F>
PyObject* guard(F&& body) {
  try {
    return body();
  } catch (...) {
    translate_exception();
    return nullptr;
  }
}
template <typename F>
int guard_int(F&& body) {
  try {
    return body();
  } catch (...) {
    translate_exception();
    return -1;
  }
}

// Raises weft.errors.<name>(message + the user's line).
[[noreturn]] void raise(const char* error_class, const std::string& message);
template <typename... Parts>
[[noreturn]] void raise_error(const char* error_class, const Parts&... parts) {
  raise(error_class, cat(parts...));
}

// Settings as the current thread sees them: its own value if it set one, else the process's.
bool x64_enabled();
bool jit_disabled();
int default_device();  // index into the device table; -1: the first device
// What the values that programs compute are looked at for.
enum DebugFlags : uint32_t { kDebugNans = 1, kDebugInfs = 2 };
uint32_t debug_flags();

// What a thread set for itself; unset members follow the process.
struct ThreadConfig {
  std::optional<bool> x64, disable_jit;
  std::optional<int> default_device;
  uint32_t debug = 0, debug_set = 0;  // flags, and which of them are the thread's own
};
ThreadConfig& thread_config();
struct ProcessConfig {
  bool x64 = false;
  bool disable_jit = false;
  int default_device = -1;
  uint32_t debug = 0;
};
ProcessConfig& process_config();

// What Python passes to a function of the module, checked; OperandErrors name function and
// argument.
void check_count(const char* function, Py_ssize_t n, Py_ssize_t expected);
PyObject* list_argument(PyObject* o, const char* function, const char* argument);
PyObject* tuple_argument(PyObject* o, const char* function, const char* argument);
// Per item whether Python finds it true.
std::vector<bool> flags_argument(PyObject* tuple, const char* function, const char* argument);

// Interned attribute names; `s` must be a string literal.
PyObject* name(const char* s);

// Of names that the program itself chose; raises for text that is no UTF-8.
std::string_view utf8(PyObject* str);
// Text of users, names of files and functions among it, may hold what is no text, which Python
// keeps as lone surrogates; those are escaped.
std::string readable(PyObject* str);
Ref to_tuple(std::span<const int64_t> xs);
// An index-like object as an int64; raises TypeError otherwise.
int64_t to_int(PyObject* o);

}  // namespace weft::py
