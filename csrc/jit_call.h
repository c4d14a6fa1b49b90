// A call of a traced entry: run, recorded as a `jit` op, or spliced into the program being traced.
#pragma once

#include "jit_state.h"

namespace weft::py {

// Results of an entry on the arguments' leaves, as the function returns them.
Ref call_entry(const JitState& s, const Entry& entry, std::span<const Operand> arguments);

}  // namespace weft::py
