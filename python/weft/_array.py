"""What Array and Tracer can do beyond arithmetic: conversions, text, pickling, interchange.

`install` sets these functions on the C++ types.
"""

import functools
import operator
from typing import TYPE_CHECKING

import numpy as np

from weft import _core, _figures, _html
from weft._surface import example_section, public_function
from weft._types.keys import keys as _keys
from weft.dtypes import is_key
from weft.errors import (
    ConcretizationTypeError,
    ShapeError,
    TracerArrayConversionError,
    TracerBoolConversionError,
    TracerIntegerConversionError,
)

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


def _array(self, dtype=None, copy=None):
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


def _format(self, spec):
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


def _contains(self, value):
    """Whether an array of one axis has an element equal to `value`."""
    if self.ndim != 1:
        raise ValueError(f"`in` expected an array of one axis; got shape {self.shape}")
    shape = _core.typeof(value)[0]
    if shape:
        raise ValueError(f"`in` expected a scalar to look for; got shape {shape}")
    return (self == value).any()


def _byteswap(self):
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


def _no_flat(self):
    """Refused: NumPy's iterator writes to its array."""
    raise NotImplementedError(
        "arrays have no iterator that writes: use x.ravel(), or x.flatten(), in place of x.flat"
    )


def _aval(self):
    from weft._types.avals import typeof

    return typeof(self)


def _item(self, *index):
    """An element as a Python number; the array's only one without an index.

    Examples:
      >>> wnp.array([[1, 2], [3, 4]]).item(1, 0), wnp.array(2.5).item()
      (3, 2.5)
    """
    value = self._value()
    return value.item(*index)


_ARRAY = {
    "__array__": _array,
    "__repr__": _repr,
    "__str__": _str,
    "__format__": _format,
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
    "item": _item,
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


# ---- Tracer


def _tracer_repr(self):
    dims = ",".join(map(str, self.shape))
    return f"Tracer({'~' if self.weak_type else ''}{self.dtype.name}[{dims}])"


def _on_demand(error, wanted, hint, convert):
    """A conversion that works where the tracer has one value: under un-jitted derivatives."""
    refuse = _refuse(error, wanted, hint)

    def conversion(self, *args, **kwargs):
        value = _core.concrete_value(self)
        return refuse(self) if value is None else convert(value, *args, **kwargs)

    return conversion


def _if_constant(error, wanted, hint, convert):
    """The same, for what would silently lose the derivative that goes through the tracer."""
    converted = _on_demand(error, wanted, hint, convert)

    def conversion(self, *args, **kwargs):
        if _core.carries_derivative(self):
            raise error(
                f"expected a value that no derivative goes through to make {wanted}; got "
                f"{self._origin}, which is being differentiated\n"
                f"  {hint} If it is meant to be a constant, take weft.lax.stop_gradient of it."
            )
        return converted(self, *args, **kwargs)

    return conversion


def _format_traced(self, spec):
    if not spec:
        return _tracer_repr(self)
    value = _core.concrete_value(self)
    if value is not None:
        return _format(value, spec)
    try:
        return format(_tracer_repr(self), spec)  # only an alignment
    except ValueError:
        return _refuse(ConcretizationTypeError, f"text of format {spec!r}", _TEXT)(self)


def _refuse(error, wanted, hint):
    def conversion(self, *_, **__):
        from weft._construct import construct  # parses Python: nothing that import should load

        asked_by = construct() if hint in (_BRANCH, _INDEX) else None
        way_out = _CONSTRUCTS.get(asked_by or "", hint)
        raise error(
            f"expected a concrete value to make {wanted}; got {self._origin}, which stands for "
            f"any value while the function is traced\n  {way_out}"
        )

    return conversion


_BRANCH = (
    "Use weft.numpy.where or weft.lax.cond instead of `if`, weft.lax.while_loop instead of "
    "`while`, or make the argument static (static_argnums)."
)
_STATIC = ", or make the argument static (static_argnums)."
_CONSTRUCTS = {
    "if": "Use weft.lax.cond instead of this `if`, or weft.numpy.where to select" + _STATIC,
    "if expression": "Use weft.numpy.where instead of this `if ... else`, or weft.lax.cond"
    + _STATIC,
    "while": "Use weft.lax.while_loop instead of this `while`" + _STATIC,
    "for": "Use weft.lax.fori_loop or weft.lax.scan instead of this `for`" + _STATIC,
    "assert": "This `assert` would check once, while the function is traced. To look at values as "
    "the program runs, use weft.debug.callback.",
    "and": "Use `&` (weft.numpy.logical_and) instead of this `and`" + _STATIC,
    "or": "Use `|` (weft.numpy.logical_or) instead of this `or`" + _STATIC,
    "not": "Use `~` (weft.numpy.logical_not) instead of this `not`" + _STATIC,
}
_NUMBER = "Keep it an array (.astype converts dtypes), or make the argument static."
_INDEX = (
    "Shapes, axes and slice bounds must be known while tracing: make the argument static "
    "(static_argnums), or use weft.lax.dynamic_slice for a start that varies. In place of a list, "
    "index weft.numpy.array(list); in place of `range`, use weft.lax.fori_loop."
)
_TEXT = (
    "To print values as the program runs, use weft.debug.print('{x}', x=x); to format a result, "
    "return it."
)
_NUMPY = (
    "NumPy functions need values; use the function of the same name in weft.numpy, or move the "
    "call out of the traced function."
)

_one_traced_bool = _on_demand(TracerBoolConversionError, "a bool", _BRANCH, bool)
_refuse_many = _refuse(ShapeError, "one bool of many elements (any() and all() make one)", _BRANCH)


def _traced_bool(self):
    # Arrays of several elements have no truth value, traced or not.
    if self.size != 1 and _core.concrete_value(self) is None:
        return _refuse_many(self)
    return _one_traced_bool(self)


_TRACER = {
    "__repr__": _tracer_repr,
    "__str__": _tracer_repr,
    "__format__": _format_traced,
    "__bool__": _traced_bool,
    "__int__": _on_demand(ConcretizationTypeError, "an int", _NUMBER, int),
    "__float__": _if_constant(ConcretizationTypeError, "a float", _NUMBER, float),
    "__complex__": _if_constant(ConcretizationTypeError, "a complex number", _NUMBER, complex),
    "__index__": _on_demand(TracerIntegerConversionError, "an int", _INDEX, operator.index),
    "__array__": _if_constant(TracerArrayConversionError, "a NumPy array", _NUMPY, _array),
    "__reduce__": _refuse(ConcretizationTypeError, "a pickle", _NUMBER),
    "tolist": _if_constant(
        ConcretizationTypeError, "a list", _NUMBER, lambda value: value.tolist()
    ),
    "item": _on_demand(ConcretizationTypeError, "a number", _NUMBER, _item),
    "__copy__": lambda self: self,
    "__deepcopy__": lambda self, memo: self,
    "copy": lambda self: _core.bind("copy", self),
    "block_until_ready": lambda self: self,
}


def _transposed(self):
    return _core.bind("transpose", self, permutation=tuple(reversed(range(self.ndim))))


def _matrix_transposed(self):
    if self.ndim < 2:
        raise ValueError(f"mT expected at least 2 axes; got shape {self.shape}")
    axes = tuple(range(self.ndim - 2))
    return _core.bind("transpose", self, permutation=(*axes, self.ndim - 1, self.ndim - 2))


_BOTH = {
    "T": property(_transposed, doc="The array with its axes in reverse order."),
    "mT": property(_matrix_transposed, doc="The array with its last two axes exchanged."),
    "itemsize": property(lambda self: self.dtype.itemsize, doc="Bytes of an element."),
    "aval": property(_aval, doc="The type of the array; see `weft.typeof`."),
    "byteswap": _byteswap,
    "flat": property(_no_flat, doc=_no_flat.__doc__),
    "__contains__": _contains,
    "nbytes": property(lambda self: self.size * self.dtype.itemsize, doc="Bytes of all elements."),
    # NumPy's operators leave the operation to ours.
    "__array_priority__": 100,
    "__dir__": lambda self: _dir(self),
}


# ---- what is not there


class _Absent:
    """In the place of an attribute that is not there: says why, or what to write."""

    def __init__(self, name, text):
        self._name, self._text = name, text

    def __get__(self, instance, owner):
        # Without the object, so that Python adds no guess of its own.
        raise AttributeError(self._text, name=self._name)


def _dir(self):
    kind = type(self)
    return [n for n in object.__dir__(self) if not isinstance(vars(kind).get(n), _Absent)]


def _no_device(name):
    return (
        f"a traced array has no {name!r}: it stands for any value, which is on a device only when "
        "the program runs"
    )


# Attributes of tensors of other frameworks, and what is written here.
_IN_PLACE = "arrays never change: write x = "
_OF_TENSORS = {
    "abs": "write abs(x)",
    "add": "write x + y",
    "add_": _IN_PLACE + "x + y",
    "assign": _IN_PLACE + "y",
    "backward": "derivatives are of functions: write weft.grad(f)(x)",
    "bmm": "write x @ y",
    "bool": "write x.astype(bool)",
    "cat": "write weft.numpy.concatenate([x, y])",
    "chunk": "write weft.numpy.array_split(x, n)",
    "clamp": "write x.clip(low, high)",
    "clamp_": _IN_PLACE + "x.clip(low, high)",
    "clone": "arrays never change: write x itself, or x.copy() for a buffer of its own",
    "contiguous": "arrays are contiguous: write x itself",
    "copy_": _IN_PLACE + "y",
    "cos": "write weft.numpy.cos(x)",
    "cpu": "write weft.device_put(x, weft.devices('cpu')[0])",
    "cuda": "write weft.device_put(x, weft.devices('gpu')[0])",
    "data_ptr": "write x.unsafe_buffer_pointer()",
    "detach": "write weft.lax.stop_gradient(x)",
    "detach_": _IN_PLACE + "weft.lax.stop_gradient(x)",
    "dim": "write x.ndim",
    "div": "write x / y",
    "div_": _IN_PLACE + "x / y",
    "double": "write x.astype('float64')",
    "element_size": "write x.itemsize",
    "eq": "write x == y",
    "exp": "write weft.numpy.exp(x)",
    "expand": "write weft.numpy.broadcast_to(x, shape)",
    "expand_as": "write weft.numpy.broadcast_to(x, y.shape)",
    "fill_": _IN_PLACE + "weft.numpy.full_like(x, value)",
    "flip": "write weft.numpy.flip(x, axis)",
    "float": "write x.astype('float32')",
    "gather": "write weft.numpy.take_along_axis(x, index, axis)",
    "get_shape": "write x.shape",
    "grad": "derivatives are of functions: write weft.grad(f)(x)",
    "grad_fn": "derivatives are of functions: write weft.grad(f)(x)",
    "half": "write x.astype('float16')",
    "index_select": "write weft.numpy.take(x, index, axis)",
    "int": "write x.astype('int32')",
    "is_contiguous": "arrays are contiguous",
    "is_cuda": "write x.devices()",
    "log": "write weft.numpy.log(x)",
    "long": "write x.astype('int64')",
    "masked_fill": "write weft.numpy.where(mask, value, x)",
    "masked_fill_": _IN_PLACE + "weft.numpy.where(mask, value, x)",
    "matmul": "write x @ y",
    "mm": "write x @ y",
    "mul": "write x * y",
    "mul_": _IN_PLACE + "x * y",
    "narrow": "write weft.lax.slice_in_dim(x, start, stop, axis=axis)",
    "norm": "write weft.numpy.linalg.norm(x)",
    "numel": "write x.size",
    "numpy": "write numpy.asarray(x)",
    "permute": "write x.transpose(axes)",
    "pow": "write x ** y",
    "relu": "write weft.nn.relu(x)",
    "requires_grad": "derivatives are of functions: write weft.grad(f)(x)",
    "requires_grad_": "derivatives are of functions: write weft.grad(f)(x)",
    "scatter": "write x.at[index].set(y)",
    "scatter_": _IN_PLACE + "x.at[index].set(y)",
    "scatter_add_": _IN_PLACE + "x.at[index].add(y)",
    "sigmoid": "write weft.nn.sigmoid(x)",
    "sin": "write weft.numpy.sin(x)",
    "softmax": "write weft.nn.softmax(x)",
    "split": "write weft.numpy.split(x, sections, axis)",
    "sqrt": "write weft.numpy.sqrt(x)",
    "sub": "write x - y",
    "sub_": _IN_PLACE + "x - y",
    "t": "write x.T",
    "tanh": "write weft.numpy.tanh(x)",
    "tile": "write weft.numpy.tile(x, repeats)",
    "to": "write x.astype(dtype), or weft.device_put(x, device)",
    "topk": "write weft.lax.top_k(x, k)",
    "tril": "write weft.numpy.tril(x)",
    "triu": "write weft.numpy.triu(x)",
    "type": "write x.astype(dtype)",
    "type_as": "write x.astype(y.dtype)",
    "unbind": "write weft.numpy.unstack(x, axis=axis)",
    "unsqueeze": "write weft.numpy.expand_dims(x, axis)",
    "where": "write weft.numpy.where(condition, x, y)",
    "zero_": _IN_PLACE + "weft.numpy.zeros_like(x)",
}


def _no_tensor(name, text):
    return f"arrays have no attribute {name!r}: {text}"


# A value has these only where it is, on a device. Code asks for the first ones to tell arrays that
# are there from others.
_CONCRETE_ONLY = ("copy_to_host_async", "device", "is_ready", "sharding")
_ON_DEVICE = (
    "It is on a device only when the program runs: look at the arguments or results of the traced "
    "function, or at weft.typeof(x)."
)


def _on_device(name):
    return _refuse(ConcretizationTypeError, f"its {name}", _ON_DEVICE)


_TRACER |= {
    name: _on_device(name)
    for name in (
        "__dlpack__",
        "addressable_data",
        "delete",
        "devices",
        "is_deleted",
        "on_device_size_in_bytes",
        "tobytes",
        "unsafe_buffer_pointer",
    )
}
_TRACER |= {
    name: property(_on_device(name))
    for name in (
        "addressable_shards",
        "committed",
        "format",
        "global_shards",
        "is_fully_addressable",
        "is_fully_replicated",
    )
}


# By name of a method: what it does, and an example.
_DOCS = {
    "devices": (
        "The set of devices that have parts of the array.",
        *("wnp.arange(3).devices() == {weft.devices()[0]}", "True"),
    ),
    "is_ready": (
        "Whether its value has been computed.",
        *("wnp.arange(3).block_until_ready().is_ready()", "True"),
    ),
    "on_device_size_in_bytes": (
        "Bytes of its memory on the device.",
        *("wnp.zeros(256).on_device_size_in_bytes()", "1024"),
    ),
    "tobytes": (
        "The bytes of its elements, in row-major order by default.",
        *('wnp.array([1, 2], "uint8").tobytes()', "b'\\x01\\x02'"),
    ),
    "tolist": (
        "Its elements as Python numbers, in nested lists.",
        *("wnp.array([[1, 2], [3, 4]]).tolist()", "[[1, 2], [3, 4]]"),
    ),
}


def install():
    """Sets the methods on the types."""
    for name, (text, call, result) in _DOCS.items():
        _ARRAY[name].__doc__ = f"{text}\n\n{example_section(call, result)}"
    absent = {name: _Absent(name, _no_device(name)) for name in _CONCRETE_ONLY}
    tensors = {name: _Absent(name, _no_tensor(name, text)) for name, text in _OF_TENSORS.items()}
    kinds = ((_core.Array, tensors, _BOTH, _ARRAY), (Tracer, tensors, absent, _BOTH, _TRACER))
    for kind, *tables in kinds:
        for table in tables:
            for name, method in table.items():
                setattr(kind, name, public_function(method))


def show_members():
    """Gives weft.Array the attributes that arrays have, when all of them are there."""
    for name, value in vars(_core.Array).items():
        is_special = name.startswith("__") and name.endswith("__")
        if isinstance(value, _Absent) or name in ("__doc__", "__module__"):
            continue
        if is_special or not name.startswith("_"):
            setattr(Array, name, _member(name, value))


def _member(name, value):
    """An attribute of arrays as one of weft.Array, which stands for traced values too."""
    is_shared = vars(Tracer).get(name) is value
    if is_shared or not hasattr(value, "__get__"):
        return value

    def of(self):
        if not isinstance(self, Array):
            raise TypeError(f"weft.Array.{name} expected an array; got {type(self).__name__}")
        return getattr(self, name)

    if not callable(value):
        return property(of, doc=value.__doc__)

    def method(self, *args, **kwargs):
        return of(self)(*args, **kwargs)

    method.__name__, method.__qualname__ = name, f"Array.{name}"
    method.__doc__ = value.__doc__
    return public_function(method)
