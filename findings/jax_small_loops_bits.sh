#!/bin/sh
# The same function of the same numbers has other bits inside a small loop of JAX.
#
# Guess: `lax.map(f, x)` of an element-wise f gives the bits that `f(x)` gives, and for a function of
# rows those of a Python loop over the rows. At least the width of a row does not change them.
# Behaviour: XLA's compiler for CPUs makes one function of a loop whose iteration reads and writes
# less than 1 KiB, and that function comes from another emitter. It has another `tan` and another
# `cbrt`, twice as far off, and sums in another order. So a third of all tangents differ, for rows
# of 100 numbers, and no tangent differs for rows of 130. An option of XLA that turns this off,
# xla_backend_extra_options=xla_cpu_small_while_loop_byte_threshold=0, makes the bits equal.
# With jaxlib 0.12.0.1 rows of 130 and of 1000 differ as well, since all sizes of loops are treated
# so, and `v @ v` of 4x4 has equal bits.
# Seen with jax 0.10.2 (Python 3.11) on x86-64; 0.11.2 (Python 3.12) alike. Output of this script,
# the part of the results that differ, and the largest error in units of the last place:
#   tan        (100,) 0.32 errors alone and in the loop: 0.78 1.61
#   cbrt       (100,) 0.17 errors alone and in the loop: 0.88 1.71
#   sin        (100,) 0.00 errors alone and in the loop: 0.56 0.56
#   tan        (130,) 0.00 errors alone and in the loop: 0.68 0.68
#   cbrt       (130,) 0.00 errors alone and in the loop: 0.89 0.89
#   sin        (130,) 0.00 errors alone and in the loop: 0.55 0.55
#   v @ v      (4, 4) 0.50
#   variance   (4, 4) 0.56
#   xla_cpu_small_while_loop_byte_threshold=0:
#   tan        (100,) 0.00 errors alone and in the loop: 0.78 0.78
#   cbrt       (100,) 0.00 errors alone and in the loop: 0.88 0.88
#   sin        (100,) 0.00 errors alone and in the loop: 0.56 0.56
#   tan        (130,) 0.00 errors alone and in the loop: 0.68 0.68
#   cbrt       (130,) 0.00 errors alone and in the loop: 0.89 0.89
#   sin        (130,) 0.00 errors alone and in the loop: 0.55 0.55
#   v @ v      (4, 4) 0.00
#   variance   (4, 4) 0.00
set -e
dir=$(mktemp -d)
python3 -m venv "$dir/v"
"$dir/v/bin/pip" -q install jax==0.10.2 jaxlib==0.10.2
cat >"$dir/run.py" <<'PY'
import sys

import numpy as np

import jax
import jax.numpy as jnp

random = np.random.default_rng(0)
changed = len(sys.argv) > 1  # by the option
failed = False


def differing(name, f, x, wanted, exact=None):
    global failed
    looped = np.asarray(jax.jit(lambda x: jax.lax.map(f, x))(x))
    whole = np.asarray(jax.jit(jax.vmap(f))(x))
    rows = np.stack([jax.jit(f)(row) for row in x])
    part = (looped != rows).mean()
    error = ""
    if exact:
        right = exact(x.astype(np.float64))
        unit = np.spacing(np.abs(right).astype(np.float32))
        error = " ".join(f"{np.abs((v - right) / unit).max():.2f}" for v in (rows, looped))
        error = f"errors alone and in the loop: {error}"
    print(f"{name:10} {x.shape[1:]} {part:.2f}", error)
    failed |= not np.array_equal(whole, rows) or (part > 0.1) != (wanted and not changed)


for width in (100, 130):
    x = random.uniform(-1, 1, (50, width)).astype(np.float32)
    differing("tan", jnp.tan, x, width == 100, np.tan)
    differing("cbrt", jnp.cbrt, x, width == 100, np.cbrt)
    differing("sin", jnp.sin, x, False, np.sin)
x = random.uniform(-1, 1, (50, 4, 4)).astype(np.float32)
differing("v @ v", lambda v: v @ v, x, True)
differing("variance", lambda v: ((v - v.mean()) ** 2).mean(), x, True)
sys.exit(bool(failed))
PY
export JAX_PLATFORMS=cpu
"$dir/v/bin/python" "$dir/run.py"
option=xla_cpu_small_while_loop_byte_threshold=0
echo "$option:"
XLA_FLAGS="--xla_backend_extra_options=$option" "$dir/v/bin/python" "$dir/run.py" off
