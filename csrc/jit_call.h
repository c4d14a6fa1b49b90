// A call of a traced entry: run, recorded as a `jit` op, or spliced into the program being traced.
#pragma once

#include "jit_signature.h"
#include "jit_state.h"

namespace weft::py {

// Results of an entry on a call's arguments, as the function returns them; writes cells.
Ref call_entry(const JitState& s, const Entry& entry, const Call& call);

// Where a call runs whose operands are these, captures first.
Placement placement_of(const JitState& s, const Entry& entry, std::span<const Operand> operands);

}  // namespace weft::py
