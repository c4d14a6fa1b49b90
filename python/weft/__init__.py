"""weft: traced, differentiated and compiled array programs.

The public names follow those that JAX made standard.
"""

import os as _os
import sys as _sys

if "t" in getattr(_sys, "abiflags", ""):
    raise ImportError(
        "weft does not support free-threaded builds of Python: its traces and caches rely on the "
        "global interpreter lock. Use the ordinary Python of the same version."
    )

from weft import _core
from weft._surface import open_to_users as _open_to_users, public as _public

_core.install(package_directory=_os.path.dirname(_os.path.abspath(__file__)) + _os.sep)

from weft.runtime import hooks as _hooks  # noqa: E402

_hooks.install()

from weft import _members  # noqa: E402

_members.install()

from weft import (  # noqa: E402
    ad_checkpoint,
    compiler,
    config as _config,
    core,
    custom_derivatives,
    debug,
    dtypes,
    errors,
    experimental,
    extend,
    ffi,
    interpreters,
    lax,
    nn,
    numpy,
    random,
    ref,
    tree,
    tree_util,
)
from weft._array import Array, Shard  # noqa: E402
from weft._autodiff import (  # noqa: E402
    fwd_and_bwd,
    grad,
    jvp,
    linear_transpose,
    linearize,
    value_and_grad,
    vjp,
)
from weft._callback import pure_callback  # noqa: E402
from weft._checkpoint import (  # noqa: E402
    checkpoint,
    checkpoint_policies,
    remat,
)
from weft._compose import compose, derivative  # noqa: E402
from weft._custom_rules import (  # noqa: E402
    closure_convert,
    custom_gradient,
    custom_jvp,
    custom_vjp,
)
from weft._jacobian import (  # noqa: E402
    hessian,
    jacfwd,
    jacobian,
    jacrev,
)
from weft._jit import jit  # noqa: E402
from weft._libraries import remember as _remember  # noqa: E402
from weft._refs import (  # noqa: E402
    Ref,
    empty_ref,
    free_ref,
    freeze,
    install as _install_refs,
    new_ref,
)
from weft._settings import CompilerEffortLevel  # noqa: E402
from weft._stages.options import Inline  # noqa: E402
from weft._stages.program import eval_shape, make_jaxpr  # noqa: E402
from weft._tracing.known_values import ensure_compile_time_eval  # noqa: E402
from weft._transfer import (  # noqa: E402
    block_until_ready,
    copy_to_host_async,
    device_get,
    device_put,
)
from weft.runtime.listing import (  # noqa: E402
    default_backend,
    device_count,
    devices,
    host_count,
    host_id,
    host_ids,
    live_arrays,
    local_device_count,
    local_devices,
    memory_stats,
    process_count,
    process_index,
    process_indices,
)
from weft.runtime.memory import clear_caches  # noqa: E402

_install_refs()
_members.show_members()

from weft._scope import named_call, named_scope  # noqa: E402
from weft._slice import ds  # noqa: E402
from weft._types.avals import ShapeDtypeStruct, typeof  # noqa: E402
from weft._user_context import make_user_context  # noqa: E402
from weft._version import __version__  # noqa: E402
from weft._vmap import vmap  # noqa: E402
from weft.config import (  # noqa: E402
    allow_f16_reductions,
    array_garbage_collection_guard,
    auto_pcast,
    check_tracer_leaks,
    checking_leaks,
    config,
    debug_infs,
    debug_key_reuse,
    debug_nans,
    default_device,
    default_matmul_precision,
    default_prng_impl,
    disable_jit,
    enable_checks,
    enable_custom_prng,
    enable_x64,
    explain_cache_misses,
    jax2tf_associative_scan_reductions,
    legacy_prng_key,
    log_compiles,
    no_execution,
    no_tracing,
    numpy_dtype_promotion,
    numpy_rank_promotion,
    remove_size_one_mesh_axis_from_type,
    softmax_custom_jvp,
    thread_guard,
    threefry_partitionable,
    transfer_guard,
    transfer_guard_device_to_device,
    transfer_guard_device_to_host,
    transfer_guard_host_to_device,
)
from weft.dtypes import float0  # noqa: E402
from weft.runtime.callback import effects_barrier  # noqa: E402
from weft.runtime.devices import Device  # noqa: E402

__all__ = [
    "Array",
    "CompilerEffortLevel",
    "Device",
    "Inline",
    "NamedSharding",
    "P",
    "Ref",
    "ShapeDtypeStruct",
    "Shard",
    "ad_checkpoint",
    "allow_f16_reductions",
    "aot",
    "array_garbage_collection_guard",
    "auto_pcast",
    "block_until_ready",
    "check_tracer_leaks",
    "checking_leaks",
    "checkpoint",
    "checkpoint_policies",
    "checkpoints",
    "clear_caches",
    "closure_convert",
    "compile_all",
    "compiler",
    "compose",
    "config",
    "copy_to_host_async",
    "core",
    "custom_batching",
    "custom_derivatives",
    "custom_gradient",
    "custom_jvp",
    "custom_vjp",
    "debug",
    "debug_infs",
    "debug_key_reuse",
    "debug_nans",
    "default_backend",
    "default_device",
    "default_matmul_precision",
    "default_prng_impl",
    "derivative",
    "device_count",
    "device_get",
    "device_put",
    "devices",
    "disable_jit",
    "distributed",
    "dlpack",
    "ds",
    "dtypes",
    "effects_barrier",
    "empty_ref",
    "enable_checks",
    "enable_custom_prng",
    "enable_x64",
    "ensure_compile_time_eval",
    "errors",
    "eval_shape",
    "example_libraries",
    "experimental",
    "explain_cache_misses",
    "export",
    "extend",
    "ffi",
    "flatten_util",
    "float0",
    "free_ref",
    "freeze",
    "fwd_and_bwd",
    "get_abstract_mesh",
    "get_mesh",
    "grad",
    "hessian",
    "host_count",
    "host_id",
    "host_ids",
    "image",
    "interpreters",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jax2tf_associative_scan_reductions",
    "jit",
    "jvp",
    "lax",
    "legacy_prng_key",
    "linear_transpose",
    "linearize",
    "live_arrays",
    "local_device_count",
    "local_devices",
    "log_compiles",
    "make_array_from_callback",
    "make_array_from_process_local_data",
    "make_array_from_single_device_arrays",
    "make_jaxpr",
    "make_mesh",
    "make_user_context",
    "memory",
    "memory_stats",
    "monitoring",
    "named_call",
    "named_scope",
    "new_ref",
    "nn",
    "no_execution",
    "no_tracing",
    "numpy",
    "numpy_dtype_promotion",
    "numpy_rank_promotion",
    "ops",
    "pmap",
    "print_environment_info",
    "process_count",
    "process_index",
    "process_indices",
    "profiler",
    "pure_callback",
    "random",
    "ref",
    "remat",
    "reshard",
    "remove_size_one_mesh_axis_from_type",
    "scipy",
    "set_mesh",
    "shard_map",
    "sharding",
    "smap",
    "sparse_hessian",
    "sparse_jacobian",
    "softmax_custom_jvp",
    "stages",
    "test_util",
    "thread_guard",
    "threefry_partitionable",
    "transfer_guard",
    "transfer_guard_device_to_device",
    "transfer_guard_device_to_host",
    "transfer_guard_host_to_device",
    "tree",
    "tree_util",
    "typeof",
    "typing",
    "use_abstract_mesh",
    "use_mesh",
    "value_and_grad",
    "vjp",
    "vmap",
]
# Modules that are loaded when they are first used.
_LATER = {
    "weft._ahead": ("compile_all",),
    "weft._aot": ("aot",),
    "weft._assembly": (
        "make_array_from_callback",
        "make_array_from_process_local_data",
        "make_array_from_single_device_arrays",
    ),
    "weft._explicit": ("reshard",),
    "weft._placement": (
        "NamedSharding",
        "P",
        "get_abstract_mesh",
        "get_mesh",
        "make_mesh",
        "set_mesh",
        "use_abstract_mesh",
        "use_mesh",
    ),
    "weft._pmap": ("pmap",),
    "weft._shard_map": ("shard_map", "smap"),
    "weft._sparsity.derivatives": ("sparse_hessian", "sparse_jacobian"),
    "weft.checkpoints": (),
    "weft.custom_batching": (),
    "weft.distributed": (),
    "weft.dlpack": (),
    "weft.export": (),
    "weft.example_libraries": (),
    "weft.flatten_util": (),
    "weft.image": (),
    "weft.monitoring": (),
    "weft.ops": (),
    "weft.profiler": (),
    "weft.runtime.about": ("print_environment_info",),
    "weft.scipy": (),
    "weft.sharding": (),
    "weft.stages": (),
    "weft.test_util": (),
    "weft.typing": (),
}
__getattr__, __dir__ = _public(__name__, __all__, later=_LATER)

_open_to_users(__name__)
_remember()
