// What XLA's algebraic simplifier makes of float arithmetic that is not the same arithmetic, and
// the lines that keep it from that.
//
// XLA 0.10.2 to 0.12 on CPU (findings/xla_quotients.sh, findings/xla_joined_constants.sh) makes
//
//   x / broadcast(y)               x * broadcast(1 / y), for a constant y as well
//   (x / y) / z, x / (y / z)       x / (y * z), (x * z) / y
//   x / exp(y), x / y**z           x * exp(-y), x * y**-z
//   x / sqrt(y)                    x * rsqrt(y)
//   (x + c) + d, (x * c) * d       x + (c + d), x * (c * d), for constants c and d; of products
//                                  for a d that is broadcast, too
//   exp(x) * exp(y), exp(x) ** y   exp(x + y), exp(x * y)
//   log(exp(x)), log(x ** y)       x, y * log(x); and the like of sqrt(x), rsqrt(x)
//   sqrt(x * x)                    abs(x)
//
// each of which rounds differently, and is 0, infinite or nan where the other is a number. It does
// so for operations that it sees side by side. `clamp(v, v, v)` is v, and LLVM makes nothing of it;
// the simplifier does not look through it. A broadcast divisor y becomes `clamp(y, x, y)`: the
// simplifier moves what depends on the broadcast alone in front of it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "weft/small_vector.h"

namespace weft {

// What the simplifier may know of a value when it comes to one that uses it.
enum Seen : uint16_t {
  kConstant = 1 << 0,
  kUniform = 1 << 1,  // the broadcast of fewer elements
  kSum = 1 << 2,      // of a constant and something
  kScaled = 1 << 3,   // the product of what is uniform and something
  kProduct = 1 << 4,  // any
  kQuotient = 1 << 5,
  kExponential = 1 << 6,
  kRoot = 1 << 7,
  kPower = 1 << 8,
};
inline constexpr uint16_t kJoined = 0xFFFF & ~(kConstant | kUniform);
// Functions take their arguments for any of these, which few operations ask for. The others have a
// guard where a function is called.
inline constexpr uint16_t kPassed = kProduct | kQuotient | kRoot | kPower;
using SeenList = SmallVector<uint16_t, 8>;

// What an operation is to the simplifier.
enum class HloKind : uint8_t {
  kOther,
  kConstant,
  kIota,
  kBroadcast,
  kMove,  // its result may be an operand, or it is moved across others
  kSum,
  kMultiply,
  kMagnitude,
  kDot,
  kDivide,
  kQuotient,  // XLA writes it as one
  kExponential,
  kLog,
  kSquareRoot,
  kCubeRoot,
  kPower,
  kExpanded,  // XLA writes it in terms of others
};

// The name of a value: "%7", the result "%7#1" of line 7, "%arg7" or a constant, "%c_7" or
// "%cst_7".
struct HloName {
  enum class Of : uint8_t { kLine, kArgument, kConstant };
  std::string_view text;
  Of of;
  uint32_t number = 0;  // of the line or argument

  // The name at the beginning of a text that begins with '%'.
  explicit HloName(std::string_view text);
};

// One line of StableHLO, "stablehlo.add %0, %cst : tensor<4xf32>", as far as that matters here.
struct HloLine {
  struct Operand {
    HloName name;
    uint16_t seen = 0;  // Seen, by whoever knows the values
  };
  std::string_view text;
  HloKind kind;
  SmallVector<Operand, 4> operands;  // up to the first region or attribute

  explicit HloLine(std::string_view text);
  std::string_view type() const;         // of the first operand
  std::string_view result_type() const;  // of the first result
};

// Whether values of a type are floats of 16 bits and more, or complex numbers.
bool is_exact_float(std::string_view type);
bool is_complex_type(std::string_view type);

// What is seen of the result.
uint16_t seen_of_result(const HloLine& line);

// Per operand: what must not be seen of it by this operation, of all that is seen.
struct Guards {
  bool divisor = false;  // the second operand, together with the first
  SmallVector<size_t, 2> joined;
};
Guards guards_of(const HloLine& line);

// Whether the simplifier may take a result of signed integers for one of at least 0, which it is
// not where the operation overflows: absolute values, and squares. What is a square is seen by XLA
// alone, as it inlines calls, and makes multiplications of products and sums of products.
bool hides_overflow(const HloLine& line);

}  // namespace weft
