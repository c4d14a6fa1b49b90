"""Functions over leaves and what is known of their results, as libraries ask jax.api_util,
jax.extend.linear_util and jax.interpreters.partial_eval for it."""

from typing import Any, NamedTuple

from weft import _core
from weft._stages.options import complete
from weft._stages.program import make_jaxpr
from weft._types.avals import ShapeDtypeStruct
from weft.extend.core.primitives import jit_p
from weft.runtime.pytree import registry


class WrappedFun:
    """A function; `call_wrapped` calls it."""

    def __init__(self, function):
        self.f = function
        self.__name__ = getattr(function, "__name__", "function")

    def call_wrapped(self, *args, **kwargs):
        return self.f(*args, **kwargs)


def wrap_init(f, params=None, *, debug_info=None):
    """A function with keyword arguments as a WrappedFun; `debug_info` has no effect."""
    given = params or {}
    return WrappedFun(lambda *args, **kwargs: f(*args, **given, **kwargs))


def debug_info(*args, **kwargs):
    """None; the arguments have no effect."""
    return


def flatten_fun(fun, in_tree):
    """(the function from leaves of (args, kwargs) to the leaves of its result, a function that
    tells the result's structure after a call)."""
    return _flattened(fun, in_tree, lambda args, kwargs: fun.call_wrapped(*args, **kwargs))


def flatten_fun_nokwargs(fun, in_tree):
    """As `flatten_fun`, for leaves of the arguments by position alone."""
    return _flattened(fun, in_tree, lambda *args: fun.call_wrapped(*args))


def infer_argnums_and_argnames(signature, argnums, argnames):
    """Positions and names that name the same parameters of an inspect.Signature, from either."""

    def function(*args, **kwargs): ...

    function.__signature__ = signature
    return complete(function, argnums, argnames, "arg")


def _flattened(fun, in_tree, call):
    trees = []

    def flat(*leaves):
        out, tree = registry.flatten(call(*in_tree.unflatten(leaves)))
        trees.append(tree)
        return out

    return WrappedFun(flat), lambda: trees[-1]


class Trace:
    """What all tracers belong to; libraries ask whether two of them are of one `main`."""

    main = None


class PartialVal(NamedTuple):
    """A type whose value is not known, or None and a value that is."""

    pval: Any
    const: Any

    @classmethod
    def unknown(cls, aval):
        return cls(aval, None)

    @classmethod
    def known(cls, const):
        return cls(None, const)


_UNKNOWN = object()


def trace_to_jaxpr_nounits(fun, pvals, instantiate=False):
    """(None, a PartialVal per result, []): what a function gives where only some of its arguments
    are known. Only what depends on known values is computed; `instantiate` has no effect."""

    def run(*unknown):
        rest = iter(unknown)
        return fun.call_wrapped(*(c if aval is None else next(rest) for aval, c in pvals))

    avals = [aval for aval, _ in pvals if aval is not None]
    types = [ShapeDtypeStruct(a.shape, a.dtype, weak_type=a.weak_type) for a in avals]
    closed: Any = make_jaxpr(run)(*types)
    results = _known_results(closed.jaxpr, closed.consts, [_UNKNOWN] * len(types))
    out = []
    for value, aval in zip(results, closed.out_avals, strict=True):
        out.append(PartialVal.unknown(aval) if value is _UNKNOWN else PartialVal.known(value))
    return None, out, []


def _known_results(jaxpr, consts, args):
    """The results of a program that depend on known arguments only; _UNKNOWN in place of others."""
    known = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*consts, *args], strict=True))

    def read(v):
        return v.val if isinstance(v, _core.Literal) else known[v]

    for eqn in jaxpr.eqns:
        values = [read(v) for v in eqn.invars]
        if all(value is not _UNKNOWN for value in values) and not eqn.effects:
            results = eqn.primitive.bind(*values, **eqn.params)
            results = results if eqn.primitive.multiple_results else [results]
        elif eqn.primitive is jit_p:
            inner = eqn.params["jaxpr"]
            results = _known_results(inner.jaxpr, inner.consts, values)
        else:
            results = [_UNKNOWN] * len(eqn.outvars)
        known.update(zip(eqn.outvars, results, strict=True))
    return [read(v) for v in jaxpr.outvars]


class Named:
    """What libraries derive classes of operations and types of JAX's inside from; nothing of weft
    is an instance of it."""

    def __init__(self, *args, **kwargs):
        pass


class Effects:
    """A set of classes of effects that nothing asks."""

    def add_type(self, effect_type):
        pass


class NodeClasses:
    """The classes that are nodes of trees, for `in`."""

    def __contains__(self, cls):
        return cls is type(None) or registry.is_node(cls)
