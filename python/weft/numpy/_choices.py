"""Functions that choose among several arrays or functions for each element."""

from weft import _core
from weft._arguments import shape_of, strong
from weft._array import Array
from weft._jit import composite
from weft._vmap import vmap
from weft.dtypes import dtype_of, is_integer
from weft.errors import AttributeValueError
from weft.lax._shape import reshape
from weft.numpy import _select as select, _ufuncs as u
from weft.numpy._counted import known
from weft.numpy._creation import asarray
from weft.numpy._division_powers import remainder
from weft.numpy._products import flattened
from weft.numpy._reductions import reject_out

_MODES = ("raise", "wrap", "clip")


def choose(a, choices, out=None, mode="raise"):
    """For each element of `a` the element of the array in `choices` that it numbers.

    Args:
      a: array of integers.
      choices: a sequence of arrays, or an array whose first axis numbers them; all broadcast
        together and with `a`.
      out: not supported, must be None.
      mode: what to do about numbers out of bounds: "raise" an error, which takes an array with
        values, "wrap" them round, or "clip" them to the ends.

    Raises AttributeValueError (a ValueError) for numbers that are no integers or, where they are
    known, that no choice has; without choices; and for another mode.

    Examples:
      >>> wnp.choose(wnp.array([0, 1, 0]), [wnp.array([1, 2, 3]), wnp.array([10, 20, 30])])
      Array([ 1, 20,  3], dtype=int32)
    """
    reject_out("choose", out)
    if not is_integer(dtype_of(a)):
        raise AttributeValueError(f"[choose] expected integers; got dtype {dtype_of(a)}")
    if mode not in _MODES:
        raise AttributeValueError(f"[choose] expected a mode of {', '.join(_MODES)}; got {mode!r}")
    choices = tuple(choices)
    if not choices:
        raise AttributeValueError("[choose] expected at least one choice; got none")
    if mode == "raise":
        values = known(a, "choose", "Pass mode='wrap' or 'clip'.")
        if ((values < 0) | (values >= len(choices))).any():
            raise AttributeValueError(
                f"[choose] expected numbers below {len(choices)}, that of the choices; got {a!r}"
            )
    return _choose(a, choices, mode=mode)


@composite(static_argnames=("mode",))
def _choose(a, choices, *, mode):
    n = len(choices)
    a = _core.astype(a, _core.result_type(a, _core.asarray(n))[0])
    a = remainder(a, n) if mode == "wrap" else u.maximum(u.minimum(a, n - 1), 0)
    a, *choices = _core.broadcast_arrays(a, *_core.promote_dtypes(*choices))
    result = choices[0]
    for number, choice in enumerate(choices[1:], 1):
        result = select.choose(u.equal(a, number), choice, result)
    return strong(result)


def piecewise(x, condlist, funclist, *args, **kw):
    """For each element the value of the function whose condition is the last true one.

    Args:
      x: array or number.
      condlist: conditions, a sequence or an array of them, which broadcast to `x`.
      funclist: as many functions of an element, or numbers; one more is for the elements where no
        condition is true, else these give 0.
      args, kw: further arguments of the functions.

    Returns:
      Array of the shape and dtype of `x`. Every function is evaluated everywhere.

    Raises AttributeValueError (a ValueError) for another number of functions than of conditions, or
    one more.

    Examples:
      >>> x = wnp.array([-2.0, 0.0, 3.0])
      >>> wnp.piecewise(x, [x < 0, x > 0], [lambda v: -v, lambda v: 10 * v, 7.0])
      Array([ 2.,  7., 30.], dtype=float32)
    """
    shape, dtype = shape_of(x), dtype_of(x)
    conditions, functions = list(condlist), list(funclist)
    if not conditions or len(functions) - len(conditions) not in (0, 1):
        raise AttributeValueError(
            f"[piecewise] expected at least one condition, and as many functions or one more; got "
            f"{len(conditions)} and {len(functions)}"
        )
    otherwise = functions.pop() if len(functions) > len(conditions) else 0
    flat = flattened(x)

    def values(function):
        if isinstance(function, Array) or not callable(function):
            return _core.astype(function, dtype)
        return _core.astype(_of_each(function, flat, shape, args, kw), dtype)

    result = _core.broadcast_to(values(otherwise), shape)
    for condition, function in zip(conditions, functions, strict=True):
        mask = _core.broadcast_to(asarray(condition), shape)
        result = select.where(mask, values(function), result)
    return strong(result)


def _of_each(function, flat, shape, args, kw):
    return reshape(vmap(lambda x: function(x, *args, **kw))(flat), shape)
