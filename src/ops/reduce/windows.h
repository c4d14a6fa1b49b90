// What reductions of windows and the ops that derivatives of maxima consist of share.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ops/reduce/reduce_graph.h"
#include "ops/reduce/window.h"
#include "weft/build.h"
#include "weft/op_def.h"

namespace weft {

// A window with a dimension for each axis of the operand.
struct Windows {
  Dims size, strides;
  std::vector<Dims> padding;
  Dims base_dilation, dilation;

  explicit Windows(const AttrRecord& attrs)
      : size(attrs.ints("window_dimensions")),
        strides(attrs.ints("window_strides")),
        padding(attrs.ints_list("padding")),
        base_dilation(size.size(), 1),
        dilation(size.size(), 1) {
    if (!has_dilations(attrs)) return;
    base_dilation = attrs.ints("base_dilation");
    dilation = attrs.ints("window_dilation");
  }
  static bool has_dilations(const AttrRecord& attrs) {
    return attrs.schema().find("base_dilation") >= 0;
  }

  size_t rank() const { return size.size(); }
  Window along(size_t i) const {
    return {size[i], strides[i], padding[i][0], padding[i][1], base_dilation[i], dilation[i]};
  }
  bool is_dilated() const {
    Dims ones(rank(), 1);
    return !(base_dilation == ones && dilation == ones);
  }
  bool is_padded() const { return padding != std::vector<Dims>(rank(), Dims{0, 0}); }

  AttrsRef attrs(const AttrRecord& from) const {
    AttrsRef made =
        from.with({{"window_dimensions", size}, {"window_strides", strides}, {"padding", padding}});
    if (!has_dilations(from)) return made;
    return made->with({{"base_dilation", base_dilation}, {"window_dilation", dilation}});
  }
  // For an operand with a mapped axis at `dim`, on which the window has size 1.
  Windows with_mapped(int dim) const {
    Windows w = *this;
    for (Dims* xs : {&w.size, &w.strides, &w.base_dilation, &w.dilation})
      *xs = inserted(*xs, dim, 1);
    w.padding.insert(w.padding.begin() + dim, Dims{0, 0});
    return w;
  }
};

std::vector<AttrSpec> window_attrs(bool dilations);
// The shape of the places in which a window stands over an operand.
Dims infer_places(const InferCtx& c, TypeRef operand);
Cost cost_windows(const CostCtx& c, TypeRef places);
// "window_dimensions = array<i64: 2, 2>, ..."
std::string window_text(const Windows& w, bool dilations);
// The op over operands that are all mapped, or repeated, at the same axis; `apart` of them at the
// end, scalars, as they are.
void batch_windows(BatchCtx& c, size_t apart = 0);
// x as the window sees it. `value` is a scalar, or has an entry for each index of axis 0.
Val padded(Val x, Val value, const Windows& w);
// The elements that stand at each place of an array of windows, one array for each element of a
// window, in the order of elements. `x` is padded.
Vals elements(Val x, const Windows& w, const Dims& places);
// Reduced windows from shifted arrays that are combined with each other: along each axis as often
// as the window's size has binary digits, or ones among them.
Vals reduce_by_shifts(const Vals& xs, const Vals& inits, const Windows& w, const Dims& places,
                      const Combine& combine);
GraphRef scalar_graph(DType dtype, size_t num_inputs, const std::function<Vals(const Vals&)>& body);

struct Extreme {
  const char* select;  // what the element has to another one of its window
  Val (*compare)(Val, Val);
  Literal (*identity)(DType);
};
extern const Extreme kGreatest, kLeast;
// The element of x that stands first among the extremes of each window; `t` there.
Val gathered(Val t, Val x, const Windows& w, const Dims& places, const Extreme& extreme);

}  // namespace weft
