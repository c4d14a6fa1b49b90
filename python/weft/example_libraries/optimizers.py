"""Optimizers of trees of parameters, as triples of functions.

    optimizer = optimizers.adam(1e-3)
    state = optimizer.init_fn(parameters)
    for i in range(100):
        gradient = weft.grad(loss)(optimizer.params_fn(state))
        state = optimizer.update_fn(i, gradient, state)

States are trees, so that updates can be jitted. Step sizes are numbers, or schedules: functions of
the number of the step.
"""

import functools as _functools
from collections import namedtuple as _namedtuple

from weft import numpy as _jnp
from weft._surface import (
    named_after as _named_after,
    open_to_users as _open_to_users,
    public as _public,
)
from weft._tree_mismatch import explain_difference as _explain_difference
from weft.errors import (
    AttributeValueError as _AttributeValueError,
    TreeStructureError as _TreeStructureError,
)
from weft.runtime.pytree import registry as _registry
from weft.tree_util import (
    register_pytree_node as _register_pytree_node,
    tree_leaves as _tree_leaves,
    tree_map as _tree_map,
)

__all__ = [
    "JoinPoint",
    "Optimizer",
    "OptimizerState",
    "adagrad",
    "adam",
    "adamax",
    "clip_grads",
    "constant",
    "exponential_decay",
    "inverse_time_decay",
    "l2_norm",
    "make_schedule",
    "momentum",
    "nesterov",
    "optimizer",
    "pack_optimizer_state",
    "piecewise_constant",
    "polynomial_decay",
    "rmsprop",
    "rmsprop_momentum",
    "sgd",
    "sm3",
    "unpack_optimizer_state",
]
__getattr__, __dir__ = _public(__name__, __all__)

OptimizerState = _namedtuple("OptimizerState", ["packed_state", "tree_def", "subtree_defs"])
OptimizerState.__doc__ = """The state of an optimizer, a tree.

Attributes:
  packed_state: for each leaf of the parameters the leaves of its state, lists in a tuple.
  tree_def: the structure of the parameters.
  subtree_defs: for each leaf the structure of its state.
"""
_register_pytree_node(
    OptimizerState,
    lambda state: ((state.packed_state,), (state.tree_def, state.subtree_defs)),
    lambda structure, children: OptimizerState(children[0], *structure),
)

Optimizer = _namedtuple("Optimizer", ["init_fn", "update_fn", "params_fn"])
Optimizer.__doc__ = """What the functions of this module return.

Attributes:
  init_fn: init_fn(parameters) -> state.
  update_fn: update_fn(step, gradient, state) -> state.
  params_fn: params_fn(state) -> parameters.
"""


def optimizer(opt_maker):
    """Makes an optimizer of arrays one of trees; a decorator.

    Args:
      opt_maker: returns (init, update, get): init(array) -> state, update(step, gradient, state) ->
        state and get(state) -> array, where states are trees.

    Returns:
      A function of the same arguments that returns an `Optimizer`.

    The functions made raise TreeStructureError for a gradient of another structure than the
    parameters, and for an update that changes the structure of the state.
    """

    @_named_after(opt_maker)
    def tree_opt_maker(*args, **kwargs):
        init, update, get = opt_maker(*args, **kwargs)

        def init_fn(parameters):
            leaves, tree = _registry.flatten(parameters)
            return _packed(tree, map(init, leaves))

        def update_fn(step, gradient, state):
            leaves, tree = _registry.flatten(gradient)
            if tree != state.tree_def:
                raise _TreeStructureError(
                    "expected a gradient of the structure of the parameters, "
                    f"{_explain_difference(state.tree_def, tree)}"
                )
            made = _packed(
                tree, (update(step, g, s) for g, s in zip(leaves, _states(state), strict=True))
            )
            for before, after in zip(state.subtree_defs, made.subtree_defs, strict=True):
                if before != after:
                    raise _TreeStructureError(
                        "expected the update to keep the structure of the state, "
                        f"{_explain_difference(before, after)}"
                    )
            return made

        def params_fn(state):
            return state.tree_def.unflatten(map(get, _states(state)))

        return Optimizer(init_fn, update_fn, params_fn)

    return tree_opt_maker


def _packed(tree, states):
    flat = [_registry.flatten(state) for state in states]
    return OptimizerState(tuple(leaves for leaves, _ in flat), tree, tuple(t for _, t in flat))


def _states(state):
    pairs = zip(state.subtree_defs, state.packed_state, strict=True)
    return [tree.unflatten(leaves) for tree, leaves in pairs]


class JoinPoint:
    """Marks where the state of one array stands in an unpacked state.

    Attributes: subtree (the state of the array).
    """

    def __init__(self, subtree):
        self.subtree = subtree

    def __iter__(self):
        yield self.subtree


def unpack_optimizer_state(opt_state):
    """A tree like the parameters, with a JoinPoint that holds the state of each, to be stored."""
    return opt_state.tree_def.unflatten(map(JoinPoint, _states(opt_state)))


def pack_optimizer_state(marked_pytree):
    """The state of an optimizer from what `unpack_optimizer_state` returned.

    Raises TypeError for a tree with other leaves.
    """
    sentinels, tree = _registry.flatten(marked_pytree)
    for each in sentinels:
        if not isinstance(each, JoinPoint):
            raise TypeError(f"expected a tree of JoinPoints; got {each!r:.60} in it")
    return _packed(tree, (each.subtree for each in sentinels))


# ---- Optimizers


@optimizer
def sgd(step_size):
    """Gradient descent."""
    step_size = make_schedule(step_size)

    def update(i, g, x):
        return x - step_size(i) * g

    return lambda x: x, update, lambda x: x


@optimizer
def momentum(step_size, mass):
    """Gradient descent with momentum."""
    step_size = make_schedule(step_size)

    def update(i, g, state):
        x, velocity = state
        velocity = mass * velocity + g
        return x - step_size(i) * velocity, velocity

    return lambda x: (x, _jnp.zeros_like(x)), update, lambda state: state[0]


@optimizer
def nesterov(step_size, mass):
    """Gradient descent with the momentum of Nesterov."""
    step_size = make_schedule(step_size)

    def update(i, g, state):
        x, velocity = state
        velocity = mass * velocity + g
        return x - step_size(i) * (mass * velocity + g), velocity

    return lambda x: (x, _jnp.zeros_like(x)), update, lambda state: state[0]


def _inverse_root(x):
    """1 / sqrt(x), 0 where x is."""
    return _jnp.where(x > 0, 1.0 / _jnp.sqrt(x), 0.0)


@optimizer
def adagrad(step_size, momentum=0.9):
    """Adagrad (Duchi, Hazan and Singer, 2011) with momentum."""
    step_size = make_schedule(step_size)

    def update(i, g, state):
        x, squares, m = state
        squares = squares + _jnp.square(g)
        m = (1.0 - momentum) * (g * _inverse_root(squares)) + momentum * m
        return x - step_size(i) * m, squares, m

    def init(x):
        return x, _jnp.zeros_like(x), _jnp.zeros_like(x)

    return init, update, lambda state: state[0]


@optimizer
def rmsprop(step_size, gamma=0.9, eps=1e-8):
    """RMSProp (Hinton, 2012).

    Args:
      step_size: a number, or a schedule.
      gamma: how much of the mean of squares stays at each step.
      eps: what is added to it under the root.
    """
    step_size = make_schedule(step_size)

    def update(i, g, state):
        x, squares = state
        squares = squares * gamma + _jnp.square(g) * (1.0 - gamma)
        return x - step_size(i) * g / _jnp.sqrt(squares + eps), squares

    return lambda x: (x, _jnp.zeros_like(x)), update, lambda state: state[0]


@optimizer
def rmsprop_momentum(step_size, gamma=0.9, eps=1e-8, momentum=0.9):
    """RMSProp with momentum.

    `step_size`, `gamma` and `eps` are those of `rmsprop`.
    """
    step_size = make_schedule(step_size)

    def update(i, g, state):
        x, squares, m = state
        squares = squares * gamma + _jnp.square(g) * (1.0 - gamma)
        m = momentum * m + step_size(i) * g / _jnp.sqrt(squares + eps)
        return x - m, squares, m

    def init(x):
        return x, _jnp.zeros_like(x), _jnp.zeros_like(x)

    return init, update, lambda state: state[0]


@optimizer
def adam(step_size, b1=0.9, b2=0.999, eps=1e-8):
    """Adam (Kingma and Ba, 2015).

    Args:
      step_size: a number, or a schedule.
      b1, b2: how much of the means of gradients and of their squares stays at each step.
      eps: what is added to the root of the latter.
    """
    step_size = make_schedule(step_size)

    def update(i, g, state):
        x, m, v = state
        m = (1 - b1) * g + b1 * m
        v = (1 - b2) * _jnp.square(g) + b2 * v
        m_hat = m / (1 - _jnp.asarray(b1, m.dtype) ** (i + 1))
        v_hat = v / (1 - _jnp.asarray(b2, m.dtype) ** (i + 1))
        return x - step_size(i) * m_hat / (_jnp.sqrt(v_hat) + eps), m, v

    def init(x):
        return x, _jnp.zeros_like(x), _jnp.zeros_like(x)

    return init, update, lambda state: state[0]


@optimizer
def adamax(step_size, b1=0.9, b2=0.999, eps=1e-8):
    """Adam with the infinity norm (Kingma and Ba, 2015).

    `step_size`, `b1`, `b2` and `eps` are those of `adam`.
    """
    step_size = make_schedule(step_size)

    def update(i, g, state):
        x, m, u = state
        m = (1 - b1) * g + b1 * m
        u = _jnp.maximum(b2 * u, _jnp.abs(g))
        scale = step_size(i) / (1 - _jnp.asarray(b1, m.dtype) ** (i + 1))
        return x - scale * m / (u + eps), m, u

    def init(x):
        return x, _jnp.zeros_like(x), _jnp.zeros_like(x)

    return init, update, lambda state: state[0]


@optimizer
def sm3(step_size, momentum=0.9):
    """SM3 (Anil et al., 2019), whose state of an array has a vector for each axis.

    `step_size` is a number or a schedule; `momentum` is how much of the last step stays.
    That of a number has one number.
    """
    step_size = make_schedule(step_size)

    def along(x, ndim, axis):
        return x.reshape([-1 if i == axis else 1 for i in range(ndim)])

    def init(x):
        x = _jnp.asarray(x)
        return x, _jnp.zeros_like(x), [_jnp.zeros(n, x.dtype) for n in x.shape or [()]]

    def update(i, g, state):
        x, m, squares = state
        bounds = [along(v, x.ndim, axis) for axis, v in enumerate(squares)]
        total = _functools.reduce(_jnp.minimum, bounds) + _jnp.square(g)
        m = (1.0 - momentum) * (g * _inverse_root(total)) + momentum * m
        others = [tuple({*range(x.ndim)} - {axis}) for axis in range(len(squares))]
        return x - step_size(i) * m, m, [total.max(axes) for axes in others]

    return init, update, lambda state: state[0]


# ---- Schedules


def constant(step_size):
    """The schedule of one step size."""
    return lambda i: step_size


def exponential_decay(step_size, decay_steps, decay_rate):
    """The schedule step_size * decay_rate ** (i / decay_steps)."""
    return lambda i: step_size * decay_rate ** (i / decay_steps)


def inverse_time_decay(step_size, decay_steps, decay_rate, staircase=False):
    """The schedule step_size / (1 + decay_rate * i / decay_steps); by steps with `staircase`."""
    if staircase:
        return lambda i: step_size / (1 + decay_rate * _jnp.floor(i / decay_steps))
    return lambda i: step_size / (1 + decay_rate * i / decay_steps)


def polynomial_decay(step_size, decay_steps, final_step_size, power=1.0):
    """The schedule from step_size to final_step_size, which is reached after decay_steps.

    `power` is the exponent of the polynomial.
    """

    def schedule(i):
        rest = (1 - _jnp.minimum(i, decay_steps) / decay_steps) ** power
        return rest * (step_size - final_step_size) + final_step_size

    return schedule


def piecewise_constant(boundaries, values):
    """The schedule of values[0] up to boundaries[0], then values[1] up to boundaries[1], ...

    Args:
      boundaries: increasing numbers of steps.
      values: one value more.

    Raises AttributeValueError (a ValueError) unless there is one value more than there are
    boundaries.
    """
    boundaries, values = _jnp.array(boundaries), _jnp.array(values)
    if not boundaries.ndim == values.ndim == 1 or boundaries.shape[0] != values.shape[0] - 1:
        raise _AttributeValueError(
            "[piecewise_constant] expected a vector of boundaries and one of values, with one more "
            f"element; got shapes {boundaries.shape} and {values.shape}"
        )
    return lambda i: values[_jnp.sum(i > boundaries)]


def make_schedule(scalar_or_schedule):
    """A schedule as it is, or that of one number. TypeError for anything else."""
    if callable(scalar_or_schedule):
        return scalar_or_schedule
    if _jnp.ndim(scalar_or_schedule) == 0 and not isinstance(scalar_or_schedule, str):
        return constant(scalar_or_schedule)
    raise TypeError(f"expected a number or a function of the step; got {scalar_or_schedule!r:.60}")


# ---- Gradients


def l2_norm(tree):
    """The square root of the sum of the squares of all elements of a tree of arrays."""
    return _jnp.sqrt(sum(_jnp.vdot(x, x) for x in _tree_leaves(tree)))


def clip_grads(grad_tree, max_norm):
    """A tree of gradients, scaled to `max_norm` if its norm is greater."""
    norm = l2_norm(grad_tree)
    return _tree_map(lambda g: _jnp.where(norm < max_norm, g, g * (max_norm / norm)), grad_tree)


_open_to_users(__name__)
