// The names that vmap(axis_name=...) gives to mapped axes, and shard_map to those of a mesh, while
// the function that is mapped runs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "references/core.h"

namespace weft::py {

struct NamedAxis {
  std::string name;
  int64_t size;
  bool varies = false;  // it is known which values vary over it: shard_map with check_vma
  bool operator==(const NamedAxis&) const = default;
};
using NamedAxes = std::vector<NamedAxis>;

// Those around the current thread's place, innermost last.
const NamedAxes& named_axes();

// Puts others in their place for its lifetime.
class NamedAxesScope {
 public:
  explicit NamedAxesScope(NamedAxes axes);
  ~NamedAxesScope();
  NamedAxesScope(const NamedAxesScope&) = delete;

 private:
  NamedAxes outer_;
};

// With one more axis inside of those that there are; `name` may be empty, for an axis without one.
NamedAxes with_named_axis(std::string_view name, int64_t size);

// Whether there is an axis of a mesh of which it is known which values vary over it; and all those.
bool are_varying_known();
std::vector<std::string> axes_known_to_vary();

void init_named_axes(PyObject* module);

}  // namespace weft::py
