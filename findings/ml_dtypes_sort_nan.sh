#!/bin/sh
# One NaN leaves an array of bfloat16 unsorted after numpy.sort.
#
# Guess: `np.sort` puts NaN behind all numbers, as its documentation says, and sorts the numbers;
# `np.unique` gives one NaN; `np.searchsorted` of a sorted array finds what `np.sort` has put there.
# Behaviour: for the float dtypes of ml_dtypes NaN compares as neither less nor greater, so each NaN
# is a wall. Numbers on its two sides are sorted apart, more or less, and neither the array nor the
# numbers without NaN are in order. All kinds of sort, argsort and partition do so, and unique gives
# each number as often as walls part it. No warning is given. float16 and float32 are sorted.
# Seen with ml_dtypes 0.6.0 and NumPy 2.4.6 (Python 3.11), and NumPy 2.5.5 (Python 3.13), x86-64.
# Output of this script, of 9 1 8 nan 3 2 9 1 nan 5 4 0:
#   float16       quicksort 0 1 1 2 3 4 5 8 9 9 nan nan
#   float16       stable    0 1 1 2 3 4 5 8 9 9 nan nan
#   float16       unique    0 1 2 3 4 5 8 9 nan
#   bfloat16      quicksort 1 8 9 nan 1 2 3 9 nan 0 4 5
#   bfloat16      stable    1 8 9 nan 1 2 3 9 nan 0 4 5
#   bfloat16      unique    1 8 9 nan 1 2 3 9 nan 0 4 5
#   float8_e4m3fn quicksort 1 8 9 nan 1 2 3 9 nan 0 4 5
#   float8_e4m3fn stable    1 8 9 nan 1 2 3 9 nan 0 4 5
#   float8_e4m3fn unique    1 8 9 nan 1 2 3 9 nan 0 4 5
#   float8_e5m2   quicksort 1 8 8 nan 1 2 3 8 nan 0 4 5
#   float8_e5m2   stable    1 8 8 nan 1 2 3 8 nan 0 4 5
#   float8_e5m2   unique    1 8 nan 1 2 3 8 nan 0 4 5
set -e
dir=$(mktemp -d)
python3 -m venv "$dir/v"
"$dir/v/bin/pip" -q install numpy==2.4.6 ml_dtypes==0.6.0
"$dir/v/bin/python" - <<'PY'
import sys

import ml_dtypes
import numpy as np

nan = np.nan
given = [9, 1, 8, nan, 3, 2, 9, 1, nan, 5, 4, 0]
wanted = [0, 1, 1, 2, 3, 4, 5, 8, 9, 9, nan, nan]
failed = False
for dtype in (np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2):
    x = np.array(given, dtype)
    for kind in ("quicksort", "stable"):
        found = np.sort(x, kind=kind).astype(np.float32)
        print(f"{dtype.__name__:13} {kind:9}", *(f"{v:g}" for v in found))
        is_sorted = np.array_equal(found, wanted, equal_nan=True)
        numbers = found[~np.isnan(found)]
        failed |= is_sorted != (dtype is np.float16) or is_sorted != np.all(np.diff(numbers) >= 0)
    found = np.unique(x)
    print(f"{dtype.__name__:13} {'unique':9}", *(f"{v:g}" for v in found.astype(np.float32)))
    failed |= (len(found) == 9) != (dtype is np.float16)
sys.exit(bool(failed))
PY
