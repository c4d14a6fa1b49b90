// What a JitFunction is made of: its function, its options, and what was traced.
#pragma once

#include <string>
#include <vector>

#include "jit/traces.h"
#include "references/core.h"

namespace weft::py {

struct JitState {
  Ref function;
  std::string name;
  Ref options;  // weft's JitOptions; those below are read from it
  SmallVector<int64_t, 4> static_argnums;
  Ref static_argnums_object;  // the same as a tuple, for messages
  std::vector<Ref> static_argnames;
  SmallVector<int64_t, 4> donate_argnums;
  std::vector<Ref> donate_argnames;
  bool is_inline = false;
  bool library = false;  // composite(): ops carry the caller's location
  // Of a composite(): Python ints beside integers of a dtype that does not hold them do not wrap.
  bool exact_ints = false;
  // Of a composite(): its arguments are aligned as NumPy does, which users may forbid.
  bool broadcasts = false;
  bool keep_unused = false;
  ShardingRef at = nullptr;         // to run on; null: where the arguments are
  Ref in_shardings, out_shardings;  // trees of shardings; unset: none was given
  CompileChoice how;
  uint64_t id;  // no other JitFunction ever has it
  Ref traces_object;
  Ref stored;  // where traces are kept for other processes; unset: nowhere

  // Shared by jit functions of one function with equal options.
  Traces& traces() const { return *traces_of(traces_object.get()); }
};

}  // namespace weft::py
