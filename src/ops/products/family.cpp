// Ops of products: matrices, convolutions, transforms, linear algebra.
#include "ops/products/family.h"

#include "ops/def/families.h"

namespace weft {

void families::products(OpRegistry& r) {
  register_dot(r);
  register_sparse(r);
  register_conv(r);
  register_fft(r);
  register_linalg(r);
}

}  // namespace weft
