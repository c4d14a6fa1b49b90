"""Exported functions as bytes.

The name of the form comes first, then a checksum of all that follows, which is one stream of
zlib's: the lengths of three parts, what is told of the function (JSON, with its program as text),
the StableHLO module, and the function's derivative in the same form, if it is kept.
"""

import json
import re
import struct
import zlib
from typing import Any

import numpy as np

from weft import _core
from weft._dims import SymbolicScope, scope_of
from weft._export_trees import tree_from_json, tree_to_json
from weft._types.avals import ShapedArray, typeof
from weft._version import __version__
from weft.dtypes import float0, is_key
from weft.errors import ArgumentTypeError, AttributeValueError
from weft.random import key_data
from weft.runtime.disk_cache import blake2b
from weft.sharding import PartitionSpec

NAME = b"weft export "
_MAGIC = NAME + b"01\n"
_DIGEST = 32
_LENGTHS = struct.Struct("<QQQ")
# Of the passes that run before a program is lowered: random keys stay keys.
PASSES = [name for name in _core.default_pipeline() if name != "lower_keys"]
_WIDE = 1 << 30  # characters of a line: text with no break in it
_DEVICES = re.compile(r"(mesh<[^;>]*; )([\d, ]*)")


def text_of(graph):
    """The exact text of a program. Raises ValueError where there is none."""
    text = graph.to_text(_WIDE)
    scope = scope_of(shape for shape, _ in graph.in_types)
    again = _core.parse(text, scope._number if scope else 0) if graph.is_portable else None
    if again is None or again.structural_hash != graph.structural_hash:
        raise AttributeValueError(
            "serialize expected a program that other processes can read; got one that holds "
            "operations or objects of this process"
        )
    return text


def with_devices(graph, numbers):
    """A program whose meshes have other devices: number i becomes `numbers[i]`."""

    def other(found):
        return found[1] + ", ".join(str(numbers[int(i)]) for i in found[2].split(",") if i.strip())

    return _core.parse(_DEVICES.sub(other, graph.to_text(_WIDE)))


def constant(array):
    """A program of no arguments that gives an array."""
    if is_key(array.dtype):
        kind = _type_text(array)
        words = _constant_text(key_data(array))
        made = f"bitcast_convert_type[new_dtype={array.dtype}]"
        return _core.parse(f"{{ lambda ; . let {words}\n b:{kind} = {made} a in (b,) }}")
    return _core.parse(f"{{ lambda ; . let {_constant_text(array)} in (a,) }}")


def _type_text(array, **options):
    aval: Any = typeof(array)
    return aval.str_short(**options)


def _constant_text(array):
    kind, data = _type_text(array, short_dtypes=True), np.asarray(array).tobytes()
    if array.dtype == float0:  # whose elements have no bytes in NumPy, and one in programs
        data = bytes(array.size)
    elements = data.hex().upper()
    return f"a:{kind} = constant[value={kind}:0x{elements}]"


def pack(exported, vjp_order):
    """What `Exported.serialize` returns."""
    derivative = b""
    if vjp_order > 0:
        if not exported.has_vjp():
            raise AttributeValueError(
                f"serialize expected {exported.fun_name!r} to have derivatives of order "
                f"{vjp_order}, for vjp_order; there are none that high"
            )
        derivative = pack(exported.vjp(), vjp_order - 1)
    about = {
        "version": __version__,
        "fun_name": exported.fun_name,
        "in_tree": tree_to_json(exported.in_tree),
        "out_tree": tree_to_json(exported.out_tree),
        "in_weak": [bool(aval.weak_type) for aval in exported.in_avals],
        "out_weak": [bool(aval.weak_type) for aval in exported.out_avals],
        "platforms": exported.platforms,
        "nr_devices": exported.nr_devices,
        "disabled": list(map(str, exported.disabled_safety_checks)),
        "calling_convention_version": exported.calling_convention_version,
        "kept": exported.module_kept_var_idx,
        "in_splits": list(map(_split_to_json, exported._in_splits)),
        "out_splits": list(map(_split_to_json, exported._out_splits)),
        "program": text_of(exported._graph),
    }
    scope = scope_of(aval.shape for aval in exported.in_avals)
    if scope is not None:
        about["constraints"] = scope._constraints
    told = json.dumps(about).encode()
    parts = (told, exported.mlir_module_serialized, derivative)
    stream = zlib.compress(_LENGTHS.pack(*map(len, parts)) + b"".join(parts), 1)
    return bytearray(_MAGIC + blake2b(stream, digest_size=_DIGEST).digest() + stream)


def checked_bytes(blob):
    """What was given to `deserialize`. Raises TypeError for what is not bytes."""
    if not isinstance(blob, (bytes, bytearray, memoryview)):
        raise ArgumentTypeError(
            f"deserialize expected bytes that Exported.serialize returned; got "
            f"{type(blob).__name__}"
        )
    return bytes(blob)


def is_named(data):
    """Whether bytes begin as those of some version of this form."""
    return data.startswith(NAME)


def unpack(data):
    """(what `pack` wrote as a dict with the program as a graph, the module, the derivative).

    Raises ValueError for other bytes.
    """
    if not data.startswith(_MAGIC):
        what = f"form {data[len(NAME) : len(NAME) + 2].decode(errors='replace')}"
        raise _not_readable(f"in form {_MAGIC[len(NAME) : -1].decode()}", what)
    digest, stream = data[len(_MAGIC) :][:_DIGEST], data[len(_MAGIC) + _DIGEST :]
    if blake2b(stream, digest_size=_DIGEST).digest() != digest:
        raise _not_readable("as they were", "bytes that are damaged or cut")
    try:
        body = zlib.decompress(stream)
        lengths = _LENGTHS.unpack_from(body)
        ends = [_LENGTHS.size + sum(lengths[: i + 1]) for i in range(3)]
        told = json.loads(body[_LENGTHS.size : ends[0]])
        scope = SymbolicScope(told["constraints"])._number if "constraints" in told else 0
        told["graph"] = _core.parse(told["program"], scope)
        told["in_tree"] = tree_from_json(told["in_tree"])
        told["out_tree"] = tree_from_json(told["out_tree"])
        told["in_avals"] = _avals(told["graph"].in_types, told["in_weak"])
        told["out_avals"] = _avals(told["graph"].out_types, told["out_weak"])
        for side in ("in_splits", "out_splits"):
            told[side] = tuple(map(_split_from_json, told[side]))
            tree, avals = (told[f"{side[:-7]}_{what}"] for what in ("tree", "avals"))
            if not tree.num_leaves == len(avals) == len(told[side]):
                raise ValueError(f"{tree.num_leaves} leaves for {len(avals)} values")
        return told, body[ends[0] : ends[1]], body[ends[1] : ends[2]]
    except AttributeValueError:
        raise
    except Exception as error:
        version = told.get("version") if "told" in locals() else None
        raise _not_readable(
            f"by weft {__version__}",
            f"bytes of weft {version}: {type(error).__name__}: {error}",
        ) from None


def _avals(types, weak):
    return tuple(ShapedArray(*t, weak_type=w) for t, w in zip(types, weak, strict=True))


def _split_to_json(split):
    return None if split is None else [*split[:2], list(split[2])]


def _split_from_json(stored):
    if stored is None:
        return None
    names, sizes, spec = stored
    entries = [tuple(x) if isinstance(x, list) else x for x in spec]
    return tuple(names), tuple(sizes), PartitionSpec(*entries)


def _not_readable(expected, got):
    return AttributeValueError(
        f"deserialize expected bytes that Exported.serialize returned, {expected}; got {got}"
    )
