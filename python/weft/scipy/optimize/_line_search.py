"""A step length that satisfies the strong Wolfe conditions.

Algorithms 3.5 and 3.6 of Nocedal and Wright, "Numerical optimization" (2006), as one loop: as long
as no point is known beyond the minimum, the far end of the interval is infinite. Beside a minimum,
where rounding hides how much the value decreases, the slopes decide alone: the approximate Wolfe
conditions of Hager and Zhang, "A new conjugate gradient method" (2005).
"""

from typing import Any, NamedTuple

from weft import numpy as jnp
from weft.dtypes import dtype_of, finfo
from weft.lax import _control as control

_SUFFICIENT = 1e-4  # of the decrease that the slope at the start promises
_FLATTER = 0.9  # than at the start
_NARROWINGS = 30
_LEVEL = 10  # how many units of rounding apart values are taken to be the same


def inner(x, y):
    """The inner product of two vectors; of complex ones that of their parts as real vectors."""
    return jnp.real(jnp.vdot(x, y))


class Point(NamedTuple):
    """A step length, with the value, the slope along the step, and the gradient there."""

    step: Any
    value: Any
    slope: Any
    gradient: Any


class _State(NamedTuple):
    low: Point  # the best point with a sufficient decrease
    high: Point
    trial: Any
    longer: Any  # how many steps were lengthened, and how often the interval was narrowed
    narrower: Any
    done: Any


def line_search(value_and_grad, x, direction, value, gradient, first, max_lengthenings):
    """The Point found and how many there were; its step is 0 if there is no decrease at all."""
    slope = inner(gradient, direction)
    zero = jnp.zeros((), dtype_of(value))
    start = Point(zero, value, slope, gradient)
    rounding = _LEVEL * float(finfo(dtype_of(value)).eps) * jnp.abs(value)

    def evaluated(step):
        f, g = value_and_grad(x + step * direction)
        return Point(step, f, inner(g, direction), g)

    def chosen(condition, p, q):
        return Point(*(jnp.where(condition, a, b) for a, b in zip(p, q, strict=True)))

    def body(state):
        low, high = state.low, state.high
        point = evaluated(state.trial)
        # NaN is no decrease.
        decreased = point.value <= value + _SUFFICIENT * point.step * slope
        decreased &= point.value < low.value
        done = decreased & (jnp.abs(point.slope) <= -_FLATTER * slope)
        level = jnp.abs(point.value - value) <= rounding
        level &= (point.slope >= _FLATTER * slope) & (point.slope <= (2 * _SUFFICIENT - 1) * slope)
        decreased |= level
        passed = decreased & (point.slope * (high.step - low.step) >= 0)
        new_high = chosen(decreased, chosen(passed, low, high), point)
        new_low = chosen(decreased, point, low)
        bracketed = jnp.isfinite(new_high.step)
        trial = jnp.where(bracketed, _between(new_low, new_high), 2 * state.trial)
        return _State(
            new_low,
            new_high,
            trial,
            state.longer + jnp.where(bracketed, 0, 1),
            state.narrower + jnp.where(bracketed, 1, 0),
            done | level,
        )

    def goes_on(state):
        tries = (state.longer < max_lengthenings) & (state.narrower < _NARROWINGS)
        return tries & jnp.logical_not(state.done)

    far = start._replace(step=zero + jnp.inf)
    state = _State(start, far, first, 0, 0, jnp.zeros((), bool))
    state = control.while_loop(goes_on, body, state)
    return state.low, state.longer + state.narrower, state.done


def _between(low, high):
    """The minimum of the cubic through two points, if it is well within them; else the middle."""
    width = high.step - low.step
    d1 = low.slope + high.slope - 3 * (high.value - low.value) / width
    d2 = jnp.sign(width) * jnp.sqrt(d1 * d1 - low.slope * high.slope)
    share = 1 - (high.slope + d2 - d1) / (high.slope - low.slope + 2 * d2)
    within = (share > 0.1) & (share < 0.9)
    return low.step + width * jnp.where(within, share, 0.5)
