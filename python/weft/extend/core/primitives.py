"""The built-in primitives by name: `primitives.add_p` is the Primitive of the op `add`.

`-` in an op's name is written `_`: scatter_add_p.
"""

from weft._surface import public as _public
from weft._types.primitives import primitive_named, primitive_names


def _find(name):
    # `__all__` is made when asked for, as ops of users come later.
    return primitive_names() if name == "__all__" else primitive_named(name)


__getattr__, __dir__ = _public(__name__, (), _find)[0], primitive_names
