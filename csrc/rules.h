// Rules that users write in Python, as the core's transforms ask for them: derivatives of
// functions, policies of checkpoints. A rule is a function on tracers; it is traced when it is
// needed.
#pragma once

#include <nanobind/nanobind.h>

#include "bound.h"
#include "recording.h"

namespace weft::py {

// The graph of a recording without captures: `constant` ops hold the captured objects, for a rule's
// graph becomes part of a program that knows nothing of them. call_graph() turns them back.
GraphRef hold_captures(const Recording& r);
// The Python object that a `constant` op holds; borrowed.
PyObject* held_object(const AttrObject& held);

void bind_rules(nanobind::module_& m);

}  // namespace weft::py
