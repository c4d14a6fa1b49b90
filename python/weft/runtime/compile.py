"""Compilation of StableHLO text and what a compiled program can tell."""

import dataclasses
import re
from typing import Any

import numpy as np
from jaxlib import _jax, xla_client

from weft import _core
from weft.runtime import devices, ffi

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


def compile_text(
    text,
    indices,
    host_functions=(),
    has_barriers=False,
    targets=(),
    compiler_options=None,
    split=None,
):
    """Compiles a module for devices of the core's table; returns jaxlib's loaded executable.

    `host_functions` are those that the module calls, in the order of their numbers in it:
    (function, ((shape, dtype) of each result, ...), the user's line, whether it takes a token).
    `has_barriers` says whether it has barriers that must stay. `targets` are the functions of other
    libraries that it calls: (name, the user's line). `compiler_options` are the user's of XLA's,
    pairs of name and value, or None. `split`, a list, gets (number, tiles as of `output_tiles`) of
    each value of which the module wants to know how XLA splits it.
    """
    _maps.before_compile()
    if targets:
        ffi.prepare(devices.platform_of(indices[0]), targets)
    client = devices.client_of(indices[0])
    placed = [devices.device_at(i) for i in indices]
    options = xla_client.CompileOptions()
    options.num_replicas = 1
    options.num_partitions = len(placed)
    ids = np.array([[device.id for device in placed]])
    options.device_assignment = xla_client.DeviceAssignment.create(ids)
    if len(placed) > 1:
        options.executable_build_options.num_partitions = len(placed)
        options.executable_build_options.use_spmd_partitioning = True
        options.executable_build_options.use_shardy_partitioner = True
        options.executable_build_options.allow_spmd_sharding_propagation_to_output = [True]
    overrides = _accepted(compiler_options or (), options)
    if placed[0].platform == "cpu" and has_barriers:
        # By default XLA drops the barriers first thing on CPU, and then finds what `checkpoint` is
        # to compute again equal to what it computed before: nothing would be gained. The kernels
        # that small loops become cannot hold a barrier; XLA would abort the process.
        passes = "cse_barrier_expander,small-while-loop-hoisting"
        overrides.append(("xla_disable_hlo_passes", passes))
    if overrides:
        options.env_option_overrides = overrides
    if split is not None:
        # XLA calls the functions by their addresses while it compiles: hold them until then.
        text, told = _with_inspections(text, split)
    if not host_functions:
        return client.compile_and_load(text, _jax.DeviceList(tuple(placed)), options)
    from weft.runtime.callback import checked
    from weft.runtime.mlir import parse_module

    # Only the parsed form of a module is accepted together with functions.
    functions = [checked(*f) for f in host_functions]
    return client.compile_and_load(
        parse_module(text), _jax.DeviceList(tuple(placed)), options, host_callbacks=functions
    )


_INSPECTION = re.compile(r'(@InspectSharding\(.*\{backend_config = )"(\d+)"')


def _with_inspections(text, split):
    """The module with addresses of functions in place of numbers, and those functions."""
    told = []

    def replace(call):
        number = int(call[2])
        told.append(lambda layout: split.append((number, _tiles(layout))))
        address = _jax.encode_inspect_sharding_callback(told[-1])
        return call[1] + '"' + "".join(f"\\{byte:02X}" for byte in address) + '"'

    return _INSPECTION.sub(replace, text), told


def output_tiles(loaded):
    """Per result None, as every device has all of it, or (blocks per dimension, their devices)."""
    from jaxlib import _hlo

    shardings = loaded.get_output_shardings() or ()
    return [_tiles(_hlo.HloSharding.from_proto(proto)) for proto in shardings]


def _tiles(layout):
    if not layout.is_tiled():
        return None
    return tuple(layout.tile_assignment_dimensions()), tuple(layout.tile_assignment_devices())


def _accepted(compiler_options, options):
    """The options that XLA parses; those that `options` has as attributes are set there."""
    overrides = []
    for name, value in compiler_options:
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
    """What XLA estimates: a dict with `flops`, `bytes accessed` and more."""
    costs = loaded.cost_analysis()
    return dict(costs[0] if isinstance(costs, list) else costs)


def memory_analysis(loaded):
    """Sizes in bytes of arguments, results, temporaries and code of a compiled program."""
    return loaded.get_compiled_memory_stats()


def cost_of_steps(runs):
    """The estimates of executables that run a number of times each, pairs of the two, summed up.
    What XLA says of single operands is left out."""
    total = {}
    for loaded, times in runs:
        for name, value in cost_analysis(loaded).items():
            if "{" not in name:
                total[name] = total.get(name, 0.0) + times * value
    return total


@dataclasses.dataclass(frozen=True)
class MemoryOfSteps:
    """What `memory_analysis` tells, of executables that run one after the other."""

    generated_code_size_in_bytes: int
    argument_size_in_bytes: int
    output_size_in_bytes: int
    alias_size_in_bytes: int
    temp_size_in_bytes: int
    peak_memory_in_bytes: int
    host_generated_code_size_in_bytes: int = 0
    host_argument_size_in_bytes: int = 0
    host_output_size_in_bytes: int = 0
    host_alias_size_in_bytes: int = 0
    host_temp_size_in_bytes: int = 0


def memory_of_steps(blocks, steps, sizes):
    """`steps`: the number of the executable among `blocks`, and the bytes of values that are alive
    between steps, for each; `sizes`: bytes of arguments, results, and what these share."""
    stats = [memory_analysis(loaded) for loaded in blocks]
    arguments, results, shared = sizes
    temporary = max(held + stats[block].temp_size_in_bytes for block, held in steps)
    return MemoryOfSteps(
        generated_code_size_in_bytes=sum(s.generated_code_size_in_bytes for s in stats),
        argument_size_in_bytes=arguments,
        output_size_in_bytes=results,
        alias_size_in_bytes=shared,
        temp_size_in_bytes=temporary,
        peak_memory_in_bytes=arguments + results - shared + temporary,
    )
