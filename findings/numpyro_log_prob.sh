#!/bin/sh
# Log-probabilities of numpyro lose their constant for large parameters, and exceed 0.
#
# Guess: `log_prob` of a discrete distribution is at most 0, and that of a Student's t distribution
# of 1e6 degrees of freedom is that of a normal distribution, to some digits of float32.
# Behaviour: normalising constants are differences of log-gamma functions of large numbers. In
# float32, the default, these have no digits left behind the point from about 1e6 on. There a Poisson
# distribution is off by 0.8 at its mean. For a rate of 1e7 its log_prob is 16, so a probability of 9
# million, where -8.98 is right. The t distribution is off by 0.08 for 1e6, and by 0.92 for 1e7, where
# the constant is gone. NegativeBinomial2 of a large concentration tends to a Poisson distribution of
# its mean, here 3, and is off as well. No warning is given. numpyro.enable_x64() makes values right.
# Seen with numpyro 0.22.0 and jax 0.10.2 (Python 3.11), x86-64. Output of this script, with SciPy's:
#   1e+02 Poisson -3.22 (-3.22) Binomial -2.53 (-2.53) NegativeBinomial2 -1.50 (-1.50) StudentT -1.42 (-1.42) Beta 2.42 (2.42) Gamma 1.38 (1.38)
#   1e+06 Poisson -7.00 (-7.83) Binomial -7.19 (-7.13) NegativeBinomial2 -1.48 (-1.50) StudentT -1.50 (-1.42) Beta 7.00 (7.03) Gamma 6.00 (5.99)
#   1e+07 Poisson 16.00 (-8.98) Binomial -32.00 (-8.28) NegativeBinomial2 -2.07 (-1.50) StudentT -0.50 (-1.42) Beta 34.00 (8.18) Gamma 16.00 (7.14)
#   1e+08 Poisson 0.00 (-10.13) Binomial -160.00 (-9.44) NegativeBinomial2 1.50 (-1.50) StudentT -0.50 (-1.42) Beta -320.00 (9.33) Gamma 0.00 (8.29)
#   with enable_x64:
#   1e+02 Poisson -3.22 (-3.22) Binomial -2.53 (-2.53) NegativeBinomial2 -1.50 (-1.50) StudentT -1.42 (-1.42) Beta 2.42 (2.42) Gamma 1.38 (1.38)
#   1e+06 Poisson -7.83 (-7.83) Binomial -7.13 (-7.13) NegativeBinomial2 -1.50 (-1.50) StudentT -1.42 (-1.42) Beta 7.03 (7.03) Gamma 5.99 (5.99)
#   1e+07 Poisson -8.98 (-8.98) Binomial -8.28 (-8.28) NegativeBinomial2 -1.50 (-1.50) StudentT -1.42 (-1.42) Beta 8.18 (8.18) Gamma 7.14 (7.14)
#   1e+08 Poisson -10.13 (-10.13) Binomial -9.44 (-9.44) NegativeBinomial2 -1.50 (-1.50) StudentT -1.42 (-1.42) Beta 9.33 (9.33) Gamma 8.29 (8.29)
set -e
dir=$(mktemp -d)
python3 -m venv "$dir/v"
"$dir/v/bin/pip" -q install numpyro==0.22.0 jax==0.10.2 jaxlib==0.10.2 scipy
cat >"$dir/run.py" <<'PY'
import sys

import numpy as np
import scipy.stats as st

import numpyro
import numpyro.distributions as dist

x64 = len(sys.argv) > 1
numpyro.enable_x64(x64)
failed = False
for n in (1e2, 1e6, 1e7, 1e8):
    CASES = {
        "Poisson": (dist.Poisson(n).log_prob(n), st.poisson(n).logpmf(n)),
        "Binomial": (dist.Binomial(int(n), 0.5).log_prob(n / 2), st.binom(n, 0.5).logpmf(n / 2)),
        "NegativeBinomial2": (dist.NegativeBinomial2(3.0, n).log_prob(2), st.nbinom(n, n / (n + 3)).logpmf(2)),
        "StudentT": (dist.StudentT(n).log_prob(1.0), st.t(n).logpdf(1.0)),
        "Beta": (dist.Beta(n, n).log_prob(0.5), st.beta(n, n).logpdf(0.5)),
        "Gamma": (dist.Gamma(n, n).log_prob(1.0), st.gamma(n, scale=1 / n).logpdf(1.0)),
    }
    print(f"{n:.0e}", *(f"{name} {float(found):.2f} ({right:.2f})" for name, (found, right) in CASES.items()))
    off = [abs(float(found) - right) for found, right in CASES.values()]
    failed |= max(off) > 0.01 if n == 1e2 or x64 else (n > 1e6 and min(off) < 0.25)
    if n == 1e7 and not x64:
        failed |= CASES["Poisson"][0] <= 0
sys.exit(bool(failed))
PY
export JAX_PLATFORMS=cpu
"$dir/v/bin/python" "$dir/run.py"
echo "with enable_x64:"
"$dir/v/bin/python" "$dir/run.py" x64
