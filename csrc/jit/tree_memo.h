// Trees of arguments and results, taken apart into leaves and put together again. Those nested like
// an earlier one are taken apart by its layout, without asking the pytree registry.
#pragma once

#include <vector>

#include "references/core.h"
#include "tracing/operand.h"

namespace weft::py {

// Leaves of one tree or of several, in order. One that is neither array nor number has an operand
// of the kind kInvalid.
struct Leaves {
  std::vector<Ref> objects;
  std::vector<Operand> operands;

  size_t size() const { return objects.size(); }
};

// How a tree is built.
struct Tree {
  Ref definition;  // jaxlib's; null for an array or number, which is the one leaf
  size_t num_leaves = 1;
};

// Appends the leaves of a tree.
Tree flatten_tree(PyObject* o, Leaves& leaves);
// The tree with these leaves, of which there are as many as it has.
Ref unflatten(const Tree& tree, std::span<PyObject* const> leaves);
bool same_tree(const Tree& a, const Tree& b);
// jaxlib's definition of a tuple of such trees, or of the one; for messages.
Ref definition_of(std::span<const Tree> trees);
Ref definition_of(const Tree& tree);
// Likewise of (such a tuple, no keyword arguments).
Ref definition_of_call(std::span<const Tree> args);

}  // namespace weft::py
