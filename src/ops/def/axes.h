// Arithmetic on axes and shapes shared by the families whose ops move data, reduce or contract.
#pragma once

#include <algorithm>
#include <string_view>

#include "weft/checked.h"
#include "weft/op.h"
#include "weft/op_def.h"
#include "weft/small_vector.h"

namespace weft {

inline bool has_axis(const Dims& axes, int64_t axis) {
  return std::find(axes.begin(), axes.end(), axis) != axes.end();
}

inline Dims count_up(int n) {
  Dims r;
  for (int i = 0; i < n; ++i) r.push_back(i);
  return r;
}

inline bool counts_up(const Dims& axes) { return axes == count_up(static_cast<int>(axes.size())); }

// The axes of an array of this rank that are not listed, in order.
inline Dims other_axes(int rank, const Dims& axes) {
  Dims r;
  for (int i = 0; i < rank; ++i)
    if (!has_axis(axes, i)) r.push_back(i);
  return r;
}

inline Dims pick(const Dims& shape, const Dims& axes) {
  Dims r;
  for (int64_t a : axes) r.push_back(shape[static_cast<size_t>(a)]);
  return r;
}

// A shape without the listed axes.
inline Dims drop_axes(const Dims& shape, const Dims& axes) {
  return pick(shape, other_axes(static_cast<int>(shape.size()), axes));
}

// XLA's time grows steeply with the number of axes that are reduced. An array of more than these
// has axes of size 1, which a reduction can leave out.
constexpr int kMostReducedAxes = 64;

struct ReducedShape {
  Dims shape, axes;
};

// The same elements without axes of size 1: their shape, and what the listed axes are then.
inline ReducedShape without_ones(const Dims& shape, const Dims& axes) {
  ReducedShape r;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 1) continue;
    if (has_axis(axes, static_cast<int64_t>(i)))
      r.axes.push_back(static_cast<int64_t>(r.shape.size()));
    r.shape.push_back(shape[i]);
  }
  return r;
}

inline Dims inserted(Dims xs, int at, int64_t x) {
  xs.insert(static_cast<size_t>(at), x);
  return xs;
}

// What axes are called once a mapped axis stands at `dim`.
inline int64_t shifted(int64_t axis, int dim) { return axis + (axis >= dim ? 1 : 0); }
inline Dims shifted(const Dims& axes, int dim) {
  Dims r;
  for (int64_t a : axes) r.push_back(shifted(a, dim));
  return r;
}

inline int count_before(const Dims& axes, int dim) {
  return static_cast<int>(
      std::count_if(axes.begin(), axes.end(), [dim](int64_t a) { return a < dim; }));
}
// Where the mapped axis stands once `axes` (numbered without it) are gone.
inline int dim_after_drop(int dim, const Dims& axes) { return dim - count_before(axes, dim); }

// Of dimensions of one type, whose products fit; of others see weft/checked.h.
inline int64_t product(std::span<const int64_t> xs) { return checked_product(xs).value(); }

inline Dims inverse(const Dims& permutation) {
  Dims r(permutation.size());
  for (size_t i = 0; i < permutation.size(); ++i)
    r[static_cast<size_t>(permutation[i])] = static_cast<int64_t>(i);
  return r;
}

// Checks that axes are distinct and within the rank. `what` is the attribute's name.
inline void check_axes(const InferCtx& c, std::string_view what, const Dims& axes, TypeRef type) {
  for (size_t i = 0; i < axes.size(); ++i) {
    if (axes[i] < 0 || axes[i] >= type->rank())
      c.fail(ErrorKind::kValue, "expected ", what, " between 0 and ", type->rank() - 1,
             " for an operand of rank ", type->rank(), "; got ", what, "=", axes,
             " (operand: ", type, ")");
    for (size_t j = 0; j < i; ++j)
      if (axes[i] == axes[j])
        c.fail(ErrorKind::kValue, "expected distinct ", what, "; got ", what, "=", axes,
               " (operand: ", type, ")");
  }
}

// "operand 0: f32[3], operand 1: f32[4]", for messages.
inline std::string operand_types(const InferCtx& c) {
  Text t;
  for (size_t i = 0; i < c.size(); ++i) t << (i ? ", " : "") << "operand " << i << ": " << c.in(i);
  return t.take();
}

}  // namespace weft
