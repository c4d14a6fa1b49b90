// What of a graph reaches the device, and in which buffers.
#pragma once

#include <vector>

#include "references/core.h"
#include "references/function_ref.h"

namespace weft::py {

// The graph without unused inputs and handed-through outputs.
struct Split {
  GraphRef graph;  // null when no output has to be computed
  std::vector<uint32_t> kept;
  std::vector<int> from_input;
};
// stays(output, input): whether an output that is an input is wanted where that is.
Split split(const GraphRef& graph, bool keep_unused, const std::vector<bool>& donated,
            FunctionRef<bool(size_t, size_t)> stays);

// Gives each donated input an output of its type to live on in: per input of what is left the
// output, or -1; empty if none is donated. Appends the inputs that are gone to `consumed`, warns of
// the others.
std::vector<int> match_donations(const Split& s, const std::vector<bool>& donated,
                                 std::vector<uint32_t>& consumed);

}  // namespace weft::py
