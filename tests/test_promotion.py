"""dtype, shape and weak type of results, against jax: a sample of the calls of `promotion.py`."""

import promotion
import pytest
from oracle import needs_jax

import weft


@needs_jax
@pytest.mark.oracle
@pytest.mark.parametrize("x64", [False, True])
def test_types_of_results_are_those_of_jax(x64):
    with weft.enable_x64(x64):
        found, compared = promotion.differences(0.006, x64, seed=1)
    assert not found, "\n".join(found)
    assert compared > 300
