#!/bin/sh
# optax in float16: Adam makes NaN of a gradient of 0, and clipping makes 0 of a large gradient.
#
# Guess: `optax.adam(1e-3)` leaves a parameter of float16 as it is where the gradient is 0, and moves
# others by about 1e-3. `optax.clip_by_global_norm(1.0)` gives a gradient of norm 1 whose direction
# is that of the given one, where all numbers are within float16.
# Behaviour: all is computed in the dtype of the parameters. The eps of 1e-8 and the squares of small
# gradients are 0 in float16, so that the update is 0 / 0 or infinite, and one step makes NaN of the
# parameters. adamw, amsgrad, nadam, adabelief, rmsprop and adafactor are alike. For clipping, squares
# are added up in float16: those of 1000 numbers of 100, of norm 3162, have the sum inf, by which the
# numbers are divided. Such gradients vanish without a warning.
# radam, adagrad, yogi and lion are right, as are all in bfloat16.
# Seen with optax 0.2.8 and jax 0.10.2 (Python 3.11), x86-64. Output of this script, the updates of the
# third step for the gradients 0, 1e-4, 1e-3 and 1:
#   float16  adam      nan -inf -inf -0.001
#   float16  adamw     nan nan nan -0.001
#   float16  amsgrad   nan -inf -inf -0.001
#   float16  nadam     nan -inf -inf -0.0011
#   float16  adabelief nan -inf -inf -0.0012
#   float16  rmsprop   nan -inf -0.0017 -0.0019
#   float16  adafactor nan nan nan nan
#   float16  radam     -0 -1.2e-07 -1e-06 -0.001
#   float16  adagrad   -0 -3e-07 -3.2e-06 -0.00057
#   float16  yogi      -1.2e-07 -5.3e-06 -5.2e-05 -0.001
#   float16  lion      -1e-06 -0.001 -0.001 -0.001
#   float16  norm after clipping 0.000, before inf
#   bfloat16 adam      -0 -0.001 -0.001 -0.00099
#   bfloat16 adamw     -1e-07 -0.001 -0.001 -0.00099
#   bfloat16 amsgrad   -0 -0.001 -0.001 -0.00099
#   bfloat16 nadam     -0 -0.0011 -0.0011 -0.0011
#   bfloat16 adabelief -0 -0.0012 -0.0012 -0.0012
#   bfloat16 rmsprop   -0 -0.00089 -0.0019 -0.0019
#   bfloat16 adafactor -0 -0.001 -0.001 -0.001
#   bfloat16 radam     -0 -1e-07 -1e-06 -0.00099
#   bfloat16 adagrad   -0 -3.2e-07 -3.2e-06 -0.00057
#   bfloat16 yogi      -1.4e-07 -5.3e-06 -5.2e-05 -0.00099
#   bfloat16 lion      -1e-06 -0.001 -0.001 -0.001
#   bfloat16 norm after clipping 1.004, before 3152.0
set -e
dir=$(mktemp -d)
python3 -m venv "$dir/v"
"$dir/v/bin/pip" -q install optax==0.2.8 jax==0.10.2 jaxlib==0.10.2
JAX_PLATFORMS=cpu "$dir/v/bin/python" - <<'PY'
import sys

import numpy as np
import optax

import jax.numpy as jnp

OPTIMISERS = {  # and whether they are right in float16
    "adam": False, "adamw": False, "amsgrad": False, "nadam": False, "adabelief": False,
    "rmsprop": False, "adafactor": False, "radam": True, "adagrad": True, "yogi": True, "lion": True,
}
failed = False
for dtype in (jnp.float16, jnp.bfloat16):
    for name, is_right in OPTIMISERS.items():
        optimiser = getattr(optax, name)(1e-3)
        params = jnp.ones(4, dtype)
        gradient = jnp.array([0, 1e-4, 1e-3, 1], dtype)
        state = optimiser.init(params)
        for _ in range(3):
            update, state = optimiser.update(gradient, state, params)
            params = optax.apply_updates(params, update)
        numbers = np.asarray(update, np.float32)
        print(f"{dtype.__name__:8} {name:9}", *(f"{v:.2g}" for v in numbers))
        failed |= np.isfinite(numbers).all() != (is_right or dtype is jnp.bfloat16)
    clip = optax.clip_by_global_norm(1.0)
    gradient = jnp.full(1000, 100, dtype)
    clipped, _ = clip.update(gradient, clip.init(gradient))
    norm = float(jnp.linalg.norm(clipped.astype(jnp.float32)))
    print(f"{dtype.__name__:8} norm after clipping {norm:.3f}, before {optax.global_norm(gradient)}")
    failed |= (norm == 0) != (dtype is jnp.float16)
sys.exit(bool(failed))
PY
