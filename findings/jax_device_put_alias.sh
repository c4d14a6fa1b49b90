#!/bin/sh
# Whether an array of jax.device_put changes with the NumPy array that it was made of depends on the
# address of that array, and may_alias=False changes nothing.
#
# Guess: arrays of JAX never change. `jax.device_put` says that it returns a copy, and of its option
# may_alias that "if False, x will be copied".
# Behaviour: on a CPU memory is shared where the data of the NumPy array begin at a multiple of 64
# bytes, with may_alias=False as well, for arrays of any size. Whether they do is chance: the same
# line shares an array in one run, and copies it in the next. jax.make_array_from_callback and
# make_array_from_process_local_data share memory in the same way. jnp.asarray copies always, also with
# copy=False, and so does jnp.array.
# Reported as jax issue 37830.
# Seen with jax 0.10.2 (Python 3.11), 0.11.2 (3.12) and 0.12.0.1 (3.13), x86-64. Output of this script:
# the first number of the array of JAX, after that of the NumPy array was changed from 0 to 1, for data
# that begin at a multiple of 64 bytes, and 4, 16 and 32 bytes behind one:
#   4 numbers, device_put(x): 1 0 0 0
#   4 numbers, device_put(x, may_alias=False): 1 0 0 0
#   4 numbers, make_array_from_callback: 1 0 0 0
#   4 numbers, asarray(x, copy=False): 0 0 0 0
#   4 numbers, array(x): 0 0 0 0
#   100000 numbers, device_put(x): 1 0 0 0
#   100000 numbers, device_put(x, may_alias=False): 1 0 0 0
#   100000 numbers, make_array_from_callback: 1 0 0 0
#   100000 numbers, asarray(x, copy=False): 0 0 0 0
#   100000 numbers, array(x): 0 0 0 0
set -e
dir=$(mktemp -d)
python3 -m venv "$dir/v"
"$dir/v/bin/pip" -q install jax==0.10.2 jaxlib==0.10.2
JAX_PLATFORMS=cpu "$dir/v/bin/python" - <<'PY'
import sys

import numpy as np

import jax
import jax.numpy as jnp

device = jax.sharding.SingleDeviceSharding(jax.devices()[0])
WAYS = {  # and whether memory is shared
    "device_put(x)": (jax.device_put, True),
    "device_put(x, may_alias=False)": (lambda x: jax.device_put(x, may_alias=False), True),
    "make_array_from_callback": (
        lambda x: jax.make_array_from_callback(x.shape, device, lambda i: x[i]), True,
    ),
    "asarray(x, copy=False)": (lambda x: jnp.asarray(x, copy=False), False),
    "array(x)": (jnp.array, False),
}
failed = False
for size in (4, 100_000):
    for name, (make, shares) in WAYS.items():
        seen = []
        for behind in (0, 4, 16, 32):
            memory = np.zeros(4 * size + 128, np.uint8)
            start = -memory.ctypes.data % 64 + behind
            x = memory[start : start + 4 * size].view(np.float32)
            made = jax.block_until_ready(make(x))
            x[0] = 1
            seen.append(int(made[0]))
        print(f"{size} numbers, {name}:", *seen)
        failed |= seen != [int(shares), 0, 0, 0]
sys.exit(failed)
PY
