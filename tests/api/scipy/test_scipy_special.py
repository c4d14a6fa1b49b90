"""weft.scipy.special: values against SciPy in both precisions, ends of domains, derivatives, types.

All functions run in one compiled program, by default in double precision, and all derivatives in
another.
"""

import numpy as np
import pytest
import scipy.special
from conftest import EVERYTHING

import weft
import weft.numpy as jnp
from weft.scipy import special

RNG = np.random.default_rng(7)
COUNT = 400 if EVERYTHING else 40


def between(low, high):
    return RNG.uniform(low, high, COUNT)


def powers(low, high):
    return 10 ** RNG.uniform(low, high, COUNT)


def whole(low, high):
    return RNG.integers(low, high, COUNT).astype(float)


def complexes(size):
    return powers(-2, np.log10(size)) * np.exp(1j * between(-np.pi, np.pi))


LINE = between(-15, 15)
UNIT = between(0, 1)

# Name: (arguments, error allowed in ulps of float64; ten times fewer in those of float32)
TABLE = {
    "beta": ((between(0.1, 30), between(0.1, 30)), 300),
    "betainc": ((between(0.1, 10), between(0.1, 10), UNIT), 1000),
    "betaln": ((powers(-2, 1), between(1, 100)), 1000),
    "boxcox": ((between(0.1, 9), between(-3, 3)), 100),
    "boxcox1p": ((between(-0.5, 9), between(-3, 3)), 100),
    "comb": ((whole(0, 60), whole(0, 60)), 300),
    "dawsn": ((LINE,), 50),
    "digamma": ((between(0.1, 20),), 1000),
    "entr": ((between(0, 9),), 10),
    "erf": ((LINE,), 10),
    "erfc": ((between(-5, 5),), 50),
    "erfcx": ((between(-5, 50),), 30),
    "erfcinv": ((powers(-30, 0),), 30),
    "erfinv": ((between(-0.99, 0.99),), 100),
    "exp1": ((powers(-3, 1.5),), 30),
    "expi": ((between(0.5, 39),), 50),
    "expit": ((LINE,), 10),
    "expn": ((whole(0, 30), powers(-3, 1.5)), 50),
    "factorial": ((between(0, 30),), 100),
    "fresnel": ((between(-20, 20),), 300),
    "gamma": ((between(-15, 30),), 300),
    "gammainc": ((between(0.1, 30), between(0.1, 30)), 1000),
    "gammaincc": ((between(0.1, 30), between(0.1, 30)), 1000),
    "gammaln": ((between(3, 50),), 30),
    "gammasgn": ((LINE,), 0),
    "hyp1f1": ((between(0.1, 5), between(0.1, 5), between(-120, 30)), 1000),
    "hyp2f1": ((between(0.1, 3), between(0.1, 3), between(0.1, 6), between(-9, 1)), 3000),
    "i0": ((between(-20, 20),), 30),
    "i0e": ((LINE,), 30),
    "i1": ((between(-20, 20),), 30),
    "i1e": ((LINE,), 30),
    "kl_div": ((between(0.1, 0.4), between(0.6, 1)), 100),
    "log_ndtr": ((between(-100, 4),), 100),
    "loggamma": ((complexes(30),), 300),
    "logit": ((between(0.01, 0.45),), 30),
    "ndtr": ((between(-5, 5),), 100),
    "ndtri": ((powers(-30, 0),), 30),
    "owens_t": ((between(-4, 4), powers(-2, 2)), 300),
    "poch": ((between(0.1, 20), between(0, 5)), 500),
    "polygamma": ((whole(1, 5), between(0.5, 20)), 500),
    "rel_entr": ((between(0.1, 0.4), between(0.6, 1)), 30),
    "sici": ((between(0.7, 3),), 50),
    "spence": ((powers(-3, 3),), 200),
    "wofz": ((complexes(5),), 300),
    "xlog1py": ((between(0, 2), between(0.1, 2)), 50),
    "xlogy": ((between(0, 2), between(1.1, 2)), 30),
    "zeta": ((between(1.1, 20), between(0.1, 20)), 100),
}


def integer_orders(name, args):
    return (args[0].astype(int), *args[1:]) if name in ("polygamma", "expn") else args


def evaluate(arguments):
    return {
        name: getattr(special, name)(*integer_orders(name, args))
        for name, args in arguments.items()
    }


def narrowed(x):
    return x.astype(np.complex64 if x.dtype.kind == "c" else np.float32)


@pytest.mark.parametrize("x64", [False, True] if EVERYTHING else [True])
def test_values(x64):
    arguments = {name: args for name, (args, _) in TABLE.items()}
    if not x64:
        arguments = {name: tuple(map(narrowed, args)) for name, args in arguments.items()}
    with weft.enable_x64(x64):
        results = weft.jit(evaluate)(arguments)
    wrong = []
    for name, got in results.items():
        wide = [x.astype(complex if x.dtype.kind == "c" else float) for x in arguments[name]]
        wanted = getattr(scipy.special, name)(*integer_orders(name, wide))
        several = isinstance(got, tuple)
        for x, y in zip(*((got, wanted) if several else ([got], [wanted])), strict=True):
            eps = np.finfo(x.dtype).eps
            tolerance = (TABLE[name][1] if x64 else max(10, TABLE[name][1])) * eps
            error = np.abs(np.asarray(x) - y) / np.maximum(np.abs(y), np.finfo(np.float32).tiny)
            if not np.all(error <= tolerance):
                at = int(np.argmax(np.where(np.isnan(error), np.inf, error)))
                wrong.append((name, [a[at] for a in wide], x[at], y[at], error[at] / eps))
    assert not wrong


INF, NAN = np.inf, np.nan
ENDS = [
    ("gamma", [0.0, -0.0, -1.0, INF, -INF, 200.0], [INF, -INF, NAN, INF, NAN, INF]),
    ("gamma", [-1e-20], [-1e20]),
    ("gammaln", [0.0, -1.0, INF], [INF, INF, INF]),
    ("gammasgn", [0.0, -0.0, -1.0, -1.5, -2.5, NAN], [1, -1, NAN, 1, -1, NAN]),
    ("loggamma", [-1.5, INF, NAN], [NAN, INF, NAN]),
    ("factorial", [-1.0, 0.0, -0.5, INF], [0, 1, 0, INF]),
    ("entr", [-1.0, 0.0, INF, NAN], [-INF, 0, -INF, NAN]),
    ("logit", [-1.0, 0.0, 0.5, 1.0, 2.0], [NAN, -INF, 0, INF, NAN]),
    ("ndtr", [-INF, 0.0, INF, NAN], [0, 0.5, 1, NAN]),
    ("ndtri", [-1.0, 0.0, 0.5, 1.0, 2.0, NAN], [NAN, -INF, 0, INF, NAN, NAN]),
    ("log_ndtr", [-INF, INF, NAN], [-INF, 0, NAN]),
    ("dawsn", [-INF, 0.0, 1e-20, INF, NAN], [0, 0, 1e-20, 0, NAN]),
    ("erfcx", [-INF, 0.0, INF, NAN], [INF, 1, 0, NAN]),
    ("exp1", [-1.0, 0.0, INF, NAN], [NAN, INF, 0, NAN]),
    ("expi", [-INF, 0.0, INF, NAN], [0, -INF, INF, NAN]),
    ("sici", [-INF, 0.0, INF, NAN], ([-np.pi / 2, 0, np.pi / 2, NAN], [NAN, -INF, 0, NAN])),
    ("fresnel", [-INF, 0.0, INF, NAN], ([-0.5, 0, 0.5, NAN], [-0.5, 0, 0.5, NAN])),
    ("spence", [-1.0, 0.0, 1.0, NAN], [NAN, np.pi**2 / 6, 0, NAN]),
    ("erfcinv", [-1.0, 0.0, 1.0, 2.0, 3.0, NAN], [NAN, INF, 0, -INF, NAN, NAN]),
    ("erfinv", [-2.0, -1.0, 1.0], [NAN, -INF, INF]),
]
PAIRS = [
    ("xlogy", [0.0, 0.0, 1.0], [0.0, NAN, -1.0], [0, NAN, NAN]),
    ("xlog1py", [0.0, 0.0, 1.0], [-1.0, NAN, -2.0], [0, NAN, NAN]),
    ("rel_entr", [-1.0, 0.0, 0.0, 1.0, 1.0], [1.0, 1.0, 0.0, 0.0, -1.0], [INF, 0, 0, INF, INF]),
    ("kl_div", [-1.0, 0.0, 0.0, 1.0], [1.0, 1.0, 0.0, 0.0], [INF, 1, 0, INF]),
    ("boxcox", [0.0, 2.0, 2.0], [0.0, 0.0, 1e-20], [-INF, np.log(2), np.log(2)]),
    ("comb", [5.0, 5.0, 0.0, -1.0], [-1.0, 6.0, 0.0, 0.0], [0, 0, 1, 0]),
    ("expn", [0.0, 1.0, 2.0, -1.0, 1.0], [0.0, 0.0, 0.0, 1.0, -1.0], [INF, INF, 1, NAN, NAN]),
    ("owens_t", [0.0, 1.0, INF], [INF, INF, 1.0], [0.25, 0.07932762696572857, 0]),
    ("poch", [1.0, 0.0, -2.5], [2.0, 0.0, 3.0], [2, 1, -1.875]),
    ("zeta", [0.5, 1.0, 2.0], [1.0, 1.0, 0.0], [NAN, INF, INF]),
    ("beta", [0.0, -1.5], [1.0, 1.0], [INF, -2 / 3]),
    ("beta", [-1.5, 1e8], [1e8, -1.5], [2.3632718e12, 2.3632718e12]),
    ("beta", [INF, 2.0], [2.0, INF], [0, 0]),
]
BETA = np.array([(a, b, x) for a in (0, 2, INF) for b in (0, 2, INF) for x in (0, 0.25, 1)], "f")
GAUSS = [
    # a, b, c, x and the value: powers of 1 - x, real or not; at a pole of c, before it, beyond it.
    (1.5, 1.0, 1.5, 2.0, -1),
    (2.0, 1.5, 1.5, 3.0, 0.25),
    (1.5, 0.7, 1.5, 2.0, INF),
    (0.7, 1.5, 1.5, 2.0, INF),
    (1.5, 0.7, 1.5, 1.0, INF),
    (1.5, -0.75, 1.5, 1.0, 0),
    (1.5, -2.0, 1.5, 2.0, 1),
    (-2.5, 3.0, -2.5, 2.0, -1),
    (-2.0, 1.0, -2.0, 0.5, 2),
    (-2.0, 1.0, -4.0, 2.0, 8 / 3),
    (1.0, -2.0, -4.0, 0.5, 31 / 24),
    (0.0, 2.0, -1.0, 0.5, 1),
    (-2.0, 1.0, -1.0, 0.5, INF),
    (1.0, 1.0, 0.0, -0.5, INF),
]


def test_zeros_are_positive():
    assert not np.signbit(special.entr(np.float32(0))) and not np.signbit(special.spence(1.0))


def test_ends_of_domains():
    rows = [(name, [np.float32(x)], y) for name, x, y in ENDS]
    rows += [(name, [np.float32(x), np.float32(y)], z) for name, x, y, z in PAIRS]
    rows += [("betainc", [*BETA.T], scipy.special.betainc(*BETA.T.astype(float)))]
    *columns, wanted = np.array(GAUSS, np.float32).T
    rows += [("hyp2f1", columns, wanted)]

    def all_rows(arguments):
        return [getattr(special, row[0])(*args) for row, args in zip(rows, arguments, strict=True)]

    results = weft.jit(all_rows)([args for _, args, _ in rows])
    for (name, _, wanted), got in zip(rows, results, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=3e-6, err_msg=name)


def test_poles_in_the_complex_plane():
    poles = np.array([0, -1, complex(-2, -0.0), -1 + 1e-3j, 1.5, -0.5], np.complex64)
    for name in ("gamma", "loggamma"):
        got = getattr(special, name)(jnp.asarray(poles))
        wanted = getattr(scipy.special, name)(poles.astype(complex))
        np.testing.assert_allclose(got.real, wanted.real, rtol=1e-4, atol=1e-3)
        np.testing.assert_allclose(got.imag, wanted.imag, rtol=1e-4, atol=1e-5)


# Name: a point. Derivatives with respect to all arguments are compared with differences.
POINTS = {
    "beta": (1.5, 2.0),
    "betaln": (11.5, 20.0),
    "boxcox": (1.5, 0.3),
    "boxcox1p": (1.5, 0.3),
    "comb": (5.5, 2.2),
    "dawsn": (0.8,),
    "entr": (0.4,),
    "erfcx": (0.8,),
    "exp1": (0.8,),
    "expi": (0.8,),
    "factorial": (2.5,),
    "fresnel": (0.8,),
    "gamma": (-1.5,),
    "hyp1f1": (1.2, 2.3, 0.7),
    "hyp2f1": (1.2, 2.3, 3.6, 0.95),
    "i1": (0.8,),
    "kl_div": (0.3, 0.4),
    "log_ndtr": (-3.0,),
    "loggamma": (1.5,),
    "logit": (0.3,),
    "erfcinv": (0.01,),
    "ndtri": (0.01,),
    "owens_t": (0.5, 1.3),
    "poch": (12.5, 2.0),
    "rel_entr": (0.3, 0.4),
    "sici": (0.8,),
    "spence": (0.8,),
    "xlog1py": (0.3, 0.4),
    "xlogy": (0.3, 0.4),
    "zeta": (2.5, 1.3),
}


def test_derivatives():
    step = 1e-5

    def first(name):
        def function(*args):
            result = getattr(special, name)(*args)
            return sum(result) if isinstance(result, tuple) else result

        return function

    def around(point):
        """Each argument moved up and down in turn, as columns."""
        moves = step * np.eye(len(point))
        return tuple(np.transpose(np.concatenate([point + moves, point - moves])))

    def arguments(name):
        """Those that it is differentiated by: 2F1 takes long to compile."""
        count = len(POINTS[name])
        return (0, 3) if name == "hyp2f1" and not EVERYTHING else tuple(range(count))

    def both(points, moved):
        slopes = {
            name: weft.grad(first(name), arguments(name))(*point) for name, point in points.items()
        }
        return slopes, {name: first(name)(*each) for name, each in moved.items()}

    moved = {name: around(np.array(point)) for name, point in POINTS.items()}
    with weft.enable_x64(True):
        slopes, values = weft.jit(both)(POINTS, moved)
    for name, point in POINTS.items():
        up, down = np.split(np.asarray(values[name]), [len(point)])
        wanted = ((up - down) / (2 * step))[list(arguments(name))]
        np.testing.assert_allclose(slopes[name], wanted, rtol=1e-6, atol=1e-8, err_msg=name)


def test_derivatives_where_a_formula_changes():
    """The first by lmbda at 0, and the second ones there and of the dilogarithm at 1."""
    log = np.log(2)
    for function, x in ((special.boxcox, 2.0), (special.boxcox1p, 1.0)):
        np.testing.assert_allclose(weft.grad(function, 1)(x, 0.0), log**2 / 2, rtol=1e-6)
        mixed, twice = weft.hessian(function, (0, 1))(x, 0.0)[1]
        np.testing.assert_allclose((mixed, twice), (log / 2, log**3 / 3), rtol=1e-5)
    second = weft.grad(weft.grad(special.spence))
    np.testing.assert_allclose([second(1.0), second(1.001)], [0.5, 0.4993341], rtol=1e-6)


def test_derivatives_of_bessel_functions_around_zero():
    grad = weft.grad
    found = [
        grad(grad(grad(grad(special.i0))))(0.0),
        grad(grad(grad(special.i0)))(1e-6),
        grad(grad(grad(grad(special.i1))))(1e-7),
        grad(grad(special.i1))(1.0),
        grad(grad(special.i1))(0.999),
    ]
    wanted = [0.375, 3.75e-7, 3.125e-8, 0.4294114, 0.4288686]
    np.testing.assert_allclose(found, wanted, rtol=2e-5)


def test_derivatives_at_ends():
    assert weft.grad(special.entr)(0.0) == INF
    assert weft.grad(special.logit)(0.0) == INF
    assert weft.grad(special.xlogy)(0.0, 0.5) == np.float32(np.log(0.5))
    assert weft.grad(special.log_ndtr)(50.0) == 0
    one_by_one = {
        "entr": (special.entr, [-1.0], [NAN]),
        "fresnel": (lambda x: special.fresnel(x)[0], [-200.0, 300.0, 2.0], [0, 0, 0]),
        "polygamma": (lambda x: special.polygamma(0, x), [-3.0, 1e-20], [INF, INF]),
        "rel_entr": (lambda q: special.rel_entr(0.2, q), [1e-20, 0.0], [-2e19, 0]),
        "rel_entr of inf": (lambda p: special.rel_entr(p, 0.2), [INF, 1e-20], [INF, -43.44226]),
    }
    at = {name: np.array(x, np.float32) for name, (_, x, _) in one_by_one.items()}
    slopes = weft.jit(lambda at: {n: weft.vmap(weft.grad(one_by_one[n][0]))(at[n]) for n in at})(at)
    for name, (_, _, wanted) in one_by_one.items():
        np.testing.assert_allclose(slopes[name], wanted, rtol=1e-5, err_msg=name)
    assert abs(weft.grad(special.log_ndtr)(-50.0) - 50.02) < 1e-2
    slope = weft.grad(special.wofz, holomorphic=True)(0.5 + 0.1j)
    assert abs(slope - (-0.6358928 + 0.5763872j)) < 1e-6


def test_bessel_functions():
    z = np.array([0.0, 0.5, 2.0, 20.0, -7.0], np.float32)
    got = weft.jit(lambda z: special.bessel_jn(z, v=5))(z)
    wanted = scipy.special.jv(np.arange(6)[:, None], z.astype(float))
    np.testing.assert_allclose(got, wanted, atol=1e-6)
    assert special.bessel_jn(1, v=60, n_iter=10).shape == (11,)
    slope = weft.grad(lambda z: special.bessel_jn(z, v=1)[0])(1.5)
    np.testing.assert_allclose(slope, -scipy.special.jv(1, 1.5), rtol=1e-5)
    with pytest.raises(TypeError):
        special.bessel_jn(1.0, v=2.0)


def test_spherical_harmonics():
    n = np.array([0, 1, 3, 3, 8, 12, 2])
    m = np.array([0, -1, 2, -3, 5, -12, 0])
    theta, phi = RNG.uniform(0, np.pi, 7), RNG.uniform(0, 2 * np.pi, 7)
    got = special.sph_harm_y(n, m, theta.astype("f"), phi.astype("f"))
    assert got.dtype == np.complex64
    np.testing.assert_allclose(got, scipy.special.sph_harm_y(n, m, theta, phi), atol=2e-6)
    with pytest.raises(weft.errors.ConcretizationTypeError, match="n_max="):
        weft.jit(special.sph_harm_y)(n, m, theta, phi)
    with pytest.raises(NotImplementedError):
        special.sph_harm_y(n, m, theta, phi, diff_n=1)


def test_associated_legendre_functions():
    z = np.array([-1, -0.99, -0.3, 0, 0.7, 1], np.float32)
    for highest in (0, 1, 6):
        values, slopes = special.lpmn(highest, highest, z)
        wanted = scipy.special.assoc_legendre_p_all(highest, highest, z.astype(float), diff_n=1)
        # SciPy has the degree first, and the orders -highest, ..., -1 last.
        wanted = np.swapaxes(wanted, 1, 2)[:, : highest + 1]
        np.testing.assert_allclose(values, wanted[0], rtol=2e-5, atol=1e-5)
        np.testing.assert_allclose(slopes, wanted[1], rtol=2e-4, atol=1e-4)
        n, m = np.meshgrid(np.arange(highest + 1), np.arange(highest + 1))
        orthonormal = scipy.special.sph_harm_y(n[..., None], m[..., None], np.arccos(z), 0.0).real
        got = special.lpmn_values(highest, highest, z, True)
        np.testing.assert_allclose(got, orthonormal, rtol=2e-5, atol=1e-6)
    for call, error in (
        (lambda: special.lpmn(1, 2, z), NotImplementedError),
        (lambda: special.lpmn(1, 1, z[0]), weft.errors.ShapeError),
        (lambda: special.lpmn_values(1, 1, z.astype(int), False), weft.errors.DTypeError),
    ):
        with pytest.raises(error):
            call()


def test_numbers_and_sums():
    np.testing.assert_allclose(special.bernoulli(20), scipy.special.bernoulli(20), rtol=1e-6)
    assert special.bernoulli(0).tolist() == [1.0]
    assert np.isinf(special.bernoulli(200)[-1])
    wanted = scipy.special.multigammaln(5.5, 3)
    np.testing.assert_allclose(special.multigammaln(5.5, 3), wanted, rtol=1e-6)
    x = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32)
    for function in ("softmax", "log_softmax", "logsumexp"):
        for axis in (None, 0):
            got = getattr(special, function)(x, axis=axis)
            wanted = getattr(scipy.special, function)(x, axis=axis)
            np.testing.assert_allclose(got, wanted, rtol=1e-5)
    assert special.comb(5, 2, repetition=True) == pytest.approx(15, rel=1e-5)


def test_types():
    strong = ("dawsn", "erfcx", "gamma", "gammasgn", "exp1", "expi")
    for name in (*strong, "entr", "erf", "i0", "loggamma", "logit", "betaln"):
        args = (2,) * (2 if name == "betaln" else 1)
        assert getattr(special, name)(*args).weak_type == (name not in strong), name
    half = jnp.array([0.5], "float16")
    for name in ("dawsn", "expi", "spence", "ndtr"):
        if name in ("spence", "ndtr"):
            with pytest.raises(TypeError):
                getattr(special, name)(half)
        else:
            assert getattr(special, name)(half).dtype == np.float16
    assert special.wofz(2).dtype == np.complex64
    assert special.owens_t(half, half).dtype == np.float32
    batched = weft.vmap(special.hyp1f1, (None, 0, 0))(1.0, half, half)
    assert batched.shape == (1,)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: special.dawsn(1j), ValueError),
        (lambda: special.erf(1j), TypeError),
        (lambda: special.fresnel(1j), NotImplementedError),
        (lambda: special.ndtri(2), TypeError),
        (lambda: special.polygamma(1.5, 2.0), ValueError),
        (lambda: special.zeta(2.0), NotImplementedError),
        (lambda: special.factorial(3, exact=True), NotImplementedError),
        (lambda: special.log_ndtr(0.5, 2.0), TypeError),
        (lambda: special.log_ndtr(0.5, 31), ValueError),
        (lambda: special.multigammaln(3.5, jnp.ones(2)), TypeError),
        (lambda: special.bernoulli(-1), ValueError),
        (lambda: special.beta(jnp.ones(2), jnp.ones(3)), TypeError),
        (lambda: special.gamma([1.0]), TypeError),
    ],
)
def test_mistakes(call, error):
    with pytest.raises(error):
        call()


def test_differences_of_digammas():
    """digamma(a) - digamma(a + b) keeps its digits where the two are close, or one is infinite."""
    by_first, by_start = weft.grad(special.betaln), weft.grad(special.poch)
    np.testing.assert_allclose(by_first(1e6, 1.0), -1e-6, 1e-6)
    np.testing.assert_allclose(by_first(1e6, 1e-6), -1.0000005e-12, 1e-6)
    np.testing.assert_allclose(by_first(2.0, 3.0), -1 / 2 - 1 / 3 - 1 / 4, 1e-6)
    np.testing.assert_allclose(by_first(-1.5, 2.0), 1 / 1.5 + 1 / 0.5, 1e-6)
    np.testing.assert_allclose(weft.grad(by_first)(2.0, 2.0), 1 / 4 + 1 / 9, 1e-5)
    np.testing.assert_allclose(by_start(1e6, 1.0), 1.0, 1e-6)
    assert by_first(np.inf, 1.0) == 0.0
    assert by_first(1.0, np.inf) == -np.inf


def test_lists():
    """Some functions take lists of numbers, as jax's do."""
    ones = jnp.ones(2)
    for got, expected in (
        (special.ndtr([1.0, 1.0]), special.ndtr(ones)),
        (special.log_ndtr([1.0, 1.0]), special.log_ndtr(ones)),
        (special.spence([1.0, 1.0]), special.spence(ones)),
        (special.expn([1, 1], [1.0, 1.0]), special.expn(1, ones)),
        (special.hyp1f1([1, 1], 2, 1.0), special.hyp1f1(ones, 2, 1.0)),
        (special.hyp2f1(1, [1, 1], 2, 0.5), special.hyp2f1(1, ones, 2, 0.5)),
    ):
        np.testing.assert_array_equal(got, expected)
    with pytest.raises(TypeError):
        special.erf([1.0, 1.0])


def test_slopes_of_hypergeometric_functions_where_a_sum_ends():
    """Powers (c == a, c == b) and polynomials have slopes by the parameters; by mpmath."""
    cases = {
        (1.5, 0.7, 1.5, 0.5): [0.5837510207508619, 1.1260209168747677, -0.5837510207508619],
        (0.7, 1.5, 1.5, 0.95): [24.390684871667037, 16.39341241839651, -16.39341241839651],
        (1.5, 0.7, 0.7, -0.9): [-0.24507881603099327, -0.6210554782097976, 0.6210554782097976],
        (-2.0, 0.7, 1.5, 0.5): [0.12581427347817936, -0.5066666666666667, 0.22648888888888888],
        (1.3, 0.0, 2.5, 0.8): [0, 0.6140495377181592, 0],
        (0.0, 1.5, 2.0): [2.1637655915391, 0],
        (-2.0, 0.7, 0.5): [0.4125854244069247, 1.617117435209378],
        (1.5, 1.5, -3.0): [-0.22224095523880172, 0.22224095523880172],
    }
    with weft.enable_x64(True):
        for point, want in cases.items():
            f = special.hyp2f1 if len(point) == 4 else special.hyp1f1
            got = weft.grad(f, tuple(range(len(want))))(*point)
            np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-15)
