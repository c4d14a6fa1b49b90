// SPDX-License-Identifier: Apache-2.0
// How a module asks XLA's compiler for CPUs to emit a function that it calls as one kernel.
#pragma once

#include <string_view>

namespace weft {

// What stands behind the operands of the call. Without it the call is one like any other.
inline constexpr std::string_view kKernelCall =
    " {mhlo.frontend_attributes = {inlineable = \"false\", xla_cpu_small_call = \"true\"}}";

}  // namespace weft
