"""Derivatives that users write: custom_jvp, custom_vjp, custom_gradient, closure_convert.

A call of such a function on traced values is one op that holds the function's graph and its rule
(src/ops/control/custom_rules.cpp). The rule is traced when a transform of the C++ core asks for it:
at each call of an un-jitted derivative, so that it is the rule of now. Without a derivative it
never runs.
"""

import functools
import inspect
import itertools
import types
import weakref
from typing import Any

import numpy as np

from weft import _core
from weft._autodiff import argument_names
from weft._recording import (
    call,
    check_callable,
    check_leaves,
    function_name,
    leaf_paths,
)
from weft._surface import named_after
from weft._tree_mismatch import explain_difference
from weft._types.avals import ShapedArray, typeof
from weft.dtypes import float0, is_inexact
from weft.errors import (
    ArgumentTypeError,
    ConcretizationTypeError,
    DTypeError,
    RefError,
    ShapeError,
    TreeStructureError,
    UnexpectedTracerError,
)
from weft.runtime.pytree import registry
from weft.tree_util import register_pytree_node, tree_flatten, tree_leaves, tree_map

_NUMBERS = (bool, int, float, complex, np.generic)
_LEAF = registry.flatten(0)[1]


class SymbolicZero:
    """A tangent or cotangent that is known to be zero, for rules that ask for symbolic zeros.

    Attributes: aval (ShapedArray; of dtype float0 for integers), shape, dtype.
    """

    def __init__(self, aval):
        self.aval = aval

    shape = property(lambda self: self.aval.shape)
    dtype = property(lambda self: self.aval.dtype)
    ndim = property(lambda self: len(self.aval.shape))

    def __repr__(self):
        return f"SymbolicZero({self.aval})"


class CustomVJPPrimal:
    """An argument as the forward rule of a custom_vjp with symbolic zeros gets it.

    Attributes: value (the array), perturbed (whether a derivative with respect to it is taken).
    """

    def __init__(self, value, perturbed):
        self.value, self.perturbed = value, perturbed

    def __repr__(self):
        return f"CustomVJPPrimal(value={self.value}, perturbed={self.perturbed})"


def zero_from_primal(val, symbolic_zeros=False):
    """The zero tangent of a value: an array of zeros, of dtype float0 for integers and bools; with
    `symbolic_zeros` a SymbolicZero."""
    return _zero(typeof(val), symbolic_zeros)


def custom_vjp_primal_tree_values(tree):
    """A tree with the values in place of the CustomVJPPrimals that a forward rule gets."""

    def is_primal(x):
        return isinstance(x, CustomVJPPrimal)

    return tree_map(lambda x: x.value if is_primal(x) else x, tree, is_leaf=is_primal)


def _zero(aval, symbolic):
    if not is_inexact(aval.dtype):
        aval = ShapedArray(aval.shape, float0)
    if symbolic:
        return SymbolicZero(aval)
    if aval.dtype == float0:
        return np.zeros(aval.shape, float0)
    zero = _core.astype(0, aval.dtype)
    if not aval.shape:
        return _core.astype(zero, aval.dtype, True) if aval.weak_type else zero
    return _core.bind("broadcast_in_dim", zero, shape=aval.shape, broadcast_dimensions=())


def _is_zero(x):
    return x is None or isinstance(x, SymbolicZero) or getattr(x, "dtype", None) == float0


def _is_traced(x):
    """Whether a tree has traced leaves, and none that are no arrays or numbers."""
    leaves = tree_leaves(x)
    arrays = all(isinstance(x, (*_NUMBERS, np.ndarray)) or hasattr(x, "aval") for x in leaves)
    return arrays and any(isinstance(x, _core.Tracer) for x in leaves)


def _checked(x, aval, where, converts=False):
    """x as an array of the type `aval`; `where()` says who made it and for what.

    `converts`: another dtype is taken as well, unless it is complex and that of the type is not.
    """
    check_leaves([x], lambda _: where())
    shape, dtype, weak = _core.typeof(x)
    if shape != aval.shape or dtype != aval.dtype:
        expected = ShapedArray(aval.shape, aval.dtype)
        if shape != aval.shape:
            raise ShapeError(f"expected {where()} to be {expected}; got {typeof(x)}")
        is_taken = (
            dtype.kind != "c" or aval.dtype.kind == "c"
            if converts
            else weak and dtype.kind == aval.dtype.kind
        )
        if not is_taken:
            raise DTypeError(f"expected {where()} to be {expected}; got {typeof(x)}")
    return _core.astype(x, aval.dtype)


def _cotangent(ct, aval, where):
    """What a backward rule gives for an argument of the type `aval`, as an array of that type."""
    if not _is_zero(ct):
        return _checked(ct, aval, where, converts=True)
    if isinstance(ct, SymbolicZero) and ct.shape != aval.shape:
        raise ShapeError(f"expected {where()} to be {aval}, or None; got {ct}")
    return _zero(aval, False)


_aval = functools.lru_cache(1024)(
    lambda shape, dtype, weak: ShapedArray(shape, dtype, weak_type=weak)
)


def _flatten(tree):
    """As registry.flatten, at once for what is one traced value."""
    return ([tree], _LEAF) if type(tree) is _core.Tracer else registry.flatten(tree)


def _pair(result, rule, expected):
    if not (isinstance(result, (tuple, list)) and len(result) == 2):
        raise TreeStructureError(f"{rule}: expected a pair ({expected}); got {result!r:.80}")
    return result


def wrap(outer, fun):
    """Makes a function with rules stand for `fun`, the rules of which can be set on it as well."""
    functools.update_wrapper(outer, fun)
    for name in ("defjvp", "defjvps", "defvjp", "def_vmap"):
        if hasattr(fun, name) and not hasattr(outer, name):
            setattr(outer, name, getattr(fun, name))


def positional(kind, name, signature, args, kwargs):
    """The arguments of a call of a function with a rule, all by position; None: no signature."""
    if signature is None:
        if kwargs:
            raise ArgumentTypeError(
                f"{kind}: expected positional arguments for '{name}', whose signature is unknown; "
                f"got {', '.join(kwargs)} by name"
            )
        return args
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError as error:
        raise ArgumentTypeError(f"{kind}: call of '{name}': {error}") from None
    bound.apply_defaults()
    # Defaults of parameters without a position stay with the function.
    by_name = [parameter for parameter in bound.kwargs if parameter in kwargs]
    if by_name:
        raise ArgumentTypeError(
            f"{kind}: expected arguments of '{name}' that have positions; got "
            f"{', '.join(by_name)}, by name only"
        )
    return bound.args


class _CustomFunction:
    """A function with a rule: arguments by position, those that have no derivative apart."""

    _kind = _op = ""
    _traced_parts: tuple[str, ...] = ()
    _follows_from_others = ("_count", "_name", "_signature")  # see weft._fingerprint
    __class_getitem__ = classmethod(types.GenericAlias)

    def _check_rule(self):
        raise NotImplementedError

    def _rule(self, one: Any) -> Any:
        raise NotImplementedError

    def _staged(self, args):
        """Arguments of these, by position, that are operands though they have no derivative."""
        raise NotImplementedError

    def _fixed(self, count):
        """The positions of `nondiff_argnums` in a call with so many arguments."""
        return {n % count for n in self.nondiff_argnums}

    def __init__(self, fun, nondiff_argnums=(), nondiff_argnames=()):
        check_callable(fun, self._kind)
        wrap(self, fun)
        self.fun = fun
        self._name = function_name(fun)
        try:
            self._signature = inspect.signature(fun)
        except (TypeError, ValueError):
            self._signature = None
        nums = [nondiff_argnums] if isinstance(nondiff_argnums, int) else list(nondiff_argnums)
        names = [nondiff_argnames] if isinstance(nondiff_argnames, str) else nondiff_argnames
        parameters = list(self._signature.parameters) if self._signature else []
        for name in names:
            if name not in parameters:
                raise ArgumentTypeError(
                    f"{self._kind}: expected nondiff_argnames to be parameters of '{self._name}' "
                    f"({', '.join(parameters)}); got {name!r}"
                )
            nums.append(parameters.index(name))
        self.nondiff_argnums = tuple(sorted(set(nums)))
        kinds = {p.kind for p in self._signature.parameters.values()} if self._signature else {None}
        positional = {inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD}
        self._count = len(parameters) if kinds <= positional else None

    def __repr__(self):
        return f"<{self._kind} function {self._name}>"

    def __get__(self, instance, owner=None):
        return self if instance is None else functools.partial(self, instance)

    def _rule_codes(self):
        rules = [getattr(self, part) for part in self._traced_parts]
        return [getattr(rule, "__code__", type(rule)) for rule in rules]

    @property
    def _asks_values(self):
        """Whether a rule of this code was found to ask for values of its arguments."""
        return bool(_asking.data) and any(code in _asking for code in self._rule_codes())

    def __call__(self, *args, **kwargs):
        self._check_rule()
        if kwargs or len(args) != self._count:
            args = positional(self._kind, self._name, self._signature, args, kwargs)
        positions = tuple(range(len(args)))
        if self.nondiff_argnums:
            args, positions = self._without_fixed(args)
        where = argument_names(self.fun, args, {}, positions)
        return _core.call_with_rule(
            self._op,
            self.fun,
            self._name,
            args,
            positions,
            where,
            lambda types: self._rule(_Call(self, args, positions, types)),
        )

    def _without_fixed(self, args):
        """(arguments, positions of those that have a derivative)."""
        for n in self.nondiff_argnums:
            if not -len(args) <= n < len(args):
                raise ArgumentTypeError(
                    f"{self._kind}: '{self._name}' was called with {len(args)} arguments; got "
                    f"nondiff_argnums={self.nondiff_argnums}"
                )
        fixed = self._fixed(len(args))
        if staged := self._staged({i: args[i] for i in fixed}):
            fixed -= staged.keys()
            args = tuple(staged.get(i, x) for i, x in enumerate(args))
        return args, tuple(i for i in range(len(args)) if i not in fixed)


_asking: Any = weakref.WeakSet()  # code of rules; functions are often made anew at each call


def _refs_among(leaves, refs, rule):
    """Which of the arguments that are refs stand among residuals: positions, by position."""
    own = {id(ref): i for i, ref in refs.items()}
    held = {k: own.get(id(x)) for k, x in enumerate(leaves) if isinstance(x, _core.Ref)}
    for k, i in held.items():
        if i is None:
            raise RefError(
                f"{rule}: expected refs among its residuals to be arguments of it; got "
                f"{_core.ref_text(leaves[k])}"
            )
    return held


class _Call:
    """One call of a function with a rule: what its rule needs to be traced.

    Of the arguments that have a derivative it holds the types only: the rule that holds this may
    outlive the trace, whose values nobody may hold then.
    """

    def __init__(self, custom, args, positions, types):
        self.custom, self.positions, self.types = custom, positions, types
        self.tree: Any = None
        # Per leaf its value, None where it has no single one; empty for a rule that needs none.
        self.values = []
        self.const_values = []  # likewise of what the function closes over
        if custom._asks_values:
            self.const_values = types.consts.values()
            leaves = registry.flatten(tuple(args[i] for i in positions))[0]
            leaves = [x[...] if isinstance(x, _core.Ref) else x for x in leaves]
            self.values = [
                _core.concrete_value(x) if isinstance(x, _core.Tracer) else x for x in leaves
            ]
        self.nondiff, self.args = (), [None] * len(args)
        if len(positions) < len(args):
            self.args = [None if i in positions else x for i, x in enumerate(args)]
            self.nondiff = [x for i, x in enumerate(args) if i not in positions]

    def open(self):
        """Says what the call takes and gives; most calls are never asked."""
        if self.tree is None:
            self.tree, self.out_tree = self.types.in_tree, self.types.out_tree
            self.avals = [_aval(*t) for t in self.types.in_types]
            self.cells, self.written = self.types.cells, self.types.written
            self.trails = self.types.trails
            kept = [self.avals[i] for i in [*self.written, *self.trails]]
            self.avals += [self.avals[i] for i in self.trails]
            self.out_avals = [_aval(*t) for t in self.types.out_types]
            self.num_results = len(self.out_avals)
            self.out_avals += kept
            self.out_inexact = [is_inexact(a.dtype) for a in self.out_avals]

    def with_refs(self, leaves):
        """The leaves of the arguments, with a ref that holds its value where the caller gave one;
        and these refs, by position."""
        leaves = leaves[: self.tree.num_leaves]
        refs = {i: _core.new_ref(leaves[i], False) for i in self.cells}
        return [refs.get(i, x) for i, x in enumerate(leaves)], refs

    def last_values(self, refs, rule):
        """What the refs hold that the function writes, once a rule has run on `refs`."""
        for i, ref in refs.items():
            if ref._written and i not in self.written:
                raise RefError(
                    f"{rule}: expected writes to refs that '{self.custom._name}' itself writes; "
                    f"got one to {self.where(i)}, {_core.ref_text(ref)}"
                )
        return [refs[i][...] for i in self.written]

    def full(self, diff):
        """All arguments, with `diff` in the places of those that have a derivative."""
        args = list(self.args)
        for i, x in zip(self.positions, diff, strict=True):
            args[i] = x
        return args

    def split(self, leaves):
        """The arguments of `nondiff_argnums`, and a tuple of the others; of these leaves."""
        args = self.full(self.tree.unflatten(leaves))
        if not self.custom.nondiff_argnums:
            return [], tuple(args)
        fixed = self.custom._fixed(len(args))
        others = tuple(x for i, x in enumerate(args) if i not in fixed)
        return [args[i] for i in sorted(fixed)], others

    def where(self, i):
        """Names leaf i of the arguments that have a derivative."""
        args = self.full(self.tree.unflatten(range(self.tree.num_leaves)))
        return argument_names(self.custom.fun, tuple(args), {}, self.positions)(i)

    def results(self, values, rule):
        """The leaves of what a rule gives for the function's value, checked."""
        leaves, tree = _flatten(values)
        if tree != self.out_tree:
            raise TreeStructureError(
                f"{rule}: expected the result of '{self.custom._name}', of structure "
                f"{explain_difference(self.out_tree, tree)}"
            )
        return [
            _checked(x, aval, lambda i=i: f"result{leaf_paths(tree)[i]} of {rule}")
            for i, (x, aval) in enumerate(
                zip(leaves, self.out_avals[: self.num_results], strict=True)
            )
        ]


def _trace(one, function, avals, rule, values, consts=None):
    """The graph of a rule; `values` are those of its first arguments, as far as they are known.

    With `consts` what the function closes over comes before the arguments.
    """
    if values and all(x is None for x in values):
        values = []
    try:
        return _core.trace_rule(function, avals, rule, values, consts)
    except ConcretizationTypeError:
        # The derivative that asked for it starts again, with values (csrc/transforms/rules.h).
        if not one.custom._asks_values:
            _asking.update(one.custom._rule_codes())
            _core.note_asked_values()
        raise


class custom_jvp(_CustomFunction):
    """Gives a function a derivative of its own, for forward and reverse mode.

    Args:
      fun: a function of arrays or trees of arrays.
      nondiff_argnums: positions of arguments that are no arrays or have no derivative; the rule
        gets them first. Derivatives with respect to arrays among them are zero.
      nondiff_argnames: the same by name.

    Set the rule with `defjvp` or `defjvps`. Calls that no derivative is taken of run `fun`.
    A derivative with respect to what `fun` closes over raises UnexpectedTracerError: pass it as an
    argument (`closure_convert` helps).

    Examples:
      >>> @weft.custom_jvp
      ... def clipped(x):
      ...     return wnp.clip(x, 0, 1)
      >>> clipped.defjvps(lambda t, value, x: t)
      >>> weft.grad(clipped)(5.0)
      Array(1., dtype=float32, weak_type=True)
    """

    _kind = "custom_jvp"
    _op = "custom_jvp_call"
    _traced_parts = ("fun", "jvp")

    def __init__(self, fun, nondiff_argnums=(), nondiff_argnames=()):
        super().__init__(fun, nondiff_argnums, nondiff_argnames)
        self.jvp: Any = None
        self.symbolic_zeros = False

    def defjvp(self, jvp, symbolic_zeros=False):
        """Sets the rule and returns it.

        Args:
          jvp: jvp(*nondiff, primals, tangents) -> (result, tangent). `primals` and `tangents` are
            tuples like the arguments; `result` is what the function returns, and `tangent` has the
            same tree, shapes and dtypes. It must be linear in the tangents.
          symbolic_zeros: tangents that are known to be zero are passed as SymbolicZero objects (and
            may be returned so); else as arrays of zeros.
        """
        check_callable(jvp, "defjvp")
        self.jvp, self.symbolic_zeros = jvp, symbolic_zeros
        return jvp

    def defjvps(self, *jvps):
        """Sets the rule argument by argument.

        Each of `jvps` is a function jvp(tangent, result, *primals) that gives one argument's
        contribution to the tangent of the result, or None where that is zero.
        """
        if self.nondiff_argnums:
            raise TypeError("defjvps cannot be used with nondiff_argnums; use defjvp")

        def jvp(primals, tangents):
            if len(jvps) != len(primals):
                raise ArgumentTypeError(
                    f"defjvps: expected one rule per argument of '{self._name}', "
                    f"{len(primals)}; got {len(jvps)}"
                )
            result = self(*primals)
            leaves, tree = registry.flatten(result)
            sums = [None] * len(leaves)
            for rule, t in zip(jvps, tangents, strict=True):
                ts, t_tree = registry.flatten(t)
                if rule is None or all(map(_is_zero, ts)):
                    continue
                whole = t_tree.unflatten([_zero(x.aval, False) if _is_zero(x) else x for x in ts])
                part, part_tree = registry.flatten(rule(whole, result, *primals))
                if part_tree != tree:
                    raise TreeStructureError(
                        f"{function_name(rule)}: expected a tangent of the result of "
                        f"'{self._name}', of structure "
                        f"{explain_difference(tree, part_tree)}"
                    )
                sums = [p if s is None else s + p for s, p in zip(sums, part, strict=True)]
            tangent = [
                SymbolicZero(typeof(x)) if s is None else s
                for s, x in zip(sums, leaves, strict=True)
            ]
            return result, tree.unflatten(tangent)

        self.defjvp(jvp, symbolic_zeros=True)

    def _staged(self, args):
        # The rule may run when the trace that they belong to has ended, as one of vmap has.
        def constant(leaf):
            return _core.bind("stop_gradient", leaf)

        return {i: tree_map(constant, x) for i, x in args.items() if _is_traced(x)}

    def _check_rule(self):
        if self.jvp is None:
            raise AttributeError(f"'{self._name}' has no jvp rule: set one with defjvp")

    def _rule(self, one):
        jvp, symbolic = self.jvp, self.symbolic_zeros

        def trace(mask):
            name = f"the jvp rule of '{self._name}'"
            one.open()
            out_mask = None

            def flat(values):
                nonlocal out_mask
                primals, given = values[: len(mask)], iter(values[len(mask) :])
                tangents = [
                    next(given) if m else _zero(aval, symbolic)
                    for m, aval in zip(mask, one.avals, strict=True)
                ]
                primals, refs = one.with_refs(primals)
                nondiff, primals = one.split(primals)
                _, tangents = one.split(tangents)
                result = jvp(*nondiff, primals, tangents)
                value, tangent = _pair(result, name, "result, tangent")
                outputs = one.results(value, name) + one.last_values(refs, name)
                leaves, tree = _flatten(tangent)
                if tree != one.out_tree:
                    raise TreeStructureError(
                        f"{name}: expected a tangent of the same structure as the result, "
                        f"{explain_difference(one.out_tree, tree)}"
                    )
                out_mask = [
                    inexact and not _is_zero(t)
                    for inexact, t in zip(one.out_inexact, leaves, strict=False)
                ] + [False] * len(one.written)

                def where(i):
                    return f"the tangent of result{leaf_paths(tree)[i]} from {name}"

                dots = [
                    _checked(t, a, functools.partial(where, i))
                    for i, (t, a, m) in enumerate(
                        zip(leaves, one.out_avals, out_mask, strict=False)
                    )
                    if m
                ]
                return outputs + dots

            moving = [aval for aval, m in zip(one.avals, mask, strict=True) if m]
            consts = one.types.consts
            return _trace(one, flat, [*one.avals, *moving], name, one.values, consts), out_mask

        return _core.jvp_rule(trace)


class custom_vjp(_CustomFunction):
    """Gives a function a reverse-mode derivative of its own.

    Args:
      fun: a function of arrays or trees of arrays.
      nondiff_argnums: positions of arguments that are no arrays or have no derivative; `bwd` gets
        them first, `fwd` where the function does.
      nondiff_argnames: the same by name.

    Set the rule with `defvjp`. Calls that no derivative is taken of run `fun`. Forward mode (jvp,
    jacfwd, linearize) of such a function raises TypeError; derivatives of its derivatives are those
    of `fwd` and `bwd`.

    Examples:
      >>> reverse = weft.custom_vjp(lambda x: x)
      >>> reverse.defvjp(lambda x: (x, None), lambda saved, g: (-g,))
      >>> weft.grad(lambda x: 3 * reverse(x))(1.0)
      Array(-3., dtype=float32, weak_type=True)
    """

    _kind = "custom_vjp"
    _op = "custom_vjp_call"
    _traced_parts = ("fun", "fwd", "bwd")

    def __init__(self, fun, nondiff_argnums=(), nondiff_argnames=()):
        super().__init__(fun, nondiff_argnums, nondiff_argnames)
        self.fwd: Any = None
        self.bwd: Any = None
        self.symbolic_zeros = False

    def defvjp(self, fwd, bwd, symbolic_zeros=False, optimize_remat=False):
        """Sets the rule.

        Args:
          fwd: takes what the function takes; returns (result, residuals), where the residuals are
            any tree of arrays.
          bwd: bwd(*nondiff, residuals, cotangent) -> a tuple with one entry per argument that has a
            derivative, like that argument; None in place of an entry or of a part of it is zero.
            Arguments that are refs may be among the residuals; then `bwd` may write them.
          symbolic_zeros: `fwd` gets its arguments' leaves as CustomVJPPrimal objects, and `bwd` a
            SymbolicZero for every cotangent that is known to be zero.
          optimize_remat: accepted for compatibility, but not with `symbolic_zeros`; has no effect.
        """
        check_callable(fwd, "defvjp")
        check_callable(bwd, "defvjp")
        if symbolic_zeros and optimize_remat:
            raise NotImplementedError("defvjp: expected symbolic_zeros or optimize_remat; got both")
        self.fwd, self.bwd, self.symbolic_zeros = fwd, bwd, symbolic_zeros

    def _check_rule(self):
        if self.fwd is None:
            raise AttributeError(f"'{self._name}' has no vjp rule: set one with defvjp")

    def _staged(self, args):
        for x in tree_leaves(args):
            if isinstance(x, _core.Tracer):
                raise UnexpectedTracerError(
                    f"custom_vjp: expected no traced value among the nondiff_argnums of "
                    f"'{self._name}', whose backward rule runs in another trace; got {x!r}\n"
                    "  Pass it as an argument with a derivative, for which the backward rule may "
                    "return None."
                )
        return {}

    def _rule(self, one):
        fwd, symbolic = self.fwd, self.symbolic_zeros

        def trace(mask):
            name = f"the forward rule of '{self._name}'"
            one.open()
            residual_tree, numbers, held = None, {}, {}

            def flat(values):
                nonlocal residual_tree, numbers, held
                trails = values[one.tree.num_leaves :]
                given, refs = one.with_refs(values)
                if symbolic:
                    given = [CustomVJPPrimal(x, m) for x, m in zip(given, mask, strict=False)]
                result = fwd(*one.full(one.tree.unflatten(given)))
                value, residuals = _pair(result, name, "result, residuals")
                outputs = one.results(value, name) + one.last_values(refs, name) + trails
                leaves, residual_tree = _flatten(residuals)
                held = _refs_among(leaves, refs, name)
                leaves = [refs[held[i]][...] if i in held else x for i, x in enumerate(leaves)]
                check_leaves(leaves, lambda i: f"residuals{leaf_paths(residual_tree)[i]} of {name}")
                # Numbers stay what they are, for a rule that decides something by them.
                numbers = {i: x for i, x in enumerate(leaves) if isinstance(x, _NUMBERS)}
                return [*outputs, *leaves]

            graph = _trace(one, flat, one.avals, name, one.values, one.types.consts)
            kept = [_aval(*t, False) for t in graph.out_types[len(one.out_avals) :]]
            differentiable = [a for a, i in zip(one.out_avals, one.out_inexact, strict=True) if i]
            values = []
            known = [*one.const_values, *one.values]
            if known and all(x is not None for x in known):
                values = call(graph, known)[len(one.out_avals) :]
            backward = self._backward(one, mask, residual_tree, kept, numbers, values, held)
            return graph, backward, differentiable

        return _core.vjp_rule(trace)

    def _backward(self, one, mask, residual_tree, kept, numbers, values, held):
        bwd, symbolic = self.bwd, self.symbolic_zeros
        name = f"the backward rule of '{self._name}'"

        def trace(ct_mask):
            given = iter(ct_mask)
            present = [inexact and next(given) for inexact in one.out_inexact]

            def flat(values):
                own = [numbers.get(i, x) for i, x in enumerate(values[: len(kept)])]
                given = iter(values[len(kept) :])
                cts = [
                    next(given) if p else _zero(a, symbolic and i < one.num_results)
                    for i, (p, a) in enumerate(zip(present, one.out_avals, strict=True))
                ]
                first = one.num_results + len(one.written)
                refs = {
                    i: _core.new_ref(ct, False)
                    for i, ct in zip(one.trails, cts[first:], strict=True)
                }
                fixed = {}
                for k, i in held.items():
                    if i not in refs:
                        refs[i] = fixed[i] = _core.new_ref(own[k], False)
                    own[k] = refs[i]
                residuals = residual_tree.unflatten(own)
                result = bwd(
                    *one.nondiff, residuals, one.out_tree.unflatten(cts[: one.num_results])
                )
                for i, ref in fixed.items():
                    if ref._written:
                        raise RefError(
                            f"{name}: expected writes to refs of floats that are whole; got one "
                            f"to {one.where(i)}, {_core.ref_text(ref)}"
                        )
                leaves = self._cotangents(one, result, name)
                leaves += [refs[i][...] for i in one.trails]
                return [
                    _cotangent(ct, aval, lambda i=i: f"the cotangent of {one.where(i)} from {name}")
                    for i, (ct, aval, m) in enumerate(zip(leaves, one.avals, mask, strict=True))
                    if m
                ]

            moving = [a for a, p in zip(one.out_avals, present, strict=True) if p]
            return _trace(one, flat, [*kept, *moving], name, values)

        return trace

    def _cotangents(self, one, result, name):
        """One cotangent per leaf of the arguments, None where it is zero."""
        count = len(one.positions)
        if not isinstance(result, (tuple, list)) or len(result) != count:
            is_tuple = isinstance(result, (tuple, list))
            got = f"a tuple of {len(result)}" if is_tuple else type(result).__name__
            hint = "" if is_tuple or count != 1 else "\n  Write `return (cotangent,)`."
            raise TreeStructureError(
                f"{name}: expected a tuple of {count}, one entry per argument that has a "
                f"derivative; got {got}{hint}"
            )
        out = []
        arguments = one.tree.unflatten(range(one.tree.num_leaves))
        for position, argument, cotangent in zip(one.positions, arguments, result, strict=True):
            if type(argument) is int and (cotangent is None or type(cotangent) is _core.Tracer):
                out.append(cotangent)
                continue
            leaves, tree = tree_flatten(cotangent, is_leaf=lambda x: x is None)
            try:
                parts = tree.flatten_up_to(argument)
            except (ValueError, TypeError):
                parts = None
            sizes = parts and [len(registry.flatten(p)[0]) for p in parts]
            if parts is None or any(
                n != 1 and ct is not None for n, ct in zip(sizes or [], leaves, strict=True)
            ):
                raise TreeStructureError(
                    f"{name}: expected a cotangent of the structure of argument {position} of "
                    f"'{self._name}', {explain_difference(registry.flatten(argument)[1], tree)}"
                )
            for ct, n in zip(leaves, sizes or [], strict=True):
                out += [ct] if ct is not None else [None] * n
        return out


class _Rule:
    """What the forward rule of a custom_gradient passes on: a traced function and its captures."""

    def __init__(self, graph, captures, out_tree):
        self.graph, self.captures, self.out_tree = graph, captures, out_tree


register_pytree_node(
    _Rule,
    lambda r: (tuple(r.captures), (r.graph, r.out_tree)),
    lambda static, captures: _Rule(static[0], list(captures), static[1]),
)


def custom_gradient(fun):
    """Gives a function a derivative of its own, which it returns beside its value.

    Args:
      fun: returns (result, vjp), where vjp(cotangent) returns a tuple of cotangents of the
        arguments (for one argument it may be that cotangent itself). The cotangent of an integer
        is an array of zeros of dtype float0.

    Returns a function of the same arguments that gives the result. Forward mode through it raises
    TypeError.

    Examples:
      >>> @weft.custom_gradient
      ... def scaled(x):
      ...     return x, lambda g: 10 * g
      >>> weft.grad(scaled)(1.0)
      Array(10., dtype=float32, weak_type=True)
    """
    check_callable(fun, "custom_gradient")
    name = function_name(fun)

    @named_after(fun)
    def value(*args):
        return _pair(fun(*args), f"'{name}'", "result, vjp")[0]

    wrapped = custom_vjp(value)

    def fwd(*args):
        result, vjp = _pair(fun(*args), f"'{name}'", "result, vjp")
        leaves, tree = registry.flatten(result)
        avals = [typeof(x) for x in leaves]
        moves = [is_inexact(aval.dtype) for aval in avals]
        out_tree = None

        def flat(cotangents):
            nonlocal out_tree
            given = iter(cotangents)
            cotangents = [
                next(given) if m else _zero(a, False) for m, a in zip(moves, avals, strict=True)
            ]
            cts = vjp(tree.unflatten(cotangents))
            whole = isinstance(cts, (tuple, list)) and len(cts) == len(args)
            cts = tuple(cts) if whole and (len(args) != 1 or not isinstance(cts, list)) else (cts,)
            leaves, out_tree = registry.flatten(cts)
            return leaves

        graph, captures, _, _ = _core.trace_body(
            flat, list(itertools.compress(avals, moves)), name, None, f"the vjp of '{name}'"
        )
        captures = _core.captured_values(captures)
        return result, _Rule(graph, captures, out_tree)

    def bwd(rule, cotangent):
        cts = [ct for ct in registry.flatten(cotangent)[0] if not _is_zero(ct)]
        return rule.out_tree.unflatten(call(rule.graph, [*rule.captures, *cts]))

    wrapped.defvjp(fwd, bwd)
    return wrapped


def closure_convert(fun, *example_args):
    """Makes the differentiated values that a function closes over arguments of it.

    Args:
      fun: a function of arrays or trees of arrays.
      example_args: arguments of the types that it will be called with.

    Returns (converted, values): converted(*args, *values) is fun(*args), with `values` the traced
    floating-point arrays that `fun` closes over; so custom rules can differentiate with respect to
    them.

    The converted function raises TreeStructureError for arguments of another structure.

    Examples:
      >>> def scaled_by(a):
      ...     return weft.closure_convert(lambda x: a * x, 0.0)
      >>> def value(a):
      ...     f, held = scaled_by(a)
      ...     return f(3.0, *held)
      >>> weft.grad(value)(2.0)
      Array(3., dtype=float32, weak_type=True)
    """
    check_callable(fun, "closure_convert")
    leaves, tree = registry.flatten(example_args)
    out_tree: Any = None

    def flat(values):
        nonlocal out_tree
        leaves, out_tree = registry.flatten(fun(*tree.unflatten(values)))
        return leaves

    avals = [typeof(x) for x in leaves]
    name = function_name(fun)
    graph, captures, weak, _ = _core.trace_body(
        flat, avals, name, None, f"'{name}', given to closure_convert"
    )
    captures = _core.captured_values(captures)
    hoisted = [isinstance(c, _core.Tracer) and is_inexact(typeof(c).dtype) for c in captures]
    values = [c for c, h in zip(captures, hoisted, strict=True) if h]

    def converted(*args):
        count = len(args) - len(values)
        given, closed = args[:count], iter(args[count:])
        leaves, got = registry.flatten(given)
        if got != tree:
            raise TreeStructureError(
                f"'{function_name(fun)}' was converted for arguments of structure "
                f"{explain_difference(tree, got)}"
            )
        consts = [next(closed) if h else c for c, h in zip(captures, hoisted, strict=True)]
        return out_tree.unflatten(call(graph, [*consts, *leaves], weak))

    return converted, values
