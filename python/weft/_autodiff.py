"""Derivatives: grad, value_and_grad, jvp, vjp, linearize, linear_transpose.

Each records the function, asks the C++ core for the transformed graph, and calls that; no rule of a
derivative is in Python.
"""

import functools
import operator

import numpy as np

from weft import _core
from weft._recording import (
    Recording,
    call,
    check_callable,
    check_leaves,
    function_name,
    leaf_paths,
    name_argument,
)
from weft._staging import ShapedArray, typeof
from weft._surface import public_function
from weft._tree_mismatch import explain_difference
from weft.dtypes import float0, is_inexact
from weft.errors import ArgumentTypeError, DTypeError, ShapeError, TreeStructureError
from weft.runtime.pytree import registry


def _inexact_leaf(leaf):
    return is_inexact(_core.typeof(leaf)[1])


def _zero_tangent(leaf):
    """The only value that the tangent of an integer or bool can have."""
    return np.zeros(_core.typeof(leaf)[0], float0)


# ---- grad


def _argnums(argnums, count, name):
    """argnums as non-negative positions of `count` positional arguments, and whether it was one."""
    single = not isinstance(argnums, (tuple, list))
    try:
        nums = [operator.index(n) for n in ([argnums] if single else argnums)]
    except TypeError:
        raise TypeError(f"argnums: expected an int or ints; got {argnums!r}") from None
    for n in nums:
        if not -count <= n < count:
            raise ArgumentTypeError(
                f"argnums: '{name}' was called with {count} positional arguments; got argnums={n}"
            )
    return [n % count for n in nums], single


def _check_gradient_input(leaf, where, holomorphic, allow_int):
    dtype = _core.typeof(leaf)[1]
    if holomorphic:
        if dtype.kind != "c":
            raise DTypeError(f"grad with holomorphic=True expected complex {where}; got {dtype}")
    elif dtype.kind == "c":
        raise DTypeError(
            f"grad expected real {where}; got {dtype}\n"
            "  For a holomorphic function pass holomorphic=True; else use vjp."
        )
    elif not is_inexact(dtype) and not allow_int:
        raise DTypeError(
            f"grad expected floating-point {where}; got {dtype}\n"
            "  Pass a float (3.0 in place of 3), convert arrays (x.astype(float)), or pass "
            "allow_int=True to get an empty gradient."
        )


def _check_loss(shape, dtype, name, holomorphic):
    wanted = dtype.kind == "c" if holomorphic else dtype.kind != "c" and is_inexact(dtype)
    if shape == () and wanted:
        return
    aval = ShapedArray(shape, dtype)
    if shape != ():
        raise ShapeError(
            f"grad expected a scalar result of '{name}'; got {aval}\n"
            "  Reduce it (sum, mean), or use jacrev, jacfwd or vjp."
        )
    if holomorphic:
        raise DTypeError(
            f"grad with holomorphic=True expected a complex result of '{name}'; got {aval}"
        )
    raise DTypeError(f"grad expected a real floating-point result of '{name}'; got {aval}")


def value_and_grad(
    fun, argnums=0, has_aux=False, holomorphic=False, allow_int=False, reduce_axes=()
):
    """A function that returns both the value of `fun` and its gradient.

    Args:
      fun: returns a real scalar (with has_aux: a pair of it and any tree).
      argnums: position or positions of the arguments to differentiate by.
      has_aux: `fun` returns (value, aux); so the result is ((value, aux), gradient).
      holomorphic: `fun` is a holomorphic function of complex arguments.
      allow_int: arguments may hold integers; their gradients are arrays of dtype float0.
      reduce_axes: accepted for compatibility; must be empty.

    Returns a function of the same arguments, whose gradient has the tree, shapes and dtypes of the
    arguments selected (a tuple of them if argnums is a sequence).

    Raises ShapeError, DTypeError or ArgumentTypeError, naming argument or result.
    """
    check_callable(fun, "grad")
    if reduce_axes:
        raise NotImplementedError("reduce_axes is not supported: collectives are not there yet")
    name = function_name(fun)

    @public_function
    @functools.wraps(fun)
    def value_and_gradient(*args, **kwargs):
        nums, single = _argnums(argnums, len(args), name)
        selected = tuple(args[n] for n in nums)
        leaves, tree = registry.flatten(selected)

        def where(i):
            return name_argument(fun, registry.flatten((args, kwargs))[1], _position(args, nums, i))

        check_leaves(leaves, where)
        for i, leaf in enumerate(leaves):
            _check_gradient_input(leaf, _Lazy(where, i), holomorphic, allow_int)
        inexact = [not allow_int or _inexact_leaf(leaf) for leaf in leaves]
        inputs = [leaf for leaf, yes in zip(leaves, inexact, strict=True) if yes]
        aux_tree = None

        def loss_first(*args, **kwargs):
            nonlocal aux_tree
            result = fun(*args, **kwargs)
            if not has_aux:
                return [result]
            if not (isinstance(result, (tuple, list)) and len(result) == 2):
                raise TypeError(
                    f"has_aux: expected '{name}' to return a pair (value, aux); got {result!r:.60}"
                )
            aux_leaves, aux_tree = registry.flatten(result[1])
            return [result[0], *aux_leaves]

        loss_first.__name__ = name

        def rebuild(tracers):
            it = iter(tracers)
            values = [next(it) if y else x for x, y in zip(leaves, inexact, strict=True)]
            new = list(args)
            for n, value in zip(nums, tree.unflatten(values), strict=True):
                new[n] = value
            return new, kwargs

        rec = Recording(loss_first, inputs, rebuild, describe=where)
        types = rec.graph.out_types
        num_aux = aux_tree.num_leaves if has_aux else 0
        if len(types) != 1 + num_aux:
            raise TypeError(
                f"grad expected one scalar from '{name}'; got a tree of {len(types) - num_aux} "
                "arrays\n  Return the loss alone, or (loss, anything) with has_aux=True."
            )
        dtype = types[0][1]
        _check_loss(*types[0], name, holomorphic)
        cotangents = [True] + [False] * num_aux
        graph, ct_mask = _core.vjp_graph(rec.graph, rec.mask([True] * len(inputs)), cotangents)
        seeds = [dtype.type(1)] if ct_mask[0] else []
        weak = [*rec.weak, *(_core.typeof(x)[2] for x in inputs)]
        results = call(graph, [*rec.captures, *inputs, *seeds], weak)
        value, aux, found = results[0], results[1 : 1 + num_aux], iter(results[1 + num_aux :])
        gradients = [
            next(found) if yes else _zero_tangent(leaf)
            for leaf, yes in zip(leaves, inexact, strict=True)
        ]
        gradient = tree.unflatten(gradients)
        out = (value, aux_tree.unflatten(aux)) if has_aux else value
        return out, gradient[0] if single else gradient

    return value_and_gradient


class _Lazy:
    """An argument's name, looked up only if a message needs it."""

    def __init__(self, where, i):
        self._where, self._i = where, i

    def __str__(self):
        return self._where(self._i)

    __format__ = lambda self, spec: str(self)


def _position(args, nums, i):
    """Leaf number in (args, kwargs) of the i-th leaf of the selected arguments."""
    sizes = [len(registry.flatten(a)[0]) for a in args]
    for n in nums:
        if i < sizes[n]:
            return sum(sizes[:n]) + i
        i -= sizes[n]
    raise IndexError(i)


def grad(fun, argnums=0, has_aux=False, holomorphic=False, allow_int=False, reduce_axes=()):
    """A function that returns the gradient of `fun`; arguments as for `value_and_grad`.

    With has_aux, the result is (gradient, aux).
    """
    both = value_and_grad(fun, argnums, has_aux, holomorphic, allow_int, reduce_axes)

    @public_function
    @functools.wraps(fun)
    def gradient(*args, **kwargs):
        value, result = both(*args, **kwargs)
        return (result, value[1]) if has_aux else result

    return gradient


# ---- forward mode


def _tangent_inputs(primals, tangents, names, what):
    """(inputs, mask): tangents of the inexact primals, checked. `names(i)` names a primal."""
    inputs, mask = [], []
    for i, (x, t) in enumerate(zip(primals, tangents, strict=True)):
        own = typeof(x)
        shape, dtype = own.shape, own.dtype
        if not is_inexact(dtype):
            t_dtype = getattr(t, "dtype", None)
            if t_dtype != float0:
                raise DTypeError(
                    f"{what}: expected a float0 tangent for {names(i)} of dtype {dtype}; "
                    f"got {t_dtype or type(t).__name__}"
                )
            mask.append(False)
            continue
        got = typeof(t)
        if got.shape != shape:
            raise ShapeError(
                f"{what}: expected the tangent of {names(i)} to be {ShapedArray(shape, dtype)}; "
                f"got {got}"
            )
        if got.dtype != dtype and not got.weak_type:
            raise DTypeError(
                f"{what}: expected the tangent of {names(i)} to be {ShapedArray(shape, dtype)}; "
                f"got {got}"
            )
        inputs.append(_core.astype(t, dtype))
        mask.append(True)
    return inputs, mask


def _flatten_like(tree, other, what, names):
    """The leaves of `other`, which must have the structure `tree`."""
    leaves, other_tree = registry.flatten(other)
    if other_tree != tree:
        raise TreeStructureError(
            f"{what}: expected {names} of structure {explain_difference(tree, other_tree)}"
        )
    return leaves


def _split_aux(fun, has_aux, name):
    """`fun` returning (leaves of its value, leaves of aux), and where to find the trees."""
    trees = {}

    def flat(*args, **kwargs):
        result = fun(*args, **kwargs)
        if has_aux and not (isinstance(result, (tuple, list)) and len(result) == 2):
            raise TypeError(
                f"has_aux: expected '{name}' to return a pair (value, aux); got {result!r:.60}"
            )
        value, aux = result if has_aux else (result, None)
        leaves, trees["value"] = registry.flatten(value)
        aux_leaves, trees["aux"] = registry.flatten(aux)
        return [*leaves, *aux_leaves]

    flat.__name__ = name
    return flat, trees


def _record_primals(fun, primals, has_aux, what):
    """Records fun(*primals); returns what the transforms below share."""
    if not isinstance(primals, (tuple, list)):
        raise TypeError(f"{what} expected a tuple of primals; got {type(primals).__name__}")
    name = function_name(fun)
    leaves, tree = registry.flatten(tuple(primals))
    whole = registry.flatten((tuple(primals), {}))[1]

    def names(i):
        return name_argument(fun, whole, i)

    check_leaves(leaves, names)
    flat, trees = _split_aux(fun, has_aux, name)
    inexact = [_inexact_leaf(x) for x in leaves]
    inputs = [x for x, yes in zip(leaves, inexact, strict=True) if yes]

    def rebuild(tracers):
        it = iter(tracers)
        values = [next(it) if y else x for x, y in zip(leaves, inexact, strict=True)]
        return tree.unflatten(values), {}

    rec = Recording(flat, inputs, rebuild, describe=names)
    return rec, leaves, inexact, inputs, tree, trees, names


def jvp(fun, primals, tangents, has_aux=False):
    """The value of `fun` and its derivative along `tangents`.

    Args:
      fun: a function of arrays or trees of arrays.
      primals: tuple of the arguments.
      tangents: tuple of the same structure; each leaf has shape and dtype of the primal's leaf, or
        is a float0 array where that is an integer or bool.
      has_aux: `fun` returns (value, aux); aux is not differentiated.

    Returns (value, tangent), with has_aux (value, tangent, aux). Integer results have float0
    tangents. Raises TreeStructureError, ShapeError or DTypeError, naming the argument.
    """
    check_callable(fun, "jvp")
    if not isinstance(tangents, (tuple, list)):
        raise TypeError(f"jvp expected a tuple of tangents; got {type(tangents).__name__}")
    rec, leaves, _, inputs, tree, trees, names = _record_primals(fun, primals, has_aux, "jvp")
    tangent_leaves = _flatten_like(tree, tuple(tangents), "jvp", "tangents")
    directions, _ = _tangent_inputs(leaves, tangent_leaves, names, "jvp")
    avals = rec.out_avals()
    num_values = trees["value"].num_leaves
    wanted = [i < num_values and is_inexact(a.dtype) for i, a in enumerate(avals)]
    graph, out_mask = _core.jvp_graph(rec.graph, rec.mask([True] * len(inputs)), wanted)
    results = call(graph, [*rec.captures, *inputs, *directions], rec.weak)
    outputs, found = results[: len(avals)], iter(results[len(avals) :])
    dots = [next(found) if yes else None for yes in out_mask]
    values = trees["value"].unflatten(outputs[:num_values])
    tangent = trees["value"].unflatten(
        [
            dot if yes else np.zeros(a.shape, float0)
            for dot, yes, a in zip(dots[:num_values], wanted, avals, strict=False)
        ]
    )
    if has_aux:
        return values, tangent, trees["aux"].unflatten(outputs[num_values:])
    return values, tangent


class _Linear:
    """A linearised function: its linear graph, the values that needs, and masks."""

    def __init__(self, rec, leaves, inexact, inputs, tree, trees, names):
        self.leaves, self.inexact, self.tree, self.trees = leaves, inexact, tree, trees
        self.names, self.name = names, rec.name
        self.avals = rec.out_avals()[: trees["value"].num_leaves]
        forward, self.graph, out_mask, residuals = _core.linearize_graph(
            rec.graph, rec.mask([True] * len(inputs))
        )
        operands = [*rec.captures, *inputs]
        results = call(forward, operands, rec.weak)
        num_values = trees["value"].num_leaves
        # Tangents of aux are not wanted.
        self.out_mask = [m and i < num_values for i, m in enumerate(out_mask)]
        self.aux_tangents = sum(bool(m) for m in out_mask[num_values:])
        sources = {"input": operands, "output": results}
        self.residuals = [sources[kind][i] for kind, i in residuals]
        self.value = trees["value"].unflatten(results[:num_values])
        num_outputs = num_values + trees["aux"].num_leaves
        self.aux = trees["aux"].unflatten(results[num_values:num_outputs])

    def apply(self, directions):
        """The linear map on tangents of the inexact inputs; a list over results, None for zero."""
        found = iter(call(self.graph, [*self.residuals, *directions]))
        return [next(found) if m else None for m in self.out_mask[: len(self.avals)]]

    def transpose(self, cotangents):
        """Cotangents of the inexact inputs from those of the results that have a tangent."""
        linear = [False] * len(self.residuals) + [True] * sum(self.inexact)
        mask = [True] * len(cotangents) + [False] * self.aux_tangents
        graph, _ = _core.transpose_graph(self.graph, linear, mask, True)
        weak = [_core.typeof(x)[2] for x, y in zip(self.leaves, self.inexact, strict=True) if y]
        return call(graph, [*self.residuals, *cotangents], weak)


def linearize(fun, *primals, has_aux=False):
    """The value of `fun`, and its derivative at `primals` as a linear function of tangents.

    Returns (value, f_jvp), with has_aux (value, f_jvp, aux). `f_jvp(*tangents)` returns what
    `jvp(fun, primals, tangents)[1]` would, without computing the value again.
    """
    check_callable(fun, "linearize")
    lin = _Linear(*_record_primals(fun, primals, has_aux, "linearize"))

    @public_function
    def f_jvp(*tangents):
        leaves = _flatten_like(lin.tree, tangents, "linearize", "tangents")
        directions, _ = _tangent_inputs(lin.leaves, leaves, lin.names, "linearize")
        out = []
        for dot, aval in zip(lin.apply(directions), lin.avals, strict=True):
            if dot is None:
                inexact = is_inexact(aval.dtype)
                dot = np.zeros(aval.shape, aval.dtype if inexact else float0)
                dot = _core.astype(dot, aval.dtype) if inexact else dot
            out.append(dot)
        return lin.trees["value"].unflatten(out)

    return (lin.value, f_jvp, lin.aux) if has_aux else (lin.value, f_jvp)


def vjp(fun, *primals, has_aux=False, reduce_axes=()):
    """The value of `fun`, and a function from a cotangent of it to cotangents of the primals.

    Returns (value, vjp_fun), with has_aux (value, vjp_fun, aux). `vjp_fun(ct)` takes a tree like
    the value and returns a tuple with a cotangent for each primal; those of integers are float0.
    The value is computed once; `vjp_fun` may be called many times.

    Raises TreeStructureError, ShapeError or DTypeError for a cotangent that does not fit.
    """
    check_callable(fun, "vjp")
    if reduce_axes:
        raise NotImplementedError("reduce_axes is not supported: collectives are not there yet")
    lin = _Linear(*_record_primals(fun, primals, has_aux, "vjp"))
    paths = None

    @public_function
    def vjp_fun(cotangent):
        nonlocal paths
        leaves = _flatten_like(lin.trees["value"], cotangent, "vjp", "a cotangent")
        if paths is None:
            paths = leaf_paths(lin.trees["value"])
        cts, _ = _tangent_inputs(lin.avals, leaves, lambda i: f"result{paths[i]}", "vjp")
        inexact = iter(cts)
        all_cts = [next(inexact) if is_inexact(a.dtype) else None for a in lin.avals]
        used = [ct for ct, m in zip(all_cts, lin.out_mask, strict=False) if m]
        found = iter(lin.transpose(used))
        return lin.tree.unflatten(
            [
                next(found) if y else _zero_tangent(x)
                for x, y in zip(lin.leaves, lin.inexact, strict=True)
            ]
        )

    return (lin.value, vjp_fun, lin.aux) if has_aux else (lin.value, vjp_fun)


def linear_transpose(fun, *primals):
    """The transpose of a function that is linear in its arguments.

    `primals` give shapes and dtypes only (arrays or ShapeDtypeStructs). The result takes a tree
    like the value of `fun` and returns a tuple like `primals`.
    """
    check_callable(fun, "linear_transpose")
    examples = registry.flatten(primals)
    zeros = examples[1].unflatten([np.zeros(x.shape, x.dtype) for x in map(typeof, examples[0])])
    rec, leaves, inexact, inputs, tree, trees, _ = _record_primals(
        fun, zeros, False, "linear_transpose"
    )
    if not all(inexact):
        raise DTypeError("linear_transpose expected floating-point arguments")
    avals = rec.out_avals()
    graph, _ = _core.transpose_graph(
        rec.graph, rec.mask([True] * len(inputs)), [True] * len(avals), True
    )

    @public_function
    def transposed(cotangent):
        cts = _flatten_like(trees["value"], cotangent, "linear_transpose", "a cotangent")
        paths = leaf_paths(trees["value"])
        cts, _ = _tangent_inputs(avals, cts, lambda i: f"result{paths[i]}", "linear_transpose")
        return tree.unflatten(call(graph, [*rec.captures, *cts]))

    return transposed
