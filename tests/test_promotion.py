"""dtype, shape and weak type of results, against jax: a sample of the calls of `promotion.py`."""

import numpy as np
import promotion
import pytest
from oracle import CHANGED_LATER, is_later_jax, needs_jax

import weft
import weft.numpy as wnp


@needs_jax
@pytest.mark.oracle
@pytest.mark.parametrize("x64", [False, True])
def test_types_of_results_are_those_of_jax(x64):
    with weft.enable_x64(x64):
        found, compared = promotion.differences(0.006, x64, seed=1)
    if is_later_jax():
        found = [f for f in found if f.partition("(")[0].rpartition(".")[2] not in CHANGED_LATER]
    assert not found, "\n".join(found)
    assert compared > 300


@pytest.mark.parametrize("add", [lambda x, n: x + n, lambda x, n: weft.jit(lambda x: x + n)(x)])
def test_python_ints_beside_floats_are_of_the_default_integer_dtype(add):
    x = wnp.ones(2)
    assert add(x, 2**31 - 1).dtype == np.float32
    assert wnp.asarray(2**40, np.float32) == 2.0**40
    for n in (2**31, -(2**31) - 1, 10**40):
        with pytest.raises(OverflowError, match="out of range for int32"):
            add(x, n)


def test_a_branch_is_as_weak_as_the_first():
    strong, weak = (lambda: np.float32(2)), (lambda: 1.0)
    for branches in ((strong, weak, strong), (weak, strong, strong)):
        assert weft.lax.switch(1, branches).weak_type == (branches[0] is weak)
    assert weft.lax.cond(wnp.array(True), strong, weak).weak_type
    assert not weft.lax.cond(wnp.array(True), weak, strong).weak_type


def test_a_choice_among_python_numbers_is_of_their_default_dtype():
    for wide in (False, True):
        with weft.enable_x64(wide):
            for which in (1, np.int8(1), wnp.int32(1)):
                chosen = weft.lax.select_n(which, 1, 2)
                assert chosen.dtype == (np.int64 if wide else np.int32) and chosen.weak_type


def test_products_of_signed_integers_and_uint64_wrap_around():
    with weft.enable_x64(True):
        x, y = np.array([[-1, 2]], np.int8), np.array([[3], [1]], np.uint64)
        for product in (weft.lax.dot(x, y), weft.lax.dot(y.T, x.T)):
            assert product.dtype == np.uint64 and product.item() == 2**64 - 1
