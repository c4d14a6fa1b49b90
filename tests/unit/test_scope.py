"""named_scope and named_call: names in the locations of lowered programs."""

import pytest

import weft
import weft.numpy as wnp


def text_of(f, *args):
    return weft.jit(f).lower(*args).as_text(debug_info=True)


def test_scopes_nest_and_end():
    def f(x):
        with weft.named_scope("outer"):
            x = wnp.sin(x)
            with weft.named_scope("inner"):
                x = wnp.cos(x)
        return wnp.tanh(x)

    text = text_of(f, 1.0)
    assert '"outer/f"(' in text and '"outer/inner/f"(' in text and '"f"(' in text


def test_derivatives_keep_scopes():
    @weft.named_scope("block")
    def f(x):
        return wnp.sin(x) * x

    text = text_of(weft.grad(f), 1.0)
    cosine = next(line for line in text.splitlines() if "stablehlo.cosine" in line)
    number = cosine.split("loc(")[1].rstrip(")")
    assert f'{number} = loc("block/f"(' in text


def test_named_call():
    def f(x):
        return wnp.sin(x)

    assert '"f/f"(' in text_of(weft.named_call(f), 1.0)
    assert '"other/f"(' in text_of(weft.named_call(f, name="other"), 1.0)
    assert weft.named_call(f).__name__ == "f"


def test_scopes_end_with_errors():
    with pytest.raises(ValueError), weft.named_scope("broken"):
        raise ValueError
    assert "broken" not in text_of(wnp.sin, 1.0)


def test_scopes_do_not_make_programs_different():
    def f(x, name):
        with weft.named_scope(name):
            return wnp.sinh(x) + 1

    weft.jit(lambda x: f(x, "one"))(2.5)
    before = weft.compiler.cache_stats()["compiles"]
    weft.jit(lambda x: f(x, "two"))(2.5)
    assert weft.compiler.cache_stats()["compiles"] == before


@pytest.mark.parametrize("name", [3, "", None])
def test_mistakes(name):
    with pytest.raises(TypeError, match="named_scope expected a non-empty string"):
        weft.named_scope(name)
