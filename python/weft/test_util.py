"""Checks of derivatives against finite differences, for users' own functions and rules."""

import functools
import operator
from typing import Any

import numpy as np

from weft._autodiff import jvp, linearize, vjp
from weft._surface import open_to_users as _open_to_users, public as _public
from weft.dtypes import (
    as_dtype,
    canonicalize_dtype,
    dtype_of,
    finfo,
    float0,
    is_complex,
    is_float,
    is_inexact,
    real_dtype,
)
from weft.tree_util import tree_flatten, tree_map

__all__ = ["check_grads", "check_jvp", "check_vjp"]
__getattr__, __dir__ = _public(__name__, __all__)


def _random_like(rng, x):
    """A direction for an array or number; of float0 where that has no derivative."""
    dtype, shape = dtype_of(x), np.shape(x)
    if not is_inexact(dtype):
        return np.zeros(shape, float0)

    def parts():  # none is so small that an error along it would not be seen
        t = rng.standard_normal(shape)
        return t + np.sign(t)

    return _as_given(parts() + 1j * parts() if is_complex(dtype) else parts(), x)


def _as_given(value, x):
    """An array of the dtype of `x`; a Python number where that is one."""
    value = np.asarray(value).astype(dtype_of(x))
    return value.item() if isinstance(x, (float, complex)) else value


def _scaled_add(xs, ts, scale):
    def moved(x, t):
        if not is_inexact(dtype_of(x)):
            return x
        return _as_given(_wide(x) + scale * _wide(t), x)

    return tree_map(moved, xs, ts)


def _wide(x):
    """An array of the widest dtype of its kind."""
    x = np.asarray(x)
    return x.astype(np.complex128 if is_complex(x.dtype) else np.float64)


def _central_difference(f, args, tangents, eps):
    def difference(ahead, behind):
        if not is_inexact(dtype_of(ahead)):
            return np.zeros(np.shape(ahead), float0)
        ahead, behind = _wide(ahead), _wide(behind)
        # Infinite on both sides: no change.
        apart = np.subtract(ahead, behind, out=np.zeros_like(ahead), where=ahead != behind)
        return apart / (2 * eps)

    ahead, behind = f(*_scaled_add(args, tangents, eps)), f(*_scaled_add(args, tangents, -eps))
    return tree_map(difference, ahead, behind)


def _inner(a, b):
    """Of the real parts of the products of two trees' leaves: the sum, the sum of the absolute
    values, and the number."""
    total = absolute = count = 0
    for x, y in zip(tree_flatten(a)[0], tree_flatten(b)[0], strict=True):
        if np.asarray(x).dtype != float0:
            products = np.real(_wide(x) * _wide(y))
            total, count = total + float(np.sum(products)), count + products.size
            absolute += float(np.sum(np.abs(products)))
    return total, absolute, count


def _assert_close(got, expected, what, tolerances):
    for g, e in zip(tree_flatten(got)[0], tree_flatten(expected)[0], strict=True):
        g, e = np.asarray(g), np.asarray(e)
        if g.dtype == float0:
            continue
        atol, rtol = tolerances.of(g)
        np.testing.assert_allclose(
            _wide(g), _wide(e), atol=atol, rtol=rtol, err_msg=what, equal_nan=True
        )


def check_jvp(f, f_jvp, args, atol=None, rtol=None, eps=None, err_msg="", *, seed=0):
    """Checks `f_jvp(primals, tangents)`, as `jvp` of `f` would be, in a random direction against
    central differences, and the values that it gives against those of `f`.

    Tolerances and `eps` are as for `check_grads`; `err_msg` is added to the message. Raises
    AssertionError, with the values, if they differ by more than atol + rtol * |value|.

    Examples:
      >>> weft.test_util.check_jvp(wnp.sin, lambda x, t: weft.jvp(wnp.sin, x, t), (1.0,))
    """
    tolerances, eps = _Tolerances(args, atol, rtol), _step(args, eps)
    rng = _generator(seed)
    args = tuple(args)
    tangents = tree_map(lambda x: _random_like(rng, x), args)
    value, got = f_jvp(args, tangents)
    _assert_close(value, f(*args), f"{err_msg} value of the jvp".strip(), tolerances)
    expected = _central_difference(f, args, tangents, eps)
    _assert_close(got, expected, f"{err_msg} jvp against central differences".strip(), tolerances)


def check_vjp(f, f_vjp, args, atol=None, rtol=None, eps=None, err_msg="", *, seed=0):
    """Checks `f_vjp(*primals)`, as `vjp` of `f` would be, by <ct, J t> = <vjp(ct), t> in random
    directions, J t by central differences, and the values that it gives against those of `f`.

    Tolerances and `eps` are as for `check_grads`; `err_msg` is added to the message. Raises
    AssertionError, with the values, if they differ: <ct, J t> of n terms by more than n * atol plus
    rtol times the sum of the absolute values of the terms.

    Examples:
      >>> weft.test_util.check_vjp(wnp.sin, lambda x: weft.vjp(wnp.sin, x), (1.0,))
    """
    tolerances, eps = _Tolerances(args, atol, rtol), _step(args, eps)
    rng = _generator(seed)
    args = tuple(args)
    tangents = tree_map(lambda x: _random_like(rng, x), args)
    value, pull = f_vjp(*args)
    _assert_close(value, f(*args), f"{err_msg} value of the vjp".strip(), tolerances)
    cotangent = tree_map(lambda x: _random_like(rng, x), value)
    push = _central_difference(f, args, tangents, eps)
    (got, _, _), (expected, absolute, count) = (
        _inner(pull(cotangent), tangents),
        _inner(cotangent, push),
    )
    atol, rtol = tolerances.of(*(np.asarray(x) for x in tree_flatten((args, value))[0]))
    what = f"{err_msg} vjp against central differences".strip()
    allowed = count * atol + rtol * absolute
    np.testing.assert_allclose(got, expected, atol=allowed, rtol=0, err_msg=what)


def _generator(seed, offset=0):
    # NumPy's own conversion of deeply nested lists ends the process.
    return np.random.default_rng(operator.index(seed) + offset)


# Least number of binary digits of a dtype, tolerance, half the distance of the differences.
_BY_DIGITS = ((52, 1e-5, 1e-5), (23, 2e-2, 1e-4), (10, 1e-1, 1e-1), (0, 3e-1, 2.5e-1))


def _defaults(dtypes):
    """(tolerance, step) by the narrowest dtype: differences in float32 are good for two digits."""
    real = {real_dtype(canonicalize_dtype(dtype)) for dtype in dtypes if dtype != float0}
    digits = min((finfo(dtype).nmant for dtype in real if is_float(dtype)), default=23)
    return next(row[1:] for row in _BY_DIGITS if digits >= row[0])


def _dtypes_in(tree):
    return {dtype_of(x) for x in tree_flatten(tree)[0]}


def _step(args, eps):
    return _defaults(_dtypes_in(args))[1] if eps is None else eps


class _Tolerances:
    """What users give as atol and rtol: numbers, or dicts with a number for some dtypes."""

    def __init__(self, args, atol, rtol):
        self._of_args = _dtypes_in(args)
        self._given = [
            {as_dtype(key): x for key, x in given.items()} if isinstance(given, dict) else given
            for given in (atol, rtol)
        ]

    def of(self, *arrays):
        """(atol, rtol) for results: the largest of those for their dtypes."""
        dtypes = {canonicalize_dtype(x.dtype) for x in arrays}
        default = _defaults(self._of_args | dtypes)[0]
        return tuple(
            max(given.get(dtype, default) for dtype in dtypes)
            if isinstance(given, dict)
            else default
            if given is None
            else given
            for given in self._given
        )


_MODES = ("fwd", "rev", "lin")


def check_grads(f, args, order, modes=("fwd", "rev"), atol=None, rtol=None, eps=None, seed=0):
    """Checks the derivatives of `f` at `args` against central differences, up to an order.

    Args:
      f: a function of floating-point or complex arrays, Python numbers, or trees of them.
      args: a sequence of its arguments, away from points where `f` is not differentiable.
      order: derivatives of derivatives are checked up to this one.
      modes: some of "fwd" (`jvp`), "rev" (`vjp`) and "lin" (`linearize`); at higher orders every
        sequence of them.
      atol, rtol: tolerances, numbers or dicts of numbers by dtype, such as {np.float32: 1e-3}; for
        other dtypes, and by default, 1e-5 in float64, 2e-2 in float32, 0.1 in float16 and 0.3 in
        bfloat16, as the narrowest dtype is.
      eps: half the distance of the differences; by default 1e-5, 1e-4, 0.1 and 0.25.
      seed: of the random directions.

    Raises AssertionError if a derivative is off, ValueError for another mode.

    Examples:
      >>> weft.test_util.check_grads(wnp.sin, (1.0,), order=2)
    """
    modes = (modes,) if isinstance(modes, str) else tuple(modes)
    for mode in modes:
        if mode not in _MODES:
            raise ValueError(f"modes: expected 'fwd', 'rev' and 'lin'; got {mode!r}")
    args = tuple(args)
    rng = _generator(seed, 1)
    tangents = tree_map(lambda x: _random_like(rng, x), args)
    for mode, derivative, offset in (
        ("fwd", functools.partial(jvp, f), 2),
        ("lin", functools.partial(_linearized, f), 4),
    ):
        if mode not in modes:
            continue
        check_jvp(f, derivative, args, atol, rtol, eps, seed=seed)
        if order > 1:

            def forward(*xs, derivative=derivative):
                return derivative(xs, tangents)[1]

            check_grads(forward, args, order - 1, modes, atol, rtol, eps, seed + offset)
    if "rev" in modes:
        check_vjp(f, functools.partial(vjp, f), args, atol, rtol, eps, seed=seed)
        if order > 1:
            cotangent = tree_map(lambda x: _random_like(rng, x), f(*args))

            def reverse(*xs):
                return vjp(f, *xs)[1](cotangent)

            check_grads(reverse, args, order - 1, modes, atol, rtol, eps, seed + 3)


def _linearized(f, primals, tangents):
    linearized: Any = linearize(f, *primals)
    value, push = linearized
    return value, push(*tangents)


_open_to_users(__name__)
