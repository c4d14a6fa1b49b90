// Tracing a function for one signature.
#pragma once

#include "jit_state.h"

namespace weft::py {

std::shared_ptr<Entry> trace(const JitState& s, const Call& call);

}  // namespace weft::py
