"""Products of repeated updates, sums of half precision, NaN, subnormal numbers and tails."""

import numpy as np
from differences import Difference

IDS = np.array([0, 0, 1, 1, 1])
FACTORS = np.array([2.0, 3.0, 0.0, 4.0, 5.0], np.float32)
MANY = (np.arange(1 << 17) % 64 / 64).astype(np.float16)
EXACT_LOG_SUM = np.log(np.exp(MANY.astype(np.float64)).sum())
# Less than the smallest normal number of float32.
TINY = np.float32(1e-40)


def _gradient_of_products(m, jnp):
    return m.grad(lambda x: m.ops.segment_prod(x, IDS, 2).sum())(jnp.array(FACTORS))


def _gradient_of_repeated_multiply(m, jnp):
    zeros = np.array([0, 0])
    return m.grad(lambda v: jnp.full(1, 7.0).at[zeros].multiply(v)[0])(jnp.array([2.0, 3.0]))


def _seen_in_a_callback(m, jnp):
    seen = []

    def host(x):
        seen.append(float("1e-310"))
        return x

    m.jit(lambda x: m.pure_callback(host, x, x))(np.float32(1)).block_until_ready()
    return seen[0]


def _degenerate_gradient(m, jnp):
    def trace_of_exponential(a):
        w, v = jnp.linalg.eigh(a)
        return jnp.trace((v * jnp.exp(w)) @ v.T)

    return m.grad(trace_of_exponential)(jnp.diag(jnp.array([2.0, 2.0, 5.0])))


def _mean_of_a_tail(m, jnp):
    x = m.random.truncated_normal(m.random.key(0), 6.0, np.inf, (1 << 16,), np.float32)
    return np.asarray(x, np.float64).mean()


ROWS = [
    Difference(
        name="segment_prod_gradient",
        subject="Derivatives",
        says="the derivative of `ops.segment_prod` is the product of the other elements",
        jax="refused: NotImplementedError",
        run=_gradient_of_products,
        right=np.float32([3, 2, 20, 0, 0]),
    ),
    Difference(
        name="repeated_multiply_gradient",
        subject="Derivatives",
        says="`x.at[i].multiply(v)` has a derivative by `v` where indices repeat",
        jax="refused: NotImplementedError",
        run=_gradient_of_repeated_multiply,
        right=np.float32([21, 14]),
    ),
    Difference(
        name="eigh_of_equal_eigenvalues",
        subject="Linear algebra",
        says="functions of `eigh` have a derivative where eigenvalues are equal, if they do not "
        "depend on which vectors are taken",
        jax="NaN",
        run=_degenerate_gradient,
        right=np.diag(np.exp([2.0, 2.0, 5.0])),
        tolerance=1e-12,
        x64=True,
    ),
    Difference(
        name="callback_keeps_subnormals",
        subject="Callbacks",
        says='within a callback `float("1e-310")` is 1e-310',
        jax="0: the function runs with subnormal numbers flushed",
        run=_seen_in_a_callback,
        right=1e-310,
    ),
    Difference(
        name="logsumexp_of_many_halves",
        subject="Half precision",
        says="`logsumexp` of 2**17 numbers of float16 is finite",
        jax="inf: the sum exceeds float16",
        run=lambda m, jnp: m.nn.logsumexp(jnp.asarray(MANY)),
        right=np.float16(EXACT_LOG_SUM),
    ),
    Difference(
        name="log_softmax_of_many_halves",
        subject="Half precision",
        says="`log_softmax` of 2**17 numbers of float16 is finite",
        jax="-inf everywhere",
        run=lambda m, jnp: m.nn.log_softmax(jnp.asarray(MANY))[:3],
        right=(MANY[:3] - EXACT_LOG_SUM).astype(np.float16),
    ),
    Difference(
        name="norm_of_halves",
        subject="Half precision",
        says="`linalg.norm` of float16 squares in float32",
        jax="inf: 400 squared exceeds float16",
        run=lambda m, jnp: jnp.linalg.norm(jnp.array([300, 400], np.float16)),
        right=np.float16(500),
    ),
    Difference(
        name="corrcoef_of_halves",
        subject="Half precision",
        says="`corrcoef` of 2**17 numbers of float16 is finite",
        jax="NaN",
        run=lambda m, jnp: jnp.corrcoef(jnp.asarray(MANY), -jnp.asarray(MANY)),
        right=np.float16([[1, -1], [-1, 1]]),
        tolerance=1e-3,
    ),
    Difference(
        name="sums_of_repeated_halves",
        subject="Half precision",
        says="`x.at[i].add` and `ops.segment_sum` of many float16 add up in float32",
        jax="2048: what is added then is rounded away",
        run=lambda m, jnp: m.ops.segment_sum(jnp.ones(5000, np.float16), np.zeros(5000, int), 1),
        right=np.float16([5000]),
    ),
    Difference(
        name="uniform_of_nan",
        subject="Statistics",
        says="`stats.uniform` of NaN is NaN",
        jax="1 for `pdf`, 0 for `logpdf`",
        run=lambda m, jnp: jnp.stack(
            [getattr(m.scipy.stats.uniform, f)(np.nan) for f in ("pdf", "logpdf", "cdf")]
        ),
        right=np.full(3, np.nan),
    ),
    Difference(
        name="truncnorm_of_nan",
        subject="Statistics",
        says="`stats.truncnorm` of NaN is NaN",
        jax="1 for `cdf`",
        run=lambda m, jnp: jnp.stack(
            [getattr(m.scipy.stats.truncnorm, f)(np.nan, -1.0, 2.0) for f in ("cdf", "logcdf")]
        ),
        right=np.full(2, np.nan),
    ),
    Difference(
        name="argmax_of_subnormals",
        subject="Order",
        says="`argmax` and `argmin` tell subnormal numbers from zero",
        jax="the first of the zeros and of the subnormal numbers",
        run=lambda m, jnp: jnp.argmax(np.array([-1.0, -0.0, TINY], np.float32)),
        right=np.array(2),
    ),
    Difference(
        name="sort_of_subnormals",
        subject="Order",
        says="`sort` and `argsort` order subnormal numbers",
        jax="they stay where they are, as zeros",
        run=lambda m, jnp: jnp.argsort(np.array([TINY, 0.0, -TINY], np.float32)),
        right=np.array([2, 1, 0]),
    ),
    Difference(
        name="median_of_nothing",
        subject="Statistics",
        says="quantiles and medians along an axis without elements are NaN",
        jax="an error",
        run=lambda m, jnp: jnp.nanquantile(jnp.empty((0, 4)), 0.5, axis=0),
        right=np.full(4, np.nan),
    ),
    Difference(
        name="quantile_of_infinities",
        subject="Statistics",
        says="the greatest quantile of `[1, 2, inf]` is infinite",
        jax="NaN: an element counts zero times",
        run=lambda m, jnp: jnp.quantile(np.array([1, 2, np.inf], np.float32), 1.0),
        right=np.array(np.inf),
    ),
    Difference(
        name="nearest_quantile_in_the_middle",
        subject="Statistics",
        says='`quantile(method="nearest")` between two elements takes the even index, as NumPy',
        jax="the lower element",
        run=lambda m, jnp: jnp.quantile(np.arange(4, dtype=np.float32), 0.5, method="nearest"),
        right=np.array(2.0),
    ),
    Difference(
        name="truncated_normal_in_a_tail",
        subject="Random numbers",
        says="`truncated_normal` between 6 and infinity has the mean 6.158",
        jax="3.4e38: there are no numbers left between `erf(6 / sqrt(2))` and 1",
        run=_mean_of_a_tail,
        right=6.158,
        tolerance=1e-3,
    ),
]
