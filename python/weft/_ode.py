"""Dormand and Prince's method with adaptive steps, and its derivative by the adjoint equation."""

import numpy as np

from weft import _core, numpy as jnp
from weft._arguments import shape_of
from weft._autodiff import vjp
from weft._custom_rules import closure_convert, custom_vjp
from weft._jit import jit
from weft._recording import check_callable
from weft._vmap import vmap
from weft.dtypes import dtype_of, is_float, is_inexact, real_dtype
from weft.errors import ArgumentTypeError, DTypeError, ShapeError
from weft.flatten_util import ravel_pytree
from weft.lax._control import scan, while_loop
from weft.tree_util import tree_leaves, tree_map

# The tableau of Dormand and Prince (1980), and the weights of Shampine (1986) for the solution in
# the middle of a step.
_TIMES = (1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0)
_STAGES = (
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
)
_SOLUTION = (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84, 0.0)
_ERROR = (
    35 / 384 - 1951 / 21600,
    0.0,
    500 / 1113 - 22642 / 50085,
    125 / 192 - 451 / 720,
    -2187 / 6784 + 12231 / 42400,
    11 / 84 - 649 / 6300,
    -1 / 60,
)
_MIDDLE = (
    6025192743 / 30085553152 / 2,
    0.0,
    51252292925 / 65400821598 / 2,
    -2691868925 / 45128329728 / 2,
    187940372067 / 1594534317056 / 2,
    -1776094331 / 19743644256 / 2,
    11237099 / 235043384 / 2,
)


def _weighted(weights, slopes):
    used = [w * k for w, k in zip(weights, slopes, strict=False) if w]
    total = used[0]
    for each in used[1:]:
        total = total + each
    return total


def _step(f, y, slope, t, dt):
    """(solution after a step, slope there, estimate of the error, all slopes)."""
    slopes = [slope]
    for time, weights in zip(_TIMES, _STAGES, strict=True):
        slopes.append(f(y + (dt * _weighted(weights, slopes)).astype(y.dtype), t + dt * time))
    after = y + (dt * _weighted(_SOLUTION, slopes)).astype(y.dtype)
    return after, slopes[-1], dt * _weighted(_ERROR, slopes), slopes


def _quartic(y, after, slopes, dt):
    """Coefficients, the highest first, of the polynomial on [0, 1] through a step.

    It has the values and slopes at both ends and the value in the middle.
    """
    middle = y + dt * _weighted(_MIDDLE, slopes)
    start, end = dt * slopes[0], dt * slopes[-1]
    return jnp.stack(
        [
            2 * (end - start) - 8 * (y + after) + 16 * middle,
            5 * start - 3 * end + 18 * y + 14 * after - 32 * middle,
            end - 4 * start - 11 * y - 5 * after + 16 * middle,
            start,
            y,
        ]
    ).astype(y.dtype)


def _norm(x):
    return jnp.sqrt(jnp.sum(jnp.square(jnp.abs(x))))


def _first_step(f, t, y, slope, rtol, atol):
    """Hairer, Nørsett and Wanner, Solving Ordinary Differential Equations I (1993), II.4."""
    scale = atol + jnp.abs(y) * rtol
    size, speed = _norm(y / scale), _norm(slope / scale)
    is_tiny = (size < 1e-5) | (speed < 1e-5)
    trial = jnp.where(is_tiny, 1e-6, 0.01 * size / jnp.where(is_tiny, 1, speed))
    other = f(y + (trial * slope).astype(y.dtype), t + trial)
    change = _norm((other - slope) / scale) / trial
    greatest = jnp.maximum(speed, change)
    is_still = greatest <= 1e-15
    by_order = (0.01 / jnp.where(is_still, 1, greatest)) ** (1 / 5)
    return jnp.minimum(100 * trial, jnp.where(is_still, jnp.maximum(1e-6, trial * 1e-3), by_order))


def _next_step(dt, error):
    """A step of which the error is expected to be just small enough; at least a fifth."""
    shrunk = jnp.where(error < 1, 1.0, 0.2)
    safe = jnp.where(error > 0, error, 1)
    factor = jnp.minimum(10.0, jnp.maximum(0.9 * safe ** (-1 / 5), shrunk))
    return jnp.where(error > 0, dt * factor, dt * 10.0)


def _solve(func, options, y0, times, args):
    """`[len(times), n]` from a vector `[n]`."""
    rtol, atol, mxstep, hmax = options

    def f(y, t):
        return func(y, t, *args)

    time = real_dtype(dtype_of(y0))
    time = _core.result_type(times, _core.astype(0, time))[0]

    def going(state, target):
        count, _, _, t, dt, _, _ = state
        return (t < target) & (_core.astype(count, dtype_of(mxstep)) < mxstep) & (dt > 0)

    def advance(state):
        count, y, slope, t, dt, last, polynomial = state
        after, new_slope, error, slopes = _step(f, y, slope, t, dt)
        scale = atol + rtol * jnp.maximum(jnp.abs(y), jnp.abs(after))
        ratio = jnp.sqrt(jnp.mean(jnp.square(jnp.abs(error / scale)))).astype(time)
        new_dt = jnp.clip(_next_step(dt, ratio), 0, hmax).astype(time)
        accepted = ratio <= 1
        made = (after, new_slope, t + dt, t, _quartic(y, after, slopes, dt))
        kept = (y, slope, t, last, polynomial)
        y, slope, t, last, polynomial = (
            jnp.where(accepted, new, old) for new, old in zip(made, kept, strict=True)
        )
        return count + 1, y, slope, t, new_dt, last, polynomial

    def at(state, target):
        state = while_loop(lambda s: going(s, target), advance, (np.int32(0), *state))[1:]
        _, _, t, _, last, polynomial = state
        place = ((target - last) / (t - last)).astype(polynomial.dtype)
        return state, jnp.polyval(polynomial, place)

    times = times.astype(time)
    slope = f(y0, times[0])
    dt = jnp.clip(_first_step(f, times[0], y0, slope, rtol, atol), 0, hmax).astype(time)
    polynomial = jnp.stack([y0] * 5)
    state = (y0, slope, times[0], dt, times[0], polynomial)
    _, values = scan(at, state, times[1:])
    return jnp.concatenate((y0[None], values))


def _adjoint(func, options, saved, cotangent):
    """Cotangents of `_solve`, by the equation that they follow backwards (Pontryagin, 1962)."""
    values, times, args = saved
    rtol, atol, mxstep, hmax = options

    def backward(state, t, *args):
        y, y_bar, _, _ = state
        slope, pull, *_ = vjp(func, y, -t, *args)
        y_bar, t_bar, *args_bar = pull(y_bar)
        return -slope, y_bar, t_bar, tuple(args_bar)

    def interval(carry, xs):
        y_bar, start_bar, args_bar = carry
        y, t, earlier, y_ct, earlier_ct = xs
        slope = func(y, t, *args)
        t_bar = jnp.real(jnp.sum(slope * y_ct)).astype(times.dtype)
        state = (y, y_bar, start_bar - t_bar, args_bar)
        found = odeint(
            backward,
            state,
            jnp.stack([-t, -earlier]),
            *args,
            rtol=rtol,
            atol=atol,
            mxstep=mxstep,
            hmax=hmax,
        )
        _, y_bar, start_bar, args_bar = tree_map(lambda x: x[1], found)
        return (y_bar + earlier_ct, start_bar, args_bar), t_bar

    zero = jnp.zeros((), times.dtype)
    carry = (cotangent[-1], zero, tree_map(jnp.zeros_like, args))
    xs = (values[1:], times[1:], times[:-1], cotangent[1:], cotangent[:-1])
    (y_bar, start_bar, args_bar), times_bar = scan(interval, carry, xs, reverse=True)
    return y_bar, jnp.concatenate((start_bar[None], times_bar)), args_bar


def odeint(func, y0, t, *args, rtol=1.4e-8, atol=1.4e-8, mxstep=np.inf, hmax=np.inf):
    """Solves dy/dt = func(y, t, *args) with y(t[0]) = y0.

    The method is that of Dormand and Prince (1980), of order 5 with steps that adapt to the error.
    Derivatives, reverse mode only, are solutions of the adjoint equation.

    Args:
      func: func(y, t, *args) -> a tree like `y0`. It may close over arrays.
      y0: tree of floating-point or complex arrays.
      t: increasing times, a vector of a floating-point dtype.
      args: trees of arrays or numbers.
      rtol, atol: the error of a step that is accepted is at most `atol + rtol * abs(y)`, in the
        root mean square.
      mxstep: how many steps at most to take from one time to the next. Beyond, results are wrong.
      hmax: the longest step.

    Returns:
      Tree like `y0`, each leaf with an axis of the times in front.

    Raises ArgumentTypeError for `args` that are no arrays, DTypeError for times or values that are
    no floats, ShapeError for times that are no vector and for another tree as the result of `func`.

    Examples:
      >>> from weft.experimental.ode import odeint
      >>> y = odeint(lambda y, t: -y, 1.0, wnp.array([0.0, 1.0]))
      >>> y.round(3)
      Array([1.   , 0.368], dtype=float32)
    """
    check_callable(func, "odeint")
    for leaf in tree_leaves(args):
        try:
            _core.typeof(leaf)
        except TypeError:
            raise ArgumentTypeError(
                f"[odeint] expected args to be arrays or numbers; got {leaf!r:.60}"
            ) from None
    t = _core.asarray(t)
    if not is_float(dtype_of(t)):
        raise DTypeError(f"[odeint] expected t of a floating-point dtype; got {dtype_of(t)}")
    if len(shape_of(t)) != 1 or not shape_of(t)[0]:
        raise ShapeError(f"[odeint] expected t to be a vector of times; got shape {shape_of(t)}")
    for leaf in tree_leaves(y0):
        if not is_inexact(dtype_of(leaf)):
            raise DTypeError(
                f"[odeint] expected y0 of floating-point or complex dtypes; got {dtype_of(leaf)}"
            )
    y0, args = tree_map(_core.asarray, (y0, args))
    func, closed = closure_convert(func, y0, t[0], *args)
    flat, unravel = ravel_pytree(y0)

    def flat_func(y, t, *args):
        result, _ = ravel_pytree(func(unravel(y), t, *args))
        if shape_of(result) != shape_of(y):
            raise ShapeError(
                f"[odeint] expected func to return a tree like y0, of {shape_of(y)[0]} numbers; "
                f"got {shape_of(result)[0]}"
            )
        return _core.astype(result, dtype_of(y))

    options = (float(rtol), float(atol), float(mxstep), float(hmax))
    values = _solution(flat_func, options)(flat, t, (*args, *closed))
    return vmap(unravel)(values)


def _solution(func, options):
    @custom_vjp
    def solution(y0, times, args):
        return jit(lambda y0, times, args: _solve(func, options, y0, times, args))(y0, times, args)

    def forward(y0, times, args):
        values = solution(y0, times, args)
        return values, (values, times, args)

    def backward(saved, cotangent):
        return jit(lambda saved, cotangent: _adjoint(func, options, saved, cotangent))(
            saved, cotangent
        )

    solution.defvjp(forward, backward)
    return solution
