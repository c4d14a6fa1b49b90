#!/bin/sh
# top_k of JAX on a CPU looks for the largest numbers of float32 only, and sorts all others.
#
# Guess: `lax.top_k(x, 10)` costs one pass over x, whatever the dtype of x.
# Behaviour: only float32 becomes the custom call TopK. For float16, bfloat16, float64 and integers
# the compiled program holds a sort of all numbers and of their positions, and then takes the first
# ten. For 300,000 numbers that takes 60 to 100 times as long. Where the numbers fit,
# `lax.top_k(x.astype(jnp.float32), k)` is the faster way; all of float16 and bfloat16 do.
# Seen with jax 0.10.2 (Python 3.11), 0.11.2 (Python 3.12) and 0.12.0.1 (Python 3.13), x86-64; the
# last two sort integers in 15 ms, 13 times as long. Output of this script with 0.10.2, milliseconds,
# the least of seven runs in turn:
#   float32   TopK  1.2
#   bfloat16  sort  101.3
#   float16   sort  91.1
#   float64   sort  75.4
#   int8      sort  83.9
#   int32     sort  73.2
#   uint32    sort  80.9
#   int64     sort  85.3
set -e
dir=$(mktemp -d)
python3 -m venv "$dir/v"
"$dir/v/bin/pip" -q install jax==0.10.2 jaxlib==0.10.2
JAX_PLATFORMS=cpu JAX_ENABLE_X64=1 "$dir/v/bin/python" - <<'PY'
import sys
import time

import numpy as np

import jax
import jax.numpy as jnp
from jax import lax

DTYPES = "float32 bfloat16 float16 float64 int8 int32 uint32 int64".split()
numbers = np.random.default_rng(0).integers(0, 2000, 300_000)


def top(x):
    return lax.top_k(x, 10)[0]


compiled, given, kinds, failed = {}, {}, {}, False
for name in DTYPES:
    given[name] = jax.device_put(jnp.asarray(numbers % 128 if name == "int8" else numbers, name))
    compiled[name] = jax.jit(top).lower(given[name]).compile()
    text = compiled[name].as_text()
    kinds[name] = "TopK" if 'custom_call_target="TopK"' in text else ""
    kinds[name] += "sort" if " sort(" in text else ""
    failed |= kinds[name] != ("TopK" if name == "float32" else "sort")
least = dict.fromkeys(DTYPES, np.inf)
for _ in range(7):
    for name in DTYPES:
        start = time.perf_counter()
        compiled[name](given[name]).block_until_ready()
        least[name] = min(least[name], time.perf_counter() - start)
for name in DTYPES:
    print(f"{name:9} {kinds[name]:5} {least[name] * 1e3:.1f}")
through = jax.jit(lambda x: top(x.astype(jnp.float32)))(given["int32"])
failed |= not np.array_equal(through, compiled["int32"](given["int32"]))
failed |= least["int32"] < 30 * least["float32"]
sys.exit(failed)
PY
