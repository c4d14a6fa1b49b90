"""Loops that tell how far they are: the steps at which the program calls the host."""

import operator

from weft import _core
from weft._callback import debug_callback
from weft._custom_batching import custom_vmap
from weft.lax import cond
from weft.numpy import min as smallest
from weft.runtime import progress as shown


def progress(step, total, what, every):
    """See weft.debug.progress."""
    total = operator.index(total)
    if total < 1:
        raise ValueError(f"debug.progress expected a positive total; got {total}")
    shape, dtype, _ = _core.typeof(step)
    if shape or dtype.kind not in "iu":
        raise TypeError(
            f"debug.progress expected an integer for the step; got {dtype.name}{[*shape]}"
        )
    show = shown.loop(str(what), total)
    if show is None:
        return
    every = max(1, total // 500 if every is None else operator.index(every))
    done = _least(step + 1)
    # The first one starts the clock.
    is_due = (done % every == 0) | (done == 1) | (done == total)
    cond(is_due, lambda: debug_callback(show, (done,), {}, ordered=False), lambda: None)


@custom_vmap
def _least(done):
    """The number itself; of the elements that vmap maps the least one."""
    return done


@_least.def_vmap
def _least_of_many(size, mapped, done):
    return _least(smallest(done)), False
