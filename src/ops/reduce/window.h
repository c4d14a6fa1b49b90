// Arithmetic on windows that slide over axes, for convolutions and reductions of windows.
#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

#include "ops/def/axes.h"
#include "weft/checked.h"
#include "weft/op.h"

namespace weft {

// A window on one axis: `size` elements, every `dilation`-th, at every `stride`-th place of an axis
// with `low` and `high` places before and behind it and `base_dilation - 1` places between
// elements.
struct Window {
  int64_t size = 1, stride = 1, low = 0, high = 0, base_dilation = 1, dilation = 1;
};

// Padding and padded sizes are at most this, so that sums of a few of them fit.
inline constexpr int64_t kMaxWindowed = int64_t{1} << 60;

// From the first to the last of n elements that stand `by` places apart.
inline Checked dilated(int64_t n, int64_t by) {
  return n == 0 ? Checked(0) : (Checked(n) - 1) * by + 1;
}

// In how many places a window stands on an axis of n elements. Fails for windows that cannot be.
inline int64_t window_places(const InferCtx& c, int64_t n, const Window& w, size_t nth) {
  if (is_negative(w.size) || w.stride <= 0 || w.base_dilation <= 0 || w.dilation <= 0)
    c.fail(ErrorKind::kValue,
           "expected a window of non-negative size, and positive strides and dilations; got size ",
           w.size, ", stride ", w.stride, ", dilations ", w.base_dilation, " of the operand and ",
           w.dilation, " of the window along dimension ", nth, " of the window (", operand_types(c),
           ")");
  Checked padded = dilated(n, w.base_dilation) + w.low + w.high;
  bool fits = Checked(w.low).within(-kMaxWindowed, kMaxWindowed) &&
              Checked(w.high).within(-kMaxWindowed, kMaxWindowed);
  if (!fits || !padded.within(0, kMaxWindowed))
    c.fail(ErrorKind::kShape, "expected padding that leaves a size between 0 and 2**60; got (",
           w.low, ", ", w.high, ") for a size of ", n, " along dimension ", nth, " of the window (",
           operand_types(c), ")");
  Checked extent = dilated(w.size, w.dilation);
  if (!extent.fits())
    c.fail(ErrorKind::kShape, "expected a window of a size below 2**63; got ", w.size,
           " elements, every ", w.dilation, "-th, along dimension ", nth, " of the window");
  if (is_symbolic(extent.value()) || is_symbolic(padded.value()))
    return dim_max(0, dim_add(dim_floordiv((padded - extent).value(), w.stride), 1));
  if (extent.value() > padded.value()) return 0;
  return (padded.value() - extent.value()) / w.stride + 1;
}

// "((0, 1), (2, 3))", for messages.
inline std::string listed(const std::vector<Dims>& lists) {
  Text t;
  t << '(';
  for (size_t i = 0; i < lists.size(); ++i) t << (i ? ", " : "") << lists[i];
  t << ')';
  return t.take();
}

// The padding of the window with strides and base dilation exchanged that leads from the m places
// of a window back to the n elements that it slid over.
inline Dims padding_back(const Window& w, int64_t n, int64_t m) {
  Checked extent = dilated(w.size, w.dilation);
  Checked low = extent - 1 - w.low;
  Checked from = dilated(m, w.stride), to = dilated(n, w.base_dilation);
  return {low.value(), (to - 1 + extent - from - low).value()};
}

// Checks that an attribute has an entry for each dimension of the window.
inline void check_window_list(const InferCtx& c, std::string_view name, const Dims& xs, size_t n) {
  if (xs.size() != n)
    c.fail(ErrorKind::kValue, "expected ", n, " ", name, ", one for each dimension of the window",
           "; got ", name, "=", xs, " (", operand_types(c), ")");
}
inline void check_window_padding(const InferCtx& c, const std::vector<Dims>& padding, size_t n) {
  bool pairs =
      std::all_of(padding.begin(), padding.end(), [](const Dims& p) { return p.size() == 2; });
  if (padding.size() != n || !pairs)
    c.fail(ErrorKind::kValue, "expected padding of ", n,
           " pairs, one for each dimension of the window; got padding=", listed(padding), " (",
           operand_types(c), ")");
}

// "[[0, 1], [2, 3]]"
inline std::string bracketed_pairs(const std::vector<Dims>& pairs) {
  Text t;
  t << '[';
  for (size_t i = 0; i < pairs.size(); ++i)
    t << (i ? ", [" : "[") << pairs[i][0] << ", " << pairs[i][1] << ']';
  t << ']';
  return t.take();
}

}  // namespace weft
