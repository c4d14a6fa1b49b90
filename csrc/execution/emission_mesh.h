// Over which mesh the arrays are split of a program that is being emitted: rules of users ask.
#pragma once

#include "weft/emit.h"
#include "weft/sharding.h"

namespace weft::py {

// Of the program that this thread emits; null: they are not split, or there is none.
MeshRef emission_mesh();

// Sets it, as the options of an emission say, as long as it lives.
class EmissionMesh {
 public:
  explicit EmissionMesh(const EmitOptions& options);
  ~EmissionMesh();
  EmissionMesh(const EmissionMesh&) = delete;

 private:
  MeshRef earlier_;
};

}  // namespace weft::py
