"""Exported functions as the bytes that jax.export writes and reads.

The fields are those of version 3 of its form (jax 0.10), of which earlier versions have the first
ones. The program is the StableHLO module: what is read is a program of StableHLO's operations.
"""

import base64
import contextlib

import numpy as np

from weft import _core, numpy
from weft._export_form import NAME, constant
from weft._export_trees import tree_from_json, tree_to_json
from weft._flat_tables import Table, pack as pack_tables
from weft._jit import jit
from weft._types.avals import ShapeDtypeStruct
from weft.compiler import read
from weft.dtypes import FRY, RBG, UNSAFE_RBG, float0, is_key
from weft.errors import AttributeValueError, NotImplementedRuleError
from weft.random import key_data, wrap_key_data

VERSION = 3
_READ_VERSIONS = range(1, VERSION + 1)

# Numbers of fields.
_VERSION, _NAME, _IN_TREE, _IN_AVALS, _OUT_TREE, _OUT_AVALS = range(6)
_IN_PLACES, _OUT_PLACES, _PLATFORMS, _ORDERED, _UNORDERED, _DISABLED, _MODULE = range(7, 14)
_CONVENTION, _KEPT, _TAKES_PLATFORM, _VJP, _NUM_DEVICES, _TYPES = range(14, 20)
_MESHES, _SPLITS, _IN_TYPES, _OUT_TYPES, _IN_SPLITS, _OUT_SPLITS = range(20, 26)
_SHAPE, _DTYPE, _MEMORY = 1, 2, 3  # of the type of an array
_DEVICE_MEMORY = 1
_NODE, _CHILDREN, _KEYS, _CLASS, _DATA = range(5)  # of a structure
_CHECK, _CHECK_TARGET = range(2)
_PLATFORM_CHECK, _TARGET_CHECK, _ASSERTION_CHECK = range(3)

# The number of a dtype is its place.
_DTYPES = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "complex64", "complex128", "bfloat16", "int4", "uint4"),
    *("float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz"),
    *("float0", "float8_e4m3", "float8_e3m4", "float8_e8m0fnu", "float4_e2m1fn"),
    *("key<fry>", "key<rbg>", "key<urbg>"),
)
_SPECIAL = {"float0": float0, FRY.name: FRY, RBG.name: RBG, UNSAFE_RBG.name: UNSAFE_RBG}
_GENERATORS = {FRY.name: "threefry2x32", RBG.name: "rbg", UNSAFE_RBG.name: "unsafe_rbg"}
_NODES = ("*", None, "tuple", "list", "dict", "class")


def pack(exported, vjp_order):
    """What jax.export.deserialize reads. Raises ValueError for what it has no form for."""
    return bytearray(pack_tables(_fields_of(exported, vjp_order)))


def _fields_of(exported, vjp_order):
    if exported.nr_devices > 1:
        raise AttributeValueError(
            "serialize expected a program for one device, for form='jax'; "
            f"{exported.fun_name!r} is for {exported.nr_devices}"
        )
    ins, outs = (list(map(_type_of, a)) for a in (exported.in_avals, exported.out_avals))
    types = [t for i, t in enumerate(ins + outs) if t not in (ins + outs)[:i]]
    fields = {
        _VERSION: ("H", VERSION),
        _NAME: exported.fun_name,
        _IN_TREE: _node_of(tree_to_json(exported.in_tree)),
        _IN_AVALS: ins,
        _OUT_TREE: _node_of(tree_to_json(exported.out_tree)),
        _OUT_AVALS: outs,
        _IN_PLACES: [{} for _ in ins],
        _OUT_PLACES: [{} for _ in outs],
        _PLATFORMS: list(exported.platforms),
        _ORDERED: [],
        _UNORDERED: [],
        _DISABLED: [_check_of(check) for check in exported.disabled_safety_checks],
        _MODULE: exported.mlir_module_serialized,
        _CONVENTION: ("H", exported.calling_convention_version),
        _KEPT: ("H", list(exported.module_kept_var_idx)),
        _TAKES_PLATFORM: ("?", exported.uses_global_constants),
        _NUM_DEVICES: ("I", 1),
        _TYPES: types,
        _MESHES: [],
        _SPLITS: [],
        _IN_TYPES: ("I", [types.index(t) for t in ins]),
        _OUT_TYPES: ("I", [types.index(t) for t in outs]),
        _IN_SPLITS: ("I", [0] * len(ins)),
        _OUT_SPLITS: ("I", [0] * len(outs)),
    }
    if vjp_order > 0:
        fields[_VJP] = _fields_of(exported.vjp(), vjp_order - 1)
    return fields


def _type_of(aval):
    name = _name_of(aval.dtype)
    if name not in _DTYPES:
        raise AttributeValueError(
            f"serialize expected dtypes that jax.export has, for form='jax'; got {aval.dtype}"
        )
    return {
        _SHAPE: list(map(str, aval.shape)),
        _DTYPE: ("B", _DTYPES.index(name)),
        _MEMORY: ("B", _DEVICE_MEMORY),
    }


def _check_of(check):
    target = check.is_custom_call()
    if target is None:
        return {}
    return {_CHECK: ("B", _TARGET_CHECK), _CHECK_TARGET: target}


def _node_of(stored):
    """A table of a structure as `tree_to_json` gives it."""
    if stored == "*":
        return {}
    if stored is None:
        return {_NODE: ("B", _NODES.index(None))}
    kind = next(k for k in _NODES[2:] if k in stored)
    children = stored["children" if kind == "class" else kind]
    fields = {_NODE: ("B", _NODES.index(kind)), _CHILDREN: list(map(_node_of, children))}
    if kind == "dict":
        for type_name, key in stored["keys"]:
            if type_name != "str":
                raise AttributeValueError(
                    "serialize expected dicts of arguments and results to have keys that are text, "
                    f"for form='jax'; got {key!r}"
                )
        fields[_KEYS] = [key for _, key in stored["keys"]]
    if kind == "class":
        fields[_CLASS] = stored["class"]
        fields[_DATA] = base64.b64decode(stored["data"])
    return fields


def unpack(data):
    """What jax.export wrote, as a dict; its derivative is one of the same form, or None.

    Raises ValueError for bytes of another kind, NotImplementedError for what weft has not.
    """
    with _readable():
        return _told_of(Table.root(data))


@contextlib.contextmanager
def _readable():
    try:
        yield
    except (NotImplementedRuleError, AttributeValueError):
        raise
    except Exception as error:
        raise AttributeValueError(
            "deserialize expected bytes that Exported.serialize of weft or of jax.export returned, "
            f"which begin as {NAME!r} or are tables of jax.export's versions 1 to {VERSION}; got "
            f"bytes of another kind: {type(error).__name__}: {error}"
        ) from None


def _told_of(table):
    version = table.number(_VERSION, "H")
    if version not in _READ_VERSIONS:
        raise ValueError(f"version {version} of jax.export's form")
    num_devices = table.number(_NUM_DEVICES, "I") or table.number(6, "h")
    effects = table.tables(_ORDERED) + table.tables(_UNORDERED)
    if num_devices > 1 or effects:
        raise NotImplementedRuleError(
            "deserialize expected a function for one device without effects, of those that "
            f"jax.export wrote; got one for {num_devices} devices with {len(effects)} effects"
        )
    derivative = table.table(_VJP)
    told = {
        "fun_name": table.text(_NAME),
        "in_tree": tree_from_json(_stored(table.table(_IN_TREE))),
        "in_types": list(map(_read_type, table.tables(_IN_AVALS))),
        "out_tree": tree_from_json(_stored(table.table(_OUT_TREE))),
        "out_types": list(map(_read_type, table.tables(_OUT_AVALS))),
        "platforms": table.texts(_PLATFORMS),
        "disabled": [text for c in table.tables(_DISABLED) if (text := _read_check(c))],
        "calling_convention_version": table.number(_CONVENTION, "H"),
        "kept": table.numbers(_KEPT, "H"),
        "takes_platform": table.number(_TAKES_PLATFORM, "?"),
        "module": table.bytes(_MODULE),
        "derivative": None if derivative is None else _told_of(derivative),
    }
    for side in ("in", "out"):
        leaves, types = told[f"{side}_tree"].num_leaves, told[f"{side}_types"]
        if leaves != len(types):
            raise ValueError(f"{leaves} leaves for {len(types)} values")
    return told


def _read_type(table):
    shape = table.texts(_SHAPE)
    if not all(size.isdecimal() for size in shape):
        raise NotImplementedRuleError(
            "deserialize expected sizes that are numbers, of what jax.export wrote; got arrays of "
            f"shape ({', '.join(shape)})\n  Export the function for arguments of fixed shapes."
        )
    name = _DTYPES[table.number(_DTYPE, "B")]
    return tuple(map(int, shape)), _SPECIAL.get(name) or np.dtype(name)


def _name_of(dtype):
    return next((name for name, special in _SPECIAL.items() if special == dtype), str(dtype))


def _read_check(table):
    """The text of a check that was left out; none of those that weft has not."""
    kind = table.number(_CHECK, "B")
    if kind == _TARGET_CHECK:
        return f"custom_call:{table.text(_CHECK_TARGET)}"
    return "platform" if kind == _PLATFORM_CHECK else ""


def _stored(table):
    """A structure as `tree_from_json` takes it."""
    kind = _NODES[table.number(_NODE, "B")]
    if kind is None or kind == "*":
        return kind
    children = list(map(_stored, table.tables(_CHILDREN)))
    if kind == "class":
        data = base64.b64encode(table.bytes(_DATA)).decode()
        return {"class": table.text(_CLASS), "data": data, "children": children}
    keys = [["str", key] for key in table.texts(_KEYS)]
    return {kind: children, "keys": keys} if kind == "dict" else {kind: children}


def graph_of(told, platform):
    """The program that `unpack` told of, as a graph from all arguments to all results.

    Its module takes the number of the platform first where there are several, and only the
    arguments that it uses; key arrays are words there, and float0 is bool.
    """
    with _readable():
        module = read(told["module"])
    number = told["platforms"].index(platform) if platform in told["platforms"] else 0

    def run(*xs):
        given = [_as_words(xs[i]) for i in told["kept"]]
        if told["takes_platform"]:
            given.insert(0, numpy.int32(number))
        made = _core.call_graph(module, given, ())
        return tuple(_of_type(y, *t) for y, t in zip(made, told["out_types"], strict=True))

    run.__name__ = told["fun_name"].strip("<>") or "f"
    with _readable():
        arguments = [ShapeDtypeStruct(*t) for t in told["in_types"]]
        graph = jit(run, keep_unused=True).trace(*arguments).graph
        if graph.out_types != told["out_types"]:
            raise ValueError(f"results {graph.out_types} for {told['out_types']}")
        return graph


def _as_words(x):
    if is_key(x.dtype):
        return key_data(x)
    return numpy.zeros(x.shape, bool) if x.dtype == float0 else x


def _of_type(y, shape, dtype):
    if is_key(dtype):
        return wrap_key_data(y, impl=_GENERATORS[dtype.name])
    if dtype == float0:
        return _core.call_graph(constant(np.zeros(shape, float0)), [], ())[0]
    return y
