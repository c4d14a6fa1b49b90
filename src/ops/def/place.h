// What rules of how results are split (OpDef::place) are made of.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "weft/op_def.h"

namespace weft {

// Per dimension of a value the axes over which it is split.
using Split = std::vector<Dims>;
Split split_of(const PlaceCtx& c, size_t operand);

// Adds the sharding of the next result. An axis of two dimensions, and a dimension that cannot be
// divided so, are ambiguous.
void place_result(PlaceCtx& c, Split split);
// It does not follow how the result is split: an error that says why if a user wrote the op, else
// the result is not split.
void place_ambiguous(PlaceCtx& c, std::string_view why, std::span<const Split> choices = {});
// All results like the one that is next.
void place_all(PlaceCtx& c, const Split& split);

// What becomes of a dimension of an operand, in place of a number of a result's dimension.
inline constexpr int64_t kGone = -1;   // no result has it
inline constexpr int64_t kWhole = -2;  // it must not be split
// Results whose dimensions come from those of operands: one list per operand, which say where its
// dimensions are in each result. Scalars need none. Dimensions that are split meet: those that are
// not split give way.
void place_dims(PlaceCtx& c, std::span<const Dims> to);
// The same of operand 0 alone; the others must not be split.
void place_dims(PlaceCtx& c, const Dims& to);
// Every operand (of those with dimensions) has the dimensions of the results, but for those along
// which it must not be split.
void place_alike(PlaceCtx& c, const Dims& whole = {});
// The same where operands must be split equally, if a user wrote the op.
void place_equal(PlaceCtx& c, const Dims& whole = {});

// All operands lose the listed dimensions.
void place_dropped(PlaceCtx& c, const Dims& dropped);
// Dimensions in place, kWhole for those listed.
Dims kept_dims(int rank, const Dims& whole = {});

// Operands are the inputs of a graph.
std::vector<ShardingRef> place_graph(const PlaceCtx& c, const GraphRef& graph,
                                     std::span<const ShardingRef> inputs);
// A loop's body must return its carries as they came in.
void place_carry(PlaceCtx& c, ShardingRef in, ShardingRef out, size_t i);

}  // namespace weft
