"""Random numbers from a generator that changes with each draw, as those of numpy.random."""

import dataclasses
import operator

import numpy as np

from weft import _core, numpy as wnp, random
from weft._refs import Ref, new_ref
from weft._surface import open_to_users as _open_to_users, public as _public
from weft.tree_util import register_dataclass

__all__ = ["StatefulPRNG", "stateful_rng"]
__getattr__, __dir__ = _public(__name__, __all__)


def stateful_rng(seed=None, *, impl=None):
    """A generator that may be used again and again, without keys: a StatefulPRNG.

    Args:
      seed: an integer; None for one that the system gives, which needs a call outside of traced
        functions.
      impl: the implementation of its keys, as for `weft.random.key`.

    Raises TypeError within a traced function if `seed` is None.

        rng = weft.experimental.random.stateful_rng(42)
        rng.uniform()  # 0.5302608
        weft.jit(rng.uniform)()  # 0.72766423

    Examples:
      >>> from weft.experimental.random import stateful_rng
      >>> rng = stateful_rng(0)
      >>> rng.normal(size=(2,)).shape, bool((rng.key() != rng.key()).all())
      ((2,), True)
    """
    if seed is None:
        if _core.in_trace():
            raise TypeError(
                "stateful_rng expected a seed; got None within a traced function, where each call "
                "of the program would start from the same one"
            )
        seed = int(np.random.SeedSequence().generate_state(1)[0])
    return StatefulPRNG(random.key(seed, impl=impl), new_ref(0))


@dataclasses.dataclass(frozen=True)
class StatefulPRNG:
    """A generator of random numbers that counts its draws; `stateful_rng` makes it.

    Draw number i is made with the key fold_in(base key, i). The count is a ref, so that draws also
    count under `jit`, in loops and under `vmap` (over a generator that `split` gave). A traced
    function may take a generator as an argument or close over it, but not return it.
    """

    _base_key: _core.Array
    _counter: Ref

    def key(self, shape=()):
        """A new key.

        Args:
          shape: an int or a sequence of ints, for an array of keys.
        """
        key = random.fold_in(self._base_key, self._counter[...])
        self._counter[...] += 1
        shape = _as_shape(shape)
        return random.split(key, shape) if shape else key

    def random(self, size=None, dtype=float):
        """Floats from 0 to below 1.

        Args:
          size: their shape, an int or a sequence of ints; None for one number.
          dtype: a float dtype.
        """
        return random.uniform(self.key(), _as_shape(() if size is None else size), dtype)

    def uniform(self, low=0, high=1, size=None, *, dtype=float):
        """Floats from `low` to below `high`.

        Args:
          low, high: numbers or arrays.
          size: the shape of the result, an int or a sequence of ints; None for that to which `low`
            and `high` broadcast.
          dtype: a float dtype.
        """
        shape = _shape(size, low, high)
        return random.uniform(self.key(), shape, dtype, minval=low, maxval=high)

    def normal(self, loc=0, scale=1, size=None, *, dtype=float):
        """Numbers of the normal distribution.

        Args:
          loc, scale: mean and standard deviation, numbers or arrays.
          size: the shape of the result, an int or a sequence of ints; None for that to which `loc`
            and `scale` broadcast.
          dtype: a float dtype, or a complex one.
        """
        numbers = random.normal(self.key(), _shape(size, loc, scale), dtype)
        loc, scale = (wnp.asarray(x).astype(numbers.dtype) for x in (loc, scale))
        return numbers * scale + loc

    def integers(self, low, high=None, size=None, *, dtype=int):
        """Integers from `low` to below `high`, or from 0 to below `low` without `high`.

        Args:
          low, high: numbers or arrays.
          size: the shape of the result, an int or a sequence of ints; None for that to which `low`
            and `high` broadcast.
          dtype: an integer dtype.
        """
        if high is None:
            low, high = 0, low
        low, high = (x if isinstance(x, int) else wnp.asarray(x).astype(int) for x in (low, high))
        return random.randint(self.key(), _shape(size, low, high), low, high, dtype)

    def spawn(self, n_children):
        """A list of generators that are independent of this one and of each other.

        Args:
          n_children: how many.
        """
        return [StatefulPRNG(key, new_ref(0)) for key in self.key(operator.index(n_children))]

    def split(self, num):
        """A generator that stands for many, to be mapped over by vmap.

        Args:
          num: how many, an int or a sequence of ints.
        """
        shape = _as_shape(num)
        return StatefulPRNG(self.key(shape), new_ref(wnp.zeros(shape, int)))


register_dataclass(StatefulPRNG, ["_base_key", "_counter"], [])


def _as_shape(size):
    try:
        return (operator.index(size),)
    except TypeError:
        return tuple(map(operator.index, size))


def _shape(size, *parameters):
    if size is None:
        return wnp.broadcast_shapes(*map(wnp.shape, parameters))
    return _as_shape(size)


_open_to_users(__name__)
