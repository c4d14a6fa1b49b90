"""Arrays from Python and NumPy values, and arrays of constants.

Outside of traces, small constant arrays are made on the host: that is faster than to compile a
program for each shape. Within traces they are operations.
"""

import math
import operator
from typing import Any

import numpy as np

from weft import _core
from weft._arguments import normalize_axes, shape_of, static_shape, type_of, wrapped
from weft._dims import is_symbolic_dim, max_dim
from weft._warnings import warn
from weft.dtypes import (
    default_float,
    default_int,
    is_bool,
    is_complex,
    is_float,
    is_integer,
    is_key,
    requested_dtype,
)
from weft.errors import (
    AttributeValueError,
    ConcretizationTypeError,
    DTypeError,
    ShapeError,
)
from weft.lax import _creation as lax_creation
from weft.lax._elementwise import converted
from weft.lax._shape import reshape, stack
from weft.lax._sharding import can_be_split, placed, placed_like, varying_like

_HOST_LIMIT = 1 << 16  # elements


def on_host(size):
    """Whether a constant array of so many elements is made by NumPy."""
    return not is_symbolic_dim(size) and size <= _HOST_LIMIT and not _core.in_trace()


@can_be_split
def array(
    object,
    dtype=None,
    *args,
    copy=True,
    order: Any = "K",
    ndmin: Any = 0,
    device=None,
    out_sharding=None,
):
    """An array from a number, a NumPy array, nested sequences, or an array.

    Args:
      object: the values. Nested lists and tuples may hold arrays, also traced ones. An object of
        another library is asked for its `__jax_array__()` or `__array__()`.
      dtype: dtype of the result; else that of the values, 64-bit ones becoming 32-bit ones unless
        they are enabled. A Python number gives a weakly typed array.
      copy: whether an array is copied. Arrays never change, but a copy outlives the donation or
        deletion of the original.
      order: ignored but for "K" and "C", which it must be.
      ndmin: least number of axes; missing ones of size 1 are added in front.
      device: where the result is to be: one of `weft.devices()`, or None for where it is.
      out_sharding: None, or how the result is split, a PartitionSpec or NamedSharding.
      args: `copy`, `order` and `ndmin` by position, which is deprecated.

    Raises:
      DTypeError: for strings, objects and other values that are no numbers.
      ShapeError: if the sequences are nested irregularly.
      OverflowError: for a Python integer beyond the range of the dtype.

    Examples:
      >>> wnp.array([[1, 2], [3, 4]])
      Array([[1, 2],
             [3, 4]], dtype=int32)
      >>> wnp.array([1, 2], dtype="float16", ndmin=2)
      Array([[1., 2.]], dtype=float16)
    """
    if args:
        warn("array: pass copy, order and ndmin by keyword", DeprecationWarning)
        copy, order, ndmin = (*args, *(copy, order, ndmin)[len(args) :])
    if order not in (None, "K", "C", "A"):
        raise NotImplementedError(f"[array] expected order 'K', 'A' or 'C'; got {order!r}")
    if dtype is not None:
        dtype = requested_dtype(dtype, "array")
    if isinstance(object, np.ndarray):
        object = _plain(object, dtype, copy)
    result = _convert(object, dtype)
    if copy and result is object and isinstance(result, _core.Array):
        result = _core.copy_array(result)
    missing = operator.index(ndmin) - result.ndim
    result = reshape(result, (1,) * missing + result.shape) if missing > 0 else result
    return placed(result, device)


@can_be_split
def asarray(a, dtype=None, order=None, *, copy=None, device=None, out_sharding=None):
    """As `array`, but an array that has the dtype already is returned as it is.

    Examples:
      >>> x = wnp.array([1, 2])
      >>> wnp.asarray(x) is x
      True
      >>> wnp.asarray(x, dtype="float32")
      Array([1., 2.], dtype=float32)
    """
    return array(a, dtype, copy=bool(copy), order=order, device=device)


def _plain(object, dtype, copy):
    """An array of NumPy's, as NumPy and jax take it: a copy leaves a mask behind, and a dtype that
    is asked for is converted to from any order of bytes."""
    if copy and type(object) is not np.ndarray:
        object = np.asarray(object)
    if dtype is not None and not object.dtype.isnative:
        object = object.astype(object.dtype.newbyteorder("="))
    return object


def _convert(object, dtype):
    if isinstance(object, (_core.Array, _core.Tracer)):
        return _core.asarray(object) if dtype is None else converted(object, dtype)
    if type(object) is float and object != object and (dtype is None or is_float(dtype)):
        return _nan(object, dtype)
    if isinstance(object, (bool, int, float, complex, np.ndarray, np.generic)):
        _check_numeric(np.asarray(object) if isinstance(object, np.generic) else object)
        if dtype is not None and type(object) in (float, complex):
            lax_creation.check_number(object, dtype)
        return _core.asarray(object) if dtype is None else converted(object, dtype)
    if object is None:
        raise AttributeValueError("[array] expected numbers; got None")
    if isinstance(object, (list, tuple)):
        if _holds_arrays(object):
            return _stacked(object, dtype)
        return _core.asarray(_numpy_array(object, dtype))
    if _core.is_foreign_array(object):
        return _convert(object.__jax_array__(), dtype)
    values = np.asarray(object)
    _check_numeric(values)
    return _core.asarray(values) if dtype is None else _core.astype(values, dtype)


def _nan(value, dtype):
    """An array of a NaN with its sign, which literals do not keep."""
    weak, dtype = dtype is None, default_float() if dtype is None else dtype
    return _core.astype(reshape(_core.asarray(np.full(1, value, dtype)), ()), dtype, weak)


def _check_numeric(x):
    if isinstance(x, np.ndarray) and x.dtype.kind not in "biufcV":
        raise DTypeError(f"[array] expected numbers; got values of dtype {x.dtype}")


def _holds_arrays(sequence):
    kinds = set(map(type, sequence))
    if kinds <= {int, float, bool, complex}:
        return False
    plain = (int, float, complex, np.ndarray, np.generic, list, tuple, str, bytes)
    if any(not issubclass(kind, plain) and _is_array(kind) for kind in kinds):
        return True
    return any(_holds_arrays(element) for element in sequence if isinstance(element, (list, tuple)))


def _is_array(kind):
    """Whether objects of a class are arrays, or can be made arrays."""
    protocols = ("__jax_array__", "__array__")
    return issubclass(kind, (_core.Array, _core.Tracer)) or any(hasattr(kind, p) for p in protocols)


def _numpy_array(sequence, dtype):
    """A NumPy array of nested sequences of numbers, in its final dtype."""
    try:
        values = np.array(sequence)
    except ValueError as error:
        raise ShapeError(
            f"[array] expected sequences nested to the same depth and length; got {error}"
        ) from None
    if values.dtype.kind == "f" and values.size and dtype is not None and is_integer(dtype):
        # Beside smaller ones, NumPy takes integers of 64 bits without a sign as floats.
        exact = np.array(sequence, object)
        values = exact if set(map(type, exact.flat)) <= {bool, int} else values
    if values.dtype == object:
        values = _with_wide_integers(values, dtype)
    _check_numeric(values)
    target = _common_dtype(sequence, values) if dtype is None else dtype
    if is_integer(target) and values.dtype.kind in "iu" and target.itemsize < values.itemsize:
        limits = np.iinfo(target) if target.kind in "iu" else None
        if limits and (values.min() < limits.min or values.max() > limits.max):
            raise OverflowError(
                f"[array] expected integers from {limits.min} to {limits.max}, the range of "
                f"{target}; got {values.min() if values.min() < limits.min else values.max()}"
            )
    if values.dtype.kind in "fc" and values.size and not is_complex(target):
        lax_creation.check_number(values.flat[np.argmin(np.isfinite(values))].item(), target)
    return values.astype(target)


def _with_wide_integers(values, dtype):
    """Numbers, some of them integers of 64 bits or more, as unsigned ones, floats or complex
    numbers."""
    kinds = set(map(type, values.flat))
    if not kinds <= {bool, int, float, complex}:
        raise DTypeError("[array] expected numbers; got other objects")
    if kinds <= {bool, int} and values.min() >= 0 and values.max() < 2**64:
        return values.astype(np.uint64)
    if kinds <= {bool, int} if dtype is None else is_integer(dtype):
        raise OverflowError("[array] expected integers of at most 64 bits; got larger ones")
    return values.astype(complex if complex in kinds else float)


def _common_dtype(sequence, values):
    """What nested sequences, which NumPy makes `values` of, promote to: Python's numbers give way
    to those that have a dtype."""
    dtypes, plain = set(), {}
    _collect_kinds(sequence, dtypes, plain)
    if dtypes:
        return _core.result_type(*dtypes, *plain.values())[0]
    return _core.canonical_dtype(values.dtype) if plain else default_float()


def _collect_kinds(sequence, dtypes, plain):
    """Adds the dtypes of the elements of nested sequences, and of Python's numbers one per type."""
    for kind in set(map(type, sequence)):
        elements = (x for x in sequence if type(x) is kind)
        if issubclass(kind, np.generic):
            dtypes.add(next(elements).dtype)
        elif issubclass(kind, np.ndarray):
            dtypes.update(x.dtype for x in elements)
        elif issubclass(kind, (list, tuple)):
            for x in elements:
                _collect_kinds(x, dtypes, plain)
        else:
            plain[kind] = next(elements)


def _stacked(sequence, dtype):
    parts = [_convert(element, None) for element in sequence]
    if dtype is None:
        dtype = _core.result_type(*parts)[0]
    shapes = {part.shape for part in parts}
    if len(shapes) > 1:
        raise ShapeError(f"[array] expected elements of one shape; got {sorted(shapes)}")
    return stack([_core.astype(part, dtype) for part in parts])


def copy(a, order=None):
    """A copy of an array, which outlives the donation or deletion of the original.

    `order` is ignored but for "K" and "C", which it must be. OperandError (a TypeError) for lists.

    Examples:
      >>> x = wnp.array([1, 2])
      >>> wnp.copy(x) is x
      False
    """
    if not isinstance(a, np.ndarray):
        _core.typeof(a)
    return array(a, order=order)


def frombuffer(buffer, dtype=float, count=-1, offset=0):
    """A one-dimensional array from an object with the buffer protocol, such as bytes.

    `dtype` is that of the elements, of which `count` are read, all if it is -1, from byte `offset`
    on. Elements of 64 bits become such of 32 where these are off: the default is read as float64.

    Examples:
      >>> wnp.frombuffer(b"abc", dtype="uint8")
      Array([97, 98, 99], dtype=uint8)
    """
    return array(np.frombuffer(buffer, np.dtype(dtype), count, offset))


def from_dlpack(x, /, *, device=None, copy=None):
    """An array from an object of another library that has `__dlpack__`; shares memory if possible.

    Args:
      x: the object.
      device: one of `weft.devices()`, to which the result is committed; None leaves it on the CPU.
      copy: whether to copy; None copies only if the memory cannot be shared.

    Raises OperandError if `x` has no `__dlpack__`, DTypeError for a dtype that weft does not have,
    AttributeValueError for copy=False where the memory cannot be shared.

    Examples:
      >>> wnp.from_dlpack(np.arange(3.0, dtype="float32"))
      Array([0., 1., 2.], dtype=float32)
    """
    from weft.runtime.buffers import from_dlpack as share

    return share(x, device, copy)


@can_be_split
def full(shape, fill_value, dtype=None, *, device=None, out_sharding=None):
    """An array with all elements equal to `fill_value`.

    Args:
      shape: an integer or a sequence of integers.
      fill_value: a scalar, or an array that broadcasts to `shape`.
      dtype: dtype of the result; else that of `fill_value`, weak for a Python number.
      device: where the result is to be: one of `weft.devices()`, or None for the default one.
      out_sharding: None, or how the result is split, a PartitionSpec or NamedSharding.

    Examples:
      >>> wnp.full((2, 3), 7)
      Array([[7, 7, 7],
             [7, 7, 7]], dtype=int32, weak_type=True)
    """
    shape = static_shape(shape, "full")
    if dtype is not None:
        dtype = requested_dtype(dtype, "full")
    return placed(_filled(shape, fill_value, dtype, False), device)


def _filled(shape, fill_value, dtype, weak):
    if dtype is None:
        _, dtype, weak = _core.typeof(fill_value)
    elif type(fill_value) is complex and not weak:
        lax_creation.check_number(fill_value, dtype)
    if is_key(dtype):
        return lax_creation.full_of_keys(shape, fill_value, dtype)
    number = isinstance(fill_value, (bool, int, float, complex, np.generic))
    rounds = isinstance(fill_value, float) and is_integer(dtype)  # as XLA does it
    if number and not rounds and on_host(math.prod(shape)):
        return _core.astype(_host_full(shape, fill_value, dtype), dtype, weak)
    fill_value = _core.astype(wrapped(fill_value, dtype), dtype, weak)
    if shape_of(fill_value):
        return _core.broadcast_to(fill_value, shape)
    return lax_creation.full(shape, fill_value)


def _host_full(shape, value, dtype):
    return np.full(shape, np.asarray(value).astype(dtype), dtype)


def _dtype_behind_shape(dtype, function):
    """The dtype of a new array; a number in its place is a size that belongs to the shape."""
    if isinstance(dtype, int):
        raise DTypeError(
            f"[{function}] expected a dtype as second argument; got {dtype}\n"
            f"  The shape is one argument, a tuple: write {function}((..., {dtype}))."
        )
    return default_float() if dtype is None else requested_dtype(dtype, function)


@can_be_split
def zeros(shape, dtype=None, *, device=None, out_sharding=None):
    """An array of zeros; float32 (or float64, where enabled) unless `dtype` is given.

    For the other arguments see `full`.

    Examples:
      >>> wnp.zeros((2, 3), dtype="int32")
      Array([[0, 0, 0],
             [0, 0, 0]], dtype=int32)
    """
    dtype = _dtype_behind_shape(dtype, "zeros")
    return placed(_filled(static_shape(shape, "zeros"), 0, dtype, False), device)


@can_be_split
def ones(shape, dtype=None, *, device=None, out_sharding=None):
    """An array of ones; float32 (or float64, where enabled) unless `dtype` is given.

    For the other arguments see `full`.

    Examples:
      >>> wnp.ones(3)
      Array([1., 1., 1.], dtype=float32)
    """
    dtype = _dtype_behind_shape(dtype, "ones")
    return placed(_filled(static_shape(shape, "ones"), 1, dtype, False), device)


@can_be_split
def empty(shape, dtype=None, *, device=None, out_sharding=None):
    """An array of unspecified values (zeros); see `zeros`.

    Examples:
      >>> wnp.empty((2, 3)).shape
      (2, 3)
    """
    dtype = _dtype_behind_shape(dtype, "empty")
    return placed(_filled(static_shape(shape, "empty"), 0, dtype, False), device)


def _like(function, a, fill_value, dtype, shape, device):
    own_shape, own_dtype, weak = type_of(a)
    shape = own_shape if shape is None else static_shape(shape, function)
    if dtype is None:
        weak = weak and not shape_of(fill_value)
        dtype = own_dtype
    else:
        dtype, weak = requested_dtype(dtype, function), False
    result = _filled(shape, fill_value, dtype, weak)
    if device is not None:
        return placed(result, device)
    return varying_like(result, a) if shape_of(fill_value) else placed_like(result, a)


@can_be_split
def full_like(a, fill_value, dtype=None, shape=None, *, device=None, out_sharding=None):
    """As `full`, with the shape and dtype of `a` where they are not given.

    Examples:
      >>> wnp.full_like(wnp.array([1.5, 2.5]), 7)
      Array([7., 7.], dtype=float32)
    """
    return _like("full_like", a, fill_value, dtype, shape, device)


@can_be_split
def zeros_like(a, dtype=None, shape=None, *, device=None, out_sharding=None):
    """Zeros of the shape and dtype of `a`, unless others are given.

    `device` is where the result is to be; `out_sharding` is None, or how the result is split, a
    PartitionSpec or NamedSharding.

    Examples:
      >>> wnp.zeros_like(wnp.array([[1, 2], [3, 4]]))
      Array([[0, 0],
             [0, 0]], dtype=int32)
    """
    return _like("zeros_like", a, 0, dtype, shape, device)


@can_be_split
def ones_like(a, dtype=None, shape=None, *, device=None, out_sharding=None):
    """Ones of the shape and dtype of `a`, unless others are given.

    `device` is where the result is to be; `out_sharding` is None, or how the result is split, a
    PartitionSpec or NamedSharding.

    Examples:
      >>> wnp.ones_like(wnp.array([1, 2]), dtype=bool)
      Array([ True,  True], dtype=bool)
    """
    return _like("ones_like", a, 1, dtype, shape, device)


def empty_like(prototype, dtype=None, shape=None, *, device=None):
    """An array of unspecified values (zeros) of the shape and dtype of `prototype`.

    `device` is where the result is to be.

    Examples:
      >>> wnp.empty_like(wnp.array([1.5, 2.5])).dtype
      dtype('float32')
    """
    return _like("empty_like", prototype, 0, dtype, shape, device)


def static_number(x, function, name):
    """`x` as a Python number; a clear error if it is traced or no scalar."""
    if isinstance(x, (int, float, complex)) or is_symbolic_dim(x):
        return x
    if isinstance(x, _core.Tracer):
        raise ConcretizationTypeError(
            f"[{function}] expected {name} to be known while tracing, since the shape of the "
            f"result depends on it; got {x}"
        )
    if shape_of(x):
        raise ShapeError(f"[{function}] expected {name} to be a scalar; got shape {shape_of(x)}")
    return np.asarray(x).item()


@can_be_split
def arange(start, stop=None, step=None, dtype=None, *, device=None, out_sharding=None):
    """Evenly spaced numbers from `start` up to `stop` (excluded).

    Args:
      start, stop, step: numbers; `arange(n)` starts at 0, and the step is 1 unless given.
      dtype: dtype of the result; else that which the arguments promote to.
      device: where the result is to be: one of `weft.devices()`, or None for the default one.
      out_sharding: None, or how the result is split, a PartitionSpec or NamedSharding.

    Examples:
      >>> wnp.arange(3)
      Array([0, 1, 2], dtype=int32)
      >>> wnp.arange(1, 2, 0.25)
      Array([1.  , 1.25, 1.5 , 1.75], dtype=float32)
    """
    return placed(_arange(start, stop, step, dtype), device)


def _arange(start, stop, step, dtype):
    given = [x for x in (start, stop, step) if x is not None]
    for x in given:
        # Here the type of a value: a name of a dtype would promote too.
        if is_complex(_core.typeof(x)[1]):
            raise AttributeValueError("[arange] expected real numbers; got complex ones")
    if dtype is None:
        dtype = _core.result_type(*given)[0]
    else:
        dtype = requested_dtype(dtype, "arange")
    if is_bool(dtype):
        raise DTypeError("[arange] expected a number dtype; got bool")
    if stop is None:
        start, stop = 0, start
    start = static_number(start, "arange", "start")
    stop = static_number(stop, "arange", "stop")
    step = 1 if step is None else static_number(step, "arange", "step")
    if step == 0:
        raise ZeroDivisionError("[arange] expected a step other than 0")
    size = _arange_size(start, stop, step)
    # Where users guard transfers, there is none for 0, 1, ...
    is_iota = start == 0 and step == 1
    if on_host(size) and not (is_iota and _core.get_setting("guard_to_device")):
        if is_integer(dtype) and isinstance(start, int) and isinstance(step, int):
            # Modulo a power of two: the elements may need bits that the steps to them do not fit.
            first, apart = np.uint64(start % 2**64), np.uint64(step % 2**64)
            return _core.asarray((first + apart * np.arange(size, dtype=np.uint64)).astype(dtype))
        return _core.asarray((start + step * np.arange(size)).astype(dtype))
    if is_integer(dtype) and isinstance(start, int) and isinstance(step, int):
        start, step = wrapped(start, dtype), wrapped(step, dtype)
    # Numbers of 16 bits and less are rounded once, as on the host.
    working = np.dtype("float32") if is_float(dtype) and dtype.itemsize < 4 else dtype
    result = lax_creation.iota(working, size)
    if step != 1:
        result = _core.bind("mul", _core.astype(step, working), result)
    if start != 0 or isinstance(start, float):
        result = _core.bind("add", _core.astype(start, working), result)
    return _core.astype(result, dtype)


def _arange_size(start, stop, step) -> Any:
    if all(isinstance(x, int) or is_symbolic_dim(x) for x in (start, stop, step)):
        return max_dim(0, -((start - stop) // step))
    span = stop - start
    span = span.real if isinstance(span, complex) else span
    return max(0, math.ceil(span / step))


def indices(dimensions, dtype=None, sparse=False):
    """The index of each element along each axis of an array of shape `dimensions`.

    Returns an array of shape `(len(dimensions), *dimensions)`, or with `sparse` a tuple of arrays
    that broadcast to `dimensions`.

    `dtype` is that of the result, the default integer dtype if None.

    Examples:
      >>> rows, columns = wnp.indices((2, 3))
      >>> rows
      Array([[0, 0, 0],
             [1, 1, 1]], dtype=int32)
      >>> columns
      Array([[0, 1, 2],
             [0, 1, 2]], dtype=int32)
    """
    shape = static_shape(dimensions, "indices")
    dtype = default_int() if dtype is None else requested_dtype(dtype, "indices")
    if sparse:
        return tuple(
            reshape(
                arange(size, dtype=dtype), [size if i == axis else 1 for i in range(len(shape))]
            )
            for axis, size in enumerate(shape)
        )
    grids = [lax_creation.broadcasted_iota(dtype, shape, axis) for axis in range(len(shape))]
    return stack(grids) if grids else zeros((0,), dtype)


def iscomplexobj(x):
    """Whether the dtype of `x` is complex: its own, or that of the array that NumPy makes of it.

    A scalar type (`weft.numpy.complex64`) is one that has a dtype.

    Examples:
      >>> wnp.iscomplexobj(wnp.array([1 + 0j]))
      True
    """
    dtype = getattr(x, "dtype", None)
    return is_complex(dtype) if isinstance(dtype, np.dtype) else np.iscomplexobj(x)


def isrealobj(x):
    """Whether the dtype of `x` is not complex.

    Examples:
      >>> wnp.isrealobj(wnp.array([1 + 0j]))
      False
    """
    return not iscomplexobj(x)


def isscalar(element):
    """Whether `element` is a number, or an array without axes.

    Examples:
      >>> wnp.isscalar(3.0), wnp.isscalar(wnp.array(3.0)), wnp.isscalar(wnp.array([3.0]))
      (True, True, False)
    """
    if isinstance(element, np.ndarray) or _is_array(type(element)):
        return ndim(element) == 0
    return np.isscalar(element)


def shape(a):
    """The sizes of the axes of an array, or of nested sequences; other objects have no axes.

    Examples:
      >>> wnp.shape(wnp.zeros((2, 3)))
      (2, 3)
    """
    is_array = isinstance(a, (_core.Array, _core.Tracer)) or hasattr(a, "__jax_array__")
    return type_of(a)[0] if is_array else np.shape(a)


def ndim(a):
    """The number of axes of an array, or of nested sequences.

    Examples:
      >>> wnp.ndim(wnp.zeros((2, 3)))
      2
    """
    return len(shape(a))


def size(a, axis=None):
    """The number of elements of an array, or along an axis or several.

    Examples:
      >>> wnp.size(wnp.zeros((2, 3)))
      6
      >>> wnp.size(wnp.zeros((2, 3)), axis=1)
      3
    """
    sizes = shape(a)
    if axis is None:
        return math.prod(sizes)
    return math.prod(sizes[each] for each in normalize_axes(axis, len(sizes), "size"))
