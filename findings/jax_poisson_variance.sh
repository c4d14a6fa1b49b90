#!/bin/sh
# Numbers of jax.random.poisson spread 1.5 times too far for a rate of 1e8, with 64-bit types, too.
#
# Guess: the variance of `jax.random.poisson(key, rate)` is the rate, as its distribution has it, and
# JAX_ENABLE_X64 computes in float64. Numbers of 1e8 fit int32, and the mean is right.
# Behaviour: the rate is made a float32, whatever the types. A number is then accepted or not by the
# difference of numbers as large as rate * log(rate), of which float32 keeps no digit behind the
# point. So the variance is 0.9 times the rate at 3e6, and 1.5 times at 1e8, and tails are heavy: the
# fourth moment, which is 3 for a normal distribution, is above 6. `jax.random.binomial` computes
# so in float32, and right in float64. NumPy is right.
# Seen with jax 0.10.2 (Python 3.11) and 0.12.0.1 (Python 3.13; 1.7 times at 1e8), x86-64. Output of
# this script, of 200,000 numbers each:
#   x64=False jax   rate 1e+04: mean 0.99999 variance 1.00 times the rate, fourth moment 3.0
#   x64=False numpy rate 1e+04: mean 0.99998 variance 1.00 times the rate, fourth moment 3.0
#   x64=False jax   rate 3e+06: mean 1.00000 variance 0.91 times the rate, fourth moment 3.3
#   x64=False numpy rate 3e+06: mean 1.00000 variance 1.00 times the rate, fourth moment 3.0
#   x64=False jax   rate 1e+08: mean 1.00000 variance 1.46 times the rate, fourth moment 6.6
#   x64=False numpy rate 1e+08: mean 1.00000 variance 1.00 times the rate, fourth moment 3.0
#   x64=True jax   rate 1e+04: mean 0.99999 variance 1.00 times the rate, fourth moment 3.0
#   x64=True numpy rate 1e+04: mean 0.99998 variance 1.00 times the rate, fourth moment 3.0
#   x64=True jax   rate 3e+06: mean 1.00000 variance 0.91 times the rate, fourth moment 3.3
#   x64=True numpy rate 3e+06: mean 1.00000 variance 1.00 times the rate, fourth moment 3.0
#   x64=True jax   rate 1e+08: mean 1.00000 variance 1.46 times the rate, fourth moment 6.6
#   x64=True numpy rate 1e+08: mean 1.00000 variance 1.00 times the rate, fourth moment 3.0
set -e
dir=$(mktemp -d)
python3 -m venv "$dir/v"
"$dir/v/bin/pip" -q install jax==0.10.2 jaxlib==0.10.2
JAX_PLATFORMS=cpu "$dir/v/bin/python" - <<'PY'
import sys

import numpy as np

import jax

SIZE = 200_000
key = jax.random.key(0)
failed = False
for x64 in (False, True):
    jax.config.update("jax_enable_x64", x64)
    for rate in (1e4, 3e6, 1e8):
        for name, numbers in (
            ("jax", jax.random.poisson(key, rate, (SIZE,))),
            ("numpy", np.random.default_rng(0).poisson(rate, SIZE)),
        ):
            z = (np.asarray(numbers, np.float64) - rate) / np.sqrt(rate)
            variance, fourth = z.var(), (z**4).mean() / z.var() ** 2
            print(f"x64={x64} {name:5} rate {rate:.0e}: mean {1 + z.mean() / np.sqrt(rate):.5f}", end=" ")
            print(f"variance {variance:.2f} times the rate, fourth moment {fourth:.1f}")
            is_right = abs(variance - 1) < 0.03 and abs(fourth - 3) < 0.1
            failed |= is_right != (name == "numpy" or rate == 1e4)
sys.exit(bool(failed))
PY
