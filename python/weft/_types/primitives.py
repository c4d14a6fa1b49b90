"""The primitives by name: `add_p` is that of the op `add`.

`-` in an op's name is written `_`: scatter_add_p.
"""

from weft import _core


def primitive_names():
    """The names of all primitives, those that users made among them."""
    return sorted(name.replace("-", "_") + "_p" for name in _core.op_names())


def primitive_named(name):
    """The Primitive of a name; None if there is none."""
    if name.endswith("_p"):
        for op in (name[:-2], name[:-2].replace("_", "-")):
            if op in _core.op_names():
                return _core.primitive(op)
    return None
