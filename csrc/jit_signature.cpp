// Flattening and hashing of arguments.

#include "jit_signature.h"

#include "hooks.h"
#include "jit_state.h"
#include "values.h"
#include "weft/hash.h"

namespace weft::py {
namespace {

// `key`: position or name of the argument.
void check_hashable(const JitState& s, PyObject* value, PyObject* key) {
  if (PyObject_Hash(value) != -1) return;
  PyErr_Clear();
  Ref text = Ref::checked(PyObject_Repr(value));
  Ref which = Ref::checked(
      PyObject_CallFunctionObjArgs(hooks.describe_position.get(), s.function.get(), key, nullptr));
  raise_error("NonHashableStaticArgumentError", "expected a hashable value for static ",
              utf8(which.get()), "; got ", Py_TYPE(value)->tp_name, ": ", utf8(text.get()),
              "\n  Static arguments are part of the key under which a program is cached.");
}

// A leaf that is neither array nor number, at the position that its path names.
[[noreturn]] void raise_bad_leaf(const JitState& s, const Call& call, size_t i) {
  Ref text = Ref::checked(PyObject_Repr(call.leaves[i]));
  std::string shown(utf8(text.get()));
  if (shown.size() > 60) shown = shown.substr(0, 57) + "...";
  raise_error("ArgumentTypeError", "expected an array, a number or a tree of them for ",
              describe_leaf(s, call.signature.tree, i), "; got ", Py_TYPE(call.leaves[i])->tp_name,
              ": ", shown,
              "\n  Mark it static (static_argnums, static_argnames) if it is no data.");
}

Operand classify_leaf(PyObject* o, bool allow_abstract) {
  return allow_abstract ? classify_abstract(o) : classify(o);
}

}  // namespace

bool Signature::operator==(const Signature& o) const {
  auto same = [](const Ref& a, const Ref& b) {
    return a.get() == b.get() || (a && b && same_value(a.get(), b.get()));
  };
  return hash == o.hash && x64 == o.x64 && leaves == o.leaves && same(tree, o.tree) &&
         same(statics, o.statics);
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

std::string describe_leaf(const JitState& s, const Ref& in_tree, size_t i) {
  Ref number = Ref::checked(PyLong_FromSize_t(i));
  Ref path = Ref::checked(PyObject_CallFunctionObjArgs(
      hooks.describe.get(), s.function.get(), in_tree ? in_tree.get() : Py_None,
      s.static_argnums_object.get(), number.get(), nullptr));
  return std::string(utf8(path.get()));
}

void prepare(JitState& s, PyObject* const* args, Py_ssize_t n, PyObject* kwnames, Call& call,
             bool allow_abstract) {
  Py_ssize_t nk = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
  bool has_static = !s.static_argnums.empty() || !s.static_argnames.empty();
  bool plain = nk == 0 && !has_static;
  for (Py_ssize_t i = 0; plain && i < n; ++i) {
    Operand x = classify_leaf(args[i], allow_abstract);
    plain = x.type != nullptr;
    call.leaves.push_back(args[i]);
    call.operands.push_back(x);
  }
  uint64_t tree_hash = 0;
  bool simple = nk == 0 && !has_static;
  if (!plain) {
    call.leaves.clear();
    call.operands.clear();
  }
  if (!plain && simple && s.memo.flatten(args, static_cast<size_t>(n), call.leaves)) {
    call.signature.tree = s.memo.tree();
    tree_hash = s.memo.tree_hash();
    call.operands.reserve(call.leaves.size());
    call.owned.reserve(call.leaves.size());
    for (PyObject* leaf : call.leaves) {
      call.owned.push_back(Ref::borrow(leaf));  // another thread may change the containers
      call.operands.push_back(classify(leaf));
    }
  } else if (!plain) {
    Ref positional = Ref::checked(PyList_New(0));
    std::vector<Ref> statics;
    for (Py_ssize_t i = 0; i < n; ++i) {
      if (has_static && is_static_position(s, i, n)) {
        statics.push_back(Ref::checked(PyLong_FromSsize_t(i)));
        check_hashable(s, args[i], statics.back().get());
        statics.push_back(Ref::borrow(args[i]));
      } else {
        check(PyList_Append(positional.get(), args[i]));
      }
    }
    Ref keyword = Ref::checked(PyDict_New());
    for (Py_ssize_t i = 0; i < nk; ++i) {
      PyObject* key = PyTuple_GET_ITEM(kwnames, i);
      if (has_static && contains_name(s.static_argnames, key)) {
        check_hashable(s, args[n + i], key);
        statics.push_back(Ref::borrow(key));
        statics.push_back(Ref::borrow(args[n + i]));
      } else {
        check(PyDict_SetItem(keyword.get(), key, args[n + i]));
      }
    }
    Ref tuple = Ref::checked(PyList_AsTuple(positional.get()));
    call.dynamic = Ref::checked(PyTuple_Pack(2, tuple.get(), keyword.get()));
    Ref flat = Ref::checked(PyObject_CallOneArg(hooks.flatten.get(), call.dynamic.get()));
    Ref leaves = Ref::borrow(PyTuple_GET_ITEM(flat.get(), 0));
    call.signature.tree = Ref::borrow(PyTuple_GET_ITEM(flat.get(), 1));
    Py_ssize_t count = PyList_GET_SIZE(leaves.get());
    call.operands.reserve(static_cast<size_t>(count));
    for (Py_ssize_t i = 0; i < count; ++i) {
      PyObject* leaf = PyList_GET_ITEM(leaves.get(), i);
      call.leaves.push_back(leaf);
      call.operands.push_back(classify_leaf(leaf, allow_abstract));
      if (!call.operands.back().type) raise_bad_leaf(s, call, static_cast<size_t>(i));
    }
    call.owned.push_back(std::move(leaves));
    if (simple) s.memo.learn(args, static_cast<size_t>(n), call.signature.tree);
    if (!statics.empty()) {
      Ref all = Ref::checked(PyTuple_New(static_cast<Py_ssize_t>(statics.size())));
      for (size_t i = 0; i < statics.size(); ++i)
        PyTuple_SET_ITEM(all.get(), static_cast<Py_ssize_t>(i), statics[i].release());
      call.signature.statics = std::move(all);
    }
  }
  Signature& sig = call.signature;
  sig.x64 = x64_enabled();
  uint64_t h = hash_combine(call.operands.size(), sig.x64);
  for (const Operand& x : call.operands) {
    uint64_t t = reinterpret_cast<uint64_t>(x.type) | x.weak;
    sig.leaves.push_back(t);
    h = hash_combine(h, t);
  }
  auto hash_of = [](const Ref& part) {
    Py_hash_t p = PyObject_Hash(part.get());
    if (p == -1) throw PythonError{};
    return static_cast<uint64_t>(p);
  };
  if (sig.tree) h = hash_combine(h, tree_hash ? tree_hash : hash_of(sig.tree));
  if (sig.statics) h = hash_combine(h, hash_of(sig.statics));
  sig.hash = h;
}

void unpack(Call& call, PyObject* const* args, Py_ssize_t n) {
  if (call.dynamic || !call.signature.tree) return;
  Ref positional = Ref::checked(PyTuple_New(n));
  for (Py_ssize_t i = 0; i < n; ++i) PyTuple_SET_ITEM(positional.get(), i, Py_NewRef(args[i]));
  Ref keyword = Ref::checked(PyDict_New());
  call.dynamic = Ref::checked(PyTuple_Pack(2, positional.get(), keyword.get()));
}

}  // namespace weft::py
