// Ops that reduce axes.
#include "ops/reduce/family.h"

#include "ops/def/families.h"

namespace weft {

void families::reduce(OpRegistry& r) {
  register_reduce(r);
  register_reduce_graph(r);
  register_cumulative(r);
  register_window(r);
  register_select_window(r);
}

}  // namespace weft
