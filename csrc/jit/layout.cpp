// A layout is made by walking arguments once, and compared with others in the same order.

#include "jit/layout.h"

#include <algorithm>

#include "graphs/recording.h"
#include "graphs/values.h"
#include "references/hooks.h"
#include "tracing/cell.h"
#include "tracing/trace.h"

namespace weft::py {
namespace {

constexpr int kMaxDepth = 64;
constexpr size_t kUnknown = static_cast<size_t>(-1);

bool same_name(PyObject* a, PyObject* b) {
  return a == b || (PyUnicode_CheckExact(a) && PyUnicode_CheckExact(b) &&
                    PyUnicode_Compare(a, b) == 0 && !PyErr_Occurred());
}

// The children of a node of the registry as a list or tuple, and its data; both null for a leaf.
std::pair<Ref, Ref> one_level(PyObject* o) {
  Ref level = Ref::checked(PyObject_CallOneArg(hooks.flatten_one_level.get(), o));
  if (level.get() == Py_None) return {};
  Ref children = Ref::checked(PySequence_Fast(PyTuple_GET_ITEM(level.get(), 0), "children"));
  return {std::move(children), Ref::borrow(PyTuple_GET_ITEM(level.get(), 1))};
}

}  // namespace

bool is_sure_leaf(const Operand& x) {
  switch (x.kind) {
    case OperandKind::kArray:
    case OperandKind::kTracer:
      return true;
    case OperandKind::kNumpy:
    case OperandKind::kScalar:
      return !PyType_HasFeature(Py_TYPE(x.object), Py_TPFLAGS_HEAPTYPE);
    case OperandKind::kInvalid:
      return is_cell(x.object);
  }
  return false;
}

bool is_leaf(const Operand& x) { return is_sure_leaf(x) || !one_level(x.object).first; }

void Flat::clear() {
  owned.clear();
  leaves.clear();
  operands.clear();
  statics.clear();
}

// ---- Making one

// Each of these appends the nodes of what it is given, whose leaves count from 0, and returns how
// many leaves there are.
size_t Layout::describe(PyObject* o, int depth) {
  if (depth > kMaxDepth) return kUnknown;
  if (o == Py_None) {
    nodes_.push_back({Kind::kNone, 0, 0});
    return 0;
  }
  if (PyTuple_CheckExact(o) || PyList_CheckExact(o)) {
    nodes_.push_back({PyTuple_CheckExact(o) ? Kind::kTuple : Kind::kList,
                      static_cast<uint32_t>(PySequence_Fast_GET_SIZE(o)), 0});
    return describe_children(o, depth);
  }
  if (PyDict_CheckExact(o)) return describe_dict(o, depth);
  if (is_sure_leaf(classify_leaf(o))) {
    nodes_.push_back({Kind::kLeaf, 0, 0});
    return 1;
  }
  auto [children, data] = one_level(o);
  if (!children) return kUnknown;
  auto object = static_cast<uint32_t>(objects_.size());
  auto count = static_cast<uint32_t>(PySequence_Fast_GET_SIZE(children.get()));
  PyObject* type = reinterpret_cast<PyObject*>(Py_TYPE(o));
  objects_.push_back(Ref::borrow(type));
  if (PyTuple_Check(o) && data.get() == type) {
    nodes_.push_back({Kind::kNamedTuple, count, object});
    return describe_children(o, depth);
  }
  nodes_.push_back({Kind::kNode, count, object});
  objects_.push_back(data);
  return describe_children(children.get(), depth);
}

size_t Layout::describe_children(PyObject* sequence, int depth) {
  size_t total = 0;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(sequence); ++i) {
    Ref child = Ref::borrow(PySequence_Fast_GET_ITEM(sequence, i));
    size_t begin = nodes_.size();
    size_t leaves = describe(child.get(), depth + 1);
    if (leaves == kUnknown) return kUnknown;
    shift_leaves(begin, nodes_.size(), total);
    total += leaves;
  }
  return total;
}

size_t Layout::describe_dict(PyObject* o, int depth) {
  Ref items = Ref::checked(PyDict_Items(o));
  auto count = static_cast<uint32_t>(PyList_GET_SIZE(items.get()));
  nodes_.push_back({Kind::kDict, count, static_cast<uint32_t>(objects_.size())});
  Ref sorted = Ref::checked(PyList_New(0));
  struct Child {
    PyObject* key;
    size_t begin, end, leaves;
  };
  std::vector<Child> children;
  for (uint32_t i = 0; i < count; ++i) {
    PyObject* key = PyTuple_GET_ITEM(PyList_GET_ITEM(items.get(), i), 0);
    objects_.push_back(Ref::borrow(key));
    check(PyList_Append(sorted.get(), key));
  }
  if (PyList_Sort(sorted.get()) < 0) {
    PyErr_Clear();  // the registry reports keys without an order
    return kUnknown;
  }
  for (uint32_t i = 0; i < count; ++i) {
    PyObject* item = PyList_GET_ITEM(items.get(), i);
    size_t begin = nodes_.size();
    size_t leaves = describe(PyTuple_GET_ITEM(item, 1), depth + 1);
    if (leaves == kUnknown) return kUnknown;
    children.push_back({PyTuple_GET_ITEM(item, 0), begin, nodes_.size(), leaves});
  }
  // The registry's order is that of the sorted keys.
  std::vector<std::pair<PyObject*, size_t>> place;
  for (uint32_t i = 0; i < count; ++i) place.emplace_back(PyList_GET_ITEM(sorted.get(), i), i);
  std::sort(place.begin(), place.end());
  std::vector<const Child*> in_order(count);
  for (const Child& child : children) {
    auto at = std::lower_bound(place.begin(), place.end(), std::pair(child.key, size_t{0}));
    in_order[at->second] = &child;
  }
  size_t total = 0;
  for (const Child* child : in_order) {
    shift_leaves(child->begin, child->end, total);
    total += child->leaves;
  }
  return total;
}

void Layout::shift_leaves(size_t begin, size_t end, size_t by) {
  if (by == 0) return;
  for (size_t i = begin; i < end; ++i)
    if (nodes_[i].kind == Kind::kLeaf) nodes_[i].count += static_cast<uint32_t>(by);
}

LayoutRef Layout::make(const Arguments& args, const StaticArguments& statics,
                       const Structure& structure) {
  auto layout = std::make_shared<Layout>();
  layout->structure_ = structure;
  layout->num_positional_ = args.num_positional;
  layout->num_statics_ = statics.at.size();
  Py_ssize_t count = args.num_positional + args.num_named();
  for (Py_ssize_t i = 0; i < args.num_named(); ++i)
    layout->names_.push_back(Ref::borrow(args.name(i)));
  // Keyword arguments are a dict, whose leaves come in the order of the names.
  std::vector<Py_ssize_t> order;
  for (Py_ssize_t i = 0; i < count; ++i) order.push_back(i);
  std::sort(order.begin() + args.num_positional, order.end(), [&](Py_ssize_t a, Py_ssize_t b) {
    return PyUnicode_Compare(args.name(a - args.num_positional),
                             args.name(b - args.num_positional)) < 0;
  });
  struct Range {
    size_t begin, end, leaves;
  };
  std::vector<Range> ranges;
  for (Py_ssize_t i = 0; i < count; ++i) {
    size_t begin = layout->nodes_.size(), leaves = 0;
    auto found = std::find(statics.at.begin(), statics.at.end(), i);
    if (found != statics.at.end()) {
      layout->nodes_.push_back(
          {Kind::kStatic, static_cast<uint32_t>(found - statics.at.begin()), 0});
    } else {
      leaves = layout->describe(args.values[i], 0);
      if (leaves == kUnknown) return nullptr;
    }
    ranges.push_back({begin, layout->nodes_.size(), leaves});
  }
  for (Py_ssize_t i : order) {
    const Range& range = ranges[static_cast<size_t>(i)];
    layout->shift_leaves(range.begin, range.end, layout->num_leaves_);
    layout->num_leaves_ += range.leaves;
  }
  return layout;
}

// ---- Comparing

bool Layout::match(Ref owned, size_t& at, Flat& out) const {
  const Node& node = nodes_[at++];
  PyObject* o = owned.get();
  switch (node.kind) {
    case Kind::kLeaf: {
      // Of arrays, the most by far, it is made where it stays.
      Operand& x = out.operands[node.count];
      x = is_array(o) ? array_operand(o) : classify_leaf(o);
      if (!is_sure_leaf(x)) return false;
      out.leaves[node.count] = o;
      out.owned[node.count] = std::move(owned);
      return true;
    }
    case Kind::kStatic:
      out.statics[node.count] = std::move(owned);
      return true;
    case Kind::kNone:
      return o == Py_None;
    case Kind::kTuple:
      return PyTuple_CheckExact(o) && match_children(o, node.count, at, out);
    case Kind::kList:
      return PyList_CheckExact(o) && match_children(o, node.count, at, out);
    case Kind::kNamedTuple:
      return reinterpret_cast<PyObject*>(Py_TYPE(o)) == objects_[node.object].get() &&
             match_children(o, node.count, at, out);
    case Kind::kDict: {
      if (!PyDict_CheckExact(o) || static_cast<uint32_t>(PyDict_GET_SIZE(o)) != node.count)
        return false;
      Py_ssize_t pos = 0;
      for (uint32_t i = 0; i < node.count; ++i) {
        PyObject *key, *value;
        if (!PyDict_Next(o, &pos, &key, &value)) return false;
        PyObject* known = objects_[node.object + i].get();
        if (key != known && !same_name(key, known)) return false;
        if (!match(Ref::borrow(value), at, out)) return false;
      }
      return true;
    }
    case Kind::kNode: {
      if (reinterpret_cast<PyObject*>(Py_TYPE(o)) != objects_[node.object].get()) return false;
      auto [children, data] = one_level(o);
      if (!children || !same_value(data.get(), objects_[node.object + 1].get())) return false;
      return match_children(children.get(), node.count, at, out);
    }
  }
  return false;
}

bool Layout::match_children(PyObject* sequence, uint32_t count, size_t& at, Flat& out) const {
  for (uint32_t i = 0; i < count; ++i) {
    if (PySequence_Fast_GET_SIZE(sequence) != static_cast<Py_ssize_t>(count)) return false;
    if (!match(Ref::borrow(PySequence_Fast_GET_ITEM(sequence, i)), at, out)) return false;
  }
  return PySequence_Fast_GET_SIZE(sequence) == static_cast<Py_ssize_t>(count);
}

bool Layout::flatten(const Arguments& args, Flat& out) const {
  if (args.num_positional != num_positional_ ||
      args.num_named() != static_cast<Py_ssize_t>(names_.size()))
    return false;
  for (size_t i = 0; i < names_.size(); ++i)
    if (!same_name(names_[i].get(), args.name(static_cast<Py_ssize_t>(i)))) return false;
  out.owned.resize(num_leaves_);
  out.leaves.resize(num_leaves_);
  out.operands.resize(num_leaves_);
  out.statics.resize(num_statics_);
  size_t at = 0;
  Py_ssize_t count = num_positional_ + static_cast<Py_ssize_t>(names_.size());
  for (Py_ssize_t i = 0; i < count; ++i)
    if (!match(Ref::borrow(args.values[i]), at, out)) return false;
  return true;
}

bool Layout::is_plain() const {
  bool nodes = std::all_of(nodes_.begin(), nodes_.end(), [](const Node& n) {
    return n.kind != Kind::kNode && n.kind != Kind::kNamedTuple;
  });
  return nodes && std::all_of(objects_.begin(), objects_.end(), [](const Ref& key) {
           return PyUnicode_CheckExact(key.get()) || PyLong_CheckExact(key.get());
         });
}

int Layout::traverse(visitproc visit, void* arg) const {
  Py_VISIT(structure_.object.get());
  for (const Ref& o : objects_) Py_VISIT(o.get());
  return 0;
}

Ref packed(const Arguments& args, FunctionRef<bool(Py_ssize_t)> is_left_out) {
  Ref positional = Ref::checked(PyList_New(0));
  for (Py_ssize_t i = 0; i < args.num_positional; ++i)
    if (!is_left_out(i)) check(PyList_Append(positional.get(), args.values[i]));
  Ref keyword = Ref::checked(PyDict_New());
  for (Py_ssize_t i = 0; i < args.num_named(); ++i)
    if (!is_left_out(args.num_positional + i))
      check(PyDict_SetItem(keyword.get(), args.name(i), args.named(i)));
  Ref tuple = Ref::checked(PyList_AsTuple(positional.get()));
  return Ref::checked(PyTuple_Pack(2, tuple.get(), keyword.get()));
}

// ---- Remembering

LayoutRef LayoutMemo::flatten(const Arguments& args, Flat& out) {
  // Comparing may run Python code, which may change what is remembered.
  for (size_t i = 0; i < layouts_.size(); ++i) {
    LayoutRef layout = layouts_[i];
    if (layout->flatten(args, out)) {
      if (i > 0 && i < layouts_.size() && layouts_[i] == layout)
        std::rotate(layouts_.begin(), layouts_.begin() + static_cast<std::ptrdiff_t>(i),
                    layouts_.begin() + static_cast<std::ptrdiff_t>(i) + 1);
      return layout;
    }
    out.clear();
  }
  return nullptr;
}

void LayoutMemo::learn(const Arguments& args, const StaticArguments& statics,
                       const Structure& structure, size_t num_leaves) {
  if (attempts_ >= kMaxAttempts) return;
  LayoutRef layout = Layout::make(args, statics, structure);
  ++attempts_;
  if (!layout || layout->num_leaves() != num_leaves) return;
  layouts_.insert(layouts_.begin(), std::move(layout));
  if (layouts_.size() <= kMaxLayouts) return;
  LayoutRef oldest = std::move(layouts_.back());  // what it holds dies when the list is whole again
  layouts_.pop_back();
}

Structure LayoutMemo::shared(Structure structure) {
  // Comparing may run Python code, which may change what is remembered.
  for (const Structure& known : std::vector<Structure>(structures_))
    if (known.hash == structure.hash && same_value(known.object.get(), structure.object.get()))
      return known;
  structures_.push_back(structure);
  if (structures_.size() <= kMaxStructures) return structure;
  Structure oldest = std::move(structures_.front());
  structures_.erase(structures_.begin());
  return structure;
}

int LayoutMemo::traverse(visitproc visit, void* arg) const {
  for (const Structure& s : structures_)
    if (int stop = visit(s.object.get(), arg)) return stop;
  // One that a call holds as well is none of ours alone.
  for (const LayoutRef& layout : layouts_)
    if (layout.use_count() == 1)
      if (int stop = layout->traverse(visit, arg)) return stop;
  return 0;
}

}  // namespace weft::py
