// Capsules of DLPack, by which arrays go to other libraries without a copy.
#pragma once

#include "references/bound.h"

namespace weft::py {

void bind_dlpack(nanobind::module_& m);

}  // namespace weft::py
