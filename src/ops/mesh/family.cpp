// Ops over the devices of a mesh.
#include "ops/mesh/family.h"

#include "ops/def/families.h"

namespace weft {

void families::mesh(OpRegistry& r) {
  register_collectives(r);
  register_shard_map(r);
  register_sharding(r);
  register_pullback(r);
}

}  // namespace weft
