// The walk that jvp and linearize share: each op is copied and its jvp rule applied.
#pragma once

#include <functional>

#include "weft/op_def.h"
#include "weft/transforms.h"

namespace weft {

struct DifferentiateOptions {
  // Which of the two rules of ops that hold graphs is meant.
  GraphJvpRule OpDef::* graph_rule = &OpDef::graph_jvp;
  // Whether a tangent that a rule made is known to be zero.
  std::function<bool(Value)> is_zero = nullptr;
  Mask instantiate = {};  // outputs that get a tangent even if it is zero; empty: none
};

// Appends the graph and its derivative to b; tangents that are none are zero.
DualValues differentiate(Builder& b, const Graph& graph, std::span<const Value> args,
                         std::span<const Value> tangents, const DifferentiateOptions& options);

// Checks a mask of inputs that are to have tangents.
void check_tangent_mask(std::string_view transform, const Graph& graph, const Mask& in_mask);

}  // namespace weft
