#!/bin/sh
# XLA's compiler for CPUs joins float operations that stand side by side.
#
# Guess: a program of two operations on float32 gives what the two give one after the other, apart
# from fused multiply-add: without xla_cpu_enable_fast_math (off by default) nothing is reassociated.
# Behaviour: the algebraic simplifier joins them. With jaxlib 0.10.2 (Python 3.11), x86-64, of x:
#   (x + 12582912) - 12582912   0.3 -> 0.3    (alone: 0)
#   (x * 1e30) * 1e-30 ...      1e10 -> nan   (x * 1e30 * 1e30 * 1e-30 * 1e-30; alone: inf)
#   log(exp(x))                 1000 -> 1000  (alone: inf)
#   sqrt(x * x)                 1e30 -> 1e30  (alone: inf)
#   exp(x) * exp(-x)            1000 -> 1     (alone: nan)
#   x / x / x                   1e30 -> 0     (alone: 1e-30)
# jaxlib 0.12.0.1 (Python 3.13) does the last one only, and x / (y / z), log(x ** y), x / y ** z.
# `clamp(v, v, v)` between the two, which is v, keeps them apart; this script checks that, too.
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


def run(text, x):
    loaded = client.compile_and_load(text, devices, xla_client.CompileOptions())
    handler = _jax.array_result_handler(Aval(x), sharding, True, _skip_checks=True)
    given = _jax.batched_device_put(Aval(x), sharding, [x], [device], committed=True, enable_x64=True)
    (result,) = loaded.execute_sharded([given]).consume_with_handlers([handler])
    return np.array(memoryview(result))[0]


T = "tensor<4xf32>"
CASES = {
    "(x + c) - c": (0.3, ["add %x, %c", "subtract %v, %c"], 0.3, 0.0),
    "x * d * d * e * e": (1e10, ["multiply %x, %d", "multiply %v, %d", "multiply %v, %e",
                                 "multiply %v, %e"], np.nan, np.inf),
    "log(exp(x))": (1000, ["exponential %x", "log %v"], 1000, np.inf),
    "sqrt(x * x)": (1e30, ["multiply %x, %x", "sqrt %v"], 1e30, np.inf),
    "exp(x) * exp(-x)": (1000, ["exponential %x", "multiply %v, %n"], 1, np.nan),
    "x / x / x": (1e30, ["divide %x, %x", "divide %v, %x"], 0, 1e-30),
}
failed = False
for name, (x, operations, joined, alone) in CASES.items():
    for between, wanted in (("", joined), (f"%v# = stablehlo.clamp %w#, %w#, %w# : {T}\n", alone)):
        lines = ""
        for i, operation in enumerate(operations):
            made = f"%w{i}" if between else f"%v{i}"
            lines += f"{made} = stablehlo.{operation.replace('%v', f'%v{i - 1}')} : {T}\n"
            lines += between.replace("#", str(i))
        text = f"""module {{ func.func public @main(%x: {T}) -> {T} {{
            %c = stablehlo.constant dense<12582912.0> : {T}
            %d = stablehlo.constant dense<1.0e30> : {T}
            %e = stablehlo.constant dense<1.0e-30> : {T}
            %m = stablehlo.negate %x : {T}
            %n = stablehlo.exponential %m : {T}
            {lines} return %v{len(operations) - 1} : {T} }} }}"""
        got = run(text, np.full(4, x, np.float32))
        print(name, "apart:" if between else "joined:", got)
        failed |= not np.array_equal(got, np.float32(wanted), equal_nan=True)
sys.exit(failed)
EOF
