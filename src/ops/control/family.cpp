// Ops that hold graphs: branches, loops, calls.
#include "ops/control/family.h"

#include "ops/def/families.h"

namespace weft {

void families::control(OpRegistry& r) {
  register_cond(r);
  register_platform(r);
  register_while(r);
  register_scan(r);
  register_call(r);
  register_checkpoint(r);
  register_custom_rules(r);
  register_linear_solve(r);
  register_mapped_call(r);
}

}  // namespace weft
