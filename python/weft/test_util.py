"""Checks of derivatives against finite differences, for users' own functions and rules."""

import functools
import operator

import numpy as np

from weft._autodiff import jvp, vjp
from weft._surface import open_to_users as _open_to_users, public as _public
from weft.dtypes import canonicalize_dtype, finfo, is_float, real_dtype
from weft.tree_util import tree_flatten, tree_map

__all__ = ["check_grads", "check_jvp", "check_vjp"]
__getattr__, __dir__ = _public(__name__, __all__)


def _random_like(rng, x):
    x = np.asarray(x)

    def parts():  # none is so small that an error along it would not be seen
        t = rng.standard_normal(x.shape)
        return t + np.sign(t)

    t = parts() + 1j * parts() if x.dtype.kind == "c" else parts()
    return t.astype(x.dtype)


def _scaled_add(xs, ts, scale):
    return tree_map(lambda x, t: (np.asarray(x) + scale * t).astype(np.asarray(x).dtype), xs, ts)


def _inner(a, b):
    """Sum of the real parts of the products of two trees' leaves."""
    pairs = zip(tree_flatten(a)[0], tree_flatten(b)[0], strict=True)
    return sum(
        float(np.real(np.sum(np.asarray(x, np.complex128) * np.asarray(y, np.complex128))))
        for x, y in pairs
    )


def _assert_close(got, expected, what, atol, rtol):
    for g, e in zip(tree_flatten(got)[0], tree_flatten(expected)[0], strict=True):
        np.testing.assert_allclose(np.asarray(g), np.asarray(e), atol=atol, rtol=rtol, err_msg=what)


def check_jvp(f, f_jvp, args, atol=None, rtol=None, eps=None, err_msg="", *, seed=0):
    """Checks `f_jvp(primals, tangents)`, as `jvp` of `f` would be, in a random direction against
    central differences.

    Tolerances and `eps` are as for `check_grads`; `err_msg` is added to the message. Raises
    AssertionError, with the values, if they differ by more than atol + rtol * |value|.
    """
    atol, rtol, eps = _tolerances(args, atol, rtol, eps)
    rng = _generator(seed)
    args = tuple(args)
    tangents = tree_map(lambda x: _random_like(rng, x), args)
    _, got = f_jvp(args, tangents)
    ahead, behind = f(*_scaled_add(args, tangents, eps)), f(*_scaled_add(args, tangents, -eps))
    expected = tree_map(lambda a, b: (np.asarray(a) - np.asarray(b)) / (2 * eps), ahead, behind)
    what = f"{err_msg} jvp against central differences".strip()
    _assert_close(got, expected, what, atol, rtol)


def check_vjp(f, f_vjp, args, atol=None, rtol=None, eps=None, err_msg="", *, seed=0):
    """Checks `f_vjp(*primals)`, as `vjp` of `f` would be, by <ct, J t> = <vjp(ct), t> in random
    directions, J t by central differences.

    Tolerances and `eps` are as for `check_grads`; `err_msg` is added to the message. Raises
    AssertionError, with the values, if they differ.
    """
    atol, rtol, eps = _tolerances(args, atol, rtol, eps)
    rng = _generator(seed)
    args = tuple(args)
    tangents = tree_map(lambda x: _random_like(rng, x), args)
    value, pull = f_vjp(*args)
    cotangent = tree_map(lambda x: _random_like(rng, x), value)
    ahead, behind = f(*_scaled_add(args, tangents, eps)), f(*_scaled_add(args, tangents, -eps))
    push = tree_map(lambda a, b: (np.asarray(a) - np.asarray(b)) / (2 * eps), ahead, behind)
    got, expected = _inner(pull(cotangent), tangents), _inner(cotangent, push)
    what = f"{err_msg} vjp against central differences".strip()
    np.testing.assert_allclose(got, expected, atol=atol, rtol=rtol, err_msg=what)


def _generator(seed, offset=0):
    # NumPy's own conversion of deeply nested lists ends the process.
    return np.random.default_rng(operator.index(seed) + offset)


def _tolerances(args, atol, rtol, eps):
    """Defaults by the narrowest dtype: differences in float32 are good for two digits."""
    dtypes = {real_dtype(canonicalize_dtype(np.asarray(x).dtype)) for x in tree_flatten(args)[0]}
    digits = min((finfo(dtype).nmant for dtype in dtypes if is_float(dtype)), default=23)
    default, step = next(row[1:] for row in _BY_DIGITS if digits >= row[0])
    return (
        default if atol is None else atol,
        default if rtol is None else rtol,
        step if eps is None else eps,
    )


# Least number of binary digits of a dtype, tolerance, half the distance of the differences.
_BY_DIGITS = ((52, 1e-5, 1e-5), (23, 2e-2, 1e-4), (10, 1e-1, 1e-1), (0, 3e-1, 2.5e-1))


def check_grads(f, args, order, modes=("fwd", "rev"), atol=None, rtol=None, eps=None, seed=0):
    """Checks the derivatives of `f` at `args` against central differences, up to an order.

    Args:
      f: a function of floating-point or complex arrays, or trees of them.
      args: a sequence of its arguments, away from points where `f` is not differentiable.
      order: derivatives of derivatives are checked up to this one.
      modes: "fwd", "rev", or both; at higher orders every sequence of them.
      atol, rtol: tolerances; by default 1e-5 in float64, 2e-2 in float32, 0.1 in float16 and 0.3 in
        bfloat16.
      eps: half the distance of the differences; by default 1e-5, 1e-4, 0.1 and 0.25.
      seed: of the random directions.

    Raises AssertionError if a derivative is off, ValueError for another mode.
    """
    modes = (modes,) if isinstance(modes, str) else tuple(modes)
    for mode in modes:
        if mode not in ("fwd", "rev"):
            raise ValueError(f"modes: expected 'fwd' and 'rev'; got {mode!r}")
    args = tuple(args)
    rng = _generator(seed, 1)
    tangents = tree_map(lambda x: _random_like(rng, x), args)
    if "fwd" in modes:
        check_jvp(f, functools.partial(jvp, f), args, atol, rtol, eps, seed=seed)
        if order > 1:

            def forward(*xs):
                return jvp(f, xs, tangents)[1]

            check_grads(forward, args, order - 1, modes, atol, rtol, eps, seed + 2)
    if "rev" in modes:
        check_vjp(f, functools.partial(vjp, f), args, atol, rtol, eps, seed=seed)
        if order > 1:
            cotangent = tree_map(lambda x: _random_like(rng, x), f(*args))

            def reverse(*xs):
                return vjp(f, *xs)[1](cotangent)

            check_grads(reverse, args, order - 1, modes, atol, rtol, eps, seed + 3)


_open_to_users(__name__)
