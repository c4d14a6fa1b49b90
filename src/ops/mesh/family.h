// The files of this folder that define ops; family.cpp calls each once.
#pragma once

#include "weft/registry.h"

namespace weft {

void register_lanes(OpRegistry& r);
void register_reduce_lanes(OpRegistry& r);
void register_vary(OpRegistry& r);
void register_send(OpRegistry& r);
void register_exchange(OpRegistry& r);
void register_shard_map(OpRegistry& r);
void register_sharding(OpRegistry& r);
void register_pullback(OpRegistry& r);

}  // namespace weft
