"""Special functions, distributions, linear algebra and signals of weft.scipy."""

import numpy as np
from differences import Difference

_INF = float("inf")


def _rosenbrock(x):
    return 100.0 * (x[1] - x[0] ** 2) ** 2 + (1.0 - x[0]) ** 2


def _himmelblau(x):
    return (x[0] ** 2 + x[1] - 11.0) ** 2 + (x[0] + x[1] ** 2 - 7.0) ** 2


def _converges(function):
    return lambda m, jnp: m.scipy.optimize.minimize(function, jnp.zeros(2), method="BFGS").success


def _rotation(m):
    return m.scipy.spatial.transform.Rotation


ROWS = [
    Difference(
        name="beta_of_infinity",
        subject="Special functions",
        says="`beta(inf, 2)` is 0, and `betaln(inf, 2)` is -inf",
        jax="NaN",
        run=lambda m, jnp: [
            m.scipy.special.beta(_INF, 2.0),
            m.scipy.special.betaln(_INF, 2.0),
        ],
        right=[0.0, -_INF],
    ),
    Difference(
        name="bessel_jn_at_zero",
        subject="Special functions",
        says="`bessel_jn(0, v=2)` is `[1, 0, 0]`, and small arguments have values",
        jax="NaN",
        run=lambda m, jnp: m.scipy.special.bessel_jn(jnp.zeros(1), v=2)[:, 0],
        right=[1.0, 0.0, 0.0],
    ),
    Difference(
        name="gammainc_of_infinity",
        subject="Special functions",
        says="`gammainc(inf, 1)` is 0, and `gammaincc(inf, 1)` is 1",
        jax="NaN",
        run=lambda m, jnp: [
            m.scipy.special.gammainc(_INF, 1.0),
            m.scipy.special.gammaincc(_INF, 1.0),
        ],
        right=[0.0, 1.0],
    ),
    Difference(
        name="expi_at_zero",
        subject="Special functions",
        says="`expi(0)` is -inf",
        jax="NaN",
        run=lambda m, jnp: m.scipy.special.expi(0.0),
        right=-_INF,
    ),
    Difference(
        name="wofz_of_infinity",
        subject="Special functions",
        says="`wofz(inf)` is 0",
        jax="NaN",
        run=lambda m, jnp: m.scipy.special.wofz(_INF),
        right=0j,
    ),
    Difference(
        name="expn_at_zero",
        subject="Special functions",
        says="`expn(n, 0)` is `1 / (n - 1)`",
        jax="`1 / n`",
        run=lambda m, jnp: m.scipy.special.expn(2, 0.0),
        right=1.0,
    ),
    Difference(
        name="rel_entr_of_nan",
        subject="Special functions",
        says="`rel_entr(nan, 1)` is NaN, and `rel_entr(inf, 1)` is inf",
        jax="inf, and NaN",
        run=lambda m, jnp: [
            m.scipy.special.rel_entr(float("nan"), 1.0),
            m.scipy.special.rel_entr(_INF, 1.0),
        ],
        right=[float("nan"), _INF],
    ),
    Difference(
        name="grad_ndtri_at_zero",
        subject="Special functions",
        says="the derivative of `ndtri` at 0 is inf",
        jax="0",
        run=lambda m, jnp: m.grad(m.scipy.special.ndtri)(0.0),
        right=_INF,
    ),
    Difference(
        name="gumbel_ppf_at_edges",
        subject="Distributions",
        says="`gumbel_r.ppf` and `gumbel_l.ppf` are -inf at 0, and inf at 1",
        jax="NaN",
        run=lambda m, jnp: [
            m.scipy.stats.gumbel_r.ppf(jnp.array([0.0, 1.0])),
            m.scipy.stats.gumbel_l.ppf(jnp.array([0.0, 1.0])),
        ],
        right=[[-_INF, _INF], [-_INF, _INF]],
    ),
    Difference(
        name="gumbel_l_at_infinity",
        subject="Distributions",
        says="`gumbel_l.logpdf(inf)` is -inf",
        jax="NaN",
        run=lambda m, jnp: m.scipy.stats.gumbel_l.logpdf(_INF),
        right=-_INF,
    ),
    Difference(
        name="vonmises_of_no_concentration",
        subject="Distributions",
        says="`vonmises.pdf(x, 0)` is 1 / (2 pi), as on the whole circle",
        jax="NaN",
        run=lambda m, jnp: m.scipy.stats.vonmises.pdf(jnp.array([0.0, 1.0]), 0.0),
        right=[0.15915494309189535] * 2,
        tolerance=1e-6,
    ),
    Difference(
        name="chi2_at_zero",
        subject="Distributions",
        says="`chi2.pdf(0, 2)` is 0.5",
        jax="NaN",
        run=lambda m, jnp: m.scipy.stats.chi2.pdf(0.0, 2.0),
        right=0.5,
        tolerance=1e-6,
    ),
    Difference(
        name="t_of_tiny_scale",
        subject="Distributions",
        says="`t.pdf` of a tiny scale is finite where the density is",
        jax="inf",
        run=lambda m, jnp: m.scipy.stats.t.pdf(0.0, 3.0, 0.0, 1e-30),
        right=3.6755259694786137e29,
        tolerance=1e-5,
    ),
    Difference(
        name="lu_of_stack",
        subject="Linear algebra",
        says="`scipy.linalg.lu` and `sqrtm` take stacks of matrices",
        jax="ValueError",
        run=lambda m, jnp: [
            *m.scipy.linalg.lu(jnp.stack([jnp.eye(2)] * 3))[2].shape,
            *m.scipy.linalg.sqrtm(jnp.stack([jnp.eye(2)] * 3)).shape,
        ],
        right=[3, 2, 2, 3, 2, 2],
    ),
    Difference(
        name="grad_solve_sylvester",
        subject="Linear algebra",
        says="`solve_sylvester` has a derivative",
        jax="NotImplementedError",
        run=lambda m, jnp: m.grad(
            lambda a: m.scipy.linalg.solve_sylvester(a, jnp.eye(2), jnp.eye(2)).sum()
        )(jnp.eye(2)),
        right=np.full((2, 2), -0.25),
        tolerance=1e-6,
    ),
    Difference(
        name="welch_of_halves",
        subject="Signals",
        says="`stft`, `welch` and `csd` take float16 and bfloat16",
        jax="ValueError",
        run=lambda m, jnp: m.scipy.signal.welch(jnp.ones(64, jnp.bfloat16), nperseg=16)[1].shape,
        right=(9,),
    ),
    Difference(
        name="rosenbrock_from_zero",
        subject="Optimisation",
        says="`minimize` converges from 0 for the function of Rosenbrock in float32",
        jax="its line search gives up",
        run=_converges(_rosenbrock),
        right=True,
    ),
    Difference(
        name="himmelblau_from_zero",
        subject="Optimisation",
        says="`minimize` converges from 0 for the function of Himmelblau in float32",
        jax="its line search gives up",
        run=_converges(_himmelblau),
        right=True,
    ),
    Difference(
        name="rotation_identity",
        subject="Rotations",
        says="`Rotation.identity(2)` and `Rotation.random(key, 2)` are two rotations",
        jax="AssertionError, and NotImplementedError",
        run=lambda m, jnp: [
            _rotation(m).identity(2).as_quat().shape,
            _rotation(m).random(m.random.key(0), 2).as_quat().shape,
        ],
        right=[(2, 4), (2, 4)],
    ),
    Difference(
        name="rotation_concatenate",
        subject="Rotations",
        says="`Rotation.concatenate` of two single rotations is two rotations",
        jax="one row of eight numbers",
        run=lambda m, jnp: (
            _rotation(m)
            .concatenate([_rotation(m).from_quat(jnp.array([0.0, 0.0, 0.0, 1.0]))] * 2)
            .as_quat()
            .shape
        ),
        right=(2, 4),
    ),
]
