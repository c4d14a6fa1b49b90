#!/bin/sh
# Guess: `x.at[i].add(1)` leaves x as it is where i is out of bounds, as documented, also where x is
# a slice of another array.
#
# Behaviour: XLA makes a read and a write of a scatter with one index, and one slice of the read and
# the slice that x is. The index of that one is not clamped. So another element of the array is read,
# and is written to the end of x. With two indices, or where x is not a slice, nothing is written.
# (That a slice of a slice is not clamped is a known fault, openxla/xla issue 49121. What it does to
# updates is not told there.)
#
# Seen with jax 0.10.2 and jaxlib 0.10.2 on a CPU, x86-64, Python 3.11; 0.12.0.1 is right:
#   one index: [2.0, 3.0, 4.0, 11.0]
#   two indices: [2.0, 3.0, 4.0, 5.0]
set -e
folder="$(mktemp -d)"
python3 -m venv "$folder/v"
"$folder/v/bin/pip" install -q "jax==0.10.2" "jaxlib==0.10.2"
cat >"$folder/run.py" <<'EOF'
import numpy as np

import jax

x = np.arange(16, dtype=np.float32)
update = jax.jit(lambda x, start, at: jax.lax.dynamic_slice(x, (start,), (4,)).at[at].add(1.0))
one = update(x, 2, np.array([9])).tolist()
two = update(x, 2, np.array([9, 9])).tolist()
print("one index:", one)
print("two indices:", two)
raise SystemExit(not (one == [2, 3, 4, 11] and two == [2, 3, 4, 5]))
EOF
"$folder/v/bin/python" "$folder/run.py" 2>"$folder/log"
