"""The class `ufunc`, and the functions of weft.numpy that are of it."""

import importlib
import inspect
import operator
from typing import Any

from weft import _core
from weft._recording import check_callable
from weft._surface import public_function
from weft.numpy import _division_powers as powers, _reductions as reductions, _ufuncs as u

ufunc: Any = _core.ufunc  # what follows gives it its members
_HOOKS = ("call", "reduce", "accumulate", "at", "reduceat")


def _init(
    self,
    func,
    /,
    nin,
    nout,
    *,
    name=None,
    nargs=None,
    identity=None,
    call=None,
    reduce=None,
    accumulate=None,
    at=None,
    reduceat=None,
):
    check_callable(func, "ufunc")
    name = name or getattr(func, "__name__", type(func).__name__)
    nin, nout = operator.index(nin), operator.index(nout)
    nargs = nin if nargs is None else operator.index(nargs)
    vars(self).update(__name__=name, __doc__=func.__doc__, __module__="weft.numpy")
    vars(self).update(nin=nin, nout=nout, nargs=nargs, identity=identity, _func=func)
    hooks = (call, reduce, accumulate, at, reduceat)
    self._own = dict(zip(_HOOKS, hooks, strict=True))
    self._function = _vectorized(func) if call is None else call


def _set_attribute(self, name, value):
    # An object stands for one function for as long as the process lasts.
    if not name.startswith("_"):
        raise AttributeError(f"[{self.__name__}] attributes of ufuncs are read-only; got {name}")
    object.__setattr__(self, name, value)


def _delete_attribute(self, name):
    raise AttributeError(f"[{self.__name__}] attributes of ufuncs are read-only; got {name}")


def _vectorized(func):
    from weft.numpy._vectorize import vectorize

    return vectorize(func)


def _key(self):
    identity = (type(self.identity), self.identity)
    return (
        self._func,
        self.__name__,
        self.nin,
        self.nout,
        self.nargs,
        identity,
        *self._own.items(),
    )


def _equal(self, other):
    return _key(self) == _key(other) if isinstance(other, ufunc) else NotImplemented


def _is_of_numpy(self):
    return getattr(importlib.import_module("weft.numpy"), self.__name__, None) is self


def _reduce_object(self):
    if _is_of_numpy(self):
        return self.__name__
    options = {"name": self.__name__, "nargs": self.nargs, "identity": self.identity, **self._own}
    return _rebuilt, (self._func, self.nin, self.nout, options)


def _rebuilt(func, nin, nout, options):
    return ufunc(func, nin, nout, **options)


def _later(name):
    """A function of the module of methods, which is loaded when one is first called."""

    def call(*args, **kwargs):
        return getattr(importlib.import_module("weft.numpy._universal_methods"), name)(
            *args, **kwargs
        )

    return call


class _Signature:
    """What `inspect` shows: for the class what makes an object, for an object what calls it."""

    def __get__(self, instance, owner):
        if instance is None:
            made = inspect.signature(_init)
            return made.replace(parameters=list(made.parameters.values())[1:])
        names = ["x"] if instance.nin == 1 else [f"x{i + 1}" for i in range(instance.nin)]
        kinds = inspect.Parameter
        return inspect.Signature(
            [kinds(name, kinds.POSITIONAL_ONLY) for name in names]
            + [kinds(name, kinds.KEYWORD_ONLY, default=None) for name in ("out", "where")]
        )


def reduce(self, a, axis=0, dtype=None, out=None, keepdims=False, initial=None, where=None):
    """The elements along an axis combined from first to last, for functions of two numbers.

    Args:
      a: array.
      axis: the axis; None for all elements in row-major order. Several for those of weft.numpy
        that combine in any order.
      dtype: dtype that the elements are converted to, and of the result; by default that which the
        function gives of two elements.
      out: not supported, must be None.
      keepdims: whether the reduced axes stay, with size 1.
      initial: what the first element is combined with.
      where: mask that broadcasts to `a`; elements where it is false are left out. Without an
        identity it needs `initial`.

    Raises ValueError for functions of other than two numbers, and without elements to begin with.

    Examples:
      >>> wnp.subtract.reduce(wnp.array([10, 1, 2]))
      Array(7, dtype=int32)
    """
    reductions.reject_out(f"{self.__name__}.reduce", out)
    return _methods().reduce(self, a, axis, dtype, keepdims, initial, where)


def accumulate(self, a, axis=0, dtype=None, out=None):
    """What the elements along an axis combine to from the first one up to each.

    Args:
      a: array.
      axis: the axis.
      dtype: dtype that the elements are converted to, and of the result.
      out: not supported, must be None.

    Examples:
      >>> wnp.subtract.accumulate(wnp.array([10, 1, 2]))
      Array([10,  9,  7], dtype=int32)
    """
    reductions.reject_out(f"{self.__name__}.accumulate", out)
    return _methods().accumulate(self, a, axis, dtype)


def at(self, a, indices, b=None, /, *, inplace=True):
    """`a` with the function applied to the elements at an index: to each of them and to `b`.

    Elements that are indexed several times are updated as often. `inplace` must be False: arrays
    are immutable, so the result is a new one.

    Examples:
      >>> wnp.add.at(wnp.zeros(3), wnp.array([0, 0, 2]), 1.0, inplace=False)
      Array([2., 0., 1.], dtype=float32)
    """
    if inplace:
        raise NotImplementedError(
            f"[{self.__name__}.at] expected inplace=False: arrays are immutable\n"
            f"  Write x = {self.__name__}.at(x, indices, b, inplace=False)."
        )
    return _methods().at(self, a, indices, b)


def reduceat(self, a, indices, axis=0, dtype=None, out=None):
    """The elements from each index up to the next one combined, or to the end for the last one.

    Where the next index is not greater, the result is the element at the index alone.

    Args:
      a: array with at least one axis.
      indices: one-dimensional array of integers.
      axis: the axis of `a` along which they point.
      dtype: no effect, the result has that of `a`.
      out: not supported, must be None.

    Examples:
      >>> wnp.add.reduceat(wnp.array([1, 2, 3, 4]), wnp.array([0, 2]))
      Array([3, 7], dtype=int32)
    """
    reductions.reject_out(f"{self.__name__}.reduceat", out)
    return _methods().reduceat(self, a, indices, axis, dtype)


def outer(self, A, B, /):
    """The function of all pairs of an element of `A` and one of `B`.

    The result has the axes of `A`, then those of `B`.

    Examples:
      >>> wnp.multiply.outer(wnp.array([1, 2]), wnp.array([3, 4, 5]))
      Array([[ 3,  4,  5],
             [ 6,  8, 10]], dtype=int32)
    """
    return _methods().outer(self, A, B)


def _methods():
    return importlib.import_module("weft.numpy._universal_methods")


for _method in (reduce, accumulate, at, reduceat, outer):
    _method.__qualname__ = f"ufunc.{_method.__name__}"
    setattr(ufunc, _method.__name__, public_function(_method))
ufunc.__init__, ufunc.__eq__, ufunc.__reduce__ = _init, _equal, _reduce_object
ufunc.__setattr__, ufunc.__delattr__ = _set_attribute, _delete_attribute
ufunc.__hash__ = lambda self: hash(_key(self))
ufunc.__repr__ = lambda self: f"<ufunc {self.__name__!r}>"
ufunc.__signature__ = _Signature()
ufunc.__doc__ = """A function of numbers applied to arrays, whose shapes broadcast together.

Beside being called it has the methods `reduce`, `accumulate`, `at`, `reduceat` and `outer` of
functions of two numbers. `frompyfunc` makes one of any function.

Args:
  func: the function of numbers.
  nin, nout: how many numbers it takes and returns.
  name: its name, by default that of `func`.
  nargs: what its attribute `nargs` says, by default `nin`.
  identity: the number that changes no other one when they are combined; None if there is none.
  call: the function of arrays, by default `vectorize(func)`.
  reduce, accumulate, at, reduceat: what the methods call with their arguments, in place of applying
    the function to one element after the other.
"""


def frompyfunc(func, /, nin, nout, *, identity=None):
    """A `ufunc` of a function of numbers.

    Args:
      func: the function, which takes `nin` numbers and returns `nout`; it is applied by `vmap`.
      nin, nout: these counts.
      identity: the number that changes no other one when they are combined, if there is one.

    Examples:
      >>> area = wnp.frompyfunc(lambda width, height: width * height, 2, 1)
      >>> area(wnp.array([1, 2]), 10)
      Array([10, 20], dtype=int32)
      >>> area.outer(wnp.array([1, 2]), wnp.array([3, 4]))
      Array([[3, 4],
             [6, 8]], dtype=int32)
    """
    return ufunc(func, nin, nout, identity=identity)


def _of_numpy(function, identity=None, **hooks):
    made = ufunc(
        function,
        1 if function is u.negative else 2,
        1,
        identity=identity,
        call=public_function(function),
        **{name: _later(hook) for name, hook in hooks.items()},
    )
    summary, sections = inspect.cleandoc(function.__doc__).split("\n\n", 1)
    made.__doc__ = f"{summary}\n\n`out` and `where` must be None.\n\n{sections}"
    return made


add = _of_numpy(u.add, 0, reduce="add_reduce", accumulate="add_accumulate", at="add_at")
subtract = _of_numpy(u.subtract, at="subtract_at")
multiply = _of_numpy(
    u.multiply,
    1,
    reduce="multiply_reduce",
    accumulate="multiply_accumulate",
    at="multiply_at",
)
negative = _of_numpy(u.negative)
maximum = _of_numpy(u.maximum, reduce="maximum_reduce")
minimum = _of_numpy(u.minimum, reduce="minimum_reduce")
logaddexp = _of_numpy(powers.logaddexp, float("-inf"), reduce="logaddexp_reduce")
logaddexp2 = _of_numpy(powers.logaddexp2, float("-inf"), reduce="logaddexp2_reduce")
bitwise_and = _of_numpy(u.bitwise_and, -1, reduce="bitwise_and_reduce")
bitwise_or = _of_numpy(u.bitwise_or, 0, reduce="bitwise_or_reduce")
bitwise_xor = _of_numpy(u.bitwise_xor, 0, reduce="bitwise_xor_reduce")
logical_and = _of_numpy(u.logical_and, True, reduce="logical_and_reduce")
logical_or = _of_numpy(u.logical_or, False, reduce="logical_or_reduce")
logical_xor = _of_numpy(u.logical_xor, False, reduce="logical_xor_reduce")
