"""Questions about values, types and programs that libraries ask."""

import numpy as np

from weft import _core
from weft._types.avals import ShapedArray
from weft.dtypes import SUPPORTED, tangent_dtype
from weft.errors import ConcretizationTypeError

no_effects = frozenset()
array_types = {_core.Array, np.ndarray, *(dtype.type for dtype in SUPPORTED)}


def valid_jaxtype(x):
    """Whether functions of arrays take x: an array, traced or not, or a number."""
    try:
        _core.typeof(x)
    except TypeError:
        return False
    return True


def concrete_or_error(force, val, context=""):
    """A value that is known: `val`, or force(val) if `force` is not None.

    Raises ConcretizationTypeError for a traced array without a value, saying `context`.
    """
    if isinstance(val, _core.Tracer):
        known = _core.concrete_value(val)
        if known is None:
            raise ConcretizationTypeError(
                f"expected a value that is known while the function is traced; got {val}"
                + (f": {context}" if context else "")
            )
        val = known
    return val if force is None else force(val)


def get_opaque_trace_state(*args, convention="nnx"):
    """A value that equals another one of this function only where the same traces go on.

    `args` and `convention` have no effect.
    """
    return _core.trace_state()


def primal_dtype_to_tangent_dtype(primal_dtype):
    """The dtype of tangents of values of a dtype: its own, or float0 if that has no derivative."""
    return tangent_dtype(primal_dtype)


def mapped_aval(size, axis, aval):
    """The type of an element of what is mapped: without the axis, which must have that size.

    An axis of None leaves the type as it is. Raises ValueError for an axis of another size.
    """
    if axis is None:
        return aval
    if aval.shape[axis] != size:
        raise ValueError(f"mapped_aval expected axis {axis} to have size {size}; got {aval}")
    shape = (*aval.shape[:axis], *aval.shape[axis:][1:])
    return ShapedArray(shape, aval.dtype, weak_type=aval.weak_type)


def unmapped_aval(size, axis, aval, explicit_mesh_axis=None):
    """The type of elements of a type side by side: with an axis of that size, none for None.

    `explicit_mesh_axis` has no effect.
    """
    if axis is None:
        return aval
    shape = (*aval.shape[:axis], size, *aval.shape[axis:])
    return ShapedArray(shape, aval.dtype, weak_type=aval.weak_type)


def jaxprs_in_params(params):
    """The Jaxprs among the parameters of an operation, one after the other."""
    for value in params.values():
        for each in value if isinstance(value, (tuple, list)) else [value]:
            if isinstance(each, _core.ClosedJaxpr):
                yield each.jaxpr
            elif isinstance(each, _core.Jaxpr):
                yield each


def subjaxprs(jaxpr):
    """The Jaxprs that operations of a Jaxpr hold, not those within these."""
    for eqn in jaxpr.eqns:
        yield from jaxprs_in_params(eqn.params)
