"""weft: traced, differentiated and compiled array programs.

The public names follow those that JAX made standard.
"""

import os as _os

from weft import _core as _core

_core.install(package_directory=_os.path.dirname(_os.path.abspath(__file__)) + _os.sep)

from weft.runtime import client as _client  # noqa: E402

_client.install()

from weft import _array as _arrays  # noqa: E402

_arrays.install()

from weft import (  # noqa: E402
    ad_checkpoint as ad_checkpoint,
    compiler as compiler,
    config as _config,
    core as core,
    custom_derivatives as custom_derivatives,
    debug as debug,
    dtypes as dtypes,
    errors as errors,
    experimental as experimental,
    extend as extend,
    interpreters as interpreters,
    lax as lax,
    nn as nn,
    numpy as numpy,
    random as random,
    tree as tree,
    tree_util as tree_util,
)
from weft._api import (  # noqa: E402
    block_until_ready as block_until_ready,
    clear_caches as clear_caches,
    default_backend as default_backend,
    device_count as device_count,
    device_get as device_get,
    device_put as device_put,
    devices as devices,
    eval_shape as eval_shape,
    live_arrays as live_arrays,
    local_device_count as local_device_count,
    local_devices as local_devices,
    make_jaxpr as make_jaxpr,
    memory_stats as memory_stats,
    process_index as process_index,
)
from weft._array import Array as Array  # noqa: E402
from weft._autodiff import (  # noqa: E402
    grad as grad,
    jvp as jvp,
    linear_transpose as linear_transpose,
    linearize as linearize,
    value_and_grad as value_and_grad,
    vjp as vjp,
)
from weft._callback import pure_callback as pure_callback  # noqa: E402
from weft._checkpoint import (  # noqa: E402
    checkpoint as checkpoint,
    checkpoint_policies as checkpoint_policies,
    remat as remat,
)
from weft._compose import compose as compose, derivative as derivative  # noqa: E402
from weft._custom_rules import (  # noqa: E402
    closure_convert as closure_convert,
    custom_gradient as custom_gradient,
    custom_jvp as custom_jvp,
    custom_vjp as custom_vjp,
)
from weft._jacobian import (  # noqa: E402
    hessian as hessian,
    jacfwd as jacfwd,
    jacobian as jacobian,
    jacrev as jacrev,
)
from weft._jit import jit as jit  # noqa: E402
from weft._scope import named_call as named_call, named_scope as named_scope  # noqa: E402
from weft._staging import ShapeDtypeStruct as ShapeDtypeStruct, typeof as typeof  # noqa: E402
from weft._vmap import vmap as vmap  # noqa: E402
from weft.config import (  # noqa: E402
    config as config,
    default_device as default_device,
    disable_jit as disable_jit,
    enable_x64 as enable_x64,
)
from weft.runtime.callback import effects_barrier as effects_barrier  # noqa: E402

__version__ = "0.1.0"
