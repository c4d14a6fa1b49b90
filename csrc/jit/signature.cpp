// Flattening and hashing of arguments.

#include "jit/signature.h"

#include <algorithm>

#include "conversions/sharding_object.h"
#include "graphs/recording.h"
#include "graphs/values.h"
#include "jit/state.h"
#include "references/hooks.h"
#include "tracing/cell.h"
#include "tracing/trace.h"
#include "weft/hash.h"

namespace weft::py {
namespace {

// The hash of a static value. `key`: position or name of the argument.
uint64_t static_hash(const JitState& s, PyObject* value, PyObject* key) {
  Py_hash_t hash = PyObject_Hash(value);
  if (hash != -1) return static_cast<uint64_t>(hash);
  PyErr_Clear();
  Ref text = Ref::checked(PyObject_Repr(value));
  Ref which = Ref::checked(
      PyObject_CallFunctionObjArgs(hooks.describe_position.get(), s.function.get(), key, nullptr));
  raise_error(
      "NonHashableStaticArgumentError", "expected a hashable value for static ",
      readable(which.get()), "; got ", Py_TYPE(value)->tp_name, ": ", readable(text.get()),
      "\n  Static arguments are part of the key under which a program is cached: pass a tuple in "
      "place of a list, or an array as an argument that is not static.");
}

// A leaf that is neither array nor number, at the position that its path names.
[[noreturn]] void raise_bad_leaf(const JitState& s, PyObject* tree, PyObject* leaf, size_t i) {
  Ref where = to_text(describe_leaf(s, tree, i));
  reject(hooks.reject_leaf, {leaf, where.get(), s.library ? Py_False : Py_True});
}

Operand classify_argument(PyObject* o, bool allow_abstract) {
  if (is_cell(o)) return classify_leaf(o);
  if (!allow_abstract) return classify(o);
  Operand x = classify_abstract(o);
  // What a type of 64 bits stands for arrives with 32 where 64-bit types are off.
  if (x.kind == OperandKind::kInvalid && x.type)
    x.type = make_type(canonicalize(x.type->dtype(), x64_enabled()), x.type->shape());
  return x;
}

constexpr uint64_t kWeakBit = 1, kCellBit = 2, kNoGradBit = 4;

// Notes the leaf as a cell, which takes part with its value.
void read_cell(const JitState& s, Call& call, size_t i) {
  PyObject* cell = call.leaves[i];
  if (s.library) raise_bad_leaf(s, call.signature.tree(), cell, i);
  call.owned.push_back(cell_value(as_cell(cell)));
  call.operands[i] = classify(call.owned.back().get());
  call.cells.push_back(i);
}

void check_distinct(const JitState& s, const Call& call) {
  // Equal types may stand for different cells.
  std::vector<PyObject*> cells;
  std::vector<size_t> places;
  for (size_t i : call.cells) {
    if (!is_cell(call.leaves[i])) continue;
    cells.push_back(call.leaves[i]);
    places.push_back(i);
  }
  check_aliases(cells,
                [&](size_t i) { return describe_leaf(s, call.signature.tree(), places[i]); });
}

bool has_static(const JitState& s) {
  return !s.static_argnums.empty() || !s.static_argnames.empty();
}

bool is_static(const JitState& s, const Arguments& args, Py_ssize_t at) {
  if (!has_static(s)) return false;
  return at < args.num_positional
             ? is_static_position(s, at, args.num_positional)
             : contains_name(s.static_argnames, args.name(at - args.num_positional));
}

StaticArguments static_arguments(const JitState& s, const Arguments& args) {
  StaticArguments out;
  Py_ssize_t count = args.num_positional + args.num_named();
  for (Py_ssize_t i = 0; i < count; ++i)
    if (is_static(s, args, i)) out.at.push_back(i);
  auto name_of = [&](Py_ssize_t i) { return args.name(i - args.num_positional); };
  std::sort(out.at.begin(), out.at.end(), [&](Py_ssize_t a, Py_ssize_t b) {
    if (a < args.num_positional || b < args.num_positional) return a < b;
    return PyUnicode_Compare(name_of(a), name_of(b)) < 0;
  });
  out.keys = Ref::checked(PyTuple_New(static_cast<Py_ssize_t>(out.at.size())));
  for (size_t i = 0; i < out.at.size(); ++i) {
    Py_ssize_t at = out.at[i];
    PyTuple_SET_ITEM(out.keys.get(), static_cast<Py_ssize_t>(i),
                     at < args.num_positional ? Ref::checked(PyLong_FromSsize_t(at)).release()
                                              : Py_NewRef(name_of(at)));
  }
  return out;
}

// Asks the registry, and remembers what it says.
Structure flatten(const JitState& s, const Arguments& args, bool allow_abstract, Flat& out) {
  Ref dynamic = dynamic_arguments(s, args);
  Ref flat = Ref::checked(PyObject_CallOneArg(hooks.flatten.get(), dynamic.get()));
  PyObject* leaves = PyTuple_GET_ITEM(flat.get(), 0);
  PyObject* tree = PyTuple_GET_ITEM(flat.get(), 1);
  Py_ssize_t count = PyList_GET_SIZE(leaves);
  for (Py_ssize_t i = 0; i < count; ++i) {
    Ref leaf_ref = Ref::borrow(PyList_GET_ITEM(leaves, i));
    Operand x = classify_argument(leaf_ref.get(), allow_abstract);
    if (!x.type && allow_abstract) {
      leaf_ref = Ref::checked(PyObject_CallOneArg(hooks.typed.get(), leaf_ref.get()));
      x = classify_argument(leaf_ref.get(), allow_abstract);
    }
    PyObject* leaf = leaf_ref.get();
    out.owned.push_back(std::move(leaf_ref));
    out.leaves.push_back(leaf);
    out.operands.push_back(x);
    if (!out.operands.back().type) raise_bad_leaf(s, tree, leaf, static_cast<size_t>(i));
  }
  StaticArguments statics = static_arguments(s, args);
  for (Py_ssize_t at : statics.at) out.statics.push_back(Ref::borrow(args.values[at]));
  Structure structure{Ref::checked(PyTuple_Pack(2, tree, statics.keys.get())), 0};
  structure.hash = hash_value(structure.object.get());
  LayoutMemo& memo = s.traces().layouts;
  structure = memo.shared(std::move(structure));
  if (!allow_abstract) memo.learn(args, statics, structure, out.leaves.size());
  return structure;
}

// A function that a user wrote can ask over which axes its arguments vary.
void add_varying(Call& call, uint64_t& hash) {
  SmallVector<AxisSet, 8> sets;
  for (const Operand& x : call.operands) {
    std::optional<AxisSet> set = varying_of(x);
    if (!set) return;
    sets.push_back(*set);
    hash = hash_combine(hash, *set);
  }
  call.signature.varying = std::move(sets);
}

}  // namespace

bool Signature::operator==(const Signature& o) const {
  if (hash != o.hash || settings != o.settings || !(leaves == o.leaves) || axes != o.axes ||
      splits != o.splits || varying != o.varying)
    return false;
  if (structure.get() != o.structure.get() &&
      (!structure || !o.structure || !same_value(structure.get(), o.structure.get())))
    return false;
  for (size_t i = 0; i < statics.size(); ++i)
    if (!same_value(statics[i].get(), o.statics[i].get())) return false;
  return true;
}

bool is_static_position(const JitState& s, int64_t i, int64_t n) {
  for (int64_t p : s.static_argnums)
    if (p == i || p + n == i) return true;
  return false;
}

bool contains_name(const std::vector<Ref>& names, PyObject* key) {
  for (const Ref& n : names) {
    if (n.get() == key) return true;
    int eq = PyObject_RichCompareBool(n.get(), key, Py_EQ);
    check(eq);
    if (eq) return true;
  }
  return false;
}

std::string describe_leaf(const JitState& s, PyObject* tree, size_t i) {
  Ref number = Ref::checked(PyLong_FromSize_t(i));
  Ref path = Ref::checked(
      PyObject_CallFunctionObjArgs(hooks.describe.get(), s.function.get(), tree ? tree : Py_None,
                                   s.static_argnums_object.get(), number.get(), nullptr));
  return readable(path.get());
}

Ref dynamic_arguments(const JitState& s, const Arguments& args) {
  return packed(args, [&](Py_ssize_t i) { return is_static(s, args, i); });
}

std::string leaf_text(uint64_t leaf) {
  auto type = reinterpret_cast<TypeRef>(leaf & ~(kWeakBit | kCellBit | kNoGradBit));
  return cat(leaf & kCellBit ? "Ref " : "", leaf & kWeakBit ? "~" : "", type);
}

Call prepare(const JitState& s, const Arguments& args, bool allow_abstract) {
  Call call;
  call.args = args;
  // Positional leaves need no tree.
  bool plain = args.num_named() == 0 && !has_static(s);
  for (Py_ssize_t i = 0; plain && i < args.num_positional; ++i) {
    Operand x = classify_argument(args.values[i], allow_abstract);
    plain = x.type && (x.kind == OperandKind::kInvalid || is_leaf(x));
    call.leaves.push_back(args.values[i]);
    call.operands.push_back(x);
  }
  Signature& sig = call.signature;
  sig.settings = traced_settings();
  uint64_t h = sig.settings;
  sig.axes = named_axes();
  for (const NamedAxis& axis : sig.axes)
    h = hash_combine(h, hash_combine(std::hash<std::string>()(axis.name), mix(axis.size)));
  if (!plain) {
    Flat flat;
    LayoutRef layout = s.traces().layouts.flatten(args, flat);
    Structure structure = layout ? layout->structure() : flatten(s, args, allow_abstract, flat);
    call.leaves = std::move(flat.leaves);
    call.operands = std::move(flat.operands);
    call.owned = std::move(flat.owned);
    sig.statics = std::move(flat.statics);
    sig.structure = structure.object;
    h = hash_combine(h, structure.hash);
    for (size_t i = 0; i < sig.statics.size(); ++i)
      h = hash_combine(
          h, static_hash(s, sig.statics[i].get(),
                         PyTuple_GET_ITEM(structure.static_keys(), static_cast<Py_ssize_t>(i))));
  }
  sig.leaves.reserve(call.operands.size());
  for (size_t i = 0; i < call.operands.size(); ++i) {
    const Operand& x = call.operands[i];
    uint64_t t = reinterpret_cast<uint64_t>(x.type) | (x.weak ? kWeakBit : 0);
    if (x.kind == OperandKind::kInvalid && is_cell(call.leaves[i])) {
      read_cell(s, call, i);
      t |= kCellBit | (as_cell(call.leaves[i])->no_grad ? kNoGradBit : 0);
    } else if (x.kind == OperandKind::kInvalid && stands_for_cell(x)) {
      call.cells.push_back(i);
      t |= kCellBit;
    }
    sig.leaves.push_back(t);
    h = hash_combine(h, t);
  }
  if (types_tell_places) {
    for (const Operand& x : call.operands) sig.splits.push_back(split_of(x));
    for (ShardingRef s : sig.splits) h = hash_combine(h, s ? s->hash() : 0);
  }
  if (!s.library && are_varying_known()) add_varying(call, h);
  sig.hash = h;
  if (call.cells.size() > 1) check_distinct(s, call);
  return call;
}

}  // namespace weft::py
