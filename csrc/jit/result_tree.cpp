#include "jit/result_tree.h"

#include "graphs/recording.h"
#include "jit/layout.h"

namespace weft::py {

ResultTree::ResultTree(PyObject* tree) {
  uint32_t num_leaves = 0;
  if (describe(tree, 0, num_leaves)) return;
  nodes_.clear();
  objects_.clear();
}

bool ResultTree::describe(PyObject* o, int depth, uint32_t& num_leaves) {
  constexpr int kMaxDepth = 64;
  if (depth > kMaxDepth) return false;
  if (o == Py_None) {
    nodes_.push_back({Kind::kNone, 0, 0});
    return true;
  }
  if (PyTuple_CheckExact(o) || PyList_CheckExact(o)) {
    auto count = static_cast<uint32_t>(PySequence_Fast_GET_SIZE(o));
    nodes_.push_back({PyTuple_CheckExact(o) ? Kind::kTuple : Kind::kList, count, 0});
    for (uint32_t i = 0; i < count; ++i)
      if (!describe(PySequence_Fast_GET_ITEM(o, i), depth + 1, num_leaves)) return false;
    return true;
  }
  if (PyDict_CheckExact(o)) return describe_dict(o, depth, num_leaves);
  if (!is_sure_leaf(classify_leaf(o))) return false;
  nodes_.push_back({Kind::kLeaf, num_leaves++, 0});
  return true;
}

bool ResultTree::describe_dict(PyObject* o, int depth, uint32_t& num_leaves) {
  Ref keys = Ref::checked(PyDict_Keys(o)), copied = Ref::checked(PyDict_New());
  auto count = static_cast<uint32_t>(PyList_GET_SIZE(keys.get()));
  for (uint32_t i = 0; i < count; ++i)
    if (!PyUnicode_CheckExact(PyList_GET_ITEM(keys.get(), i))) return false;
  check(PyList_Sort(keys.get()));
  nodes_.push_back({Kind::kDict, count, static_cast<uint32_t>(objects_.size())});
  objects_.push_back(copied);
  for (uint32_t i = 0; i < count; ++i) {
    PyObject* key = PyList_GET_ITEM(keys.get(), i);
    objects_.push_back(Ref::borrow(key));
    check(PyDict_SetItem(copied.get(), key, Py_None));
  }
  for (uint32_t i = 0; i < count; ++i)
    if (!describe(PyDict_GetItem(o, PyList_GET_ITEM(keys.get(), i)), depth + 1, num_leaves))
      return false;
  return true;
}

Ref ResultTree::build(Outputs& leaves) const {
  size_t at = 0;
  return build_next(at, leaves);
}

inline Ref ResultTree::build_next(size_t& at, Outputs& leaves) const {
  const Node& node = nodes_[at++];
  return node.kind == Kind::kLeaf ? leaves.take(node.count) : build_inner(node, at, leaves);
}

Ref ResultTree::build_inner(const Node& node, size_t& at, Outputs& leaves) const {
  switch (node.kind) {
    case Kind::kLeaf:
    case Kind::kNone:
      break;
    case Kind::kTuple: {
      Ref tuple = Ref::checked(PyTuple_New(node.count));
      for (uint32_t i = 0; i < node.count; ++i)
        PyTuple_SET_ITEM(tuple.get(), i, build_next(at, leaves).release());
      return tuple;
    }
    case Kind::kList: {
      Ref list = Ref::checked(PyList_New(node.count));
      for (uint32_t i = 0; i < node.count; ++i)
        PyList_SET_ITEM(list.get(), i, build_next(at, leaves).release());
      return list;
    }
    case Kind::kDict: {
      // A copy has its table at full size from the start.
      Ref dict = Ref::checked(PyDict_Copy(objects_[node.object].get()));
      for (uint32_t i = 0; i < node.count; ++i)
        check(PyDict_SetItem(dict.get(), objects_[node.object + 1 + i].get(),
                             build_next(at, leaves).get()));
      return dict;
    }
  }
  return Ref::borrow(Py_None);
}

}  // namespace weft::py
