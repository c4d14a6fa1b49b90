"""Derivatives: grad, value_and_grad, jvp, vjp, linearize, linear_transpose, fwd_and_bwd.

Each records the function, asks the C++ core for the transformed graph, and calls that; grad and jvp
are one call of the core (csrc/transforms/derivative.cpp). No rule of a derivative is in Python;
errors are.
"""

import functools
import operator
from typing import Any

import numpy as np

from weft import _core
from weft._recording import check_callable, function_name, name_argument
from weft._surface import named_after, public_function, public_methods
from weft._tree_mismatch import explain_difference
from weft._types.avals import ShapedArray, typed, typeof
from weft.dtypes import float0, is_complex, is_inexact
from weft.errors import (
    ArgumentTypeError,
    AttributeValueError,
    DTypeError,
    RefError,
    ShapeError,
    TreeStructureError,
)
from weft.runtime.pytree import registry
from weft.tree_util import register_pytree_node


def _zero_tangent(shape, dtype):
    """The zero of a tangent; of an integer or bool it is the only value that one can have."""
    if is_inexact(dtype):
        return _core.astype(np.zeros(shape, dtype), dtype)
    return np.zeros(shape, float0)


# ---- grad


def check_argnums(argnums):
    """Raises TypeError for what cannot be argnums, whatever the arguments."""
    try:
        for n in argnums if isinstance(argnums, (tuple, list)) else [argnums]:
            operator.index(n)
    except TypeError:
        raise ArgumentTypeError(f"argnums: expected an int or ints; got {argnums!r}") from None


def positions(argnums, count, name):
    """argnums as non-negative positions of `count` positional arguments, and whether it was one."""
    single = not isinstance(argnums, (tuple, list))
    nums = [operator.index(n) for n in ([argnums] if single else argnums)]
    for n in nums:
        if not -count <= n < count:
            raise AttributeValueError(
                f"argnums: '{name}' was called with {count} positional argument"
                f"{'' if count == 1 else 's'}; got argnums={argnums!r}\n"
                "  Pass what is differentiated by position: f(x), not f(x=x)."
            )
    found = tuple(n % count for n in nums)
    if not found:
        raise AttributeValueError("argnums: expected at least one position; got none")
    if len(set(found)) < len(found):
        raise AttributeValueError(
            f"argnums: expected every position once; got argnums={argnums!r}, of which some are "
            f"the same of the {count} arguments of '{name}'"
        )
    return found, single


def argument_names(fun, args, kwargs, nums):
    """Names the leaves of the arguments at the positions `nums`, in messages."""

    def where(i):
        sizes = [len(registry.flatten(a)[0]) for a in args]
        for n in nums:
            if i < sizes[n]:
                break
            i -= sizes[n]
        return name_argument(fun, registry.flatten((args, kwargs))[1], sum(sizes[:n]) + i)

    return where


def _reject_gradient_input(leaf, where, holomorphic):
    dtype = _core.typeof(leaf)[1]
    if holomorphic:
        raise DTypeError(f"grad with holomorphic=True expected complex {where}; got {dtype}")
    raise DTypeError(
        f"grad expected floating-point or complex {where}; got {dtype}\n"
        "  Pass a float (3.0 in place of 3), convert arrays (x.astype(float)), or pass "
        "allow_int=True to get an empty gradient."
    )


def _reject_loss(shape, dtype, name, holomorphic):
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
    if is_complex(dtype):
        raise DTypeError(
            f"grad expected a real floating-point result of '{name}'; got {aval}\n"
            "  For a holomorphic function pass holomorphic=True; else use vjp."
        )
    raise DTypeError(f"grad expected a real floating-point result of '{name}'; got {aval}")


def _reject_aux(result, name):
    raise TreeStructureError(
        f"has_aux: expected '{name}' to return a pair (value, aux); got {result!r:.60}"
    )


_core.install(
    zeros=lambda shape, dtype, weak: _core.astype(np.zeros(shape, dtype), dtype, weak),
    reject_gradient_input=_reject_gradient_input,
    reject_loss=_reject_loss,
    reject_aux=_reject_aux,
    zero_tangent=_zero_tangent,
)


def _differentiator(fun, argnums, has_aux, holomorphic, allow_int, reduce_axes):
    """What value_and_grad and grad share: (args, kwargs) -> value, gradient, aux."""
    check_callable(fun, "grad")
    check_argnums(argnums)
    if reduce_axes:
        raise NotImplementedError(f"reduce_axes: expected (); got {reduce_axes!r}")
    name = function_name(fun)
    numbers = functools.cache(lambda count: positions(argnums, count, name))

    def differentiate(args, kwargs):
        nums, single = numbers(len(args))
        where = argument_names(fun, args, kwargs, nums)
        value, gradients, aux = _core.gradient(
            fun, name, args, kwargs, nums, where, has_aux, holomorphic, allow_int
        )
        return value, gradients[0] if single else gradients, aux

    return differentiate


def value_and_grad(
    fun, argnums=0, has_aux=False, holomorphic=False, allow_int=False, reduce_axes=()
):
    """A function that returns both the value of `fun` and its gradient.

    Args:
      fun: returns a real scalar (with has_aux: a pair of it and any tree).
      argnums: position or positions of the arguments to differentiate by.
      has_aux: `fun` returns (value, aux); so the result is ((value, aux), gradient). What is no
        array in aux is returned as it is.
      holomorphic: `fun` is a holomorphic function of complex arguments.
      allow_int: arguments may hold integers; their gradients are arrays of dtype float0.
      reduce_axes: accepted for compatibility; must be empty.

    Returns a function of the same arguments, whose gradient has the tree, shapes and dtypes of the
    arguments selected (a tuple of them if argnums is a sequence).

    Raises ShapeError, DTypeError or AttributeValueError, naming argument or result.

    Examples:
      >>> value, gradient = weft.value_and_grad(lambda x: wnp.sum(x**2))(wnp.array([1.0, 3.0]))
      >>> value, gradient
      (Array(10., dtype=float32), Array([2., 6.], dtype=float32))
    """
    differentiate = _differentiator(fun, argnums, has_aux, holomorphic, allow_int, reduce_axes)

    @public_function
    @named_after(fun)
    def value_and_gradient(*args, **kwargs):
        value, gradient, aux = differentiate(args, kwargs)
        return ((value, aux) if has_aux else value), gradient

    return value_and_gradient


def grad(fun, argnums: Any = 0, has_aux=False, holomorphic=False, allow_int=False, reduce_axes=()):
    """A function that returns the gradient of `fun`; arguments as for `value_and_grad`.

    With has_aux, the result is (gradient, aux).

    Examples:
      >>> weft.grad(lambda x: x**3)(2.0)
      Array(12., dtype=float32, weak_type=True)
      >>> weft.grad(lambda p: p["w"] * p["x"])({"w": 2.0, "x": 5.0})["w"]
      Array(5., dtype=float32, weak_type=True)
    """
    differentiate = _differentiator(fun, argnums, has_aux, holomorphic, allow_int, reduce_axes)

    @public_function
    @named_after(fun)
    def gradient(*args, **kwargs):
        _, gradient, aux = differentiate(args, kwargs)
        return (gradient, aux) if has_aux else gradient

    return gradient


# ---- forward mode


def _check_tangent(shape, dtype, tangent, where, what):
    """Raises for a tangent that does not fit a primal of that type, named by `where`."""
    kind = "tangent" if what in ("jvp", "linearize") else "cotangent"
    if not is_inexact(dtype):
        got = getattr(tangent, "dtype", None)
        # Cotangents of whole numbers and bools are not looked at.
        is_number = got is not None or isinstance(tangent, (bool, int, float, complex))
        ignored = what == "vjp" and is_number and np.shape(tangent) == shape
        if got != float0 and not ignored:
            raise DTypeError(
                f"{what}: expected a float0 {kind} for {where} of dtype {dtype}; "
                f"got {got or type(tangent).__name__}"
            )
        if np.shape(tangent) != shape:
            raise ShapeError(
                f"{what}: expected the float0 {kind} of {where} to have shape {shape}; "
                f"got {np.shape(tangent)}"
            )
        return
    expected = f"{what}: expected the {kind} of {where} to be {ShapedArray(shape, dtype)}"
    try:
        got = typeof(tangent)
    except TypeError:
        raise ArgumentTypeError(f"{expected}; got {tangent!r:.60}") from None
    if got.shape != shape:
        raise ShapeError(f"{expected}; got {got}")
    if got.dtype != dtype:
        raise DTypeError(f"{expected}; got {got}")


def _reject_structure(tree, other, what, names):
    raise TreeStructureError(
        f"{what}: expected {names} of structure {explain_difference(tree, other)}"
    )


_core.install(check_tangent=_check_tangent, reject_structure=_reject_structure)


def _primal_names(fun, primals, what):
    """Names the leaves of the primals in messages."""
    if not isinstance(primals, (tuple, list)):
        raise ArgumentTypeError(f"{what} expected a tuple of primals; got {type(primals).__name__}")
    return lambda i: name_argument(fun, registry.flatten((tuple(primals), {}))[1], i)


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

    Examples:
      >>> value, tangent = weft.jvp(lambda x: x**2, (3.0,), (1.0,))
      >>> value.item(), tangent.item()
      (9.0, 6.0)
    """
    check_callable(fun, "jvp")
    if not isinstance(tangents, (tuple, list)):
        raise ArgumentTypeError(f"jvp expected a tuple of tangents; got {type(tangents).__name__}")
    if isinstance(primals, (tuple, list)) and type(primals) is not type(tangents):
        kinds = type(primals).__name__, type(tangents).__name__
        raise TreeStructureError(
            f"jvp expected primals and tangents of one structure; got a {kinds[0]} and a {kinds[1]}"
        )
    names = _primal_names(fun, primals, "jvp")
    result = _core.jvp(fun, function_name(fun), tuple(primals), tuple(tangents), names, has_aux)
    return result if has_aux else result[:2]


def _linearized(fun, primals, has_aux, what):
    """The value, the linear function (a _core.Linear) and aux."""
    names = _primal_names(fun, primals, what)
    return _core.linearize(fun, function_name(fun), primals, names, has_aux, what == "vjp")


class _LinearFunction:
    """A linear function at a point. As a tree, its leaves are what it keeps of the point, so that
    functions under `jit` may take and return it; the rest is structure."""

    __slots__ = ("_form", "_linear")

    def __init__(self, linear, form=None):
        self._linear = linear  # a _core.Linear
        self._form = form  # the same without a point, one object for all that share a trace

    def _flatten(self):
        if self._form is None:
            self._form = self._linear.with_residuals([])
        return self._linear.residuals(), self._form

    @classmethod
    def _unflatten(cls, form, residuals):
        return cls(form.with_residuals(list(residuals)), form)


@public_methods
class JVP(_LinearFunction):
    """The derivative of a function at a point, from tangents of its arguments to one of its value:
    what `linearize` returns. `func(*args, *tangents)` is the same call, as of a
    `tree_util.Partial`.

    Attributes: func; args (a tuple of one list: what it keeps of the point); keywords (an empty
    dict).
    """

    keywords = property(lambda self: {})
    args = property(lambda self: (self._flatten()[0],))

    @property
    def func(self):
        form = self._flatten()[1]
        return lambda residuals, *tangents: JVP._unflatten(form, residuals)(*tangents)

    def __call__(self, *tangents):
        return self._linear.push(tangents)


@public_methods
class VJP(_LinearFunction):
    """The transpose of the derivative of a function at a point, from a cotangent of its value to a
    tuple of those of its arguments: what `vjp` and `linear_transpose` return.

    Attributes: in_tree, out_tree (the structures of the arguments, a tuple, and of the value),
    opaque_residuals (a list: what it keeps of the point).
    """

    __slots__ = ("_refs",)

    def __init__(self, linear, form=None, refs=()):
        super().__init__(linear, form)
        self._refs = refs  # the leaves of the arguments that are refs

    def _flatten(self):
        residuals, form = super()._flatten()
        return residuals, (form, self._refs)

    @classmethod
    def _unflatten(cls, static, residuals):
        form, refs = static
        return cls(form.with_residuals(list(residuals)), form, refs)

    in_tree = property(lambda self: self._linear.in_tree().children()[0])
    out_tree = property(lambda self: self._linear.out_tree())
    opaque_residuals = property(lambda self: self._linear.residuals())

    def __call__(self, cotangent):
        if self._refs:
            raise RefError(
                "vjp: expected a ref for the cotangent of each argument that is a ref; got none\n"
                "  Call vjp_fun.with_refs(...)(cotangent)."
            )
        return self._linear.pull(cotangent)

    def with_refs(self, *refs):
        """The same function, which adds cotangents to refs instead of returning them.

        Args:
          refs: for each argument a tree like it. The cotangent of a leaf is added to the ref in its
            place; anything else there, such as True, leaves it a result. None is not a leaf. An
            argument that is a ref needs one.

        Returns a function of the cotangent, whose result has None in the places of refs. Raises
        TreeStructureError for other trees; RefError where an argument is a ref and there is none,
        and, when called, for a ref of another type than its cotangent.
        """
        leaves, tree = registry.flatten(refs)
        if tree != self.in_tree:
            difference = explain_difference(self.in_tree, tree)
            raise TreeStructureError(f"with_refs: expected refs of structure {difference}")
        for i in self._refs:
            if type(leaves[i]) is not _core.Ref:
                raise RefError(
                    "with_refs: expected a ref for the cotangent of an argument that is a ref; got "
                    f"{leaves[i]!r:.60}"
                )

        @public_function
        def pull(cotangent):
            cotangents = registry.flatten(self._linear.pull(cotangent))[0]
            pairs = zip(leaves, cotangents, strict=True)
            return tree.unflatten([_put(x, ct) if type(x) is _core.Ref else ct for x, ct in pairs])

        return pull


def _put(ref, cotangent):
    if (ref.shape, ref.dtype) != (cotangent.shape, cotangent.dtype):
        expected = ShapedArray(cotangent.shape, cotangent.dtype)
        raise RefError(
            f"with_refs: expected a ref of type {expected}, as the cotangent has it; "
            f"got {_core.ref_text(ref)}"
        )
    _core.update_ref("add", ref, ..., cotangent)


for _kind in (JVP, VJP):
    register_pytree_node(_kind, _kind._flatten, _kind._unflatten)


def linearize(fun, *primals, has_aux=False):
    """The value of `fun`, and its derivative at `primals` as a linear function of tangents.

    Returns (value, f_jvp), with has_aux (value, f_jvp, aux). `f_jvp(*tangents)` returns what
    `jvp(fun, primals, tangents)[1]` would, without computing the value again.

    Examples:
      >>> value, push_forward = weft.linearize(lambda x: x**2, 3.0)
      >>> push_forward(1.0), push_forward(10.0)
      (Array(6., dtype=float32, weak_type=True), Array(60., dtype=float32, weak_type=True))
    """
    check_callable(fun, "linearize")
    value, linear, aux = _linearized(fun, primals, has_aux, "linearize")

    f_jvp = JVP(linear)
    return (value, f_jvp, aux) if has_aux else (value, f_jvp)


def vjp(fun, *primals, has_aux=False, reduce_axes=()):
    """The value of `fun`, and a function from a cotangent of it to cotangents of the primals.

    Returns (value, vjp_fun), with has_aux (value, vjp_fun, aux). `vjp_fun(ct)` takes a tree like
    the value and returns a tuple with a cotangent for each primal; those of integers are float0.
    The value is computed once; `vjp_fun` may be called many times.

    Raises TreeStructureError, ShapeError or DTypeError for a cotangent that does not fit.

    A primal may be a ref (weft.new_ref): the derivative is by what it holds before `fun` runs,
    which may write it, and `vjp_fun.with_refs(ref)(ct)` adds the cotangent to another ref.

    `reduce_axes` must be empty.

    Examples:
      >>> value, pull_back = weft.vjp(lambda x, y: x * y, 3.0, 4.0)
      >>> pull_back(1.0)
      (Array(4., dtype=float32, weak_type=True), Array(3., dtype=float32, weak_type=True))
    """
    check_callable(fun, "vjp")
    if reduce_axes:
        raise NotImplementedError(f"reduce_axes: expected (); got {reduce_axes!r}")
    leaves, tree = registry.flatten(primals)
    refs = {i: x for i, x in enumerate(leaves) if type(x) is _core.Ref}
    if refs:
        value, vjp_fun, aux = _vjp_by_refs(fun, leaves, tree, refs, has_aux)
    else:
        value, linear, aux = _linearized(fun, primals, has_aux, "vjp")
        vjp_fun = VJP(linear)
    return (value, vjp_fun, aux) if has_aux else (value, vjp_fun)


def _vjp_by_refs(fun, leaves, tree, refs, has_aux):
    """As vjp, of a function that some of the leaves are refs for: a function of what they hold,
    which also gives what they hold in the end."""
    if len(set(refs.values())) < len(refs):
        raise RefError("vjp: expected every ref once among the arguments; got one twice")

    @named_after(fun)
    def by_values(*primals):
        given = registry.flatten(primals)[0]
        own = {i: _core.new_ref(given[i], False) for i in refs}
        result = fun(*tree.unflatten([own.get(i, x) for i, x in enumerate(given)]))
        value, aux = result if has_aux else (result, None)
        return value, (aux, {i: ref[...] for i, ref in own.items() if ref._written})

    values = [refs[i][...] if i in refs else x for i, x in enumerate(leaves)]
    value, linear, (aux, last) = _linearized(by_values, tree.unflatten(values), True, "vjp")
    _core.set_refs([refs[i] for i in last], list(last.values()))
    return value, VJP(linear, refs=tuple(refs)), aux


def linear_transpose(fun, *primals, reduce_axes=()):
    """The transpose of a function that is linear in its arguments.

    `primals` give shapes and dtypes only: arrays, or objects that have these. The result takes a
    tree like the value of `fun` and returns a tuple like `primals`; it is a tree itself, of what
    `fun` closes over. Raises DTypeError for arguments or results that are bools, and for floats
    among integers. `reduce_axes` is there for compatibility and must be empty.

    Examples:
      >>> transposed = weft.linear_transpose(lambda x: x.sum(), wnp.zeros(3))
      >>> transposed(2.0)
      (Array([2., 2., 2.], dtype=float32),)
    """
    check_callable(fun, "linear_transpose")
    if reduce_axes:
        raise NotImplementedError(f"reduce_axes: expected (); got {reduce_axes!r}")
    leaves, tree = registry.flatten(primals)
    point = [
        x
        if isinstance(x, _core.Tracer)
        else _core.astype(np.zeros(t.shape, t.dtype), t.dtype, t.weak_type)
        for x, t in zip(leaves, (typeof(typed(x)) for x in leaves), strict=True)
    ]
    names = _primal_names(fun, primals, "linear_transpose")
    linear = _core.linear_transpose(fun, function_name(fun), tree.unflatten(point), names)
    return VJP(linear)


def fwd_and_bwd(fun, argnums, has_aux=False, jitted=True):
    """Two functions: one for the value of `fun` and what its derivative needs, and one for the
    cotangents of its arguments.

    Args:
      fun: a function of arrays or trees of arrays.
      argnums: a position or a sequence of positions of the arguments to differentiate in.
      has_aux: `fun` returns (value, aux); aux is not differentiated.
      jitted: whether both run under `jit`; then they are compiled once, whatever the point.

    Returns (fwd, bwd). `fwd(*args)` gives (value, residuals), with has_aux (value, residuals, aux);
    `bwd(residuals, cotangent)` the cotangent of the argument at `argnums`, or a tuple of them.

    Examples:
      >>> forward, backward = weft.fwd_and_bwd(lambda x, y: x * y, argnums=(0, 1))
      >>> value, saved = forward(3.0, 4.0)
      >>> value.item(), [g.item() for g in backward(saved, 1.0)]
      (12.0, [4.0, 3.0])
    """
    from weft._jit import jit

    check_callable(fun, "fwd_and_bwd")
    check_argnums(argnums)
    name = function_name(fun)

    def fwd(*args):
        numbers, _ = positions(argnums, len(args), name)

        def of_chosen(*chosen):
            full = list(args)
            for n, x in zip(numbers, chosen, strict=True):
                full[n] = x
            return fun(*full)

        return vjp(of_chosen, *(args[n] for n in numbers), has_aux=has_aux)

    def bwd(residuals, cotangent):
        cotangents = residuals(cotangent)
        return cotangents if isinstance(argnums, (tuple, list)) else cotangents[0]

    return (jit(fwd), jit(bwd)) if jitted else (fwd, bwd)
