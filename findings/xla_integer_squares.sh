#!/bin/sh
# XLA takes squares of integers as not negative: the absolute value of one can be negative.
#
# Guess: integers of XLA wrap around, as those of NumPy do. So 50000 * 50000 of int32 is -1794967296,
# its absolute value is 1794967296, it is less than 0, and half of it is -897483648.
# Behaviour: so it is without jit. Where the compiler sees `x * x`, or `x ** 2`, it drops the absolute
# value, answers `x * x < 0` by False, and divides as for unsigned numbers: half of the negative
# number is 1250000000. int8 and int16 are alike: abs(100 * 100) of int8, with 100 * 100 = 16, is
# right, and abs(12 * 12), with 12 * 12 = -112, is -112.
# Seen with jax 0.10.2 (Python 3.11), x86-64. 0.11.2 (Python 3.12) and 0.12.0.1 (Python 3.13) are
# right. Output of this script, x = 50000 and 12 without jit, and with it:
#   int32 abs(x * x)  1794967296 -1794967296
#   int8  abs(x * x)  112 -112
#   int32 abs(x ** 2) 1794967296 -1794967296
#   int8  abs(x ** 2) 112 -112
#   int32 x * x < 0   True False
#   int8  x * x < 0   True False
#   int32 x * x // 2  -897483648 1250000000
#   int8  x * x // 2  -56 72
#   int32 x * x       -1794967296 -1794967296
#   int8  x * x       -112 -112
set -e
dir=$(mktemp -d)
python3 -m venv "$dir/v"
"$dir/v/bin/pip" -q install jax==0.10.2 jaxlib==0.10.2
JAX_PLATFORMS=cpu "$dir/v/bin/python" - <<'PY'
import sys

import numpy as np

import jax
import jax.numpy as jnp

CASES = {
    "abs(x * x)": (lambda x: jnp.abs(x * x), [1794967296, -1794967296], [112, -112]),
    "abs(x ** 2)": (lambda x: jnp.abs(x**2), [1794967296, -1794967296], [112, -112]),
    "x * x < 0": (lambda x: x * x < 0, [True, False], [True, False]),
    "x * x // 2": (lambda x: x * x // 2, [-897483648, 1250000000], [-56, 72]),
    "x * x": (lambda x: x * x, [-1794967296] * 2, [-112] * 2),
}
failed = False
for name, (f, *seen) in CASES.items():
    for x, wanted in zip((np.int32(50000), np.int8(12)), seen, strict=True):
        found = [g(jnp.asarray(x)).item() for g in (f, jax.jit(f))]
        print(f"{x.dtype.name:5} {name:11}", *found)
        failed |= found != wanted
sys.exit(failed)
PY
