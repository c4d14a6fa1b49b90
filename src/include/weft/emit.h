// SPDX-License-Identifier: Apache-2.0
// StableHLO text of a graph: one module with a public function `main` and one private function per
// distinct callee structure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weft/api.h"
#include "weft/graph.h"

namespace weft {

// A function on the host that a module calls; the module knows it by its position.
struct HostCallback {
  ObjectRef function;
  std::vector<TypeRef> results;
  Loc loc;
  bool is_ordered;  // takes a token after its arguments and returns it after its results
};

// A function that is to know how XLA splits a value over the devices of the program.
struct Inspection {
  ObjectRef function;
  TypeRef type;  // of the value
};

// A function that a module calls by a name that the runtime must know.
struct CallTarget {
  std::string name;
  std::string_view op;  // that makes the first call
  Loc loc;              // of it
};

struct EmitOptions {
  std::string module_name = "jit_f";  // printed as @name, quoted if need be
  // "cpu", "cuda", "tpu"; or for other compilers, a program of StableHLO's ops alone, without
  // custom calls and without attributes of XLA: "portable", and "iree", which avoids what IREE gets
  // wrong.
  std::string platform = "cpu";
  // The targets by which the embedding language's runtime calls functions on the host, given their
  // number in the attribute `index`; and those called for each part. Empty: it has none.
  std::string host_call_target;
  std::string partitioned_host_call_target;
  // Whether ops are to be calls of weft's own kernels, where there is one: the runtime must have
  // them.
  bool own_kernels = false;
  // Whether XLA may rewrite arithmetic of floats as other arithmetic: quotients as products with
  // the reciprocal, sums and products with constants as one.
  bool fast_arithmetic = false;
  bool locations = false;
  // Per input of the graph: index of the output that may take its buffer, -1 for none, or
  // kDonor to let XLA choose. Empty: no donation.
  static constexpr int kDonor = -2;
  std::vector<int> aliases;
  // The devices that the program runs on, in the order in which the runtime is given them. Empty:
  // one device, or those of the mesh that the program has.
  std::vector<int32_t> devices;
  // Per input and output how it is split over meshes of those devices; null: as XLA chooses. Empty:
  // none is said.
  std::vector<ShardingRef> inputs, outputs;
  // Per output: text of the jax.result_info attribute. Empty: none.
  std::vector<std::string> result_info;
};

// XLA recurses over calls and regions in each other: more of them overflow its stack.
inline constexpr uint32_t kMaxEmittedDepth = 100;
// XLA compiles what is called once per call, and takes 18 KB per op: more ops than these take all
// memory, or hours.
inline constexpr uint64_t kMaxExpandedOps = 1'000'000;
// Ops of the program with a copy of what is called in place of every call; UINT64_MAX if more.
WEFT_API uint64_t expanded_ops(const Graph& graph);
// Throws kDepth if XLA would not come to an end with the program.
WEFT_API void check_expansion(const Graph& graph);

// Where a module has optimization barriers that the compiler must not drop.
enum class Barriers : uint8_t { kNone, kOutsideOfLoops, kAnywhere };

// What of a module decides how hard XLA's compiler should try. Counts are of operations, but for
// those that only move elements or make constants.
struct ModuleSurvey {
  size_t operations = 0;
  // Those that differ in more than their operands and lines.
  size_t distinct = 0;
  // Those that differ in this, or in what their operands come from, a few operations back: of the
  // kernels that XLA will make, about as many are unlike others.
  size_t unlike = 0;
  size_t shifts = 0;
  size_t reductions = 0;
  // About how many kernels XLA makes, beside the last one.
  size_t kernels = 0;
  // Operations that only move elements.
  size_t moves = 0;
  // Operations on single elements, functions counted as three, of kernels that XLA's old emitters
  // leave scalar.
  double scalar_work = 0;
  // Whether there are complex numbers, or types of 4 and 8 bits.
  bool has_rare_types = false;
};

// A module, and what whoever compiles it has to know.
struct EmittedModule {
  std::string text;
  std::vector<HostCallback> callbacks;  // by number
  std::vector<Inspection> inspections;  // by number
  std::vector<CallTarget> targets;      // each once
  Barriers barriers = Barriers::kNone;
  ModuleSurvey survey;
};

// Whether a graph is one op, for which a kernel of weft's own on CPU saves the time of a call.
WEFT_API bool is_kernel_call(const Graph& graph);

// Throws kDepth for calls and regions too deep in each other.
WEFT_API EmittedModule emit_stablehlo(const Graph& graph, const EmitOptions& options = {});

}  // namespace weft
