"""sparse_jacobian and sparse_hessian: derivatives of which only some elements may be other than 0.

When a function is traced, the pattern of its derivative is found (`pattern.py`) and coloured
(`colouring.py`): columns or rows that one product can tell apart. The program computes these
products, as a batch, and takes the elements from them.
"""

from typing import Any

import numpy as np

from weft import lax, numpy as wnp
from weft._autodiff import check_argnums, grad, jvp, linearize, positions, vjp
from weft._jit import jit
from weft._recording import check_callable, function_name
from weft._sparsity.colouring import column_colours, star_colours
from weft._sparsity.pattern import operations_of, pattern_of
from weft._stages.program import eval_shape, make_jaxpr
from weft._surface import named_after, public_function
from weft._types.avals import typeof
from weft._vmap import vmap
from weft.dtypes import is_complex, is_inexact
from weft.errors import AttributeValueError, DTypeError, ShapeError
from weft.experimental.sparse import BCOO
from weft.tree_util import tree_flatten

_MODES = ("auto", "forward", "reverse")


def sparse_jacobian(fun, argnums=0, has_aux=False, *, pattern=None, mode="auto"):
    """A function that returns the Jacobian of `fun` as a BCOO array.

    Which elements may be other than zero is found from the program of the function's derivative,
    for all values of the arguments. Columns (or rows) that have no row (or column) in common are
    computed at once, so that a Jacobian with few elements in each row takes the time of a few
    evaluations of `fun`. This is done when the function is traced: once for the types of its
    arguments, as with `jit`.

    Args:
      fun: a function of arrays or trees of arrays, of real dtypes.
      argnums: the position of the argument, or positions, by which to differentiate.
      has_aux: whether `fun` returns (result, aux); then the function returns (jacobian, aux).
      pattern: None to find it; or an array, SciPy's sparse one, or BCOO, of shape (elements of the
        result, elements of the arguments), whose elements that are not zero say which may be.
        Elements that it lacks make others wrong.
      mode: "forward" computes columns, "reverse" rows; "auto" what needs fewer.

    Returns a function of the same arguments. For a result of shape r and an argument of shape a its
    result has shape (*r, *a), without batch and dense axes; trees nest as results of arguments.

    Raises DTypeError for complex arguments, AttributeValueError for an unknown mode and for a
    derivative that is far from sparse, ShapeError for a pattern that does not fit.

    Examples:
      >>> jacobian = weft.sparse_jacobian(lambda x: x[1:] * x[:-1])(wnp.array([1.0, 2.0, 3.0]))
      >>> jacobian
      BCOO(float32[2, 3], nse=4)
      >>> jacobian.todense()
      Array([[2., 1., 0.],
             [0., 3., 2.]], dtype=float32)
    """
    check_callable(fun, "sparse_jacobian")
    check_argnums(argnums)
    if mode not in _MODES:
        raise AttributeValueError(
            f"[sparse_jacobian] expected mode to be one of {', '.join(map(repr, _MODES))}; got "
            f"{mode!r}"
        )

    def derivative(flat):
        return _jacobian_entries(flat, pattern, mode)

    return _transformed(fun, argnums, has_aux, derivative, "sparse_jacobian")


def sparse_hessian(fun, argnums=0, has_aux=False, *, pattern=None):
    """A function that returns the Hessian of `fun` as a BCOO array.

    As `sparse_jacobian` of the gradient, in fewer products: that the Hessian is symmetric tells
    elements apart.

    Args:
      fun: a function of arrays or trees of arrays that returns a real scalar.
      argnums: the position of the argument by which to differentiate.
      has_aux: whether `fun` returns (result, aux); then the function returns (hessian, aux).
      pattern: None to find it; or as of `sparse_jacobian`, of shape (n, n) for n elements.

    Returns a function of the same arguments. For an argument of shape a its result has shape
    (*a, *a); trees nest as results of `weft.hessian`.

    Raises what `sparse_jacobian` raises; ShapeError for results that are not scalars.

    Examples:
      >>> hessian = weft.sparse_hessian(lambda x: (x[1:] * x[:-1]).sum())(wnp.ones(3))
      >>> hessian.todense()
      Array([[0., 1., 0.],
             [1., 0., 1.],
             [0., 1., 0.]], dtype=float32)
    """
    check_callable(fun, "sparse_hessian")
    check_argnums(argnums)

    def derivative(flat):
        return _hessian_entries(flat, pattern)

    return _transformed(fun, argnums, has_aux, derivative, "sparse_hessian", True)


class _Flat:
    """A function of the leaves of the arguments by which to differentiate.

    It returns (list of the result's leaves, aux), and keeps the tree of its last result.
    """

    def __init__(self, fun, args, kwargs, nums, has_aux, name):
        self._fun, self._args, self._kwargs, self._nums = fun, list(args), kwargs, nums
        self._has_aux, self.name = has_aux, name
        self.leaves, self.tree = tree_flatten([args[n] for n in nums])
        for x in self.leaves:
            dtype = typeof(x).dtype
            if not is_inexact(dtype) or is_complex(dtype):
                raise DTypeError(f"[{name}] expected arguments of real floats; got {dtype.name}")
        self.size = sum(int(np.prod(typeof(x).shape)) for x in self.leaves)

    def __call__(self, *leaves):
        args = list(self._args)
        for n, x in zip(self._nums, self.tree.unflatten(leaves), strict=True):
            args[n] = x
        result = self._fun(*args, **self._kwargs)
        result, aux = result if self._has_aux else (result, None)
        results, self.out_tree = tree_flatten(result)
        return [wnp.asarray(x) for x in results], aux

    def results(self, *leaves):
        return self(*leaves)[0]


def _shaped(vector, leaves):
    """The elements of a vector as arrays like these."""
    avals = [typeof(x) for x in leaves]
    ends = np.cumsum([int(np.prod(x.shape)) for x in avals])
    parts = wnp.split(vector, ends[:-1]) if avals else []
    return [part.astype(x.dtype).reshape(x.shape) for part, x in zip(parts, avals, strict=True)]


def _joined(leaves):
    return wnp.concatenate([x.reshape(-1) for x in leaves]) if leaves else wnp.zeros(0)


def _transformed(fun, argnums, has_aux, derivative, name, symmetric=False):
    @jit
    def entries(args, kwargs):
        nums, _ = positions(argnums, len(args), function_name(fun))
        flat = _Flat(fun, args, kwargs, nums, has_aux, name)
        values, rows, columns, row_leaves, aux = derivative(flat)
        row_shapes = [typeof(x).shape for x in row_leaves]
        own_shapes = [typeof(x).shape for x in flat.leaves]
        blocks = _blocks(values, rows, columns, row_shapes, own_shapes)
        inner = [flat.tree.unflatten(row) for row in blocks]
        is_single = not isinstance(argnums, (tuple, list))
        inner = [trees[0] if is_single else tuple(trees) for trees in inner]
        result = (flat.tree if symmetric else flat.out_tree).unflatten(inner)
        if symmetric:
            result = result[0] if is_single else tuple(result)
        return (result, aux) if has_aux else result

    @public_function
    @named_after(fun)
    def sparse_derivative(*args, **kwargs):
        return entries(args, kwargs)

    return sparse_derivative


def _blocks(values, rows, columns, row_shapes, own_shapes):
    """For each result leaf and each argument leaf, the entries that belong to them, as BCOO."""
    row_ends = np.cumsum([0, *(int(np.prod(s)) for s in row_shapes)])
    own_ends = np.cumsum([0, *(int(np.prod(s)) for s in own_shapes)])
    blocks = []
    for i, row_shape in enumerate(row_shapes):
        blocks.append([])
        for j, own_shape in enumerate(own_shapes):
            kept = (row_ends[i] <= rows) & (rows < row_ends[i + 1])
            kept &= (own_ends[j] <= columns) & (columns < own_ends[j + 1])
            places = [
                *np.unravel_index(rows[kept] - row_ends[i], row_shape or (1,))[: len(row_shape)],
                *np.unravel_index(columns[kept] - own_ends[j], own_shape or (1,))[: len(own_shape)],
            ]
            shape = (*row_shape, *own_shape)
            count = int(kept.sum())
            indices = np.stack(places, 1) if places else np.zeros((count, 0))
            own = values if kept.all() else values[np.flatnonzero(kept)]
            blocks[-1].append(
                BCOO(
                    (own, wnp.asarray(indices.astype(np.int32))),
                    shape=shape,
                    indices_sorted=True,
                    unique_indices=True,
                )
            )
    return blocks


def _given_pattern(pattern, shape, name):
    """(rows, columns) of a pattern that the user gives."""
    if isinstance(pattern, BCOO):
        if pattern.n_batch or pattern.n_dense:
            raise ShapeError(f"[{name}] expected a pattern without batch and dense axes")
        rows, columns = np.asarray(pattern.indices).T
        inside = (rows < shape[0]) & (columns < shape[1]) & (rows >= 0) & (columns >= 0)
        rows, columns = rows[inside], columns[inside]
        found = tuple(pattern.shape)
    elif hasattr(pattern, "tocoo"):
        coo = pattern.tocoo()
        rows, columns, found = coo.row, coo.col, coo.shape
    else:
        pattern = np.asarray(pattern)
        found = pattern.shape
        rows, columns = np.nonzero(pattern) if pattern.ndim == 2 else (np.empty(0), np.empty(0))
    if tuple(found) != shape:
        raise ShapeError(f"[{name}] expected a pattern of shape {shape}; got {tuple(found)}")
    return _in_order(rows.astype(int), columns.astype(int), shape)


def _in_order(rows, columns, shape):
    """The places in row-major order, each once."""
    keys = np.unique(rows * max(shape[1], 1) + columns)
    return np.divmod(keys, max(shape[1], 1))


def _pattern_by(closed, num_others):
    """The pattern of a program by its inputs from some number on."""
    num_inputs = len(closed.in_avals)
    return pattern_of(closed, [i >= num_others for i in range(num_inputs)])


def _traced_forward(flat, mode):
    """The program of tangents; None of functions with rules for reverse mode only."""
    if mode == "reverse":
        return None
    closed = make_jaxpr(lambda xs, ts: jvp(flat.results, tuple(xs), tuple(ts))[1])(
        flat.leaves, flat.leaves
    )
    # Where a rule is for reverse mode only, the program holds what has no values.
    return None if mode == "auto" and "custom_lin" in operations_of(closed) else closed


def _jacobian_entries(flat, pattern, mode):
    primals = flat.leaves
    forward = _traced_forward(flat, mode)
    results = eval_shape(flat.results, *primals)
    ends = np.cumsum([0, *(int(np.prod(x.shape)) for x in results)])
    shape = (int(ends[-1]), flat.size)
    if pattern is not None:
        rows, columns = _given_pattern(pattern, shape, flat.name)
    elif forward is not None:
        rows, columns = _in_order(*_pattern_by(forward, len(primals)), shape)
    else:
        backward = make_jaxpr(lambda xs, cts: list(vjp(flat.results, *xs)[1](list(cts))))
        columns, rows = _pattern_by(backward(primals, results), len(primals))
        rows, columns = _in_order(rows, columns, shape)

    colours = {}
    if forward is not None:
        colours["forward"] = column_colours(rows, columns, shape)
    if mode != "forward":
        colours["reverse"] = column_colours(columns, rows, shape[::-1])
    chosen = min(colours, key=lambda way: int(colours[way].max(initial=0)))
    own = colours[chosen]
    if chosen == "forward":
        along: Any = linearize(flat, *primals, has_aux=True)
        _, push, aux = along
        products = _products(own, lambda seed: _joined(push(*_shaped(seed, primals))))
        return _picked(products, own[columns], rows), rows, columns, results, aux
    linear: Any = vjp(flat, *primals, has_aux=True)
    _, pull, aux = linear
    products = _products(own, lambda seed: _joined(pull(_shaped(seed, results))))
    return _picked(products, own[rows], columns), rows, columns, results, aux


def _products(colours, product):
    """Products with the sums of the unit vectors of each colour, one row for each."""
    count = int(colours.max(initial=-1)) + 1
    seeds = lax.broadcasted_iota("int32", (count, 1), 0) == colours[None, :]
    return vmap(product)(seeds)


def _picked(products, colours, places):
    at = colours.astype(np.int64) * products.shape[1] + places if products.size else places
    return products.reshape(-1)[at.astype(np.int32)]


def _hessian_entries(flat, pattern):
    primals = flat.leaves

    def scalar(*leaves):
        results, aux = flat(*leaves)
        if len(results) != 1 or results[0].shape:
            shapes = [x.shape for x in results]
            raise ShapeError(f"[sparse_hessian] expected a scalar as result; got shapes {shapes}")
        return results[0], aux

    gradient = grad(scalar, argnums=tuple(range(len(primals))), has_aux=True)
    linear: Any = linearize(gradient, *primals, has_aux=True)
    _, push, aux = linear
    shape = (flat.size, flat.size)
    if pattern is None:
        traced = make_jaxpr(
            lambda xs, ts: jvp(lambda *xs: gradient(*xs)[0], tuple(xs), tuple(ts))[1]
        )(primals, primals)
        rows, columns = _pattern_by(traced, len(primals))
    else:
        rows, columns = _given_pattern(pattern, shape, flat.name)
    both = np.concatenate([rows, columns]), np.concatenate([columns, rows])
    rows, columns = _in_order(*both, shape)
    colours, count = star_colours(rows, columns, flat.size)
    products = _products(colours, lambda seed: _joined(push(*_shaped(seed, primals))))
    # From row i where no other neighbour of i has the colour of j, else from row j.
    direct = (rows == columns) | (count[rows, colours[columns]] == 1)
    first, second = np.where(direct, (rows, columns), (columns, rows))
    values = _picked(products, colours[second], first)
    return values, rows, columns, primals, aux
