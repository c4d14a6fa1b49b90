"""Checks of lanes that take no part."""

import importlib

import numpy as np
from differences import Difference


def _error(m, f, x, errors="user_checks"):
    """Whether a check failed."""
    checkify = importlib.import_module(f"{m.__name__}.experimental.checkify")
    checked = checkify.checkify(m.vmap(f(m, checkify)), errors=getattr(checkify, errors))
    return np.asarray(checked(x)[0].get() is not None)


def _loop(m, checkify):
    def body(x):
        checkify.check(x < 5, "the lane has ended")
        return x + 1

    return lambda x: m.lax.while_loop(lambda x: x < 5, body, x)


def _branch(m, checkify):
    def positive(x):
        checkify.check(x > 0, "expected a positive number")
        return x

    return lambda x: m.lax.cond(x > 0, positive, lambda x: -x, x)


def _logarithm(m, checkify):
    return lambda x: m.lax.cond(x > 0, m.numpy.log, lambda x: x, x)


ROWS = [
    Difference(
        name="checks_of_lanes_that_have_ended",
        subject="checkify",
        says="`checkify(vmap(f))` of a `while_loop` checks each lane as long as it is in the loop",
        jax="`ValueError`: checkify of vmap of a while loop is not supported",
        run=lambda m, jnp: _error(m, _loop, jnp.arange(5)),
        right=np.array(False),
    ),
    Difference(
        name="checks_of_branches_not_taken",
        subject="checkify",
        says="a check in a branch fails for lanes of `vmap` that take the branch, no others",
        jax="it fails for lanes that take another branch",
        run=lambda m, jnp: _error(m, _branch, jnp.array([1.0, -1.0])),
        right=np.array(False),
    ),
    Difference(
        name="nans_of_branches_not_taken",
        subject="checkify",
        says="an element of `vmap` reports no NaN of a branch that it does not take",
        jax="it is reported",
        run=lambda m, jnp: _error(m, _logarithm, jnp.array([1.0, -1.0]), "nan_checks"),
        right=np.array(False),
    ),
]
