// Calls of LAPACK, as JAX and weft write them for CPU: lapack_spotrf_ffi and the like.
#pragma once

#include "read/op_text.h"

namespace weft::reader {

// Whether a target is a solver that weft has an op for.
bool find_solver(std::string_view target);
// The call, by weft's ops. `config` is what the call says: uplo = 76 : ui8.
void apply_solver(OpText& op, std::string_view target, const NamedList& config);

}  // namespace weft::reader
