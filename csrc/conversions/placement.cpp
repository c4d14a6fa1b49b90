// The table of devices, that of shardings, and shardings from what XLA says of results.

#include "conversions/placement.h"

#include <algorithm>
#include <memory>
#include <unordered_map>

#include "references/hooks.h"

namespace weft::py {

std::deque<Device>& device_table() {
  static auto* table = new std::deque<Device>;
  return *table;
}

ShardingRef current_placement() {
  if (device_table().empty()) Ref::checked(PyObject_CallNoArgs(hooks.start.get()));
  if (int d = default_device(); d >= 0) return device_table()[static_cast<size_t>(d)].sharding;
  static const size_t first = [] {
    size_t i = 0;
    while (!device_table()[i].addressable) ++i;
    return i;
  }();
  return device_table()[first].sharding;
}

void check_device(int device) {
  current_placement();
  if (device < 0 || static_cast<size_t>(device) >= device_table().size())
    raise_error("AttributeValueError", "expected a device number below ", device_table().size(),
                "; got ", device);
}

ShardingRef replicated(MeshRef mesh) { return make_sharding({.mesh = mesh}); }

bool are_equivalent(ShardingRef a, ShardingRef b, TypeRef type) {
  if (a == b) return true;
  const Place &first = place_of(a), &second = place_of(b);
  if (first.devices != second.devices || a->memory() != b->memory() || !a->unreduced().empty() ||
      !b->unreduced().empty())
    return false;
  int rank = type->rank();
  for (int i = 0; i < rank; ++i)
    if (num_blocks(a, static_cast<size_t>(i)) != num_blocks(b, static_cast<size_t>(i)))
      return false;
  for (size_t d = 0; d < first.positions.size(); ++d)
    if (block_of(a, rank, first.positions[d]) != block_of(b, rank, second.positions[d]))
      return false;
  return true;
}

void check_fit(ShardingRef sharding, TypeRef type, std::string_view what) {
  std::string problem = misfit(sharding, type);
  if (!problem.empty()) raise_error("ShardingError", "[", what, "] ", problem);
}

std::string describe(ShardingRef sharding) {
  if (!is_trivial(sharding) || sharding->mesh()->is_abstract()) return shown(sharding);
  const Device& d = device_table()[static_cast<size_t>(first_device(sharding))];
  return readable(Ref::checked(PyObject_Str(d.device.get())).get());
}

namespace {

const DeviceSet* device_set(std::vector<int32_t> numbers) {
  static auto* sets = new std::deque<DeviceSet>;
  for (const DeviceSet& known : *sets)
    if (known.numbers == numbers) return &known;
  DeviceSet made;
  Ref all = Ref::checked(PyTuple_New(static_cast<Py_ssize_t>(numbers.size())));
  made.addressable = Ref::checked(PyList_New(0));
  for (size_t i = 0; i < numbers.size(); ++i) {
    check_device(numbers[i]);
    const Device& d = device_table()[static_cast<size_t>(numbers[i])];
    PyTuple_SET_ITEM(all.get(), static_cast<Py_ssize_t>(i), Py_NewRef(d.device.get()));
    if (d.addressable) check(PyList_Append(made.addressable.get(), d.device.get()));
    if (i && d.platform != made.platform)
      raise_error("DeviceMismatchError", "expected devices of one platform; got ", made.platform,
                  " and ", d.platform);
    made.platform = d.platform;
  }
  auto num_addressable = static_cast<size_t>(PyList_GET_SIZE(made.addressable.get()));
  made.is_local = num_addressable == numbers.size();
  made.list = Ref::checked(PyObject_CallOneArg(hooks.device_list.get(), all.get()));
  made.numbers = std::move(numbers);
  return &sets->emplace_back(std::move(made));
}

// Meshes that stand for a choice of XLA's, whose order of devices is not that of the program.
std::unordered_map<MeshRef, const DeviceSet*>& sets_of_choices() {
  static auto* sets = new std::unordered_map<MeshRef, const DeviceSet*>;
  return *sets;
}

}  // namespace

Place& place_of(ShardingRef sharding) {
  static auto* places = new std::deque<std::unique_ptr<Place>>;
  size_t number = sharding->number();
  if (number >= places->size()) places->resize(number + 1);
  if ((*places)[number]) return *(*places)[number];
  MeshRef mesh = sharding->mesh();
  if (mesh->is_abstract())
    raise_error("ShardingError", "expected a mesh of devices; got the abstract one of ",
                shown(sharding));
  auto made = std::make_unique<Place>();
  made->sharding = sharding;
  std::span<const int32_t> devices = mesh->devices();
  auto choice = sets_of_choices().find(mesh);
  made->devices = choice == sets_of_choices().end() ? device_set({devices.begin(), devices.end()})
                                                    : choice->second;
  for (int32_t number : made->devices->numbers)
    made->positions.push_back(std::find(devices.begin(), devices.end(), number) - devices.begin());
  if (number >= places->size()) places->resize(number + 1);  // Python code has run
  if (!(*places)[number]) (*places)[number] = std::move(made);
  return *(*places)[number];
}

PyObject* jaxlib_sharding(Place& place, size_t rank) {
  bool is_whole = place.sharding->is_replicated() || place.on_one_device();
  if (is_whole) rank = 0;  // one for all
  if (rank < place.by_rank.size() && place.by_rank[rank]) return place.by_rank[rank].get();
  ShardingRef s = place.sharding;
  Dims tiles;
  for (size_t i = 0; i < rank; ++i) tiles.push_back(num_blocks(s, i));
  // Per block, in order, the devices that hold it, by their numbers in the set.
  std::vector<std::pair<int64_t, int64_t>> holders;
  for (size_t d = 0; d < place.positions.size(); ++d) {
    Dims block = block_of(s, static_cast<int>(rank), place.positions[d]);
    int64_t number = 0;
    for (size_t i = 0; i < rank; ++i) number = number * tiles[i] + block[i];
    holders.emplace_back(number, static_cast<int64_t>(d));
  }
  std::sort(holders.begin(), holders.end());
  Dims order;
  for (auto& [block, device] : holders) order.push_back(device);
  Ref dims = is_whole ? Ref::borrow(Py_None) : to_tuple(tiles);
  Ref devices = to_tuple(order);
  Ref memory = s->memory().empty() ? Ref::borrow(Py_None) : to_text(s->memory());
  Ref made = Ref::checked(PyObject_CallFunctionObjArgs(hooks.make_sharding.get(),
                                                       place.devices->list.get(), dims.get(),
                                                       devices.get(), memory.get(), nullptr));
  if (rank >= place.by_rank.size()) place.by_rank.resize(rank + 1);
  place.by_rank[rank] = std::move(made);
  return place.by_rank[rank].get();
}

Ref shard_indices(ShardingRef sharding, TypeRef type, bool addressable_only) {
  const Place& place = place_of(sharding);
  size_t rank = type->shape().size();
  Ref out = Ref::checked(PyList_New(0));
  for (size_t i = 0; i < place.positions.size(); ++i) {
    auto device = static_cast<size_t>(place.devices->numbers[i]);
    if (addressable_only && !device_table()[device].addressable) continue;
    Dims block = block_of(sharding, static_cast<int>(rank), place.positions[i]);
    Ref index = Ref::checked(PyTuple_New(static_cast<Py_ssize_t>(rank)));
    for (size_t d = 0; d < rank; ++d) {
      Ref slice;
      if (int64_t blocks = num_blocks(sharding, d); blocks == 1) {
        slice = Ref::checked(PySlice_New(nullptr, nullptr, nullptr));
      } else {
        int64_t size = type->shape()[d] / blocks;
        Ref begin = Ref::checked(PyLong_FromLongLong(block[d] * size));
        Ref end = Ref::checked(PyLong_FromLongLong((block[d] + 1) * size));
        slice = Ref::checked(PySlice_New(begin.get(), end.get(), nullptr));
      }
      PyTuple_SET_ITEM(index.get(), static_cast<Py_ssize_t>(d), slice.release());
    }
    check(PyList_Append(out.get(), index.get()));
  }
  return out;
}

namespace {

// A mesh on the same devices whose axes are the prime factors of those of another.
MeshRef refined(MeshRef mesh) {
  std::vector<MeshAxis> axes;
  for (const MeshAxis& axis : mesh->axes()) {
    int64_t rest = axis.size, part = 0;
    for (int64_t p = 2; rest > 1; ++p) {
      for (; rest % p == 0; rest /= p)
        axes.push_back(
            {.name = rest == axis.size && p == rest ? axis.name : cat(axis.name, '_', part++),
             .size = p,
             .type = AxisType::kAuto});
    }
  }
  return make_mesh(std::move(axes), {mesh->devices().begin(), mesh->devices().end()});
}

// Which axes split which dimension, so that each device holds the block it does.
class TileSearch {
 public:
  TileSearch(MeshRef mesh, std::span<const int64_t> tiles, const std::vector<Dims>& blocks)
      : mesh_(mesh), tiles_(tiles), blocks_(blocks), used_(mesh->axes().size()) {
    parts_.mesh = mesh;
    parts_.dims.resize(tiles.size());
  }
  ShardingRef find() {
    if (!split(0, tiles_.empty() ? 1 : tiles_[0])) return nullptr;
    return make_sharding(parts_);
  }

 private:
  bool split(size_t dim, int64_t rest) {
    if (dim == tiles_.size()) return true;
    if (rest == 1)
      return agrees(dim) && split(dim + 1, dim + 1 < tiles_.size() ? tiles_[dim + 1] : 1);
    for (size_t a = 0; a < used_.size(); ++a) {
      int64_t size = mesh_->axes()[a].size;
      if (used_[a] || size == 1 || rest % size) continue;
      used_[a] = true;
      parts_.dims[dim].axes.push_back(static_cast<int64_t>(a));
      if (split(dim, rest / size)) return true;
      parts_.dims[dim].axes.pop_back();
      used_[a] = false;
    }
    return false;
  }
  bool agrees(size_t dim) const {
    ShardingRef s = make_sharding(parts_);
    for (size_t p = 0; p < blocks_.size(); ++p) {
      Dims block = block_of(s, static_cast<int>(dim + 1), static_cast<int64_t>(p));
      if (block[dim] != blocks_[p][dim]) return false;
    }
    return true;
  }

  MeshRef mesh_;
  std::span<const int64_t> tiles_;
  const std::vector<Dims>& blocks_;  // per position of the mesh
  std::vector<bool> used_;
  ShardingParts parts_;
};

}  // namespace

ShardingRef sharding_of_tiles(MeshRef mesh, const DeviceSet& devices, size_t rank,
                              std::span<const int64_t> tiles, std::span<const int64_t> order) {
  Dims split(tiles.begin(), tiles.begin() + static_cast<ptrdiff_t>(std::min(rank, tiles.size())));
  int64_t num_tiles = 1;
  for (int64_t n : split) num_tiles *= n;
  auto repeats = static_cast<int64_t>(order.size()) / num_tiles;
  std::vector<Dims> blocks(order.size(), Dims(split.size(), 0));
  for (size_t i = 0; i < order.size(); ++i) {
    int32_t device = devices.numbers[static_cast<size_t>(order[i])];
    auto at = std::find(mesh->devices().begin(), mesh->devices().end(), device);
    Dims& block = blocks[static_cast<size_t>(at - mesh->devices().begin())];
    int64_t tile = static_cast<int64_t>(i) / repeats;
    for (size_t d = split.size(); d-- > 0; tile /= split[d]) block[d] = tile % split[d];
  }
  // Of the program's devices, whatever the order of the mesh's own.
  auto of_program = [&](MeshRef m) {
    if (!std::ranges::equal(m->devices(), devices.numbers)) sets_of_choices().emplace(m, &devices);
    return m;
  };
  for (MeshRef m : {mesh, of_program(refined(mesh))})
    if (ShardingRef found = TileSearch(m, split, blocks).find()) return found;
  ShardingParts parts;
  std::vector<MeshAxis> axes;
  for (size_t d = 0; d < split.size(); ++d) {
    parts.dims.push_back({Dims{static_cast<int64_t>(d)}});
    axes.push_back({cat("_", d), split[d]});
  }
  std::string last = "_repeated";
  if (!std::is_sorted(devices.numbers.begin(), devices.numbers.end()))
    for (int32_t number : devices.numbers) last += cat("_", number);  // a mesh for each order
  axes.push_back({std::move(last), repeats});
  std::vector<int32_t> placed;
  for (int64_t i : order) placed.push_back(devices.numbers[static_cast<size_t>(i)]);
  parts.mesh = of_program(make_mesh(std::move(axes), std::move(placed)));
  return make_sharding(std::move(parts));
}

}  // namespace weft::py
