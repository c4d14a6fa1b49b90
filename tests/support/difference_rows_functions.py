"""Functions over grids of dtypes and odd arguments."""

import numpy as np
from differences import Difference

THOUSAND = np.arange(1001, dtype=np.float32)
Q = np.float16(0.3)  # 0.300048828125

ROWS = [
    Difference(
        name="quantile_at_a_narrow_float",
        subject="Reductions",
        says="`quantile` and `percentile` find the position in the dtype of the array",
        jax="in that of `q` where it is narrower: of 0 to 1000 at float16 0.3, 300 for 300.0488",
        run=lambda m, jnp: [jnp.quantile(THOUSAND, Q), jnp.nanquantile(THOUSAND, Q)],
        right=np.full(2, 1000 * float(Q), np.float32),
        tolerance=1e-6,
    ),
    Difference(
        name="unique_rows_of_nothing_with_size",
        subject="Sorting and sets",
        says="`unique(x, axis=0, size=3)` has three rows, also where rows have no elements",
        jax="one row",
        run=lambda m, jnp: jnp.unique(jnp.zeros((4, 0)), axis=0, size=3).shape,
        right=(3, 0),
    ),
    Difference(
        name="sign_of_an_infinite_complex_sum",
        subject="Special functions",
        says="`logsumexp` of a complex inf has the sign 1",
        jax="NaN",
        run=lambda m, jnp: m.nn.logsumexp(np.array([np.inf, 1], np.complex64), return_sign=True)[1],
        right=np.complex64(1),
    ),
    Difference(
        name="hard_silu_of_infinity",
        subject="Special functions",
        says="`nn.hard_silu(-inf)` is 0",
        jax="NaN",
        run=lambda m, jnp: m.nn.hard_silu(np.float32([-np.inf, np.inf])),
        right=np.float32([0, np.inf]),
    ),
    Difference(
        name="poch_of_halves",
        subject="Special functions",
        says="`special.poch` in float16 is finite where its value is; poch(9, 2) is 90",
        jax="inf",
        run=lambda m, jnp: m.scipy.special.poch(np.float16(9), np.float16(2)),
        right=np.float16(90),
    ),
    Difference(
        name="poch_of_large_numbers",
        subject="Special functions",
        says="`special.poch(40, 2)` is 1640 in float32, though gamma(42) is out of range",
        jax="NaN",
        run=lambda m, jnp: m.scipy.special.poch(np.float32(40), np.float32(2)),
        right=np.float32(1640),
        tolerance=1e-6,
    ),
    Difference(
        name="bessel_jn_of_halves",
        subject="Special functions",
        says="`special.bessel_jn` of float16 is finite",
        jax="NaN",
        run=lambda m, jnp: m.scipy.special.bessel_jn(np.float16([0.5, 2.0]), v=2, n_iter=15),
        right=np.array(
            [[0.9384698, 0.22389078], [0.24226846, 0.57672481], [0.03060402, 0.35283403]]
        ),
        tolerance=2e-3,
    ),
    Difference(
        name="log_ndtr_near_0",
        subject="Special functions",
        says="`special.log_ndtr` keeps its digits where it is near 0",
        jax="-1.71067e-05 for -1.71173e-05 at 4.1433 in float32",
        run=lambda m, jnp: m.scipy.special.log_ndtr(np.float32(4.1433)),
        right=np.float32(-1.711732403687249e-05),
        tolerance=1e-6,
    ),
    Difference(
        name="gradient_of_multiply_at_indices",
        subject="Indexing",
        says="`x.at[i].multiply(v)`, `divide` and `power` have derivatives without a promise that "
        "indices differ",
        jax="an error",
        run=lambda m, jnp: m.grad(lambda v: jnp.arange(3.0).at[jnp.array([1, 2])].divide(v).sum())(
            jnp.array([2.0, 4.0])
        ),
        right=np.float32([-0.25, -0.125]),
    ),
]
