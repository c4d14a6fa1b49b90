// Ops that work element by element.
#include "ops/elementwise/family.h"

#include "ops/def/families.h"

namespace weft {

void families::elementwise(OpRegistry& r) {
  register_unary(r);
  register_binary(r);
  register_bitwise(r);
  register_convert(r);
  register_transcendental(r);
  register_special(r);
  register_incomplete(r);
  register_compare(r);
}

}  // namespace weft
