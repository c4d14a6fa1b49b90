// Values that the embedding language holds and a graph refers to: an array that a rule written
// there closed over, or a value of a program that is still being traced.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "weft/api.h"
#include "weft/attr.h"
#include "weft/graph.h"
#include "weft/type.h"

namespace weft {

// What a `constant` op stands for.
struct HeldValue : AttrObject {
  virtual TypeRef type() const = 0;
  // Its elements in memory order, for programs in which it stays a constant. Throws kType for a
  // value that is not known yet.
  virtual std::string bytes() const = 0;
};

// Held values become inputs, in front of the others: programs do not depend on them then.
struct LiftedGraph {
  GraphRef graph;
  std::vector<ObjectRef> constants;  // HeldValue, one per new input
};
WEFT_API std::shared_ptr<const LiftedGraph> lift_constants(const GraphRef& graph);

}  // namespace weft
