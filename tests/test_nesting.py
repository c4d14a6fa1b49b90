"""Functions that call functions that call functions: what is compiled stays small, or an error."""

import pytest

import weft
import weft.numpy as wnp
from weft import compiler


def nested(levels, step, base=wnp.sin):
    f = weft.jit(base)
    for _ in range(levels):
        f = weft.jit(lambda x, f=f: step(f, x))
    return f


def test_calls_used_once_are_inlined():
    f = nested(180, lambda f, x: f(x) * 0.5 + 1)
    assert "func.call" not in f.lower(1.0).as_text()
    assert float(f(1.0)) == pytest.approx(2.0, rel=1e-6)
    assert float(weft.grad(f)(1.0)) == pytest.approx(0.0, abs=1e-6)


def test_equal_calls_are_one():
    f = nested(40, lambda f, x: f(x) + f(x))
    assert float(f(1.0)) == pytest.approx(2.0**40 * 0.841471, rel=1e-5)
    assert float(weft.jit(weft.grad(f))(1.0)) == pytest.approx(2.0**40 * 0.540302, rel=1e-5)


def test_what_xla_would_expand_without_end_is_an_error_at_compilation():
    def long(x):
        for k in range(12):
            x = wnp.sin(x) * k
        return x

    f = nested(30, lambda f, x: f(f(x)), long)
    lowered = f.lower(1.0)
    with pytest.raises(RecursionError, match="10000000 operations"):
        lowered.compile()
    with pytest.raises(RecursionError, match="operations"):
        f(1.0)


def test_depth_that_inlining_cannot_bound_is_an_error():
    text = "{ lambda ; i:i32[] x:f32[]. let y:f32[] = sin x in (y,) }"
    for _ in range(120):
        inputs = "{ lambda ; i:i32[] x:f32[]. let "
        text = inputs + "y:f32[] = cond[branches=(" + text + ")] i i x in (y,) }"
    graph = compiler.parse(text)
    with pytest.raises(weft.errors.NestingError, match="120 .cond > cond"):
        compiler.emit_stablehlo(graph)


def test_a_deep_chain_used_at_every_level():
    """Every function is called from two places, so that none is inlined for being used once."""

    def long(x):
        for k in range(12):
            x = wnp.sin(x) + k
        return x

    chain = [weft.jit(long)]
    for _ in range(120):
        chain.append(weft.jit(lambda x, f=chain[-1]: wnp.cos(f(x)) * wnp.sin(x) + x * x - 1))
    total = weft.jit(lambda x: sum(f(x + k) for k, f in enumerate(chain)))
    assert wnp.isfinite(total(0.5))


def test_twenty_thousand_levels_raise():
    with pytest.raises(RecursionError):
        f = nested(20_000, lambda f, x: f(x) + 1)
        str(f.lower(1.0))


def test_optimised_programs_are_left_alone():
    f = nested(6, lambda f, x: f(f(x)) + f(x * 2))
    once = compiler.optimize(f.trace(1.0).graph)
    stats = []
    assert compiler.optimize(once, stats=stats) == once
    assert not any(s["rewrites"] for s in stats)
