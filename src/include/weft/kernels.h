// SPDX-License-Identifier: Apache-2.0
// Functions of weft's own that modules may call by name, for whoever gives modules to a runtime of
// XLA: register each as a typed FFI target of the platform "cpu", then emit modules with
// EmitOptions::own_kernels.
#pragma once

#include <cstdint>
#include <span>

#include "weft/api.h"

namespace weft {

struct Kernel {
  const char* name;
  void* handler;  // an XLA_FFI_Handler
};
WEFT_API std::span<const Kernel> kernels();

// The product of two matrices of float32 or float64, or of vectors, which are a row on the left and
// a column on the right. Its attributes say which axis of each side is summed over: lhs_contract
// and rhs_contract, 64-bit integers.
inline constexpr char kSmallProduct[] = "weft_small_product";
// Whether it takes sides of these sizes: it is for those with little to compute.
WEFT_API bool is_small_product(int64_t rows, int64_t terms, int64_t columns);

}  // namespace weft
