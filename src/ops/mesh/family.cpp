// Ops over the devices of a mesh.
#include "ops/mesh/family.h"

#include "ops/def/families.h"

namespace weft {

void families::mesh(OpRegistry& r) {
  register_lanes(r);
  register_reduce_lanes(r);
  register_vary(r);
  register_send(r);
  register_exchange(r);
  register_shard_map(r);
  register_sharding(r);
  register_pullback(r);
}

}  // namespace weft
