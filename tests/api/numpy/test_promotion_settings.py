"""numpy_rank_promotion="raise" and numpy_dtype_promotion="strict": which calls they refuse."""

import json
import os

import numpy as np
import promotion_settings
import pytest

import weft
import weft.numpy as wnp
from weft import lax

F = np.float32
ALL = os.environ.get("WEFT_TESTS") == "all"
REFUSED = json.loads(promotion_settings.GOLDEN.read_text())
# What jax aligns although it is asked not to.
ALIGNED_BY_JAX = {"jnp.heaviside(x-2,w)": ["rank"]}


@pytest.mark.parametrize("table", [*REFUSED])
def test_calls_are_refused_for_their_own_arguments_only(table):
    names = promotion_settings.names_of(table, weft)
    expressions = promotion_settings.tables()[table]
    known = REFUSED[table]
    for expression in expressions if ALL else [*expressions[::5], *known]:
        expected = known.get(expression, ALIGNED_BY_JAX.get(expression, []))
        if expected is None:  # jax refuses it without these settings, too
            continue
        got = promotion_settings.refused(expression, names, weft)
        assert got in (expected, None), expression


COMPOSED = [
    lambda x, k: wnp.nanvar(x),
    lambda x, k: wnp.packbits(k > 1),
    lambda x, k: wnp.linalg.inv(x[:2, :2] + 2 * wnp.eye(2)),
    lambda x, k: wnp.polymul(x[0], x[1]),
    lambda x, k: wnp.sort_complex(x),
    lambda x, k: wnp.mgrid[0:1:3j, 0:2],
    lambda x, k: weft.scipy.special.bessel_jn(x[0], v=2),
    lambda x, k: weft.scipy.fft.dctn(x),
    lambda x, k: weft.scipy.linalg.funm(x[:, :2], wnp.sin),
    lambda x, k: weft.scipy.sparse.linalg.gmres(lambda v: 2 * v, x[0])[0],
    lambda x, k: weft.scipy.signal.welch(x[0], nperseg=2)[1],
    lambda x, k: weft.random.gamma(weft.random.key(0), x[0] + 1),
    lambda x, k: weft.nn.softmax(x, where=k > 0),
    lambda x, k: weft.grad(lambda y: weft.nn.logsumexp(y))(x),
    lambda x, k: x[k[0] % 2].at[0].add(1.0),
]


@pytest.mark.parametrize("number", range(len(COMPOSED)))
@pytest.mark.parametrize("transform", [lambda f: f, weft.jit, lambda f: weft.vmap(f, (0, 0))])
def test_composed_functions(number, transform):
    f = COMPOSED[number]
    x, k = wnp.asarray(np.arange(1, 7, dtype=F).reshape(2, 3)), wnp.arange(6).reshape(2, 3)
    args = (x, k) if transform is weft.jit or transform(f) is f else (x[None], k[None])
    expected = transform(f)(*args)
    with weft.numpy_rank_promotion("raise"), weft.numpy_dtype_promotion("strict"):
        got = transform(lambda x, k: f(x, k))(*args)
    for g, e in zip(weft.tree.leaves(got), weft.tree.leaves(expected), strict=True):
        assert g.dtype == e.dtype
        np.testing.assert_array_equal(g, e)


def test_what_a_user_calls_is_told_from_what_is_called_for_that():
    """Whether a call is refused does not depend on who made it first: programs are kept apart."""
    x, k = wnp.ones((2, 3)), wnp.arange(3)
    with weft.numpy_dtype_promotion("strict"):
        for _ in range(2):
            wnp.nanvar(x)  # chooses between numbers of several dtypes
            wnp.polyval(x[0], x[1])
            for f in (wnp.where, lambda _, a, b: wnp.hypot(a, b), lambda _, a, b: wnp.append(a, b)):
                with pytest.raises(ValueError, match="strict"):
                    f(True, x[0], k)
    with weft.numpy_rank_promotion("raise"):
        for _ in range(2):
            wnp.cov(x)
            with pytest.raises(ValueError, match="rank"):
                wnp.subtract(x, x[0])


X, ROW, IDS, ID_ROW = np.ones((2, 3), F), np.ones(3, F), np.ones((2, 3), int), np.ones(3, int)
ALIGNING = [
    lambda: wnp.power(X, ROW),
    lambda: wnp.asarray(X) ** wnp.asarray(ROW),
    lambda: wnp.asarray(X) // wnp.asarray(ROW),
    lambda: wnp.asarray(X) % wnp.asarray(ROW),
    lambda: divmod(wnp.asarray(X), wnp.asarray(ROW)),
    lambda: wnp.asarray(IDS) << wnp.asarray(ID_ROW),
    lambda: wnp.float_power(X, ROW),
    lambda: wnp.logaddexp(X, ROW),
    lambda: wnp.hypot(ROW, X),
    lambda: wnp.fmax(X, ROW),
    lambda: wnp.copysign(X, ROW),
    lambda: wnp.ldexp(X, ID_ROW),
    lambda: wnp.gcd(IDS, ID_ROW),
    lambda: wnp.clip(X, ROW),
    lambda: wnp.clip(X, max=ROW),
    lambda: wnp.clip(X, 0, ROW),
    lambda: wnp.isclose(X, ROW),
    lambda: wnp.allclose(X, ROW),
    lambda: wnp.linspace(X, ROW),
    lambda: wnp.logspace(X, ROW),
    lambda: wnp.geomspace(X, ROW),
    lambda: wnp.cov(X, ROW),
    lambda: wnp.corrcoef(X, ROW),
    lambda: wnp.vecdot(X, ROW),
    lambda: wnp.linalg.vecdot(X, ROW),
    lambda: wnp.matvec(X[None], ROW),
    lambda: wnp.ravel_multi_index((IDS, ID_ROW), (2, 2)),
    lambda: wnp.vectorize(lambda a, b: a + b)(X, ROW),
    lambda: wnp.vectorize(lambda a, b: a + b, signature="(n),(n)->(n)")(X, ROW),
    lambda: weft.nn.logsumexp(X, b=ROW),
    lambda: weft.nn.standardize(X, mean=ROW),
    lambda: weft.nn.elu(X, ROW),
    lambda: weft.scipy.special.xlogy(X, ROW),
    lambda: weft.scipy.special.betaln(X, ROW),
    lambda: weft.scipy.special.zeta(X, ROW),
    lambda: weft.scipy.stats.norm.pdf(X, ROW),
    lambda: weft.scipy.stats.norm.logsf(X, 0, ROW),
    lambda: weft.scipy.stats.multivariate_normal.pdf(X, ROW, np.eye(3, dtype=F)),
    lambda: weft.scipy.linalg.toeplitz(X, ROW),
]


@pytest.mark.parametrize("number", range(len(ALIGNING)))
@pytest.mark.parametrize("transform", [lambda f: f, weft.jit])
def test_functions_made_of_several_operations_align_no_ranks_if_a_user_says_so(number, transform):
    f = ALIGNING[number]
    transform(f)()
    for _ in range(2):
        with weft.numpy_rank_promotion("raise"), pytest.raises(ValueError, match="of one rank"):
            transform(lambda: f())()
        with weft.numpy_rank_promotion("warn"), pytest.warns(UserWarning, match="different ranks"):
            transform(lambda: f())()


def test_numbers_and_axes_that_are_not_aligned_have_any_rank():
    with weft.numpy_rank_promotion("raise"):
        wnp.clip(X, 0, 1)
        wnp.power(X, np.float32(2))
        wnp.linspace(0, X)
        wnp.matvec(X, ROW)
        wnp.vectorize(lambda m, v: m @ v, signature="(n,m),(m)->(n)")(X, ROW)
        wnp.vectorize(lambda a, b: a + b)(X, 1.0)
        weft.nn.logsumexp(X, where=ROW > 0)
        weft.scipy.stats.multivariate_normal.pdf(ROW, ROW, np.eye(3, dtype=F))


def test_functions_of_users_within_those_of_weft_are_users_code():
    x, k = wnp.ones(3), wnp.arange(3)
    inside = [
        lambda: lax.scan(lambda c, a: (c, a[0] + a[1]), 0, (x, k)),
        lambda: weft.vmap(lambda a, b: a * b)(x, k),
        lambda: weft.grad(lambda a: (a * k).sum())(x),
        lambda: lax.cond(True, lambda: x - k, lambda: x),
        lambda: weft.tree.map(lambda a, b: a + b, [x], [k]),
        lambda: wnp.vectorize(lambda a, b: a * b)(x, k),
        lambda: lax.while_loop(lambda a: (a + k).sum() < 0, lambda a: a, x),
        lambda: weft.scipy.optimize.minimize(lambda a: (a * k).sum(), x, method="BFGS"),
    ]
    for f in inside:
        f()
        with weft.numpy_dtype_promotion("strict"), pytest.raises(ValueError, match="strict"):
            f()
