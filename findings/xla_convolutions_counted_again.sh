#!/bin/sh
# Guess: a convolution of an image that is split over devices along its places is the same whether
# its window is split along output features or not.
#
# Behaviour: on a mesh of two axes, with places split over one axis and output features over the
# other, each sum is added up over all devices, and not over those of the first axis alone. So the
# result is multiplied by the size of the second axis: by 4 on a mesh of 2 x 4 devices. Windows of
# one place are right, and so is a mesh where the second axis has 2 parts and the first one 4. jax
# says nothing.
#
# Seen with jax and jaxlib 0.10.2 and 0.12.0.1 on a CPU, x86-64, Python 3.13 and 3.11:
#   window of 1, places over 2 devices, features over 4: 1.0 times the value on one device
#   window of 2, places over 2 devices, features over 4: 4.0 times the value on one device
#   window of 3, places over 2 devices, features over 4: 4.0 times the value on one device
#   window of 3, places over 4 devices, features over 2: 1.0 times the value on one device
set -e
folder="$(mktemp -d)"
python3 -m venv "$folder/v"
"$folder/v/bin/pip" install -q "jax==0.10.2" "jaxlib==0.10.2"
cat >"$folder/run.py" <<'EOF'
import numpy as np

import jax
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

jax.config.update("jax_num_cpu_devices", 8)
mesh = Mesh(np.array(jax.devices()).reshape(2, 4), ("two", "four"))


@jax.jit
def convolve(image, window):
    return jax.lax.conv_general_dilated(
        image, window, (1,), "SAME", dimension_numbers=("NWC", "WIO", "NWC")
    )


holds = True
for places, features, size, times in (
    ("two", "four", 1, 1),
    ("two", "four", 2, 4),
    ("two", "four", 3, 4),
    ("four", "two", 3, 1),
):
    image = np.arange(1, 33, dtype=np.float32).reshape(1, 16, 2)
    window = np.ones((size, 2, 4), np.float32)
    split = convolve(
        jax.device_put(image, NamedSharding(mesh, P(None, places))),
        jax.device_put(window, NamedSharding(mesh, P(None, None, features))),
    )
    ratio = float(np.median(np.asarray(split) / np.asarray(convolve(image, window))))
    over = f"places over {mesh.shape[places]} devices, features over {mesh.shape[features]}"
    print(f"window of {size}, {over}: {ratio} times the value on one device")
    holds &= ratio == times
raise SystemExit(not holds)
EOF
"$folder/v/bin/python" "$folder/run.py" 2>"$folder/log"
