// Tracing a function for one signature.
#pragma once

#include "jit_state.h"

namespace weft::py {

EntryRef trace(const JitState& s, const Call& call, Py_ssize_t num_positional);

}  // namespace weft::py
