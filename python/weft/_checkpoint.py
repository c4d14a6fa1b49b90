"""checkpoint: values that are computed again in the backward pass instead of being kept.

The op and what its derivative keeps are in src/ops/control/checkpoint.cpp.
"""

import functools
import operator
from typing import Any, NamedTuple

from weft import _core
from weft._autodiff import vjp
from weft._recording import check_callable, function_name, name_argument
from weft._stages.program import make_jaxpr
from weft._surface import named_after, public_function
from weft._tracing.signature import signature_of
from weft.dtypes import is_inexact
from weft.errors import AttributeValueError
from weft.runtime.pytree import registry
from weft.tree_util import tree_map


class Policy:
    """Says which values a checkpointed function keeps for the backward pass.

    Called as policy(primitive, *types, **params) -> bool, as policies that users write are.
    """

    def __init__(self, kind, *names):
        self._kind, self._names = kind, names
        self._object = _core.builtin_policy(kind, list(names))

    def __call__(self, primitive, *types, **params):
        name = primitive if isinstance(primitive, str) else primitive.name
        return _core.policy_saves(self._object, name, params)

    def __repr__(self):
        return f"checkpoint_policies.{self._kind}" + (f"{self._names!r}" if self._names else "")


class _Decision:
    """What a policy may return in place of True or False."""

    def __init__(self, name, saves):
        self._name, self._saves = name, saves

    def __bool__(self):
        return self._saves

    def __repr__(self):
        return self._name


Saveable = _Decision("Saveable", True)
Recompute = _Decision("Recompute", False)


class Offloadable(NamedTuple):
    """What a policy returns for values to keep in another memory, from which they come back.

    Programs use the memory of their device only, so such values are kept there. Attributes: src,
    dst (kinds of memory, such as "device" and "pinned_host").
    """

    src: str
    dst: str


class checkpoint_policies:
    """The policies that come with weft, for the option `policy` of `checkpoint`.

    everything_saveable: all values are kept, as without checkpoint.
    nothing_saveable: only arguments are kept (the default).
    dots_saveable (checkpoint_dots): results of matrix products are kept.
    dots_with_no_batch_dims_saveable: results of matrix products without batch dimensions are kept.
    save_only_these_names(*names): values given one of these names with `checkpoint_name` are kept.
    save_any_names_but_these(*names): named values with another name are kept.
    save_anything_except_these_names(*names): all values but those with these names are kept.
    save_from_both_policies(p, q): what either policy keeps is kept.
    offload_dot_with_no_batch_dims(offload_src, offload_dst): results of matrix products without
      batch dimensions are kept in another memory; see `Offloadable`.
    save_and_offload_only_these_names(*, names_which_can_be_saved, names_which_can_be_offloaded,
      offload_src, offload_dst): values with one of these names are kept, some in another memory.

    Examples:
      >>> policy = weft.checkpoint_policies.dots_saveable
      >>> f = weft.checkpoint(lambda x: wnp.sin(x @ x), policy=policy)
      >>> weft.grad(f)(wnp.zeros(2))
      Array([0., 0.], dtype=float32)
    """

    everything_saveable = Policy("everything_saveable")
    nothing_saveable = Policy("nothing_saveable")
    dots_saveable = checkpoint_dots = Policy("dots_saveable")
    dots_with_no_batch_dims_saveable = Policy("dots_with_no_batch_dims_saveable")
    checkpoint_dots_with_no_batch_dims = dots_with_no_batch_dims_saveable

    @staticmethod
    def save_only_these_names(*names):
        return Policy("save_only_these_names", *names)

    @staticmethod
    def save_any_names_but_these(*names):
        return Policy("save_any_names_but_these", *names)

    @staticmethod
    def save_anything_except_these_names(*names):
        return Policy("save_anything_except_these_names", *names)

    @staticmethod
    def save_from_both_policies(policy_1, policy_2):
        def either(primitive, *types, **params):
            return policy_1(primitive, *types, **params) or policy_2(primitive, *types, **params)

        return either

    @staticmethod
    def offload_dot_with_no_batch_dims(offload_src, offload_dst):
        offloaded = Offloadable(offload_src, offload_dst)
        keeps = checkpoint_policies.dots_with_no_batch_dims_saveable

        def policy(primitive, *types, **params):
            return offloaded if keeps(primitive, *types, **params) else Recompute

        return policy

    @staticmethod
    def save_and_offload_only_these_names(
        *, names_which_can_be_saved, names_which_can_be_offloaded, offload_src, offload_dst
    ):
        saved, moved = set(names_which_can_be_saved), set(names_which_can_be_offloaded)
        if saved & moved:
            raise ValueError(
                "save_and_offload_only_these_names expected names to be saved or offloaded; got "
                f"both for {', '.join(sorted(saved & moved))}"
            )
        offloaded = Offloadable(offload_src, offload_dst)

        def policy(primitive, *types, **params):
            name = params.get("name") if str(primitive) == "name" else None
            return Saveable if name in saved else offloaded if name in moved else Recompute

        return policy


class _PrimitiveName(str):
    """The name of an op, with what policies ask a primitive for."""

    __slots__ = ()
    name = property(str)

    def __str__(self):
        return str.__str__(self)


def _policy_object(policy):
    if policy is None or isinstance(policy, Policy):
        return policy and policy._object
    return _core.save_policy(
        lambda name, params: _saves(policy, policy(_PrimitiveName(name), **params))
    )


def _saves(policy, decision):
    if not isinstance(decision, (bool, _Decision, Offloadable)):
        raise TypeError(
            f"checkpoint expected the policy '{function_name(policy)}' to return a bool, Saveable, "
            f"Recompute or an Offloadable; got {decision!r}"
        )
    return bool(decision)


def checkpoint(
    fun=None,
    *,
    prevent_cse=True,
    policy=None,
    static_argnums=(),
    static_argnames=(),
    concrete=None,
):
    """A function like `fun` whose intermediate values are computed again in the backward pass.

    Args:
      fun: a function of arrays or trees of arrays. Without it, checkpoint(...) is a decorator.
      prevent_cse: keeps the compiler from finding the second computation equal to the first and
        keeping its values after all. A bool, or a tuple of one for each argument: where any is
        True, all is kept apart.
      policy: which values to keep all the same: one of `checkpoint_policies`, or a function
        policy(primitive, *types, **params) -> bool.
      static_argnums, static_argnames: positions and names of arguments that are no arrays.
      concrete: an option that JAX has removed: NotImplementedError if it is given.

    Derivatives are those of `fun`; memory is traded for time.

    Raises TypeError for a prevent_cse that is no bool, for a policy that is no function, and at the
    call for one that returns no decision, and AttributeValueError for static_argnums beyond the
    arguments.

    Examples:
      >>> f = weft.checkpoint(lambda x: wnp.sin(wnp.sin(x)))
      >>> weft.grad(f)(0.0)
      Array(1., dtype=float32, weak_type=True)
    """
    if fun is None:
        return functools.partial(
            checkpoint,
            prevent_cse=prevent_cse,
            policy=policy,
            static_argnums=static_argnums,
            static_argnames=static_argnames,
        )
    if concrete is not None:
        raise NotImplementedError(
            "checkpoint expected no `concrete`; name arguments that are no arrays in static_argnums"
        )
    check_callable(fun, "checkpoint")
    each = prevent_cse if isinstance(prevent_cse, tuple) else (prevent_cse,)
    if not all(isinstance(x, bool) for x in each):
        raise TypeError(
            f"checkpoint expected prevent_cse to be a bool or bools; got {prevent_cse!r}"
        )
    if policy is not None and not callable(policy):
        raise TypeError(f"checkpoint expected a policy to be a function; got {policy!r}")
    static = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)
    static = tuple(operator.index(n) for n in static)
    names = {static_argnames} if isinstance(static_argnames, str) else set(static_argnames)
    signature = signature_of(fun) if names else None
    named = {i for i, n in enumerate(signature.positional) if n in names} if signature else set()
    name = function_name(fun)
    saves = _policy_object(policy)

    @public_function
    @named_after(fun)
    def rematerialized(*args, **kwargs):
        for n in static:
            if not -len(args) <= n < len(args):
                raise AttributeValueError(
                    f"checkpoint: '{name}' was called with {len(args)} positional arguments; got "
                    f"static_argnums={static_argnums}"
                )
        fixed = {n % len(args) for n in static} | {i for i in named if i < len(args)}
        positions = tuple(i for i in range(len(args)) if i not in fixed)

        def where(i):
            if fixed:
                return f"argument leaf {i} of '{name}'"
            return name_argument(fun, registry.flatten((args, kwargs))[1], i)

        by_name = {key: kwargs.pop(key) for key in names & kwargs.keys()}
        whole = functools.partial(fun, **by_name) if by_name else fun
        return _core.checkpoint(whole, name, args, kwargs, positions, where, saves, any(each))

    return rematerialized


remat = checkpoint


def checkpoint_name(x, name):
    """x (an array or a tree of arrays), under a name that checkpoint policies know it by.

    Raises TypeError for a name that is no string.

    Examples:
      >>> policy = weft.checkpoint_policies.save_only_these_names("kept")
      >>> @weft.checkpoint(policy=policy)
      ... def f(x):
      ...     return wnp.sin(weft.ad_checkpoint.checkpoint_name(x**2, "kept"))
      >>> round(float(weft.grad(f)(1.0)), 4)
      1.0806
    """
    if not isinstance(name, str):
        raise TypeError(f"checkpoint_name expected a string; got {name!r}")
    return tree_map(lambda leaf: _core.bind("name", leaf, name=name), x)


def checkpoint_name_fwd(x, name):
    """`checkpoint_name`, whose names are of the forward pass anyway.

    Examples:
      >>> weft.ad_checkpoint.checkpoint_name_fwd(wnp.ones(2), "kept")
      Array([1., 1.], dtype=float32)
    """
    return checkpoint_name(x, name)


def print_saved_residuals(f, *args, **kwargs):
    """Prints what the backward pass of a function keeps of its forward pass, a value per line.

    A line has the type, and what it is: an argument, a constant, or the result of an operation with
    the line that made it, or with its name (see `checkpoint_name`). Nothing is computed.

    Examples:
      >>> weft.ad_checkpoint.print_saved_residuals(weft.checkpoint(wnp.sin), 1.0)
      f32[] from the argument x
    """
    for line in _saved_residuals(f, args, kwargs):
        print(line)


def _saved_residuals(f, args, kwargs):
    leaves, tree = registry.flatten((args, kwargs))

    def residuals(*leaves):
        def of_inexact(*some):
            rest = iter(some)
            whole = [next(rest) if i in varied else x for i, x in enumerate(leaves)]
            args, kwargs = tree.unflatten(whole)
            return f(*args, **kwargs)

        return vjp(of_inexact, *(leaves[i] for i in varied))[1].opaque_residuals

    varied = [i for i, x in enumerate(leaves) if is_inexact(_core.typeof(x)[1])]
    closed: Any = make_jaxpr(residuals)(*leaves)
    jaxpr = closed.jaxpr
    arguments = {v: name_argument(f, tree, i) for i, v in enumerate(jaxpr.invars)}
    of_f = f" of '{function_name(f)}'"
    equations = {v: eqn for eqn in jaxpr.eqns for v in eqn.outvars}
    for v in jaxpr.outvars:
        dims = ",".join(map(str, v.aval.shape))
        origin = _origin(v, arguments, equations).removesuffix(of_f)
        yield f"{_short(v.aval.dtype)}[{dims}] {origin}"


def _short(dtype):
    kind = {"f": "f", "i": "i", "u": "u", "c": "c"}.get(dtype.kind)
    return f"{kind}{8 * dtype.itemsize}" if kind else dtype.name


def _origin(v, arguments, equations):
    if v in arguments:
        return f"from the {arguments[v]}"
    if v not in equations:
        return "from a constant"
    eqn = equations[v]
    if eqn.primitive.name == "name":
        return f"named {eqn.params['name']!r} from {eqn.source_info}"
    return f"output of {eqn.primitive.name} from {eqn.source_info}"
