#!/bin/sh
# XLA rounds float64 to float16 and bfloat16 twice, and so does ml_dtypes for its dtypes.
#
# Guess: `x.astype(float16)` gives the number of float16 next to x, as IEEE 754 has it, and NumPy does.
# Behaviour: x is rounded to float32 first. Where that gives the middle of two numbers, the second
# rounding goes to the even one of them, on whichever side of the middle x was. So is the way from
# integers to bfloat16. It is XLA's way to float16 and bfloat16, and that of ml_dtypes to bfloat16 and
# its float8 types, where XLA is right: the same line with jit and on an array of NumPy differs.
# For ml_dtypes reported as pull request 401.
# Seen with jax 0.10.2, ml_dtypes 0.6.0, NumPy 2.4.6 (Python 3.11), and jax 0.11.2, 0.12.0.1, NumPy 2.5.5
# (Python 3.12 and 3.13), x86-64. Output of this script:
#   float64 1.0004882812509095 to float16: nearest 1.0009765625, XLA 1.0, NumPy 1.0009765625
#   float64 1.0014648437490905 to float16: nearest 1.0009765625, XLA 1.001953125, NumPy 1.0009765625
#   float64 1.0039062500009095 to bfloat16: nearest 1.0078125, XLA 1.0, NumPy 1.0
#   int64 16842753           to bfloat16: nearest 16908288, XLA 16777216.0, NumPy 16777216.0
#   int32 16842753           to bfloat16: nearest 16908288, XLA 16777216.0, NumPy 16777216.0
#   float64 1.0625000000009095 to float8_e4m3fn: nearest 1.125, XLA 1.125, NumPy 1.0
set -e
dir=$(mktemp -d)
python3 -m venv "$dir/v"
"$dir/v/bin/pip" -q install jax==0.10.2 jaxlib==0.10.2 ml_dtypes==0.6.0 numpy==2.4.6
JAX_PLATFORMS=cpu JAX_ENABLE_X64=1 "$dir/v/bin/python" - <<'PY'
import sys

import ml_dtypes
import numpy as np

import jax

tiny = 2.0**-40
CASES = [  # the number, the dtype, what is next to it, and whether XLA and NumPy find that
    (np.float64(1 + 2**-11 + tiny), np.float16, 1 + 2**-10, False, True),
    (np.float64(1 + 3 * 2**-11 - tiny), np.float16, 1 + 2**-10, False, True),
    (np.float64(1 + 2**-8 + tiny), ml_dtypes.bfloat16, 1 + 2**-7, False, False),
    (np.int64(2**24 + 2**16 + 1), ml_dtypes.bfloat16, 2**24 + 2**17, False, False),
    (np.int32(2**24 + 2**16 + 1), ml_dtypes.bfloat16, 2**24 + 2**17, False, False),
    (np.float64(1 + 2**-4 + tiny), ml_dtypes.float8_e4m3fn, 1 + 2**-3, True, False),
]
failed = False
for number, dtype, nearest, xla_is_right, numpy_is_right in CASES:
    x = np.array([number])
    xla = float(jax.jit(lambda x, dtype=dtype: x.astype(dtype))(x)[0])
    numpy = float(x.astype(dtype)[0])
    print(f"{x.dtype} {number!s:18} to {dtype.__name__}: nearest {nearest}, XLA {xla}, NumPy {numpy}")
    failed |= (xla == nearest) != xla_is_right or (numpy == nearest) != numpy_is_right
sys.exit(failed)
PY
