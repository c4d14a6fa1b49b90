"""The built-in primitives by name: `primitives.add_p` is the Primitive of the op `add`.

`-` in an op's name is written `_`: scatter_add_p.
"""

from weft import _core


def __getattr__(name):
    if name.endswith("_p"):
        for op in (name[:-2], name[:-2].replace("_", "-")):
            if op in _core.op_names():
                return _core.primitive(op)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted(name.replace("-", "_") + "_p" for name in _core.op_names())
