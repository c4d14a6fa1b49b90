"""The built-in primitives by name: `primitives.add_p` is the Primitive of the op `add`."""

from weft import _core


def __getattr__(name):
    if name.endswith("_p") and name[:-2] in _core.op_names():
        return _core.primitive(name[:-2])
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted(f"{name}_p" for name in _core.op_names())
