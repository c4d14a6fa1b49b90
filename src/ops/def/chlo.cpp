// Functions that CHLO has an op for, in terms of other ops; see chlo.h.
//
// Those of complex numbers: W. Kahan, "Branch cuts for complex elementary functions" (1987).
#include "ops/def/chlo.h"

#include <limits>
#include <numbers>

namespace weft {
namespace {

Val number_like(Val x, double value) { return full(*x.builder, x.type(), value); }
Val is_below(Val x, double bound) { return lt(x, number_like(x, bound)); }
Val with_sign_of(Val size, Val x) { return select(lt(x, zeros_like(x)), -size, size); }

// ---- Real numbers: float32 and float64

Val real_arcsine(Val x) { return atan2(x, sqrt((1.0 - x) * (1.0 + x)) + 1.0) * 2.0; }
Val real_arccosine(Val x) { return atan2(sqrt(1.0 - x), sqrt(1.0 + x)) * 2.0; }

// Of numbers beyond this the square plus 1 is the square, to the last bit.
double large(Val x) { return x.dtype() == DType::kF64 ? 0x1p28 : 0x1p14; }

Val real_inverse_sinh(Val x) {
  Val size = abs(x), is_large = gt(size, number_like(x, large(x)));
  Val a = select(is_large, ones_like(x), size);
  Val near = log1p(a + square(a) / (sqrt(square(a) + 1.0) + 1.0));
  Val far = log(select(is_large, size, ones_like(x))) + std::numbers::ln2;
  Val y = select(is_large, far, near);
  return select(eq(x, zeros_like(x)), x, with_sign_of(y, x));
}

Val real_inverse_cosh(Val x) {
  Val is_large = gt(x, number_like(x, large(x)));
  Val more = select(is_large, zeros_like(x), x - 1.0);
  Val near = log1p(more + sqrt(more * (more + 2.0)));
  Val far = log(select(is_large, x, ones_like(x))) + std::numbers::ln2;
  Val nan = number_like(x, std::numeric_limits<double>::quiet_NaN());
  return select(is_below(x, 1.0), nan, select(is_large, far, near));
}

Val real_inverse_tanh(Val x) {
  Val size = abs(x);
  Val y = log1p(size * 2.0 / (1.0 - size)) * 0.5;
  return select(eq(x, zeros_like(x)), x, with_sign_of(y, x));
}

// ---- Complex numbers

Val times_i(Val z) { return complex(-imag(z), real(z)); }
Val times_minus_i(Val z) { return complex(imag(z), -real(z)); }
Val plus(Val z, double x) { return complex(real(z) + x, imag(z)); }
// 1 - z, with the imaginary part's sign of -z.
Val one_minus(Val z) { return complex(1.0 - real(z), -imag(z)); }

// The parts of x * y and of conj(x) * y.
Val real_of_product(Val x, Val y) { return real(x) * real(y) - imag(x) * imag(y); }
Val imag_of_conjugate_product(Val x, Val y) { return real(x) * imag(y) - imag(x) * real(y); }
Val real_of_conjugate_product(Val x, Val y) { return real(x) * real(y) + imag(x) * imag(y); }

Val complex_arcsine(Val z) {
  Val less = sqrt(one_minus(z)), more = sqrt(plus(z, 1.0));
  return complex(atan2(real(z), real_of_product(less, more)),
                 real_inverse_sinh(imag_of_conjugate_product(less, more)));
}

Val complex_arccosine(Val z) {
  Val less = sqrt(one_minus(z)), more = sqrt(plus(z, 1.0));
  return complex(atan2(real(less), real(more)) * 2.0,
                 real_inverse_sinh(imag_of_conjugate_product(more, less)));
}

Val complex_inverse_cosh(Val z) {
  Val less = sqrt(plus(z, -1.0)), more = sqrt(plus(z, 1.0));
  return complex(real_inverse_sinh(real_of_conjugate_product(less, more)),
                 atan2(imag(less), real(more)) * 2.0);
}

Val complex_inverse_tanh(Val z) {
  Val x = real(z), y = imag(z);
  Val re = log1p(x * 4.0 / (square(1.0 - x) + square(y))) * 0.25;
  Val im = atan2(y * 2.0, (1.0 - x) * (x + 1.0) - square(y)) * 0.5;
  return complex(re, im);
}

Val complex_square(Val z) {
  Val x = real(z), y = imag(z);
  return complex((x - y) * (x + y), x * y * 2.0);
}

// ---- Of both

Val arcsine(Val x) { return is_complex(x.dtype()) ? complex_arcsine(x) : real_arcsine(x); }
Val arccosine(Val x) { return is_complex(x.dtype()) ? complex_arccosine(x) : real_arccosine(x); }

Val arctangent(Val x) {
  if (!is_complex(x.dtype())) return atan2(x, ones_like(x));
  return times_minus_i(complex_inverse_tanh(times_i(x)));
}

Val inverse_sinh(Val x) {
  if (!is_complex(x.dtype())) return real_inverse_sinh(x);
  return times_minus_i(complex_arcsine(times_i(x)));
}

Val inverse_cosh(Val x) {
  return is_complex(x.dtype()) ? complex_inverse_cosh(x) : real_inverse_cosh(x);
}

Val inverse_tanh(Val x) {
  return is_complex(x.dtype()) ? complex_inverse_tanh(x) : real_inverse_tanh(x);
}

struct Function {
  std::string_view name;
  Val (*of)(Val x);
};
constexpr Function kFunctions[] = {
    {"chlo.acos", arccosine},        {"chlo.acosh", inverse_cosh}, {"chlo.asin", arcsine},
    {"chlo.asinh", inverse_sinh},    {"chlo.atan", arctangent},    {"chlo.atanh", inverse_tanh},
    {"chlo.square", complex_square},
};

// The bits of floats of one sign count up from those of 0: the next one has the next number.
Val next_after(Val x, Val y) {
  int bits = info(x.dtype()).bits;
  DType whole = bits == 64 ? DType::kI64 : bits == 32 ? DType::kI32 : DType::kI16;
  if (bits < 16) whole = DType::kI8;
  auto bits_of = [&](Val v) { return apply1("bitcast_convert_type", {v}, {{"new_dtype", whole}}); };
  auto float_of = [&](Val v) {
    return apply1("bitcast_convert_type", {v}, {{"new_dtype", x.dtype()}});
  };
  Val number = bits_of(x), one = ones_like(number), zero = zeros_like(x);
  Val is_away = eq(gt(y, x), gt(x, zero));
  Val next = float_of(select(is_away, number + one, number - one));
  Val least = float_of(one);
  next = select(eq(x, zero), select(gt(y, zero), least, -least), next);
  Val is_number = logical_and(eq(x, x), eq(y, y));
  return select(is_number, select(eq(x, y), y, next), x + y);
}

}  // namespace

Val in_plain_ops(std::string_view chlo, const Vals& operands) {
  if (chlo == "chlo.next_after") return next_after(operands[0], operands[1]);
  Val x = operands[0];
  DType dtype = x.dtype();
  for (const Function& f : kFunctions)
    if (f.name == chlo) {
      bool is_narrow = info(dtype).bits < 32;
      return convert(f.of(is_narrow ? convert(x, DType::kF32) : x), dtype);
    }
  fail(ErrorKind::kInternal, "[emit_stablehlo] expected an op of CHLO with a formula; got ", chlo);
}

}  // namespace weft
