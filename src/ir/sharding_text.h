// Reading meshes and shardings as they are printed.
#pragma once

#include "ir/scanner.h"
#include "weft/sharding.h"

namespace weft {

MeshRef parse_mesh(Scanner& in);
ShardingRef parse_sharding(Scanner& in);

}  // namespace weft
