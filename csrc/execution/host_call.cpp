#include "execution/host_call.h"

#include <cstdint>

#if defined(__SSE2__) || defined(_M_X64)
#include <immintrin.h>
#endif

namespace nb = nanobind;

namespace weft::py {
namespace {

// The word of the processor that says how a thread computes with floats, and the bits of it that
// replace subnormal operands and results by zero. XLA sets them on the threads that run programs.
#if defined(__SSE2__) || defined(_M_X64)
constexpr uint64_t kFlushes = 0x8040;  // MXCSR: FTZ, DAZ (Intel SDM, volume 1, 10.2.3)
uint64_t control_word() { return _mm_getcsr(); }
void set_control_word(uint64_t word) { _mm_setcsr(static_cast<unsigned>(word)); }
#elif defined(__aarch64__)
constexpr uint64_t kFlushes = 0x1080000;  // FPCR: FZ, FZ16 (Arm Architecture Reference Manual)
uint64_t control_word() {
  uint64_t word;
  asm volatile("mrs %0, fpcr" : "=r"(word));
  return word;
}
void set_control_word(uint64_t word) { asm volatile("msr fpcr, %0" : : "r"(word)); }
#else
constexpr uint64_t kFlushes = 0;
uint64_t control_word() { return 0; }
void set_control_word(uint64_t) {}
#endif

// Python's arithmetic within a program: this thread keeps subnormal numbers while one lives.
class KeepsSubnormals {
 public:
  KeepsSubnormals() : before_(control_word()) { set_control_word(before_ & ~kFlushes); }
  ~KeepsSubnormals() { set_control_word(before_); }
  KeepsSubnormals(const KeepsSubnormals&) = delete;
  KeepsSubnormals& operator=(const KeepsSubnormals&) = delete;

 private:
  uint64_t before_;
};

}  // namespace

void bind_host_call(nb::module_& m) {
  m.def(
      "keeping_subnormals",
      [](nb::callable function, nb::args args) {
        KeepsSubnormals scope;
        return nb::object(function(*args));
      },
      "Calls a function with subnormal numbers as IEEE 754 has them, whatever the thread does.");
  m.def(
      "flushes_subnormals", [] { return (control_word() & kFlushes) != 0; },
      "Whether this thread replaces subnormal numbers by zero.");
}

}  // namespace weft::py
