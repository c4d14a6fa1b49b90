// How the results of a traced function are nested. Trees of tuples, lists, None and dicts by name
// are put together without asking the pytree registry: for a dict of 50 arrays in a third of the
// time.
#pragma once

#include <vector>

#include "execution/run.h"
#include "references/core.h"

namespace weft::py {

class ResultTree {
 public:
  ResultTree() = default;
  // Nested like `tree`, if it has no other nodes.
  explicit ResultTree(PyObject* tree);
  bool is_known() const { return !nodes_.empty(); }
  // The tree of these leaves, which are in the registry's order and its from then on.
  Ref build(Outputs& leaves) const;

 private:
  enum class Kind : uint8_t { kLeaf, kNone, kTuple, kList, kDict };
  // In the order of the leaves.
  struct Node {
    Kind kind;
    uint32_t count;   // children; kLeaf: its number
    uint32_t object;  // kDict: where in objects_ the dict to copy is, and its keys behind it
  };

  bool describe(PyObject* o, int depth, uint32_t& num_leaves);
  bool describe_dict(PyObject* o, int depth, uint32_t& num_leaves);
  Ref build_next(size_t& at, Outputs& leaves) const;
  Ref build_inner(const Node& node, size_t& at, Outputs& leaves) const;

  std::vector<Node> nodes_;
  std::vector<Ref> objects_;  // strings, and dicts of None by strings
};

}  // namespace weft::py
