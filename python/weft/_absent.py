"""Names of the JAX API that weft does not have: why, and what to use.

Which names there are is read from `jax_names.txt`, which ones weft has is asked of weft, and a
function of NumPy or SciPy is found by its name. This file holds only what cannot be computed:
REASONS and INSTEAD, whose keys are paths below `weft` (`Array` for methods of arrays), and
ELSEWHERE, whose keys are names that neither weft nor JAX has.
"""

import functools
import importlib.util
import os
import sys
from typing import NamedTuple

# Modules whose names are sought in other modules of weft, such as weft.scan.
_SEARCHED = ("weft.numpy", "weft.lax", "weft.nn", "weft.random", "weft", "weft.tree_util")

# Names in other frameworks of what has another name here.
ELSEWHERE = {
    "bmm": "weft.numpy.matmul",
    "cat": "weft.numpy.concatenate",
    "clamp": "weft.numpy.clip",
    "compile": "weft.jit",
    "cross_entropy": "weft.nn.log_softmax",
    "detach": "weft.lax.stop_gradient",
    "from_numpy": "weft.numpy.asarray",
    "inverse": "weft.numpy.linalg.inv",
    "manual_seed": "weft.random.key",
    "mm": "weft.numpy.matmul",
    "no_grad": "weft.lax.stop_gradient",
    "rand": "weft.random.uniform",
    "randn": "weft.random.normal",
    "seed": "weft.random.key",
    "shuffle": "weft.random.permutation",
    "tensor": "weft.numpy.array",
    "Tensor": "weft.Array",
    "unsqueeze": "weft.numpy.expand_dims",
}

# Why a name, or all that is below it, is not to come.
_INSIDE = "it is part of the inside of JAX"
_COMPOSED = "it is made of other operations"
_SINGLE = "operations of programs do not move values between devices yet"
_ACCELERATOR = "weft interprets kernels and makes none for GPUs and TPUs"
_HINTS = "it passes hints to the schedulers that XLA has for GPUs and TPUs"
_NO_OBJECT = "effects of programs are no objects"
_GPU_THUNKS = "it writes the lists of steps that XLA makes for GPUs"
_NO_TYPE = "XLA has no such type of elements"
REASONS = {
    "ad": _INSIDE,
    "api_util": _INSIDE,
    "core": _INSIDE,
    "custom_derivatives": _INSIDE,
    "debug.DebugEffect": _NO_OBJECT,
    "debug.OrderedDebugEffect": _NO_OBJECT,
    "errors": "it stands for an error that weft does not raise; weft.errors lists those it does",
    "experimental.EArray": _INSIDE,
    "experimental.colocated_python": "hosts of other processes are reached by collectives only",
    "experimental.control_deps": _HINTS,
    "experimental.cur_qdd": _INSIDE,
    "experimental.jet": _INSIDE,
    "experimental.sparse": _INSIDE,  # its primitives
    **dict.fromkeys(
        (
            "experimental.multihost_utils.global_array_to_host_local_array_impl",
            "experimental.multihost_utils.global_array_to_host_local_array_p",
            "experimental.multihost_utils.gtl_abstract_eval",
            "experimental.multihost_utils.host_local_array_to_global_array_impl",
            "experimental.multihost_utils.host_local_array_to_global_array_p",
            "experimental.multihost_utils.ltg_abstract_eval",
            "experimental.multihost_utils.ltg_batcher",
        ),
        _INSIDE,
    ),
    "experimental.ode": _INSIDE,
    "experimental.profiler.get_profiled_instructions_proto": "it reads profiles of GPUs for XLA",
    "experimental.mesh_utils.device_kind_handler_dict": "it knows the wires between TPUs",
    "experimental.pallas": _ACCELERATOR,
    "experimental.primal_tangent_dtype": _INSIDE,
    "experimental.rnn": "it belongs to calls of cuDNN, in whose place there are scans",
    "experimental.scheduling_groups": _HINTS,
    "experimental.thunky": _GPU_THUNKS,
    "export": "types of programs have sizes that are numbers",
    "extend.backend": _INSIDE,
    "extend.core": _INSIDE,
    "extend.linear_util": _INSIDE,
    "extend.lowering": _INSIDE,
    "extend.mlir": "rules of lowering write StableHLO as text",
    "extend.pallas": _ACCELERATOR,
    "extend.sharding": "it converts shardings of GSPMD, and weft's are those of Shardy",
    "extend.source_info_util": _INSIDE,
    "extend.xla": _INSIDE,
    "ffi.abstract_token": "tokens have no type: effects happen in order without them",
    "interpreters": _INSIDE,
    "lax.log2_p": _COMPOSED,
    "lax.one_minus_square_p": _COMPOSED,
    "lax.polynomial_p": _COMPOSED,
    "lax.precv": _SINGLE,
    "lax.psend": _SINGLE,
    "lax.ragged_all_to_all_p": _COMPOSED,
    "lax.stack_p": _COMPOSED,
    "lax.tile_p": _COMPOSED,
    "lax.unstack_p": _COMPOSED,
    "lib": _INSIDE,
    "numpy.float6_e2m3fn": _NO_TYPE,
    "numpy.float6_e3m2fn": _NO_TYPE,
    "random.random_gamma_p": _COMPOSED,
    "stages.Traced.lojax": _INSIDE,
    "stages.Traced.physicalize": _INSIDE,
}

# What to use in place of a name, or of all that is below it.
_PARTS = "weft.shard_map, or weft.jit on arrays that weft.device_put has split"
INSTEAD = {
    "export": "shapes of numbers: export the function once for each",
    "lax.approx_top_k_p": "weft.lax.top_k_p, which misses nothing",
    "lax.stage_p": "weft.lax.copy_p",
    "lax.linalg.cholesky_update_p": "weft.lax.linalg.cholesky_update, which is made of qr",
    "lax.linalg.symmetric_product_p": "weft.lax.linalg.symmetric_product, made of dot_general",
}


class Name(NamedTuple):
    """A public name of jax."""

    parameters: tuple  # names of the parameters, if it is a function
    deprecated: bool  # by jax itself
    versions: tuple  # of jax that have it


@functools.cache
def jax_names():
    """Two versions of jax, and their names: a dict from section ("jax.numpy") to dict of Names."""
    path = os.path.join(os.path.dirname(__file__), "jax_names.txt")
    with open(path, encoding="utf-8") as file:
        lines = file.read().split("\n")
    older, newer = lines[0].split("jax ")[1].split(",")[0].split(" and ")
    having = {"-": (older,), "+": (newer,)}
    sections = {}
    for line in lines:
        if line.startswith("["):
            section = sections[line[1:-1]] = {}
        elif line and not line.startswith("#"):
            marked, *parameters = line.split(" ")
            unmarked = marked.lstrip("+-")
            name = unmarked.removeprefix("!")
            versions = having.get(marked[0], (older, newer))
            section[name] = Name(tuple(parameters), name != unmarked, versions)
    return (older, newer), sections


def is_known(path):
    """Whether a path below `weft` ("numpy.interp", "scipy") is a name or a module of jax."""
    sections = jax_names()[1]
    owner, _, name = path.rpartition(".")
    return f"jax.{path}" in sections or name in sections.get(f"jax.{owner}" if owner else "jax", ())


def _nearest(table, path):
    """The entry for a path, or for the nearest of those above it."""
    while path:
        if path in table:
            return table[path]
        path = path.rpartition(".")[0]
    return None


def _of_numpy_or_scipy(path):
    """The name in NumPy or SciPy that a path stands for, if these have it."""
    package, _, rest = path.partition(".")
    if package == "Array":
        package, path = "numpy", f"numpy.{rest}"
    if package not in ("numpy", "scipy"):
        return None
    found = sys.modules.get(package)
    if found is None:  # SciPy is not loaded for the sake of a message
        return path if importlib.util.find_spec(package) is not None else None
    for part in rest.split(".") if rest else ():
        found = getattr(found, part, None)
    return None if found is None else path


def reason(path):
    """Why a name of jax is not there and not to come; None if it is just not there yet."""
    owner, _, name = path.rpartition(".")
    known = jax_names()[1].get(f"jax.{owner}" if owner else "jax", {}).get(name)
    if known is not None and known.deprecated:
        return "JAX has deprecated it"
    return None if path in INSTEAD else _nearest(REASONS, path)


def instead(path):
    """What to use in place of a name; None where there is nothing."""
    found = _nearest(INSTEAD, path)
    if found is not None:
        return found
    similar = _of_numpy_or_scipy(path)
    return None if similar is None else f"{similar} outside of traced functions"


def explanation(path):
    """The message for a name of jax that weft lacks."""
    why = reason(path)
    text = f"weft.{path} is not in weft" + (" yet" if why is None else f": {why}")
    other = instead(path)
    return text if other is None else f"{text}\n  Use {other}."


def _meant(module, name):
    """What a name that neither weft nor jax has in `module` may stand for; None: nothing."""
    import difflib

    if name in ELSEWHERE:
        return ELSEWHERE[name]
    for other in _SEARCHED:
        if name in sys.modules[other].__all__:
            return f"{other}.{name}"
    similar = difflib.get_close_matches(name, dir(sys.modules[module]), 1, 0.7)
    return similar[0] if similar else None


def absent_name(module, name, frame):
    """The error for an attribute that a module lacks; `frame` is the code that asks for it."""
    path = f"{module}.{name}".removeprefix("weft.")
    imports = _imports(frame)
    text = explanation(path) if is_known(path) else _misspelt(module, name, imports)
    if imports:
        # The statement drops the text of an AttributeError.
        return ImportError(text, name=f"{module}.{name}", path=None)
    # Without the object, so that Python adds no guess of its own, which versions do in their ways.
    return AttributeError(text, name=name)


def _misspelt(module, name, imports):
    meant = _meant(module, name)
    hint = "" if meant is None else f". Did you mean: {meant!r}?"
    if imports:
        return f"cannot import name {name!r} from {module!r}{hint}"
    return f"module {module!r} has no attribute {name!r}{hint}"


def _imports(frame):
    """Whether a frame is at `from module import name`, fetching the name."""
    import opcode

    at = frame.f_lasti
    return at >= 0 and frame.f_code.co_code[at] == opcode.opmap["IMPORT_FROM"]


def absent_module(name):
    """The error for `import` of a module of jax that weft lacks; None for other modules."""
    path = name.removeprefix("weft.")
    return ModuleNotFoundError(explanation(path), name=name) if is_known(path) else None
