// Optimise, split off what needs no device, look the structure up, emit, compile; and run.

#include "execute.h"

#include <algorithm>
#include <list>
#include <unordered_map>

#include "attrs.h"
#include "dtypes.h"
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

// What reaches the device: the graph without unused inputs and handed-through outputs.
struct Split {
  GraphRef graph;  // null when no output has to be computed
  std::vector<uint32_t> kept;
  std::vector<int> from_input;
};

Split split(const GraphRef& graph, bool keep_unused, const std::vector<bool>& donated) {
  Split s;
  std::vector<bool> used(graph->num_inputs(), keep_unused);
  std::vector<Value> outputs;
  for (Value v : graph->outputs()) {
    bool input = !v.is_literal() && v.id < graph->num_inputs();
    // A donated input is gone after the call, so it cannot be its own result.
    bool through = input && !(v.id < donated.size() && donated[v.id]);
    s.from_input.push_back(through ? static_cast<int>(v.id) : -1);
    if (!through) outputs.push_back(v);
    if (input && !through) used[v.id] = true;
  }
  for (const Op& op : graph->ops())
    for (Value v : graph->operands(op))
      if (!v.is_literal() && v.id < graph->num_inputs()) used[v.id] = true;
  for (uint32_t i = 0; i < graph->num_inputs(); ++i)
    if (used[i]) s.kept.push_back(i);
  if (outputs.empty() && graph->effects() == kPure) {
    s.kept.clear();
    return s;
  }
  if (outputs.size() == graph->outputs().size() && s.kept.size() == graph->num_inputs() &&
      graph->num_consts() == 0) {
    s.graph = graph;
    return s;
  }
  GraphBuilder b;
  std::vector<Value> args(graph->num_inputs());
  for (uint32_t i : s.kept) args[i] = b.input(graph->type(graph->input(i)));
  Values all = b.inline_graph(*graph, args);
  outputs.clear();
  for (size_t i = 0; i < all.size(); ++i)
    if (s.from_input[i] < 0) outputs.push_back(all[i]);
  s.graph = b.finish(outputs);
  return s;
}

// Gives each donated input an output of its type to live on in.
std::vector<int> match_donations(const Split& s, const std::vector<bool>& donated,
                                 std::vector<uint32_t>& consumed) {
  std::vector<int> aliases;
  if (!s.graph || std::find(donated.begin(), donated.end(), true) == donated.end()) return aliases;
  aliases.assign(s.kept.size(), -1);
  std::vector<bool> taken(s.graph->outputs().size(), false);
  std::string unusable;
  for (size_t i = 0; i < s.kept.size(); ++i) {
    if (s.kept[i] >= donated.size() || !donated[s.kept[i]]) continue;
    TypeRef type = s.graph->type(s.graph->input(static_cast<uint32_t>(i)));
    for (size_t r = 0; r < taken.size() && aliases[i] < 0; ++r)
      if (!taken[r] && s.graph->type(s.graph->outputs()[r]) == type)
        aliases[i] = static_cast<int>(r);
    if (aliases[i] >= 0) {
      taken[static_cast<size_t>(aliases[i])] = true;
      consumed.push_back(s.kept[i]);
    } else {
      unusable += cat(unusable.empty() ? "" : ", ", type);
    }
  }
  if (!unusable.empty()) {
    check(PyErr_WarnFormat(PyExc_UserWarning, 2, "donated buffers that no output can reuse: %s",
                           unusable.c_str()));
  }
  return aliases;
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
  e->loaded = Ref::checked(PyObject_CallFunctionObjArgs(runtime.compile.get(), text_object.get(),
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

// An input that is also a result: the array itself, so that deleting either is seen by both, unless
// it differs in more than its buffer or is not the user's.
PyObject* handed_through(ArrayObject* a, bool weak, bool committed) {
  check_live(a);
  if (a->weak == weak && a->committed == committed && !a->cached)
    return Py_NewRef(reinterpret_cast<PyObject*>(a));
  return copy_buffer(a, a->device, weak, committed).release();
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

void run(const Program& p, std::span<PyObject* const> inputs, bool committed,
         std::vector<PyObject*>& out) {
  Ref results;
  if (p.executable) {
    Ref buffers = Ref::checked(PyList_New(static_cast<Py_ssize_t>(p.kept.size())));
    for (size_t i = 0; i < p.kept.size(); ++i) {
      ArrayObject* a = as_array(inputs[p.kept[i]]);
      if (a->deleted) check_live(a);
      PyList_SET_ITEM(buffers.get(), static_cast<Py_ssize_t>(i), Py_NewRef(a->buffer));
    }
    if (!p.donated.empty()) {
      for (uint32_t d : p.donated)
        for (size_t i = 0; i < inputs.size(); ++i)
          if (i != d && as_array(inputs[i])->buffer == as_array(inputs[d])->buffer)
            raise_error("ArgumentTypeError", "expected a donated array to be passed once; got ",
                        as_array(inputs[d])->type, " as inputs ", d, " and ", i);
    }
    bool has_effects = p.executable->has_effects;
    PyObject* execute_args[] = {p.executable->loaded.get(), buffers.get(), Py_True};
    size_t num_args = has_effects ? 3 : 2;  // the last: with a token
    Ref execution = Ref::checked(PyObject_VectorcallMethod(
        name("execute_sharded"), execute_args, num_args | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr));
    if (has_effects) {
      Ref token = Ref::checked(PyObject_CallMethodNoArgs(execution.get(), name("consume_token")));
      Ref::checked(PyObject_CallOneArg(runtime.keep_token.get(), token.get()));
    }
    PyObject* consume_args[] = {execution.get(), p.executable->handlers.get()};
    results = Ref::checked(PyObject_VectorcallMethod(name("consume_with_handlers"), consume_args,
                                                     2 | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr));
    LastRun& last = last_run();
    last.any = true;
    int held = p.executable->smallest_output;
    last.buffer = held < 0 ? Ref() : Ref::borrow(PyList_GET_ITEM(results.get(), held));
    for (uint32_t d : p.donated) mark_deleted(as_array(inputs[d]));
  }
  size_t first = out.size();
  out.reserve(first + p.outputs.size());
  Py_ssize_t next = 0;
  for (size_t i = 0; i < p.outputs.size(); ++i) {
    int from = p.from_input[i];
    if (from >= 0) {
      out.push_back(
          handed_through(as_array(inputs[static_cast<size_t>(from)]), p.weak[i], committed));
    } else {
      PyObject* buffer = PyList_GET_ITEM(results.get(), next++);
      out.push_back(make_array(Py_NewRef(buffer), p.outputs[i], p.weak[i], p.device, committed));
    }
  }
}

LastRun& last_run() {
  static auto* last = new LastRun;
  return *last;
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
