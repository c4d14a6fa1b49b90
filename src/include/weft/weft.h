// SPDX-License-Identifier: Apache-2.0
// Everything a program that embeds weft needs.
#pragma once

#include "weft/blocks.h"
#include "weft/build.h"           // IWYU pragma: export
#include "weft/builder.h"         // IWYU pragma: export
#include "weft/checks.h"          // IWYU pragma: export
#include "weft/constants.h"       // IWYU pragma: export
#include "weft/custom_rules.h"    // IWYU pragma: export
#include "weft/dims.h"            // IWYU pragma: export
#include "weft/emit.h"            // IWYU pragma: export
#include "weft/error.h"           // IWYU pragma: export
#include "weft/faults.h"          // IWYU pragma: export
#include "weft/ffi.h"             // IWYU pragma: export
#include "weft/format.h"          // IWYU pragma: export
#include "weft/graph.h"           // IWYU pragma: export
#include "weft/held.h"            // IWYU pragma: export
#include "weft/kernel_regions.h"  // IWYU pragma: export
#include "weft/kernels.h"         // IWYU pragma: export
#include "weft/op_def.h"          // IWYU pragma: export
#include "weft/passes.h"          // IWYU pragma: export
#include "weft/read.h"            // IWYU pragma: export
#include "weft/rebuild.h"         // IWYU pragma: export
#include "weft/refine.h"          // IWYU pragma: export
#include "weft/registry.h"        // IWYU pragma: export
#include "weft/transforms.h"      // IWYU pragma: export
#include "weft/type.h"            // IWYU pragma: export
#include "weft/varying.h"         // IWYU pragma: export
#include "weft/view.h"            // IWYU pragma: export
