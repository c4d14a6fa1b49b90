"""Rows of elementary and special functions; see differences.py."""

import numpy as np
from differences import Difference

SUBJECT = "Elementary and special functions"


def _row(name, says, jax, run, right, tolerance=1e-6, x64=False):
    return Difference(name, SUBJECT, says, jax, run, right, tolerance, x64)


ROWS = [
    _row(
        "log1p_f64",
        "`log1p` of float64 is off by at most 1 unit in the last place",
        "up to 128 near -0.414",
        lambda m, jnp: jnp.log1p(jnp.asarray([-0.41421355999977877, -0.41421201972088184])),
        [-0.5347999926880661, -0.5347973632709838],
        4e-16,
        True,
    ),
    _row(
        "arctanh_f64",
        "`arctanh` of float64 is off by at most 2 units in the last place",
        "up to 25 near 0.39",
        lambda m, jnp: jnp.arctanh(jnp.asarray(0.3904499328573859)),
        0.41233078814422236,
        5e-16,
        True,
    ),
    _row(
        "cbrt_of_subnormal",
        "`cbrt(1e-39)` is 1e-13",
        "0",
        lambda m, jnp: jnp.cbrt(np.float32(1e-39)),
        1e-13,
    ),
    _row(
        "sinh_f64",
        "`sinh` and `cosh` are off by at most 4 units in the last place",
        "up to 440 for large numbers",
        lambda m, jnp: jnp.sinh(jnp.asarray(516.9760012459041)),
        1.6549871338298642e224,
        1e-15,
        True,
    ),
    _row(
        "exp2_of_whole_numbers",
        "`exp2(-126)` of float32 is the smallest normal number",
        "0",
        lambda m, jnp: jnp.exp2(np.float32(-126)),
        2.0**-126,
    ),
    _row(
        "gammaln_near_1",
        "`gammaln` keeps its digits near 1 and 2, where it is 0",
        "wrong from the second digit on",
        lambda m, jnp: m.scipy.special.gammaln(np.float32([1 + 2**-20, 2 - 2**-20])),
        [-5.50475007e-07, -4.03198268e-07],
    ),
    _row(
        "digamma_at_0",
        "`digamma` has SciPy's limits at zeros, -inf at 0.0 and inf at -0.0",
        "NaN",
        lambda m, jnp: m.scipy.special.digamma(np.float32([0.0, -0.0])),
        [-np.inf, np.inf],
    ),
    _row(
        "digamma_at_its_root",
        "`digamma` keeps its digits near its root",
        "wrong from the third digit on",
        lambda m, jnp: m.scipy.special.digamma(np.float32(1.4616321)),
        -1.20360525e-08,
        1e-3,
    ),
    _row(
        "polygamma_at_inf",
        "`polygamma(1, inf)` is 0",
        "NaN",
        lambda m, jnp: m.scipy.special.polygamma(np.int32(1), np.float32(np.inf)),
        0.0,
    ),
    _row(
        "polygamma_of_negative_numbers",
        "`polygamma(1, -9.5)` is 9.7697",
        "-2.9e12",
        lambda m, jnp: m.scipy.special.polygamma(np.int32(1), jnp.asarray(-9.5)),
        9.769687445030232,
        1e-14,
        True,
    ),
    _row(
        "zeta_of_large_numbers",
        "`zeta(2, 1e30)` is 1e-30",
        "NaN",
        lambda m, jnp: m.scipy.special.zeta(np.float32(2), np.float32(1e30)),
        1e-30,
    ),
    _row(
        "logit_near_half",
        "`logit` keeps its digits near 1/2, where it is 0",
        "0 or twice the value next to 1/2",
        lambda m, jnp: m.scipy.special.logit(np.float32([0.5 - 2**-25, 0.5 + 2**-24])),
        [-(2**-23), 2**-22],
    ),
    _row(
        "normal_tail",
        "`norm.isf(1e-20)` is 9.262",
        "inf",
        lambda m, jnp: m.scipy.stats.norm.isf(np.float32(1e-20)),
        9.262340089798409,
    ),
    _row(
        "normal_density_of_small_scale",
        "`norm.logpdf(0, 0, 1e-30)` is finite",
        "NaN or inf, since it squares the scale",
        lambda m, jnp: m.scipy.stats.norm.logpdf(np.float32(0), 0, np.float32(1e-30)),
        68.15861425,
    ),
    _row(
        "silu_at_minus_infinity",
        "`silu(-inf)` and `gelu(-inf)` are 0",
        "NaN",
        lambda m, jnp: jnp.stack(
            [m.nn.silu(jnp.float32(-np.inf)), m.nn.gelu(jnp.float32(-np.inf))]
        ),
        [0.0, 0.0],
    ),
    _row(
        "gelu_left",
        "`gelu(-4.9)` by the formula with tanh is -4.4e-7",
        "0",
        lambda m, jnp: m.nn.gelu(np.float32(-4.9)),
        -4.4485e-07,
        1e-2,
    ),
    _row(
        "complex_sign_of_large_numbers",
        "`sign` of a complex number has the absolute value 1, for large and small numbers too",
        "0 where the absolute value overflows",
        lambda m, jnp: jnp.sign(np.complex64([3e38 + 3e38j, -1e-37 + 1e-37j])),
        np.complex64([0.70710678 + 0.70710678j, -0.70710678 + 0.70710678j]),
    ),
    _row(
        "gradient_of_complex_abs",
        "The gradient of `abs` at `inf + 1j` is 1",
        "NaN",
        lambda m, jnp: m.grad(jnp.abs)(np.complex64(complex(np.inf, 1))),
        np.complex64(1),
    ),
    _row(
        "second_derivative_of_tanh",
        "The second derivative of `tanh` at 1e-20 is -2e-20; likewise `arctanh` and `arcsin`",
        "0",
        lambda m, jnp: jnp.stack(
            [m.grad(m.grad(f))(jnp.float32(1e-20)) for f in (jnp.tanh, jnp.arctanh, jnp.arcsin)]
        ),
        [-2e-20, 2e-20, 1e-20],
    ),
    _row(
        "derivative_of_expm1",
        "The derivative of `expm1` at -20 is exp(-20)",
        "0",
        lambda m, jnp: m.grad(jnp.expm1)(jnp.float32(-20)),
        2.0611536e-09,
    ),
    _row(
        "derivative_of_arcsinh",
        "The derivative of `arcsinh` at 1e30 is 1e-30",
        "0",
        lambda m, jnp: m.grad(jnp.arcsinh)(jnp.float32(1e30)),
        1e-30,
    ),
]
