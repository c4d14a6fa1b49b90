"""Compilation of StableHLO text and what a compiled program can tell."""

import numpy as np
from jaxlib import _jax, xla_client

from weft import _core
from weft.runtime import client as _client

# How many programs are compiled between two looks at the process's memory maps.
_LOOK_EVERY = 256
_compiled = 0


def _make_room():
    """Drops compiled programs before the process has as many memory maps as Linux allows.

    Every program takes several. When one cannot be mapped, XLA does not fail: the process crashes.
    """
    global _compiled
    _compiled += 1
    if _compiled % _LOOK_EVERY:
        return
    try:
        with open("/proc/sys/vm/max_map_count") as limit, open("/proc/self/maps", "rb") as maps:
            crowded = sum(1 for _ in maps) > int(limit.read()) // 2
    except OSError:
        return  # another system
    if crowded:
        _core.clear_caches()


def compile_text(text, device_index, host_functions=()):
    """Compiles a module for one device; returns jaxlib's loaded executable.

    `host_functions` are those that the module calls, in the order of their numbers in it:
    (function, ((shape, dtype) of each result, ...), the user's line, whether it takes a token).
    """
    _make_room()
    client = _client.client_of(device_index)
    device = _client.device_at(device_index)
    options = xla_client.CompileOptions()
    options.num_replicas = 1
    options.num_partitions = 1
    options.device_assignment = xla_client.DeviceAssignment.create(np.array([[device.id]]))
    if device.platform == "cpu" and "stablehlo.optimization_barrier" in text:
        # By default XLA drops the barriers first thing on CPU, and then finds what `checkpoint` is
        # to compute again equal to what it computed before: nothing would be gained. The kernels
        # that small loops become cannot hold a barrier; XLA would abort the process.
        passes = "cse_barrier_expander,small-while-loop-hoisting"
        options.env_option_overrides = [("xla_disable_hlo_passes", passes)]
    if not host_functions:
        return client.compile_and_load(text, _jax.DeviceList((device,)), options)
    from weft.runtime.callback import checked
    from weft.runtime.mlir import parse_module

    # Only the parsed form of a module is accepted together with functions.
    functions = [checked(*f) for f in host_functions]
    return client.compile_and_load(
        parse_module(text), _jax.DeviceList((device,)), options, host_callbacks=functions
    )


def optimized_hlo(loaded):
    """Text of the program after XLA's optimisations."""
    return "\n\n".join(m.to_string() for m in loaded.hlo_modules())


def unoptimized_hlo(text):
    """HLO text of a StableHLO module before XLA's optimisations."""
    computation = _jax.mlir.mlir_module_to_xla_computation(text)
    return computation.as_hlo_text()


def cost_analysis(loaded):
    """What XLA estimates: a dict with `flops`, `bytes accessed` and more."""
    costs = loaded.cost_analysis()
    return dict(costs[0] if isinstance(costs, list) else costs)


def memory_analysis(loaded):
    """Sizes in bytes of arguments, results, temporaries and code of a compiled program."""
    return loaded.get_compiled_memory_stats()
