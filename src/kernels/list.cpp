// The list of the kernels.
#include "kernels/list.h"

namespace weft {

std::span<const Kernel> kernels() {
  static const Kernel all[] = {{kSmallProduct, reinterpret_cast<void*>(&small_product)},
                               {kSparseProduct, reinterpret_cast<void*>(&sparse_product)},
                               {kSampledProduct, reinterpret_cast<void*>(&sampled_product)},
                               {kCsrPlaces, reinterpret_cast<void*>(&csr_places)}};
  return all;
}

bool is_long_kernel(std::string_view name) { return name != kSmallProduct; }

}  // namespace weft
