#!/bin/sh
# The ninth operation of a loop of JAX makes all of them take several times as long.
#
# Guess: a loop over n small arrays, each of which is scaled, takes about n times the time of one.
# Behaviour: up to seven or eight arrays that holds. From nine on each array takes three times as
# long and more, if arrays have more than 512 bytes (here 150 numbers of float32); for 100 numbers it
# does not. XLA's runtime for CPUs runs up to eight steps, or steps over small buffers, one after the
# other; of longer sequences it keeps account of what may run at once, which costs about 100 ns a
# step. So two loops over half of the arrays take a fraction of the time of one loop.
# Seen with jax 0.10.2 (Python 3.11), x86-64. Output of this script, nanoseconds for each array in an
# iteration, the least of 15 runs in turn:
#   numbers, arrays: 3 6 12 24
#   100 86 50 42 48
#   150 68 53 251 142
set -e
dir=$(mktemp -d)
python3 -m venv "$dir/v"
"$dir/v/bin/pip" -q install jax==0.10.2 jaxlib==0.10.2
JAX_PLATFORMS=cpu "$dir/v/bin/python" - <<'PY'
import sys
import time

import numpy as np

import jax
from jax import lax

TRIPS, SIZES, COUNTS = 2_000, (100, 150), (3, 6, 12, 24)


def program(count, size):
    # Arrays of different lengths, so that XLA does not make one operation of all.
    arrays = [np.full(size + k, 0.5, np.float32) for k in range(count)]
    loop = jax.jit(lambda xs: lax.fori_loop(0, TRIPS, lambda _, xs: [0.5 * x + 0.25 for x in xs], xs))
    jax.block_until_ready(loop(arrays))
    return lambda: jax.block_until_ready(loop(arrays))


programs = {(size, count): program(count, size) for size in SIZES for count in COUNTS}
least = dict.fromkeys(programs, float("inf"))
for _ in range(15):
    for key, run in programs.items():
        start = time.perf_counter()
        run()
        least[key] = min(least[key], time.perf_counter() - start)
each = {key: seconds / TRIPS / key[1] * 1e9 for key, seconds in least.items()}
print("numbers, arrays:", *COUNTS)
for size in SIZES:
    print(size, *(round(each[size, count]) for count in COUNTS))
ok = each[150, 12] > 1.8 * each[150, 6] and each[100, 12] < 1.5 * each[100, 6]
sys.exit(not ok)
PY
