"""What the manifest of a checkpoint says: leaves and trees as JSON, and how elements are stored."""

import base64
import math

import ml_dtypes
import numpy as np

from weft import _core
from weft.dtypes import is_key
from weft.random import key_data, key_impl
from weft.tree_util import flatten_one_level, is_tree_node

# Dtypes that Zarr has; others are stored as unsigned integers of the same number of bytes.
_NATIVE = frozenset(
    ["bool", "float16", "float32", "float64", "complex64", "complex128"]
    + [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
)
_CHUNK_BYTES = 64 << 20


def storage_dtype(dtype):
    """The dtype of Zarr that holds elements of a dtype."""
    return dtype if dtype.name in _NATIVE else np.dtype(f"uint{8 * dtype.itemsize}")


def as_bits(value):
    """A NumPy array in the dtype that is stored."""
    own = value.astype(value.dtype.newbyteorder("="), copy=False)
    return np.ascontiguousarray(own).reshape(own.shape).view(storage_dtype(own.dtype))


def from_bits(record):
    """The dtype that a leaf's elements have in memory."""
    if record["kind"] == "float0":
        return np.dtype([("float0", np.void, 0)])
    return np.dtype(getattr(ml_dtypes, record["dtype"], record["dtype"]))


def has_elements(record):
    """Whether a leaf has anything to be stored beside the manifest."""
    return record["kind"] in ("array", "numpy", "key") and 0 not in record["shape"]


def chunk_shape(layout, itemsize):
    """A shape that divides `layout`, of at most 64 MiB if the first axes can be cut so far."""
    chunk = list(layout)
    for axis, size in enumerate(layout):
        others = math.prod(chunk[:axis] + chunk[axis + 1 :]) * itemsize
        most = max(1, _CHUNK_BYTES // others)
        chunk[axis] = _largest_divisor(size, most)
        if chunk[axis] * others <= _CHUNK_BYTES:
            break
    return chunk


def _largest_divisor(size, most):
    """The largest divisor of a number that is not more than another."""
    small = [n for n in range(1, math.isqrt(size) + 1) if size % n == 0]
    return max(n for n in [*small, *(size // n for n in small)] if n <= most)


def leaf_record(leaf, where):
    """(what the manifest says of a leaf, the array to be stored or None)."""
    if isinstance(leaf, _core.Tracer):
        raise TypeError(f"{where}: expected a value; got {leaf}")
    if isinstance(leaf, _core.Array):
        if is_key(leaf.dtype):
            data = key_data(leaf)
            impl = str(key_impl(leaf))
            return {**_array_record("key", data), "impl": impl, "key": str(leaf.dtype)}, data
        kind = "float0" if leaf.dtype.names else "array"
        return _array_record(kind, leaf), leaf
    if isinstance(leaf, (np.ndarray, np.generic)):
        array = np.asarray(leaf)
        if array.dtype.names == ("float0",):
            return _array_record("float0", array), array
        if array.dtype.name not in _NATIVE and not hasattr(ml_dtypes, array.dtype.name):
            raise TypeError(f"{where}: expected a dtype of numbers; got {array.dtype}")
        return _array_record("numpy", array), array
    return {"kind": "python", **_python_record(leaf, where)}, None


def _array_record(kind, array):
    name = "float0" if kind == "float0" else array.dtype.name
    return {"kind": kind, "dtype": name, "shape": list(array.shape)}


def _python_record(leaf, where):
    kind = type(leaf)
    if kind in (bool, str):
        value = leaf
    elif kind is int:
        value = str(leaf)
    elif kind is float:
        value = leaf.hex()
    elif kind is complex:
        value = [leaf.real.hex(), leaf.imag.hex()]
    elif kind is bytes:
        value = base64.b64encode(leaf).decode()
    else:
        raise TypeError(
            f"{where}: expected an array, a number, a string or bytes; got {kind.__name__}"
        )
    return {"type": kind.__name__, "value": value}


_READERS = {
    "bool": bool,
    "str": str,
    "int": int,
    "float": float.fromhex,
    "complex": lambda parts: complex(*map(float.fromhex, parts)),
    "bytes": base64.b64decode,
}


def python_value(record):
    """The Python object that a leaf is."""
    return _READERS[record["type"]](record["value"])


def described(tree):
    """A tree, whose leaves are numbers, as JSON."""
    if tree is None:
        return None
    if not is_tree_node(type(tree)):
        return tree
    if type(tree) in (list, tuple):
        return {type(tree).__name__: [described(child) for child in tree]}
    if type(tree) is dict and all(type(key) in (str, int) for key in tree):
        return {"dict": [[key, described(child)] for key, child in tree.items()]}
    children = [described(child) for child in flatten_one_level(tree)[0]]
    return {"node": type(tree).__qualname__, "children": children}


def tree_of(description):
    """The tree of what `described` gives. Raises ValueError for classes, which a target makes."""
    if not isinstance(description, dict):
        return description
    if "list" in description:
        return [tree_of(child) for child in description["list"]]
    if "tuple" in description:
        return tuple(tree_of(child) for child in description["tuple"])
    if "dict" in description:
        return {key: tree_of(child) for key, child in description["dict"]}
    raise ValueError(
        f"checkpoints.restore expected a target, as the tree has a {description['node']}, which is "
        "no dict, list or tuple"
    )
