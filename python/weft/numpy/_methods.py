"""Methods, properties and operators of arrays and traced values, in one table."""

import importlib

from weft import _core
from weft._arguments import shape_of
from weft._surface import example_section, public_function
from weft.dtypes import (
    default_float,
    dtype_of,
    is_bool,
    is_complex,
    itemsize_bits,
    real_dtype,
    requested_dtype,
)
from weft.errors import ShapeError
from weft.lax._elementwise import bitcast_convert_type, complex, converted
from weft.lax._sharding import placed
from weft.numpy import (
    _division_powers as powers,
    _floats as floats,
    _indexing as indexing,
    _join as join,
    _linalg as linalg,
    _matrices as matrices,
    _moments as moments,
    _reductions as reductions,
    _select as select,
    _shape as shape,
    _take as taking,
    _ufuncs as ufuncs,
)
from weft.numpy._at import IndexedView


def astype(x, dtype, /, *, copy=False, device=None):
    """The array converted to a dtype, on a device if one is given.

    None is the default float dtype. With `copy`, an array that has the dtype already is copied.

    Examples:
      >>> wnp.astype(wnp.array([1.7, -1.7]), "int32")
      Array([ 1, -1], dtype=int32)
    """
    dtype = default_float() if dtype is None else requested_dtype(dtype, "astype")
    if copy and dtype == dtype_of(x):
        return placed(_core.bind("copy", x), device)
    if is_bool(dtype) and is_complex(dtype_of(x)):  # True where either part is not zero
        return placed(ufuncs.not_equal(x, 0), device)
    return placed(converted(x, dtype), device)


def _astype(self, dtype, copy=False, device=None):
    """The array converted to a dtype; see weft.numpy.astype.

    Examples:
      >>> wnp.array([1.7, -1.7]).astype("int32")
      Array([ 1, -1], dtype=int32)
    """
    return astype(self, dtype, copy=copy, device=device)


def to_device(self, device, *, stream=None):
    """The array on a device; `stream` must be None.

    Examples:
      >>> wnp.arange(3).to_device(weft.devices()[0])
      Array([0, 1, 2], dtype=int32)
    """
    if stream is not None:
        raise NotImplementedError("[to_device] expected stream to be None: programs run in order")
    return placed(self, device)


def _reshape(self, *new, order="C", copy=None, out_sharding=None):
    """The elements in another shape, given as integers or as one sequence; `copy` is ignored.

    `out_sharding` is None, or how the result is split, a PartitionSpec or NamedSharding.

    Examples:
      >>> wnp.arange(6).reshape(2, -1)
      Array([[0, 1, 2],
             [3, 4, 5]], dtype=int32)
    """
    new = new[0] if len(new) == 1 else new
    return shape.reshape(self, new, order, out_sharding=out_sharding)


def _transpose(self, *axes):
    """The axes in another order, given as integers or as one sequence; reversed without any.

    Examples:
      >>> wnp.zeros((2, 3, 4)).transpose(2, 0, 1).shape
      (4, 2, 3)
    """
    if len(axes) == 1 and (axes[0] is None or isinstance(axes[0], (list, tuple))):
        axes = axes[0]
    return shape.transpose(self, axes or None)


def _flatten(self, order="C", *, out_sharding=None):
    """The elements as a one-dimensional array.

    `out_sharding` is None, or how the result is split, a PartitionSpec or NamedSharding.

    Examples:
      >>> wnp.array([[1, 2], [3, 4]]).flatten(order="F")
      Array([1, 3, 2, 4], dtype=int32)
    """
    return shape.ravel(self, order, out_sharding=out_sharding)


def _view(self, dtype=None, type=None):
    """The bits read as another dtype; the last axis grows or shrinks if the widths differ.

    type: None; others raise NotImplementedError.

    Examples:
      >>> wnp.array([1.0], "float32").view("int32")
      Array([1065353216], dtype=int32)
    """
    if type is not None:
        raise NotImplementedError(
            f"view expected a dtype and no second argument; got {type!r}. Write x.reshape(shape) "
            "for the same elements in another shape"
        )
    if dtype is None:
        return self
    dtype = requested_dtype(dtype, "view")
    if self.dtype == dtype:
        return self
    same_width = self.dtype.itemsize == dtype.itemsize
    if self.ndim == 0 and same_width and is_complex(self.dtype) != is_complex(dtype):
        return shape.reshape(_view(shape.reshape(self, (1,)), dtype), ())
    if is_bool(self.dtype):
        self = self.astype("uint8")
    if is_bool(dtype):
        return _view(self, "uint8").astype(dtype)
    if is_complex(self.dtype):
        if self.ndim == 0:
            raise ShapeError("[view] expected an axis to take the parts of a complex number")
        parts = join.stack([self.real, self.imag], -1)
        return _view(shape.reshape(parts, (*self.shape[:-1], 2 * self.shape[-1])), dtype)
    if is_complex(dtype):
        parts = _view(self, real_dtype(dtype))
        if parts.ndim == 0 or parts.shape[-1] % 2:
            raise ShapeError(
                f"[view] expected a last axis that holds parts in pairs; got shape {self.shape}"
            )
        return complex(parts[..., ::2], parts[..., 1::2])
    old, new = itemsize_bits(self.dtype), itemsize_bits(dtype)
    if new != old and self.ndim == 0:
        raise ShapeError(
            f"[view] expected an axis to grow or shrink from {self.dtype} to {dtype}; got none"
        )
    if new > old:
        *leading, last = shape_of(self)
        if last % (new // old):
            raise ShapeError(
                f"[view] expected a last axis divisible by {new // old}; got shape {shape_of(self)}"
            )
        self = shape.reshape(self, (*leading, last // (new // old), new // old))
    result = bitcast_convert_type(self, dtype)
    if new < old:
        *leading, last, parts = shape_of(result)
        result = shape.reshape(result, (*leading, last * parts))
    return result


def _round(self, ndigits=None):
    """Python's round(): whole numbers of the default integer dtype if there is no `ndigits`."""
    rounded = floats.round(self, ndigits or 0)
    return rounded.astype(int) if ndigits is None else rounded


def _compress(self, condition, axis=None, *, out=None, size=None, fill_value=0):
    """The slices along an axis where a condition is true; see weft.numpy.compress.

    Examples:
      >>> wnp.array([10, 20, 30]).compress(wnp.array([True, False, True]))
      Array([10, 30], dtype=int32)
    """
    from weft.numpy._counted import compress

    return compress(condition, self, axis, size=size, fill_value=fill_value, out=out)


def _later(home, name, call, result):
    """A function as a method; its module is loaded when it is first called. `call` and `result` are
    its example."""

    def method(self, *args, **kwargs):
        return getattr(importlib.import_module(home), name)(self, *args, **kwargs)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"See weft.numpy.{name}.\n\n{example_section(call, result)}"
    return method


_CHOICES, _COUNTED = "weft.numpy._choices", "weft.numpy._counted"
_CUMULATIVE, _SORTING = "weft.numpy._cumulative", "weft.numpy._sorting"


def _array_namespace(self, /, *, api_version=None):
    """weft.numpy, which follows the Python array API standard 2025.12."""
    from weft.numpy._namespace import array_namespace

    return array_namespace(self, api_version=api_version)


METHODS = {
    "__array_namespace__": _array_namespace,
    "all": reductions.all,
    "any": reductions.any,
    "argmax": reductions.argmax,
    "argmin": reductions.argmin,
    "argpartition": _later(
        *(_SORTING, "argpartition"),
        *("x = wnp.array([3, 1, 2]); x[x.argpartition(0)[0]]", "Array(1, dtype=int32)"),
    ),
    "argsort": _later(
        *(_SORTING, "argsort"),
        *("wnp.array([30, 10, 20]).argsort()", "Array([1, 2, 0], dtype=int32)"),
    ),
    "astype": _astype,
    "at": property(IndexedView),
    "choose": _later(
        *(_CHOICES, "choose"),
        *("wnp.array([1, 0]).choose(wnp.array([[1, 2], [3, 4]]))", "Array([3, 2], dtype=int32)"),
    ),
    "clip": select.clip,
    "compress": _compress,
    "conj": ufuncs.conj,
    "conjugate": ufuncs.conj,
    "cumprod": _later(
        *(_CUMULATIVE, "cumprod"),
        *("wnp.array([1, 2, 3]).cumprod()", "Array([1, 2, 6], dtype=int32)"),
    ),
    "cumsum": _later(
        *(_CUMULATIVE, "cumsum"),
        *("wnp.array([1, 2, 3]).cumsum()", "Array([1, 3, 6], dtype=int32)"),
    ),
    "diagonal": matrices.diagonal,
    "dot": linalg.dot,
    "flatten": _flatten,
    "max": reductions.max,
    "mean": moments.mean,
    "min": reductions.min,
    "nonzero": _later(
        *(_COUNTED, "nonzero"),
        *("wnp.array([0, 7, 0, 8]).nonzero()", "(Array([1, 3], dtype=int32),)"),
    ),
    "prod": reductions.prod,
    "ptp": reductions.ptp,
    "ravel": shape.ravel,
    "repeat": join.repeat,
    "reshape": _reshape,
    "round": floats.round,
    "searchsorted": _later(
        *(_SORTING, "searchsorted"),
        *("wnp.array([10, 20, 30]).searchsorted(25)", "Array(2, dtype=int32)"),
    ),
    "sort": _later(
        *(_SORTING, "sort"),
        *("wnp.array([3, 1, 2]).sort()", "Array([1, 2, 3], dtype=int32)"),
    ),
    "squeeze": shape.squeeze,
    "std": moments.std,
    "sum": reductions.sum,
    "swapaxes": shape.swapaxes,
    "take": taking.take,
    "to_device": to_device,
    "trace": matrices.trace,
    "transpose": _transpose,
    "var": moments.var,
    "view": _view,
    "real": property(ufuncs.real),
    "imag": property(ufuncs.imag),
    "__round__": _round,
}


OPERATORS = {
    "floordiv": powers.floor_divide,
    "mod": powers.remainder,
    "divmod": powers.divmod,
    "pow": powers.power,
    "matmul": linalg.matmul,
    "lshift": ufuncs.left_shift,
    "rshift": ufuncs.right_shift,
    "getitem": indexing.getitem,
    "update": indexing.update,
}


def _stand_ins(error, function, arguments):
    from weft.numpy._foreign import stand_ins  # a look at a call that failed

    return stand_ins(error, function, arguments)


def install():
    """Gives arrays and traced values these methods, properties and operators."""
    methods = {name: public_function(f) for name, f in METHODS.items()}
    operators = {name: public_function(f) for name, f in OPERATORS.items()}
    _core.install(methods=methods, stand_ins=_stand_ins, **operators)
