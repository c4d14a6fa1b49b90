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

// `host_callbacks`, if not null, is given the host functions that the module calls.
WEFT_API std::string emit_stablehlo(const Graph& graph, const EmitOptions& options = {},
                                    std::vector<HostCallback>* host_callbacks = nullptr);

}  // namespace weft
