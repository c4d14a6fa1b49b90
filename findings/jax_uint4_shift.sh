#!/bin/sh
# In JAX the uint4 number 15 shifted right by 1 is 15, and the int4 number -1 has -8 bits.
#
# Guess: `x >> n` of unsigned integers brings in zeros, for uint4 and uint2 as for uint8; and
# `lax.population_count` of int4 and int2 counts 4 and 2 bits, as of int8 it counts 8.
# Behaviour: `>>` and `jnp.right_shift` of uint4 and uint2 become an arithmetic shift, as of signed
# integers: 8 >> 1 is 12. `lax.shift_right_logical` and `x // 2` are right. Bits of negative numbers
# of int4 and int2 are counted in the int8 that holds them: -8 has 5 bits, and the 8 bits of -1 wrap
# around. Both with jit and without, and no error or warning.
# Seen with jax 0.10.2 (Python 3.11), 0.11.2 (Python 3.12) and 0.12.0.1 (Python 3.13), x86-64. Output
# of this script:
#   uint4 x >> 1    0 0 1 1 2 2 3 3 12 12 13 13 14 14 15 15
#   uint4 logical   0 0 1 1 2 2 3 3 4 4 5 5 6 6 7 7
#   uint2 x >> 1    0 0 3 3
#   uint2 logical   0 0 1 1
#   int4  bits      5 6 6 7 6 7 7 -8 0 1 1 2 1 2 2 3
#   int2  bits      1 -2 0 1
set -e
dir=$(mktemp -d)
python3 -m venv "$dir/v"
"$dir/v/bin/pip" -q install jax==0.10.2 jaxlib==0.10.2
JAX_PLATFORMS=cpu "$dir/v/bin/python" - <<'PY'
import sys

import numpy as np

import jax
import jax.numpy as jnp
from jax import lax

failed = False


def shown(name, f, x, wanted):
    global failed
    results = [np.asarray(g(x).astype(jnp.int8)).tolist() for g in (f, jax.jit(f))]
    print(f"{x.dtype.name:5} {name:9}", *results[0])
    failed |= results != [wanted, wanted]


def all_numbers(dtype):
    limits = jnp.iinfo(dtype)
    return jnp.arange(int(limits.min), int(limits.max) + 1, dtype=jnp.int8).astype(dtype)


for dtype, shifted in ((jnp.uint4, [0, 0, 1, 1, 2, 2, 3, 3, 12, 12, 13, 13, 14, 14, 15, 15]),
                       (jnp.uint2, [0, 0, 3, 3])):
    x, one = all_numbers(dtype), jnp.asarray(1, dtype)
    shown("x >> 1", lambda x, one=one: x >> one, x, shifted)
    shown("logical", lambda x, one=one: lax.shift_right_logical(x, one), x,
          [i // 2 for i in range(len(shifted))])
for dtype, bits in ((jnp.int4, [5, 6, 6, 7, 6, 7, 7, -8, 0, 1, 1, 2, 1, 2, 2, 3]),
                    (jnp.int2, [1, -2, 0, 1])):
    shown("bits", lax.population_count, all_numbers(dtype), bits)
sys.exit(failed)
PY
