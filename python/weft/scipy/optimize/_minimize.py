"""Minimization by quasi-Newton methods."""

import math
from typing import Any, NamedTuple

from weft import numpy as jnp
from weft._arguments import shape_of, static_int, strong
from weft._autodiff import value_and_grad
from weft._jit import composite
from weft.dtypes import dtype_of, is_complex, is_float, real_dtype
from weft.errors import ArgumentTypeError, AttributeValueError, DTypeError, ShapeError
from weft.lax import _control as control
from weft.scipy.optimize._line_search import inner, line_search

_LBFGS = "l-bfgs-experimental-do-not-rely-on-this"


class OptimizeResults(NamedTuple):
    """What `minimize` returns.

    Attributes:
      x: where the minimum is.
      success: whether the gradient is small enough there.
      status: 0 if so; 1 after too many iterations; 2 or more: for "BFGS", no step decreases the
        function; for L-BFGS, 2 and 3 after too many values or gradients, 4 if the function hardly
        decreases any more, 5 if no step decreases it.
      fun: the function at `x`.
      jac: its gradient there.
      hess_inv: an estimate of the inverse of its second derivatives; None for L-BFGS.
      nfev, njev, nit: how many values and gradients were computed, and how many iterations made.
    """

    x: Any
    success: Any
    status: Any
    fun: Any
    jac: Any
    hess_inv: Any
    nfev: Any
    njev: Any
    nit: Any


def minimize(fun, x0, args=(), *, method, tol=None, options=None):
    """Searches for a local minimum of a function of a vector.

    Args:
      fun: fun(x, *args) -> scalar, differentiable.
      x0: where to start, a vector of floats, for L-BFGS also of complex numbers: the search is over
        their real and imaginary parts, and `jac` is what `grad` gives.
      args: tuple of further arguments.
      method: "BFGS" (algorithm 6.1 of Nocedal and Wright, "Numerical optimization", 2006), or
        "l-bfgs-experimental-do-not-rely-on-this" (algorithm 7.5), which keeps no matrix.
      tol: sets gtol, and ftol for L-BFGS.
      options: dict. For both methods: maxiter; gtol (1e-5): how small the gradient has to be; norm
        (inf): in which norm. For BFGS: line_search_maxiter (10): how often a step is lengthened at
        most. For L-BFGS: maxcor (10): how many steps are kept; ftol (2.2e-9): the least relative
        decrease; maxfun, maxgrad: how many values and gradients are computed at most; maxls (20):
        as line_search_maxiter.

    Returns:
      OptimizeResults. Under `vmap` all lanes go on until the last one ends. There is no derivative
      in reverse mode.

    Raises ArgumentTypeError for a `fun` or `args` of another kind and for unknown options,
    AttributeValueError (a ValueError) for another method, ShapeError and DTypeError for an `x0`
    that is no such vector.

    Examples:
      >>> f = lambda x: wnp.sum((x - wnp.array([1.0, 2.0])) ** 2)
      >>> weft.scipy.optimize.minimize(f, wnp.zeros(2), method="BFGS").x.round(2)
      Array([1., 2.], dtype=float32)
    """
    if not isinstance(args, tuple):
        raise ArgumentTypeError(f"[minimize] expected args to be a tuple; got {args!r:.60}")
    if not callable(fun):
        raise ArgumentTypeError(f"[minimize] expected a function; got {fun!r:.60}")
    options = dict(options or {})
    name = str(method).lower()
    if name not in ("bfgs", _LBFGS):
        raise AttributeValueError(
            f"[minimize] expected method 'BFGS' or {_LBFGS!r}; got {method!r}"
        )
    known = _BFGS_OPTIONS if name == "bfgs" else _LBFGS_OPTIONS
    for key in options:
        if key not in known:
            raise ArgumentTypeError(
                f"[minimize] expected options {', '.join(known)} for method {method!r}; got {key!r}"
            )
    if tol is not None:
        options["gtol"] = tol
        if "ftol" in known:
            options["ftol"] = tol
    options = {**known, **options}
    if len(shape_of(x0)) != 1:
        raise ShapeError(f"[minimize] expected x0 to be a vector; got shape {shape_of(x0)}")

    dtype = dtype_of(x0)
    if not (is_float(dtype) or (is_complex(dtype) and name == _LBFGS)):
        raise DTypeError(f"[minimize] expected floating-point x0; got dtype {dtype}")

    value_and_gradient = value_and_grad(lambda x: fun(x, *args))

    def uphill(x):
        """The value, and the direction of steepest ascent, which for complex x is conj(grad)."""
        value, gradient = value_and_gradient(x)
        return value, jnp.conj(gradient)

    def search(x0):
        found = (_bfgs if name == "bfgs" else _lbfgs)(uphill, x0, **options)
        return found._replace(jac=jnp.conj(found.jac))

    return composite(search)(x0)


_BFGS_OPTIONS = {"maxiter": None, "norm": math.inf, "gtol": 1e-5, "line_search_maxiter": 10}


class _BfgsState(NamedTuple):
    x: Any
    value: Any
    gradient: Any
    inverse: Any
    previous: Any  # the value before
    count: Any
    evaluations: Any
    converged: Any
    failed: Any


def _limit(value, default, name):
    if value is None:
        return default
    return value if value in (math.inf,) else static_int(value, "minimize", name)


def _first_step(value, previous, slope):
    """The step that would decrease the value by as much as the one before, at most 1."""
    step = 1.01 * 2 * (value - previous) / slope
    return jnp.where((step > 0) & (step < 1), step, 1).astype(dtype_of(value))


def _bfgs(function, x, maxiter, norm, gtol, line_search_maxiter):
    n, dtype = shape_of(x)[0], dtype_of(x)
    maxiter = _limit(maxiter, 200 * n, "maxiter")
    identity = jnp.eye(n, dtype=dtype)

    def small(gradient):
        return jnp.linalg.norm(gradient, norm) < gtol

    def body(state):
        direction = -(state.inverse @ state.gradient)
        slope = jnp.vdot(state.gradient, direction)
        first = _first_step(state.value, state.previous, slope)
        point, count, _ = line_search(
            function, state.x, direction, state.value, state.gradient, first, line_search_maxiter
        )
        moved = point.step > 0
        s, y = point.step * direction, point.gradient - state.gradient
        curvature = jnp.vdot(y, s)
        upward = curvature > 0
        rho = 1 / jnp.where(upward, curvature, 1)
        turn = identity - rho * jnp.outer(s, y)
        inverse = turn @ state.inverse @ turn.T + rho * jnp.outer(s, s)
        return _BfgsState(
            state.x + s,
            point.value,
            point.gradient,
            jnp.where(upward, inverse, state.inverse),
            jnp.where(moved, state.value, state.previous),
            state.count + 1,
            state.evaluations + count,
            small(point.gradient),
            jnp.logical_not(moved),
        )

    def goes_on(state):
        return jnp.logical_not(state.converged | state.failed) & (state.count < maxiter)

    value, gradient = function(x)
    value = value.astype(dtype)
    size = jnp.linalg.norm(gradient)
    state = _BfgsState(
        x, value, gradient, identity, value + size / 2, 0, 1, small(gradient), size < 0
    )
    state = control.while_loop(goes_on, body, state)
    status = jnp.where(state.failed, 5, jnp.where(state.count >= maxiter, 1, -1))
    return OptimizeResults(
        state.x,
        state.converged,
        jnp.where(state.converged, 0, status),
        state.value,
        state.gradient,
        state.inverse,
        state.evaluations,
        state.evaluations,
        state.count,
    )


_LBFGS_OPTIONS = {
    "maxiter": None,
    "norm": math.inf,
    "maxcor": 10,
    "ftol": 2.220446049250313e-09,
    "gtol": 1e-05,
    "maxfun": None,
    "maxgrad": None,
    "maxls": 20,
}


class _LbfgsState(NamedTuple):
    x: Any
    value: Any
    gradient: Any
    steps: Any  # the last ones, and the changes of the gradient; the newest in the last row
    changes: Any
    rho: Any  # 1 / (step . change); 0 where there is none
    scale: Any  # of the first estimate of the inverse
    count: Any
    evaluations: Any
    status: Any  # -1: goes on


def _lbfgs(function, x, maxiter, norm, maxcor, ftol, gtol, maxfun, maxgrad, maxls):
    dtype = real_dtype(dtype_of(x))
    maxcor = static_int(maxcor, "minimize", "maxcor")
    if maxiter is None and maxfun is None and maxgrad is None:
        maxiter = 20 * shape_of(x)[0]
    limits = [
        _limit(value, math.inf, name)
        for name, value in (("maxiter", maxiter), ("maxfun", maxfun), ("maxgrad", maxgrad))
    ]

    def direction_at(state):
        """The product of the estimate of the inverse with the gradient, negative."""

        def back(q, row):
            s, y, rho = row
            a = rho * inner(s, q)
            return q - a * y, a

        def forth(q, row):
            s, y, rho, a = row
            return q + (a - rho * inner(y, q)) * s, None

        rows = (state.steps, state.changes, state.rho)
        q, factors = control.scan(back, state.gradient, rows, reverse=True)
        return -control.scan(forth, state.scale * q, (*rows, factors))[0]

    def small(gradient):
        return jnp.linalg.norm(gradient, norm) < gtol

    def body(state):
        direction = direction_at(state)
        length = jnp.linalg.norm(state.gradient)
        first = jnp.where(state.count == 0, jnp.minimum(1, 1 / length), 1).astype(dtype)
        point, count, _ = line_search(
            function, state.x, direction, state.value, state.gradient, first, maxls
        )
        moved = point.step > 0
        s, y = point.step * direction, point.gradient - state.gradient
        curvature = inner(y, s)
        upward = curvature > 0
        rho = jnp.where(upward, 1 / jnp.where(upward, curvature, 1), 0)
        steps, changes, rhos = (
            jnp.where(upward, jnp.concatenate([rows[1:], new[None]]), rows)
            for rows, new in ((state.steps, s), (state.changes, y), (state.rho, rho))
        )
        scale = curvature / jnp.where(upward, inner(y, y), 1)
        evaluations = state.evaluations + count
        decrease = state.value - point.value
        size = jnp.maximum(jnp.maximum(jnp.abs(state.value), jnp.abs(point.value)), 1)
        status = -1
        reasons = [
            (5, jnp.logical_not(moved)),
            (4, decrease <= ftol * size),
            (3, evaluations >= limits[2]),
            (2, evaluations >= limits[1]),
            (1, state.count + 1 >= limits[0]),
            (0, small(point.gradient)),
        ]
        for code, holds in reasons:
            status = jnp.where(holds, code, status)
        return _LbfgsState(
            state.x + s,
            point.value,
            point.gradient,
            steps,
            changes,
            rhos,
            jnp.where(upward, scale, state.scale),
            state.count + 1,
            evaluations,
            status,
        )

    value, gradient = function(x)
    none = jnp.zeros((maxcor, *shape_of(x)), dtype_of(x))
    state = _LbfgsState(
        x,
        value.astype(dtype),
        gradient,
        none,
        none,
        jnp.zeros(maxcor, dtype),
        jnp.ones((), dtype),
        0,
        1,
        jnp.where(small(gradient), 0, -1),
    )
    state = control.while_loop(lambda state: state.status < 0, body, state)
    return OptimizeResults(
        state.x,
        strong(state.status == 0),
        state.status,
        state.value,
        state.gradient,
        None,
        state.evaluations,
        state.evaluations,
        state.count,
    )
