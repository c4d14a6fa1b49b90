// How the arguments of calls are nested. Arguments nested as those of an earlier call are flattened
// without asking the pytree registry: for a dict of 100 arrays, 1 us instead of 9.
#pragma once

#include <memory>
#include <vector>

#include "references/core.h"
#include "references/function_ref.h"
#include "tracing/operand.h"

namespace weft::py {

// Arguments of one call, taken apart. Leaves in the registry's order, static values in the order of
// the structure's static keys.
struct Flat {
  std::vector<Ref> owned;  // what keeps the leaves alive
  SmallVector<PyObject*, 16> leaves;
  std::vector<Operand> operands;
  std::vector<Ref> statics;

  void clear();
};

// The arguments of a call as the interpreter passes them: positional ones, then keyword ones.
struct Arguments {
  PyObject* const* values;
  Py_ssize_t num_positional;
  PyObject* names;  // tuple of str, or null

  Py_ssize_t num_named() const { return names ? PyTuple_GET_SIZE(names) : 0; }
  PyObject* name(Py_ssize_t i) const { return PyTuple_GET_ITEM(names, i); }
  PyObject* named(Py_ssize_t i) const { return values[num_positional + i]; }
};

// (args, kwargs) as a function is called with them, but for those at places that are left out.
Ref packed(const Arguments& args, FunctionRef<bool(Py_ssize_t)> is_left_out);

// Which arguments are static, in the order of their values in Flat: positional ones first, then
// others by name.
struct StaticArguments {
  std::vector<Py_ssize_t> at;  // places in Arguments::values
  Ref keys;                    // a tuple: positions and names
};

// What calls have in common whose leaves and static values mean the same: a tuple (tree definition
// of (args, kwargs) without static arguments, keys of the static ones). One object per structure
// and function, so that signatures compare it by identity.
struct Structure {
  Ref object;
  uint64_t hash = 0;

  PyObject* tree() const { return PyTuple_GET_ITEM(object.get(), 0); }
  PyObject* static_keys() const { return PyTuple_GET_ITEM(object.get(), 1); }
};

// Whether an operand's class can only be a leaf. Others may be nodes of the registry: classes of
// Python's, which derive from those of arrays and numbers.
bool is_sure_leaf(const Operand& x);
// The same for those others, of which the registry is asked.
bool is_leaf(const Operand& x);

// The nesting of one call's arguments, to compare others with. Never changes.
class Layout {
 public:
  // Null if the arguments cannot be remembered: leaves of classes that may be registered later on.
  static std::shared_ptr<const Layout> make(const Arguments& args, const StaticArguments& statics,
                                            const Structure& structure);

  // Takes arguments apart that are nested like this; false, with `out` undefined, for others. May
  // run Python code: that of registered classes.
  bool flatten(const Arguments& args, Flat& out) const;
  const Structure& structure() const { return structure_; }
  size_t num_leaves() const { return num_leaves_; }
  // Whether it holds nothing of the user's but strings and numbers: keys of dicts.
  bool is_plain() const;
  int traverse(visitproc visit, void* arg) const;

 private:
  enum class Kind : uint8_t { kLeaf, kStatic, kNone, kTuple, kList, kDict, kNamedTuple, kNode };
  // In order of iteration over the containers.
  struct Node {
    Kind kind;
    uint32_t count;   // children; kLeaf: place among the leaves; kStatic: among the static values
    uint32_t object;  // where in objects_: a dict's keys, a named tuple's class, a node's class and
                      // data
  };

  size_t describe(PyObject* o, int depth);
  size_t describe_dict(PyObject* o, int depth);
  size_t describe_children(PyObject* sequence, int depth);
  void shift_leaves(size_t begin, size_t end, size_t by);
  // Owns what it looks at: containers may change meanwhile.
  bool match(Ref owned, size_t& at, Flat& out) const;
  bool match_children(PyObject* sequence, uint32_t count, size_t& at, Flat& out) const;

  Structure structure_;
  Py_ssize_t num_positional_ = 0;
  std::vector<Ref> names_;
  std::vector<Node> nodes_;
  std::vector<Ref> objects_;
  size_t num_leaves_ = 0;
  size_t num_statics_ = 0;
};
using LayoutRef = std::shared_ptr<const Layout>;

// The layouts of a function's last calls, and their structures.
class LayoutMemo {
 public:
  // The layout under which the arguments were taken apart; null if none fits.
  LayoutRef flatten(const Arguments& args, Flat& out);
  // Remembers how arguments are nested that the registry took apart into so many leaves, if it can
  // be. Functions called with ever new trees stop paying for it.
  void learn(const Arguments& args, const StaticArguments& statics, const Structure& structure,
             size_t num_leaves);
  // The object that stands for a structure: that of an equal one before, or else its own. May run
  // Python code.
  Structure shared(Structure structure);
  // What it remembers, so that it dies when this is whole again.
  LayoutMemo take() {
    LayoutMemo out;
    std::swap(out.layouts_, layouts_);
    std::swap(out.structures_, structures_);
    return out;
  }
  int traverse(visitproc visit, void* arg) const;

 private:
  static constexpr size_t kMaxLayouts = 4;
  static constexpr size_t kMaxStructures = 16;
  static constexpr int kMaxAttempts = 64;

  std::vector<LayoutRef> layouts_;     // the last used first
  std::vector<Structure> structures_;  // the oldest first
  int attempts_ = 0;
};

}  // namespace weft::py
