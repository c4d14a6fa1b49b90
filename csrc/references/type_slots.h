// What a type gets from elsewhere when it is made: the slots and attributes that Array and Tracer
// share come from a layer above both.
#pragma once

#include <span>
#include <vector>

#include "references/core.h"

namespace weft::py {

struct TypeSlots {
  std::vector<PyType_Slot> slots;
  std::vector<PyGetSetDef> getters;
};

// The shared getters followed by a type's own; kept for the process.
inline PyGetSetDef* with_getters(const TypeSlots& shared, std::span<const PyGetSetDef> own) {
  auto* all = new std::vector<PyGetSetDef>(shared.getters);
  all->insert(all->end(), own.begin(), own.end());
  all->push_back({nullptr, nullptr, nullptr, nullptr, nullptr});
  return all->data();
}

}  // namespace weft::py
