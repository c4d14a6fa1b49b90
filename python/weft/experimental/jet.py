"""Derivatives of high order along a curve: Taylor mode."""

import math

from weft import _core, numpy as wnp
from weft._autodiff import jvp
from weft._recording import check_callable
from weft._surface import open_to_users as _open_to_users, public as _public
from weft.dtypes import is_inexact
from weft.errors import TreeStructureError
from weft.tree_util import tree_flatten, tree_unflatten

__all__ = ["jet"]
__getattr__, __dir__ = _public(__name__, __all__)

_NUMBERS = (bool, int, float, complex)


def jet(fun, primals, series, factorial_scaled=True, **_):
    """The value of a function and its derivatives along a curve, up to some order.

    For a curve x(t) with x(0) = primals and derivatives `series` at 0, the derivatives of
    fun(*x(t)) at 0. Works for every function that jvp works for: the derivative of order k + 1 is
    the jvp of the one of order k, a function of the curve's first k derivatives, in the direction
    of the first k + 1. What the levels have in common is computed once, so that the work grows with
    a power of the order.

    Args:
      fun: a function of arrays or trees of arrays.
      primals: a tuple or list with one entry per argument.
      series: a tuple or list with one entry per argument: a tuple or list of its derivatives, in
        order, each like the argument. All have the same number of terms.
      factorial_scaled: if False, terms are Taylor coefficients, of `series` and of the result:
        derivatives divided by the factorial of their order.
      _: other options are accepted and have no effect.

    Returns (value, terms), where `terms` is like the value with a list of derivatives in place of
    each array. Raises TreeStructureError (a ValueError) if `series` is not as said, ValueError if
    arguments have different numbers of terms.

    Examples:
      >>> from weft.experimental.jet import jet
      >>> y, (first, second) = jet(lambda x: x**3, (2.0,), ((1.0, 0.0),))
      >>> float(y), float(first), float(second)
      (8.0, 12.0, 12.0)
    """
    check_callable(fun, "jet")
    if len(primals) != len(series):
        raise TreeStructureError(
            f"jet expected one list of terms for each of the {len(primals)} primals; got "
            f"{len(series)}"
        )
    for terms in series:
        if isinstance(terms, dict):
            raise TreeStructureError(f"jet expected lists of terms as series; got {terms!r:.60}")
    order = len(series[0]) if series else 0
    if any(len(terms) != order for terms in series):
        raise ValueError(
            "jet expected as many terms for every argument; got "
            f"{', '.join(str(len(terms)) for terms in series)}"
        )
    leaves, tree = tree_flatten(tuple(primals))
    point = [_inexact(x) for x in leaves]
    curve = [point]
    for k in range(order):
        terms = tree_flatten(tuple(terms[k] for terms in series))[0]
        if len(terms) != len(point):
            raise ValueError(
                f"jet expected terms like the primals, {len(point)} arrays; got {len(terms)}"
            )
        pairs = zip(point, terms, strict=True)
        curve.append([_like(x, term, factorial_scaled, k + 1) for x, term in pairs])

    out_tree = None
    made = []  # of the results as they were traced: number of Python's or None, inexact, weak

    def value(*xs):
        nonlocal out_tree
        results, out_tree = tree_flatten(fun(*tree_unflatten(tree, xs)))
        made[:] = map(_described, results)
        return [results]

    derivatives = value
    for k in range(order):
        derivatives = _next_order(derivatives, (k + 1) * len(point), k == 0)
    results, *moved = derivatives(*[x for xs in curve for x in xs])
    if any(x is not y for x, y in zip(leaves, point, strict=True)):
        # Of whole numbers, not of floats in their place.
        results, _ = tree_flatten(fun(*tree_unflatten(tree, map(_core.asarray, leaves))))
    moved = [iter(terms) for terms in moved]
    terms = []
    for i, (y, (number, inexact, weak)) in enumerate(zip(results, made, strict=True)):
        if number is not None:
            results[i] = number
        if inexact:
            scaled = [_scaled(next(t), factorial_scaled, k) for k, t in enumerate(moved, 1)]
            terms.append([_core.astype(t, _core.typeof(t)[1], weak) for t in scaled])
        else:
            terms.append([wnp.full(wnp.shape(y), 0.0)] * order)
    return tree_unflatten(out_tree, results), tree_unflatten(out_tree, terms)


def _described(x):
    _, dtype, weak = _core.typeof(x)
    return x if isinstance(x, _NUMBERS) else None, is_inexact(dtype), weak


def _next_order(lower, num_known, first):
    """From the derivatives up to an order, as a function of the curve's, those up to the next."""

    def derivatives(*curve):
        num_inputs = len(curve) - num_known
        known, moved = jvp(lower, curve[:num_known], curve[num_inputs:])
        if not first:
            return [*known, moved[-1]]
        # Results of other dtypes have none.
        pairs = zip(known[0], moved[0], strict=True)
        return [*known, [t for y, t in pairs if is_inexact(_core.typeof(y)[1])]]

    return derivatives


def _scaled(term, factorial_scaled, order):
    return term if factorial_scaled else term / math.factorial(order)


def _inexact(x):
    """A whole number as a float, weakly typed as it is."""
    _, dtype, weak = _core.typeof(x)
    return x if is_inexact(dtype) else _core.astype(wnp.asarray(x, float), float, weak)


def _like(x, term, factorial_scaled, order):
    """A term of the type of its primal, as a derivative."""
    shape, dtype = _core.typeof(x)[:2]
    if _core.typeof(term)[:2] != (shape, dtype):
        term = wnp.broadcast_to(wnp.asarray(term, dtype), shape)
    if not factorial_scaled:
        term = term * math.factorial(order)
    return term


_open_to_users(__name__)
