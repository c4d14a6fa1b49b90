// The files of this folder that define ops; family.cpp calls each once.
#pragma once

#include "weft/registry.h"

namespace weft {

void register_collectives(OpRegistry& r);
void register_shard_map(OpRegistry& r);
void register_sharding(OpRegistry& r);
void register_pullback(OpRegistry& r);

}  // namespace weft
