// A graph that runs on a device as one module. What jaxlib compiled for it is loaded when it is
// asked for, and may be dropped in between: every holder of an Executable (an eager op, an entry of
// a jitted function, a user's compiled program) can go on using it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "conversions/sharding_object.h"
#include "references/core.h"
#include "tracing/in_flight.h"

namespace weft::py {

class SharedRuns;

// Where the inputs of a program are, and where its outputs are to be.
struct Places {
  ShardingRef at = nullptr;  // of all that is not given; its devices are those of the program
  std::vector<ShardingRef> inputs = {};   // empty: none is given
  std::vector<ShardingRef> outputs = {};  // empty or null: on several devices, as XLA chooses
  std::vector<SpecEntries> entries = {};  // of the outputs as they were written; may be empty

  ShardingRef input(size_t i) const { return inputs.empty() ? at : inputs[i]; }
  friend bool operator==(const Places&, const Places&) = default;
};

// Where what is loaded came from, and how long that took.
struct Origin {
  enum Source : uint8_t { kNone, kXla, kDisk };  // none: nothing was loaded yet
  Source source = kNone;
  uint64_t number = 0;                   // of the load, among all of the process
  double emission = 0, compilation = 0;  // seconds; of one from disk, of reading and loading it
};

class Executable {
 public:
  // `aliases`: per input the output that its buffer becomes, or -1; empty if none does. `name` is
  // for XLA's dumps and profiles. `fast_arithmetic` and
  // `own_kernels`: see EmitOptions. `unroll`: see Kernels.
  Executable(GraphRef graph, Places places, std::vector<int> aliases, std::string name,
             int compiler_options, bool fast_arithmetic, bool unroll, bool own_kernels);
  ~Executable();
  Executable(const Executable&) = delete;

  // jaxlib's LoadedExecutable; compiles if need be, unless `serialized`, bytes, is what the module
  // was compiled to in another process.
  Ref loaded(PyObject* serialized = Py_None) {
    if (!loaded_) return load(serialized);
    last_use_ = ++clock_;
    return loaded_;
  }
  // jaxlib's result handlers, a list.
  PyObject* handlers() const { return handlers_.get(); }
  // Where a result is, once it was loaded.
  ShardingRef result_sharding(size_t i) const { return results_.empty() ? places.at : results_[i]; }
  // To be called before it runs.
  void begin_run() {
    if (shared_) begin_shared_run();
  }
  // Known once it was loaded: whether other processes run it, too; whether it runs on several
  // devices that share a pool of threads.
  bool is_shared() const { return shared_; }
  bool shares_threads() const { return shares_threads_; }
  // Whether it has functions of the host; known once it was loaded.
  bool calls_host() const { return calls_host_; }
  // Of the latest time that it was loaded.
  const Origin& origin() const { return origin_; }

  const GraphRef graph;
  const Places places;
  const std::vector<int> aliases;
  const std::string name;
  const int compiler_options;
  const bool fast_arithmetic;
  const bool unroll;
  const bool own_kernels;
  const std::vector<TypeRef> outputs;
  const bool has_effects;
  int smallest_output = -1;  // if it is small enough to be held on to; see last_run()

 private:
  friend struct Loaded;
  Ref load(PyObject* serialized);
  ShardingRef chosen(PyObject* tiles, TypeRef type) const;
  void tell(const std::vector<Inspection>& inspections, PyObject* found) const;
  void set_results(PyObject* loaded);
  void begin_shared_run();

  static inline uint64_t clock_ = 0;
  Ref loaded_;
  InFlightRef loading_;
  SharedRuns* shared_ = nullptr;  // known once it was loaded, like the fingerprint
  uint64_t fingerprint_ = 0;
  Origin origin_;
  Ref handlers_;
  std::vector<ShardingRef> results_;  // empty: all are at places.at
  uint64_t last_use_ = 0;
  bool calls_host_ = false;
  bool shares_threads_ = false;
};
using ExecutableRef = std::shared_ptr<Executable>;

// The number of a user's options of XLA's, a tuple of pairs (name, value) or None, which is 0: one
// for those that are equal.
int compiler_options_number(PyObject* options);

// What emission has to know of where a program runs. `platform`: if the text is for another than
// that of the places.
EmitOptions emit_options(const std::string& platform);
EmitOptions emit_options(const Places& places, size_t num_inputs, const std::vector<int>& aliases,
                         const std::string& platform = {});

// How many are loaded, and how often one was.
size_t loaded_executables();
uint64_t num_loads();
// How many of these loads the cache on disk served.
uint64_t num_disk_hits();
// Drops what was compiled for the `count` least recently used executables; returns for how many.
size_t unload_executables(size_t count);

}  // namespace weft::py
