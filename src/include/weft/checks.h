// SPDX-License-Identifier: Apache-2.0
// Checks of values as a function from graph to graph: the graph with one more output that says
// which check failed first. weft.experimental.checkify and the search for the op that made a NaN
// are made of it. What an op may do wrong is said by its check rule (op_def.h).
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "weft/api.h"
#include "weft/attr.h"
#include "weft/graph.h"
#include "weft/location.h"

namespace weft {

enum class CheckKind : uint8_t {
  kUser,      // a `check` op
  kNan,       // the op made a NaN of operands that have none
  kInf,       // or an infinity
  kIndex,     // an index is outside of the array
  kDivision,  // a divisor is zero
};

struct CheckOptions {
  bool user = false, nans = false, infs = false, indices = false, divisions = false;
  // A check that is known to fail, looked into: no other one is made, and its values are the
  // operands and results of its op. -1: all are made; any number of no check: none.
  int32_t only = -1;
  bool all() const { return only < 0; }
};

// The number that stands for none. Checks are numbered in the order of the program.
inline constexpr int32_t kNothingFailed = std::numeric_limits<int32_t>::max();

// One check.
struct CheckSite {
  CheckKind kind;
  const OpInfo* op;
  Loc loc;
  uint32_t num_operands;  // of the op
  uint32_t first_value = 0, num_values = 0;
  ObjectRef error = nullptr;  // kUser: what the embedding language makes of it
  // kIndex: shape of the array, and the axes along which the components of an index count. The
  // values are an index that is outside and the number of its component.
  Dims shape = {}, axes = {};
};

struct CheckedGraph {
  // inputs -> outputs; the number of the check that failed first, i32; the values of all checks, of
  // which those of that one count
  GraphRef graph;
  size_t num_outputs;

  // The numbers from `first` on are those of one check, or of a graph that an op holds.
  struct Part {
    int32_t first, count;
    uint32_t first_value;
    CheckSite site;
    std::shared_ptr<const CheckedGraph> graph;
  };
  std::vector<Part> parts;
  int32_t count = 0;

  size_t num_values() const { return graph->outputs().size() - num_outputs - 1; }
  // The check of a number; its values count from the first one of this graph.
  WEFT_API CheckSite site(int32_t number) const;
};

// The `check` ops are gone, with those that are not asked for. Kept on the graph if all are made.
WEFT_API std::shared_ptr<const CheckedGraph> checked(const GraphRef& graph,
                                                     const CheckOptions& options);

struct WatchOptions {
  bool nans = false, infs = false;
  bool unused = false;  // also results that no op uses
};
// The graph with one more output: the number of the first output that has a NaN or infinity, as
// asked for, or kNothingFailed. Unused results count after the outputs.
WEFT_API GraphRef watched(const GraphRef& graph, const WatchOptions& options);

}  // namespace weft
