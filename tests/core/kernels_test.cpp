// Kernels of weft's own, called as XLA calls them; and which programs become calls of one.
#include "weft/kernels.h"

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "check.h"
#include "kernels/ffi_abi.h"
#include "weft/emit.h"
#include "weft/format.h"
#include "weft/registry.h"

using namespace weft;

namespace {

ffi::Handler* handler(std::string_view name) {
  for (const Kernel& k : kernels())
    if (k.name == name) return reinterpret_cast<ffi::Handler*>(k.handler);
  return nullptr;
}

// A matrix in memory of its own, of exactly its size, so that the sanitizer sees what reads past
// it.
template <typename T>
struct Matrix {
  std::vector<int64_t> dims;
  std::vector<T> data;

  ffi::Buffer buffer() {
    int32_t dtype = sizeof(T) == 4 ? ffi::Buffer::kF32 : ffi::Buffer::kF64;
    return {sizeof(ffi::Buffer), nullptr, dtype, data.data(), static_cast<int64_t>(dims.size()),
            dims.data()};
  }
};

template <typename T>
void multiply(Matrix<T>& lhs, Matrix<T>& rhs, int64_t lhs_axis, int64_t rhs_axis, Matrix<T>& out) {
  ffi::Buffer x = lhs.buffer(), y = rhs.buffer(), z = out.buffer();
  ffi::Buffer *arguments[] = {&x, &y}, *results[] = {&z};
  ffi::Scalar axes[] = {{0, &lhs_axis}, {0, &rhs_axis}};
  const ffi::Scalar* attributes[] = {&axes[0], &axes[1]};
  ffi::Call call{};
  call.arguments = {0, nullptr, 2, nullptr, arguments};
  call.results = {0, nullptr, 1, nullptr, results};
  call.attributes = {0, nullptr, 2, nullptr, nullptr, attributes};
  CHECK(handler(kSmallProduct)(&call) == nullptr);
}

struct Sizes {
  int64_t rows, terms, columns;
};

// All ways to lay the sides out; a side of one row or column also as a vector.
template <typename T>
void check_product(const Sizes& n) {
  std::mt19937 random(static_cast<uint32_t>(n.rows * 7 + n.columns));
  auto value = [&] { return static_cast<T>(static_cast<int>(random() % 17) - 8); };
  std::vector<T> x(static_cast<size_t>(n.rows * n.terms)),
      y(static_cast<size_t>(n.terms * n.columns)),
      expected(static_cast<size_t>(n.rows * n.columns));
  for (T& v : x) v = value();
  for (T& v : y) v = value();
  auto at = [](int64_t row, int64_t columns, int64_t column) {
    return static_cast<size_t>(row * columns + column);
  };
  for (int64_t r = 0; r < n.rows; ++r)
    for (int64_t c = 0; c < n.columns; ++c)
      for (int64_t t = 0; t < n.terms; ++t)
        expected[at(r, n.columns, c)] += x[at(r, n.terms, t)] * y[at(t, n.columns, c)];
  // A side with its terms along an axis of two, or along its only one (axis 2).
  auto side = [&](const std::vector<T>& from, int64_t size, bool terms_first, int64_t axis) {
    if (axis == 2) return Matrix<T>{{n.terms}, from};
    if ((axis == 0) == terms_first)
      return Matrix<T>{axis == 0 ? std::vector{n.terms, size} : std::vector{size, n.terms}, from};
    Matrix<T> other{axis == 0 ? std::vector{n.terms, size} : std::vector{size, n.terms},
                    std::vector<T>(from.size())};
    int64_t rows = terms_first ? n.terms : size, columns = terms_first ? size : n.terms;
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < columns; ++c) other.data[at(c, rows, r)] = from[at(r, columns, c)];
    return other;
  };
  for (int64_t lhs_axis = 0; lhs_axis < (n.rows == 1 ? 3 : 2); ++lhs_axis)
    for (int64_t rhs_axis = 0; rhs_axis < (n.columns == 1 ? 3 : 2); ++rhs_axis) {
      Matrix<T> lhs = side(x, n.rows, false, lhs_axis), rhs = side(y, n.columns, true, rhs_axis);
      Matrix<T> out{{n.rows, n.columns}, std::vector<T>(expected.size())};
      multiply(lhs, rhs, lhs_axis % 2, rhs_axis % 2, out);
      CHECK(out.data == expected);  // of small whole numbers, which have no rounding
    }
}

const Sizes kSizes[] = {{1, 1, 1},    {2, 3, 4},   {5, 7, 9},      {4, 16, 16}, {17, 33, 31},
                        {32, 32, 32}, {1, 256, 1}, {3, 256, 17},   {1, 5, 40},  {40, 5, 1},
                        {100, 1, 99}, {64, 8, 64}, {2, 2, 1 << 13}};

}  // namespace

TEST(small_products) {
  for (const Sizes& n : kSizes) {
    CHECK(is_small_product(n.rows, n.terms, n.columns));
    check_product<float>(n);
    check_product<double>(n);
  }
}

TEST(small_products_of_infinities) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  // Columns that are not there do not reach those that are.
  Matrix<float> lhs{{2, 2}, {kInf, 1, 0, 2}}, rhs{{2, 1}, {1, 3}}, out{{2, 1}, {0, 0}};
  multiply(lhs, rhs, 1, 0, out);
  CHECK(out.data == std::vector<float>({kInf, 6}));
  Matrix<float> zero{{2, 1}, {0, 3}};
  multiply(lhs, zero, 1, 0, out);
  CHECK(std::isnan(out.data[0]));
  CHECK_EQ(out.data[1], 6.0f);
}

TEST(what_is_a_small_product) {
  CHECK(!is_small_product(0, 3, 3));
  CHECK(!is_small_product(3, 0, 3));
  CHECK(!is_small_product(1, 257, 1));
  CHECK(!is_small_product(64, 64, 64));
  CHECK(!is_small_product(int64_t{1} << 40, 1, int64_t{1} << 40));
}

TEST(handlers_say_which_api_they_know) {
  for (const Kernel& k : kernels()) {
    ffi::Metadata metadata{};
    ffi::MetadataExtension asked{{sizeof(asked), ffi::Extension::kMetadata, nullptr}, &metadata};
    ffi::Call call{};
    call.extensions = &asked.base;
    CHECK(reinterpret_cast<ffi::Handler*>(k.handler)(&call) == nullptr);
    CHECK_EQ(metadata.version.major, 0);
    CHECK_EQ(metadata.version.minor, 3);
  }
}

TEST(programs_that_are_calls_of_kernels) {
  auto product = [](std::string_view x, std::string_view y, std::string_view out,
                    std::string_view numbers, std::string_view more = "") {
    return parse(cat("{ lambda ; a:", x, " b:", y, ". let c:", out,
                     " = dot_general[dimension_numbers=", numbers, more, "] a b in (c,) }"));
  };
  auto text = [](const GraphRef& graph, bool own_kernels) {
    EmitOptions options;
    options.own_kernels = own_kernels;
    return emit_stablehlo(*graph, options).text;
  };
  auto calls = [&](const GraphRef& graph) {
    bool is_call = is_kernel_call(*graph);
    CHECK_EQ(text(graph, true).find(kSmallProduct) != std::string::npos, is_call);
    CHECK(text(graph, false).find(kSmallProduct) == std::string::npos);
    return is_call;
  };
  constexpr std::string_view kMatrices = "(([1], [0]), ([], []))";
  CHECK(calls(product("f32[4,8]", "f32[8,2]", "f32[4,2]", kMatrices)));
  CHECK(calls(product("f64[4,8]", "f64[8]", "f64[4]", kMatrices)));
  CHECK(calls(product("f32[8]", "f32[8]", "f32[]", "(([0], [0]), ([], []))")));
  CHECK(!calls(product("f32[64,64]", "f32[64,64]", "f32[64,64]", kMatrices)));
  CHECK(!calls(product("f32[4,0]", "f32[0,2]", "f32[4,2]", kMatrices)));
  CHECK(!calls(product("bf16[4,8]", "bf16[8,2]", "bf16[4,2]", kMatrices)));
  CHECK(!calls(product("i32[4,8]", "i32[8,2]", "i32[4,2]", kMatrices)));
  CHECK(!calls(product("f32[3,4,8]", "f32[3,8,2]", "f32[3,4,2]", "(([2], [1]), ([0], [0]))")));
  CHECK(!calls(product("f32[4,8]", "f32[4,8]", "f32[]", "(([0, 1], [0, 1]), ([], []))")));
  CHECK(!calls(
      product("f32[4,8]", "f32[8,2]", "f64[4,2]", kMatrices, " preferred_element_type=float64")));
  // More than one operation: XLA makes one program of them.
  GraphRef two = parse(
      "{ lambda ; a:f32[4,4]. let b:f32[4,4] = dot_general[dimension_numbers=(([1], [0]), ([], "
      "[]))] a a; c:f32[4,4] = neg b in (c,) }");
  CHECK(!is_kernel_call(*two));
}
