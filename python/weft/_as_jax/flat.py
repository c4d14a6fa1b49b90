"""Functions over leaves and what is known of their results, as libraries ask jax.api_util,
jax.extend.linear_util and jax.interpreters.partial_eval for it."""

from typing import Any, NamedTuple

from weft import _core
from weft._absent import explanation, is_known
from weft._stages.options import complete
from weft._stages.program import make_jaxpr
from weft._types.avals import ShapeDtypeStruct
from weft.extend.core.primitives import jit_p
from weft.runtime.devices import device_at
from weft.runtime.processes import joined
from weft.runtime.pytree import registry
from weft.tree_util import tree_broadcast


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


def transformation(gen):
    """A generator as a function from WrappedFun to WrappedFun.

    The generator yields arguments and keyword arguments, is sent the result, and yields its own.
    """
    return lambda fun, *static: transformation_with_aux(_without_aux(gen))(fun, *static)[0]


def _without_aux(gen):
    def with_aux(*args, **kwargs):
        running = gen(*args, **kwargs)
        result = yield next(running)
        yield running.send(result), None

    return with_aux


def transformation_with_aux(gen):
    """As `transformation`, for a generator that yields (its result, something else); gives
    (WrappedFun, function that tells the latter after a call)."""

    def call(fun, store, *args, **kwargs):
        running = gen(*args, **kwargs)
        given, named = next(running)
        result, aux = running.send(fun(*given, **named))
        store.store(aux)
        return result

    return transformation_with_aux2(call)


def transformation2(call):
    """A function call(function, *static, *args) as one from WrappedFun to WrappedFun."""

    def transformed(fun, *static):
        return WrappedFun(lambda *args, **kw: call(fun.call_wrapped, *static, *args, **kw))

    return transformed


def transformation_with_aux2(call):
    """As `transformation2`, for call(function, store, *static, *args), which fills the Store; gives
    (WrappedFun, function that tells what is stored)."""

    def transformed(fun, *static):
        store = Store()
        wrapped = WrappedFun(
            lambda *args, **kw: call(fun.call_wrapped, store, *static, *args, **kw)
        )
        return wrapped, lambda: store.val

    return transformed


class StoreException(Exception):
    """A Store that has a value gets another one, or one that has none is asked for it."""


class Store:
    """A place for one value."""

    def __init__(self):
        self._values = []

    def store(self, val):
        if self._values:
            raise StoreException("the store has a value")
        self._values.append(val)

    @property
    def val(self):
        if not self._values:
            raise StoreException("the store has no value yet")
        return self._values[0]


def merge_linear_aux(aux1, aux2):
    """(whether the first of two functions that tell what was stored has it, what is stored)."""
    try:
        return True, aux1()
    except StoreException:
        return False, aux2()


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


def argnums_partial(f, dyn_argnums, args, require_static_args_hashable=True):
    """(the function of the arguments at some positions, those arguments); the others stay as given.

    Raises ValueError for another argument that cannot be hashed, if these are required to be.
    """
    dynamic = {
        n % len(args) for n in ([dyn_argnums] if isinstance(dyn_argnums, int) else dyn_argnums)
    }
    for i, value in enumerate(args):
        if i not in dynamic and require_static_args_hashable and type(value).__hash__ is None:
            raise ValueError(f"expected a static argument that can be hashed; got {value!r}")

    def call(*given, **kwargs):
        rest = iter(given)
        merged = [next(rest) if i in dynamic else value for i, value in enumerate(args)]
        return f.call_wrapped(*merged, **kwargs)

    return WrappedFun(call), tuple(args[i] for i in sorted(dynamic))


def flatten_axes(name, treedef, axis_tree, *, kws=False, tupled_args=False):
    """The leaves of `axis_tree`, a tree that begins as `treedef` does, each as often as `treedef`
    has leaves below it; None is a leaf.

    With `kws`, `treedef` is that of (args, kwargs), and keyword arguments have axis 0. Raises
    ValueError, which says `name`, for another tree; `tupled_args` has no effect.
    """
    if kws:
        axis_tree = (axis_tree, 0)
    try:
        whole = tree_broadcast(axis_tree, treedef.unflatten([0] * treedef.num_leaves), _is_none)
        return registry.flatten(whole, _is_none)[0]
    except ValueError as error:
        raise ValueError(
            f"{name} expected a tree that begins as {treedef} does; got {axis_tree}"
        ) from error


def _is_none(x):
    return x is None


def rebase_donate_argnums(donate_argnums, static_argnums):
    """Positions of donated arguments among those that are not static."""
    static = sorted(static_argnums)
    return tuple(sorted(n - sum(s < n for s in static) for n in donate_argnums))


def donation_vector(donate_argnums, donate_argnames, in_tree, kws=True):
    """Whether each leaf of arguments is donated; `in_tree` is that of (args, kwargs), or of args
    without `kws`."""
    args, kwargs = in_tree.children() if kws else (in_tree, None)
    donated = []
    for i, each in enumerate(args.children()):
        donated += [i in donate_argnums] * each.num_leaves
    if kwargs is not None:
        for name, each in zip(kwargs.node_data()[1], kwargs.children(), strict=True):
            donated += [name in donate_argnames] * each.num_leaves
    return tuple(donated)


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


class NotThere:
    """A part of JAX's inside that weft has no counterpart of, for imports: it may be wrapped,
    derived from, and asked for as a class, of which nothing of weft is an instance. A call of it
    raises."""

    def __new__(cls, *args, **kwargs):
        if NotThere in cls.__bases__:
            name = f"{cls.__module__}.{cls.__qualname__}"
            path = name.removeprefix("jax.")
            raise NotImplementedError(
                explanation(path)
                if is_known(path)
                else f"{name} is a part of the inside of JAX that weft has no counterpart of"
            )
        return super().__new__(cls)

    def __init__(self, *args, **kwargs):
        pass


def not_there(path):
    """The NotThere of a name of jax."""
    module, _, name = path.rpartition(".")
    return type(name, (NotThere,), {"__module__": module, "__weft_stand_in__": True})


class Effects:
    """A set of classes of effects that nothing asks."""

    def add_type(self, effect_type):
        pass


class JaxprTypeError(TypeError):
    """JAX's error for programs that are not well typed; weft raises others."""


def safe_map(f, *rows):
    """The results of f on rows of equal lengths, as a list. Raises ValueError for other rows."""
    return [f(*each) for each in zip(*rows, strict=True)]


def safe_zip(*rows):
    """The tuples of rows of equal lengths, as a list. Raises ValueError for other rows."""
    return list(zip(*rows, strict=True))


def _parted(tree):
    """(the children of a node of a tree, what makes such a node of others)."""
    return registry.flatten(tree, lambda x: x is not tree)


def one_level(tree):
    """(the children of a node of a tree, what else it is made of).

    Raises ValueError for a leaf.
    """
    if type(tree) not in NodeClasses():
        raise ValueError(f"expected a node of a tree; got {tree!r}")
    children, treedef = _parted(tree)
    return children, treedef.node_data()[1]


@property
def addressable_devices(sharding):
    """The devices of this process among those of a Sharding, in its order."""
    return tuple(
        d for d in map(device_at, sharding._core.mesh.devices) if d in sharding.addressable_devices
    )


class Processes:
    """This process among those that joined, as `jax._src.distributed.global_state` tells it."""

    num_processes = property(lambda self: joined().num_processes if joined() else 1)
    process_id = property(lambda self: joined().process_id if joined() else 0)
    client = property(lambda self: joined().client if joined() else None)


def _joined(treedef, children):
    return treedef.unflatten(children)


class _NodeClass(NamedTuple):
    to_iter: Any = _parted
    from_iter: Any = _joined


class NodeClasses:
    """The classes that are nodes of trees, for `in`, and how nodes are taken apart and made."""

    def __contains__(self, cls):
        return cls is type(None) or registry.is_node(cls)

    def __getitem__(self, cls):
        if cls not in self:
            raise KeyError(cls)
        return _NodeClass()
