// Ops that run on the host, or that hold values of it.
#include "ops/host/family.h"

#include "ops/def/families.h"

namespace weft {

void families::host(OpRegistry& r) {
  register_callback(r);
  register_check(r);
  register_ffi(r);
  register_rng(r);
  register_constant(r);
  register_barrier(r);
}

}  // namespace weft
