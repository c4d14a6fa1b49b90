#!/bin/sh
# The product of two complex arrays of NumPy depends on their order and on how they lie in memory.
#
# Guess: `z * z.conj()` is real, as it is for Python's complex numbers; `z * c` equals `c * z`; and a
# product of two numbers does not depend on where they stand.
# Behaviour: on a processor with fused multiply-add one of the two products within each part is not
# rounded. So the imaginary part of `z * z.conj()` is the rounding error of z.real * z.imag, and
# that of `z.conj() * z` has the other sign; the real part of `(x + 1j * x) ** 2` is not 0 either.
# Products of NumPy's scalars are rounded as in Python, and so are einsum and vdot. For complex64
# reversed arrays are, too: `(z * c)[::-1]` differs from `z[::-1] * c[::-1]`.
# Reported in parts as numpy issues 26740 and 26940. NumPy 1.24.4 rounds everywhere on this machine.
# Seen with NumPy 2.4.6 (Python 3.11) and 2.5.5 (Python 3.13), x86-64 with FMA. Output of this script,
# the least and the greatest part that should be 0:
#   complex64  z * c               -1.2e-07  1.1e-07
#   complex64  c * z               -1.1e-07  1.2e-07
#   complex64  z * c + c * z              0        0
#   complex64  z * c - c * z       -2.3e-07  2.2e-07
#   complex64  z[::-1] * c[::-1]          0        0
#   complex64  diagonal ** 2       -1.2e-07  1.1e-07
#   complex64  scalars                    0        0
#   complex64  einsum                     0        0
#   complex128 z * c               -2.1e-16  2.1e-16
#   complex128 c * z               -2.1e-16  2.1e-16
#   complex128 z * c + c * z              0        0
#   complex128 z * c - c * z       -4.3e-16  4.3e-16
#   complex128 z[::-1] * c[::-1]   -2.1e-16  2.1e-16
#   complex128 diagonal ** 2         -2e-16  2.2e-16
#   complex128 scalars                    0        0
#   complex128 einsum                     0        0
set -e
dir=$(mktemp -d)
python3 -m venv "$dir/v"
"$dir/v/bin/pip" -q install numpy==2.4.6
"$dir/v/bin/python" - <<'PY'
import sys

import numpy as np

failed = False
for dtype in (np.complex64, np.complex128):
    z = (np.random.default_rng(0).uniform(1, 2, (64, 2)) @ [1, 1j]).astype(dtype)
    c = z.conj()
    single = dtype is np.complex64
    diagonal = z.real * dtype(1 + 1j)
    CASES = {  # parts that are 0 in mathematics, and whether they are in NumPy
        "z * c": ((z * c).imag, False),
        "c * z": ((c * z).imag, False),
        "z * c + c * z": ((z * c + c * z).imag, True),
        "z * c - c * z": ((z * c - c * z).imag, False),
        "z[::-1] * c[::-1]": ((z[::-1] * c[::-1]).imag, single),
        "diagonal ** 2": ((diagonal**2).real, False),
        "scalars": (np.array([a * b for a, b in zip(z, c, strict=True)]).imag, True),
        "einsum": (np.einsum("i,i->i", z, c).imag, True),
    }
    for name, (part, is_zero) in CASES.items():
        print(f"{dtype.__name__:10} {name:18} {part.min():9.2g} {part.max():8.2g}")
        failed |= np.all(part == 0) != is_zero
sys.exit(bool(failed))
PY
