// The families of built-in ops; registry.cpp calls each once.
#pragma once

#include "weft/registry.h"

namespace weft {

void register_elementwise(OpRegistry& r);
void register_arithmetic(OpRegistry& r);
void register_bitwise(OpRegistry& r);
void register_convert(OpRegistry& r);
void register_transcendental(OpRegistry& r);
void register_special(OpRegistry& r);
void register_incomplete(OpRegistry& r);
void register_compare(OpRegistry& r);
void register_reduce(OpRegistry& r);
void register_reduce_graph(OpRegistry& r);
void register_shape(OpRegistry& r);
void register_concat(OpRegistry& r);
void register_slice(OpRegistry& r);
void register_gather(OpRegistry& r);
void register_scatter(OpRegistry& r);
void register_cumulative(OpRegistry& r);
void register_rng(OpRegistry& r);
void register_barrier(OpRegistry& r);
void register_sort(OpRegistry& r);
void register_fft(OpRegistry& r);
void register_dot(OpRegistry& r);
void register_conv(OpRegistry& r);
void register_window(OpRegistry& r);
void register_call(OpRegistry& r);
void register_constant(OpRegistry& r);
void register_custom_rules(OpRegistry& r);
void register_checkpoint(OpRegistry& r);
void register_callback(OpRegistry& r);
void register_check(OpRegistry& r);
void register_ffi(OpRegistry& r);
void register_cond(OpRegistry& r);
void register_while(OpRegistry& r);
void register_scan(OpRegistry& r);
void register_linear_solve(OpRegistry& r);
void register_collectives(OpRegistry& r);
void register_shard_map(OpRegistry& r);
void register_sharding(OpRegistry& r);
void register_pullback(OpRegistry& r);

}  // namespace weft
