// The type CompiledFunction: a traced function with its program, which is called without tracing.
#pragma once

#include "jit/jit.h"

namespace weft::py {

// Called with arguments nested as the entry's, of its types, it runs the program and returns what
// the function does. TreeStructureError and ArgumentTypeError, which tell little of the arguments,
// for others.
Ref make_compiled_function(EntryRef entry, ProgramRef program);

void init_compiled_function();

}  // namespace weft::py
