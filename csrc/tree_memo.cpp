// Nodes are recorded in order of iteration, with each leaf's place in the registry's order (dicts
// by sorted key). Dict keys are compared by identity: keys that are equal but other objects are a
// miss, which costs time only.

#include "tree_memo.h"

#include <algorithm>

#include "operand.h"

namespace weft::py {
namespace {

constexpr int kMaxDepth = 64;
constexpr size_t kTooDeep = static_cast<size_t>(-1);
// Functions called with ever new trees stop paying for remembering them.
constexpr int kMaxAttempts = 16;

bool is_leaf(PyObject* o) { return classify(o).kind != OperandKind::kInvalid; }

}  // namespace

bool TreeMemo::match(PyObject* o, size_t& at, PyObject** leaves) const {
  const Node& node = nodes_[at++];
  switch (node.kind) {
    case Kind::kLeaf:
      if (PyDict_CheckExact(o) || PyTuple_CheckExact(o) || PyList_CheckExact(o) || !is_leaf(o))
        return false;
      leaves[node.count] = o;
      return true;
    case Kind::kNone:
      return o == Py_None;
    case Kind::kTuple:
    case Kind::kList: {
      if (node.kind == Kind::kTuple ? !PyTuple_CheckExact(o) : !PyList_CheckExact(o)) return false;
      if (static_cast<uint32_t>(PySequence_Fast_GET_SIZE(o)) != node.count) return false;
      for (uint32_t i = 0; i < node.count; ++i)
        if (!match(PySequence_Fast_GET_ITEM(o, i), at, leaves)) return false;
      return true;
    }
    case Kind::kDict: {
      if (!PyDict_CheckExact(o) || static_cast<uint32_t>(PyDict_GET_SIZE(o)) != node.count)
        return false;
      PyObject *key, *value;
      Py_ssize_t pos = 0;
      for (uint32_t i = 0; PyDict_Next(o, &pos, &key, &value); ++i)
        if (key != keys_[node.keys + i].get() || !match(value, at, leaves)) return false;
      return true;
    }
  }
  return false;
}

bool TreeMemo::flatten(PyObject* const* args, size_t n, SmallVector<PyObject*, 16>& leaves) const {
  if (!usable_ || n != num_args_) return false;
  leaves.resize(num_leaves_);
  size_t at = 0;
  for (size_t i = 0; i < n; ++i) {
    if (!match(args[i], at, leaves.data())) {
      leaves.clear();
      return false;
    }
  }
  return true;
}

// Appends the nodes of `o`, whose leaves begin at first_leaf; returns how many leaves it has.
size_t TreeMemo::describe(PyObject* o, uint32_t first_leaf, int depth) {
  if (depth > kMaxDepth) return kTooDeep;
  if (o == Py_None) {
    nodes_.push_back({Kind::kNone, 0, 0});
    return 0;
  }
  if (PyTuple_CheckExact(o) || PyList_CheckExact(o)) {
    uint32_t count = static_cast<uint32_t>(PySequence_Fast_GET_SIZE(o));
    nodes_.push_back({PyTuple_CheckExact(o) ? Kind::kTuple : Kind::kList, count, 0});
    size_t total = 0;
    for (uint32_t i = 0; i < count; ++i) {
      size_t leaves = describe(PySequence_Fast_GET_ITEM(o, i),
                               first_leaf + static_cast<uint32_t>(total), depth + 1);
      if (leaves == kTooDeep) return kTooDeep;
      total += leaves;
    }
    return total;
  }
  if (!PyDict_CheckExact(o)) {
    if (!is_leaf(o)) return kTooDeep;
    nodes_.push_back({Kind::kLeaf, first_leaf, 0});
    return 1;
  }
  uint32_t count = static_cast<uint32_t>(PyDict_GET_SIZE(o));
  uint32_t keys = static_cast<uint32_t>(keys_.size());
  nodes_.push_back({Kind::kDict, count, keys});
  Ref sorted = Ref::checked(PyDict_Keys(o));
  if (PyList_Sort(sorted.get()) < 0) {
    PyErr_Clear();  // the registry reports keys without an order
    return kTooDeep;
  }
  PyObject *key, *value;
  Py_ssize_t pos = 0;
  while (PyDict_Next(o, &pos, &key, &value)) keys_.push_back(Ref::borrow(key));
  // Where each child's leaves begin, by sorted key: needs the sizes of the children first.
  std::vector<size_t> sizes(count), first(count);
  size_t nodes_before = nodes_.size(), keys_before = keys_.size();
  auto child = [&](uint32_t i) { return PyDict_GetItem(o, keys_[keys + i].get()); };
  for (uint32_t i = 0; i < count; ++i) {
    sizes[i] = describe(child(i), 0, depth + 1);
    if (sizes[i] == kTooDeep) return kTooDeep;
  }
  nodes_.resize(nodes_before);
  keys_.resize(keys_before);
  size_t total = 0;
  for (Py_ssize_t s = 0; s < PyList_GET_SIZE(sorted.get()); ++s) {
    PyObject* k = PyList_GET_ITEM(sorted.get(), s);
    for (uint32_t i = 0; i < count; ++i) {
      if (keys_[keys + i].get() != k) continue;
      first[i] = total;
      total += sizes[i];
      break;
    }
  }
  for (uint32_t i = 0; i < count; ++i)
    describe(child(i), first_leaf + static_cast<uint32_t>(first[i]), depth + 1);
  return total;
}

void TreeMemo::learn(PyObject* const* args, size_t n, const Ref& tree) {
  if (++attempts_ > kMaxAttempts) return;
  nodes_.clear();
  keys_.clear();
  usable_ = false;
  size_t total = 0;
  for (size_t i = 0; i < n; ++i) {
    size_t leaves = describe(args[i], static_cast<uint32_t>(total), 0);
    if (leaves == kTooDeep) return;
    total += leaves;
  }
  Py_hash_t h = PyObject_Hash(tree.get());
  if (h == -1) throw PythonError{};
  usable_ = true;
  num_args_ = n;
  num_leaves_ = total;
  tree_ = tree;
  tree_hash_ = static_cast<uint64_t>(h);
}

}  // namespace weft::py
