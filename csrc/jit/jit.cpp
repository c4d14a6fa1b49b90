// The type JitFunction, and the way of a call through the other jit files: signature, lookup, trace
// on a miss, call.

#include "jit/jit.h"

#include <algorithm>
#include <optional>

#include "arrays/array.h"
#include "binding/bind.h"
#include "conversions/location.h"
#include "conversions/public_function.h"
#include "jit/call.h"
#include "jit/history.h"
#include "jit/signature.h"
#include "jit/state.h"
#include "jit/stored.h"
#include "jit/trace.h"
#include "references/hooks.h"
#include "references/object_type.h"
#include "references/setting_scope.h"
#include "references/timer.h"
#include "tracing/cell.h"

namespace weft::py {

PyTypeObject* jit_type;

namespace {

struct JitObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyObject* dict;
  PyObject* weakrefs;
  JitState* state;

  int visit(visitproc visit, void* arg) const {
    if (!state) return 0;
    Py_VISIT(state->function.get());
    Py_VISIT(state->options.get());
    Py_VISIT(state->traces_object.get());
    Py_VISIT(state->stored.get());
    return 0;
  }
  void clear() {
    if (!state) return;
    state->function = Ref::borrow(Py_None);  // whoever calls it still gets an error
    state->stored = Ref();
  }
  void release() { delete state; }
};
JitObject* as_jit(PyObject* o) { return reinterpret_cast<JitObject*>(o); }

// Whether an entry serves a call at this place: within a trace, derivatives may be wanted of it.
bool is_enough(const Entry& entry) { return !entry.runs_only || context_stack().empty(); }

// Why a call has to be traced.
Miss why_missed(const JitState& s, const Signature& own) {
  const Traces& traces = s.traces();
  Miss miss;
  miss.loc = current_loc();
  miss.hash = own.hash;
  miss.num_leaves = own.leaves.size();
  const Miss* last = traces.history.last(own.hash);
  if (EntryRef known = traces.find(own, s.id)) {
    miss.cause = Miss::kRunsOnly;
  } else if (last && (last->seconds < 0 || !last->is_kept || last->has_leaked)) {
    miss.cause = last->seconds < 0 ? Miss::kFailed : !last->is_kept ? Miss::kOuter : Miss::kLeaked;
  } else if (last && !traces.has_hash(own.hash)) {
    miss.cause = Miss::kForgotten;
  } else if (std::optional<Signature> closest = traces.closest(own)) {
    miss.cause = Miss::kDiffers;
    compare(miss, own, *closest);
  } else if (traces.history.was_cleared()) {
    miss.cause = Miss::kCleared;
  } else if (uint64_t others = functions_of_same_code(s.function.get(), false)) {
    miss.cause = Miss::kFresh;
    miss.others = others;
  }
  return miss;
}

// A miss that is remembered, and told if the user wants to know when its trace has ended.
class NotedMiss {
 public:
  NotedMiss(const JitState& s, const Signature& signature) : function_(s.function) {
    if (s.library) return;
    miss_ = std::make_shared<Miss>(why_missed(s, signature));
    miss_->is_nested = !context_stack().empty();
    functions_of_same_code(s.function.get(), true);
    s.traces().history.add(miss_);
  }
  void found_stored() {
    if (miss_) miss_->cause = Miss::kStored;
  }
  void note(std::string text) {
    if (miss_) miss_->note = std::move(text);
  }
  void traced(Entry& entry, double seconds) {
    if (!miss_) return;
    miss_->seconds = seconds;
    miss_->ops = count_ops(*entry.graph);
    miss_->is_kept = !entry.of_outer_trace;
    miss_->has_leaked = entry.leaked;
    entry.miss = miss_;
    if (is_on(kExplainMisses)) notice("missed", {function_, miss_object(*miss_)});
  }

 private:
  Ref function_;
  MissRef miss_;  // null for functions of the library
};

// (args, kwargs) as the interpreter passes arguments.
class PassedArguments {
 public:
  PassedArguments(PyObject* args, PyObject* kwargs)
      : num_positional_(PyTuple_GET_SIZE(args)),
        names_(Ref::checked(PyTuple_New(PyDict_Size(kwargs)))) {
    for (Py_ssize_t i = 0; i < num_positional_; ++i) values_.push_back(PyTuple_GET_ITEM(args, i));
    PyObject *key, *value;
    Py_ssize_t pos = 0, next = 0;
    while (PyDict_Next(kwargs, &pos, &key, &value)) {
      values_.push_back(value);
      PyTuple_SET_ITEM(names_.get(), next++, Py_NewRef(key));
    }
  }
  Arguments arguments() const {
    bool any = PyTuple_GET_SIZE(names_.get()) != 0;
    return {values_.data(), num_positional_, any ? names_.get() : nullptr};
  }

 private:
  Py_ssize_t num_positional_;
  Ref names_;
  std::vector<PyObject*> values_;
};

// While a function of the library runs for another one: what it promotes is no user's doing. Its
// traces are kept by what is watched, so those of calls by users are others.
class WithinLibrary {
 public:
  explicit WithinLibrary(const JitState& s) {
    if (!s.library || !promotion_is_watched()) return;
    if (works_for_user(s.function.get())) return;
    before_ = thread_config();
    for (const Setting& watched : {kStrictPromotion, kRankPromotion}) {
      thread_config().set |= watched.mask();
      thread_config().word &= ~watched.mask();
    }
  }
  ~WithinLibrary() {
    if (before_) thread_config() = *before_;
  }
  WithinLibrary(const WithinLibrary&) = delete;
  WithinLibrary& operator=(const WithinLibrary&) = delete;

 private:
  std::optional<ThreadConfig> before_;
};

// Where the program of an entry runs for these arguments.
Placement placement_on(const JitState& s, const Entry& entry, const Call& call) {
  std::vector<Ref> captures = capture_values(entry.captures, call.leaves);
  std::vector<Operand> operands;
  for (const Ref& c : captures) operands.push_back(classify(c.get()));
  operands.insert(operands.end(), call.operands.begin(), call.operands.end());
  return placement_of(s, entry, operands);
}

// The entry of a call, traced here if no other thread is at it.
EntryRef find_or_trace(const JitState& s, Call& call) {
  Traces& traces = s.traces();
  while (true) {
    EntryRef entry = traces.find(call.signature, s.id);
    if (entry && is_enough(*entry)) {
      ++traces.hits;
      return entry;
    }
    auto same = [&](const Signature& k) { return k == call.signature; };
    if (!traces.in_flight.wait(same)) break;
  }
  check_may_trace(s.name);
  NotedMiss miss(s, call.signature);
  ++traces.misses;
  Ref held = s.traces_object;  // the trace may drop the function
  InFlightTable<Signature>::Begun begun(traces.in_flight, call.signature, true);
  Timer timer;
  std::string why_not;
  std::shared_ptr<Entry> entry = s.stored ? stored_entry(s, call, why_not) : nullptr;
  if (entry) {
    miss.found_stored();
  } else {
    entry = trace(s, call);
    if (s.stored) store_entry(s, call, *entry, why_not);
    miss.note(std::move(why_not));
  }
  double seconds = timer.passed();
  if (is_on(kLogCompiles)) notice("traced", {to_text(s.name), timer.seconds()});
  miss.traced(*entry, seconds);
  // What closes over tracers of an outer trace is good for that trace only.
  if (!entry->of_outer_trace) traces.add(std::move(call.signature), entry, s.id);
  return entry;
}

// Whether an argument of a composite() is a Python int that a program cannot take as it is: one
// beyond the default integer dtype, or beyond that of another argument where that matters. What
// becomes of it, the operations of the function say.
bool has_wide_int(const JitState& s, const Call& call) {
  auto is_beyond = [&](const Operand& x) {
    if (!is_python_int(x)) return false;
    if (side_of(x, x.type->dtype()) != 0) return true;
    return s.exact_ints && std::ranges::any_of(call.operands, [&](const Operand& y) {
             return !y.weak && is_integer(y.type->dtype()) && side_of(x, y.type->dtype()) != 0;
           });
  };
  return s.library && std::ranges::any_of(call.operands, is_beyond);
}

// That of the public function which a private one does the work of.
std::string_view public_name(const JitState& s) {
  std::string_view name = s.name;
  return name.substr(std::min(name.find_first_not_of('_'), name.size()));
}

PyObject* call_jit(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  PyObject* result = guard([&]() -> PyObject* {
    const JitState& s = *as_jit(self)->state;
    WithinLibrary within(s);
    // The library's functions stay whole, so that their values and what is found to be NaN are
    // those of other calls. But the keys in them are seen when they are used.
    std::optional<Without> whole;
    if (s.library && jit_disabled() && !is_on(kKeyReuse)) whole.emplace(kDisableJit.mask());
    if (jit_disabled()) return PyObject_Vectorcall(s.function.get(), args, nargsf, kwnames);
    Call call = prepare(s, {args, PyVectorcall_NARGS(nargsf), kwnames}, false);
    if (s.broadcasts) check_ranks(call.operands, public_name(s), [] { return true; });
    if (has_wide_int(s, call)) return PyObject_Vectorcall(s.function.get(), args, nargsf, kwnames);
    EntryRef entry = find_or_trace(s, call);
    return call_entry(s, *entry, call).release();
  });
  return result ? result
                : call_failed(self, as_jit(self)->state->function.get(), args, nargsf, kwnames);
}

// The fields of weft's JitOptions, by name.
class OptionFields {
 public:
  explicit OptionFields(PyObject* options) : options_(options) {}
  Ref object(const char* name) const {
    return Ref::checked(PyObject_GetAttrString(options_, name));
  }
  Ref unless_none(const char* name) const {
    Ref found = object(name);
    return found.get() == Py_None ? Ref() : found;
  }
  bool flag(const char* name) const { return is_true(object(name).get()); }
  Ref tuple(const char* name) const {
    Ref found = object(name);
    if (!PyTuple_Check(found.get()))
      raise_error("OperandError", "JitFunction expected a tuple for ", name);
    return found;
  }
  SmallVector<int64_t, 4> ints(const char* name) const {
    SmallVector<int64_t, 4> out;
    for_each(name, [&](PyObject* item) { out.push_back(to_int(item)); });
    return out;
  }
  std::vector<Ref> names(const char* name) const {
    std::vector<Ref> out;
    for_each(name, [&](PyObject* item) { out.push_back(Ref::borrow(item)); });
    return out;
  }

 private:
  template <typename Visit>
  void for_each(const char* name, Visit&& visit) const {
    Ref found = tuple(name);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(found.get()); ++i)
      visit(PyTuple_GET_ITEM(found.get(), i));
  }

  PyObject* options_;
};

void read_options(JitState& s) {
  OptionFields given(s.options.get());
  s.static_argnums_object = given.tuple("static_argnums");
  s.static_argnums = given.ints("static_argnums");
  s.static_argnames = given.names("static_argnames");
  s.donate_argnums = given.ints("donate_argnums");
  s.donate_argnames = given.names("donate_argnames");
  s.is_inline = given.flag("inline");
  s.keep_unused = given.flag("keep_unused");
  s.library = given.flag("library");
  s.exact_ints = given.flag("exact_ints");
  s.broadcasts = given.flag("broadcasts");
  int64_t device = to_int(given.object("device").get());
  if (device >= 0) check_device(device);
  if (device >= 0) s.at = device_table()[static_cast<size_t>(device)].sharding;
  s.in_shardings = given.unless_none("in_shardings");
  s.out_shardings = given.unless_none("out_shardings");
  s.how.xla_options = compiler_options_number(given.object("compiler_options").get());
  s.how.cut = cut_named(given.object("compile").get());
  s.how.kernels = kernels_named(given.object("kernels").get());
}

// JitFunction(function, name, options, traces)
PyObject* create(PyTypeObject* type, PyObject* args, PyObject*) {
  return guard([&]() -> PyObject* {
    PyObject *function, *name, *options, *traces;
    if (!PyArg_ParseTuple(args, "OUOO", &function, &name, &options, &traces)) throw PythonError{};
    if (!traces_of(traces)) raise_error("OperandError", "JitFunction expected a Traces");
    auto state = std::make_unique<JitState>();
    state->function = Ref::borrow(function);
    state->name = readable(name);
    state->options = Ref::borrow(options);
    read_options(*state);
    static uint64_t count = 0;
    state->id = ++count;
    state->traces_object = Ref::borrow(traces);
    PyObject* self = type->tp_alloc(type, 0);
    if (!self) throw PythonError{};
    as_jit(self)->vectorcall = call_jit;
    as_jit(self)->state = state.release();
    return self;
  });
}

PyObject* cache_info(PyObject* self, PyObject*) {
  Traces& t = as_jit(self)->state->traces();
  return Py_BuildValue("(KKnn)", t.hits, t.misses, static_cast<Py_ssize_t>(t.size()),
                       static_cast<Py_ssize_t>(Traces::kMaxEntries));
}

PyObject* clear_cache(PyObject* self, PyObject*) {
  as_jit(self)->state->traces().clear();
  return Py_NewRef(Py_None);
}

// A list of what was traced, and how many older misses are forgotten.
PyObject* history(PyObject* self, PyObject*) {
  return guard([&]() -> PyObject* {
    const History& all = as_jit(self)->state->traces().history;
    Ref list = Ref::checked(PyList_New(0));
    for (const MissRef& miss : all.all())
      check(PyList_Append(list.get(), miss_object(*miss).get()));
    return Py_BuildValue("(On)", list.get(), static_cast<Py_ssize_t>(all.dropped()));
  });
}

// (args, kwargs) -> what a call would find: (what it would be traced for, or None; the miss of the
// trace that it would use, or None; whether that is compiled for where the call would run).
PyObject* outlook(PyObject* self, PyObject* given) {
  return guard([&]() -> PyObject* {
    PyObject *args, *kwargs;
    if (!PyArg_ParseTuple(given, "O!O!", &PyTuple_Type, &args, &PyDict_Type, &kwargs))
      throw PythonError{};
    const JitState& s = *as_jit(self)->state;
    PassedArguments passed(args, kwargs);
    Call call = prepare(s, passed.arguments(), true);
    EntryRef entry = s.traces().find(call.signature, s.id);
    if (!entry || !is_enough(*entry)) {
      Ref miss = miss_object(why_missed(s, call.signature));
      return Py_BuildValue("(OOO)", miss.get(), Py_None, Py_False);
    }
    MissRef known = entry->miss.lock();
    Ref made = known ? miss_object(*known) : Ref::borrow(Py_None);
    bool ready = is_compiled(*entry, placement_on(s, *entry, call).places, s.how);
    return Py_BuildValue("(OOO)", Py_None, made.get(), ready ? Py_True : Py_False);
  });
}

// Sets the store of traces, an object with the methods load and save; see weft._aot.
PyObject* keep_in(PyObject* self, PyObject* store) {
  as_jit(self)->state->stored = Ref::borrow(store);
  return Py_NewRef(Py_None);
}

PyObject* options_of(PyObject* self, void*) {
  return Py_NewRef(as_jit(self)->state->options.get());
}

PyMethodDef methods[] = {
    {"_keep_in", keep_in, METH_O, "Keeps traces in a store, for other processes."},
    {"_history", history, METH_NOARGS, "(misses, how many older ones are forgotten)"},
    {"_outlook", outlook, METH_VARARGS, "What a call with these arguments would find."},
    {"_cache_info", cache_info, METH_NOARGS, "(hits, misses, size, limit)"},
    {"clear_cache", clear_cache, METH_NOARGS, "Forgets every traced signature of this function."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

TracedCall trace_call(PyObject* jit_function, PyObject* args, PyObject* kwargs) {
  if (Py_TYPE(jit_function) != jit_type) {
    PyErr_SetString(PyExc_TypeError, "expected a function made by jit");
    throw PythonError{};
  }
  const JitState& s = *as_jit(jit_function)->state;
  PassedArguments passed(args, kwargs);
  Call call = prepare(s, passed.arguments(), true);
  EntryRef entry = find_or_trace(s, call);
  return {entry, placement_on(s, *entry, call), s.options, s.keep_unused, s.how};
}

void init_jit(PyObject* module) {
  jit_type = ObjectType<JitObject>::make(
      "weft.JitFunction", 0,
      {{Py_tp_new, reinterpret_cast<void*>(create)},
       {Py_tp_descr_get, reinterpret_cast<void*>(bind_method)},
       {Py_tp_methods, methods},
       {Py_tp_doc, const_cast<char*>("A function that runs as a compiled program.")}},
      {{"_options", options_of, nullptr, "What jit was given: a JitOptions.", nullptr}});
  check(PyModule_AddObjectRef(module, "JitFunction", reinterpret_cast<PyObject*>(jit_type)));
}

}  // namespace weft::py
