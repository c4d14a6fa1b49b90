"""custom_vmap: a call that is traced is one primitive, which holds the function's graph and rule.

A derivative of the call makes calls of the same kind: their rule is the derivative of the rule, so
that it does not matter which of vmap and jvp comes first.

The primitive takes and gives random keys as their words.
"""

import functools
import inspect
from typing import Any

from weft import _core
from weft._arguments import shape_of
from weft._autodiff import jvp
from weft._custom_rules import _pair, _zero, positional, wrap
from weft._recording import call, check_callable, check_leaves, function_name, leaf_paths
from weft._tree_mismatch import explain_difference
from weft._types.avals import ShapedArray, typeof
from weft.dtypes import is_inexact, is_key
from weft.errors import AttributeValueError, TreeStructureError
from weft.extend._primitive import Primitive
from weft.extend._zeros import Zero
from weft.lax._control import map as lax_map
from weft.lax._shape import move_axis
from weft.random._implementations import impl_of
from weft.random._keys import unwrapped, wrapped
from weft.runtime.pytree import registry


class _Call:
    """What the primitive holds of a call, flat: the function's graph, and the rule.

    Attributes:
      name: of the function.
      graph: takes what the function closes over, then the leaves of its arguments.
      weak: for each result whether its type is weak.
      num_consts: how many values it closes over.
      rule: rule(axis_size, flags, leaves) -> (leaves of results, flags of these).
    """

    def __init__(self, name, graph, weak, num_consts, rule):
        self.name, self.graph, self.weak = name, graph, tuple(weak)
        self.num_consts, self.rule = num_consts, rule

    def __repr__(self):
        return self.name


def _bind(name, flat, leaves, rule):
    """Records a call of flat(leaves) on leaves."""
    graph, captures, weak = _traced(flat, leaves, name, f"'{name}', given to custom_vmap")
    made = _Call(name, graph, weak, len(captures), rule)
    return _primitive_of(made).bind(*_words(captures), *leaves, call=made)


def _traced(flat, leaves, name, what):
    """The graph of flat(leaves), the values that it closes over, and which results are weak."""
    types = [typeof(x) for x in leaves]
    graph, captures, weak, _ = _core.trace_body(flat, types, name, None, what)
    return graph, _core.captured_values(captures), weak


def _silently(flat, leaves, name):
    """flat(leaves), without the callbacks on the way: another call makes those."""
    graph, captures, weak = _traced(flat, leaves, name, f"the derivative of '{name}'")
    return call(graph.without_effects(), [*captures, *leaves], weak)


def _infer(*_, call):
    types = zip(call.graph.out_types, call.weak, strict=True)
    return [_words_type(t[0], t[1], weak) for t, weak in types]


def _words_type(shape, dtype, weak):
    if is_key(dtype):
        return ShapedArray((*shape, *impl_of(dtype).key_shape), "uint32")
    return ShapedArray(shape, dtype, weak_type=weak)


def _words(values):
    """Keys among the values as their words."""
    return [unwrapped(x) if is_key(typeof(x).dtype) else x for x in values]


def _keys(values, dtypes):
    """The values that `_words` got, of these dtypes."""
    pairs = zip(values, dtypes, strict=True)
    return [wrapped(x, impl_of(dtype)) if is_key(dtype) else x for x, dtype in pairs]


def _lower(*operands, call):
    return _run(call, operands)


def _run(made, operands):
    dtypes = [dtype for _, dtype in made.graph.in_types]
    return call(made.graph, _keys(operands, dtypes), made.weak)


def _batch(operands, dims, *, call):
    closed, mapped = dims[: call.num_consts], dims[call.num_consts :]
    if any(dim is not None for dim in closed):
        raise AttributeValueError(
            f"[custom_vmap] expected '{call.name}' to be mapped over its arguments; got a mapped "
            "value that it closes over\n  Pass that value as an argument."
        )
    leaves = operands[call.num_consts :]
    size = next(shape_of(x)[d] for x, d in zip(leaves, mapped, strict=True) if d is not None)
    leaves = [
        x if dim is None else move_axis(x, dim, 0) for x, dim in zip(leaves, mapped, strict=True)
    ]
    results, flags = call.rule(size, [dim is not None for dim in mapped], leaves)
    return results, [0 if flag else None for flag in flags]


def _differentiate(primals, tangents, *, call):
    made = call
    results = _primitive_of(made).bind(*primals, call=made)
    # What the rule below holds is numbers and flags, no values of this trace.
    count = len(primals)
    given = [not isinstance(t, Zero) for t in tangents]
    moving = [is_inexact(typeof(x).dtype) for x in results]

    def tangents_of(function, primals, present):
        """Tangents of the inexact results of function(*primals), given those that are there."""
        present = iter(present)
        dots = [
            next(present) if g else _zero(typeof(x), False)
            for x, g in zip(primals, given, strict=True)
        ]
        out = jvp(function, tuple(primals), tuple(dots))[1]
        return [t for t, m in zip(out, moving, strict=True) if m]

    def silent(*xs):
        return _silently(lambda values: _run(made, values), xs, made.name)

    def flat(values):
        return tangents_of(silent, values[:count], values[count:])

    def rule(size, flags, leaves):
        closed = made.num_consts
        of_primals, of_tangents = list(flags[:count]), iter(flags[count:])
        for i, g in enumerate(given):
            of_primals[i] |= next(of_tangents) if g else False
        own = [i for i, g in enumerate(given) if g]
        values = [
            _mapped(x, flag, wanted, size)
            for x, flag, wanted in zip(
                leaves, flags, [*of_primals, *(of_primals[i] for i in own)], strict=True
            )
        ]
        out_flags = []

        def batched(*xs):
            def results_of(values):
                results, out_flags[:] = made.rule(size, of_primals[closed:], values)
                return results

            return _silently(results_of, xs[closed:], made.name)

        dots = tangents_of(batched, values[:count], values[count:])
        return dots, [flag for flag, m in zip(out_flags, moving, strict=True) if m]

    operands = [*primals, *(t for t, g in zip(tangents, given, strict=True) if g)]
    dots = iter(_bind(f"the derivative of {made.name}", flat, operands, rule))
    out = [
        next(dots) if m else Zero(ShapedArray(*_tangent_type(x)))
        for x, m in zip(results, moving, strict=True)
    ]
    return results, out


def _tangent_type(x):
    zero = _zero(typeof(x), False)
    return zero.shape, zero.dtype


def _mapped(x, is_mapped, wanted, size):
    """An array with an axis of lanes in front, if that is wanted and it has none."""
    return x if is_mapped or not wanted else _core.broadcast_to(x, (size, *shape_of(x)))


def _transpose(_, *operands, call):
    raise AttributeValueError(
        f"[custom_vmap] expected forward mode for '{call.name}'; got reverse mode (grad, vjp), "
        "which custom_vmap does not have\n  Give the derivative with custom_vjp around it, or take "
        "grad of vmap."
    )


_primitive = Primitive("custom_vmap_call")
_primitive.multiple_results = True
_primitive.def_abstract_eval(_infer)
_primitive.def_lowering(_lower)
_primitive.def_batching(_batch)
_primitive.def_jvp(_differentiate, symbolic_zeros=True)
_primitive.def_transpose(_transpose)


@functools.cache
def _with_effects(effects):
    return _primitive._with_effects(effects) if effects else _primitive


def _primitive_of(made):
    """The primitive of a call, with the effects that the function has."""
    return _with_effects(made.graph.effects)


class custom_vmap:
    """Gives a function a rule of its own for vmap.

    Args:
      fun: a function of arrays or trees of arrays.

    Set the rule with `def_vmap`. Calls that are not mapped run `fun`. Forward mode takes the
    derivative of the function, under vmap that of the rule; for reverse mode of a single call, wrap
    it in `custom_vjp`.

        @custom_vmap
        def solve(a, b): ...

        @solve.def_vmap
        def solve_many(axis_size, in_batched, a, b):
            ...
            return results, True

    Examples:
      >>> @weft.custom_batching.custom_vmap
      ... def f(x):
      ...     return x
      >>> @f.def_vmap
      ... def of_many(size, mapped, x):
      ...     return x - x.mean(), True
      >>> f(3.0), weft.vmap(f)(wnp.array([1.0, 2.0, 3.0]))
      (Array(3., dtype=float32, weak_type=True), Array([-1.,  0.,  1.], dtype=float32))
    """

    _follows_from_others = ("_signature",)  # see weft._fingerprint

    def __init__(self, fun):
        check_callable(fun, "custom_vmap")
        wrap(self, fun)
        self.fun = fun
        self.vmap_rule = None
        try:
            self._signature = inspect.signature(fun)
        except (TypeError, ValueError):
            self._signature = None

    def def_vmap(self, vmap_rule):
        """Sets the rule and returns it.

        Args:
          vmap_rule: vmap_rule(axis_size, in_batched, *args) -> (results, out_batched). `in_batched`
            is a list with a tree of booleans for each argument: whether the leaf is mapped; if so,
            it has its lanes along the first axis. So are the results, and `out_batched` says which
            of these are mapped, a tree of booleans like them.
        """
        check_callable(vmap_rule, "def_vmap")
        self.vmap_rule = vmap_rule
        return vmap_rule

    def __repr__(self):
        return f"<custom_vmap function {function_name(self.fun)}>"

    def __call__(self, *args, **kwargs):
        name, rule = function_name(self.fun), self.vmap_rule
        args = positional("custom_vmap", name, self._signature, args, kwargs)
        if rule is None:
            raise AttributeError(f"'{name}' has no vmap rule: set one with def_vmap")
        leaves, tree = registry.flatten(list(args))
        paths = leaf_paths(tree)
        check_leaves(leaves, lambda i: f"argument{paths[i]} of '{name}'")
        leaves = [_core.asarray(x) for x in leaves]
        if not _core.in_trace() and not any(type(x) is _core.Tracer for x in leaves):
            return self.fun(*tree.unflatten(leaves))
        dtypes = [typeof(x).dtype for x in leaves]
        out_tree: Any = None
        out_dtypes: Any = None

        def flat(values):
            nonlocal out_tree, out_dtypes
            results, out_tree = registry.flatten(self.fun(*tree.unflatten(_keys(values, dtypes))))
            out_dtypes = [typeof(x).dtype for x in results]
            return _words(results)

        def flat_rule(size, flags, values):
            values = _keys(values, dtypes)
            result = rule(size, tree.unflatten(flags), *tree.unflatten(values))
            results, out_flags = _checked(result, out_tree, f"the vmap rule of '{name}'")
            return _words(results), out_flags

        results = _bind(name, flat, _words(leaves), flat_rule)
        return out_tree.unflatten(_keys(results, out_dtypes))


def _checked(result, out_tree, where):
    """The leaves of a rule's results, and the flags of which are mapped."""
    results, batched = _pair(result, where, "results, out_batched")
    leaves, tree = registry.flatten(results)
    flags, flags_tree = registry.flatten(batched)
    for what, got in (("results", tree), ("out_batched", flags_tree)):
        if got != out_tree:
            raise TreeStructureError(
                f"{where}: expected {what} of the structure of the function's results, "
                f"{explain_difference(out_tree, got)}"
            )
    check_leaves(leaves, lambda i: f"result {i} of {where}")
    return leaves, [bool(flag) for flag in flags]


def sequential_vmap(f):
    """Has a function called lane by lane, in a loop, under vmap.

    Args:
      f: a function of arrays or trees of arrays.

    Returns:
      A `custom_vmap`.

    Examples:
      >>> f = weft.custom_batching.sequential_vmap(lambda x: x**2)
      >>> weft.vmap(f)(wnp.arange(3))
      Array([0, 1, 4], dtype=int32)
    """
    wrapped = custom_vmap(f)

    @wrapped.def_vmap
    def rule(axis_size, in_batched, *args):
        leaves, tree = registry.flatten(list(args))
        flags = registry.flatten(in_batched)[0]

        def one(lanes):
            lanes = iter(lanes)
            whole = [next(lanes) if f else x for x, f in zip(leaves, flags, strict=True)]
            return wrapped(*tree.unflatten(whole))

        results = lax_map(one, [x for x, f in zip(leaves, flags, strict=True) if f])
        values, out_tree = registry.flatten(results)
        return results, out_tree.unflatten([True] * len(values))

    return wrapped
