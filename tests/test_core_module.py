"""The entry points of weft._core: what they are given is checked before it is used."""

import weakref

import numpy as np
import pytest

import weft
import weft.numpy as wnp
from weft import _core
from weft.errors import AttributeValueError


def test_install_names_the_slots_it_knows():
    with pytest.raises(AttributeValueError, match=r"expected one of .*getitem.*; got 'gettiem'"):
        _core.install(gettiem=len)


def test_install_checks_what_it_is_given():
    with pytest.raises(TypeError, match="install expected a callable as 'flatten'; got 3"):
        _core.install(flatten=3)
    with pytest.raises(TypeError, match="install expected a class as 'abstract_type'"):
        _core.install(abstract_type=len)


# Objects that are being destroyed are not handed out.


def test_live_arrays_of_a_finalizer_leave_the_dying_array_out():
    seen = []
    x = wnp.ones(5)
    before = len(weft.live_arrays())
    weakref.finalize(x, lambda: seen.append((weft.live_arrays(), weft.memory_stats())))
    del x
    assert len(seen[0][0]) == before - 1
    assert all(np.asarray(a) is not None for a in seen[0][0])


def test_a_dying_var_is_not_handed_out():
    jaxpr = weft.make_jaxpr(lambda x: x + 1)(1.0).jaxpr
    seen = []
    weakref.finalize(jaxpr.invars[0], lambda: seen.append(jaxpr.invars[0]))
    first = seen[0]
    assert first is jaxpr.invars[0]
    assert str(first) == "a"
