"""Compiled programs as bytes, for processes on the same kind of machine."""

import json as _json
import struct as _struct
import zlib as _zlib

from weft import _core, _export_form as _form
from weft._jit import jit as _jit
from weft._surface import open_to_users as _open_to_users, public as _public
from weft._types.avals import ShapeDtypeStruct as _ShapeDtypeStruct
from weft.compiler import optimize as _optimize
from weft.config import default_device as _default_device
from weft.errors import (
    ArgumentTypeError as _ArgumentTypeError,
    AttributeValueError as _AttributeValueError,
    NotImplementedRuleError as _NotImplementedRuleError,
)
from weft.runtime import compile as _compile
from weft.runtime.disk_cache import blake2b as _blake2b
from weft.runtime.pytree import registry as _registry

__all__ = ["deserialize_and_load", "serialize"]
__getattr__, __dir__ = _public(__name__, __all__)

# The name of the form, a checksum of what follows, the length of what is told, that (JSON, as a
# stream of zlib's), and XLA's executable.
_MAGIC = b"weft compiled 01\n"
_DIGEST = 32
_LENGTH = _struct.Struct("<Q")


def serialize(compiled):
    """A compiled program, what `weft.jit(f).lower(...).compile()` returned, as bytes.

    They hold weft's program, the arrays that the function closes over, and what XLA made of it; of
    programs that run in several pieces the latter is made again where they are loaded.

    Returns (bytes, in_tree, out_tree), the arguments of `deserialize_and_load`. Raises
    NotImplementedError for programs of several devices or that write refs, ValueError for those
    that hold operations or functions of this process.

    Examples:
      >>> from weft.experimental import serialize_executable
      >>> compiled = weft.jit(lambda x: x + 1).lower(2).compile()
      >>> parts = serialize_executable.serialize(compiled)
      >>> serialize_executable.deserialize_and_load(*parts)(2)
      Array(3, dtype=int32, weak_type=True)
    """
    program = compiled._program
    core = program.core
    placed = _registry.flatten((compiled.input_shardings, compiled.output_shardings))[0]
    if any(len(place.device_set) > 1 for place in placed):
        raise _NotImplementedRuleError("serialize expected a program of one device; got several")
    if core.written or core.written_arguments:
        raise _NotImplementedRuleError("serialize expected a program that writes no refs")
    constants = [_form.text_of(_form.constant(x)) for x in core.consts]
    donated = [
        (i, key)
        for i, rows in enumerate(compiled.args_info)
        for key, row in (rows.items() if i else enumerate(rows))
        if any(info.donated for info in _registry.flatten(row)[0])
    ]
    told = {
        "name": program.name,
        "program": _form.text_of(_optimize(core.graph, passes=_form.PASSES)),
        "constants": constants,
        "in_weak": [w for _, _, w in core.in_avals],
        "out_weak": [w for _, _, w in core.out_avals],
        "donated": donated,
        "keep_unused": program.options.keep_unused,
        "options": dict(program.options.compiler_options or ()),
    }
    again = _lowered(told, compiled.in_tree, compiled.out_tree)
    made = again.compile()._made
    executable = b""
    if made.loaded is not None and made.prologue is None:
        executable = _compile.serialized(made.loaded) or b""
    told["module"] = _module(again)
    text = _zlib.compress(_json.dumps(told).encode(), 1)
    body = _LENGTH.pack(len(text)) + text + executable
    digest = _blake2b(body, digest_size=_DIGEST).digest()
    return _MAGIC + digest + body, compiled.in_tree, compiled.out_tree


def deserialize_and_load(serialized, in_tree, out_tree, backend=None, execution_devices=None):
    """The weft.stages.Compiled that `serialize` was given.

    Load only bytes that you trust: they hold machine code, which runs in this process. Where the
    versions of weft and of jaxlib and the kind of device are those of `serialize`, nothing is
    compiled; elsewhere the program is compiled again.

    Args:
      serialized, in_tree, out_tree: what `serialize` returned.
      backend: has no effect; the program runs where arrays are put by default.
      execution_devices: a sequence of one device, in its place.

    Raises ValueError for bytes that are damaged or of another kind.

    Examples:
      >>> from weft.experimental import serialize_executable
      >>> parts = serialize_executable.serialize(weft.jit(wnp.sum).lower(wnp.ones(3)).compile())
      >>> serialize_executable.deserialize_and_load(*parts)(wnp.arange(3.0))
      Array(3., dtype=float32)
    """
    if not isinstance(serialized, (bytes, bytearray, memoryview)):
        raise _ArgumentTypeError(
            f"deserialize_and_load expected bytes; got {type(serialized).__name__}"
        )
    told, executable = _unpacked(bytes(serialized))
    devices = list(execution_devices or ())
    if len(devices) > 1:
        raise _AttributeValueError(
            f"deserialize_and_load expected one device; got {len(devices)} execution_devices"
        )
    with _default_device(devices[0] if devices else None):
        lowered = _lowered(told, in_tree, out_tree)
        is_of_it = executable and _module(lowered) == told["module"]
        return lowered._compilation(executable=executable if is_of_it else None)()


def _unpacked(data):
    body = data[len(_MAGIC) + _DIGEST :]
    digest = _blake2b(body, digest_size=_DIGEST).digest()
    if data[: len(_MAGIC)] != _MAGIC or data[len(_MAGIC) : len(_MAGIC) + _DIGEST] != digest:
        raise _AttributeValueError(
            "deserialize_and_load expected bytes that serialize returned; got others, or damaged "
            "ones"
        )
    (length,) = _LENGTH.unpack_from(body)
    text = body[_LENGTH.size : _LENGTH.size + length]
    return _json.loads(_zlib.decompress(text)), body[_LENGTH.size + length :]


def _lowered(told, in_tree, out_tree):
    """The program lowered, as a function of arguments of a structure."""
    graph = _core.parse(told["program"])
    constants = [_core.parse(text)()[0] for text in told["constants"]]
    weak = tuple(told["out_weak"])

    def run(*args, **kwargs):
        leaves = _registry.flatten((args, kwargs))[0]
        return out_tree.unflatten(_core.call_graph(graph, [*constants, *leaves], weak))

    run.__name__ = run.__qualname__ = told["name"]
    rows = zip(graph.in_types[len(constants) :], told["in_weak"], strict=True)
    leaves = [_ShapeDtypeStruct(shape, dtype, weak_type=w) for (shape, dtype), w in rows]
    if in_tree.num_leaves != len(leaves) or out_tree.num_leaves != len(weak):
        raise _AttributeValueError(
            f"deserialize_and_load expected structures of {len(leaves)} arguments and "
            f"{len(weak)} results; got {in_tree} and {out_tree}"
        )
    args, kwargs = in_tree.unflatten(leaves)
    jitted = _jit(
        run,
        donate_argnums=[key for i, key in told["donated"] if i == 0],
        donate_argnames=[key for i, key in told["donated"] if i == 1],
        keep_unused=told["keep_unused"],
        compiler_options=told["options"] or None,
    )
    return jitted.lower(*args, **kwargs)


def _module(lowered):
    """What the executable of a program depends on, as text: a digest of its module, and versions
    and devices."""
    text = lowered.as_text() + repr(_compile.versions())
    return _blake2b(text.encode(), digest_size=_DIGEST).hexdigest()


_open_to_users(__name__)
