"""weft.scipy.stats: every function of every distribution against SciPy, samples, estimates.

All distributions run in one compiled program, by default in double precision.
"""

import importlib

import numpy as np
import pytest
import scipy.stats
from conftest import EVERYTHING

import weft
import weft.numpy as jnp
from weft.scipy import stats

X = np.array([-1.3, -0.2, 0.0, 0.3, 0.8, 1.0, 1.7, 4.0])
Q = np.array([0.05, 0.3, 0.5, 0.9])
K = np.arange(-1.0, 8.0)

# Distribution: parameters, and values outside of which some are
TABLE = {
    "bernoulli": ((0.3,), K),
    "beta": ((2.0, 3.0, 0.1, 1.5), X),
    "betabinom": ((6.0, 2.0, 3.0), K),
    "binom": ((6.0, 0.3, 1.0), K),
    "cauchy": ((0.1, 1.5), X),
    "chi2": ((3.0, 0.1, 1.5), X),
    "expon": ((0.1, 1.5), X),
    "gamma": ((2.0, 0.1, 1.5), X),
    "gennorm": ((1.5,), X),
    "geom": ((0.3,), K),
    "gumbel_l": ((0.1, 1.5), X),
    "gumbel_r": ((0.1, 1.5), X),
    "laplace": ((0.1, 1.5), X),
    "logistic": ((0.1, 1.5), X),
    "nbinom": ((3.0, 0.3), K),
    "norm": ((0.1, 1.5), X),
    "pareto": ((2.0, 0.1, 0.5), X),
    "poisson": ((3.0,), K),
    "t": ((4.0, 0.1, 1.5), X),
    "truncnorm": ((-1.0, 2.0, 0.1, 1.2), X),
    "uniform": ((0.1, 1.5), X),
    "vonmises": ((2.0,), X),
    "wrapcauchy": ((0.5,), X),
}


def distribution(name):
    return importlib.import_module(f"weft.scipy.stats.{name}")


def rows():
    """(distribution, function, arguments) for all of them."""
    for name, (parameters, x) in TABLE.items():
        for function in distribution(name).__all__:
            if function == "entropy":
                yield name, function, (np.array([0.0, 0.5, 3.0, 90.0, 150.0]),)
            else:
                yield name, function, (Q if function in ("ppf", "isf") else x, *parameters)


@pytest.mark.parametrize("x64", [False, True] if EVERYTHING else [True])
def test_distributions(x64):
    cases = list(rows())
    narrow = (lambda x: x) if x64 else lambda x: np.asarray(x, np.float32)
    arguments = [tuple(narrow(x) for x in args) for _, _, args in cases]

    def everything(arguments):
        return [
            getattr(distribution(name), function)(*args)
            for (name, function, _), args in zip(cases, arguments, strict=True)
        ]

    with weft.enable_x64(x64):
        results = weft.jit(everything)(arguments)
    for (name, function, _), args, got in zip(cases, arguments, results, strict=True):
        with np.errstate(all="ignore"):
            wide = [np.asarray(x, float) for x in args]
            wanted = getattr(getattr(scipy.stats, name), function)(*wide)
        np.testing.assert_allclose(
            got,
            wanted,
            rtol=1e-9 if x64 else 2e-4,
            atol=1e-12 if x64 else 1e-5,
            err_msg=f"{name}.{function}",
        )


def test_derivatives():
    """Of each density, with respect to everything it depends on: by differences."""
    cases = {
        name: (0.7, *parameters) if x is X else (2.0, *parameters)
        for name, (parameters, x) in TABLE.items()
    }
    step = 1e-6

    def log_density(name):
        module = distribution(name)
        return module.logpdf if hasattr(module, "logpdf") else module.logpmf

    def around(point):
        moves = step * np.eye(len(point))
        return tuple(np.transpose(np.concatenate([point + moves, point - moves])))

    def both(points, moved):
        slopes = {
            name: weft.grad(log_density(name), tuple(range(len(point))))(*point)
            for name, point in points.items()
        }
        return slopes, {name: log_density(name)(*each) for name, each in moved.items()}

    moved = {name: around(np.array(point)) for name, point in cases.items()}
    with weft.enable_x64(True):
        slopes, values = weft.jit(both)(cases, moved)
    for name, point in cases.items():
        if name in ("bernoulli", "betabinom", "poisson"):  # steps in the first argument
            continue
        up, down = np.split(np.asarray(values[name]), [len(point)])
        np.testing.assert_allclose(
            slopes[name], (up - down) / (2 * step), rtol=1e-5, atol=1e-7, err_msg=name
        )


def test_dirichlet():
    alpha = np.array([1.0, 2.0, 3.0], np.float32)
    x = np.array([[0.2, 0.3], [0.3, 0.3], [0.5, 0.4]], np.float32)
    wanted = scipy.stats.dirichlet.logpdf(x.astype(float) / x.sum(0, dtype=float), alpha)
    np.testing.assert_allclose(stats.dirichlet.logpdf(x, alpha), wanted, rtol=1e-5)
    np.testing.assert_allclose(stats.dirichlet.pdf(x[:2], alpha), np.exp(wanted), rtol=1e-5)
    assert stats.dirichlet.logpdf(np.float32([0.2, 0.3, 0.6]), alpha) == -np.inf
    with pytest.raises(ValueError, match=r"3 or 2 rows"):
        stats.dirichlet.logpdf(np.ones(4, np.float32), alpha)


def test_multinomial():
    p = np.array([0.3, 0.7], np.float32)
    wanted = scipy.stats.multinomial.logpmf([1, 2], 3, p.astype(float) / p.sum(dtype=float))
    np.testing.assert_allclose(stats.multinomial.logpmf(np.array([1, 2]), 3, p), wanted, rtol=1e-5)
    assert stats.multinomial.pmf(np.array([1, 2]), 4, p) == 0
    with pytest.raises(ValueError, match="of integers"):
        stats.multinomial.logpmf(np.array([1, 2]), 3.0, p)


def test_multivariate_normal():
    mean = np.array([0.5, -0.2], np.float32)
    cov = np.array([[2.0, 0.3], [0.3, 0.5]], np.float32)
    x = np.linspace(-1, 1, 12).reshape(2, 3, 2).astype(np.float32)
    wanted = scipy.stats.multivariate_normal.logpdf(x, mean, cov)
    logpdf = stats.multivariate_normal.logpdf
    np.testing.assert_allclose(logpdf(x, mean, cov), wanted, rtol=1e-5)
    stacked = np.stack([cov] * 3)
    np.testing.assert_allclose(logpdf(x, mean, stacked), wanted, rtol=1e-5)
    np.testing.assert_allclose(
        stats.multivariate_normal.pdf(1.0, 0.5, 2.0),
        scipy.stats.norm.pdf(1, 0.5, 2**0.5),
        rtol=1e-6,
    )
    with pytest.raises(ValueError, match="expected a mean"):
        logpdf(x, mean, np.eye(3, dtype=np.float32))
    with pytest.raises(NotImplementedError):
        logpdf(x, mean, cov, allow_singular=True)


def test_modes_and_errors():
    a = np.array([[3, 1, 2, 3], [0, 0, 5, 4], [3, 7, 2, 4]])
    for axis in (None, 0, -1):
        for keepdims in (False, True):
            got = stats.mode(a, axis, keepdims=keepdims)
            wanted = scipy.stats.mode(a, axis, keepdims=keepdims)
            assert got.mode.tolist() == wanted.mode.tolist()
            assert got.count.tolist() == wanted.count.tolist()
        got = stats.sem(a.astype(np.float32), axis)
        np.testing.assert_allclose(got, scipy.stats.sem(a, axis), rtol=1e-5)
    with pytest.raises(TypeError, match="got list"):
        stats.rankdata([1.0, 2.0])
    with pytest.raises(NotImplementedError, match="real numbers; got complex64"):
        stats.gaussian_kde(jnp.array([1j, 2.0]))
    assert np.isnan(stats.mode(jnp.array([1.0, jnp.nan, jnp.nan])).mode)
    holes = np.array([1.0, np.nan, 4.0, 2.0], np.float32)
    got = stats.sem(holes, nan_policy="omit")
    np.testing.assert_allclose(got, scipy.stats.sem(holes, nan_policy="omit"), rtol=1e-5)
    for call, error in (
        (lambda: stats.mode(a, nan_policy="omit"), NotImplementedError),
        (lambda: stats.mode(a, nan_policy="foo"), ValueError),
        (lambda: stats.sem(holes, nan_policy="raise"), ValueError),
        (lambda: stats.sem(3.0), IndexError),
    ):
        with pytest.raises(error):
            call()


@pytest.mark.parametrize("method", ["average", "min", "max", "dense", "ordinal"])
def test_ranks(method):
    a = np.array([[3, 1, 2, 3], [0, 0, 5, 4], [3, 7, 2, 4]])
    for axis in (None, 0, 1):
        got = weft.jit(lambda a, axis=axis: stats.rankdata(a, method, axis=axis))(a)
        wanted = scipy.stats.rankdata(a, method, axis=axis)
        assert got.dtype == np.float32 and got.tolist() == wanted.tolist()
    assert np.isnan(stats.rankdata(jnp.array([1.0, jnp.nan]), method)).all()
    with pytest.raises(ValueError, match="average, min"):
        stats.rankdata(a, "foo")


DATA = np.array([[1.0, 2.0, 4.0, 3.5], [0.0, 1.0, 0.5, 2.0]])


@pytest.mark.parametrize("bandwidth", [None, "silverman", 0.5, lambda estimate: 0.3])
def test_density_estimates(bandwidth):
    weights = np.array([1.0, 2.0, 1.0, 1.0])
    with weft.enable_x64(True):
        for data in (DATA, DATA[0]):
            ours = stats.gaussian_kde(data, bandwidth, weights)
            theirs = scipy.stats.gaussian_kde(data, bandwidth, weights)
            points = np.atleast_2d(data)[:, :3] + 0.3
            for name in ("covariance", "inv_cov", "neff", "weights", "d", "n"):
                np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name))
            np.testing.assert_allclose(ours(points), theirs(points))
            np.testing.assert_allclose(ours.logpdf(points), theirs.logpdf(points))
            mean, cov = np.ones(ours.d), np.eye(ours.d)
            np.testing.assert_allclose(
                ours.integrate_gaussian(mean, cov), theirs.integrate_gaussian(mean, cov)
            )
            np.testing.assert_allclose(ours.integrate_kde(ours), theirs.integrate_kde(theirs))
        np.testing.assert_allclose(
            ours.integrate_box_1d(0.0, 2.0), theirs.integrate_box_1d(0.0, 2.0)
        )


def test_density_estimates_are_trees():
    data = DATA[0].astype(np.float32)
    estimate = stats.gaussian_kde(data)
    x = np.array([2.0], np.float32)
    wanted = estimate(x).tolist()
    assert weft.jit(lambda estimate, x: estimate(x))(estimate, x).tolist() == pytest.approx(wanted)
    assert len(weft.tree.leaves(estimate)) == 5
    rows = weft.vmap(lambda data: stats.gaussian_kde(data)(x))(DATA.astype(np.float32))
    assert rows[0].tolist() == pytest.approx(wanted)
    assert np.isfinite(weft.grad(lambda d: stats.gaussian_kde(d)(x).sum())(data)).all()
    # The stream of jax
    drawn = estimate.resample(weft.random.PRNGKey(0), (3,))
    np.testing.assert_allclose(drawn, [[-1.54867684, 1.37578869, 3.71448326]], rtol=1e-5)
    for call, error in (
        (lambda: stats.gaussian_kde(data, "foo"), ValueError),
        (lambda: stats.gaussian_kde(data[:1]), ValueError),
        (lambda: stats.gaussian_kde(data, weights=data[:2]), ValueError),
        (lambda: stats.gaussian_kde(DATA)(np.ones(3)), ValueError),
        (lambda: stats.gaussian_kde(DATA).integrate_box_1d(0.0, 1.0), ValueError),
        (lambda: estimate.set_bandwidth(0.3), NotImplementedError),
        (lambda: estimate.integrate_box(0.0, 1.0), NotImplementedError),
    ):
        with pytest.raises(error):
            call()


def test_types():
    k = jnp.arange(3)
    assert stats.norm.pdf(1).weak_type and not stats.norm.cdf(1).weak_type
    assert stats.poisson.pmf(k, 3.0).weak_type and not stats.geom.pmf(k, 0.3).weak_type
    assert stats.gamma.pdf(1, 2).weak_type and not stats.gamma.pdf(k, 2.0).weak_type
    assert stats.cauchy.pdf(jnp.ones(2, "float16")).dtype == np.float16
    for call in (
        lambda: stats.norm.ppf(1),
        lambda: stats.beta.pdf([0.5], 1.0, 2.0),
        lambda: stats.beta.pdf(0.5j, 1.0, 2.0),
        lambda: stats.norm.pdf(jnp.ones(2), jnp.ones(3)),
    ):
        with pytest.raises(TypeError):
            call()
    import weft.scipy.stats.norm as norm

    assert norm is stats.norm and weft.scipy.stats is stats


def test_tails_of_cauchy():
    """The difference to pi / 2 is taken last, as by jax: near 0 no digits of q are lost before."""
    q = np.float32([1e-7, 1e-5])
    np.testing.assert_allclose(stats.cauchy.isf(q), 1 / (np.pi * q), rtol=1e-3)
    np.testing.assert_allclose(stats.cauchy.ppf(q), -1 / (np.pi * q), rtol=1e-3)


def test_edges():
    nan = np.nan

    @weft.jit
    def edges(nan):
        return [
            stats.binom.logpmf(jnp.array([nan, 1, 1]), jnp.array([5, 0.5, nan]), 0.5),
            stats.uniform.cdf(nan),
            stats.truncnorm.cdf(jnp.array([nan, 0, jnp.inf]), -1.0, jnp.array([1, nan, nan])),
            stats.truncnorm.sf(nan, -1.0, 1.0),
            stats.expon.sf(jnp.array([1.0, -1.0]), scale=-1.0),
            stats.t.pdf(1.0, 0.5, 0.0, -1.0),
        ]

    wanted = [[nan, -1.0397203, nan], nan, [nan] * 3, nan, [np.e, 1], 0.11830465]
    for got, expected in zip(edges(nan), wanted, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-5)


def test_derivatives_at_edges():
    x = np.float32([-1, 0, 1, 2, np.nan])
    for name in ("cdf", "logcdf", "sf", "logsf"):
        slopes = weft.vmap(weft.grad(lambda x, f=name: getattr(stats.beta, f)(x, 2.0, 3.0)))(x)
        np.testing.assert_array_equal(np.abs(slopes), [0, 0, 0, 0, np.nan], err_msg=name)
    outside = np.float32([-2, -1])
    for f in (
        lambda x: stats.gamma.logpdf(x, 2.0),
        lambda x: stats.gamma.logcdf(x, 2.0),
        lambda a: stats.gamma.logpdf(-1.0, 3 - a),
        lambda x: stats.chi2.logsf(x, 0.5),
        lambda x: stats.pareto.logcdf(x, 2.0),
    ):
        np.testing.assert_array_equal(np.abs(weft.vmap(weft.grad(f))(outside)), 0)


def test_entropy_of_poisson_is_as_exact_as_its_dtype():
    mu = np.array([0.3, 1, 7, 19.5, 20.5, 50, 99, 100, 101, 1e3])
    want = scipy.stats.poisson.entropy(mu)
    made = stats.poisson.entropy(mu.astype(np.float32))
    np.testing.assert_allclose(made, want, rtol=4e-6)
    with weft.enable_x64(True):
        np.testing.assert_allclose(stats.poisson.entropy(mu), want, rtol=1e-12)


def test_densities_of_parameters_that_are_none_are_nan_in_optimised_code(run_python):
    code = """
        import numpy as np
        from weft.scipy import stats
        x = np.array([0.5, 1.0, 2.0], np.float32)
        calls = [(stats.vonmises, [-1]), (stats.wrapcauchy, [2]), (stats.truncnorm, [2, 1])]
        print([bool(np.isnan(d.pdf(x, *p)).all()) for d, p in calls])
    """
    assert run_python(code, XLA_FLAGS="").strip() == "[True, True, True]"


def test_quantiles_are_as_exact_as_the_widest_argument():
    with weft.enable_x64(True):
        for f, sign in ((stats.norm.ppf, 1), (stats.norm.isf, -1)):
            q = np.float32(0.3)  # scipy.special.ndtri of it
            got = f(q, np.float64(1.1), np.float64(2.3))
            want = 1.1 - sign * 2.3 * 0.5244004784222137
            np.testing.assert_allclose(got, want, rtol=1e-12)


def test_nan_arguments_give_nan():
    """Each argument in turn, beside arguments inside and outside of the support."""
    outside = np.array([-3.0, 50.0, np.inf, -np.inf, 0.0])
    points = {"ppf": np.array([0.0, 0.5, 1.0, -0.1, 1.1])}
    points["isf"] = points["ppf"]

    @weft.jit
    def every():
        made = {}
        for name, (parameters, x) in TABLE.items():
            module = getattr(stats, name)
            for function in set(module.__all__) - {"entropy"}:
                at = points.get(function, np.concatenate([outside, x[:3]]))
                given = [np.tile(at, 1 + len(parameters))]
                given += [np.full(given[0].shape, float(value)) for value in parameters]
                for i, argument in enumerate(given):
                    argument[i * len(at) : (i + 1) * len(at)] = np.nan
                made[name, function] = getattr(module, function)(*given)
        return made

    for case, value in every().items():
        assert np.isnan(value).all(), case
    alpha, p = np.array([1.0, 2.0, 3.0]), np.array([0.2, 0.3, 0.5])
    bad = np.array([0.2, np.nan, 0.5])
    assert np.isnan(stats.dirichlet.pdf(bad, alpha)) and np.isnan(stats.dirichlet.pdf(p, bad))
    assert np.isnan(stats.dirichlet.pdf(2 * p, bad))
    for n in (3, 4):
        assert np.isnan(stats.multinomial.pmf(np.array([1, 1, 1]), n, bad))
    assert np.isnan(stats.poisson.entropy(np.array([2.0, np.nan]), np.array([np.nan, 0.0]))).all()


@pytest.mark.parametrize("scale", [0.0, -1.0])
def test_a_beta_distribution_of_no_width_is_nan_everywhere(scale):
    x = np.array([-2.0, 0.0, 0.5, 1.0, 2.0], np.float32)
    for function in (stats.beta.pdf, stats.beta.logpdf, stats.beta.cdf, stats.beta.sf):
        assert np.isnan(function(x, 2.0, 2.0, 0.0, scale)).all(), function


def _large_counts():
    rng = np.random.default_rng(0)
    mean = rng.uniform(5, 10 ** rng.uniform(1, 6, 100)).astype(np.float32)
    count, p = rng.poisson(mean), rng.uniform(0.1, 0.9, 100).astype(np.float32)
    n = np.round(count / p.astype(float))
    return mean, count.astype(np.float32), n.astype(np.float32), p


@pytest.mark.parametrize("name", ["poisson", "gamma", "chi2", "binom", "nbinom"])
def test_large_parameters_cost_no_digits(name):
    """The terms of the logarithms are a million times their sum."""
    mean, count, n, p = _large_counts()
    args = {
        "poisson": (count, mean),
        "gamma": (mean + np.sqrt(mean) / 3, mean),
        "chi2": (mean, 2 * mean),
        "binom": (count, n, p),
        "nbinom": (n - count, count + 1, p),
    }[name]
    function = "logpdf" if name in ("gamma", "chi2") else "logpmf"
    expected = getattr(getattr(scipy.stats, name), function)(*(x.astype(float) for x in args))
    got = getattr(getattr(stats, name), function)(*map(jnp.asarray, args))
    np.testing.assert_allclose(got, expected, rtol=2e-5)


def test_slopes_by_large_parameters():
    mean, count, n, p = _large_counts()

    def slopes(f, place, *args):
        return weft.vmap(weft.grad(f, place))(*map(jnp.asarray, args))

    count, n, mean, p = (x.astype(np.float32) for x in (count + 11, n + 30, mean, p))
    wide = [x.astype(float) for x in (mean, count, n, p)]
    digamma = scipy.special.digamma
    by_rate = slopes(stats.poisson.logpmf, 1, count, mean)
    np.testing.assert_allclose(by_rate, wide[1] / wide[0] - 1, rtol=1e-5, atol=1e-9)
    by_shape = slopes(stats.gamma.logpdf, 1, mean, count)
    np.testing.assert_allclose(by_shape, np.log(wide[0]) - digamma(wide[1]), rtol=1e-4, atol=1e-8)
    by_chance = slopes(stats.binom.logpmf, 2, count, n + count, p)
    expected = wide[1] / wide[3] - wide[2] / (1 - wide[3])
    np.testing.assert_allclose(by_chance, expected, rtol=1e-4, atol=1e-6 * wide[2].max())
    by_chance = slopes(stats.nbinom.logpmf, 2, n, count, p)
    np.testing.assert_allclose(by_chance, expected, rtol=1e-4, atol=1e-6 * wide[2].max())
    curvature = weft.grad(weft.grad(stats.poisson.logpmf, 1), 1)(1e4, 1e4)
    np.testing.assert_allclose(curvature, -1e-4, rtol=1e-5)


def test_slopes_are_finite_where_the_other_form_holds():
    assert weft.grad(stats.poisson.logpmf, 1)(3.0, 0.5) == 5
    assert weft.grad(stats.gamma.logpdf)(0.5, 3.0) == 3
    assert weft.grad(stats.binom.logpmf, 2)(1.0, 2.0, 0.5) == 0
    assert weft.grad(stats.binom.logpmf, 2)(1.0, 40.0, 0.0) == np.inf
    assert weft.grad(stats.nbinom.logpmf, 2)(-1.0, 5.0, 0.5) == 0
    assert stats.poisson.logpmf(20.0, 0.0) == -np.inf
    assert stats.binom.logpmf(20.0, 40.0, 1.0) == -np.inf
    assert stats.binom.logpmf(40.0, 40.0, 1.0) == 0
    assert stats.gamma.logpdf(0.0, 20.0) == -np.inf
    assert np.isnan(stats.poisson.logpmf(20.0, -1.0))
