// Products of small matrices. XLA's own, which are made for large ones, take a microsecond before
// they begin; of 32 x 32 elements that is twice as long as the product itself.
#include <algorithm>
#include <cstring>

#include "kernels/list.h"

namespace weft {
namespace {

constexpr int64_t kMostTerms = 256, kMostProducts = 1 << 15;

// Columns are computed in groups of one vector, rows in groups that fill the processor's registers:
// a sum waits four cycles for its next term, and two terms can start in each.
constexpr int64_t kVectorBytes = 64, kFewRows = 4, kManyRows = 8;

// Where an operand's elements are: how far apart those of neighbouring rows (of lhs) or columns (of
// rhs) are, and those of neighbouring terms of a sum.
template <typename T>
struct Side {
  const T* data;
  int64_t size, step, term_step;
};

template <int64_t kRows, typename T>
[[gnu::always_inline]] inline void multiply(const Side<T>& lhs, const Side<T>& rhs, int64_t terms,
                                            T* out) {
  constexpr int64_t kWidth = kVectorBytes / static_cast<int64_t>(sizeof(T));
  typedef T Vector __attribute__((vector_size(kVectorBytes)));
  T packed[kMostTerms * kWidth];
  for (int64_t column = 0; column < rhs.size; column += kWidth) {
    int64_t width = std::min(kWidth, rhs.size - column);
    const T* panel = rhs.data + column * rhs.step;
    int64_t panel_step = rhs.term_step;
    if (rhs.step != 1 || width < kWidth) {
      for (int64_t t = 0; t < terms; ++t)
        for (int64_t i = 0; i < kWidth; ++i)
          packed[t * kWidth + i] =
              i < width ? panel[t * rhs.term_step + i * rhs.step] : static_cast<T>(0);
      panel = packed;
      panel_step = kWidth;
    }
    for (int64_t row = 0; row < lhs.size; row += kRows) {
      // Rows that are not there are the last one, again.
      const T* x[kRows];
      for (int64_t i = 0; i < kRows; ++i)
        x[i] = lhs.data + std::min(row + i, lhs.size - 1) * lhs.step;
      Vector sums[kRows] = {};
      for (int64_t t = 0; t < terms; ++t) {
        Vector y;
        std::memcpy(&y, panel + t * panel_step, sizeof(y));
        for (int64_t i = 0; i < kRows; ++i) sums[i] += x[i][t * lhs.term_step] * y;
      }
      // Of a known number of steps, and of copies: sums that have addresses would not be in
      // registers.
      for (int64_t i = 0; i < kRows; ++i) {
        if (row + i >= lhs.size) break;
        Vector sum = sums[i];
        T* to = out + (row + i) * rhs.size + column;
        if (width == kWidth) {
          std::memcpy(to, &sum, sizeof(sum));
        } else {
          std::memcpy(to, &sum, static_cast<size_t>(width) * sizeof(T));
        }
      }
    }
  }
}

template <typename T>
using Multiply = void(const Side<T>&, const Side<T>&, int64_t, T*);

template <typename T>
void multiply_anywhere(const Side<T>& lhs, const Side<T>& rhs, int64_t terms, T* out) {
  multiply<kFewRows>(lhs, rhs, terms, out);
}

#ifdef WEFT_X86
template <typename T>
[[gnu::target("avx2,fma")]] void multiply_avx2(const Side<T>& lhs, const Side<T>& rhs,
                                               int64_t terms, T* out) {
  multiply<kFewRows>(lhs, rhs, terms, out);
}

template <typename T>
[[gnu::target("avx512f,fma")]] void multiply_avx512(const Side<T>& lhs, const Side<T>& rhs,
                                                    int64_t terms, T* out) {
  multiply<kManyRows>(lhs, rhs, terms, out);
}
#endif

template <typename T>
Multiply<T>* fastest() {
#ifdef WEFT_X86
  if (__builtin_cpu_supports("avx512f")) return multiply_avx512<T>;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return multiply_avx2<T>;
#endif
  return multiply_anywhere<T>;
}

// A side with the axis along which it is summed; a vector has one row, or one column.
template <typename T>
Side<T> side_of(const ffi::Buffer& buffer, int64_t contract) {
  const T* data = static_cast<const T*>(buffer.data);
  if (buffer.rank == 1) return {data, 1, 0, 1};
  int64_t row_step = buffer.dims[1];
  return contract == 0 ? Side<T>{data, buffer.dims[1], 1, row_step}
                       : Side<T>{data, buffer.dims[0], row_step, 1};
}

template <typename T>
void run(const ffi::Buffer& lhs, const ffi::Buffer& rhs, int64_t lhs_contract, int64_t rhs_contract,
         ffi::Buffer& out) {
  static Multiply<T>* const chosen = fastest<T>();
  chosen(side_of<T>(lhs, lhs_contract), side_of<T>(rhs, rhs_contract), lhs.dims[lhs_contract],
         static_cast<T*>(out.data));
}

}  // namespace

void* small_product(ffi::Call* call) {
  if (ffi::answers_metadata(call)) return nullptr;
  auto axis = [&](size_t i) {
    return *static_cast<const int64_t*>(call->attributes.items[i]->value);
  };
  const ffi::Buffer &lhs = *call->arguments.items[0], &rhs = *call->arguments.items[1];
  auto* kernel = lhs.dtype == ffi::Buffer::kF32 ? run<float> : run<double>;
  kernel(lhs, rhs, axis(0), axis(1), *call->results.items[0]);
  return nullptr;
}

bool is_small_product(int64_t rows, int64_t terms, int64_t columns) {
  auto fits = [](int64_t size, int64_t most) { return size > 0 && size <= most; };
  return fits(terms, kMostTerms) && fits(rows, kMostProducts) && fits(columns, kMostProducts) &&
         rows * columns <= kMostProducts / terms;
}

}  // namespace weft
