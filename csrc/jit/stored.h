// Traces that other processes made: what `weft.aot` keeps in files. A jit function may have a
// store, an object of Python's (weft._aot) that finds and keeps them by what the call is.
#pragma once

#include <memory>

#include "jit/signature.h"
#include "jit/state.h"

namespace weft::py {

// The entry of a call, of a trace that was kept; null if there is none, and `why` says why.
std::shared_ptr<Entry> stored_entry(const JitState& s, const Call& call, std::string& why);
// Keeps the trace of a call; `why` says why not, where it cannot be.
void store_entry(const JitState& s, const Call& call, const Entry& entry, std::string& why);

}  // namespace weft::py
