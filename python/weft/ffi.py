"""Calls of functions in other libraries, written against XLA's typed FFI.

A kernel in C++ (its headers are in `include_dir()`) is made known by `register_ffi_target` and then
called by its name::

    weft.ffi.register_ffi_target("axpy", weft.ffi.pycapsule(ctypes.CDLL("./axpy.so").axpy))
    weft.ffi.ffi_call("axpy", weft.ShapeDtypeStruct((4,), "float32"))(x, y, alpha=np.float32(2))
"""

import collections.abc
import ctypes
import math

import numpy as np

from weft import _core
from weft._callback import VMAP_METHODS
from weft._recording import check_leaves
from weft._surface import public as _public
from weft._types.avals import ShapedArray
from weft.errors import ArgumentTypeError, AttributeValueError, OperandError
from weft.runtime import ffi as _runtime

__all__ = [
    "build_ffi_lowering_function",
    "ffi_call",
    "ffi_lowering",
    "include_dir",
    "pycapsule",
    "register_ffi_target",
    "register_ffi_target_as_batch_partitionable",
    "register_ffi_type",
    "register_ffi_type_id",
]
__getattr__, __dir__ = _public(__name__, __all__)

_TYPED = 4  # the custom_call_api_version of the typed FFI


def ffi_call(
    target_name,
    result_shape_dtypes,
    *,
    has_side_effect=False,
    vmap_method=None,
    input_layouts=None,
    output_layouts=None,
    input_output_aliases=None,
    custom_call_api_version=4,
    legacy_backend_config=None,
):
    """A function that calls a registered target on arrays.

    Args:
      target_name: the name given to `register_ffi_target`.
      result_shape_dtypes: a ShapeDtypeStruct (or array) with the shape and dtype of the result; a
        sequence of them if there are several results.
      has_side_effect: whether the call stays in the program though nobody needs its results.
      vmap_method: how the call is made under vmap; see `weft.pure_callback`. None raises.
      input_layouts: per argument the axes in memory, from major to minor, or None for row-major.
        XLA brings arguments into these layouts.
      output_layouts: the same for the results; of a single result, its axes.
      input_output_aliases: dict from the number of an argument to that of the result which is
        written over it. Both have one type. The caller's array keeps its value.
      custom_call_api_version: 4 for the typed FFI; 1 to 3 for XLA's earlier interfaces.
      legacy_backend_config: the string that targets of those earlier interfaces get.

    Returns:
      call(*arrays, **attributes), which gives the result, or a list of results. Attributes are
      static: numbers and bools (a Python int is an int64, a float a float64), strings, dtypes,
      NumPy arrays, and tuples and dicts of these.

    Raises AttributeValueError for a target that is not registered and for layouts or aliases that
    do not fit, ArgumentTypeError for attributes of other types, NotImplementedRuleError when
    differentiated (give the calling function a derivative with custom_jvp or custom_vjp).
    """
    if not isinstance(target_name, str):
        raise ArgumentTypeError(f"ffi_call expected the name of a target; got {target_name!r}")
    if vmap_method not in VMAP_METHODS:
        raise AttributeValueError(
            f"ffi_call: expected vmap_method to be one of {', '.join(map(repr, VMAP_METHODS))}; "
            f"got {vmap_method!r}"
        )
    many = isinstance(result_shape_dtypes, collections.abc.Sequence)
    avals = tuple(map(_result_aval, result_shape_dtypes if many else (result_shape_dtypes,)))
    if not many and output_layouts is not None:
        output_layouts = (output_layouts,)
    attrs = {
        "target_name": target_name,
        "result_avals": avals,
        "has_side_effect": bool(has_side_effect),
        "vmap_method": vmap_method,
        "output_layouts": _layouts("output_layouts", output_layouts, [a.ndim for a in avals]),
        "input_output_aliases": tuple((input_output_aliases or {}).items()),
        "custom_call_api_version": custom_call_api_version,
        "legacy_backend_config": legacy_backend_config,
    }

    def call(*arrays, **attributes):
        check_leaves(list(arrays), lambda i: f"argument {i} of '{target_name}'")
        if attributes and custom_call_api_version != _TYPED:
            raise AttributeValueError(
                f"ffi_call expected no attributes, but a legacy_backend_config, for "
                f"custom_call_api_version below {_TYPED}; got {', '.join(attributes)}"
            )
        ranks = [len(_core.typeof(x)[0]) for x in arrays]
        results = _core.bind_graphs(
            "ffi_call",
            list(arrays),
            (False,) * len(avals),
            attributes=_dictionary_items(attributes),
            input_layouts=_layouts("input_layouts", input_layouts, ranks),
            **attrs,
        )
        return list(results) if many else results[0]

    return call


def _result_aval(x):
    if not (hasattr(x, "shape") and hasattr(x, "dtype")):
        raise ArgumentTypeError(
            f"ffi_call expected result_shape_dtypes to be ShapeDtypeStructs; got {x!r}"
        )
    return ShapedArray(x.shape, x.dtype)


def _layouts(name, layouts, ranks):
    """A layout per array, or None if all are row-major."""
    if layouts is None:
        return None
    if isinstance(layouts, str) or not isinstance(layouts, collections.abc.Sequence):
        raise ArgumentTypeError(f"ffi_call expected a sequence of {name}; got {layouts!r}")
    if len(layouts) != len(ranks):
        raise AttributeValueError(
            f"ffi_call expected as many {name} as arrays ({len(ranks)}); got {len(layouts)}"
        )
    return tuple(
        tuple(range(rank)) if layout is None else tuple(getattr(layout, "major_to_minor", layout))
        for layout, rank in zip(layouts, ranks, strict=True)
    )


# ---- Attributes as MLIR writes them


def _dictionary_items(attributes):
    return ", ".join(
        f"{_key(name)} = {_attribute(name, value)}" for name, value in attributes.items()
    )


def _key(name):
    return name if name.isidentifier() and name.isascii() else _string(name)


def _string(text):
    data = text.encode() if isinstance(text, str) else text
    plain = (chr(b) if 0x20 <= b < 0x7F and b not in b'"\\' else f"\\{b:02X}" for b in data)
    return f'"{"".join(plain)}"'


_MLIR_TYPES = {"float64": "f64", "float32": "f32", "float16": "f16", "bfloat16": "bf16"}


def _type(dtype):
    """ "i32", "ui8", "f64", "complex<f32>"; None for what is none of these."""
    if dtype.kind == "b":
        return "i1"
    if dtype.kind in "iu":
        return f"{'u' * (dtype.kind == 'u')}i{8 * dtype.itemsize}"
    if dtype.kind == "c":
        return f"complex<f{4 * dtype.itemsize}>"
    return _MLIR_TYPES.get(dtype.name)


def _number(value, dtype):
    if dtype.kind == "b":
        return "true" if value else "false"
    if dtype.kind in "iu":
        return str(int(value))
    if math.isfinite(value):
        return format(float(value), ".17e")
    return f"0x{np.asarray(value, dtype).view(f'u{dtype.itemsize}')[()]:0{2 * dtype.itemsize}X}"


def _attribute(name, value) -> str:
    if isinstance(value, (str, bytes)):
        return _string(value)
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, np.dtype) and (named := _type(value)):
        return named
    if isinstance(value, dict):
        return f"{{{_dictionary_items(value)}}}"
    if isinstance(value, tuple):
        return f"[{', '.join(_attribute(name, x) for x in value)}]"
    array = np.asarray(value) if isinstance(value, (int, float, np.generic, np.ndarray)) else None
    if array is not None and array.dtype.kind != "c" and _type(array.dtype):
        if not isinstance(value, np.ndarray):
            return f"{_number(array[()], array.dtype)} : {_type(array.dtype)}"
        items = _nested(array)
        dims = "".join(f"{n}x" for n in array.shape)
        return f"dense<{items if array.size else ''}> : tensor<{dims}{_type(array.dtype)}>"
    raise ArgumentTypeError(
        f"ffi_call expected attribute '{name}' to be a number, bool, string, dtype, NumPy array, "
        f"or a tuple or dict of these; got {type(value).__name__}: {value!r:.60}"
    )


def _nested(array):
    if array.ndim == 0:
        return _number(array[()], array.dtype)
    return f"[{', '.join(map(_nested, array))}]"


# ---- Lowerings of primitives


def ffi_lowering(
    call_target_name,
    *,
    operand_layouts=None,
    result_layouts=None,
    backend_config=None,
    has_side_effect=False,
    operand_output_aliases=None,
):
    """A lowering that calls a registered target, for `weft.interpreters.mlir.register_lowering`.

    Args:
      call_target_name: the name given to `register_ffi_target`.
      operand_layouts, result_layouts: per operand, and per result, the axes in memory from *minor
        to major* (as XLA has it, not as `ffi_call`), or None for row-major.
      backend_config: dict of attributes, as `ffi_call` takes them; the primitive's parameters are
        added to them. A string for targets of XLA's earlier interface (version 1).
      has_side_effect: whether the call stays in the program though nobody needs its results.
      operand_output_aliases: dict from the number of an operand to that of the result which is
        written over it.

    Returns a rule(ctx, *names, **params) that writes StableHLO text.
    """
    is_typed = not isinstance(backend_config, str)

    def rule(ctx, *names, **params):
        text = ctx.ffi_call(
            call_target_name,
            list(names),
            _dictionary_items({**(backend_config or {}), **params}) if is_typed else backend_config,
            _minor_to_major(operand_layouts, ctx.avals_in),
            _minor_to_major(result_layouts, ctx.avals_out),
            has_side_effect,
            list((operand_output_aliases or {}).items()),
            _TYPED if is_typed else 1,
        )
        return ctx.line(text, len(ctx.avals_out))

    return rule


build_ffi_lowering_function = ffi_lowering  # the earlier name


def _minor_to_major(layouts, avals):
    given = (None,) * len(avals) if layouts is None else layouts
    return [
        list(range(aval.ndim - 1, -1, -1)) if layout is None else list(layout)
        for layout, aval in zip(given, avals, strict=True)
    ]


# ---- Registration


def _check_name(function, name):
    if not isinstance(name, str):
        raise OperandError(f"[{function}] expected a name; got {name!r}")


def register_ffi_target(name, fn, platform="cpu", api_version=1, **kwargs):
    """Makes a function of another library callable by name, for the rest of the process.

    Args:
      name: for `ffi_call`. A name can be given once.
      fn: a capsule with the function's address (`pycapsule`), or a dict of capsules by stage
        ("instantiate", "prepare", "initialize", "execute").
      platform: "cpu" or "cuda".
      api_version: 1 for the typed FFI, 0 for XLA's earlier interface.
      kwargs: handed to jaxlib's registration.
    """
    _check_name("register_ffi_target", name)
    _runtime.register_target(name, fn, platform, api_version, **kwargs)


def register_ffi_target_as_batch_partitionable(name):
    """Says that a target treats each index of the leading axes of its operands by itself, so that
    XLA may call it on parts of them.

    It has no effect on programs that run on one device.
    """
    _check_name("register_ffi_target_as_batch_partitionable", name)
    _runtime.make_partitionable(name)


def register_ffi_type(name, type_registration, platform="cpu"):
    """Makes a type of state, which handlers keep between their stages, known by name.

    Args:
      name: unique in the process.
      type_registration: what jaxlib takes: a dict with capsules of the type's id ("type_id") and
        of what is known of it ("type_info"), or the capsule of the id.
      platform: "cpu" or "cuda".
    """
    _check_name("register_ffi_type", name)
    _runtime.register_type(name, type_registration, platform)


def register_ffi_type_id(name, obj, platform="cpu"):
    """Raises ValueError: jaxlib takes no ids alone any more.

    `obj` and `platform` are ignored. Use `register_ffi_type`, which takes the id with what is known
    of the type.

    Examples:
      >>> try:
      ...     weft.ffi.register_ffi_type_id("state", None)
      ... except ValueError:
      ...     print("use register_ffi_type")
      use register_ffi_type
    """
    raise AttributeValueError(
        f"register_ffi_type_id of {name!r}: jaxlib takes no ids of types alone\n"
        "  Use register_ffi_type."
    )


def pycapsule(funcptr):
    """A capsule for `register_ffi_target` with a function that `ctypes` has loaded.

    Raises TypeError for anything else.
    """
    try:
        address = ctypes.cast(funcptr, ctypes.c_void_p).value
    except ctypes.ArgumentError:
        raise TypeError(
            f"[pycapsule] expected a function that ctypes has loaded; got {type(funcptr).__name__}"
        ) from None
    return _runtime.capsule(address)


def include_dir():
    """The folder with the headers of XLA's typed FFI: "xla/ffi/api/ffi.h" is below it."""
    return _runtime.include_dir()
