// A call of a traced entry: run, recorded as a `jit` op, or spliced into the program being traced.
#pragma once

#include "execution/run.h"
#include "jit/signature.h"
#include "jit/state.h"

namespace weft::py {

// Results of an entry on a call's arguments, as the function returns them; writes cells.
Ref call_entry(const JitState& s, const Entry& entry, const Call& call);

// The parts of that which a call of a compiled function shares.
//
// Raises for a cell that is an argument twice, or that the function closes over as well; `describe`
// names one of the arguments' by its number.
void check_cells(const Entry& entry, std::span<PyObject* const> cells, Describe describe);
// Moves operands where the program takes them, and runs it.
void run_on(const Program& program, std::span<const Operand> operands, const Places& places,
            bool committed, Outputs& outputs);
// What the outputs are to the caller, whose arguments have these leaves; writes cells.
Ref results_of(const Entry& entry, std::span<PyObject* const> leaves, Outputs& outputs);

// Where a call runs whose operands are these, captures first.
Placement placement_of(const JitState& s, const Entry& entry, std::span<const Operand> operands);

}  // namespace weft::py
