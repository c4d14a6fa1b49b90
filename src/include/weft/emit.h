// StableHLO text of a graph: one module with a public function `main` and one private function per
// distinct callee structure.
#pragma once

#include <string>
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

struct EmitOptions {
  std::string module_name = "jit_f";  // printed as @name, quoted if need be
  std::string platform = "cpu";
  bool locations = false;
  // Per input of the graph: index of the output that may take its buffer, -1 for none, or
  // kDonor to let XLA choose. Empty: no donation.
  static constexpr int kDonor = -2;
  std::vector<int> aliases;
  // Per output: text of the jax.result_info attribute. Empty: none.
  std::vector<std::string> result_info;
};

// A module, and what whoever compiles it has to know.
struct EmittedModule {
  std::string text;
  std::vector<HostCallback> callbacks;  // by number
  bool has_barriers = false;            // the compiler must not drop its optimization barriers
};

WEFT_API EmittedModule emit_stablehlo(const Graph& graph, const EmitOptions& options = {});

}  // namespace weft
