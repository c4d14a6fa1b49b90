// Computations that run without a trace, from a cache of compiled programs.
#pragma once

#include <string>
#include <vector>

#include "execution/compile.h"
#include "references/cache_key.h"
#include "references/core.h"
#include "references/function_ref.h"
#include "tracing/operand.h"

namespace weft::py {

// Owned results of an op.
using Objects = std::vector<Ref>;

// Runs a computation on concrete operands as one compiled program. The program is cached under
// (what, attrs, extra, types of operands); on a miss build() is called with abstract operands in
// a trace and returns the results. A scalar operand i is passed as a 0-d array of scalar_dtypes[i].
struct EagerCall {
  const void* what;  // an address that lives as long as the process, one per kind of call
  AttrsRef attrs;
  CacheKey extra;  // anything else that build() depends on
  std::span<const Operand> operands;
  SmallVector<DType, 4> scalar_dtypes;
};
using Build = FunctionRef<Objects(std::span<const Operand>)>;
Objects run_eagerly(const EagerCall& call, Build build);
// Of a computation with one result.
Ref run_for_one(const EagerCall& call, Build build);

// Where a program on these operands runs, and whether one of them insists on it: on several devices
// every committed array stays as it is split, and the others are put on each device.
struct Placement {
  Places places;
  bool committed;
};
// Where a program runs, and a value goes, that nothing else places: on the mesh that is set, if
// this process has all of it, or the current device.
ShardingRef place_by_default();
// describe(i) names an operand in messages. With a mesh, that of the program, it runs there.
using Describe = FunctionRef<std::string(size_t)>;
Placement placement(std::span<const Operand> xs, Describe describe, MeshRef mesh = nullptr);
// The same where some operands, and some results, are wanted somewhere; null: not said.
Placement placement(std::span<const Operand> xs, Describe describe, MeshRef mesh,
                    const std::vector<ShardingRef>& inputs,
                    const std::vector<ShardingRef>& outputs);
// The array, or a copy of it elsewhere: between the same devices, a program moves what has to be.
Ref on_device(Ref array, ShardingRef sharding);
// The operand as an array there for one call.
Ref for_call(const Operand& x, ShardingRef sharding, std::optional<DType> dtype = std::nullopt);

// Whether run_eagerly would find the program.
bool is_cached(const EagerCall& call);

struct EagerStats {
  uint64_t hits = 0, misses = 0, size = 0;
};
EagerStats eager_cache_stats();
void clear_eager_cache();

}  // namespace weft::py
