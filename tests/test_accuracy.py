"""Functions against correctly rounded values of mpmath, kept in golden/accuracy.npz by
tools/accuracy: none is off by more than its limit; derivatives at extremes.
"""

import numpy as np
import pytest
from accuracy_cases import CASES, DTYPES, LIMIT, REASONS, limit, ulps
from conftest import ROOT

import weft

SAMPLE = np.load(ROOT / "tests" / "golden" / "accuracy.npz")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_errors_in_ulps(dtype):
    """One program computes all functions at their samples."""
    names = list(CASES)
    wide = {name: SAMPLE[f"{name}|{dtype}"] for name in names}
    arguments = {name: wide[name][0].astype(DTYPES[dtype]) for name in names}
    with weft.enable_x64(True):
        results = weft.jit(lambda xs: {name: CASES[name].function(xs[name]) for name in names})(
            arguments
        )
    exceeded = []
    for name in names:
        errors = ulps(np.asarray(results[name]), *wide[name][1:])
        worst = int(np.argmax(errors))
        if errors[worst] > limit(name, dtype)[0]:
            exceeded.append((name, arguments[name][worst], errors[worst]))
    assert not exceeded


def test_every_limit_above_the_usual_one_has_a_reason():
    for key, (bound, reason) in REASONS.items():
        name = key if isinstance(key, str) else key[0]
        assert name in CASES
        assert bound > LIMIT and len(reason) > 10


def test_the_sample_has_every_function():
    assert set(SAMPLE.files) == {f"{name}|{d}" for name in CASES for d in ("float32", "float64")}
