// Products of a sparse matrix, a list of entries, with dense matrices. XLA's scatter, which adds up
// products one after the other with index arithmetic for each, takes several times as long.
#include <algorithm>

#include "kernels/list.h"

namespace weft {
namespace {

// Axes of a buffer but the last `own` ones, taken together: how many such arrays it holds.
int64_t batch_of(const ffi::Buffer& buffer, int64_t own) {
  int64_t count = 1;
  for (int64_t i = 0; i < buffer.rank - own; ++i) count *= buffer.dims[i];
  return count;
}

// The entries of one matrix. Their places are pairs of a row and a column, or of a column and a
// row.
template <typename T, typename Index>
struct Entries {
  const T* data;
  const Index *rows, *columns;  // of every other element
  int64_t count;

  Index row(int64_t i) const { return rows[2 * i]; }
  Index column(int64_t i) const { return columns[2 * i]; }
};

template <typename Index>
bool is_inside(Index i, int64_t size) {
  return i >= 0 && i < size;
}

// Entries of one row that stand together are added up before the sum is written.
template <typename T, typename Index>
void multiply_vector(const Entries<T, Index>& e, const T* x, int64_t num_columns, T* out,
                     int64_t num_rows) {
  int64_t i = 0;
  while (i < e.count) {
    Index row = e.row(i);
    T sum = 0;
    for (; i < e.count && e.row(i) == row; ++i)
      if (is_inside(e.column(i), num_columns)) sum += e.data[i] * x[e.column(i)];
    if (is_inside(row, num_rows)) out[row] += sum;
  }
}

template <typename T, typename Index>
[[gnu::always_inline]] inline void multiply_rows(const Entries<T, Index>& e, const T* x,
                                                 int64_t num_columns, T* out, int64_t num_rows,
                                                 int64_t width) {
  for (int64_t i = 0; i < e.count; ++i) {
    if (!is_inside(e.row(i), num_rows) || !is_inside(e.column(i), num_columns)) continue;
    const T* from = x + e.column(i) * width;
    T* to = out + e.row(i) * width;
    T value = e.data[i];
    for (int64_t j = 0; j < width; ++j) to[j] += value * from[j];
  }
}

// Four sums, so that one need not wait for the other.
template <typename T>
[[gnu::always_inline]] inline T dot(const T* x, const T* y, int64_t size) {
  T sums[4] = {};
  int64_t i = 0;
  for (; i + 4 <= size; i += 4)
    for (int64_t j = 0; j < 4; ++j) sums[j] += x[i + j] * y[i + j];
  for (; i < size; ++i) sums[0] += x[i] * y[i];
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

template <typename T, typename Index>
[[gnu::always_inline]] inline void sample(const T* lhs, int64_t num_rows, const T* rhs,
                                          int64_t num_columns, int64_t width, const Index* places,
                                          int64_t count, T* out) {
  for (int64_t i = 0; i < count; ++i)
    out[i] = is_inside(places[2 * i], num_rows) && is_inside(places[2 * i + 1], num_columns)
                 ? dot(lhs + places[2 * i] * width, rhs + places[2 * i + 1] * width, width)
                 : 0;
}

template <typename T, typename Index>
void rows_anywhere(const Entries<T, Index>& e, const T* x, int64_t num_columns, T* out,
                   int64_t num_rows, int64_t width) {
  multiply_rows(e, x, num_columns, out, num_rows, width);
}

#ifdef WEFT_X86
template <typename T, typename Index>
[[gnu::target("avx2,fma"),
  gnu::optimize("O3")]] void rows_avx2(const Entries<T, Index>& e, const T* x, int64_t num_columns,
                                       T* out, int64_t num_rows, int64_t width) {
  multiply_rows(e, x, num_columns, out, num_rows, width);
}
#endif

template <typename T, typename Index>
auto* fastest_rows() {
#ifdef WEFT_X86
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return rows_avx2<T, Index>;
#endif
  return rows_anywhere<T, Index>;
}

template <typename T>
const T* part_of(const ffi::Call* call, size_t operand, int64_t offset) {
  return static_cast<const T*>(call->arguments.items[operand]->data) + offset;
}

// data (batch, count), places (batch, count, 2), x (batch, columns, width)
//   -> (batch, rows, width)
template <typename T, typename Index>
void run_product(ffi::Call* call) {
  static auto* const rows_of = fastest_rows<T, Index>();
  const ffi::Buffer &data = *call->arguments.items[0], &x = *call->arguments.items[2],
                    &out = *call->results.items[0];
  bool transposed = *static_cast<const bool*>(call->attributes.items[0]->value);
  int64_t count = data.dims[data.rank - 1], width = x.dims[x.rank - 1];
  int64_t num_columns = x.dims[x.rank - 2], num_rows = out.dims[out.rank - 2];
  auto* to = static_cast<T*>(out.data);
  int64_t batch = batch_of(out, 2);
  std::fill_n(to, batch * num_rows * width, T(0));
  for (int64_t b = 0; b < batch; ++b) {
    const Index* places = part_of<Index>(call, 1, 2 * b * count);
    Entries<T, Index> e{part_of<T>(call, 0, b * count), places + transposed, places + !transposed,
                        count};
    const T* from = part_of<T>(call, 2, b * num_columns * width);
    T* part = to + b * num_rows * width;
    if (width == 1)
      multiply_vector(e, from, num_columns, part, num_rows);
    else
      rows_of(e, from, num_columns, part, num_rows, width);
  }
}

// lhs (batch, rows, width), rhs (batch, columns, width), places (batch, count, 2)
//   -> (batch, count)
template <typename T, typename Index>
void run_sampled(ffi::Call* call) {
  const ffi::Buffer &lhs = *call->arguments.items[0], &rhs = *call->arguments.items[1],
                    &out = *call->results.items[0];
  int64_t width = lhs.dims[lhs.rank - 1], num_rows = lhs.dims[lhs.rank - 2];
  int64_t num_columns = rhs.dims[rhs.rank - 2], count = out.dims[out.rank - 1];
  for (int64_t b = 0; b < batch_of(out, 1); ++b)
    sample(part_of<T>(call, 0, b * num_rows * width), num_rows,
           part_of<T>(call, 1, b * num_columns * width), num_columns, width,
           part_of<Index>(call, 2, 2 * b * count), count, static_cast<T*>(out.data) + b * count);
}

// begins (batch, rows + 1), columns (batch, count) -> (batch, count, 2)
template <typename Index>
void run_places(ffi::Call* call) {
  const ffi::Buffer &begins = *call->arguments.items[0], &columns = *call->arguments.items[1];
  int64_t num_rows = begins.dims[begins.rank - 1] - 1, count = columns.dims[columns.rank - 1];
  auto* to = static_cast<Index*>(call->results.items[0]->data);
  for (int64_t b = 0; b < batch_of(columns, 1); ++b) {
    const Index *ends = part_of<Index>(call, 0, b * (num_rows + 1) + 1),
                *from = part_of<Index>(call, 1, b * count);
    int64_t i = 0;
    for (int64_t row = 0; row <= num_rows; ++row) {
      int64_t end = row < num_rows ? std::min<int64_t>(ends[row], count) : count;
      for (; i < end; ++i, to += 2) {
        to[0] = static_cast<Index>(row);
        to[1] = from[i];
      }
    }
  }
}

// `run` for the dtypes of the values and of the indices.
template <typename Run>
void* by_dtype(ffi::Call* call, size_t indices, Run&& run) {
  if (ffi::answers_metadata(call)) return nullptr;
  bool narrow = call->arguments.items[indices]->dtype == ffi::Buffer::kS32;
  bool single = call->results.items[0]->dtype == ffi::Buffer::kF32;
  if (single)
    narrow ? run(float(), int32_t()) : run(float(), int64_t());
  else
    narrow ? run(double(), int32_t()) : run(double(), int64_t());
  return nullptr;
}

}  // namespace

void* csr_places(ffi::Call* call) {
  if (ffi::answers_metadata(call)) return nullptr;
  bool narrow = call->arguments.items[0]->dtype == ffi::Buffer::kS32;
  narrow ? run_places<int32_t>(call) : run_places<int64_t>(call);
  return nullptr;
}

void* sparse_product(ffi::Call* call) {
  return by_dtype(call, 1, [&](auto value, auto index) {
    run_product<decltype(value), decltype(index)>(call);
  });
}

void* sampled_product(ffi::Call* call) {
  return by_dtype(call, 2, [&](auto value, auto index) {
    run_sampled<decltype(value), decltype(index)>(call);
  });
}

}  // namespace weft
