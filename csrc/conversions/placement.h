// Where arrays and programs are: the devices of the process, and what jaxlib needs of each
// sharding, made when it is first needed.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "references/core.h"

namespace weft::py {

// The table has the devices of all processes, in an order that is the same in each.
struct Device {
  Ref device;            // jaxlib's device object
  ShardingRef sharding;  // all of an array on it
  std::string platform;
  bool addressable;  // by this process
};
std::deque<Device>& device_table();  // its elements stay where they are
// Raises for a number that is no index of the table; starts the runtime if need be.
void check_device(int device);
// Of what no committed operand places; starts the runtime if need be.
ShardingRef current_placement();

// Devices on which programs run together, in the order of their mesh. It is how jaxlib is given
// them, so that XLA sees a mesh in order: of others it splits some products wrongly.
struct DeviceSet {
  std::vector<int32_t> numbers;
  Ref list;         // jaxlib's DeviceList
  Ref addressable;  // a list of jaxlib's devices
  std::string platform;
  bool is_local;  // whether all are addressable
};

// What is known of a sharding over devices.
struct Place {
  ShardingRef sharding;
  const DeviceSet* devices;
  std::vector<int64_t> positions;  // in the mesh, per device of the set
  std::vector<Ref> by_rank;        // jaxlib's sharding of arrays of so many dimensions

  bool on_one_device() const { return positions.size() == 1; }
};
// Raises for a sharding whose mesh is abstract or has devices that are not in the table.
Place& place_of(ShardingRef sharding);
// All of an array on each device of the mesh.
ShardingRef replicated(MeshRef mesh);
// Whether it is device_sharding() of some device, so that only equal ones are of the same device.
inline bool is_trivial(ShardingRef s) { return s->mesh()->axes().empty(); }
inline int first_device(ShardingRef s) { return s->mesh()->devices()[0]; }
// The same, borrowed, for arrays of a rank.
PyObject* jaxlib_sharding(Place& place, size_t rank);
// Whether arrays of this type, which has to fit both, have the same parts on the same devices.
bool are_equivalent(ShardingRef a, ShardingRef b, TypeRef type);
// Raises ShardingError for a type that does not fit.
void check_fit(ShardingRef sharding, TypeRef type, std::string_view what);
// A sharding in messages: P(...) on Mesh(...), or a device.
std::string describe(ShardingRef sharding);

// Which part of an array of this type each device of the set holds: a list of tuples of slices.
Ref shard_indices(ShardingRef sharding, TypeRef type, bool addressable_only);

// The sharding of an array of a rank that is split in tiles[i] blocks along dimension i (further
// blocks are repeated), which are held by the devices of the set in this order: over axes of the
// mesh if they fit, else over a mesh of its own.
ShardingRef sharding_of_tiles(MeshRef mesh, const DeviceSet& devices, size_t rank,
                              std::span<const int64_t> tiles, std::span<const int64_t> order);

}  // namespace weft::py
