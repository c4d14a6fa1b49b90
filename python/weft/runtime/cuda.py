"""Finds and loads the CUDA PJRT plugin (the `cuda13` extra) without importing the jax package."""

import ctypes
import functools
import glob
import importlib
import importlib.util
import os

_PLUGIN_PACKAGES = ("xla_cuda13", "xla_cuda12")
_KERNEL_PACKAGES = ("jax_cuda13_plugin", "jax_cuda12_plugin")
# Libraries that the plugin opens by name; loading them first lets it find them in the wheels.
_LIBRARIES = (
    "libcudart.so.*",
    "libnvrtc.so.*",
    "libnvJitLink.so.*",
    "libcublasLt.so.*",
    "libcublas.so.*",
    "libnccl.so.*",
    "libcupti.so.*",
    "libcusparse.so.*",
    "libcusolver.so.*",
    "libcufft.so.*",
    "libnvshmem_host.so.*",
    "libcudnn.so.*",
)


_api = None  # the plugin's C interface, a capsule


def register_kernels():
    """Makes the solvers of the wheel that belongs to the plugin known to XLA.

    Raises RuntimeError if it is not installed.
    """
    from jaxlib import xla_client

    from weft.runtime.ffi import register_all  # circle: it looks for this platform

    for package in _KERNEL_PACKAGES:
        if importlib.util.find_spec(package) is None:
            continue
        extension = importlib.import_module(f"{package}.cuda_plugin_extension")
        register = functools.partial(extension.register_custom_call_target, _api)
        xla_client.register_custom_call_handler("CUDA", register)
        for module in ("_solver", "_linalg", "_sparse"):
            kernels = importlib.import_module(f"{package}.{module}").registrations()
            register_all({"CUDA": [(name, kernel, 1) for name, kernel in kernels.items()]})
        return
    raise RuntimeError(
        "linear algebra on a GPU needs the kernels that belong to the plugin; "
        "install jax-cuda13-plugin"
    )


def plugin_path():
    """Path of the plugin's shared library; None when it is not installed."""
    root = importlib.util.find_spec("jax_plugins")
    for base in (root.submodule_search_locations or ()) if root else ():
        for package in _PLUGIN_PACKAGES:
            path = os.path.join(base, package, "xla_cuda_plugin.so")
            if os.path.exists(path):
                return path
    return None


def _load_libraries():
    spec = importlib.util.find_spec("nvidia")
    for base in (spec.submodule_search_locations or ()) if spec else ():
        for pattern in _LIBRARIES:
            for path in sorted(glob.glob(os.path.join(base, "*", "lib", pattern))):
                try:
                    ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
                except OSError:
                    continue  # a variant for other hardware; the plugin says what it misses
                break


def make_client(joined=None, numbers=None):
    """A client for the machine's GPUs. Raises RuntimeError when the plugin or a GPU is missing.

    `joined` is this process as one of several, `numbers` are those of its GPUs; None for all.
    """
    from jaxlib import xla_client

    path = plugin_path()
    if path is None:
        raise RuntimeError("the CUDA plugin is not installed; install weft[cuda13]")
    _load_libraries()
    if not xla_client.pjrt_plugin_loaded("cuda"):
        global _api
        _api = xla_client.load_pjrt_plugin_dynamically("cuda", path)
    if not xla_client.pjrt_plugin_initialized("cuda"):
        xla_client.initialize_pjrt_plugin("cuda")
    options = xla_client.generate_pjrt_gpu_plugin_options()
    if numbers is not None:
        options["visible_devices"] = numbers
    if joined is None:
        return xla_client.make_c_api_client("cuda", options)
    options |= {"node_id": joined.process_id, "num_nodes": joined.num_processes}
    return xla_client.make_c_api_client("cuda", options, joined.client)
