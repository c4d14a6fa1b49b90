"""The distributions of weft.random against what jax draws, kept in golden/."""

import json
import warnings

import jaxlib
import ml_dtypes
import numpy as np
import pytest
from conftest import EVERYTHING
from random_distributions import GOLDEN, rows, value_of

import weft

_LOOPS = "ball beta binomial chisquare dirichlet f gamma generalized_normal loggamma multinomial"
WITH_LOOPS = set(f"{_LOOPS} poisson t".split())
DERIVATIVES = {key for key in rows() if "(key, a, (2, 4), D)" in key[0] and key[1] == "float32"}
# Products of libraries of linear algebra, exponentials of large numbers and differences of
# logarithms differ by more than the two last digits.
LOOSE = (
    "multivariate_normal",
    "orthogonal",
    "dirichlet",
    "pareto",
    "loggamma",
    "random.t",
    "random.f",
    "wald",
)
# XLA of later versions rounds logarithms and exponentials of float64 otherwise.
LAST_DIGITS = 2 if jaxlib.__version__.startswith("0.10.") else 4


def answers():
    with open(GOLDEN, encoding="utf-8") as file:
        found = [(tuple(key), answer) for *key, answer in json.load(file)]
    assert [key for key, _ in found] == rows(), "run tests/support/random_distributions.py"
    return found


def chosen():
    """The rows to run: of functions whose loops take long to compile one each, if not all."""
    kept, seen = [], set()
    for key, answer in answers():
        function = key[0].split("random.", 1)[1].partition("(")[0]
        slow = function in WITH_LOOPS and not isinstance(answer, str)
        if EVERYTHING or not slow or function not in seen or key in DERIVATIVES:
            kept.append(pytest.param(*key, answer, id=f"{key[0]}-{key[1]}"))
        if slow:
            seen.add(function)
    return kept


def last_digits(x, y):
    """By how many units in the last place of y arrays differ; NaN and infinities must be equal.

    Without XLA's optimisation, which joins products and sums, in places of the largest of y.
    """
    if x.dtype.kind == "c":
        return max(last_digits(x.real, y.real), last_digits(x.imag, y.imag))
    info = ml_dtypes.finfo(x.dtype)
    x, y = x.astype(np.float64), y.astype(np.float64)
    size = np.abs(y)
    if not EVERYTHING:
        size = np.max(size, initial=0, where=np.isfinite(size))
    unit = 2.0 ** np.floor(np.log2(np.maximum(size, float(info.tiny)))) * float(info.eps)
    with np.errstate(invalid="ignore"):
        apart = np.where((x == y) | (np.isnan(x) & np.isnan(y)), 0, np.abs(x - y) / unit)
    return np.max(np.nan_to_num(apart, nan=np.inf), initial=0)


@pytest.mark.parametrize(("row", "dtype", "x64", "answer"), chosen())
def test_what_jax_draws(row, dtype, x64, answer):
    with warnings.catch_warnings(), weft.enable_x64(x64):
        warnings.simplefilter("ignore")
        if isinstance(answer, str):
            with pytest.raises(Exception) as raised:
                value_of(weft, row, dtype)
            assert answer in {c.__name__ for c in type(raised.value).__mro__}
            return
        got = np.asarray(value_of(weft, row, dtype))
    name, shape, data = answer
    expected = np.frombuffer(bytes.fromhex(data), got.dtype).reshape(shape)
    assert (got.dtype.name, list(got.shape)) == (name, shape)
    if got.dtype.kind in "biu" or name == "int4":
        assert (got == expected).all(), (got, expected)
    else:
        # XLA's log1p of float64 is off by more.
        of_log1p = x64 and "laplace" in row
        loose = any(each in row for each in LOOSE) or "grad" in row or of_log1p
        assert last_digits(got, expected) <= (64 if loose else LAST_DIGITS), (got, expected)
