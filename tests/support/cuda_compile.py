"""Compiles the programs of linear algebra for an H100 that is described, not there.

usage: cuda_compile.py      needs the wheels jax-cuda13-pjrt and jax-cuda13-plugin, no GPU

Prints a line for each program. A process of its own: it registers the kernels of the wheel.
"""

import numpy as np
from jaxlib import _jax, xla_client
from jaxlib.mlir import ir
from jaxlib.mlir._mlir_libs import _jax_mlir_ext
from jaxlib.mlir.dialects import chlo, stablehlo

import weft
from weft import compiler, lax
from weft.lax import linalg
from weft.runtime import cuda

H100 = """
gpu_device_info {
  threads_per_block_limit: 1024 threads_per_warp: 32 shared_memory_per_block: 49152
  shared_memory_per_core: 233472 threads_per_core_limit: 2048 core_count: 132 fpus_per_core: 128
  block_dim_limit_x: 2147483647 block_dim_limit_y: 65535 block_dim_limit_z: 65535
  memory_bandwidth: 3352320000000 l2_cache_size: 52428800 clock_rate_ghz: 1.98
  device_memory_size: 84942979072 shared_memory_per_block_optin: 232448
  cuda_compute_capability { major: 9 } registers_per_core_limit: 65536
  registers_per_block_limit: 65536
}
platform_name: "CUDA"
dnn_version_info { major: 9 minor: 10 }
runtime_version { major: 13 minor: 0 }
device_description_str: "NVIDIA H100 80GB HBM3"
"""
SQUARE = np.eye(4, dtype=np.float32)
MANY = np.zeros((2, 3, 5, 4), np.float32)
LINE = np.ones((2, 4), np.float32)
PROGRAMS = {
    "cholesky": (linalg.cholesky, SQUARE),
    "triangular_solve": (lambda x: linalg.triangular_solve(x, x, left_side=True), SQUARE),
    "lu": (linalg.lu, MANY),
    "qr": (lambda x: linalg.qr(x, full_matrices=False), MANY),
    "svd": (lambda x: linalg.svd(x, full_matrices=False), MANY),
    "eigh": (linalg.eigh, SQUARE),
    "eig": (lambda x: linalg.eig(x, compute_left_eigenvectors=False), SQUARE),
    "tridiagonal": (linalg.tridiagonal, SQUARE),
    "tridiagonal_solve": (lambda x: linalg.tridiagonal_solve(x, x, x, x[..., None]), LINE),
    "fft": (lambda x: lax.fft(x, "RFFT", (4,)), LINE),
}


def compiler_without_a_device():
    """The client and the devices of a described GPU."""
    plugin = xla_client.load_pjrt_plugin_dynamically("cuda", cuda.plugin_path())
    xla_client.initialize_pjrt_plugin("cuda")
    options = {"topology": "1x1x1", "target_config": H100}
    topology = _jax.get_c_api_topology(plugin, "", options)
    devices = topology._make_compile_only_devices()
    return plugin, devices[0].client, _jax.DeviceList(tuple(devices))


def main():
    plugin, client, devices = compiler_without_a_device()
    cuda._api = plugin
    cuda.register_kernels()
    context, registry = ir.Context(), ir.DialectRegistry()
    _jax_mlir_ext.register_dialects(registry)
    context.append_dialect_registry(registry)
    context.load_all_available_dialects()
    for dialect in (stablehlo, chlo):
        dialect.register_dialect(context)
    for name, (function, x) in PROGRAMS.items():
        dtypes = ("float32",) if name == "fft" else ("float32", "complex64")
        for dtype in dtypes:
            graph = weft.jit(function).trace(x.astype(dtype)).graph
            module = ir.Module.parse(compiler.emit_stablehlo(graph, platform="cuda"), context)
            client.compile(module, devices, xla_client.CompileOptions())
            print(name, dtype)


if __name__ == "__main__":
    main()
