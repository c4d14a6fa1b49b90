#!/bin/sh
# NumPy's mean of 3000 ones is 0.085 in bfloat16 of ml_dtypes.
#
# Guess: `x.mean()` and `x.sum()` of a NumPy array of bfloat16 are as good as those of float16, for
# which NumPy computes means in float32, and sums in pairs. Ones give a mean of 1 and a variance of 0.
# Behaviour: each partial sum is rounded to the dtype. In bfloat16 a sum of ones stops at 256, since
# 257 is rounded back to 256, in float8_e4m3fn at 16, and in float8_e5m2 at 8. The mean is that sum
# through the number of elements, so the mean of more elements is less. The variance and the standard
# deviation follow it. `x.sum(dtype=np.float32)`, `x.mean(dtype=np.float32)` and `x @ x` are right;
# jax.numpy adds such arrays in float32, and rounds the sum once.
# Seen with ml_dtypes 0.6.0 and NumPy 2.4.6 (Python 3.11), and NumPy 2.5.5 (Python 3.13), x86-64.
# Output of this script, of 3000 ones:
#   float16       sum 3000.0 mean 1.0 variance 0.0 mean in float32 1.0 product 3000.0
#   bfloat16      sum 256.0 mean 0.08544921875 variance 0.08544921875 mean in float32 1.0 product 3000.0
#   float8_e4m3fn sum 16.0 mean 0.005859375 variance 0.005859375 mean in float32 1.0 product 3000.0
#   float8_e5m2   sum 8.0 mean 0.00244140625 variance 0.00244140625 mean in float32 1.0 product 3000.0
set -e
dir=$(mktemp -d)
python3 -m venv "$dir/v"
"$dir/v/bin/pip" -q install numpy==2.4.6 ml_dtypes==0.6.0
"$dir/v/bin/python" - <<'PY'
import sys

import ml_dtypes
import numpy as np

DTYPES = {  # the sum at which partial sums stay
    np.float16: 3000,
    ml_dtypes.bfloat16: 256,
    ml_dtypes.float8_e4m3fn: 16,
    ml_dtypes.float8_e5m2: 8,
}
failed = False
for dtype, stays in DTYPES.items():
    ones = np.ones(3000, dtype)
    total, mean, variance = ones.sum(), ones.mean(), ones.var()
    in_float32, product = ones.mean(dtype=np.float32), ones @ ones
    print(f"{dtype.__name__:13} sum {total} mean {mean} variance {variance}", end=" ")
    print(f"mean in float32 {in_float32} product {product}")
    failed |= total != stays or in_float32 != 1 or product != 3000
    failed |= (mean == 1) != (stays == 3000)
sys.exit(bool(failed))
PY
