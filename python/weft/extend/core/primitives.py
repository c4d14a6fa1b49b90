"""The built-in primitives by name: `primitives.add_p` is the Primitive of the op `add`.

`-` in an op's name is written `_`: scatter_add_p.
"""

from weft import _core
from weft._surface import public as _public


def _names():
    return sorted(name.replace("-", "_") + "_p" for name in _core.op_names())


def _find(name):
    if name == "__all__":  # made when asked for, as ops of users come later
        return _names()
    if name.endswith("_p"):
        for op in (name[:-2], name[:-2].replace("_", "-")):
            if op in _core.op_names():
                return _core.primitive(op)
    return None


__getattr__, __dir__ = _public(__name__, (), _find)[0], _names
