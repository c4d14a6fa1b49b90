// What XLA's partitioner makes of an op whose operands are split over devices: where it goes wrong,
// dimensions are kept whole.
#pragma once

#include <set>
#include <span>
#include <string>
#include <string_view>

#include "weft/graph.h"
#include "weft/op_def.h"
#include "weft/placements.h"
#include "weft/small_vector.h"

namespace weft {

// A dimension that is made of another one by slicing, padding or joining takes over how that one is
// split. XLA fills the parts up where that does not divide it, and not every op keeps the filling
// out of its results.
using Sizes = std::set<int64_t>;
// Adds the sizes of the dimensions that ops of a graph, and of those in it, make or use up so.
void add_resized(const Graph& graph, Sizes& sizes);

// Per dimension of a value whether it has to be whole on every device: of operand `i` of an op, or
// of one of its results where `i` is negative. `resized` are the sizes in the program that may be
// split into unequal parts, and `sizes` are those of the mesh's axes over which the work is shared.
// Empty if no dimension has to be.
Mask whole_dims(const Graph& graph, const Op& op, TypeRef type, int64_t i, const Sizes& resized,
                std::span<const int64_t> sizes);

// Whether an op stands in a shard_map over some axes of its mesh, so that XLA splits it over
// others.
bool is_partly_manual(EmitCtx& c);
// Whether XLA may split what an op works on.
bool may_be_split(EmitCtx& c);
// Throws kNotImplemented in a shard_map over some axes: XLA would have to call the function once
// for several devices.
void check_place_of_effect(EmitCtx& c, std::string_view op);

// A slice that begins where its operand does, kept apart from it: where the parts of both are
// equally large, XLA's partitioner has one value for them, and takes copies of one for copies of
// the other.
std::string emit_apart(EmitCtx& c, const std::string& slice, TypeRef type);

// The axes over which an op sums up its operands, split as the table says: without a word about its
// result each part holds a summand of it.
Dims summed_axes(const Graph& graph, const Op& op, const Placements& places);

}  // namespace weft
