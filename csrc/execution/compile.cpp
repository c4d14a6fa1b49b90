// Optimise, split off what needs no device, look the structure up.

#include "execution/compile.h"

#include <algorithm>

#include "arrays/array.h"
#include "execution/emission_mesh.h"
#include "execution/prologue.h"
#include "execution/split.h"
#include "execution/steps.h"
#include "references/cache_key.h"
#include "references/hooks.h"
#include "references/lru_table.h"
#include "references/timer.h"
#include "references/unlocked.h"
#include "tracing/in_flight.h"
#include "weft/checkify.h"

namespace weft::py {
namespace {

// Executables by the structure of what is compiled.
struct Key {
  GraphRef graph;
  CacheKey words;

  uint64_t hash() const { return hash_combine(words.hash(), graph->structural_hash()); }
  // May run Python code: that of functions of the host.
  bool operator==(const Key& o) const { return words == o.words && equal(*graph, *o.graph); }
};
constexpr size_t kMaxExecutables = 4096;
// Those that call the host, which hold functions of the user's and all that these hold.
constexpr size_t kMaxWithHostCalls = 256;
using Table = LruTable<Key, ExecutableRef>;

Table& table(bool calls_host) {
  static auto* pure = new Table("executables", kMaxExecutables);
  static auto* others = new Table("executables_with_host_calls", kMaxWithHostCalls);
  return calls_host ? *others : *pure;
}
uint64_t hits = 0;

Table::Handle find(const Key& key, uint64_t hash) {
  auto same = [&](const Key& known) { return known == key; };
  Table::Handle found = table(false).find(hash, same);
  return found ? found : table(true).find(hash, same);
}

// The places of what is left of a graph.
Places part_of(const Places& whole, const std::vector<uint32_t>& kept,
               const std::vector<int>& from_input) {
  Places part{.at = whole.at};
  if (!whole.inputs.empty())
    for (uint32_t i : kept) part.inputs.push_back(whole.inputs[i]);
  if (!whole.outputs.empty())
    for (size_t i = 0; i < whole.outputs.size(); ++i)
      if (from_input[i] < 0) part.outputs.push_back(whole.outputs[i]);
  if (std::all_of(part.inputs.begin(), part.inputs.end(),
                  [&](ShardingRef s) { return s == part.at; }))
    part.inputs.clear();
  if (std::all_of(part.outputs.begin(), part.outputs.end(), [](ShardingRef s) { return !s; }))
    part.outputs.clear();
  return part;
}

// What becomes an executable.
struct Module {
  GraphRef graph;
  Places places;
  std::vector<int> aliases;
  std::string name;
  int xla_options;
  bool fast_arithmetic;
  bool unroll;
  bool own_kernels;
  Ref executable = Ref::borrow(Py_None);  // see CompileOptions
};

Key key_of(const Module& m) {
  Key key{m.graph, {}};
  const Places& places = m.places;
  key.words.add({word(places.at), m.xla_options, m.fast_arithmetic, m.unroll, m.own_kernels});
  for (const std::vector<ShardingRef>* shardings : {&places.inputs, &places.outputs}) {
    if (places.inputs.empty() && places.outputs.empty()) break;
    SmallVector<int64_t, 8> words;
    for (ShardingRef s : *shardings) words.push_back(word(s));
    key.words.add(words);
  }
  key.words.add(Dims(m.aliases.begin(), m.aliases.end()));
  return key;
}

ExecutableRef executable_for(const Module& module) {
  Key key = key_of(module);
  uint64_t hash = key.hash();
  static auto* compiling = new InFlightTable<Key>;
  do {
    if (auto known = find(key, hash)) {
      ++hits;
      return *known;
    }
  } while (compiling->wait([&](const Key& other) { return other == key; }));
  InFlightTable<Key>::Begun begun(*compiling, key, false);
  auto made = std::make_shared<Executable>(module.graph, module.places, module.aliases, module.name,
                                           module.xla_options, module.fast_arithmetic,
                                           module.unroll, module.own_kernels);
  made->loaded(module.executable.get());  // errors come here, and not at the first run
  Table& home = table(made->calls_host());
  return *home.insert(hash, std::move(key), std::move(made));
}

// Modules that threads compile; they own it, as the one that waits may be interrupted.
struct Batch {
  std::vector<Module> modules;
  std::vector<ExecutableRef> made;
};
constexpr const char* kBatch = "weft.modules";

PyObject* compile_number(PyObject* self, PyObject* number) {
  return guard([&]() -> PyObject* {
    Batch& batch = **static_cast<std::shared_ptr<Batch>*>(PyCapsule_GetPointer(self, kBatch));
    auto i = static_cast<size_t>(to_int(number));
    batch.made.at(i) = executable_for(batch.modules.at(i));
    Py_RETURN_NONE;
  });
}
PyMethodDef compile_number_method{"compile_module", compile_number, METH_O, nullptr};

// A compilation, as those see it who wait for it.
class Shown {
 public:
  Shown(const std::string& name, const Graph& graph) {
    Ref text = to_text(name), ops = Ref::checked(PyLong_FromSize_t(graph.ops().size()));
    call_ = Ref::checked(
        PyObject_CallFunctionObjArgs(hooks.compilation.get(), text.get(), ops.get(), nullptr));
  }
  Shown(const Shown&) = delete;
  Shown& operator=(const Shown&) = delete;
  ~Shown() {
    if (call_.get() == Py_None) return;
    if (!Ref::steal(PyObject_CallOneArg(call_.get(), Py_None))) PyErr_Clear();
  }

  void compiles(const std::vector<Module>& modules, const std::vector<size_t>& missing) const {
    if (call_.get() == Py_None) return;
    Dims counts;
    for (size_t i : missing) counts.push_back(static_cast<int64_t>(count_ops(*modules[i].graph)));
    Ref::checked(PyObject_CallOneArg(call_.get(), to_tuple(counts).get()));
  }

 private:
  Ref call_;
};

// Executables of modules, of which those that are not known are compiled on all cores.
std::vector<ExecutableRef> executables_for(std::vector<Module> modules, const Shown& shown) {
  auto batch = std::make_shared<Batch>();
  std::vector<ExecutableRef> all(modules.size());
  std::vector<size_t> missing;
  for (size_t i = 0; i < modules.size(); ++i) {
    Key key = key_of(modules[i]);
    if (auto known = find(key, key.hash())) {
      ++hits;
      all[i] = *known;
    } else {
      missing.push_back(i);
    }
  }
  shown.compiles(modules, missing);
  if (missing.size() == 1) all[missing[0]] = executable_for(modules[missing[0]]);
  if (missing.size() < 2) return all;
  // Those that take longest first, so that no core is left with one of them at the end.
  std::stable_sort(missing.begin(), missing.end(), [&](size_t a, size_t b) {
    return count_ops(*modules[a].graph) > count_ops(*modules[b].graph);
  });
  for (size_t i : missing) batch->modules.push_back(std::move(modules[i]));
  batch->made.resize(missing.size());
  Ref self =
      Ref::checked(PyCapsule_New(new std::shared_ptr<Batch>(batch), kBatch, [](PyObject* capsule) {
        delete static_cast<std::shared_ptr<Batch>*>(PyCapsule_GetPointer(capsule, kBatch));
      }));
  Ref work = Ref::checked(PyCFunction_New(&compile_number_method, self.get()));
  Ref count = Ref::checked(PyLong_FromSize_t(missing.size()));
  Ref::checked(
      PyObject_CallFunctionObjArgs(hooks.in_parallel.get(), work.get(), count.get(), nullptr));
  for (size_t k = 0; k < missing.size(); ++k) all[missing[k]] = std::move(batch->made[k]);
  return all;
}

// How the graph is cut, if it is. Blocks stand on one device: of several, XLA decides how what goes
// from one to the next is split, for a whole module.
std::shared_ptr<const BlockPlan> plan_of(const GraphRef& graph, const Places& places,
                                         const std::vector<int>& aliases, Cut cut) {
  if (!place_of(places.at).on_one_device() || !places.inputs.empty() || !places.outputs.empty())
    return nullptr;
  std::vector<bool> donated;
  for (int output : aliases) donated.push_back(output >= 0);
  return plan_of(graph, cut, donated);
}

// Whether a program may be changed to suit a CPU, which XLA is not to split over several.
bool is_for_one_cpu(const Places& places) {
  const Place& place = place_of(places.at);
  return place.on_one_device() && place.devices->platform == "cpu";
}

// The graph with kernels in place of what is better off as one, and how LLVM is to compile it.
Kernels with_kernels(const GraphRef& graph, const Places& places, KernelChoice choice) {
  if (!is_for_one_cpu(places)) return {.graph = graph};
  return unlocked(*graph, [&] { return choose_kernels(graph, choice); });
}

// A kernel that saves the time of a call is for operations that run on their own, without jit.
bool may_have_own_kernels(const Graph& graph, const CompileOptions& options) {
  return is_for_one_cpu(options.places) && (options.at_once || !is_kernel_call(graph));
}

struct TakenConstants {
  std::shared_ptr<const ConstantSplit> split;  // null: none
  std::vector<uint32_t> reads;                 // the program's inputs that its prologue takes
};

// Takes what depends on constants alone out of a program on one device, if that is worth it.
TakenConstants take_constants(Split& s, const Places& places, const CompileOptions& options) {
  int64_t max_bytes = max_constants_kept();
  if (!s.graph || options.constants.empty() || max_bytes == 0 || !places.inputs.empty() ||
      !place_of(places.at).on_one_device())
    return {};
  std::vector<bool> constants;
  for (uint32_t i : s.kept) constants.push_back(options.constants[i]);
  auto plan = unlocked(
      *s.graph, [&] { return split_constants(s.graph, constants, {.max_bytes = max_bytes}); });
  if (!plan) return {};
  auto numbers = [&](const std::vector<uint32_t>& inputs) {
    std::vector<uint32_t> out;
    for (uint32_t i : inputs) out.push_back(s.kept[i]);
    return out;
  };
  std::vector<uint32_t> reads = numbers(plan->reads);
  s.kept = numbers(plan->inputs);
  s.graph = plan->main;
  return {std::move(plan), std::move(reads)};
}

// Whether an output that is an input is where it is wanted.
bool stays(const Places& places, size_t output, size_t input) {
  if (places.outputs.empty() || !places.outputs[output]) return true;
  return places.outputs[output] == places.input(input);
}

// The graph with what is looked at among its outputs, if anything is.
GraphRef with_observed(const GraphRef& given, bool at_once,
                       std::shared_ptr<const Observed>& observed) {
  GraphRef graph = at_once ? without_debug_checks(given) : given;
  bool watches = debug_flags() != 0;
  bool has_checks = at_once && (graph->effects() & kChecks);
  if (!watches && !has_checks) return graph;
  auto made = std::make_shared<Observed>();
  made->source = graph;
  made->num_outputs = graph->outputs().size();
  GraphRef result = graph;
  if (has_checks) {
    made->checks = checked(graph, {.user = true});
    result = made->checks->graph;
  }
  made->watch = {is_on(kDebugNans), is_on(kDebugInfs), at_once};
  if (watches) result = watched(result, made->watch);
  observed = made;
  return result;
}

}  // namespace

namespace {

// Keeps the first mesh of devices that it is shown; the others must be of the same devices.
class NamedMesh {
 public:
  void add(MeshRef mesh) {
    if (!mesh || mesh->is_abstract()) return;
    if (!found_) found_ = mesh;
    if (place_of(replicated(found_)).devices != place_of(replicated(mesh)).devices)
      raise_error("DeviceMismatchError", "expected meshes of the same devices in one program; got ",
                  shown(found_), " and ", shown(mesh),
                  loc_ == kNoLoc ? "" : cat(" at ", loc_text(loc_)));
  }
  void add(const AttrRecord& attrs) {
    for (const Attr& value : attrs.values()) {
      if (auto* mesh = std::get_if<MeshRef>(&value)) add(*mesh);
      if (auto* s = std::get_if<ShardingRef>(&value); s && *s) add((*s)->mesh());
      if (auto* all = std::get_if<std::vector<ShardingRef>>(&value))
        for (ShardingRef s : *all)
          if (s) add(s->mesh());
      if (auto* graph = std::get_if<GraphRef>(&value)) add(mesh_named_in(**graph));
      if (auto* graphs = std::get_if<std::vector<GraphRef>>(&value))
        for (const GraphRef& g : *graphs) add(mesh_named_in(*g));
    }
  }
  void add(const Op& op) {
    loc_ = op.loc;
    if (op.attrs) add(*op.attrs);
  }
  MeshRef found() const { return found_; }

 private:
  MeshRef found_ = nullptr;
  Loc loc_ = kNoLoc;
};

}  // namespace

MeshRef mesh_named_in(const AttrRecord& attrs) {
  NamedMesh named;
  named.add(attrs);
  return named.found();
}

MeshRef mesh_named_in(const Graph& graph) {
  return *graph.cached<MeshRef>("mesh_named_in", [&] {
    NamedMesh named;
    for (const Op& op : graph.ops()) named.add(op);
    return std::make_shared<MeshRef>(named.found());
  });
}

size_t count_ops(const Graph& graph) {
  return *graph.cached<size_t>("count_ops", [&] {
    size_t count = graph.ops().size();
    for (const Op& op : graph.ops())
      for_each_graph(op.attrs, [&](const GraphRef& inner) { count += count_ops(*inner); });
    return std::make_shared<size_t>(count);
  });
}

// Of a program whose modules were there before a load, or are what has been loaded since.
static CompileCost cost_of(const Program& program, double optimize_seconds, uint64_t loads_before) {
  CompileCost cost = program.cost;
  cost.optimize = optimize_seconds;
  cost.ops = count_ops(*program.optimized);
  auto add = [&](const Executable& e) {
    ++cost.modules;
    const Origin& origin = e.origin();
    if (origin.number <= loads_before) {
      ++cost.in_memory;
      return;
    }
    cost.from_disk += origin.source == Origin::kDisk;
    cost.emit += origin.emission;
    cost.compile += origin.compilation;
  };
  if (program.executable) add(*program.executable);
  if (program.steps)
    for (const ExecutableRef& block : program.steps->blocks) add(*block);
  cost.blocks = program.steps ? cost.modules : 0;
  cost.loops = program.loops.size();
  for (const Rolled::Loop& loop : program.loops) cost.rolled += loop.num_ops;
  return cost;
}

Cut cut_named(PyObject* name) {
  std::string_view text = utf8(name);
  if (text == "blocks") return Cut::kBlocks;
  if (text == "auto") return Cut::kAuto;
  if (text == "whole") return Cut::kWhole;
  if (text == "unrolled") return Cut::kUnrolled;
  raise_error("AttributeValueError",
              "compile: expected 'auto', 'whole', 'blocks' or 'unrolled'; got '", text, "'");
}

KernelChoice kernels_named(PyObject* name) {
  std::string_view text = utf8(name);
  if (text == "auto") return KernelChoice::kAuto;
  if (text == "always") return KernelChoice::kAlways;
  if (text == "never") return KernelChoice::kNever;
  raise_error("AttributeValueError", "kernels: expected 'auto', 'always' or 'never'; got '", text,
              "'");
}

Repacked repacked(const GraphRef& graph, Cut cut) {
  if (cut == Cut::kBlocks || cut == Cut::kUnrolled) return {graph};
  return unlocked(*graph, [&]() -> Repacked {
    Repacked made{graph};
    if (auto rolled = roll(graph, RollOptions::for_speed())) {
      made.loops = rolled->loops;
      made.graph = rolled->graph;
    }
    Packed arrays = pack(made.graph, PackOptions::for_speed());
    made.num_saved = arrays.num_saved;
    // A loop, or an array, lets more be made at once than what it stands for did.
    if (arrays.graph != graph)
      made.graph = run_passes(arrays.graph, std::vector<std::string>{"dce", "canonicalize", "dce"});
    return made;
  });
}

ProgramRef compile(const GraphRef& source, const CompileOptions& options,
                   std::vector<bool> weak_outputs) {
  uint64_t loads_before = num_loads();
  Shown shown(options.name, *source);
  auto program = std::make_shared<Program>();
  GraphRef graph = with_observed(source, options.at_once, program->observed);
  // What failed is computed again, from the same inputs.
  const std::vector<bool>& donated = program->observed ? std::vector<bool>() : options.donated;
  weak_outputs.resize(graph->outputs().size());
  Timer optimization;
  program->optimized = unlocked(*graph, [&] { return optimize(graph); });
  double optimize_seconds = optimization.passed();
  Places places = options.places;
  if (!places.outputs.empty()) places.outputs.resize(graph->outputs().size());
  Split s = split(program->optimized, options.keep_unused, donated,
                  [&](size_t output, size_t input) { return stays(places, output, input); });
  TakenConstants constants;
  if (!program->observed) constants = take_constants(s, places, options);
  std::vector<int> aliases = match_donations(s, donated, program->donated);
  program->kept = std::move(s.kept);
  program->from_input = std::move(s.from_input);
  program->outputs = graph->output_types();
  program->weak = std::move(weak_outputs);
  Timer compilation;
  if (s.graph) {
    Places part = part_of(places, program->kept, program->from_input);
    auto plan = plan_of(s.graph, part, aliases, options.how.cut);
    if (!plan && is_for_one_cpu(places)) {
      Repacked made = repacked(s.graph, options.how.cut);
      s.graph = std::move(made.graph);
      program->loops = std::move(made.loops);
      program->cost.packed = made.num_saved;
    }
    std::vector<Module> modules;
    auto add = [&](const GraphRef& of, Places at, std::vector<int> donations, std::string name) {
      Kernels made = with_kernels(of, at, options.how.kernels);
      std::ranges::move(made.kernels, std::back_inserter(program->cost.kernels));
      bool own_kernels = may_have_own_kernels(*made.graph, options);
      modules.push_back({std::move(made.graph), std::move(at), std::move(donations),
                         std::move(name), options.how.xla_options, is_on(kFastArithmetic),
                         made.unroll, own_kernels});
    };
    if (!plan) add(s.graph, std::move(part), std::move(aliases), options.name);
    for (size_t i = 0; plan && i < plan->blocks.size(); ++i)
      add(plan->blocks[i].graph, {.at = places.at}, plan->blocks[i].aliases,
          cat(options.name, "_block_", i));
    if (constants.split)
      add(constants.split->prologue, {.at = places.at}, {}, options.name + "_constants");
    if (modules.size() == 1) modules[0].executable = options.executable;
    std::vector<ExecutableRef> made = executables_for(std::move(modules), shown);
    if (constants.split) {
      program->prologue = std::make_shared<Prologue>(std::move(made.back()),
                                                     std::move(constants.reads), *constants.split);
      made.pop_back();
    }
    if (plan)
      program->steps = std::make_shared<Steps>(Steps{std::move(plan), std::move(made)});
    else
      program->executable = std::move(made[0]);
  }
  program->places = std::move(places);
  program->cost = cost_of(*program, optimize_seconds, loads_before);
  // Several modules at once take less than the sum of their times.
  program->cost.compile =
      std::min(program->cost.compile, compilation.passed() - program->cost.emit);
  return program;
}

std::string lowered_text(const GraphRef& graph, const CompileOptions& options, bool locations) {
  GraphRef optimized = unlocked(*graph, [&] { return optimize(graph); });
  const Places& places = options.places;
  Split s = split(optimized, options.keep_unused, options.donated,
                  [&](size_t output, size_t input) { return stays(places, output, input); });
  // The text shows every output, also those that the runtime hands through.
  bool is_whole = s.graph && s.graph->outputs().size() == optimized->outputs().size();
  std::vector<uint32_t> consumed;
  EmitOptions emit =
      is_whole ? emit_options(part_of(places, s.kept, s.from_input), s.kept.size(),
                              match_donations(s, options.donated, consumed), options.platform)
               : emit_options(places, optimized->num_inputs(), {}, options.platform);
  emit.module_name = "jit_" + options.name;
  emit.locations = locations;
  emit.result_info = options.result_info;
  const GraphRef& shown = is_whole ? s.graph : optimized;
  EmissionMesh mesh(emit);
  return unlocked(*shown, [&] { return emit_stablehlo(*shown, emit).text; });
}

CacheStats executable_cache_stats() {
  return {num_loads() - num_disk_hits(), num_disk_hits(), hits,
          table(false).size() + table(true).size(), loaded_executables()};
}

void clear_executable_cache() {
  table(false).clear();
  table(true).clear();
  release_constants();
  unload_executables(loaded_executables());
}

}  // namespace weft::py
