#!/bin/sh
# In a loop of JAX exp of 32 numbers takes four times as long as exp of 48 or 64.
#
# Guess: what a loop costs grows with the numbers of its body, or is the same for a few numbers.
# Behaviour: up to 32 numbers of float32 the time of exp, tanh and log1p grows by 4 to 10 ns for each
# number, as where they are computed one by one; above that it falls to a quarter, as of vector
# instructions. So padding an array to 48 is several times as fast. sin has no such step.
# Seen with jax 0.10.2 (Python 3.11), 0.11.2 (3.12) and 0.12.0.1 (3.13), on x86-64 with AVX2; with
# other vectors the step may lie elsewhere.
# Output of this script, nanoseconds for an iteration, the least of 15 runs in turn:
#   numbers 1 8 16 32 48 64 128
#   exp 24 37 62 125 28 38 131
#   tanh 22 42 79 156 40 37 108
#   log1p 26 101 167 382 80 100 315
#   sin 16 26 52 95 121 126 274
set -e
dir=$(mktemp -d)
python3 -m venv "$dir/v"
"$dir/v/bin/pip" -q install jax==0.10.2 jaxlib==0.10.2
JAX_PLATFORMS=cpu "$dir/v/bin/python" - <<'PY'
import sys
import time

import numpy as np

import jax
import jax.numpy as jnp
from jax import lax

TRIPS = 20_000
SIZES = (1, 8, 16, 32, 48, 64, 128)
FUNCTIONS = {"exp": jnp.exp, "tanh": jnp.tanh, "log1p": jnp.log1p, "sin": jnp.sin}
loops, least = {}, {}
for name, f in FUNCTIONS.items():
    for size in SIZES:
        loop = jax.jit(lambda x, f=f: lax.fori_loop(0, TRIPS, lambda i, x: f(x) * 0.5 + 0.1, x))
        given = jnp.full(size, 0.3, jnp.float32)
        loops[name, size] = loop, loop(given)
        least[name, size] = np.inf
for _ in range(15):
    for case, (loop, given) in loops.items():
        start = time.perf_counter()
        loop(given).block_until_ready()
        least[case] = min(least[case], (time.perf_counter() - start) / TRIPS * 1e9)
print("numbers", *SIZES)
for name in FUNCTIONS:
    print(name, *(f"{least[name, size]:.0f}" for size in SIZES))
slow = all(least[name, 32] > 1.7 * least[name, 64] for name in ("exp", "tanh", "log1p"))
sys.exit(not slow)
PY
