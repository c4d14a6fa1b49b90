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

from weft import _array as _arrays  # noqa: E402

_arrays.install()

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
from weft._api import (  # noqa: E402
    block_until_ready,
    clear_caches,
    default_backend,
    device_count,
    device_get,
    device_put,
    devices,
    eval_shape,
    live_arrays,
    local_device_count,
    local_devices,
    make_jaxpr,
    memory_stats,
    process_index,
)
from weft._array import Array  # noqa: E402
from weft._autodiff import (  # noqa: E402
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
from weft._refs import (  # noqa: E402
    Ref,
    empty_ref,
    free_ref,
    freeze,
    install as _install_refs,
    new_ref,
)

_install_refs()

from weft._scope import named_call, named_scope  # noqa: E402
from weft._staging import ShapeDtypeStruct, typeof  # noqa: E402
from weft._version import __version__  # noqa: E402
from weft._vmap import vmap  # noqa: E402
from weft.config import (  # noqa: E402
    config,
    debug_infs,
    debug_key_reuse,
    debug_nans,
    default_device,
    default_prng_impl,
    disable_jit,
    enable_custom_prng,
    enable_x64,
    legacy_prng_key,
    threefry_partitionable,
)
from weft.runtime.callback import effects_barrier  # noqa: E402

__all__ = [
    "Array",
    "Ref",
    "ShapeDtypeStruct",
    "ad_checkpoint",
    "block_until_ready",
    "checkpoint",
    "checkpoint_policies",
    "clear_caches",
    "closure_convert",
    "compiler",
    "compose",
    "config",
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
    "default_prng_impl",
    "derivative",
    "device_count",
    "device_get",
    "device_put",
    "devices",
    "disable_jit",
    "dlpack",
    "dtypes",
    "effects_barrier",
    "empty_ref",
    "enable_custom_prng",
    "enable_x64",
    "errors",
    "eval_shape",
    "example_libraries",
    "experimental",
    "extend",
    "ffi",
    "flatten_util",
    "free_ref",
    "freeze",
    "grad",
    "hessian",
    "image",
    "interpreters",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jit",
    "jvp",
    "lax",
    "legacy_prng_key",
    "linear_transpose",
    "linearize",
    "live_arrays",
    "local_device_count",
    "local_devices",
    "make_jaxpr",
    "memory_stats",
    "monitoring",
    "named_call",
    "named_scope",
    "new_ref",
    "nn",
    "numpy",
    "ops",
    "process_index",
    "pure_callback",
    "random",
    "ref",
    "remat",
    "scipy",
    "threefry_partitionable",
    "tree",
    "tree_util",
    "typeof",
    "typing",
    "value_and_grad",
    "vjp",
    "vmap",
]
# Modules that are loaded when they are first used.
_LATER = {
    "weft.custom_batching": (),
    "weft.dlpack": (),
    "weft.example_libraries": (),
    "weft.flatten_util": (),
    "weft.image": (),
    "weft.monitoring": (),
    "weft.ops": (),
    "weft.typing": (),
    "weft.scipy": (),
}
__getattr__, __dir__ = _public(__name__, __all__, later=_LATER)

_open_to_users(__name__)
