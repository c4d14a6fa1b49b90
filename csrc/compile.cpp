// Optimise, split off what needs no device, look the structure up.

#include "compile.h"

#include "array.h"
#include "cache_key.h"
#include "in_flight.h"
#include "lru_table.h"
#include "split.h"
#include "unlocked.h"

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

ExecutableRef executable_for(const GraphRef& graph, std::vector<int> aliases,
                             const CompileOptions& options) {
  Key key{graph, {}};
  key.words.add({options.device, options.compiler_options});
  key.words.add(Dims(aliases.begin(), aliases.end()));
  uint64_t hash = key.hash();
  static auto* compiling = new InFlightTable<Key>;
  do {
    if (auto known = find(key, hash)) {
      ++hits;
      return *known;
    }
  } while (compiling->wait([&](const Key& other) { return other == key; }));
  InFlightTable<Key>::Begun begun(*compiling, key, false);
  auto made = std::make_shared<Executable>(graph, options.device, std::move(aliases), options.name,
                                           options.compiler_options);
  made->loaded();  // errors come here, and not at the first run
  Table& home = table(made->calls_host());
  return *home.insert(hash, std::move(key), std::move(made));
}

// The graph with what is looked at among its outputs, if anything is.
GraphRef with_observed(const GraphRef& graph, bool at_once,
                       std::shared_ptr<const Observed>& observed) {
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

ProgramRef compile(const GraphRef& source, const CompileOptions& options,
                   std::vector<bool> weak_outputs) {
  auto program = std::make_shared<Program>();
  GraphRef graph = with_observed(source, options.at_once, program->observed);
  // What failed is computed again, from the same inputs.
  const std::vector<bool>& donated = program->observed ? std::vector<bool>() : options.donated;
  weak_outputs.resize(graph->outputs().size());
  program->optimized = unlocked(*graph, [&] { return optimize(graph); });
  Split s = split(program->optimized, options.keep_unused, donated);
  std::vector<int> aliases = match_donations(s, donated, program->donated);
  program->kept = std::move(s.kept);
  program->from_input = std::move(s.from_input);
  program->outputs = graph->output_types();
  program->weak = std::move(weak_outputs);
  program->device = options.device;
  if (!s.graph) return program;
  program->executable = executable_for(s.graph, std::move(aliases), options);
  return program;
}

std::string lowered_text(const GraphRef& graph, const CompileOptions& options, bool locations) {
  GraphRef optimized = unlocked(*graph, [&] { return optimize(graph); });
  EmitOptions emit = emit_options(device_table()[static_cast<size_t>(options.device)].platform);
  emit.module_name = "jit_" + options.name;
  emit.locations = locations;
  Split s = split(optimized, options.keep_unused, options.donated);
  if (s.graph && s.graph->outputs().size() == optimized->outputs().size()) {
    std::vector<uint32_t> consumed;
    emit.aliases = match_donations(s, options.donated, consumed);
    emit.result_info = options.result_info;
    return unlocked(*s.graph, [&] { return emit_stablehlo(*s.graph, emit).text; });
  }
  // The text shows every output, also those that the runtime hands through.
  emit.result_info = options.result_info;
  return unlocked(*optimized, [&] { return emit_stablehlo(*optimized, emit).text; });
}

CacheStats executable_cache_stats() {
  return {num_loads(), hits, table(false).size() + table(true).size(), loaded_executables()};
}

void clear_executable_cache() {
  table(false).clear();
  table(true).clear();
  unload_executables(loaded_executables());
}

}  // namespace weft::py
