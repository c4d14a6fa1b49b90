// Tracing a function for one signature.
#pragma once

#include "jit/state.h"

namespace weft::py {

std::shared_ptr<Entry> trace(const JitState& s, const Call& call);
// Which inputs of the graph are donated: those of arguments named by the donate_* options. Empty:
// none is.
std::vector<bool> donated_inputs(const JitState& s, const Call& call, size_t num_captures);

}  // namespace weft::py
