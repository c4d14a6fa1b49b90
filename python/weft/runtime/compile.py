"""Compilation of StableHLO text and what a compiled program can tell."""

import contextlib
import dataclasses
import functools
import os
import platform
import re
import time
from typing import Any, NamedTuple

import jaxlib
import numpy as np
from jaxlib import _jax, xla_client

from weft import _core
from weft._analyses import Costs, Memory
from weft._version import __version__
from weft.config import config
from weft.runtime import devices, disk_cache, ffi, progress

# How many programs are compiled between two looks at the process's memory maps.
_LOOK_EVERY = 256


def _memory_maps() -> Any:
    """How many memory maps the process has, and how many it may have; None on other systems."""
    try:
        with open("/proc/sys/vm/max_map_count") as limit, open("/proc/self/maps", "rb") as maps:
            return sum(1 for _ in maps), int(limit.read())
    except OSError:
        return None


class _MapGuard:
    """Drops compiled programs before the process has as many memory maps as Linux allows.

    Every program takes several. When one cannot be mapped, XLA does not fail: the process crashes.
    The programs used least recently go first, until the maps are well below what made the process
    crowded; those that still have users are compiled again when they are called.
    """

    def __init__(self):
        self._compiled = 0
        self._crowded = 0  # how many maps are too many, if that is not half of the limit

    def before_compile(self):
        self._compiled += 1
        if self._compiled % _LOOK_EVERY == 0:
            self.look()

    def look(self):
        now = _memory_maps()
        if now is None:
            return
        count, limit = now
        if count <= max(self._crowded, limit // 2):
            return
        while count > limit // 4:
            loaded = _core.cache_stats()["loaded"]
            before = count
            if not _core.unload_executables((loaded + 1) // 2):
                break
            count, _ = _memory_maps()
            if before - count < loaded // 4:
                break  # the maps are not those of programs
        # What remains belongs to others: there is nothing to gain before the maps are more again.
        self._crowded = min(count + limit // 8, limit // 8 * 7)


_maps = _MapGuard()


@dataclasses.dataclass(frozen=True)
class _Effort:
    """How hard XLA's compiler for CPUs tries: options of XLA's, and those that are not its own but
    entries of its `xla_backend_extra_options`. Versions that do not know an entry ignore it."""

    options: tuple = ()
    extra: tuple = ()


def cores():
    """How many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


# What compiles longer without calls that are faster; tools/bench/README.md has the figures.
_UNROLLING = ("xla_cpu_disable_loop_unrolling", "true")
_IDLE = (
    ("xla_cpu_disable_tiled_emitter", "true"),
    ("xla_cpu_disable_slp_vectorizer", "true"),
    _UNROLLING,
)
# Into how many modules LLVM gets the kernels, each of which costs some milliseconds: as many as can
# be compiled at once. It would count before XLA_FLAGS.
_PARTS = (("xla_cpu_parallel_codegen_split_count", min(cores(), 32)),)
if _PARTS[0][0] in os.environ.get("XLA_FLAGS", ""):
    _PARTS = ()
# XLA's new emitters make each kernel by way of MLIR, and equal kernels once; the old ones make a
# kernel in half the time, and all of them.
_OLD_EMITTERS = ("xla_cpu_disable_new_fusion_emitters", "true")
# Seconds that the new ones take longer for a module, for each kernel and for each operation that
# moves elements; seconds that an operation takes longer which is not vectorised; and how many calls
# are to gain the former from the latter. tools/bench/README.md has the figures.
_NEW_MODULE, _NEW_KERNEL, _NEW_MOVE = 8e-3, 5e-3, 1e-3
_SCALAR, _CALLS = 0.15e-9, 2000
_EFFORTS = {
    "fast_compile": _Effort((*_PARTS, ("xla_backend_optimization_level", 0)), _IDLE),
    "balanced": _Effort(_PARTS, _IDLE),
    "fast_run": _Effort(),
}


# XLA gives reductions to a library (YNNPACK) that has arrays of up to 8 axes. Of some of 7 and 8
# axes it makes arrays with two more, and ends the process (jaxlib 0.10.2 and 0.11;
# https://github.com/jax-ml/jax/issues/39257). One axis is left for those that XLA itself adds.
_MAX_RANK_OF_LIBRARY = 5
_MANY_AXES = re.compile(rf"tensor<(?:\d+x){{{_MAX_RANK_OF_LIBRARY + 1}}}")


def _required(text, fast_arithmetic):
    """The XLA options that a module on CPU needs to be right, or to compile at all."""
    options = {}
    if "stablehlo.reduce" in text and (_core.KERNEL_CALL in text or _MANY_AXES.search(text)):
        # Of what the library can do, it is left products of matrices. Kernels cannot call it, and
        # XLA would give it large sums in them.
        options["xla_cpu_experimental_ynn_fusion_type"] = "LIBRARY_FUSION_TYPE_INDIVIDUAL_DOT"
    if not fast_arithmetic and "bf16" in text:
        # By default, a result in bfloat16 stays float32 for the operation that uses it.
        options["xla_allow_excess_precision"] = False
    return options


def _choices(effort, text, once, unroll, survey):
    """The entries of XLA's extra options to compile a module with, those to try first in front. The
    last are never refused; `once`: none may be. `unroll`: whether LLVM is to unroll loops.
    `survey`: counts of the module's operations."""
    if _core.KERNEL_CALL in text:  # many kernels are slower with unrolled loops, at any effort
        return [() if unroll else (_UNROLLING,)]
    if not effort.extra:
        return [()]
    if unroll:
        return [tuple(entry for entry in effort.extra if entry != _UNROLLING)]
    # The rounds of random bits are many operations on few values: all that the compiler has helps.
    if survey.shifts > 0.2 * survey.operations:
        return [()]
    # The old emitters do not vectorise kernels that write into what they read, nor those that put
    # arrays together. And of rare types they know less.
    is_varied = survey.unlike >= 0.5 * survey.operations
    longer = _NEW_MODULE + _NEW_KERNEL * survey.kernels + _NEW_MOVE * survey.moves
    is_slow = _CALLS * _SCALAR * survey.scalar_work > longer
    if is_varied and not (once or survey.has_rare_types or is_slow):
        return [(*effort.extra, _OLD_EMITTERS), effort.extra]
    # Reductions gain from it, and kernels that are made once and run many times cost little.
    repeats = survey.distinct < 0.25 * survey.operations
    if repeats and survey.reductions > 0.05 * survey.operations:
        return [tuple(entry for entry in effort.extra if entry != _UNROLLING)]
    return [effort.extra]


# Where a serialised CompileOptions has that map: executable_build_options, debug_options,
# xla_backend_extra_options. jaxlib has no attribute for it, and its overrides take no maps.
_PATH_TO_EXTRA = (3, 3, 500)


def _field(number, data):
    """A field of bytes in the wire format of protocol buffers."""
    out = bytearray()
    for n in (number << 3 | 2, len(data)):
        while n > 127:
            out.append(n & 127 | 128)
            n >>= 7
        out.append(n)
    return bytes(out) + data


@functools.cache
def _serialized_options(extra):
    """The default CompileOptions, with entries of a map that those of XLA_FLAGS replace."""
    entries = b""
    for name, value in extra:
        entry = _field(1, name.encode()) + _field(2, value.encode())
        for number in reversed(_PATH_TO_EXTRA):
            entry = _field(number, entry)
        entries += entry
    return entries + xla_client.CompileOptions().SerializeAsString()


@dataclasses.dataclass(frozen=True)
class Module:
    """What is to be compiled.

    Attributes:
      text: the module.
      devices: what it runs on, numbers of the core's table.
      host_functions: the functions that it calls, in the order of their numbers in it: (function,
        ((shape, dtype) of each result, ...), the user's line, whether it takes a token).
      barriers: where it has barriers that must stay: nowhere (0), in the main function but not in
        its loops (1), anywhere (2).
      targets: the functions of other libraries that it calls: (name, the user's line).
      compiler_options: the user's options of XLA's, pairs of name and value, or None; "optimize" is
        what `jit` was given.
      is_inspected: whether it wants to know how XLA splits values of it.
      key: what of the module decides about its executable, as bytes; None for a module that means
        something in this process only.
      fast_arithmetic: the setting `weft_fast_arithmetic`.
      unroll: whether it runs faster if LLVM unrolls its loops.
      survey: counts of its operations.
      executable: what it was compiled to in another process, bytes that `serialized` returned; None
        if it was not.
    """

    text: str
    devices: tuple
    host_functions: Any = ()
    barriers: int = 0
    targets: Any = ()
    compiler_options: Any = None
    is_inspected: bool = False
    key: bytes | None = None
    fast_arithmetic: bool = False
    unroll: bool = False
    survey: Any = _core.ModuleSurvey()  # of a module that weft did not write itself
    executable: bytes | None = None


class Loaded(NamedTuple):
    """A compiled module.

    `executable` is jaxlib's; `tiles` has (number, tiles as of `output_tiles`) of each value that is
    inspected.
    """

    executable: Any
    is_from_disk: bool
    tiles: Any = ()


def _compile_module(module):
    """Compiles a Module, or finds it in the cache on disk: a Loaded."""
    _maps.before_compile()
    text, key = module.text, module.key
    placed = [devices.device_at(i) for i in module.devices]
    platform = devices.platform_of(module.devices[0])
    asked = dict(module.compiler_options or ())
    effort = _EFFORTS[asked.pop("optimize", "balanced")]
    if platform != "cpu":
        effort = _EFFORTS["fast_run"]
    if platform == "cpu":
        asked = _required(text, module.fast_arithmetic) | asked
    asked = dict(effort.options) | asked
    if platform == "cpu" and module.barriers:
        # By default XLA drops the barriers first thing on CPU, and then finds what `checkpoint` is
        # to compute again equal to what it computed before: nothing would be gained. The kernels
        # that small loops become cannot hold a barrier; XLA would abort the process.
        passes = ["cse_barrier_expander", "small-while-loop-hoisting"][: module.barriers]
        passes += filter(None, [asked.get("xla_disable_hlo_passes")])
        asked["xla_disable_hlo_passes"] = ",".join(passes)
    # What is inspected is told once.
    extras = _choices(effort, text, module.is_inspected, module.unroll, module.survey)
    choices = [_options(placed, extra, asked) for extra in extras]
    if module.executable is not None:
        with contextlib.suppress(_jax.JaxRuntimeError):
            options = _with_overrides(*choices[0])
            return Loaded(_loaded(module.executable, placed, options), True)
    tiles = []
    if key is not None and config.weft_compilation_cache_include_metadata_in_key:
        key = text.encode()

    def made(options, overrides):
        lasts = key is not None and disk_cache.store() is not None
        lasts = lasts and _leaves_no_trace(options, overrides, module.targets, platform)
        preimage = _preimage(key, placed, options, overrides) if lasts else None
        options = _with_overrides(options, overrides)
        if preimage is None:
            return Loaded(_compiled(text, placed, options, module.host_functions), False, tiles)
        return _through_disk(text, placed, options, preimage)

    wait_for_targets = ffi.prepare(platform, module.targets)
    try:
        if module.is_inspected:
            # XLA calls the functions by their addresses while it compiles: hold them until then.
            text, told = _with_inspections(text, tiles)
        for choice in choices[:-1]:
            try:
                return made(*choice)
            except _jax.JaxRuntimeError as error:
                if not str(error).startswith("UNIMPLEMENTED"):
                    raise
        return made(*choices[-1])
    finally:
        wait_for_targets()


def _options(placed, extra, asked):
    """(CompileOptions, their overrides, which are not in them yet) for devices, entries of XLA's
    extra options and options by name."""
    options = xla_client.CompileOptions.ParseFromString(_serialized_options(extra))
    options.num_replicas = 1
    options.num_partitions = len(placed)
    ids = np.array([[device.id for device in placed]])
    options.device_assignment = xla_client.DeviceAssignment.create(ids)
    if len(placed) > 1:
        options.executable_build_options.num_partitions = len(placed)
        options.executable_build_options.use_spmd_partitioning = True
        options.executable_build_options.use_shardy_partitioner = True
        options.executable_build_options.allow_spmd_sharding_propagation_to_output = [True]
    return options, _accepted(asked, options)


def _with_overrides(options, overrides):
    if overrides:
        options.env_option_overrides = overrides
    return options


def _loaded(executable, placed, options):
    where = _jax.DeviceList(tuple(placed))
    return placed[0].client.deserialize_executable(executable, where, options)


def _compiled(text, placed, options, host_functions=()):
    try:
        return _compiled_as_is(text, placed, options, host_functions)
    except _jax.JaxRuntimeError as error:
        # XLA says which kernels it does not make once it has optimised the module.
        is_refusal = str(error).startswith(("UNIMPLEMENTED", "INTERNAL"))
        if not is_refusal or _core.KERNEL_CALL not in text:
            raise
    plain = text.replace(_core.KERNEL_CALL, "")
    return _compiled_as_is(plain, placed, options, host_functions)


def _compiled_as_is(text, placed, options, host_functions):
    client, where = placed[0].client, _jax.DeviceList(tuple(placed))
    if not host_functions:
        return client.compile_and_load(text, where, options)
    from weft.runtime.callback import checked
    from weft.runtime.mlir import parse_module

    # Only the parsed form of a module is accepted together with functions.
    functions = [checked(*f) for f in host_functions]
    return client.compile_and_load(parse_module(text), where, options, host_callbacks=functions)


def _leaves_no_trace(options, overrides, targets, platform):
    """Whether compiling does nothing but give an executable that any process can load.

    Those of other platforms than CPUs were never tried, nor those that call what users registered;
    and who asks for dumps wants to see them.
    """
    if platform != "cpu" or options.executable_build_options.debug_options.xla_dump_to:
        return False
    if any(name.startswith("xla_dump") for name, _ in overrides):
        return False
    return all(ffi.is_ours(name, platform) for name, _ in targets)


@functools.cache
def _machine():
    """What executables depend on besides their programs: the compiler and the processor.

    Linux tells of the first processor only; it computes the text while it is read, so no more is.
    """
    library = os.path.join(os.path.dirname(_jax.__file__), "libjax_common.so")
    told = [
        f"jaxlib {jaxlib.__version__} {xla_client._version} {_jax.ifrt_version_number} "
        f"{os.path.getsize(library) if os.path.exists(library) else 0}",
        f"{platform.system()} {platform.machine()}",
    ]
    told.append(f"cores: {cores()}")
    told += [f"{name}={os.environ.get(name)}" for name in ("NPROC", "PJRT_NPROC")]
    try:
        with open("/proc/cpuinfo", "rb", buffering=0) as file:
            first = file.read(1 << 14).partition(b"\n\n")[0].decode(errors="replace")
        told += [line for line in first.splitlines() if line.startswith(_OF_A_CPU)]
    except OSError:
        told.append(platform.processor())
    return "\n".join(told)


_OF_A_CPU = (
    *("vendor_id", "cpu family", "model", "stepping", "flags"),
    *("CPU implementer", "CPU architecture", "CPU variant", "CPU part", "Features"),
)


def _preimage(key, placed, options, overrides):
    """All that decides which executable a compilation gives, as bytes."""
    kinds = [(d.device_kind, d.client.platform_version) for d in placed[:1]]
    # The options hold those of XLA_FLAGS as XLA understood them. Overrides would be a map in
    # them, in no order.
    about = (
        _machine(),
        kinds,
        len(placed),
        options.SerializeAsString(),
        sorted(overrides, key=str),
    )
    return repr(about).encode() + b"\n" + key


def serialized(loaded):
    """XLA's bytes of an executable; None for kinds that have none."""
    try:
        return loaded.serialize()
    except _jax.JaxRuntimeError:
        return None


def versions():
    """What besides a module and its options decides whether an executable can be loaded."""
    device = devices.device_at(_core.current_device())
    kind = (device.device_kind, device.client.platform_version)
    return (__version__, jaxlib.__version__, _machine(), kind)


def _through_disk(text, placed, options, preimage):
    """A Loaded of a preimage, from disk or compiled and kept there."""
    found = disk_cache.find(preimage)
    if found is not None:
        try:
            return Loaded(_loaded(found, placed, options), True)
        except _jax.JaxRuntimeError:
            disk_cache.forget(preimage)
    start = time.perf_counter()
    loaded = _compiled(text, placed, options)
    seconds = time.perf_counter() - start
    if seconds >= config.weft_persistent_cache_min_compile_time_secs:
        executable = serialized(loaded)
        if executable is None:
            return Loaded(loaded, False)
        about = {
            "name": _name_of(text),
            "created": time.time(),
            "seconds": round(seconds, 4),
            "versions": f"weft {__version__}, jaxlib {jaxlib.__version__}",
            "devices": f"{len(placed)} x {placed[0].device_kind}",
        }
        disk_cache.keep(about, preimage, executable)
    return Loaded(loaded, False)


def _name_of(text):
    found = re.match(r'module @(?:"((?:[^"\\]|\\.)*)"|(\w+))', text)
    return (found[1] or found[2] or "").removeprefix("jit_") if found else ""


compile_module = progress.shown(_compile_module, _name_of)


_INSPECTION = re.compile(r'(@InspectSharding\(.*\{backend_config = )"(\d+)"')


def _with_inspections(text, tiles):
    """The module with addresses of functions in place of numbers, and those functions, which append
    to `tiles`."""
    told = []

    def replace(call):
        number = int(call[2])
        told.append(lambda layout: tiles.append((number, tiles_of(layout))))
        address = _jax.encode_inspect_sharding_callback(told[-1])
        return call[1] + '"' + "".join(f"\\{byte:02X}" for byte in address) + '"'

    return _INSPECTION.sub(replace, text), told


def output_tiles(loaded):
    """Per result None, as every device has all of it, or (blocks per dimension, their devices)."""
    from jaxlib import _hlo

    shardings = loaded.get_output_shardings() or ()
    return [tiles_of(_hlo.HloSharding.from_proto(proto)) for proto in shardings]


def tiles_of(layout):
    """None for what is whole on each device, or (blocks per dimension, their devices)."""
    if not layout.is_tiled():
        return None
    return tuple(layout.tile_assignment_dimensions()), tuple(layout.tile_assignment_devices())


def _accepted(compiler_options, options):
    """The options that XLA parses; those that `options` has as attributes are set there."""
    overrides = []
    for name, value in compiler_options.items():
        if hasattr(options, name):
            setattr(options, name, value)
        elif hasattr(options.executable_build_options, name):
            setattr(options.executable_build_options, name, value)
        else:
            overrides.append((name, value))
    return overrides


def optimized_hlo(loaded):
    """Text of the program after XLA's optimisations."""
    return "\n\n".join(m.to_string() for m in loaded.hlo_modules())


def unoptimized_hlo(text):
    """HLO text of a StableHLO module before XLA's optimisations."""
    return hlo_computation(text).as_hlo_text()


def hlo_computation(text):
    """A StableHLO module as jaxlib's XlaComputation."""
    return _jax.mlir.mlir_module_to_xla_computation(text)


def cost_analysis(loaded):
    """What XLA estimates: Costs with `flops`, `bytes accessed` and more."""
    costs = loaded.cost_analysis()
    return Costs(costs[0] if isinstance(costs, list) else costs)


def memory_analysis(loaded):
    """Sizes in bytes of arguments, results, temporaries and code of a compiled program."""
    return Memory.of(loaded.get_compiled_memory_stats())


def cost_of_steps(runs):
    """The estimates of executables that run a number of times each, pairs of the two, summed up.
    What XLA says of single operands is left out."""
    total = Costs()
    for loaded, times in runs:
        for name, value in cost_analysis(loaded).items():
            if "{" not in name:
                total[name] = total.get(name, 0.0) + times * value
    return total


def memory_of_steps(blocks, steps, sizes):
    """`steps`: the number of the executable among `blocks`, and the bytes of values that are alive
    between steps, for each; `sizes`: bytes of arguments, results, and what these share."""
    stats = [memory_analysis(loaded) for loaded in blocks]
    arguments, results, shared = sizes
    temporary = max(held + stats[block].temp_size_in_bytes for block, held in steps)
    return Memory(
        generated_code_size_in_bytes=sum(s.generated_code_size_in_bytes for s in stats),
        argument_size_in_bytes=arguments,
        output_size_in_bytes=results,
        alias_size_in_bytes=shared,
        temp_size_in_bytes=temporary,
        peak_memory_in_bytes=arguments + results - shared + temporary,
    )
