// Optimise, split off what needs no device, look the structure up, emit, compile.

#include "compile.h"

#include <list>
#include <unordered_map>

#include "array.h"
#include "attrs.h"
#include "dtypes.h"
#include "hooks.h"
#include "split.h"
#include "weft/hash.h"

namespace weft::py {
namespace {

// Programs by the structure of what is compiled, least recently used first out.
constexpr size_t kMaxExecutables = 4096;

struct CacheEntry {
  GraphRef graph;
  int device;
  std::vector<int> aliases;
  ExecutableRef executable;
};
struct Cache {
  std::list<CacheEntry> entries;
  std::unordered_multimap<uint64_t, std::list<CacheEntry>::iterator> index;
  CacheStats stats;
};
Cache& cache() {
  static auto* c = new Cache;
  return *c;
}

uint64_t cache_hash(const Graph& graph, int device, const std::vector<int>& aliases) {
  uint64_t h = hash_combine(graph.structural_hash(), static_cast<uint64_t>(device));
  for (int a : aliases) h = hash_combine(h, static_cast<uint64_t>(a));
  return h;
}

ExecutableRef find(uint64_t hash, const GraphRef& graph, int device,
                   const std::vector<int>& aliases) {
  Cache& c = cache();
  auto [first, last] = c.index.equal_range(hash);
  for (auto it = first; it != last; ++it) {
    CacheEntry& e = *it->second;
    if (e.device == device && e.aliases == aliases && equal(*e.graph, *graph)) {
      c.entries.splice(c.entries.begin(), c.entries, it->second);
      ++c.stats.hits;
      return e.executable;
    }
  }
  return nullptr;
}

void insert(uint64_t hash, CacheEntry entry) {
  Cache& c = cache();
  c.entries.push_front(std::move(entry));
  c.index.emplace(hash, c.entries.begin());
  if (c.entries.size() <= kMaxExecutables) return;
  auto last = std::prev(c.entries.end());
  uint64_t old = cache_hash(*last->graph, last->device, last->aliases);
  auto [first, end] = c.index.equal_range(old);
  for (auto it = first; it != end; ++it) {
    if (it->second == last) {
      c.index.erase(it);
      break;
    }
  }
  c.entries.erase(last);
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

ExecutableRef build(const GraphRef& graph, const std::vector<int>& aliases,
                    const CompileOptions& options) {
  EmitOptions emit;
  emit.module_name = "jit_" + options.name;
  emit.platform = device_table()[static_cast<size_t>(options.device)].platform;
  emit.locations = true;
  emit.aliases = aliases;
  std::vector<HostCallback> callbacks;
  std::string text = emit_stablehlo(*graph, emit, &callbacks);
  Ref text_object = Ref::checked(
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
  Ref functions = host_functions(callbacks);
  Ref device = Ref::checked(PyLong_FromLong(options.device));
  auto e = std::make_shared<Executable>();
  e->loaded = Ref::checked(PyObject_CallFunctionObjArgs(hooks.compile.get(), text_object.get(),
                                                        device.get(), functions.get(), nullptr));
  e->device = options.device;
  e->has_effects = graph->effects() != kPure;
  auto inputs = graph->input_types();
  e->inputs.assign(inputs.begin(), inputs.end());
  e->outputs = graph->output_types();
  constexpr int64_t kSmallBytes = 1 << 16;
  int64_t smallest = kSmallBytes + 1;
  for (size_t i = 0; i < e->outputs.size(); ++i) {
    if (e->outputs[i]->num_bytes() >= smallest) continue;
    smallest = e->outputs[i]->num_bytes();
    e->smallest_output = static_cast<int>(i);
  }
  e->handlers = Ref::checked(PyList_New(static_cast<Py_ssize_t>(e->outputs.size())));
  for (size_t i = 0; i < e->outputs.size(); ++i)
    PyList_SET_ITEM(e->handlers.get(), static_cast<Py_ssize_t>(i),
                    Py_NewRef(result_handler(e->outputs[i], options.device)));
  return e;
}

}  // namespace

ProgramRef compile(const GraphRef& graph, const CompileOptions& options,
                   std::vector<bool> weak_outputs) {
  auto program = std::make_shared<Program>();
  program->optimized = optimize(graph);
  Split s = split(program->optimized, options.keep_unused, options.donated);
  std::vector<int> aliases = match_donations(s, options.donated, program->donated);
  program->kept = std::move(s.kept);
  program->from_input = std::move(s.from_input);
  program->outputs = graph->output_types();
  program->weak = std::move(weak_outputs);
  program->device = options.device;
  if (!s.graph) return program;
  uint64_t hash = cache_hash(*s.graph, options.device, aliases);
  program->executable = find(hash, s.graph, options.device, aliases);
  if (!program->executable) {
    program->executable = build(s.graph, aliases, options);
    ++cache().stats.compiles;
    insert(hash, {s.graph, options.device, aliases, program->executable});
  }
  return program;
}

std::string lowered_text(const GraphRef& graph, const CompileOptions& options, bool locations) {
  GraphRef optimized = optimize(graph);
  EmitOptions emit;
  emit.module_name = "jit_" + options.name;
  emit.platform = device_table()[static_cast<size_t>(options.device)].platform;
  emit.locations = locations;
  Split s = split(optimized, options.keep_unused, options.donated);
  if (s.graph && s.graph->outputs().size() == optimized->outputs().size()) {
    std::vector<uint32_t> consumed;
    emit.aliases = match_donations(s, options.donated, consumed);
    emit.result_info = options.result_info;
    return emit_stablehlo(*s.graph, emit);
  }
  // The text shows every output, also those that the runtime hands through.
  emit.result_info = options.result_info;
  return emit_stablehlo(*optimized, emit);
}

CacheStats executable_cache_stats() {
  CacheStats s = cache().stats;
  s.size = cache().entries.size();
  return s;
}

void clear_executable_cache() {
  cache().index.clear();
  cache().entries.clear();
}

}  // namespace weft::py
