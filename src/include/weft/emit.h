// StableHLO text of a graph: one module with a public function `main` and one private function per
// distinct callee structure.
#pragma once

#include <string>
#include <vector>

#include "weft/api.h"
#include "weft/graph.h"

namespace weft {

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

WEFT_API std::string emit_stablehlo(const Graph& graph, const EmitOptions& options = {});

}  // namespace weft
