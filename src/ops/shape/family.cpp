// Ops that move elements.
#include "ops/shape/family.h"

#include "ops/def/families.h"

namespace weft {

void families::shape(OpRegistry& r) {
  register_shape(r);
  register_concat(r);
  register_slice(r);
  register_gather(r);
  register_scatter(r);
  register_sort(r);
}

}  // namespace weft
