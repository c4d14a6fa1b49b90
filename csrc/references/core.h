// Shared by all files of the extension module: owned references, error translation and settings.
// C++ code throws; every function that Python calls directly runs its body under guard(), which
// turns exceptions into Python errors.
#pragma once

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

// Settings that are a choice of a few are fields of one word, by the names that Python knows.
struct Setting {
  std::string_view name;
  uint32_t shift, bits;
  bool traced;  // changes what is traced: part of the keys of traces

  constexpr uint64_t mask() const { return ((uint64_t{1} << bits) - 1) << shift; }
  constexpr uint64_t of(uint64_t word) const { return (word & mask()) >> shift; }
};
// How much of a transfer between host and devices goes through.
enum class Guard : uint8_t { kAllow, kLog, kDisallow, kLogExplicit, kDisallowExplicit };

inline constexpr Setting kX64{"x64", 0, 1, true};
inline constexpr Setting kStrictPromotion{"strict_promotion", 1, 1, true};
inline constexpr Setting kRankPromotion{"rank_promotion", 2, 2, true};  // allow, warn, raise
inline constexpr Setting kPrecision{"matmul_precision", 4, 5, true};
inline constexpr Setting kPrngImpl{"prng_impl", 9, 2, true};
inline constexpr Setting kLegacyKeys{"legacy_keys", 11, 2, true};  // allow, warn, error
inline constexpr Setting kCustomPrng{"custom_prng", 13, 1, true};
inline constexpr Setting kSequential{"sequential", 14, 1, true};
inline constexpr Setting kKeyReuse{"key_reuse", 15, 1, true};
inline constexpr Setting kRandom{"random", 9, 7, true};  // all of weft.random
inline constexpr Setting kDisableJit{"disable_jit", 16, 1, false};
inline constexpr Setting kNoTracing{"no_tracing", 17, 1, false};
inline constexpr Setting kNoExecution{"no_execution", 18, 1, false};
inline constexpr Setting kCheckLeaks{"check_leaks", 19, 1, false};
inline constexpr Setting kLogCompiles{"log_compiles", 20, 1, false};
inline constexpr Setting kExplainMisses{"explain_misses", 21, 1, false};
// What the values that programs compute are looked at for: part of the keys of programs.
inline constexpr Setting kDebugNans{"debug_nans", 23, 1, false};
inline constexpr Setting kDebugInfs{"debug_infs", 24, 1, false};
// Number of what is added to seeds; 0 for nothing.
inline constexpr Setting kSeedOffset{"seed_offset", 25, 7, true};
inline constexpr Setting kGuardToDevice{"guard_to_device", 32, 3, false};
inline constexpr Setting kGuardToHost{"guard_to_host", 35, 3, false};
inline constexpr Setting kGuardBetweenDevices{"guard_between_devices", 38, 3, false};
inline constexpr Setting kFastArithmetic{"fast_arithmetic", 41, 1, true};
// Number of a combination of values of the contexts that users make; 0 for none.
inline constexpr Setting kUserContext{"user_context", 44, 20, true};
inline constexpr Setting kSettings[] = {kX64,           kStrictPromotion, kRankPromotion,
                                        kPrecision,     kPrngImpl,        kLegacyKeys,
                                        kCustomPrng,    kSequential,      kRandom,
                                        kDisableJit,    kNoTracing,       kNoExecution,
                                        kCheckLeaks,    kLogCompiles,     kExplainMisses,
                                        kKeyReuse,      kDebugNans,       kDebugInfs,
                                        kGuardToDevice, kGuardToHost,     kGuardBetweenDevices,
                                        kUserContext,   kSeedOffset,      kFastArithmetic};

inline constexpr uint64_t kTracedSettings = [] {
  uint64_t all = 0;
  for (const Setting& s : kSettings) all |= s.traced ? s.mask() : 0;
  return all;
}();

// Settings as the current thread sees them: its own value if it set one, else the process's.
uint64_t settings();
inline uint64_t traced_settings() { return settings() & kTracedSettings; }
inline bool is_on(const Setting& s) { return settings() & s.mask(); }
inline bool x64_enabled() { return is_on(kX64); }
inline uint64_t debug_flags() { return settings() >> kDebugNans.shift & 3; }
inline bool jit_disabled() { return is_on(kDisableJit); }
int default_device();  // index into the device table; -1: the first device

// What a thread set for itself; the fields that are not in `set` follow the process.
struct ThreadConfig {
  uint64_t set = 0, word = 0;
  std::optional<int> default_device;
};
ThreadConfig& thread_config();
struct ProcessConfig {
  uint64_t word = 0;
  int default_device = -1;
};
ProcessConfig& process_config();

// What Python passes to a function of the module, checked; OperandErrors name function and
// argument.
void check_count(const char* function, Py_ssize_t n, Py_ssize_t expected);
PyObject* list_argument(PyObject* o, const char* function, const char* argument);
PyObject* tuple_argument(PyObject* o, const char* function, const char* argument);
// The truth of an object; throws where that raises.
bool is_true(PyObject* o);
// Per item whether Python finds it true.
std::vector<bool> flags_argument(PyObject* tuple, const char* function, const char* argument);

// Interned attribute names; `s` must be a string literal.
PyObject* name(const char* s);

// Of names that the program itself chose; raises for text that is no UTF-8.
std::string_view utf8(PyObject* str);
// Text of users, names of files and functions among it, may hold what is no text, which Python
// keeps as lone surrogates; those are escaped.
std::string readable(PyObject* str);
Ref to_text(const std::string& s);  // bytes that are no UTF-8 are replaced
Ref to_tuple(std::span<const int64_t> xs);
Ref to_tuple(std::span<const std::string> xs);
// A size as Python sees it: an int or, for a symbolic dimension, an object of `hooks.dim_class`.
Ref from_size(int64_t size);
bool is_symbolic_dim(PyObject* o);
bool is_index(PyObject* o);  // symbolic dimensions as well
// An index-like object, or a symbolic dimension, as an int64; raises TypeError otherwise.
int64_t to_int(PyObject* o);

}  // namespace weft::py
