// Attribute values between Python and the core; generic over schemas.
#pragma once

#include "core.h"

namespace weft::py {

// Converts to what the spec asks for; raises OperandError naming op and attribute.
Attr to_attr(std::string_view op, const AttrSpec& spec, PyObject* value);
// Attributes of an op from keyword arguments: `names` is a tuple of str (or null), `values` runs
// parallel to it.
AttrsRef make_attrs(const OpDef& op, PyObject* names, PyObject* const* values);
// The attribute as Python sees it: eqn.params[...].
Ref from_attr(const AttrSpec& spec, const Attr& attr);

// The Python object of a graph (weft._core.Graph) and back; null if it is none.
Ref graph_object(const GraphRef& graph);
GraphRef graph_of(PyObject* o);

}  // namespace weft::py
