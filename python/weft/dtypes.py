"""Element types: conversion of what users write as a dtype, promotion, and properties.

dtypes are NumPy dtype objects; bfloat16, the 8-bit and 4-bit floats and the 2-bit and 4-bit
integers are those of `ml_dtypes`. Unless 64-bit dtypes are enabled, they stand for their 32-bit
counterparts. Arrays of random keys (`weft.random.key`) have dtypes of their own, which are no NumPy
dtypes and belong to the abstract class `prng_key`.
"""

from typing import Any

import ml_dtypes
import numpy as np

from weft import _core
from weft._surface import public as _public
from weft._warnings import warn
from weft.errors import DTypeError, TypePromotionError, WeftError

__all__ = [
    "SUPPORTED",
    "TypePromotionError",
    "as_dtype",
    "bfloat16",
    "canonicalize_dtype",
    "default_float",
    "default_int",
    "dtype_of",
    "extended",
    "finfo",
    "float0",
    "highest_value",
    "iinfo",
    "is_bool",
    "is_complex",
    "is_float",
    "is_inexact",
    "is_integer",
    "isdtype",
    "issubdtype",
    "itemsize_bits",
    "lowest_value",
    "prng_key",
    "promote_types",
    "real_dtype",
    "requested_dtype",
    "result_type",
    "scalar_type_of",
    "to_inexact_dtype",
    "x64_enabled",
]
__getattr__, __dir__ = _public(__name__, __all__)


_EXTENSIONS = {
    np.signedinteger: ("int2", "int4"),
    np.unsignedinteger: ("uint2", "uint4"),
    np.floating: (
        "bfloat16",
        "float4_e2m1fn",
        "float8_e3m4",
        "float8_e4m3",
        "float8_e4m3b11fnuz",
        "float8_e4m3fn",
        "float8_e4m3fnuz",
        "float8_e5m2",
        "float8_e5m2fnuz",
        "float8_e8m0fnu",
    ),
}
# The abstract NumPy class of each ml_dtypes dtype; NumPy itself knows none of them.
_ABSTRACT_CLASS = {
    np.dtype(getattr(ml_dtypes, name)): abstract
    for abstract, names in _EXTENSIONS.items()
    for name in names
}
_EXTENSION_BY_NAME = {dtype.name: dtype for dtype in _ABSTRACT_CLASS}
_BUILTIN_NAMES = (
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 "
    "float16 float32 float64 complex64 complex128"
)

bfloat16 = ml_dtypes.bfloat16
float0 = np.dtype([("float0", np.void, 0)])

SUPPORTED = frozenset(map(np.dtype, _BUILTIN_NAMES.split())) | frozenset(_ABSTRACT_CLASS)

_NARROW = {
    np.dtype("int64"): np.dtype("int32"),
    np.dtype("uint64"): np.dtype("uint32"),
    np.dtype("float64"): np.dtype("float32"),
    np.dtype("complex128"): np.dtype("complex64"),
}
_PYTHON_SCALARS = {bool: False, int: 0, float: 0.0, complex: 0j}


class extended(np.generic):
    """Abstract class of the dtypes of elements that are no numbers."""


class prng_key(extended):
    """Abstract class of the dtypes of random keys."""


class KeyDType:
    """The dtype of random keys of one implementation; there is one object for each.

    Attributes: name ("key<fry>"), itemsize (bytes of a key), type (`prng_key`).
    """

    __slots__ = ("_core_name", "itemsize", "name")
    type = prng_key
    kind = "V"
    names = None

    def __init__(self, tag, words, core_name=None):
        self.name = f"key<{tag}>"
        self.itemsize = 4 * words
        self._core_name = core_name or self.name
        _core.register_key_dtype(self._core_name, words, self)
        _KEY_DTYPES[self._core_name] = self

    def __repr__(self):
        return self.name

    def __reduce__(self):
        return _key_dtype, (self._core_name,)


_KEY_DTYPES = {}  # by the name that the core knows them by, which is unique


def _key_dtype(core_name):
    if core_name not in _KEY_DTYPES:
        raise TypeError(f"expected the dtype of a known implementation of keys; got {core_name!r}")
    return _KEY_DTYPES[core_name]


FRY, RBG, UNSAFE_RBG = KeyDType("fry", 2), KeyDType("rbg", 4), KeyDType("urbg", 4)


def is_key(dtype):
    """Whether a dtype is one of random keys."""
    return isinstance(dtype, KeyDType)


def x64_enabled():
    """Whether 64-bit dtypes are kept, for the current thread."""
    return bool(_core.get_setting("x64"))


def as_dtype(dtype: Any) -> Any:
    """The NumPy dtype for anything that names one: a dtype, a scalar type of NumPy, ml_dtypes or
    `weft.numpy`, a Python scalar type, a name, or an object whose attribute `dtype` is a dtype.
    TypeError for anything else, also for arrays and NumPy's scalars."""
    if isinstance(dtype, (np.dtype, KeyDType)):
        return dtype
    if isinstance(dtype, str) and dtype in _EXTENSION_BY_NAME:
        return _EXTENSION_BY_NAME[dtype]
    if dtype is None or isinstance(dtype, (_core.Array, _core.Tracer, np.ndarray, np.generic)):
        raise DTypeError(f"expected a dtype; got {dtype!r} (of an array `x` pass `x.dtype`)")
    return np.dtype(dtype)


def canonicalize_dtype(dtype: Any, allow_extended_dtype: bool = False) -> np.dtype[Any]:
    """The dtype that arrays have when `dtype` is asked for: 64-bit dtypes become 32-bit ones unless
    they are enabled. None stands for the default float dtype. ValueError for a dtype of keys unless
    `allow_extended_dtype`."""
    dtype = as_dtype(float if dtype is None else dtype)
    if not allow_extended_dtype and is_key(dtype):
        raise DTypeError(f"canonicalize_dtype expected a dtype of numbers; got {dtype}")
    return dtype if x64_enabled() else _NARROW.get(dtype, dtype)


def tangent_dtype(dtype):
    """The dtype of tangents of values of a dtype: its own, or float0 if that has no derivative."""
    dtype = as_dtype(dtype)
    return dtype if is_inexact(dtype) else float0


def requested_dtype(dtype: Any, function: str) -> np.dtype[Any]:
    """The canonical form of a dtype that the user passed to `function`.

    DTypeError if arrays cannot have it; a warning if it is narrowed to 32 bits although the user
    spelled out the width.
    """
    try:
        wide = as_dtype(dtype)
    except (TypeError, UnicodeEncodeError) as error:
        if isinstance(error, WeftError):
            raise
        import difflib  # for messages only

        similar = difflib.get_close_matches(str(dtype), [d.name for d in SUPPORTED], 1)
        hint = f"\n  Did you mean {similar[0]!r}?" if similar else ""
        raise DTypeError(f"[{function}] expected a dtype; got {dtype!r}{hint}") from None
    if is_key(wide):
        return wide
    if wide not in SUPPORTED and wide != float0:
        given = dtype if isinstance(dtype, str) else wide
        raise DTypeError(f"[{function}] expected a number or bool dtype; got {given}")
    if x64_enabled() or wide not in _NARROW:
        return wide
    narrow = _NARROW[wide]
    if dtype not in _PYTHON_SCALARS:
        warn(
            f"{function}: {wide} is not available while 64-bit dtypes are off; using {narrow}. "
            "Turn them on with weft.config.update('weft_enable_x64', True) or WEFT_ENABLE_X64=1."
        )
    return narrow


def issubdtype(arg1, arg2):
    """Whether dtype `arg1` equals `arg2` or belongs to the abstract class `arg2`.

    As `numpy.issubdtype`, with bfloat16 and the 8-bit and 4-bit floats under `floating`, and the
    2-bit and 4-bit integers under `signedinteger` and `unsignedinteger`. None is float64, as it is
    in NumPy, an array its dtype.

    Examples:
      >>> wnp.issubdtype("bfloat16", np.floating)
      True
    """
    arg1, arg2 = _dtype_meant(arg1), _dtype_meant(arg2)
    if isinstance(arg1, type) and issubclass(arg1, np.generic) and _is_abstract(arg1):
        return _is_abstract(arg2) and issubclass(arg1, arg2)
    dtype = as_dtype(arg1)
    if is_key(dtype) or is_key(arg2):
        return issubclass(prng_key, arg2) if _is_abstract(arg2) else dtype is arg2
    if arg2 in (extended, prng_key):
        return False
    if dtype not in _ABSTRACT_CLASS:
        return np.issubdtype(dtype, arg2 if _is_abstract(arg2) else as_dtype(arg2))
    if _is_abstract(arg2):
        return issubclass(_ABSTRACT_CLASS[dtype], arg2)
    return dtype == as_dtype(arg2)


def _dtype_meant(x: Any) -> Any:
    """What NumPy takes in place of a dtype, as one: None is float64, an array its dtype."""
    if x is None:
        return np.float64
    return x.dtype if isinstance(x, (_core.Array, _core.Tracer)) else x


def _is_abstract(cls):
    """Whether `cls` is a class of dtypes such as `numpy.floating` rather than a dtype."""
    return cls in (extended, prng_key) or (
        isinstance(cls, type)
        and cls.__module__ == "numpy"
        and issubclass(cls, np.generic)
        and bool(cls.__subclasses__())
        and cls not in (np.float64, np.complex128, np.void)
    )


_KINDS = {
    "bool": (np.bool_,),
    "signed integer": (np.signedinteger,),
    "unsigned integer": (np.unsignedinteger,),
    "integral": (np.integer,),
    "real floating": (np.floating,),
    "complex floating": (np.complexfloating,),
    "numeric": (np.number,),
}


def isdtype(dtype, kind):
    """Whether `dtype` is of a kind: "bool", "signed integer", "unsigned integer", "integral",
    "real floating", "complex floating", "numeric", a dtype, or a tuple of these. None is float64,
    as it is in NumPy, an array its dtype.

    Raises ValueError for another name, TypeError for what can be no kind.

    Examples:
      >>> wnp.isdtype("float32", "real floating"), wnp.isdtype("int8", ("bool", "unsigned integer"))
      (True, False)
    """
    if isinstance(kind, tuple):
        return any(isdtype(dtype, each) for each in kind)
    if isinstance(kind, str) and kind in _KINDS:
        return any(issubdtype(dtype, cls) for cls in _KINDS[kind])
    dtype, meant = as_dtype(_dtype_meant(dtype)), _dtype_meant(kind)
    try:
        if not isinstance(meant, list) and not _is_abstract(meant):
            return dtype == as_dtype(meant)
    except TypeError:
        pass
    error = ValueError if isinstance(kind, str) else TypeError
    raise error(f"isdtype: expected a dtype or one of {', '.join(map(repr, _KINDS))}; got {kind!r}")


def _promotion_argument(x):
    if isinstance(x, type) and x in _PYTHON_SCALARS:
        return _PYTHON_SCALARS[x]
    return as_dtype(_dtype_meant(x))


def promote_types(a: Any, b: Any) -> np.dtype[Any]:
    """The dtype that arrays of dtypes `a` and `b` are converted to when they meet.

    Python's `int`, `float` and `complex` stand for Python numbers, which do not widen the other
    dtype; None is float64, as it is in NumPy. `TypePromotionError` where there is no implicit
    promotion.

    Examples:
      >>> wnp.promote_types("int32", "float16")
      dtype('float16')
    """
    pair = _promotion_argument(a), _promotion_argument(b)
    is_wide = any(not isinstance(x, np.dtype) or x in _NARROW for x in pair)
    if not is_wide or x64_enabled():
        return _core.result_type(*pair)[0]
    from weft.config import enable_x64

    with enable_x64():  # what is wide, as Python's types are, stays so
        return _core.result_type(*pair)[0]


def result_type(*args: Any, return_weak_type_flag: bool = False) -> Any:
    """The dtype of the result of an operation on the arguments: arrays, numbers or dtypes.

    With `return_weak_type_flag` a pair of it and whether it is weak.

    Raises ValueError without arguments.

    Examples:
      >>> wnp.result_type(wnp.array([1], dtype="int8"), 3)
      dtype('int8')
      >>> wnp.result_type(wnp.array([1], dtype="int8"), 3.0)
      dtype('float32')
    """
    if not args:
        raise ValueError("result_type: expected at least one argument")
    converted = [
        _promotion_argument(x) if isinstance(x, (str, type, np.dtype)) else x for x in args
    ]
    found = _core.result_type(*converted)
    return found if return_weak_type_flag else found[0]


def dtype_of(x: Any) -> np.dtype[Any]:
    """The dtype of an array or number."""
    return _core.typeof(x)[1]


def default_float() -> np.dtype[Any]:
    """float64 if 64-bit dtypes are enabled, else float32."""
    return canonicalize_dtype(float)


def default_int() -> np.dtype[Any]:
    """int64 if 64-bit dtypes are enabled, else int32."""
    return canonicalize_dtype(int)


_INTEGERS = frozenset(dtype for dtype in SUPPORTED if issubdtype(dtype, np.integer))
_FLOATS = frozenset(dtype for dtype in SUPPORTED if issubdtype(dtype, np.floating))


def is_bool(dtype):
    """Whether a NumPy dtype object is bool."""
    return dtype == np.bool_


def is_integer(dtype):
    """Whether a NumPy dtype object is an integer of any width."""
    return dtype in _INTEGERS


def is_float(dtype):
    """Whether a NumPy dtype object is a real floating-point dtype of any width."""
    return dtype in _FLOATS


def is_complex(dtype):
    """Whether a NumPy dtype object is complex."""
    return dtype.kind == "c"


def is_inexact(dtype):
    """Whether a NumPy dtype object is floating-point or complex."""
    return is_complex(dtype) or is_float(dtype)


def to_inexact_dtype(dtype: Any) -> np.dtype[Any]:
    """`dtype` itself if it is inexact; float64 for 64-bit integers, float32 for others."""
    if is_inexact(dtype):
        return dtype
    return np.dtype("float64" if dtype.itemsize == 8 else "float32")


def to_complex_dtype(dtype: Any) -> np.dtype[Any]:
    """The complex dtype that numbers of `dtype` become, also where promotion is strict."""
    if is_complex(dtype):
        return dtype
    return np.dtype("complex128" if dtype == np.float64 else "complex64")


def to_wide_dtype(dtype: Any) -> np.dtype[Any]:
    """`dtype` itself if it is complex or float64, else float32, also where promotion is strict."""
    return dtype if is_complex(dtype) or dtype == np.float64 else np.dtype("float32")


def real_dtype(dtype: Any) -> np.dtype[Any]:
    """The dtype of the real part: float32 for complex64, float64 for complex128."""
    return np.dtype(f"f{dtype.itemsize // 2}") if is_complex(dtype) else dtype


def finfo(dtype):
    """Limits of a floating-point dtype, or that of an array: `eps`, `max`, `tiny` and others.

    Examples:
      >>> wnp.finfo("bfloat16").bits, float(wnp.finfo("float16").max)
      (16, 65504.0)
    """
    return ml_dtypes.finfo(_dtype_or_own(dtype))


def iinfo(dtype):
    """Limits of an integer dtype, or that of an array: `min`, `max`, `bits`.

    ValueError for other dtypes.

    Examples:
      >>> wnp.iinfo("int8").min, wnp.iinfo("int8").max
      (-128, 127)
    """
    return ml_dtypes.iinfo(np.dtype("int64") if type(dtype) is int else _dtype_or_own(dtype))


def _dtype_or_own(x: Any) -> np.dtype[Any]:
    is_array = isinstance(x, (_core.Array, _core.Tracer, np.ndarray, np.generic))
    return as_dtype(x.dtype if is_array else x)


def itemsize_bits(dtype):
    """Number of bits of an element; 4 for int4, 1 byte for bool."""
    dtype = as_dtype(dtype)
    if dtype in _ABSTRACT_CLASS:
        info = finfo if _ABSTRACT_CLASS[dtype] is np.floating else iinfo
        return info(dtype).bits
    return 8 * dtype.itemsize


def lowest_value(dtype):
    """The smallest value of a real dtype, as a Python number: -inf for floats, False for bool."""
    if is_bool(dtype):
        return False
    if is_integer(dtype):
        return int(iinfo(dtype).min)
    return _float_limit(dtype, -np.inf, "min")


def highest_value(dtype):
    """The largest value of a real dtype, as a Python number: inf for floats, True for bool."""
    if is_bool(dtype):
        return True
    if is_integer(dtype):
        return int(iinfo(dtype).max)
    return _float_limit(dtype, np.inf, "max")


def _float_limit(dtype, infinity, name):
    # Some 8-bit floats have no infinity.
    limit = float(np.array(infinity, dtype))
    return limit if np.isinf(limit) else float(getattr(finfo(dtype), name))


def scalar_type_of(x):
    """The Python scalar type (bool, int, float or complex) of a dtype or an array."""
    dtype = x if isinstance(x, np.dtype) else dtype_of(x)
    if is_bool(dtype):
        return bool
    if is_integer(dtype):
        return int
    return complex if is_complex(dtype) else float
