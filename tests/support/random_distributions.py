"""What jax draws from the distributions of its `random`: rows of `test_random_distributions.py`.

`python tests/support/random_distributions.py` writes the answers of the installed jax to
golden/random_distributions.json. An answer is (dtype, shape, bytes in hexadecimal), or the
built-in class of the error.
"""

import json
import warnings
from pathlib import Path

import numpy as np

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "random_distributions.json"

_A = "jnp.array([.3, 1., 2.5, 12.], D)"
_COLUMN = "jnp.array([[.5], [3.]], D)"
_COV = "jnp.array([[2., .5, 0.], [.5, 1., .2], [0., .2, 3.]], D)"

# D is one of the dtypes below. A row is one expression.
BY_DTYPE = f"""
random.uniform(key, (2, 5), D)
random.uniform(key, (2, 3), D, -3, jnp.array([1., 2., 50.]))
random.normal(key, (2, 5), D)
random.truncated_normal(key, -1., jnp.array([[.5], [jnp.inf]]), (2, 4), D)
random.truncated_normal(key, jnp.array([3., 1., -3.5, 2.]), jnp.array([4., 6., -3., 1.]), None, D)
random.exponential(key, (7,), D)
random.laplace(key, (7,), D)
random.logistic(key, (7,), D)
random.gumbel(key, (7,), D)
random.gumbel(key, (7,), D, "high")
random.cauchy(key, (7,), D)
random.maxwell(key, (2, 3), D)
random.gamma(key, {_A}, (3, 4), D)
random.loggamma(key, {_A}, None, D)
random.gamma(key, jnp.array([-1., 0., jnp.nan, jnp.inf, 1e-6, 1e4]), None, D)
random.chisquare(key, {_A}, (2, 4), D)
random.t(key, {_A}, None, D)
random.f(key, {_A}, 2 * {_A}, None, D)
random.beta(key, {_A}, {_COLUMN}, None, D)
random.dirichlet(key, {_A}, (3,), D)
random.pareto(key, {_A}, (2, 4), D)
random.rayleigh(key, {_A}, None, D)
random.wald(key, {_A}, (2, 4), D)
random.lognormal(key, jnp.array([.5, 2.], D), (3, 2), D)
random.triangular(key, 0., jnp.array([.5, 2.], D), 3., (3, 2), D)
random.weibull_min(key, 2., jnp.array([.5, 2.], D), (3, 2), D)
random.double_sided_maxwell(key, 1., jnp.array([.5, 2.], D), (3,), D)
random.generalized_normal(key, 3., (5,), D)
random.ball(key, 3, 3., (2,), D)
random.rademacher(key, (7,), D)
random.bernoulli(key, jnp.array([.1, .5, .9], D), (4, 3))
random.bernoulli(key, jnp.array([.1, .5, .9], D), (4, 3), "high")
random.geometric(key, jnp.array([.1, .5, .9], D), (4, 3))
random.poisson(key, jnp.array([.1, 5, 11, 300], D), (3, 4))
random.binomial(key, jnp.array([3, 20, 70., 1000], D), jnp.array([.5, .1, .7, .3], D), (3, 4), D)
random.multinomial(key, jnp.array([3, 90], D), {_A}, shape=(2, 4), dtype=D)
random.categorical(key, jnp.log({_A}), shape=(9,))
random.categorical(key, jnp.log({_A}), shape=(3,), replace=False, mode="high")
random.choice(key, 4, (9,), p={_A} / 16)
random.choice(key, 4, (3,), False, {_A} / 16, mode="high")
vmap(lambda k, a: random.gamma(k, a, (2,)))(keys, jnp.array([.4, 1., 9.], D))
vmap(lambda k, a: random.binomial(k, 60, a, (2,)))(keys, jnp.array([.01, .5, .9], D))
grad(lambda a: random.gamma(key, a, (2, 4), D).sum())({_A})
grad(lambda a: random.loggamma(key, a, (2, 4), D).sum())({_A})
"""

# The functions of decompositions have no narrow floats.
BY_WIDE_DTYPE = f"""
random.multivariate_normal(key, jnp.arange(3.), {_COV}, (2,), D)
random.multivariate_normal(key, jnp.ones((2, 1, 3), D), jnp.stack([{_COV}, 2 * {_COV}]))
random.multivariate_normal(key, jnp.arange(3.), {_COV}, (2,), D, "eigh")
random.multivariate_normal(key, jnp.arange(3.), jnp.diag(jnp.arange(1, 4, dtype=D)), (2,), D, "svd")
random.orthogonal(key, 3, (2,), D)
random.orthogonal(key, 3, (), D, m=2)
random.orthogonal(key, 2, (), D, m=3)
random.orthogonal(key, 2, (), jnp.result_type(D, complex))
random.normal(key, (2, 3), jnp.result_type(D, complex))
random.lognormal(key, .5, (2, 3), jnp.result_type(D, complex))
jacfwd(lambda a: random.dirichlet(key, a))({_A})
grad(lambda a: random.beta(key, a, {_COLUMN}).sum())({_A})
grad(lambda a: random.chisquare(key, a).sum())({_A})
grad(lambda a: random.t(key, a).sum())({_A})
grad(lambda a: random.pareto(key, a).sum())({_A})
grad(lambda a: random.rayleigh(key, a).sum())({_A})
grad(lambda a: random.wald(key, a).sum())({_A})
grad(lambda a: random.lognormal(key, a).sum())({_A})
grad(lambda a: random.triangular(key, 0., a, 20.).sum())({_A})
grad(lambda a: random.weibull_min(key, 2., a, (4,)).sum())({_A})
grad(lambda a: random.double_sided_maxwell(key, 2., a).sum())({_A})
grad(lambda a: random.generalized_normal(key, a, (4,)).sum())({_A})
grad(lambda a: random.ball(key, 3, a, (4,)).sum())(jnp.array(1.5, D))
grad(lambda a: random.truncated_normal(key, a, a * a, (9,)).sum())(jnp.array(1.5, D))
grad(lambda c: random.multivariate_normal(key, jnp.arange(3.), c, (2,)).sum())({_COV})
grad(lambda a: random.binomial(key, 10, a, (9,)).sum())(jnp.array(.3, D))
grad(lambda a: random.poisson(key, a, (9,)).astype(D).sum())(jnp.array(3., D))
"""

OTHERS = """
random.poisson(key, jnp.array([jnp.nan, -1., 0., jnp.inf, 1e9, 1e20, 10., 9.999]))
random.poisson(key, 300, (3,), "uint8")
random.binomial(key, 50, .3, (6,), "float16")
random.binomial(key, 9, jnp.array([.3, .8], "float16"), (5, 2), "float32")
random.binomial(key, jnp.array([jnp.nan, -1., 0., jnp.inf, 1e9, 5.5]), .8)
random.binomial(key, 20, jnp.array([jnp.nan, -1., 0., jnp.inf, 1., 1.5, .5]))
random.multinomial(key, 10, jnp.array([[0, 2, 1], [0, 0, 0]]), dtype=int)
random.geometric(key, jnp.array([0., 1., -1., jnp.nan, 1e-30]))
random.geometric(key, .001, (5,), "uint8")
random.rademacher(key, (5,), "uint8")
random.rademacher(key, (5,), bool)
random.gamma(key, 2, (0, 3))
random.gamma(key, jnp.ones((0,)))
random.poisson(key, jnp.zeros((0, 2)))
random.dirichlet(key, jnp.ones((2, 0)))
random.orthogonal(key, 0)
random.ball(key, 0)
random.ball(key, 2, jnp.inf)
random.ball(key, 3, jnp.array([1., 2., 3.]), (3,))
random.gamma(key, True)
random.gamma(key, jnp.arange(3))
random.lognormal(key)
random.wald(key, jnp.arange(3))
random.weibull_min(key, jnp.float16(2), 3, (2,), "float32")
random.double_sided_maxwell(key, jnp.zeros(3), jnp.ones((2, 1)), (2,), "float16")
random.categorical(key, jnp.ones((2, 3)), 0, (2, 3), False)
random.categorical(key, jnp.array([1., jnp.nan, 2.]), shape=(3,), replace=False)
random.categorical(key, jnp.ones((2, 3, 4)), -2, (5, 2, 4))
random.choice(key, jnp.arange(12.).reshape(3, 4), (2, 2), True, jnp.ones(4) / 4, 1)
random.choice(key, jnp.arange(12.).reshape(3, 4), (), False, jnp.ones(4) / 4, -1)
random.permutation(key, -1)
random.permutation(key, jnp.arange(6).reshape(2, 3), 1, independent=True)
random.randint(key, (9,), -5, 7, "int4")
random.randint(key, (9,), jnp.uint32(2**32 - 5), jnp.uint32(2**32 - 1), "uint32")
vmap(lambda k: random.multinomial(k, 9, jnp.ones(3)))(keys)
vmap(lambda k, a: random.poisson(k, a, (2,)))(keys, jnp.array([3., 30., 11.]))
vmap(lambda a: random.poisson(key, a, (2,)))(jnp.array([3., 30., 11.]))
vmap(lambda k: random.orthogonal(k, 2))(keys)
vmap(lambda k: random.dirichlet(k, jnp.ones(3)))(keys)
vmap(lambda k: random.ball(k, 3, 1.5, (2,)))(keys)
"""

ERRORS = """
random.gamma(key, 1., dtype=int)
random.gamma(key, jnp.ones(3), (2,))
random.gamma(key, "a")
random.beta(key, [1., 2.], 1)
random.beta(key, jnp.ones(3), jnp.ones(2))
random.beta(key, jnp.ones(3), 1., dtype="float16")
random.chisquare(key, 1j)
random.t(key, jnp.ones(3), dtype="bfloat16")
random.lognormal(key, dtype="float16")
random.lognormal(key, 1., dtype=int)
random.cauchy(key, (2,), int)
random.maxwell(key, None)
random.dirichlet(key, 1.)
random.dirichlet(key, jnp.ones((2, 3)), (3,))
random.generalized_normal(key, jnp.ones(3))
random.ball(key, 2.5)
random.geometric(key, .5, dtype=float)
random.geometric(key, [.5])
random.poisson(key, 1., dtype=float)
random.poisson(key, jnp.ones(3), (2,))
random.binomial(key, 5, .5, dtype=int)
random.binomial(key, jnp.ones(2), jnp.ones(3))
random.multinomial(key, 5, 1.)
random.multinomial(key, jnp.ones((2, 1)), jnp.ones((2, 3)))
random.multivariate_normal(key, jnp.ones(3), jnp.eye(2))
random.multivariate_normal(key, 1., jnp.eye(2))
random.multivariate_normal(key, jnp.ones(3), jnp.ones(3))
random.multivariate_normal(key, jnp.ones(3), jnp.eye(3), method="foo")
random.multivariate_normal(key, jnp.ones((4, 3)), jnp.eye(3), (2,))
random.multivariate_normal(key, jnp.ones(3) * 1j, jnp.eye(3))
random.orthogonal(key, 3, dtype=int)
random.orthogonal(key, -1)
random.orthogonal(key, 3.5)
random.rademacher(key, (2,), "foo")
random.triangular(key, 0., 1., jnp.ones(3), (2,))
random.weibull_min(key, jnp.ones(3), jnp.ones(2))
random.double_sided_maxwell(key, jnp.ones(3), jnp.ones(2))
random.gumbel(key, (2,), mode="foo")
random.gumbel(key, (2,), int)
random.bernoulli(key, 1)
random.bernoulli(key, .5, mode="foo")
random.categorical(key, jnp.ones(3), mode="foo")
random.categorical(key, jnp.ones(3), axis=2)
random.categorical(key, jnp.arange(3))
random.choice(key, 3, (2,), False, jnp.ones(3), mode="foo")
random.choice(key, 3, (2,), p=[1., 0., 0.])
random.permutation(key, 3, axis=4)
random.permutation(key, 2.5)
random.uniform(key, (2,), int)
random.normal(key, (2,), int)
random.truncated_normal(key, 0., 1., dtype=int)
"""


def _lines(text, step=1):
    return [line for line in text.splitlines() if line][::step]


def rows():
    """Triples of an expression, the dtype that is D in it, and whether 64-bit dtypes are on."""
    return [
        *((row, "float32", False) for row in _lines(BY_DTYPE + BY_WIDE_DTYPE + OTHERS + ERRORS)),
        *((row, "float64", True) for row in _lines(BY_DTYPE + BY_WIDE_DTYPE)),
        *((row, "float64", True) for row in _lines(OTHERS, 4)),
        *(
            (row, narrow, False)
            for row in _lines(BY_DTYPE, 3)
            for narrow in ("float16", "bfloat16")
        ),
    ]


def names(module, dtype):
    """What an expression may use, from jax or weft."""
    found = {name: getattr(module, name) for name in ("grad", "jacfwd", "vmap", "random")}
    return {**found, "jnp": module.numpy, "D": dtype, "keys": module.random.split(_key(module), 3)}


def _key(module):
    return module.random.key(42)


def value_of(module, row, dtype):
    """The value of an expression, computed in one compiled program."""
    given = names(module, dtype)
    return module.jit(lambda key: eval(row, {**given, "key": key}))(_key(module))


def builtin_class(error):
    """The name of the first class of an error that is Python's own."""
    return next(c.__name__ for c in type(error).__mro__ if c.__module__ == "builtins")


def _answer(jax, row, dtype):
    try:
        x = np.asarray(value_of(jax, row, dtype))
    except Exception as error:
        return builtin_class(error)
    return [x.dtype.name, list(x.shape), x.tobytes().hex()]


def _main():
    import jax

    answers = []
    for row, dtype, x64 in rows():
        jax.config.update("jax_enable_x64", x64)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            answers.append([row, dtype, x64, _answer(jax, row, dtype)])
        print(len(answers), row, flush=True)
    lines = ",\n".join(json.dumps(each) for each in answers)
    GOLDEN.parent.mkdir(exist_ok=True)
    GOLDEN.write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    _main()
