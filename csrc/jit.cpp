// The jit call path: flatten, signature, lookup, execute, wrap, unflatten. Tracing happens here
// too, on a miss.

#include "jit.h"

#include <structmember.h>

#include <algorithm>
#include <unordered_map>

#include "array.h"
#include "dtypes.h"
#include "location.h"
#include "recording.h"
#include "tree_memo.h"
#include "weft/hash.h"

namespace weft::py {

PyTypeObject* jit_type;
JitHooks& jit_hooks = *new JitHooks;  // see `runtime`

namespace {

// Key of the per-function cache.
struct Signature {
  SmallVector<uint64_t, 16> leaves;  // type pointer with the weak bit
  Ref tree;                          // null: positional leaves only
  Ref statics;                       // tuple of static values and names, or null
  bool x64 = false;
  uint64_t hash = 0;

  // May run Python code (statics compare by their own equality).
  bool operator==(const Signature& o) const {
    if (hash != o.hash || x64 != o.x64 || !(leaves == o.leaves)) return false;
    return same(tree.get(), o.tree.get()) && same_statics(statics.get(), o.statics.get());
  }
  // Values of different types are different, also when they are equal (1, True, 1.0).
  static bool same_statics(PyObject* a, PyObject* b) {
    if (a && b && PyTuple_GET_SIZE(a) == PyTuple_GET_SIZE(b))
      for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(a); ++i)
        if (Py_TYPE(PyTuple_GET_ITEM(a, i)) != Py_TYPE(PyTuple_GET_ITEM(b, i))) return false;
    return same(a, b);
  }
  static bool same(PyObject* a, PyObject* b) {
    if (a == b) return true;
    if (!a || !b) return false;
    int eq = PyObject_RichCompareBool(a, b, Py_EQ);
    check(eq);
    return eq != 0;
  }
};
// Signatures compare outside of any walk over the table that holds them, since comparing may run
// Python code and so let other threads change the table.
struct CacheItem {
  Signature signature;
  EntryRef entry;
};
using CacheItemRef = std::shared_ptr<const CacheItem>;

constexpr size_t kMaxEntries = 4096;

struct JitState {
  Ref function;
  std::string name;
  SmallVector<int64_t, 4> static_argnums;
  Ref static_argnums_object;  // the same as a tuple, for messages
  std::vector<Ref> static_argnames;
  SmallVector<int64_t, 4> donate_argnums;
  std::vector<Ref> donate_argnames;
  bool is_inline = false;
  bool library = false;  // composite(): ops carry the caller's location
  bool keep_unused = false;
  std::unordered_multimap<uint64_t, CacheItemRef> entries;
  TreeMemo memo;
  uint64_t hits = 0, misses = 0;
};

EntryRef find_entry(const JitState& s, const Signature& signature) {
  auto [first, last] = s.entries.equal_range(signature.hash);
  if (first == last) return nullptr;
  CacheItemRef only = first->second;
  if (std::next(first) == last) return only->signature == signature ? only->entry : nullptr;
  std::vector<CacheItemRef> candidates;
  for (auto it = first; it != last; ++it) candidates.push_back(it->second);
  for (const CacheItemRef& c : candidates)
    if (c->signature == signature) return c->entry;
  return nullptr;
}

struct JitObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyObject* dict;
  PyObject* weakrefs;
  JitState* state;
};
JitObject* as_jit(PyObject* o) { return reinterpret_cast<JitObject*>(o); }

// Arguments of one call, split into leaves and static values.
struct Call {
  std::vector<Ref> owned;  // what keeps `leaves` alive
  SmallVector<PyObject*, 16> leaves;
  std::vector<Operand> operands;
  Ref dynamic;  // (args, kwargs) without statics; null when leaves are positional
                // or the memo flattened them
  Signature signature;
};

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

// `key`: position or name of the argument.
void check_hashable(const JitState& s, PyObject* value, PyObject* key) {
  if (PyObject_Hash(value) != -1) return;
  PyErr_Clear();
  Ref text = Ref::checked(PyObject_Repr(value));
  Ref which = Ref::checked(PyObject_CallFunctionObjArgs(jit_hooks.describe_position.get(),
                                                        s.function.get(), key, nullptr));
  raise_error("NonHashableStaticArgumentError", "expected a hashable value for static ",
              utf8(which.get()), "; got ", Py_TYPE(value)->tp_name, ": ", utf8(text.get()),
              "\n  Static arguments are part of the key under which a program is cached.");
}

std::string describe_leaf(const JitState& s, const Ref& in_tree, size_t i) {
  Ref number = Ref::checked(PyLong_FromSize_t(i));
  Ref path = Ref::checked(PyObject_CallFunctionObjArgs(
      jit_hooks.describe.get(), s.function.get(), in_tree ? in_tree.get() : Py_None,
      s.static_argnums_object.get(), number.get(), nullptr));
  return std::string(utf8(path.get()));
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

// Splits the arguments and computes the signature.
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
    Ref flat = Ref::checked(PyObject_CallOneArg(jit_hooks.flatten.get(), call.dynamic.get()));
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

// Makes call.dynamic for arguments that the memo flattened: tracing needs the tree itself.
void unpack(Call& call, PyObject* const* args, Py_ssize_t n) {
  if (call.dynamic || !call.signature.tree) return;
  Ref positional = Ref::checked(PyTuple_New(n));
  for (Py_ssize_t i = 0; i < n; ++i) PyTuple_SET_ITEM(positional.get(), i, Py_NewRef(args[i]));
  Ref keyword = Ref::checked(PyDict_New());
  call.dynamic = Ref::checked(PyTuple_Pack(2, positional.get(), keyword.get()));
}

// Calls the user's function on tracers.
Ref call_function(const JitState& s, const Call& call, std::vector<Ref>& tracers) {
  if (!call.dynamic) {
    std::vector<PyObject*> args;
    for (Ref& t : tracers) args.push_back(t.get());
    return Ref::checked(PyObject_Vectorcall(s.function.get(), args.data(), args.size(), nullptr));
  }
  Ref list = Ref::checked(PyList_New(static_cast<Py_ssize_t>(tracers.size())));
  for (size_t i = 0; i < tracers.size(); ++i)
    PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i), Py_NewRef(tracers[i].get()));
  Ref dynamic = Ref::checked(
      PyObject_CallMethodOneArg(call.signature.tree.get(), name("unflatten"), list.get()));
  PyObject* positional = PyTuple_GET_ITEM(dynamic.get(), 0);
  Ref kwargs = Ref::checked(PyDict_Copy(PyTuple_GET_ITEM(dynamic.get(), 1)));
  std::vector<std::pair<Py_ssize_t, PyObject*>> static_args;
  if (call.signature.statics) {
    PyObject* statics = call.signature.statics.get();
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(statics); i += 2) {
      PyObject* key = PyTuple_GET_ITEM(statics, i);
      PyObject* value = PyTuple_GET_ITEM(statics, i + 1);
      if (PyUnicode_Check(key)) {
        check(PyDict_SetItem(kwargs.get(), key, value));
      } else {
        static_args.emplace_back(PyLong_AsSsize_t(key), value);
      }
    }
  }
  Py_ssize_t n = PyTuple_GET_SIZE(positional) + static_cast<Py_ssize_t>(static_args.size());
  Ref args = Ref::checked(PyTuple_New(n));
  Py_ssize_t next = 0;
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* value = nullptr;
    for (auto& [at, v] : static_args)
      if (at == i) value = v;
    if (!value) value = PyTuple_GET_ITEM(positional, next++);
    PyTuple_SET_ITEM(args.get(), i, Py_NewRef(value));
  }
  return Ref::checked(PyObject_Call(s.function.get(), args.get(), kwargs.get()));
}

// Which graph inputs are donated: those of arguments named by the donate_* options.
std::vector<bool> donated_inputs(const JitState& s, const Call& call, Py_ssize_t num_positional,
                                 size_t num_captures) {
  std::vector<bool> donated(num_captures + call.leaves.size(), false);
  if (s.donate_argnums.empty() && s.donate_argnames.empty()) return {};
  size_t leaf = num_captures;
  auto mark = [&](size_t count, bool on) {
    for (size_t i = 0; i < count; ++i) donated[leaf++] = on;
  };
  auto leaves_of = [&](PyObject* tree) -> size_t {
    Ref flat = Ref::checked(PyObject_CallOneArg(jit_hooks.flatten.get(), tree));
    return static_cast<size_t>(PyList_GET_SIZE(PyTuple_GET_ITEM(flat.get(), 0)));
  };
  auto donates = [&](int64_t i) {
    for (int64_t d : s.donate_argnums)
      if (d == i || d + num_positional == i) return true;
    return false;
  };
  if (!call.dynamic) {
    for (size_t i = 0; i < call.leaves.size(); ++i) mark(1, donates(static_cast<int64_t>(i)));
    return donated;
  }
  PyObject* positional = PyTuple_GET_ITEM(call.dynamic.get(), 0);
  int64_t at = 0;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(positional); ++i, ++at) {
    while (is_static_position(s, at, num_positional)) ++at;
    mark(leaves_of(PyTuple_GET_ITEM(positional, i)), donates(at));
  }
  // Keyword arguments flatten in sorted order of their names.
  Ref keys = Ref::checked(PyDict_Keys(PyTuple_GET_ITEM(call.dynamic.get(), 1)));
  check(PyList_Sort(keys.get()));
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(keys.get()); ++i) {
    PyObject* key = PyList_GET_ITEM(keys.get(), i);
    PyObject* value = PyDict_GetItem(PyTuple_GET_ITEM(call.dynamic.get(), 1), key);
    mark(leaves_of(value), contains_name(s.donate_argnames, key));
  }
  return donated;
}

EntryRef trace(const JitState& s, const Call& call, Py_ssize_t num_positional) {
  auto context = std::make_shared<TraceContext>();
  context->name = s.name;
  context->locations = !s.library;
  context->num_args = static_cast<uint32_t>(call.operands.size());
  Ref tree = call.signature.tree ? call.signature.tree : Ref::borrow(Py_None);
  context->describe =
      Ref::checked(PyTuple_Pack(3, s.function.get(), tree.get(), s.static_argnums_object.get()));
  auto entry = std::make_shared<Entry>();
  entry->name = s.name;
  entry->in_tree = call.signature.tree;
  std::vector<Value> outputs;
  {
    ContextScope scope(context);
    std::vector<Ref> tracers;
    tracers.reserve(call.operands.size());
    for (const Operand& x : call.operands)
      tracers.push_back(Ref::steal(make_tracer(context, context->builder.input(x.type), x.weak)));
    Ref result = call_function(s, call, tracers);
    std::vector<Ref> leaves;
    if (is_tracer(result.get()) || is_array(result.get())) {
      leaves.push_back(std::move(result));
    } else {
      Ref flat = Ref::checked(PyObject_CallOneArg(jit_hooks.flatten.get(), result.get()));
      PyObject* list = PyTuple_GET_ITEM(flat.get(), 0);
      entry->out_tree = Ref::borrow(PyTuple_GET_ITEM(flat.get(), 1));
      for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); ++i)
        leaves.push_back(Ref::borrow(PyList_GET_ITEM(list, i)));
    }
    for (size_t i = 0; i < leaves.size(); ++i) {
      Operand x = classify(leaves[i].get());
      if (x.kind == OperandKind::kInvalid) {
        Ref number = Ref::checked(PyLong_FromSize_t(i));
        Ref out_tree = entry->out_tree ? entry->out_tree : Ref::borrow(Py_None);
        Ref path = Ref::checked(PyObject_CallFunctionObjArgs(jit_hooks.describe_output.get(),
                                                             s.function.get(), out_tree.get(),
                                                             number.get(), nullptr));
        raise_error("ArgumentTypeError", "expected arrays and numbers in ", utf8(path.get()),
                    "; got ", Py_TYPE(leaves[i].get())->tp_name);
      }
      context_for({&x, 1});  // raises for a tracer of a finished trace
      outputs.push_back(value_in(*context, x, x.type->dtype()));
      entry->weak.push_back(x.weak);
    }
  }
  entry->captures = context->captures;
  for (const Ref& c : entry->captures) entry->captures_tracers |= is_tracer(c.get());
  entry->graph = context->builder.finish(outputs, context->capture_values);
  entry->donated = donated_inputs(s, call, num_positional, entry->captures.size());
  return entry;
}

// The graph as a region: captured values are inputs like the others.
const AttrsRef& call_attrs(const Entry& e) {
  if (!e.call_attrs) {
    const OpDef& op = registry().get("jit");
    e.call_attrs =
        AttrRecord::make(op.name, op.attrs, {{"name", e.name}, {"jaxpr", as_region(e.graph)}});
  }
  return e.call_attrs;
}

Ref assemble(const Entry& e, std::span<PyObject* const> outputs) {
  if (!e.out_tree) return Ref::steal(outputs[0]);
  Ref list = Ref::checked(PyList_New(static_cast<Py_ssize_t>(outputs.size())));
  for (size_t i = 0; i < outputs.size(); ++i)
    PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i), outputs[i]);
  return Ref::checked(PyObject_CallMethodOneArg(e.out_tree.get(), name("unflatten"), list.get()));
}

// Within a trace: a `jit` op, or the callee's ops for an inline function.
Ref record_call(const JitState& s, const Entry& e, const ContextRef& c,
                std::span<const Operand> operands) {
  Values args;
  for (const Operand& x : operands) args.push_back(value_in(*c, x, x.type->dtype()));
  c->builder.set_loc(c->locations ? current_loc() : kNoLoc);
  static const OpDef& jit_op = registry().get("jit");
  Values results = s.is_inline ? c->builder.inline_graph(*e.graph, args)
                               : c->builder.add(jit_op, args, call_attrs(e));
  std::vector<PyObject*> outputs;
  for (size_t i = 0; i < results.size(); ++i)
    outputs.push_back(make_tracer(c, results[i], e.weak[i]));
  return assemble(e, outputs);
}

Ref execute(const JitState& s, const Entry& e, std::span<const Operand> operands) {
  Placement where = placement(operands, [&](size_t i) {
    size_t captures = e.captures.size();
    return i < captures ? cat("an array that '", s.name, "' closes over")
                        : describe_leaf(s, e.in_tree, i - captures);
  });
  ProgramRef program = program_for(e, where.device, s.keep_unused);
  std::vector<Ref> held;
  SmallVector<PyObject*, 16> inputs;
  for (const Operand& x : operands) {
    if (x.kind == OperandKind::kArray && as_array(x.object)->device == where.device) {
      inputs.push_back(x.object);
    } else if (x.kind == OperandKind::kScalar && !program->donated.empty()) {
      held.push_back(fresh_scalar(scalar_value(x, x.type->dtype()), where.device, x.weak));
      inputs.push_back(held.back().get());
    } else {
      held.push_back(on_device(to_device(x, where.device), where.device));
      inputs.push_back(held.back().get());
    }
  }
  std::vector<PyObject*> outputs;
  run(*program, {inputs.data(), inputs.size()}, where.committed, outputs);
  return assemble(e, outputs);
}

PyObject* call_jit(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  return guard([&]() -> PyObject* {
    JitState& s = *as_jit(self)->state;
    Py_ssize_t n = PyVectorcall_NARGS(nargsf);
    if (jit_disabled()) return PyObject_Vectorcall(s.function.get(), args, nargsf, kwnames);
    Call call;
    prepare(s, args, n, kwnames, call, false);
    EntryRef entry = find_entry(s, call.signature);
    if (entry) {
      ++s.hits;
    } else {
      ++s.misses;
      unpack(call, args, n);
      entry = trace(s, call, n);
      // What closes over tracers of an outer trace is good for that trace only.
      if (!entry->captures_tracers) {
        if (s.entries.size() >= kMaxEntries) s.entries.clear();
        uint64_t hash = call.signature.hash;
        s.entries.emplace(hash,
                          std::make_shared<CacheItem>(CacheItem{std::move(call.signature), entry}));
      }
    }
    std::span<const Operand> operands = call.operands;
    std::vector<Operand> with_captures;
    if (!entry->captures.empty()) {
      for (const Ref& c : entry->captures) with_captures.push_back(classify(c.get()));
      with_captures.insert(with_captures.end(), call.operands.begin(), call.operands.end());
      operands = with_captures;
    }
    ContextRef c = context_for(operands, entry->graph->effects());
    Ref result = c ? record_call(s, *entry, c, operands) : execute(s, *entry, operands);
    return result.release();
  });
}

// JitFunction(function, name, static_argnums, static_argnames, donate_argnums, donate_argnames,
//             inline, keep_unused, library)
PyObject* create(PyTypeObject* type, PyObject* args, PyObject*) {
  return guard([&]() -> PyObject* {
    PyObject *function, *static_nums, *static_names, *donate_nums, *donate_names;
    const char* function_name;
    int is_inline, keep_unused, library;
    if (!PyArg_ParseTuple(args, "OsO!O!O!O!ppp", &function, &function_name, &PyTuple_Type,
                          &static_nums, &PyTuple_Type, &static_names, &PyTuple_Type, &donate_nums,
                          &PyTuple_Type, &donate_names, &is_inline, &keep_unused, &library))
      throw PythonError{};
    auto state = std::make_unique<JitState>();
    state->function = Ref::borrow(function);
    state->name = function_name;
    auto ints = [](PyObject* t, SmallVector<int64_t, 4>& out) {
      for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(t); ++i)
        out.push_back(to_int(PyTuple_GET_ITEM(t, i)));
    };
    auto names = [](PyObject* t, std::vector<Ref>& out) {
      for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(t); ++i)
        out.push_back(Ref::borrow(PyTuple_GET_ITEM(t, i)));
    };
    state->static_argnums_object = Ref::borrow(static_nums);
    ints(static_nums, state->static_argnums);
    names(static_names, state->static_argnames);
    ints(donate_nums, state->donate_argnums);
    names(donate_names, state->donate_argnames);
    state->is_inline = is_inline;
    state->keep_unused = keep_unused;
    state->library = library;
    PyObject* self = type->tp_alloc(type, 0);
    if (!self) throw PythonError{};
    as_jit(self)->vectorcall = call_jit;
    as_jit(self)->state = state.release();
    return self;
  });
}

int traverse(PyObject* self, visitproc visit, void* arg) {
  JitObject* j = as_jit(self);
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(j->dict);
  if (j->state) Py_VISIT(j->state->function.get());
  return 0;
}

int clear(PyObject* self) {
  JitObject* j = as_jit(self);
  Py_CLEAR(j->dict);
  if (j->state) j->state->function = Ref();
  return 0;
}

void dealloc(PyObject* self) {
  PyObject_GC_UnTrack(self);
  JitObject* j = as_jit(self);
  if (j->weakrefs) PyObject_ClearWeakRefs(self);
  Py_CLEAR(j->dict);
  delete j->state;
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* bind_method(PyObject* self, PyObject* instance, PyObject*) {
  if (!instance || instance == Py_None) return Py_NewRef(self);
  return PyMethod_New(self, instance);
}

PyObject* cache_info(PyObject* self, PyObject*) {
  JitState& s = *as_jit(self)->state;
  return Py_BuildValue("(KKnn)", s.hits, s.misses, static_cast<Py_ssize_t>(s.entries.size()),
                       static_cast<Py_ssize_t>(kMaxEntries));
}

PyObject* clear_cache(PyObject* self, PyObject*) {
  as_jit(self)->state->entries.clear();
  return Py_NewRef(Py_None);
}

PyMethodDef methods[] = {
    {"_cache_info", cache_info, METH_NOARGS, "(hits, misses, size, limit)"},
    {"clear_cache", clear_cache, METH_NOARGS, "Forgets every traced signature of this function."},
    {nullptr, nullptr, 0, nullptr}};

PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(JitObject, vectorcall), READONLY, nullptr},
    {"__dictoffset__", T_PYSSIZET, offsetof(JitObject, dict), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(JitObject, weakrefs), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};

PyGetSetDef getset[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

}  // namespace

Operand classify_abstract(PyObject* o) {
  Operand x = classify(o);
  if (x.kind != OperandKind::kInvalid || !jit_hooks.abstract_type ||
      !PyObject_TypeCheck(o, jit_hooks.abstract_type))
    return x;
  Ref shape = Ref::checked(PyObject_GetAttr(o, name("shape")));
  Ref dtype = Ref::checked(PyObject_GetAttr(o, name("dtype")));
  Ref weak = Ref::checked(PyObject_GetAttr(o, name("weak_type")));
  Dims dims;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(shape.get()); ++i)
    dims.push_back(to_int(PyTuple_GET_ITEM(shape.get(), i)));
  x.type = make_type(to_dtype(dtype.get()), dims);
  x.weak = PyObject_IsTrue(weak.get()) == 1;
  x.kind = OperandKind::kInvalid;  // has a type, but no value
  return x;
}

ProgramRef program_for(const Entry& e, int device, bool keep_unused) {
  for (const auto& [d, program] : e.programs)
    if (d == device) return program;
  CompileOptions options;
  options.device = device;
  options.name = e.name;
  options.donated = e.donated;
  options.keep_unused = keep_unused;
  ProgramRef program = compile(e.graph, options, e.weak);
  e.programs.emplace_back(device, program);
  return program;
}

EntryRef trace_entry(PyObject* jit_function, PyObject* args, PyObject* kwargs) {
  if (Py_TYPE(jit_function) != jit_type) {
    PyErr_SetString(PyExc_TypeError, "expected a function made by jit");
    throw PythonError{};
  }
  JitState& s = *as_jit(jit_function)->state;
  std::vector<PyObject*> stack;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i)
    stack.push_back(PyTuple_GET_ITEM(args, i));
  Ref names = Ref::checked(PyTuple_New(PyDict_Size(kwargs)));
  PyObject *key, *value;
  Py_ssize_t pos = 0, next = 0;
  while (PyDict_Next(kwargs, &pos, &key, &value)) {
    stack.push_back(value);
    PyTuple_SET_ITEM(names.get(), next++, Py_NewRef(key));
  }
  Call call;
  prepare(s, stack.data(), PyTuple_GET_SIZE(args), next ? names.get() : nullptr, call, true);
  if (EntryRef entry = find_entry(s, call.signature)) return entry;
  unpack(call, stack.data(), PyTuple_GET_SIZE(args));
  return trace(s, call, PyTuple_GET_SIZE(args));
}

void init_jit(PyObject* module) {
  PyType_Slot slots[] = {
      {Py_tp_new, reinterpret_cast<void*>(create)},
      {Py_tp_dealloc, reinterpret_cast<void*>(dealloc)},
      {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
      {Py_tp_clear, reinterpret_cast<void*>(clear)},
      {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
      {Py_tp_descr_get, reinterpret_cast<void*>(bind_method)},
      {Py_tp_methods, methods},
      {Py_tp_members, members},
      {Py_tp_getset, getset},
      {Py_tp_doc, const_cast<char*>("A function that runs as a compiled program.")},
      {0, nullptr}};
  PyType_Spec spec = {"weft.JitFunction", sizeof(JitObject), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL, slots};
  PyObject* type = PyType_FromSpec(&spec);
  if (!type) throw PythonError{};
  jit_type = reinterpret_cast<PyTypeObject*>(type);
  check(PyModule_AddObjectRef(module, "JitFunction", type));
}

}  // namespace weft::py
