// The kernels, each of which its own file defines; what they share.
#pragma once

#include <string_view>

#include "kernels/ffi_abi.h"
#include "weft/kernels.h"

// The same code for several generations of processors, of which the newest that is there runs.
#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#define WEFT_X86 1
#endif

namespace weft {

ffi::Handler small_product, sparse_product, sampled_product, csr_places;

// The ops sparse_dot, sampled_dot and csr_places (ops/products/sparse.cpp), of float32 or float64,
// with 32-bit or 64-bit indices.
inline constexpr char kSparseProduct[] = "weft_sparse_product";
inline constexpr char kSampledProduct[] = "weft_sampled_product";
inline constexpr char kCsrPlaces[] = "weft_csr_places";

// Whether a kernel takes longer than XLA could gain by fusing the op with others. Other kernels
// save the time of a call, and are for programs that are one op.
bool is_long_kernel(std::string_view name);

}  // namespace weft
