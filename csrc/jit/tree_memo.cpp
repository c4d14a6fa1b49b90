// One table of layouts for all trees, by what can be seen of a tree without looking far.

#include "jit/tree_memo.h"

#include <variant>

#include "graphs/recording.h"
#include "jit/layout.h"
#include "references/hooks.h"
#include "references/lru_table.h"
#include "tracing/trace.h"
#include "weft/hash.h"

namespace weft::py {
namespace {

constexpr size_t kMaxTrees = 512;
constexpr int kOutlineDepth = 4;

// A number that trees have in common which are nested alike.
uint64_t outline(PyObject* o, int depth) {
  bool is_tuple = PyTuple_CheckExact(o);
  if (depth == 0) return 1;
  if (is_tuple || PyList_CheckExact(o)) {
    uint64_t h = is_tuple ? 2 : 3;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); ++i)
      h = hash_combine(h, outline(PySequence_Fast_GET_ITEM(o, i), depth - 1));
    return h;
  }
  if (PyDict_CheckExact(o)) {
    uint64_t h = 4;
    PyObject *key, *value;
    for (Py_ssize_t at = 0; PyDict_Next(o, &at, &key, &value);) {
      if (PyUnicode_CheckExact(key))
        h = hash_combine(h, static_cast<uint64_t>(PyObject_Hash(key)));  // runs no Python code
      h = hash_combine(h, outline(value, depth - 1));
    }
    return h;
  }
  return o == Py_None ? 5 : 6;
}

LruTable<LayoutRef, std::monostate>& layouts() {
  static auto* table = new LruTable<LayoutRef, std::monostate>("layouts", kMaxTrees);
  return *table;
}

bool is_container(PyObject* o) {
  return PyTuple_CheckExact(o) || PyList_CheckExact(o) || PyDict_CheckExact(o);
}

Tree ask_registry(PyObject* o, uint64_t hash, Leaves& leaves) {
  Ref flat = Ref::checked(PyObject_CallOneArg(hooks.flatten.get(), o));
  PyObject* list = PyTuple_GET_ITEM(flat.get(), 0);
  Tree tree{Ref::borrow(PyTuple_GET_ITEM(flat.get(), 1)),
            static_cast<size_t>(PyList_GET_SIZE(list))};
  for (size_t i = 0; i < tree.num_leaves; ++i) {
    PyObject* leaf = PyList_GET_ITEM(list, static_cast<Py_ssize_t>(i));
    leaves.objects.push_back(Ref::borrow(leaf));
    leaves.operands.push_back(classify_leaf(leaf));
  }
  if (!is_container(o)) return tree;
  Ref none = Ref::checked(PyTuple_New(0));
  Structure structure{Ref::checked(PyTuple_Pack(2, tree.definition.get(), none.get())), 0};
  LayoutRef layout = Layout::make({&o, 1, nullptr}, {{}, none}, structure);
  // The table is nobody's: what users registered would never be collected.
  if (layout && layout->is_plain() && layout->num_leaves() == tree.num_leaves)
    layouts().insert(hash, std::move(layout), {});
  return tree;
}

// A tree with numbers for leaves; a tuple of such trees.
Ref sample(const Tree& tree) {
  std::vector<Ref> numbers;
  std::vector<PyObject*> leaves;
  for (size_t i = 0; i < tree.num_leaves; ++i) {
    numbers.push_back(Ref::checked(PyLong_FromSize_t(i)));
    leaves.push_back(numbers.back().get());
  }
  return unflatten(tree, leaves);
}

Ref sample(std::span<const Tree> trees) {
  Ref tuple = Ref::checked(PyTuple_New(static_cast<Py_ssize_t>(trees.size())));
  for (size_t i = 0; i < trees.size(); ++i)
    PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), sample(trees[i]).release());
  return tuple;
}

Ref registry_definition(PyObject* o) {
  Ref flat = Ref::checked(PyObject_CallOneArg(hooks.flatten.get(), o));
  return Ref::borrow(PyTuple_GET_ITEM(flat.get(), 1));
}

}  // namespace

Tree flatten_tree(PyObject* o, Leaves& leaves) {
  if (!is_container(o)) {
    Operand x = classify_leaf(o);
    if (!is_sure_leaf(x)) return ask_registry(o, 0, leaves);
    leaves.objects.push_back(Ref::borrow(o));
    leaves.operands.push_back(x);
    return {};
  }
  uint64_t hash = outline(o, kOutlineDepth);
  Flat flat;
  LayoutRef found;
  layouts().find(hash, [&](const LayoutRef& layout) {
    flat.clear();
    if (!layout->flatten({&o, 1, nullptr}, flat)) return false;
    found = layout;
    return true;
  });
  if (!found) return ask_registry(o, hash, leaves);
  for (Ref& object : flat.owned) leaves.objects.push_back(std::move(object));
  leaves.operands.insert(leaves.operands.end(), flat.operands.begin(), flat.operands.end());
  return {Ref::borrow(found->structure().tree()), found->num_leaves()};
}

Ref unflatten(const Tree& tree, std::span<PyObject* const> leaves) {
  if (!tree.definition) return Ref::borrow(leaves[0]);
  Ref list = Ref::checked(PyList_New(static_cast<Py_ssize_t>(leaves.size())));
  for (size_t i = 0; i < leaves.size(); ++i)
    PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i), Py_NewRef(leaves[i]));
  return Ref::checked(
      PyObject_CallMethodOneArg(tree.definition.get(), name("unflatten"), list.get()));
}

bool same_tree(const Tree& a, const Tree& b) {
  if (a.definition.get() == b.definition.get()) return true;
  if (a.num_leaves != b.num_leaves) return false;
  int same = PyObject_RichCompareBool(definition_of(a).get(), definition_of(b).get(), Py_EQ);
  check(same);
  return same;
}

Ref definition_of(std::span<const Tree> trees) { return registry_definition(sample(trees).get()); }

Ref definition_of(const Tree& tree) {
  return tree.definition ? tree.definition : registry_definition(sample(tree).get());
}

Ref definition_of_call(std::span<const Tree> args) {
  Ref kwargs = Ref::checked(PyDict_New());
  Ref call = Ref::checked(PyTuple_Pack(2, sample(args).get(), kwargs.get()));
  return registry_definition(call.get());
}

}  // namespace weft::py
