// Ops that users define in Python, and every op as the Python object `Primitive`.
#pragma once

#include <nanobind/nanobind.h>

#include "core.h"

namespace weft::py {

void bind_primitive(nanobind::module_& m);

// Whether the op is one that a user defined: its only attribute is then the dict of its parameters.
bool is_user_op(const OpInfo& op);
// The Primitive of an op, one per op.
Ref primitive_object(const OpDef& op);

}  // namespace weft::py
