"""The polar decomposition, by Halley's iteration with weights that adapt to the singular values
(Nakatsukasa, Bai and Gygi, 2010)."""

import functools

import numpy as np

from weft import _core
from weft._arguments import shape_of, static_int
from weft.dtypes import dtype_of, finfo, is_complex, is_inexact
from weft.errors import DTypeError, ShapeError
from weft.lax import linalg
from weft.lax._control import cond, while_loop
from weft.lax._creation import broadcasted_iota, full, full_like
from weft.lax._elementwise import (
    abs as absolute,
    add,
    bitwise_and,
    cbrt,
    complex,
    convert_element_type,
    eq,
    lt,
    min,
    mul,
    select,
    sqrt,
    square,
)
from weft.lax._reduce import reduce_max, reduce_sum
from weft.lax._shape import concatenate
from weft.lax._slice import sliced


def _matmul(x, y):
    numbers = (((1,), (0,)), ((), ()))
    return _core.bind("dot_general", x, y, dimension_numbers=numbers, precision="HIGHEST")


def _times(x, scale):
    """A matrix times a real scalar."""
    if is_complex(dtype_of(x)):
        scale = complex(scale, full_like(scale, 0))
    return mul(x, scale)


def _norm(x):
    return sqrt(reduce_sum(square(absolute(x)), (0, 1)))


def _eye(x):
    n = shape_of(x)[1]
    same = eq(broadcasted_iota(np.int32, (n, n), 0), broadcasted_iota(np.int32, (n, n), 1))
    return convert_element_type(same, dtype_of(x))


def _by_qr(u, c):
    """The part of the next iterate that is not the last one, for any weight."""
    root = sqrt(c)
    q, _ = linalg.qr(concatenate([_times(u, root), _eye(u)], 0), full_matrices=False)
    rows = shape_of(u)[0]
    upper, lower = sliced(q, 0, rows), sliced(q, rows, None)
    return _times(_matmul(upper, linalg._adjoint(lower)), 1.0 / root)


def _by_cholesky(u, c):
    """The same for weights of which the square of U is well conditioned."""
    factor = linalg.cholesky(add(_eye(u), _times(_matmul(linalg._adjoint(u), u), c)))
    solve = functools.partial(linalg.triangular_solve, factor, left_side=True, lower=True)
    return linalg._adjoint(solve(solve(linalg._adjoint(u)), transpose_a=True, conjugate_a=True))


def _checked(x):
    if len(shape_of(x)) != 2 or shape_of(x)[0] < shape_of(x)[1]:
        raise ShapeError(f"[qdwh] expected a matrix [m, n] with m >= n; got shape {shape_of(x)}")
    if not is_inexact(dtype_of(x)):
        raise DTypeError(f"[qdwh] expected a floating-point or complex dtype; got {dtype_of(x)}")


def _without_padding(x, dynamic_shape):
    inside = None
    for axis, size in enumerate(dynamic_shape):
        below = lt(broadcasted_iota(np.int32, shape_of(x), axis), _core.astype(size, np.int32))
        inside = below if inside is None else bitwise_and(inside, below)
    return select(inside, x, full_like(x, 0))


def polar(x, max_iterations, eps, dynamic_shape):
    """The results of `linalg.qdwh`."""
    _checked(x)
    limit = 10 if max_iterations is None else static_int(max_iterations, "qdwh", "max_iterations")
    dtype = finfo(dtype_of(x)).dtype
    eps = float(finfo(dtype).eps) if eps is None else float(eps)
    if dynamic_shape is not None:
        x = _without_padding(x, dynamic_shape)
    if 0 in shape_of(x):
        return x, full((shape_of(x)[1],) * 2, 0, dtype_of(x)), _core.asarray(0), True
    size = absolute(x)
    norms = [reduce_max(reduce_sum(size, (axis,)), (0,)) for axis in (0, 1)]
    bound = sqrt(mul(*norms))  # of the greatest singular value
    bound = select(bound > 0, bound, full_like(bound, 1))

    def step(state):
        u, low, count, _ = state
        # `low` bounds the singular values of U from below.
        low2 = square(low)
        d = cbrt(4.0 * (1.0 - low2) / square(low2))
        root = sqrt(1.0 + d)
        inner = 8.0 - 4.0 * d + 8.0 * (2.0 - low2) / (low2 * root)
        a = root + 0.5 * sqrt(inner)
        b = 0.25 * square(a - 1.0)
        c = a + b - 1.0
        ratio = b / c
        part = cond(c > 100.0, _by_qr, _by_cholesky, u, c)
        fresh = _times(u, ratio) + _times(part, a - ratio)
        new_low = low * (a + b * low2) / (1.0 + c * low2)
        moved = _norm(fresh - u) > _norm(fresh) * (4 * eps) ** (1 / 3)
        unsure = absolute(1.0 - new_low) > 5 * eps
        return fresh, min(new_low, full_like(new_low, 1)), count + 1, moved | unsure

    def goes_on(state):
        return bitwise_and(state[3], state[2] < limit)

    start = _times(x, 1.0 / bound)
    low = full((), eps, dtype)
    state = (start, low, 0, np.True_)
    u, _, count, goes = while_loop(goes_on, step, state)
    h = _matmul(linalg._adjoint(u), x)
    return u, linalg._symmetrized(h), count, eq(goes, False)
