// Literals. Rounding is checked against a decoder of each narrow format: for many doubles the
// result must be the nearest of all the values that the format has, ties going to even.
#include <cmath>
#include <limits>
#include <vector>

#include "check.h"
#include "weft/literal.h"

using namespace weft;
using enum DType;

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

struct Format {
  DType dtype;
  int exponent_bits;
  int mantissa_bits;
  int bias;
  int specials;  // codes at the top that are no finite numbers
};

// f16 stands for the formats with infinities, which differ in widths only.
const Format kFormats[] = {
    {kF4E2M1FN, 2, 1, 1, 0}, {kF8E3M4, 3, 4, 3, 16},        {kF8E4M3, 4, 3, 7, 8},
    {kF8E4M3FN, 4, 3, 7, 1}, {kF8E4M3B11FNUZ, 4, 3, 11, 0}, {kF8E4M3FNUZ, 4, 3, 8, 0},
    {kF8E5M2, 5, 2, 15, 4},  {kF8E5M2FNUZ, 5, 2, 16, 0},    {kF16, 5, 10, 15, 1024},
    {kBF16, 8, 7, 127, 128},
};

// The non-negative finite values in ascending order; the index of each is its code.
std::vector<double> finite_values(const Format& f) {
  std::vector<double> values;
  int codes = 1 << (f.exponent_bits + f.mantissa_bits);
  for (int code = 0; code < codes - f.specials; ++code) {
    int exponent = code >> f.mantissa_bits;
    double mantissa = code & ((1 << f.mantissa_bits) - 1);
    double scale = std::ldexp(1.0, -f.mantissa_bits);
    values.push_back(exponent == 0 ? std::ldexp(mantissa * scale, 1 - f.bias)
                                   : std::ldexp(1.0 + mantissa * scale, exponent - f.bias));
  }
  return values;
}

void check_rounds(const Format& f, double x, double expected) {
  double got = round_to(f.dtype, x);
  bool same = std::isnan(expected) ? std::isnan(got) : got == expected;
  if (!same) {
    test::report_failure(__FILE__, __LINE__,
                         cat(short_name(f.dtype), " of ", x, " is ", got, ", not ", expected));
  }
}

}  // namespace

TEST(rounding_to_narrow_floats) {
  for (const Format& f : kFormats) {
    std::vector<double> values = finite_values(f);
    for (size_t i = 0; i + 1 < values.size(); ++i) {
      double low = values[i], high = values[i + 1], middle = (low + high) / 2;
      double even = i % 2 == 0 ? low : high;
      for (double sign : {1.0, -1.0}) {
        check_rounds(f, sign * low, sign * low);
        check_rounds(f, sign * middle, sign * even);
        check_rounds(f, sign * std::nextafter(middle, 0), sign * low);
        check_rounds(f, sign * std::nextafter(middle, kInf), sign * high);
      }
    }
    double max = values.back();
    double step = max - values[values.size() - 2];
    double over = f.dtype == kF4E2M1FN ? max : f.specials > 1 ? kInf : kNan;
    check_rounds(f, max, max);
    check_rounds(f, std::nextafter(max + step / 2, 0), max);
    check_rounds(f, std::nextafter(max + step / 2, kInf), over);
    check_rounds(f, 1e300, over);
    check_rounds(f, kInf, over);
    check_rounds(f, 5e-324, 0.0);
    if (f.dtype != kF4E2M1FN) check_rounds(f, kNan, kNan);
  }
}

TEST(rounding_special_cases) {
  CHECK(std::signbit(round_to(kF16, -0.0)));
  CHECK(std::signbit(round_to(kF8E4M3, -1e-30)));
  CHECK(!std::signbit(round_to(kF8E4M3FNUZ, -0.0)));
  CHECK(!std::signbit(round_to(kF8E5M2FNUZ, -1e-30)));
  CHECK(round_to(kF4E2M1FN, kNan) == 0 && std::signbit(round_to(kF4E2M1FN, kNan)));
  CHECK_EQ(round_to(kF8E8M0FNU, 1.4), 1.0);
  CHECK_EQ(round_to(kF8E8M0FNU, 1.5), 2.0);
  CHECK_EQ(round_to(kF8E8M0FNU, 3.0), 4.0);
  CHECK_EQ(round_to(kF8E8M0FNU, 1e-40), std::ldexp(1.0, -127));
  CHECK_EQ(round_to(kF8E8M0FNU, 1.4 * std::ldexp(1.0, 127)), std::ldexp(1.0, 127));
  for (double x : {0.0, -1.0, kInf, kNan, 1.5 * std::ldexp(1.0, 127)}) {
    CHECK(std::isnan(round_to(kF8E8M0FNU, x)));
  }
  CHECK_EQ(round_to(kF32, 0.1), static_cast<double>(0.1f));
  CHECK_EQ(round_to(kF32, 1e39), kInf);
  CHECK_EQ(round_to(kF64, 0.1), 0.1);
  CHECK_THROWS(kDtype, "float dtype", round_to(kI32, 1.0));
}

TEST(integers_wrap) {
  CHECK_EQ(make_literal(kI8, int64_t{200}).as_int(), int64_t{-56});
  CHECK_EQ(make_literal(kU8, int64_t{-1}).as_int(), int64_t{255});
  CHECK_EQ(make_literal(kI4, int64_t{8}).as_int(), int64_t{-8});
  CHECK_EQ(make_literal(kU2, int64_t{5}).as_int(), int64_t{1});
  CHECK_EQ(make_literal(kU64, int64_t{-1}).lo, ~uint64_t{0});
  CHECK(make_literal(kBool, int64_t{2}) == make_literal(kBool, int64_t{1}));
}

TEST(integers_round_once_to_floats) {
  // 2**60 + 2**36 + 1 lies just above halfway between two floats; as a double it is halfway.
  int64_t x = (int64_t{1} << 60) + (int64_t{1} << 36) + 1;
  CHECK_EQ(make_literal(kF32, x).as_double(), static_cast<double>(static_cast<float>(x)));
  CHECK_EQ(make_literal(kF32, -x).as_double(), static_cast<double>(static_cast<float>(-x)));
  CHECK_EQ(make_literal(kF64, x).as_double(), static_cast<double>(x));
  Literal max = make_literal(kU64, int64_t{-1});
  CHECK_EQ(convert(max, kF64).as_double(), 18446744073709551616.0);
  CHECK_EQ(convert(max, kF32).as_double(), 18446744073709551616.0);
  CHECK_EQ(make_literal(kF64, std::numeric_limits<int64_t>::min()).as_double(), -0x1p63);
}

TEST(floats_truncate_to_integers) {
  CHECK_EQ(make_literal(kI32, 2.7).as_int(), int64_t{2});
  CHECK_EQ(make_literal(kI32, -2.7).as_int(), int64_t{-2});
  CHECK_EQ(make_literal(kI32, 3e9).as_int(), int64_t{2147483647});
  CHECK_EQ(make_literal(kI8, -kInf).as_int(), int64_t{-128});
  CHECK_EQ(make_literal(kI64, 1e30).as_int(), std::numeric_limits<int64_t>::max());
  CHECK_EQ(make_literal(kI64, -1e30).as_int(), std::numeric_limits<int64_t>::min());
  CHECK_EQ(make_literal(kU64, 1e30).lo, ~uint64_t{0});
  CHECK_EQ(make_literal(kU8, -1.0).as_int(), int64_t{0});
  CHECK_EQ(make_literal(kI32, kNan).as_int(), int64_t{0});
  CHECK(make_literal(kBool, kNan).as_bool());
  CHECK(!make_literal(kBool, -0.0).as_bool());
}

TEST(conversion) {
  Literal c = make_literal(kC64, {0.1, -2.0});
  CHECK_EQ(c.as_double(), static_cast<double>(0.1f));
  CHECK_EQ(convert(c, kF64).as_double(), static_cast<double>(0.1f));
  CHECK(convert(make_literal(kC64, {0.0, 1.0}), kBool).as_bool());
  CHECK_EQ(convert(make_literal(kBool, int64_t{1}), kF32).as_double(), 1.0);
  CHECK_EQ(convert(make_literal(kF32, 2.5), kC64).imag(), 0.0);
  CHECK(make_literal(kF32, kNan) == make_literal(kF32, -kNan));
  CHECK(make_literal(kF32, 0.0) != make_literal(kF32, -0.0));
}

TEST(literal_text) {
  CHECK_EQ(cat(make_literal(kF32, 2.0)), "2.0");
  CHECK_EQ(cat(make_literal(kF32, 0.1)), "0.10000000149011612");
  CHECK_EQ(cat(make_literal(kI32, int64_t{-3})), "-3");
  CHECK_EQ(cat(make_literal(kU64, int64_t{-1})), "18446744073709551615");
  CHECK_EQ(cat(make_literal(kBool, int64_t{1})), "True");
  CHECK_EQ(cat(make_literal(kF32, kNan)), "nan");
  CHECK_EQ(cat(make_literal(kC64, {1.0, 2.0})), "(1+2j)");
  CHECK_EQ(cat(make_literal(kC64, {0.0, 1.0})), "1j");
  CHECK_EQ(cat(make_literal(kC64, {-0.0, 0.0})), "(-0+0j)");
  CHECK_EQ(cat(make_literal(kC64, {0.5, -kInf})), "(0.5-infj)");
  CHECK_EQ(cat(make_literal(kC128, {kNan, kNan})), "(nan+nanj)");
}
