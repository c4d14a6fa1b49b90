"""Objects of other libraries that stand for an array: they have `__jax_array__`.

Functions of arrays take them; operations (weft.lax) and transformed functions do not. A call costs
nothing for it: the extension asks here after one has failed, and then calls again.
"""

import re

from weft import _core
from weft.errors import ForeignArrayError
from weft.numpy._creation import asarray

_TAKES_THEM = re.compile(
    r"weft\.(numpy|nn|scipy|random|_segments|_resample)\b|weft\.lax.*\.convert_element_type$"
)


def stand_ins(error, function, arguments):
    """The arguments of a failed call, a tuple, with arrays in place of what stands for them.

    None if there are none, if the error is another one, or if `function` takes none.
    """
    if not issubclass(error, ForeignArrayError):
        return None
    if not _TAKES_THEM.match(f"{function.__module__}.{function.__name__}"):
        return None
    found = tuple(map(_with_arrays, arguments))
    changed = any(new is not old for new, old in zip(found, arguments, strict=True))
    return found if changed else None


def _with_arrays(value):
    if type(value) in (tuple, list):
        found = [_with_arrays(each) for each in value]
        changed = any(new is not old for new, old in zip(found, value, strict=True))
        return type(value)(found) if changed else value
    return asarray(value) if _core.is_foreign_array(value) else value
