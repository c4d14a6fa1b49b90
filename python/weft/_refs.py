"""Refs: mutable arrays. What they are and how they hold values is in csrc/tracing/cell.h."""

import functools
import itertools
import operator

from weft import _core
from weft._arguments import strong
from weft._surface import public_function
from weft._types.avals import typeof
from weft.errors import AttributeValueError, RefError
from weft.lax._creation import full

Ref = _core.Ref


def new_ref(init_val, *, memory_space=None, kind=None):
    """A ref, a mutable array, whose first value is `init_val`.

    `ref[index]` reads and `ref[index] = value` writes, with the indices of arrays; `ref[...]` is
    all of it. What is written is broadcast to the shape of the elements and has the dtype of the
    ref; a Python number takes it.

    Functions under `jit`, loops, branches and derivatives may use refs that they make, close over
    or are given; what they write is written when they have run. A ref that they make ends with
    them. Refs are passed once each and never returned. A derivative goes through what a function
    writes to refs of its own, and may not go through what it writes to others. Under `vmap` only
    refs that are arguments with a mapped axis, or made inside, can be written.

    Args:
      init_val: an array or a number.
      memory_space: must be None.
      kind: "no_grad_no_remat" for a ref that no derivative goes through: what is written may
        depend on differentiated values, and what is read is a constant. None otherwise.

    Raises RefError for a ref as `init_val`.

    Examples:
      >>> ref = weft.new_ref(wnp.zeros(3))
      >>> ref[1] = 5.0
      >>> ref[...]
      Array([0., 5., 0.], dtype=float32)
    """
    if memory_space is not None:
        raise NotImplementedError(
            f"new_ref memory_space: expected None, since devices have one; got {memory_space!r}"
        )
    if kind not in (None, "no_grad_no_remat"):
        raise AttributeValueError(
            f"new_ref kind: expected None or 'no_grad_no_remat'; got {kind!r}"
        )
    if isinstance(init_val, _core.Tracer):
        init_val = strong(init_val)
    return _core.new_ref(init_val, False, kind is not None)


def empty_ref(ty, memory_space=None):
    """A ref of a type whose first value is not to be read; today it is zeros.

    Args:
      ty: anything with a shape and a dtype: a ShapeDtypeStruct, an array.
      memory_space: must be None.

    Examples:
      >>> ref = weft.empty_ref(weft.ShapeDtypeStruct((2,), "int32"))
      >>> ref[...] = wnp.array([3, 4])
      >>> weft.freeze(ref)
      Array([3, 4], dtype=int32)
    """
    aval = typeof(ty)
    return new_ref(full(aval.shape, 0, aval.dtype), memory_space=memory_space)


def freeze(ref):
    """The last value of a ref, which ends: it cannot be read or written afterwards.

    Raises RefError unless the ref was made in the function that is running.

    Examples:
      >>> ref = weft.new_ref(1.0)
      >>> ref[...] += 2.0
      >>> weft.freeze(ref)
      Array(3., dtype=float32, weak_type=True)
    """
    return _core.freeze(ref)


def free_ref(ref):
    """Ends a ref, as `freeze` does, without a result.

    Examples:
      >>> ref = weft.new_ref(wnp.zeros(2))
      >>> weft.free_ref(ref)
    """
    _core.freeze(ref)


def _all(index):
    return ... if index is None else index


def get(ref, idx=None):
    """`ref[idx]`; None is all of it.

    Examples:
      >>> ref = weft.new_ref(wnp.arange(3))
      >>> weft.ref.get(ref, 1)
      Array(1, dtype=int32)
    """
    _checked(ref, "get")
    return ref[_all(idx)]


def set(ref, idx, value):
    """`ref[idx] = value`; None is all of it.

    Examples:
      >>> ref = weft.new_ref(wnp.arange(3))
      >>> weft.ref.set(ref, 1, 9)
      >>> ref[...]
      Array([0, 9, 2], dtype=int32)
    """
    _core.update_ref("set", ref, _all(idx), value)


def swap(ref, idx, value):
    """Writes `ref[idx] = value` and returns what was there before.

    Examples:
      >>> ref = weft.new_ref(wnp.arange(3))
      >>> weft.ref.swap(ref, 1, 9), ref[...]
      (Array(1, dtype=int32), Array([0, 9, 2], dtype=int32))
    """
    old = get(ref, idx)
    _core.update_ref("set", ref, _all(idx), value)
    return old


def addupdate(ref, idx, x):
    """Adds `x` to `ref[idx]`; an element that is indexed several times gets every addition.

    Examples:
      >>> ref = weft.new_ref(wnp.zeros(2))
      >>> weft.ref.addupdate(ref, wnp.array([0, 0]), 1.0)
      >>> ref[...]
      Array([2., 0.], dtype=float32)
    """
    _core.update_ref("add", ref, _all(idx), x)


def _checked(ref, function):
    if not isinstance(ref, Ref):
        raise RefError(f"[{function}] expected a ref; got {type(ref).__name__}")


# ---- Parts


class RefView:
    """A part of a ref, `ref.at[index]`: reading and writing it is reading and writing the ref.

    Attributes: ref (the Ref), shape, dtype, ndim, size, aval (the type of the part), at.
    """

    __slots__ = ("_indices", "ref")
    __iter__ = None

    def __init__(self, ref, indices):
        self.ref, self._indices = ref, indices

    def __repr__(self):
        return f"RefView({self.ref!r}, {', '.join(map(repr, self._indices))})"

    def _read(self):
        return functools.reduce(operator.getitem, self._indices, self.ref)

    aval = property(lambda self: typeof(self._read()))
    shape = property(lambda self: self.aval.shape)
    dtype = property(lambda self: self.ref.dtype)
    ndim = property(lambda self: self.aval.ndim)
    size = property(lambda self: self.aval.size)
    at = property(lambda self: _Indexer(self.ref, self._indices))

    def __len__(self):
        return len(self._read())

    def __getitem__(self, index):
        return self._read()[index]

    def __setitem__(self, index, value):
        self._update("set", index, value)

    def addupdate(self, x, idx=...):
        """Adds `x` to `self[idx]`; an element that is indexed several times gets every
        addition."""
        self._update("add", idx, x)

    def _update(self, kind, index, value):
        first, *rest = self._indices if index is Ellipsis else (*self._indices, index)
        parts: list = list(itertools.accumulate([self.ref[first], *rest[:-1]], operator.getitem))
        # Each part is written into the one around it.
        for part, within in zip(reversed(parts), reversed(rest), strict=False):
            value, kind = getattr(part.at[within], kind)(value), "set"
        _core.update_ref(kind, self.ref, first, value)


class _Indexer:
    __slots__ = ("_before", "_ref")

    def __init__(self, ref, before=()):
        self._ref, self._before = ref, before

    def __getitem__(self, index):
        return RefView(self._ref, (*self._before, index))


# ---- The other methods of Ref


def _repr(self):
    value = self._held
    if value is None:
        return f"<frozen {typeof(self)}>" if self._frozen else str(typeof(self))
    return repr(value).replace("Array", "Ref", 1)


def _refuse_array(self, dtype=None, copy=None):
    raise RefError(f"expected an array; got {_core.ref_text(self)}\n  Read it with ref[...].")


def _rebuild(value):
    return _core.new_ref(value, False)


_METHODS = {
    "__repr__": _repr,
    "__array__": _refuse_array,
    "__reduce__": lambda self: (_rebuild, (self[...],)),
    "__iter__": None,  # Python would index it without an end
    "addupdate": lambda self, x, idx=...: addupdate(self, idx, x),
    "at": property(_Indexer),
    "aval": property(typeof),
    "sharding": property(lambda self: self[...].sharding),
    "format": property(lambda self: self[...].format),
    "committed": property(lambda self: self[...].committed),
    "unsafe_buffer_pointer": lambda self: self[...].unsafe_buffer_pointer(),
}


def install():
    """Gives the type its methods."""
    for name, method in _METHODS.items():
        setattr(Ref, name, public_function(method))
