// Buffers in, arrays out.

#include "execution/run.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>

#include "arrays/array.h"
#include "execution/prologue.h"
#include "execution/steps.h"
#include "graphs/checks.h"
#include "graphs/graph_object.h"
#include "references/hooks.h"
#include "tracing/in_flight.h"

namespace weft::py {
namespace {

// An input that is also a result. Its type differs where keys are made of their words, or words of
// keys.
Ref handed_through(ArrayObject* a, TypeRef type, bool weak, bool committed) {
  check_live(a);
  return twin_of(a, type, weak, committed);
}

// The inputs with a copy in place of every donated array that is not the caller's to give away, or
// whose buffer is not. Raises for an array that is donated and passed twice.
std::span<PyObject* const> owned_donations(const Program& p, std::span<PyObject* const> inputs,
                                           std::vector<PyObject*>& owned,
                                           std::vector<Ref>& copies) {
  owned.assign(inputs.begin(), inputs.end());
  std::vector<bool> donated(inputs.size(), false);
  for (uint32_t d : p.donated) donated[d] = true;
  std::unordered_map<PyObject*, size_t> passed;
  for (size_t i = 0; i < inputs.size(); ++i) {
    check_live(as_array(inputs[i]));
    if (as_array(inputs[i])->shared) continue;
    auto [first, added] = passed.try_emplace(inputs[i], i);
    if (!added && (donated[i] || donated[first->second]))
      raise_error("DeletedArrayError", "expected a donated array to be passed once; got ",
                  as_array(inputs[i])->type, " as inputs ", first->second, " and ", i);
  }
  for (uint32_t d : p.donated) {
    ArrayObject* a = as_array(owned[d]);
    if (!a->shared && !has_twin(a)) continue;
    copies.push_back(copy_buffer(a, a->weak, a->committed));
    owned[d] = copies.back().get();
  }
  return owned;
}

// A run on several CPU devices. These share a pool of threads, which waits for itself if
// collectives of many runs meet in it: a run on several of them begins when the one before it has
// ended, also where that is another thread's.
class SplitRun {
 public:
  explicit SplitRun(const Executable& executable) : is_shared_(executable.is_shared()) {
    Last& l = last();
    while (InFlightRef other = l.starting)
      if (!other->wait()) break;
    // A function of the host may need such a run itself.
    if (!executable.calls_host()) {
      own_ = std::make_shared<InFlight>(false);
      l.starting = own_;
    }
    while (Ref waited = std::exchange(unfinished_run(), Ref())) {
      Ref ended = Ref::steal(PyObject_CallMethodNoArgs(waited.get(), name("block_until_ready")));
      if (ended) continue;
      if (l.is_shared) of_run(nullptr);
      PyErr_Clear();  // whoever reads the result is told
    }
  }
  SplitRun(const SplitRun&) = delete;
  ~SplitRun() {
    if (!own_) return;
    if (last().starting == own_) last().starting.reset();
    own_->finish();  // those who wait hold it as well
  }
  void started(PyObject* result) {
    last().is_shared = is_shared_;
    unfinished_run() = Ref::borrow(result);
  }

 private:
  struct Last {
    InFlightRef starting;    // work of the thread that has not got its results yet
    bool is_shared = false;  // of unfinished_run()
  };
  static Last& last() {
    static auto* last = new Last;
    return *last;
  }

  bool is_shared_;
  InFlightRef own_;
};

bool has_failed(const Ref& number) {
  Ref value = Ref::checked(PyObject_CallMethodNoArgs(number.get(), name("item")));
  return to_int(value.get()) != kNothingFailed;
}

Ref to_list(std::span<PyObject* const> objects) {
  Ref list = Ref::checked(PyList_New(static_cast<Py_ssize_t>(objects.size())));
  for (size_t i = 0; i < objects.size(); ++i)
    PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i), Py_NewRef(objects[i]));
  return list;
}

// Raises if what was looked at is not as it should be.
void look_at(const Observed& o, std::span<PyObject* const> inputs, const std::vector<Ref>& made) {
  if (o.checks && has_failed(made[0])) {
    Ref checks = checked_object(o.checks), values = Ref::checked(PyList_New(0));
    for (size_t i = 1; i <= o.checks->num_values(); ++i)
      check(PyList_Append(values.get(), made[i].get()));
    reject(hooks.reject_check, {checks.get(), made[0].get(), values.get()});
  }
  if ((o.watch.nans || o.watch.infs) && has_failed(made.back())) {
    Ref graph = graph_object(o.source), all = to_list(inputs);
    PyObject* nans = o.watch.nans ? Py_True : Py_False;
    PyObject* infs = o.watch.infs ? Py_True : Py_False;
    reject(hooks.reject_value, {graph.get(), all.get(), nans, infs});
  }
}

// A method of objects of one type, which is looked up once.
class Method {
 public:
  explicit Method(const char* text) : name_(name(text)) {}
  // The first of the arguments is the object.
  PyObject* operator()(std::span<PyObject* const> args) {
    if (Py_TYPE(args[0]) != type_) {
      type_ = Py_TYPE(args[0]);
      function_ = Ref::checked(PyObject_GetAttr(reinterpret_cast<PyObject*>(type_), name_));
    }
    return PyObject_Vectorcall(function_.get(), args.data(), args.size(), nullptr);
  }

 private:
  PyObject* name_;
  PyTypeObject* type_ = nullptr;
  Ref function_;
};

// Runs one module on a list of buffers; returns a list of buffers.
Ref execute(Executable& executable, PyObject* buffers) {
  bool has_effects = executable.has_effects;
  Ref loaded = executable.loaded();
  std::optional<SplitRun> split;
  if (executable.shares_threads()) split.emplace(executable);
  executable.begin_run();
  static auto* execute_sharded = new Method("execute_sharded");
  static auto* consume = new Method("consume_with_handlers");
  PyObject* execute_args[] = {loaded.get(), buffers, Py_True};
  size_t num_args = has_effects ? 3 : 2;  // the last: with a token
  Ref execution = of_run((*execute_sharded)(std::span(execute_args).first(num_args)));
  if (has_effects) {
    Ref token = Ref::checked(PyObject_CallMethodNoArgs(execution.get(), name("consume_token")));
    Ref::checked(PyObject_CallOneArg(hooks.keep_token.get(), token.get()));
  }
  PyObject* consume_args[] = {execution.get(), executable.handlers()};
  Ref results = of_run((*consume)(consume_args));
  LastRun& last = last_run();
  last.any = true;
  int held = executable.smallest_output;
  last.buffer = held < 0 ? Ref() : Ref::borrow(PyList_GET_ITEM(results.get(), held));
  if (split && PyList_GET_SIZE(results.get()))
    split->started(PyList_GET_ITEM(results.get(), std::max(held, 0)));
  return results;
}

// The same of a program in steps: as soon as no step needs what was donated, it is freed.
Ref execute_steps(const Program& p, std::span<PyObject* const> inputs, Ref buffers) {
  for (uint32_t d : p.donated) give_up(as_array(inputs[d]));
  return run_steps(*p.steps, std::move(buffers), [](Executable& block, PyObject* arguments) {
    return execute(block, arguments);
  });
}

// The buffers of some of the inputs, a list with room for more.
Ref buffers_of(std::span<PyObject* const> inputs, const std::vector<uint32_t>& which,
               Py_ssize_t more = 0) {
  Ref list = Ref::checked(PyList_New(static_cast<Py_ssize_t>(which.size()) + more));
  for (size_t i = 0; i < which.size(); ++i) {
    ArrayObject* a = as_array(inputs[which[i]]);
    if (a->deleted) check_live(a);
    PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i), Py_NewRef(a->buffer));
  }
  return list;
}

// What the program has made of constants: a list of buffers.
Ref constants(Prologue& p, std::span<PyObject* const> inputs) {
  if (PyObject* known = p.find(inputs)) return Ref::borrow(known);
  Ref made = execute(*p.executable, buffers_of(inputs, p.reads).get());
  p.keep(inputs, made);
  return made;
}

// A result that is split as an input is has a spec of as many entries, those of the first such one.
class EntriesOfInputs {
 public:
  EntriesOfInputs(const Program& p, std::span<PyObject* const> inputs) : p_(p), inputs_(inputs) {}

  SpecEntries of(ShardingRef sharding, TypeRef type) {
    for (;;) {
      if (const Known* known = find(sharding, type->rank())) return known->entries;
      if (next_ == p_.kept.size()) return kAsNeeded;
      ArrayObject* a = as_array(inputs_[p_.kept[next_++]]);
      if (!find(a->sharding, a->type->rank()))
        known_.push_back({a->sharding, a->type->rank(), a->entries});
    }
  }

 private:
  struct Known {
    ShardingRef sharding;
    int rank;
    SpecEntries entries;
  };
  const Known* find(ShardingRef sharding, int rank) const {
    for (const Known& known : known_)
      if (known.sharding == sharding && known.rank == rank) return &known;
    return nullptr;
  }

  const Program& p_;
  std::span<PyObject* const> inputs_;
  std::vector<Known> known_;
  size_t next_ = 0;
};

}  // namespace

void run(const Program& p, std::span<PyObject* const> inputs, bool committed, Outputs& out) {
  if (is_on(kNoExecution)) {
    PyErr_SetString(PyExc_RuntimeError,
                    "expected nothing to run, as no_execution is set; got a "
                    "program that was called");
    throw PythonError{};
  }
  std::vector<PyObject*> owned;
  std::vector<Ref> copies;
  std::span<PyObject* const> given = inputs;
  if (!p.donated.empty()) inputs = owned_donations(p, inputs, owned, copies);
  Ref results;
  if (p.executable || p.steps) {
    Ref made = p.prologue ? constants(*p.prologue, inputs) : Ref();
    Py_ssize_t num_made = made ? PyList_GET_SIZE(made.get()) : 0;
    Ref buffers = buffers_of(inputs, p.kept, num_made);
    for (Py_ssize_t i = 0; i < num_made; ++i)
      PyList_SET_ITEM(buffers.get(), static_cast<Py_ssize_t>(p.kept.size()) + i,
                      Py_NewRef(PyList_GET_ITEM(made.get(), i)));
    results = p.executable ? execute(*p.executable, buffers.get())
                           : execute_steps(p, inputs, std::move(buffers));
    for (uint32_t d : p.donated) {
      if (inputs[d] == given[d])
        mark_deleted(as_array(inputs[d]));
      else if (!as_array(given[d])->shared)
        give_up(as_array(given[d]));
    }
  }
  EntriesOfInputs of_inputs(p, inputs);
  size_t first = out.size();
  out.reserve(first + p.outputs.size());
  Py_ssize_t next = 0;
  for (size_t i = 0; i < p.outputs.size(); ++i) {
    int from = p.from_input[i];
    Ref made;
    if (from >= 0) {
      made = handed_through(as_array(inputs[static_cast<size_t>(from)]), p.outputs[i], p.weak[i],
                            committed);
    } else {
      ShardingRef sharding =
          p.executable ? p.executable->result_sharding(static_cast<size_t>(next)) : p.places.at;
      PyObject* buffer = PyList_GET_ITEM(results.get(), next++);
      made =
          Ref::steal(make_array(Py_NewRef(buffer), p.outputs[i], p.weak[i], sharding, committed));
    }
    ArrayObject* a = as_array(made.get());
    if (!is_trivial(a->sharding)) {
      if (i < p.places.entries.size() && p.places.entries[i] != kAsNeeded)
        a->entries = p.places.entries[i];
      else if (a->sharding->mesh()->has(AxisType::kExplicit))
        a->entries = kAsNeeded;
      else if (from < 0)
        a->entries = of_inputs.of(a->sharding, a->type);
    }
    out.push_back(std::move(made));
  }
  if (p.observed) look_at(*p.observed, inputs, out.take_from(first + p.observed->num_outputs));
}

LastRun& last_run() {
  static auto* last = new LastRun;
  return *last;
}

}  // namespace weft::py
