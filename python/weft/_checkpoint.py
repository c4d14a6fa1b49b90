"""checkpoint: values that are computed again in the backward pass instead of being kept.

The op and what its derivative keeps are in src/ops/checkpoint.cpp.
"""

import functools
import operator

from weft import _core
from weft._recording import check_callable, function_name, name_argument
from weft._surface import public_function
from weft.errors import ArgumentTypeError
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


class _PrimitiveName(str):
    """The name of an op, with what policies ask a primitive for."""

    __slots__ = ()
    name = property(str)

    def __str__(self):
        return str.__str__(self)


def _policy_object(policy):
    if policy is None or isinstance(policy, Policy):
        return policy and policy._object
    return _core.save_policy(lambda name, params: policy(_PrimitiveName(name), **params))


def checkpoint(fun=None, *, prevent_cse=True, policy=None, static_argnums=()):
    """A function like `fun` whose intermediate values are computed again in the backward pass.

    Args:
      fun: a function of arrays or trees of arrays. Without it, checkpoint(...) is a decorator.
      prevent_cse: keeps the compiler from finding the second computation equal to the first and
        keeping its values after all.
      policy: which values to keep all the same: one of `checkpoint_policies`, or a function
        policy(primitive, *types, **params) -> bool.
      static_argnums: positions of arguments that are no arrays.

    Derivatives are those of `fun`; memory is traded for time.

    Raises TypeError for a policy that is no function, and at the call ArgumentTypeError for
    static_argnums beyond the arguments.
    """
    if fun is None:
        return functools.partial(
            checkpoint, prevent_cse=prevent_cse, policy=policy, static_argnums=static_argnums
        )
    check_callable(fun, "checkpoint")
    if policy is not None and not callable(policy):
        raise TypeError(f"checkpoint expected a policy to be a function; got {policy!r}")
    static = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)
    static = tuple(operator.index(n) for n in static)
    name = function_name(fun)
    saves = _policy_object(policy)

    @public_function
    @functools.wraps(fun)
    def rematerialized(*args, **kwargs):
        for n in static:
            if not -len(args) <= n < len(args):
                raise ArgumentTypeError(
                    f"checkpoint: '{name}' was called with {len(args)} positional arguments; got "
                    f"static_argnums={static_argnums}"
                )
        fixed = {n % len(args) for n in static}
        positions = tuple(i for i in range(len(args)) if i not in fixed)

        def where(i):
            if fixed:
                return f"argument leaf {i} of '{name}'"
            return name_argument(fun, registry.flatten((args, kwargs))[1], i)

        return _core.checkpoint(fun, name, args, kwargs, positions, where, saves, bool(prevent_cse))

    return rematerialized


remat = checkpoint


def checkpoint_name(x, name):
    """x (an array or a tree of arrays), under a name that checkpoint policies know it by.

    Raises TypeError for a name that is no string.
    """
    if not isinstance(name, str):
        raise TypeError(f"checkpoint_name expected a string; got {name!r}")
    return tree_map(lambda leaf: _core.bind("name", leaf, name=name), x)
