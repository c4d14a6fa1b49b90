// How gather and scatter address windows of an array by index vectors, and the builders of both.
// Index vectors lie along the last axis of the indices; each gives the start of one window.
#pragma once

#include <optional>
#include <string>

#include "weft/build.h"

namespace weft {

// The attributes that gather and scatter share, though each has its own names for them. Below,
// "blocks" are the slices that gather makes and the updates that scatter takes.
struct Addressing {
  Dims window_axes;  // axes of the blocks that lie within a window; the others are the indices'
  Dims dropped;      // axes of the array along which windows have size 1, and which blocks lack
  Dims index_map;    // axis of the array along which each component of an index vector counts
  Dims batching;     // axes of the array, likewise lacking, that go in step with ...
  Dims indices_batching;  // ... these axes of the indices
  // Windows outside of the array: "clip" moves them inside, "fill" reads a fill value and writes
  // nothing, "promise_in_bounds" asserts that there are none.
  std::string mode = "clip";
  bool unique = false;  // no two windows overlap
  bool sorted = false;  // index vectors are in lexicographic order

  // The axes of the array that blocks have, in order.
  Dims kept_axes(int rank) const;
  // The same once the array has another axis at `at`.
  Addressing with_operand_axis(int at) const;
};
Addressing gather_addressing(const AttrRecord& attrs);
Addressing scatter_addressing(const AttrRecord& attrs);
// The attributes of a scatter with another addressing.
AttrsRef with_addressing(const AttrRecord& attrs, const Addressing& a);

// Vectorised addressing. First: the array has a mapped axis at `at` which all windows span, and
// blocks have it at *block_at. Second: the array has it at `at`, indices and blocks at 0, and they
// go in step.
Addressing mapped_operand(const Addressing& a, int rank, int at, int* block_at);
Addressing mapped_indices(const Addressing& a, int at);

// Sizes of the windows of a scatter along the axes of the array.
Dims window_sizes(const Addressing& a, TypeRef operand, TypeRef updates);

// Slices of `sizes`. `fill` is for mode "fill"; without it NaN, the lowest value of signed and the
// highest of unsigned integers, or true.
Val gather(Val x, Val indices, const Addressing& a, const Dims& sizes,
           std::optional<double> fill = std::nullopt);
// The same for index vectors with a mapped axis at 0, where the slices get it too; the array has it
// at `at`, or does not have it.
Val gather_lanes(Val x, int at, Val indices, const Addressing& a, const Dims& sizes,
                 std::optional<double> fill = std::nullopt);
// `op` is "scatter", "scatter-add", ...
Val scatter(std::string_view op, Val x, Val indices, Val updates, const Addressing& a);

// Whether a dtype holds all sizes.
bool fits(const Dims& shape, DType dtype);
// Indices of a dtype that XLA computes with: 32 bits or more, and wide enough for the array.
DType index_dtype(DType indices, const Dims& shape);
// The largest start of each component of the index vectors, for comparison with `indices`.
Val largest_starts(Val indices, const Addressing& a, const Dims& shape, const Dims& sizes);
// The indices, clamped so that windows of `sizes` are within an array of `shape`.
Val clipped(Val indices, const Addressing& a, const Dims& shape, const Dims& sizes);
// Whether there is at most one index vector.
bool has_one_window(TypeRef indices);

// Checks that windows of `sizes` that start at the index vectors are within the array.
void check_within(CheckCtx& c, Val indices, const Addressing& a, const Dims& sizes);

// Type checks that gather and scatter share; see addressing.cpp.
struct AddressingNames;
extern const AddressingNames kGatherNames, kScatterNames;
// `block_rank` is the rank of slices or updates.
void check_addressing(const InferCtx& c, const Addressing& a, const AddressingNames& names,
                      int block_rank);

// "offset_dims = [0], collapsed_slice_dims = [1], index_vector_dim = 1": in StableHLO's text.
std::string dimension_numbers(const Addressing& a, const AddressingNames& names, TypeRef indices);

}  // namespace weft
