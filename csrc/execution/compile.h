// From a graph to a loaded program. One process-wide cache maps the structure of optimised graphs
// to executables, so programs that differ in names only are compiled once.
#pragma once

#include <memory>
#include <vector>

#include "execution/executable.h"
#include "references/core.h"
#include "weft/kernel_regions.h"
#include "weft/pack.h"
#include "weft/roll.h"

namespace weft::py {

// Whether a program becomes one module, pieces that are compiled once for all places where they
// stand, or whichever serves better. What repeats in one module is rolled, where that serves,
// unless it is to stay unrolled.
enum class Cut : uint8_t { kWhole, kBlocks, kAuto, kUnrolled };

// How a user wants a program to be compiled.
struct CompileChoice {
  int xla_options = 0;  // see compiler_options_number
  Cut cut = Cut::kWhole;
  KernelChoice kernels = KernelChoice::kAuto;
  friend bool operator==(const CompileChoice&, const CompileChoice&) = default;
};
Cut cut_named(PyObject* name);               // "whole", "blocks", "auto" or "unrolled"
KernelChoice kernels_named(PyObject* name);  // "auto", "always" or "never"

// Donation: for each graph input whether its buffer may be reused.
struct CompileOptions {
  Places places = {};  // of the inputs and outputs of the graph
  std::string name = "f";
  std::vector<bool> donated;
  // For each graph input whether it is the same array at every call. Empty: the program is not
  // known to be called again.
  std::vector<bool> constants = {};
  bool keep_unused = false;
  std::vector<std::string> result_info = {};
  std::string platform = {};  // of the text, where it is not that of the places
  CompileChoice how = {};
  // The program runs now, without jit: its checks are made, and all that it computes is looked at.
  bool at_once = false;
  // What the program was compiled to in another process, bytes, if it is one module; else None.
  Ref executable = Ref::borrow(Py_None);
};

// What is looked at after each run of a program, in outputs that follow those of its graph: the
// number of the first that has a NaN or an infinity, then what the graph's checks found.
struct Observed {
  GraphRef source;
  WatchOptions watch;
  std::shared_ptr<const CheckedGraph> checks;  // null if there are none
  size_t num_outputs;
};

struct Steps;
class Prologue;

// What it took to make a program. Its modules were compiled for it, read from the disk, or were in
// memory, as programs of the same structure have them.
struct CompileCost {
  double optimize = 0, emit = 0, compile = 0;  // seconds, of modules those of all of them
  size_t ops = 0;                              // of the optimised graph, with those it holds
  size_t modules = 0, in_memory = 0, from_disk = 0;
  size_t blocks = 0;             // of the modules, those that are blocks
  size_t rolled = 0, loops = 0;  // operations that became loops, and these
  size_t packed = 0;             // operations fewer in loops, of arrays in place of numbers
  std::vector<Kernels::Kernel> kernels = {};
};

// A graph made ready to run: inputs that no op uses are not passed, outputs that are inputs are
// handed back without the device being asked.
struct Program {
  ExecutableRef executable;  // null when nothing has to be computed, or it is in steps
  std::shared_ptr<const Steps> steps = nullptr;
  GraphRef optimized;
  std::vector<Rolled::Loop> loops = {};  // that what repeats in it was rolled into
  // Makes the last inputs of the executable, of constants; null if there are none.
  std::shared_ptr<Prologue> prologue = nullptr;
  std::vector<uint32_t> kept;     // inputs passed to the executable
  std::vector<int> from_input;    // per output: input that it is, or -1
  std::vector<uint32_t> donated;  // inputs that are gone after the call
  std::vector<TypeRef> outputs;
  std::vector<bool> weak;  // per output
  Places places = {};
  std::shared_ptr<const Observed> observed = nullptr;  // null: nothing is
  CompileCost cost = {};
};
using ProgramRef = std::shared_ptr<const Program>;

// The mesh of devices that ops of a graph, or attributes of one, name; null if there is none.
MeshRef mesh_named_in(const Graph& graph);
MeshRef mesh_named_in(const AttrRecord& attrs);

// A program with loops in place of what repeats in it, and with arrays in place of small values to
// which a loop does the same, where that serves a CPU better.
struct Repacked {
  GraphRef graph;  // the one given, if nothing serves
  std::vector<Rolled::Loop> loops = {};
  uint32_t num_saved = 0;  // operations of loops' bodies, by arrays
};
Repacked repacked(const GraphRef& optimized, Cut cut);

// Splits a graph into what runs and what is handed through, and finds or compiles the executable.
ProgramRef compile(const GraphRef& graph, const CompileOptions& options,
                   std::vector<bool> weak_outputs);
// StableHLO text of the program as it would be compiled (lower().as_text()).
std::string lowered_text(const GraphRef& graph, const CompileOptions& options, bool locations);

// The operations of a graph and of those that it holds.
size_t count_ops(const Graph& graph);

struct CacheStats {
  uint64_t compiles = 0, disk_hits = 0, hits = 0, size = 0, loaded = 0;
};
CacheStats executable_cache_stats();
// Forgets all executables, and drops what was compiled for those that others hold.
void clear_executable_cache();

}  // namespace weft::py
