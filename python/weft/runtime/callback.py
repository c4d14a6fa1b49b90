"""Functions on the host, as compiled programs call them.

jaxlib copies what a function returns into buffers of the promised size without looking at it, so
results are checked here: a wrong shape would overwrite memory.
"""

import numpy as np

from weft import _core
from weft.errors import CallbackError

_NARROW = {"float64": "float32", "complex128": "complex64", "int64": "int32", "uint64": "uint32"}


def checked(function, types, place):
    """The function as jaxlib calls it: arrays in, a tuple of arrays of the promised types out.

    Args:
      function: takes NumPy arrays, returns a list or tuple of arrays or numbers.
      types: (shape, dtype) of each result.
      place: the user's line that the call comes from, or "".
    """
    x64 = _core.get_state()[0]

    def call(*args):
        # Memory of the program is used again after the call. jaxlib copies it, so far.
        results = function(*(a if a.flags.owndata else a.copy() for a in args))
        return check_results(function, results, types, place, x64)

    return call


def host_argument(x, dtype):
    """An array or number as a function on the host gets it when no program is involved.

    Read-only, as the arguments that a program passes.
    """
    array = np.asarray(x, dtype).view()
    array.flags.writeable = False
    return array


def check_results(function, results, types, place, x64):
    """The results as a tuple of arrays; raises CallbackError if they are not of the types.

    Without 64-bit types, 64-bit results are narrowed as they are elsewhere.
    """
    name = getattr(function, "__name__", type(function).__name__)
    where = f"\n  at {place}" if place else ""
    if not isinstance(results, (list, tuple)) or len(results) != len(types):
        got = len(results) if isinstance(results, (list, tuple)) else type(results).__name__
        raise CallbackError(
            f"host function '{name}' expected {len(types)} results; got {got}{where}"
        )
    out = []
    for i, (result, (shape, dtype)) in enumerate(zip(results, types, strict=True)):
        array = np.asarray(result)
        narrowed = None if x64 else _NARROW.get(array.dtype.name)
        if array.shape != shape or (array.dtype != dtype and narrowed != dtype.name):
            raise CallbackError(
                f"host function '{name}' expected result {i} to be {dtype.name}{list(shape)}, as "
                f"promised; got {array.dtype.name}{list(array.shape)}{where}"
            )
        out.append(np.asarray(array, dtype, order="C"))
    return tuple(out)
