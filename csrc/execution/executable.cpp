// Emission, compilation, and which executables are loaded.

#include "execution/executable.h"

#include <nanobind/nanobind.h>

#include <algorithm>
#include <unordered_set>

#include "arrays/array.h"
#include "conversions/dtypes.h"
#include "conversions/sharding_object.h"
#include "execution/emission_mesh.h"
#include "execution/module_text.h"
#include "execution/shared_runs.h"
#include "graphs/attrs.h"
#include "references/hooks.h"
#include "references/timer.h"
#include "references/unlocked.h"

namespace weft::py {

// What jaxlib compiled costs about 160 KB and three memory maps each, however small the program.
// Programs that call functions of the host are often made for one call, with a fresh function:
// fewer of them are kept.
struct Loaded {
  static constexpr size_t kMax = 2048;
  static constexpr size_t kMaxWithHostCalls = 256;

  std::unordered_set<Executable*> all;
  size_t with_host_calls = 0;
  uint64_t loads = 0, disk_hits = 0;

  void add(Executable* e) {
    if (all.insert(e).second) with_host_calls += e->calls_host_;
  }
  void remove(Executable* e) {
    if (all.erase(e)) with_host_calls -= e->calls_host_;
  }

  // Unloads the least recently used of those that `which` accepts.
  template <typename F>
  size_t drop(size_t count, F&& which) {
    std::vector<Executable*> found;
    for (Executable* e : all)
      if (which(*e)) found.push_back(e);
    count = std::min(count, found.size());
    std::nth_element(found.begin(), found.begin() + static_cast<ptrdiff_t>(count), found.end(),
                     [](Executable* a, Executable* b) { return a->last_use_ < b->last_use_; });
    std::vector<Ref> dropped;  // destroyed when the set is whole
    for (size_t i = 0; i < count; ++i) {
      remove(found[i]);
      dropped.push_back(std::move(found[i]->loaded_));
    }
    return count;
  }
  // A quarter at once, so that a process at the limit does not look for the oldest at each compile.
  void make_room() {
    if (with_host_calls > kMaxWithHostCalls)
      drop(kMaxWithHostCalls / 4, [](const Executable& e) { return e.calls_host_; });
    if (all.size() > kMax) drop(kMax / 4, [](const Executable&) { return true; });
  }
};

namespace {

Loaded& loaded_set() {
  static auto* s = new Loaded;
  return *s;
}

// What a program calls on the host: a list of (function, ((shape, dtype), ...), "file.py:12 (f)",
// whether it takes and returns a token).
Ref host_functions(const std::vector<HostCallback>& callbacks) {
  Ref list = Ref::checked(PyList_New(0));
  for (const HostCallback& c : callbacks) {
    Ref types = Ref::checked(PyTuple_New(static_cast<Py_ssize_t>(c.results.size())));
    for (size_t i = 0; i < c.results.size(); ++i) {
      Ref shape = to_tuple(c.results[i]->shape());
      PyTuple_SET_ITEM(
          types.get(), static_cast<Py_ssize_t>(i),
          Ref::checked(PyTuple_Pack(2, shape.get(), numpy_dtype(c.results[i]->dtype()))).release());
    }
    auto function = std::dynamic_pointer_cast<const PythonObject>(c.function);
    if (!function) throw Error(ErrorKind::kInternal, "host function that is none of Python");
    Ref item = Ref::checked(Py_BuildValue("(OOsO)", function->get(), types.get(),
                                          c.loc == kNoLoc ? "" : loc_text(c.loc).c_str(),
                                          c.is_ordered ? Py_True : Py_False));
    check(PyList_Append(list.get(), item.get()));
  }
  return list;
}

// The functions that a program calls by name: a list of (name, "file.py:12 (f)").
Ref call_targets(const std::vector<CallTarget>& targets) {
  Ref list = Ref::checked(PyList_New(0));
  for (const CallTarget& t : targets) {
    std::string place = t.loc == kNoLoc ? "" : loc_text(t.loc);
    check(PyList_Append(list.get(),
                        Ref::checked(Py_BuildValue("(ss)", t.name.c_str(), place.c_str())).get()));
  }
  return list;
}

Ref type_texts(const Graph& graph) {
  Ref list = Ref::checked(PyList_New(0));
  for (TypeRef type : graph.input_types())
    check(PyList_Append(list.get(), to_text(cat(type)).get()));
  return list;
}

EmittedModule emit(const Executable& e) {
  EmitOptions options = emit_options(e.places, e.graph->num_inputs(), e.aliases);
  options.module_name = "jit_" + e.name;
  options.locations = true;
  options.fast_arithmetic = e.fast_arithmetic;
  options.own_kernels = e.own_kernels;
  EmissionMesh mesh(options);
  return unlocked(*e.graph, [&] { return emit_stablehlo(*e.graph, options); });
}

thread_local MeshRef mesh_of_emission = nullptr;

}  // namespace

MeshRef emission_mesh() { return mesh_of_emission; }

EmissionMesh::EmissionMesh(const EmitOptions& options) : earlier_(mesh_of_emission) {
  mesh_of_emission = nullptr;
  for (const auto* places : {&options.inputs, &options.outputs})
    for (ShardingRef place : *places)
      if (place && place->mesh()->size() > 1) mesh_of_emission = place->mesh();
}

EmissionMesh::~EmissionMesh() { mesh_of_emission = earlier_; }

EmitOptions emit_options(const Places& places, size_t num_inputs, const std::vector<int>& aliases,
                         const std::string& platform) {
  const Place& place = place_of(places.at);
  EmitOptions options = emit_options(platform.empty() ? place.devices->platform : platform);
  options.aliases = aliases;
  options.devices = place.devices->numbers;
  options.inputs = places.inputs;
  if (options.inputs.empty() && !place.on_one_device())
    options.inputs.assign(num_inputs, places.at);
  options.outputs = places.outputs;
  // On several devices XLA decides where a result lies, and so which one can take the buffer; one
  // in another memory cannot.
  for (size_t i = 0; i < aliases.size(); ++i) {
    if (aliases[i] < 0) continue;
    ShardingRef result =
        places.outputs.empty() ? nullptr : places.outputs[static_cast<size_t>(aliases[i])];
    if (places.input(i)->memory() != (result ? result->memory() : ""))
      options.aliases[i] = -1;
    else if (!place.on_one_device() && result != places.input(i))
      options.aliases[i] = EmitOptions::kDonor;
  }
  return options;
}

EmitOptions emit_options(const std::string& platform) {
  EmitOptions options;
  options.platform = platform;
  options.fast_arithmetic = is_on(kFastArithmetic);
  PyObject* targets = PyDict_GetItemString(hooks.host_call_targets.get(), platform.c_str());
  if (!targets) return options;
  options.host_call_target = utf8(PyTuple_GetItem(targets, 0));
  options.partitioned_host_call_target = utf8(PyTuple_GetItem(targets, 1));
  return options;
}

static std::vector<Ref>& all_compiler_options() {
  static auto* all = new std::vector<Ref>{Ref::borrow(Py_None)};
  return *all;
}

int compiler_options_number(PyObject* options) {
  // Compared as text: values of other types may be equal, and mean something else.
  auto text = [](PyObject* o) { return readable(Ref::checked(PyObject_Repr(o)).get()); };
  std::string wanted = text(options);
  std::vector<Ref>& all = all_compiler_options();
  for (size_t i = 0; i < all.size(); ++i)
    if (text(all[i].get()) == wanted) return static_cast<int>(i);
  all.push_back(Ref::borrow(options));
  return static_cast<int>(all.size() - 1);
}

Executable::Executable(GraphRef graph_, Places layout_, std::vector<int> aliases_,
                       std::string name_, int compiler_options_, bool fast_arithmetic_,
                       bool unroll_, bool own_kernels_)
    : graph(std::move(graph_)),
      places(std::move(layout_)),
      aliases(std::move(aliases_)),
      name(std::move(name_)),
      compiler_options(compiler_options_),
      fast_arithmetic(fast_arithmetic_),
      unroll(unroll_),
      own_kernels(own_kernels_),
      outputs(graph->output_types()),
      has_effects(graph->effects() != kPure) {
  constexpr int64_t kSmallBytes = 1 << 16;
  int64_t smallest = kSmallBytes + 1;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i]->num_bytes() >= smallest) continue;
    smallest = outputs[i]->num_bytes();
    smallest_output = static_cast<int>(i);
  }
}

// How a value is split, of what the runtime tells of XLA's choice: None, or (blocks, devices).
ShardingRef Executable::chosen(PyObject* tiles, TypeRef type) const {
  MeshRef mesh = places.at->mesh();
  if (tiles == Py_None) return replicated(mesh);
  Dims blocks, order;
  auto ints = [](PyObject* tuple, Dims& out) {
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(tuple); ++k)
      out.push_back(to_int(PyTuple_GET_ITEM(tuple, k)));
  };
  ints(PyTuple_GET_ITEM(tiles, 0), blocks);
  ints(PyTuple_GET_ITEM(tiles, 1), order);
  size_t rank = type->shape().size();
  ShardingRef made = sharding_of_tiles(mesh, *place_of(places.at).devices, rank, blocks, order);
  // Tiles do not tell of axes of size 1: what is split as an input is has the sharding of that.
  for (size_t i = 0; i < graph->num_inputs(); ++i)
    if (ShardingRef s = places.input(i);
        s->mesh() == mesh && s->dims().size() <= rank && are_equivalent(s, made, type))
      return s;
  return made;
}

// Calls the functions that want to know how values are split. `found` has pairs of the number of an
// inspection and what XLA chose; where the program runs on one device there is nothing to choose.
void Executable::tell(const std::vector<Inspection>& inspections, PyObject* found) const {
  auto call = [&](const Inspection& i, ShardingRef sharding) {
    auto function = std::dynamic_pointer_cast<const PythonObject>(i.function);
    if (!function)
      throw Error(ErrorKind::kInternal, "function of a sharding that is none of Python");
    Ref::checked(PyObject_CallOneArg(function->get(), sharding_object(sharding).get()));
  };
  if (place_of(places.at).on_one_device()) {
    for (const Inspection& i : inspections) call(i, places.at);
    return;
  }
  for (Py_ssize_t k = 0; k < PyList_GET_SIZE(found); ++k) {
    PyObject* pair = PyList_GET_ITEM(found, k);
    const Inspection& i = inspections.at(static_cast<size_t>(to_int(PyTuple_GET_ITEM(pair, 0))));
    call(i, chosen(PyTuple_GET_ITEM(pair, 1), i.type));
  }
}

void Executable::set_results(PyObject* loaded) {
  const Place& place = place_of(places.at);
  std::vector<ShardingRef> results;
  if (place.on_one_device()) {
    results = places.outputs;
    for (ShardingRef& s : results)
      if (!s) s = places.at;
  } else {
    Ref tiles = Ref::checked(PyObject_CallOneArg(hooks.output_tiles.get(), loaded));
    for (size_t i = 0; i < outputs.size(); ++i) {
      ShardingRef wanted = places.outputs.empty() ? nullptr : places.outputs[i];
      if (wanted && !wanted->is_open()) {
        results.push_back(wanted);
        continue;
      }
      PyObject* found = PyList_GetItem(tiles.get(), static_cast<Py_ssize_t>(i));
      if (!found) throw PythonError{};
      ShardingRef own = chosen(found, outputs[i]);
      if (wanted && !wanted->memory().empty()) {
        ShardingParts parts = own->parts();
        parts.memory = wanted->memory();
        own = make_sharding(std::move(parts));
      }
      results.push_back(own);
    }
  }
  Ref handlers = Ref::checked(PyList_New(static_cast<Py_ssize_t>(outputs.size())));
  for (size_t i = 0; i < outputs.size(); ++i)
    PyList_SET_ITEM(handlers.get(), static_cast<Py_ssize_t>(i),
                    result_handler(outputs[i], results.empty() ? places.at : results[i]).release());
  results_ = std::move(results);
  handlers_ = std::move(handlers);
}

void Executable::begin_shared_run() {
  shared_->begin(fingerprint_, [&] {
    Text out;
    out << name << '(';
    for (TypeRef type : graph->input_types()) out << (out.view().back() == '(' ? "" : ", ") << type;
    out << ')';
    return out.take();
  });
}

Executable::~Executable() { loaded_set().remove(this); }

Ref Executable::load(PyObject* serialized) {
  if (InFlightRef other = loading_; other && other->wait() && loaded_) return loaded_;
  InFlightRef work = loading_ = std::make_shared<InFlight>(false);
  struct Done {
    Executable& executable;
    const InFlightRef& work;
    ~Done() {
      if (executable.loading_ == work) executable.loading_.reset();
      work->finish();
    }
  } done{*this, work};
  check_expansion(*graph);
  bool told = is_on(kLogCompiles);
  if (told) notice("compiling", {to_text(name), type_texts(*graph)});
  Timer emission;
  EmittedModule module = emit(*this);
  Origin origin{.emission = emission.passed()};
  if (told) notice("lowered", {to_text(name), py_seconds(origin.emission)});
  const Place& place = place_of(places.at);
  Timer compilation;
  Ref text_object = to_text(module.text);
  Ref functions = host_functions(module.callbacks);
  Ref targets = call_targets(module.targets);
  const std::vector<int32_t>& numbers = place.devices->numbers;
  Ref devices = to_tuple(Dims(numbers.begin(), numbers.end()));
  // What other processes find it by, if all that it needs is in the module.
  Ref key = Ref::borrow(Py_None);
  if (module.callbacks.empty() && module.inspections.empty() && place.devices->is_local) {
    std::string plain = without_places(module.text);
    key = Ref::checked(
        PyBytes_FromStringAndSize(plain.data(), static_cast<Py_ssize_t>(plain.size())));
  }
  bool is_inspected = !module.inspections.empty();
  Ref survey = Ref::checked(nanobind::cast(module.survey).release().ptr());
  auto py_bool = [](bool b) { return b ? Py_True : Py_False; };
  Ref fields = Ref::checked(Py_BuildValue(
      "{s:O, s:O, s:O, s:i, s:O, s:O, s:O, s:O, s:O, s:O, s:O, s:O}", "text", text_object.get(),
      "devices", devices.get(), "host_functions", functions.get(), "barriers",
      static_cast<int>(module.barriers), "targets", targets.get(), "compiler_options",
      all_compiler_options()[static_cast<size_t>(compiler_options)].get(), "is_inspected",
      py_bool(is_inspected), "key", key.get(), "fast_arithmetic", py_bool(fast_arithmetic),
      "unroll", py_bool(unroll), "survey", survey.get(), "executable", serialized));
  Ref nothing = Ref::checked(PyTuple_New(0));
  Ref wanted = Ref::checked(PyObject_Call(hooks.module_type.get(), nothing.get(), fields.get()));
  Ref served = Ref::checked(PyObject_CallOneArg(hooks.compile.get(), wanted.get()));
  Ref made = Ref::borrow(PyTuple_GetItem(served.get(), 0));
  bool from_disk = PyTuple_GetItem(served.get(), 1) == Py_True;
  origin.source = from_disk ? Origin::kDisk : Origin::kXla;
  origin.compilation = compilation.passed();
  if (told)
    notice(from_disk ? "retrieved" : "compiled", {to_text(name), py_seconds(origin.compilation)});
  shared_ = SharedRuns::on(*place.devices);
  shares_threads_ = !place.on_one_device() && place.devices->platform == "cpu";
  if (shared_) fingerprint_ = module_fingerprint(module.text);
  if (!handlers_) {
    if (is_inspected) tell(module.inspections, PyTuple_GetItem(served.get(), 2));
    set_results(made.get());
  }
  origin.number = ++loaded_set().loads;
  origin_ = origin;
  loaded_set().disk_hits += from_disk;
  loaded_ = made;
  last_use_ = ++clock_;
  calls_host_ = !module.callbacks.empty();
  loaded_set().add(this);
  loaded_set().make_room();
  return made;
}

size_t loaded_executables() { return loaded_set().all.size(); }
uint64_t num_loads() { return loaded_set().loads; }
uint64_t num_disk_hits() { return loaded_set().disk_hits; }
size_t unload_executables(size_t count) {
  return loaded_set().drop(count, [](const Executable&) { return true; });
}

}  // namespace weft::py
