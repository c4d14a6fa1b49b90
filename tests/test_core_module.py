"""The entry points of weft._core: what they are given is checked before it is used."""

import pytest

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
