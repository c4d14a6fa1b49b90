"""What arrays can do beyond arithmetic: conversions, text, pickling, interchange.

`_members.install` sets these functions on the C++ types.
"""

import functools
import operator
from typing import TYPE_CHECKING

import numpy as np

from weft import _core, _figures, _html
from weft._types.keys import keys as _keys
from weft.dtypes import is_key

Tracer = _core.Tracer


class _Kind(type):
    def __instancecheck__(cls, instance):
        return isinstance(instance, (_core.Array, Tracer))

    def __subclasscheck__(cls, subclass):
        return subclass is cls or issubclass(subclass, (_core.Array, Tracer))


if TYPE_CHECKING:
    from weft._core import Array  # it has the members, and stands for traced values too
else:

    class Array(metaclass=_Kind):
        """The type of arrays, for `isinstance` and annotations.

        Values of a program that is being traced are arrays too. Make arrays with weft.numpy. What
        arrays have is an attribute of the class too, and takes both: `map(weft.Array.sum, xs)`.

        Examples:
          >>> isinstance(wnp.ones(2), weft.Array), isinstance(np.ones(2), weft.Array)
          (True, False)
        """

        def __new__(cls, *args, **kwargs):
            raise TypeError("weft.Array cannot be called; make arrays with weft.numpy.asarray")


# ---- Array


def to_numpy(self, dtype=None, copy=None):
    value = self._value()
    if dtype is not None and value.dtype != dtype:
        if copy is False:
            raise ValueError(f"cannot give {value.dtype} as {np.dtype(dtype)} without a copy")
        return value.astype(dtype)
    return value.copy() if copy else value


def _text(self, prefix, suffix):
    weak = ", weak_type=True" if self.weak_type else ""
    (name,) = self.dtype.names or (self.dtype.name,)  # float0 is a structure of itself
    end = f"dtype={name}{weak}{suffix}"
    if self.is_deleted():
        return f"{prefix}<deleted>, shape={self.shape}, {end}"
    if not self._is_readable:
        return f"{prefix}shape={self.shape}, {end}"
    if is_key(self.dtype):
        own = self if self.is_fully_addressable else _addressable_data(self, 0)
        return f"{prefix}{self.shape}, {end} overlaying:\n{_words(own)._value()}"
    if self.size == 0:
        return f"{prefix}[], shape={self.shape}, {end}"
    values = np.array2string(self._value(), separator=", ", prefix=prefix, suffix=",")
    separator = ", "
    last = values.rsplit("\n", 1)[-1]
    width = len(last) + (len(prefix) if "\n" not in values else 0)
    if width + 2 + len(end) > np.get_printoptions()["linewidth"]:
        separator = ",\n" + " " * len(prefix)
    return f"{prefix}{values}{separator}{end}"


def _repr(self):
    return _text(self, "Array(", ")")


def _html_text(self):
    """What a notebook shows of it: its type and place, and the first and last values."""
    (name,) = self.dtype.names or (self.dtype.name,)
    facts = [_figures.size(self.nbytes)]
    if self.is_deleted():
        return _html.card(f"{name}{[*self.shape]}", [*facts, "deleted"])
    sharding = self.sharding
    facts.append("weak type" if self.weak_type else "")
    if len(sharding.device_set) == 1:
        facts += map(str, sharding.device_set)
    else:
        facts += [str(sharding), f"{[*sharding.shard_shape(self.shape)]} on each device"]
    values = "values that this process has not"
    if self._is_readable:
        shown = _words(self) if is_key(self.dtype) else self
        values = np.array2string(shown._value(), separator=", ", threshold=500, max_line_width=100)
    return _html.card(f"{name}{[*self.shape]}", facts, _html.listing(values))


def _str(self):
    return _repr(self) if is_key(self.dtype) or not self._is_readable else str(self._value())


def formatted(self, spec):
    if self.ndim == 0 and not is_key(self.dtype):
        return format(self._value()[()], spec)
    if not spec:
        return str(self)
    raise TypeError(
        f"only arrays without axes take the format {spec!r}; got shape {self.shape}\n"
        "  Index it, or see numpy.array2string for the text of whole arrays."
    )


def _scalar(self, kind):
    if self.ndim != 0:
        element = "x.item()" if self.size == 1 else f"x[{', '.join('0' * self.ndim)}]"
        raise TypeError(
            f"only an array without axes is {kind}; got shape {self.shape}\n"
            f"  Take an element, as with {element}."
        )
    return self._value()[()]


def _real_scalar(self, kind):
    value = _scalar(self, kind)
    if value.dtype.kind == "c":
        raise TypeError(f"only a real array is {kind}; got {self.dtype}\n  Take x.real.")
    return value


def _bool(self):
    if is_key(self.dtype):
        raise TypeError(f"random keys are neither true nor false; got {self.dtype}")
    if self.size != 1:
        raise ValueError(
            f"the truth value of an array of shape {self.shape} is ambiguous; use any() or all()"
        )
    return bool(self._value().reshape(())[()])


def _index(self):
    if self.ndim != 0 or not np.issubdtype(self.dtype, np.integer):
        raise TypeError(
            f"only a scalar integer array is an index; got {self.dtype.name}{list(self.shape)}"
        )
    return int(self._value())


def _words(keys):
    """The words of random keys along last axes."""
    return _keys.words(keys)


def _rebuild_keys(words, dtype):
    return _keys.wrapped(_rebuild(words, False), dtype)


def _rebuild(value, weak):
    return _core.put(value, weak, _core.current_placement(), False)


def _reduce(self):
    if is_key(self.dtype):
        return _rebuild_keys, (np.asarray(_words(self)._value()), self.dtype)
    return _rebuild, (np.asarray(self._value()), self.weak_type)


def _copy(self):
    """A copy, which outlives the donation or deletion of the array.

    Examples:
      >>> x = wnp.arange(3)
      >>> y = x.copy()
      >>> x.delete()
      >>> y
      Array([0, 1, 2], dtype=int32)
    """
    return _core.copy_array(self)


def _dlpack(self, *, stream=None, max_version=None, dl_device=None, copy=None):
    """A DLPack capsule that shares the memory, or that of a copy.

    Args:
      stream: of the consumer, for arrays on a GPU; the value is there before this returns.
      max_version: the newest version, (major, minor), that the consumer knows. From (1, 0) on, the
        capsule is of version 1.0 and says that arrays are not to be written to. Older ones cannot.
      dl_device: (device type, number) on which the consumer wants it: that of the array, or the
        CPU, which takes a copy.
      copy: True for a copy in any case, which the consumer may write to; False for none.

    Raises BufferError for another device and for dtypes that DLPack lacks (those of less than 8
    bits and of random keys), AttributeValueError for
    a stream that the device does not have and for a copy that is needed and not allowed.
    """
    from weft.runtime.buffers import export

    if is_key(self.dtype):
        raise BufferError(
            f"[__dlpack__] expected an array of numbers; got random keys, {self.dtype}\n"
            "  weft.random.key_data gives their words."
        )
    return export(self, stream, max_version, dl_device, copy)


def _pointer(self):
    """The address of the memory; RuntimeError for an array on several devices."""
    from weft.runtime.buffers import pointer

    if _sharding(self).num_devices > 1:
        raise RuntimeError(
            f"unsafe_buffer_pointer expected an array on one device; got one on {self.sharding}"
        )
    return pointer(self)


def _format_of(self):
    from weft._sharding.layout import Format, Layout

    return Format(Layout._of_arrays(self.ndim), self.sharding)


def _dlpack_device(self):
    from weft.runtime.buffers import dlpack_device

    return dlpack_device(self)


def _sharding(self):
    from weft._placement import sharding_of

    return sharding_of(self._placement, self.ndim)


class Shard:
    """What one device holds of an array.

    Attributes: device; index, a tuple of slices: where in the array this is; replica_id, the number
    of this among those that hold the same; data, the Array of it.
    """

    def __init__(self, device, sharding, global_shape, data=None):
        indices = sharding.devices_indices_map(tuple(global_shape))
        self.device = device
        self.index = indices[device]
        self.replica_id = 0
        for other, index in indices.items():
            if other is device:
                break
            self.replica_id += index == self.index
        self._data = data

    @property
    def data(self):
        return self._data() if callable(self._data) else self._data

    def __repr__(self):
        return (
            f"Shard(device={self.device!r}, index={self.index}, replica_id={self.replica_id}, "
            f"data={self.data})"
        )


def _shards(self):
    """A list with a Shard for each device of this process that holds a part of the array."""
    from weft import _placement

    sharding = _sharding(self)
    if sharding.num_devices == 1 and sharding.is_fully_addressable:
        return [Shard(self.device, sharding, self.shape, self)]
    parts = functools.cache(lambda: _placement.parts_of(self))
    return [
        Shard(device, sharding, self.shape, lambda i=i: parts()[i])
        for i, (device, _, _) in enumerate(_core.shards(self._placement, self.shape, True))
    ]


def _global_shards(self):
    """A list with a Shard for each device that holds a part; those of other processes have none."""
    sharding, own = _sharding(self), {shard.device: shard for shard in _shards(self)}
    everywhere = _core.shards(self._placement, self.shape, False)
    return [own.get(d) or Shard(d, sharding, self.shape) for d, _, _ in everywhere]


def _addressable_data(self, index):
    """The Array that is the index-th of `addressable_shards`.

    Examples:
      >>> wnp.arange(4).addressable_data(0)
      Array([0, 1, 2, 3], dtype=int32)
    """
    shards = _shards(self)
    if not -len(shards) <= operator.index(index) < len(shards):
        raise IndexError(f"addressable_data expected an index below {len(shards)}; got {index}")
    return shards[index].data


def _to_host_async(self):
    """Nothing but a check that the array was not deleted: reading its value starts the copy."""
    _ = self._buffer


def contains(self, value):
    """Whether an array of one axis has an element equal to `value`."""
    if self.ndim != 1:
        raise ValueError(f"`in` expected an array of one axis; got shape {self.shape}")
    shape = _core.typeof(value)[0]
    if shape:
        raise ValueError(f"`in` expected a scalar to look for; got shape {shape}")
    return (self == value).any()


def byteswap(self):
    """The bytes of each element in reverse order.

    Examples:
      >>> wnp.array([1, 256], "uint16").byteswap()
      Array([256,   1], dtype=uint16)
    """
    from weft.dtypes import real_dtype
    from weft.numpy import flip  # circle: it shows this type

    # Each part of a complex number is turned by itself.
    parts = self.reshape(-1).view(real_dtype(self.dtype)) if self.dtype.kind == "c" else self
    width = parts.dtype.itemsize
    if width == 1:
        return self
    octets = parts.reshape(-1).view("uint8").reshape((*parts.shape, width))
    return flip(octets, -1).reshape(-1).view(self.dtype).reshape(self.shape)


def no_flat(self):
    """Refused: NumPy's iterator writes to its array."""
    raise NotImplementedError(
        "arrays have no iterator that writes: use x.ravel(), or x.flatten(), in place of x.flat"
    )


def aval(self):
    from weft._types.avals import typeof

    return typeof(self)


def item(self, *index):
    """An element as a Python number; the array's only one without an index.

    Examples:
      >>> wnp.array([[1, 2], [3, 4]]).item(1, 0), wnp.array(2.5).item()
      (3, 2.5)
    """
    value = self._value()
    return value.item(*index)


METHODS = {
    "__array__": to_numpy,
    "__repr__": _repr,
    "__str__": _str,
    "__format__": formatted,
    "_repr_html_": _html_text,
    "__bool__": _bool,
    "__int__": lambda self: int(_real_scalar(self, "an int")),
    "__float__": lambda self: float(_real_scalar(self, "a float")),
    "__complex__": lambda self: complex(_scalar(self, "a complex number")),
    "__index__": _index,
    "__reduce__": _reduce,
    "__copy__": _copy,
    "__deepcopy__": lambda self, memo: _copy(self),
    "__dlpack__": _dlpack,
    "__dlpack_device__": _dlpack_device,
    "copy": _copy,
    "item": item,
    "tolist": lambda self: self._value().tolist(),
    "tobytes": lambda self, order="C": self._value().tobytes(order),
    "devices": lambda self: _sharding(self).device_set,
    "addressable_data": _addressable_data,
    "addressable_shards": property(_shards, doc=_shards.__doc__),
    "copy_to_host_async": _to_host_async,
    "global_shards": property(_global_shards, doc=_global_shards.__doc__),
    "is_fully_addressable": property(
        lambda self: _sharding(self).is_fully_addressable,
        doc="Whether all its devices are this process's.",
    ),
    "is_fully_replicated": property(
        lambda self: self._placement.is_replicated, doc="Whether each device has the whole array."
    ),
    "sharding": property(_sharding, doc="Where the parts of the array lie."),
    "format": property(_format_of, doc="Its sharding, and the order of its elements in memory."),
    "is_ready": lambda self: not self.is_deleted() and self._buffer.is_ready(),
    "on_device_size_in_bytes": lambda self: self._buffer.on_device_size_in_bytes(),
    "unsafe_buffer_pointer": _pointer,
}
