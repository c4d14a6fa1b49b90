"""Reductions along axes."""

import re

import numpy as np

from weft import _core
from weft._arguments import counted_axes, ndim_of, normalize_axes, normalize_axis
from weft._jit import jit
from weft._surface import example_section
from weft._tree_mismatch import explain_difference
from weft._types.avals import ShapedArray
from weft.dtypes import (
    dtype_of,
    highest_value,
    is_bool,
    is_complex,
    lowest_value,
    requested_dtype,
)
from weft.errors import ConcretizationTypeError, DTypeError, ShapeError, TreeStructureError
from weft.lax._sharding import split_as
from weft.runtime.pytree import registry


def _reduction(op, summary, dtypes, empty, of_rows):
    doc = f"""{summary}

    Args:
      operand: array of {dtypes}.
      axes: the axes to reduce over, which the result lacks.

    Over axes of size 0 the result is {empty}.

    {example_section(f"lax.{op}(wnp.array([[6, 3], [5, 1]]), axes=(1,))", of_rows, "    ")}
    """

    def function(operand, axes):
        axes = normalize_axes(counted_axes(axes, op), ndim_of(operand), op)
        return _core.bind(op, operand, axes=axes) if axes else _core.asarray(operand)

    function.__name__ = function.__qualname__ = op
    function.__doc__ = doc
    return function


_NUMBER = "a number dtype"
_BITS = "bool or an integer dtype"
reduce_prod = _reduction(
    "reduce_prod", "Product of the elements.", _NUMBER, "1", "Array([18,  5], dtype=int32)"
)
reduce_max = _reduction(
    "reduce_max",
    "Greatest element; NaN if there is one.",
    "any dtype",
    "the lowest value",
    "Array([6, 5], dtype=int32)",
)
reduce_min = _reduction(
    "reduce_min",
    "Smallest element; NaN if there is one.",
    "any dtype",
    "the highest value",
    "Array([3, 1], dtype=int32)",
)
reduce_and = _reduction(
    "reduce_and",
    "Bitwise (for bool: logical) and.",
    _BITS,
    "all ones",
    "Array([2, 1], dtype=int32)",
)
reduce_or = _reduction(
    "reduce_or", "Bitwise (for bool: logical) or.", _BITS, "zero", "Array([7, 5], dtype=int32)"
)
reduce_xor = _reduction(
    "reduce_xor",
    "Bitwise (for bool: logical) exclusive or.",
    _BITS,
    "zero",
    "Array([5, 4], dtype=int32)",
)


def argmax(operand, axis, index_dtype):
    """Position of the greatest element along an axis, the first of several.

    NaN counts as greater than any number. The result has dtype `index_dtype` and lacks the axis,
    which must not be empty.

    Examples:
      >>> lax.argmax(wnp.array([3, 9, 9]), 0, "int32")
      Array(1, dtype=int32)
    """
    return _arg_reduction("argmax", operand, axis, index_dtype)


def argmin(operand, axis, index_dtype):
    """Position of the smallest element along an axis, the first of several.

    NaN counts as smaller than any number. The result has dtype `index_dtype` and lacks the axis,
    which must not be empty.

    Examples:
      >>> lax.argmin(wnp.array([[3, 1], [0, 9]]), 1, "int32")
      Array([1, 0], dtype=int32)
    """
    return _arg_reduction("argmin", operand, axis, index_dtype)


def _arg_reduction(op, operand, axis, index_dtype):
    (axis,) = counted_axes((axis,), op)
    axis = normalize_axis(axis, ndim_of(operand), op)
    return _core.bind(op, operand, axes=(axis,), index_dtype=requested_dtype(index_dtype, op))


# The identity of an operation, by dtype.
_IDENTITIES = {
    "add": lambda dtype: 0,
    "mul": lambda dtype: 1,
    "max": lambda dtype: -np.inf if is_complex(dtype) else lowest_value(dtype),
    "min": lambda dtype: np.inf if is_complex(dtype) else highest_value(dtype),
    "and": lambda dtype: True if is_bool(dtype) else ~dtype.type(0),
    "or": lambda dtype: 0,
    "xor": lambda dtype: 0,
}
_REDUCTIONS = {
    "add": "reduce_sum",
    "mul": "reduce_prod",
    "max": "reduce_max",
    "min": "reduce_min",
    "and": "reduce_and",
    "or": "reduce_or",
    "xor": "reduce_xor",
}
_ONE_OP = re.compile(r"{ lambda ; a:\S+ b:\S+\. let c:\S+ = (\w+) (?:a b|b a) in \(c,\) }")


class Reduction:
    """What a function that reduces takes: arrays, initial values and a function of scalars.

    Attributes: arrays, inits (lists), tree, graph, and monoid: "add" where one array is reduced by
    an operation of this name from its identity on, else None.
    """

    def __init__(self, operands, init_values, computation, function):
        self.arrays, self.tree = registry.flatten(operands)
        inits, init_tree = registry.flatten(init_values)
        if not self.arrays or self.tree != init_tree:
            raise TreeStructureError(
                f"[{function}] expected an initial value for each array of "
                f"{explain_difference(self.tree, init_tree)}"
            )
        dtypes = [dtype_of(x) for x in self.arrays]
        pairs = list(zip(self.arrays, inits, strict=True))
        self._is_weak = [_core.typeof(x)[2] and _core.typeof(init)[2] for x, init in pairs]
        self.graph = _scalar_graph(computation, self.tree, dtypes, function)
        self.monoid = self._monoid(inits[0])
        if self.monoid:
            self.inits = [dtypes[0].type(_IDENTITIES[self.monoid](dtypes[0]))]
        else:
            self.inits = [_initial_value(*pair, function) for pair in pairs]

    def results(self, values):
        """The tree of results, each weakly typed if its array and its initial value are."""
        return self.tree.unflatten(
            [_core.astype(x, dtype_of(x), w) for x, w in zip(values, self._is_weak, strict=True)]
        )

    def _monoid(self, init):
        match = _ONE_OP.fullmatch(str(self.graph)) if len(self.arrays) == 1 else None
        if not match or match[1] not in _IDENTITIES or isinstance(init, _core.Tracer):
            return None
        shape, own, _ = _core.typeof(init)
        if shape:
            return None
        return match[1] if np.asarray(init) == _IDENTITIES[match[1]](own) else None


def reduce(operands, init_values, computation, dimensions, out_sharding=None):
    """Reduces arrays along axes with a function of two scalars.

    Args:
      operands: an array, or a tree of arrays of one shape.
      init_values: a scalar for each array, of the same dtype, in a tree of the same structure.
      computation: function of two trees of scalars to one. It is associative, with the initial
        values as identity: in which order elements are combined, and how often the initial values
        enter, is not specified. It may not close over arrays.
      dimensions: the axes to reduce over, which the results lack.
      out_sharding: None, or how the result is split, a PartitionSpec or NamedSharding.

    Returns:
      A tree of arrays of the structure of `operands`.

    Examples:
      >>> lax.reduce(wnp.array([[1, 2], [3, 4]]), 0, lax.add, dimensions=(1,))
      Array([3, 7], dtype=int32)
    """
    if out_sharding is not None:
        return split_as(
            out_sharding, "reduce", lambda: reduce(operands, init_values, computation, dimensions)
        )
    given = Reduction(operands, init_values, computation, "reduce")
    arrays = given.arrays
    axes = normalize_axes(counted_axes(dimensions, "reduce"), ndim_of(arrays[0]), "reduce")
    if given.monoid:
        op = _REDUCTIONS[given.monoid]
        result = _core.bind(op, arrays[0], axes=axes) if axes else _core.asarray(arrays[0])
        return given.results([result])
    results = _core.bind("reduce", *arrays, *given.inits, dimensions=axes, jaxpr=given.graph)
    return given.results(results)


def reduce_sum(operand, axes, *, out_sharding=None):
    """Sum of the elements.

    Args:
      operand: array of a number dtype.
      axes: the axes to reduce over, which the result lacks.
      out_sharding: None, or how the result is split, a PartitionSpec or NamedSharding.

    Over axes of size 0 the result is 0.

    Examples:
      >>> lax.reduce_sum(wnp.array([[6, 3], [5, 1]]), axes=(1,))
      Array([9, 6], dtype=int32)
    """
    if out_sharding is not None:
        return split_as(out_sharding, "reduce_sum", lambda: reduce_sum(operand, axes))
    axes = normalize_axes(counted_axes(axes, "reduce_sum"), ndim_of(operand), "reduce_sum")
    return _core.bind("reduce_sum", operand, axes=axes) if axes else _core.asarray(operand)


def _initial_value(x, init, function):
    """`init` in the dtype of x: a NumPy scalar unless it is traced."""
    dtype = dtype_of(x)
    shape, own, _ = _core.typeof(init)
    if shape:
        raise ShapeError(f"[{function}] expected a scalar initial value; got shape {shape}")
    if own != dtype:
        raise DTypeError(
            f"[{function}] expected an initial value of the dtype {dtype} of its array; got {own}"
        )
    if isinstance(init, _core.Tracer):
        return _core.astype(init, dtype)
    with np.errstate(all="ignore"):
        return np.asarray(init).astype(dtype)[()]


def _scalar_graph(computation, tree, dtypes, function):
    """The graph of a function of two scalars (or trees of them)."""

    def flat(*scalars):
        half = len(scalars) // 2
        result = computation(tree.unflatten(scalars[:half]), tree.unflatten(scalars[half:]))
        leaves, result_tree = registry.flatten(result)
        if result_tree != tree:
            raise TreeStructureError(
                f"[{function}] expected a computation that returns "
                f"{explain_difference(tree, result_tree)}"
            )
        return tuple(leaves)

    traced = jit(flat).trace(*[ShapedArray((), dtype) for dtype in dtypes * 2])
    if traced.consts:
        raise ConcretizationTypeError(
            f"[{function}] expected a computation that does not close over arrays; "
            f"got one that closes over {len(traced.consts)}"
        )
    return traced.graph
