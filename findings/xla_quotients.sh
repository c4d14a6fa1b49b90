#!/bin/sh
# XLA's compiler for CPUs replaces a division by a broadcast value with a product.
#
# Guess: `stablehlo.divide` of float32 arrays gives IEEE 754 quotients, as its specification says
# ("division" of IEEE-754), so 41 / 41 is 1 and 2e38 / 2e38 is 1.
# Behaviour: where the divisor is a constant or a broadcast (of a number, or along an axis, as in
# x / x.sum(axis, keepdims=True)), the algebraic simplifier makes x * broadcast(1 / y) of it. Then
# 41 / 41 is 0.99999994, and 2e38 / 2e38 is 0, since the reciprocal is subnormal and flushed.
# `optimization_barrier` on the number that is broadcast does not help; on the broadcast it does, and
# so does `clamp(y, x, y)` in place of the divisor y, which is y.
# Seen with jaxlib 0.10.2 (Python 3.11) and 0.12.0.1 (Python 3.13), x86-64; output of this script:
#   number 0.99999994 0.0
#   axis 0.99999994 0.0
#   barrier on the number 0.99999994 0.0
#   barrier on the broadcast 1.0 1.0
#   clamp 1.0 1.0
set -e
dir=$(mktemp -d)
python3 -m venv "$dir/v"
"$dir/v/bin/pip" -q install jaxlib==0.10.2 numpy ml_dtypes
TF_CPP_MIN_LOG_LEVEL=1 "$dir/v/bin/python" - <<'EOF'
import sys

import numpy as np
from jaxlib import _hlo, _jax, xla_client

client = xla_client.make_cpu_client()
device = client.devices()[0]
devices = _jax.DeviceList((device,))
sharding = _jax.GSPMDSharding(devices, _hlo.HloSharding.replicate())


class Aval:
    def __init__(self, x):
        self.shape, self.dtype, self.weak_type = x.shape, x.dtype, False


def put(x):
    return _jax.batched_device_put(Aval(x), sharding, [x], [device], committed=True, enable_x64=True)


def run(text, *args):
    loaded = client.compile_and_load(text, devices, xla_client.CompileOptions())
    handler = _jax.array_result_handler(Aval(args[0]), sharding, True, _skip_checks=True)
    (result,) = loaded.execute_sharded([put(x) for x in args]).consume_with_handlers([handler])
    return np.array(memoryview(result))


T = "tensor<4x4xf32>"
NUMBER = f"%y = stablehlo.broadcast_in_dim %s, dims = [] : (tensor<f32>) -> {T}"
FORMS = {
    "number": NUMBER,
    "axis": f"""%r = stablehlo.slice %x [0:1, 0:4] : ({T}) -> tensor<1x4xf32>
        %y = stablehlo.broadcast_in_dim %r, dims = [0, 1] : (tensor<1x4xf32>) -> {T}""",
    "barrier on the number": f"""%b = stablehlo.optimization_barrier %s : tensor<f32>
        %y = stablehlo.broadcast_in_dim %b, dims = [] : (tensor<f32>) -> {T}""",
    "barrier on the broadcast": NUMBER.replace("%y", "%b")
    + f"\n%y = stablehlo.optimization_barrier %b : {T}",
    "clamp": NUMBER.replace("%y", "%b") + f"\n%y = stablehlo.clamp %b, %x, %b : {T}",
}
seen = {}
for name, form in FORMS.items():
    text = f"""module {{ func.func public @main(%x: {T}, %s: tensor<f32>) -> {T} {{
        {form}
        %q = stablehlo.divide %x, %y : {T}
        return %q : {T} }} }}"""
    seen[name] = [run(text, np.full((4, 4), v, np.float32), np.float32(v))[0, 0] for v in (41, 2e38)]
    print(name, *map(str, seen[name]))
wrong = [np.float32(0.99999994), np.float32(0)]
right = [np.float32(1), np.float32(1)]
expected = dict.fromkeys(["number", "axis", "barrier on the number"], wrong)
expected |= dict.fromkeys(["barrier on the broadcast", "clamp"], right)
sys.exit(seen != expected)
EOF
