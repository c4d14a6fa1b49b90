// SPDX-License-Identifier: Apache-2.0
// StableHLO text as graphs: the inverse of emit.h, for programs that weft did not trace.
#pragma once

#include <string>
#include <string_view>

#include "weft/api.h"
#include "weft/graph.h"

namespace weft {

struct ReadOptions {
  // The function that is the program. Empty: @main, or the only public function.
  std::string function = {};
  // The name of the file that the text is from. Ops without a location of their own then have one
  // in it; locations are kept for the life of the process, so none is made up for other texts.
  std::string file = {};
};

// Reads a module of the dialects func, StableHLO and CHLO, pretty or generic. Values and types are
// those of the text. Throws kParse for malformed text and kNotImplemented for what has no
// counterpart in a graph, both with line, column and the op.
WEFT_API GraphRef read_stablehlo(std::string_view text, const ReadOptions& options = {});

// Whether a text is MLIR, by its first word; else it may be a program as print() writes it.
WEFT_API bool is_mlir(std::string_view text);

}  // namespace weft
