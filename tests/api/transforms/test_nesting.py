"""Functions that call functions that call functions: what is compiled stays small, or an error."""

import math
import sys

import pytest

import weft
import weft.numpy as wnp
from weft import compiler, lax


def nested(levels, step, base=wnp.sin):
    f = weft.jit(base)
    for _ in range(levels):
        f = weft.jit(lambda x, f=f: step(f, x))
    return f


def repeated(step, times):
    def f(x):
        for _ in range(times):
            x = step(x)
        return x

    return f


def roll(x):
    return wnp.concatenate([x[1:], x[:1]])


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
    with pytest.raises(RecursionError, match="1000000 operations"):
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
    chain = [weft.jit(repeated(wnp.sin, 12))]
    for _ in range(120):
        chain.append(weft.jit(lambda x, f=chain[-1]: wnp.cos(f(x)) * wnp.sin(x) + x * x - 1))
    text = weft.jit(lambda x: sum(f(x + k) for k, f in enumerate(chain))).lower(0.5).as_text()
    assert 100 < text.count("func.call") < 240
    total = weft.jit(lambda x: sum(f(x + k) for k, f in enumerate(chain[60:70])))
    assert wnp.isfinite(total(0.5))


def test_twenty_thousand_levels_raise():
    with pytest.raises(RecursionError):
        f = nested(20_000, lambda f, x: f(x) + 1)
        str(f.lower(1.0))


def barriers(f, *args):
    return weft.jit(f).lower(*args).as_text().count("optimization_barrier")


def test_long_chains_are_cut():
    """Wherever the lines of a chain come from."""
    x = wnp.ones(4)
    assert barriers(repeated(wnp.sin, 4900), x) == 0
    assert barriers(repeated(wnp.sin, 17_500), x) == 3
    assert barriers(repeated(roll, 200), x) == 3
    # Neither many short chains nor values that many use are long.
    assert barriers(lambda x: sum(wnp.sin(x * k) for k in range(400)), x) == 0
    # Products end a chain by themselves, unless they sum up one term.
    step = lambda x: roll(x @ wnp.ones((x.size, x.size)))
    assert barriers(repeated(step, 200), x) == 0
    assert barriers(repeated(weft.jit(step), 200), x) == 0
    outer = lambda x: roll((x[:, None] @ x[None, :1])[:, 0])
    assert barriers(repeated(outer, 200), x) > 3
    layer = weft.jit(repeated(wnp.sin, 1500))
    assert barriers(repeated(lambda x: layer(x) * 2, 10), x) == 3
    assert barriers(lambda x: layer(x) + layer(x * 2) + layer(x * 3) + layer(x * 4), x) == 0
    looped = lambda x: lax.scan(lambda c, _: (repeated(wnp.sin, 7500)(c), None), x, length=3)[0]
    assert barriers(looped, x) == 1
    branch = lambda x: lax.cond(x[0] > 0, repeated(wnp.sin, 2480), wnp.cos, x)
    assert 1 <= barriers(repeated(branch, 3), x) <= 3


def test_barriers_between_calls_stand_outside():
    """A function of one long chain is cut off from what it is called with, at every level."""
    f = nested(4, lambda f, x: f(f(x)), repeated(wnp.sin, 4900))
    assert barriers(f, wnp.ones(4)) == 15
    assert barriers(lambda x: f(x) * 2, wnp.ones(4)) == 15


CRASHES = """
import weft, weft.numpy as wnp
from weft import lax

def repeated(step, times):
    def f(x):
        for _ in range(times):
            x = step(x)
        return x
    return f

def shifted(x):
    return lax.pad(x[1:], 0.0, [(0, 1, 0)]) + 1

def roll(x):
    return wnp.concatenate([x[1:], x[:1]])

x = wnp.arange(4.0)
assert weft.jit(repeated(roll, 1000))(x).tolist() == [0, 1, 2, 3]
assert weft.jit(repeated(shifted, 500))(x).tolist() == [4, 3, 2, 1]
assert weft.jit(repeated(lambda x: roll(x @ wnp.eye(4)), 400))(x).tolist() == [0, 1, 2, 3]
y = wnp.ones((4, 1))
outer = repeated(lambda y: wnp.concatenate([(y @ y[:1])[:2], y[2:]]), 300)
assert weft.jit(outer)(y).tolist() == y.tolist()
f = weft.jit(repeated(roll, 9))
for _ in range(6):
    f = weft.jit(lambda x, f=f: f(f(x)))
assert f(x).tolist() == [0, 1, 2, 3]
once = lambda x: lax.fori_loop(0, 1, lambda _, x: repeated(roll, 100)(x), x)
assert weft.jit(repeated(once, 6))(x).tolist() == [0, 1, 2, 3]
print("alive")
"""


def test_long_chains_do_not_kill_the_process(run_python):
    assert run_python(CRASHES) == "alive\n"


def test_optimised_programs_are_left_alone():
    f = nested(6, lambda f, x: f(f(x)) + f(x * 2))
    once = compiler.optimize(f.trace(1.0).graph)
    stats = []
    assert compiler.optimize(once, stats=stats) == once
    assert not any(s["rewrites"] for s in stats)


TWICE = {
    "f(f(x))": lambda f, x: f(f(x)),
    "f(x) * f(2 x)": lambda f, x: f(x) * f(2 * x),
    "f(x) + f(2 f(x))": lambda f, x: f(x) + f(2 * f(x)),
}
DERIVATIVES = {
    "grad": weft.grad,
    "grad of grad": lambda f: weft.grad(weft.grad(f)),
    "vmap of grad": lambda f: lambda x: weft.vmap(weft.grad(f))(wnp.stack([x, x])),
    "grad of vmap": lambda f: weft.grad(lambda x: weft.vmap(f)(wnp.stack([x, x])).sum()),
    "in a scan": lambda f: weft.grad(
        lambda x: weft.lax.scan(lambda c, _: (f(c), None), x, length=3)[0]
    ),
    "in a branch": lambda f: weft.grad(lambda x: weft.lax.cond(x > 0, f, lambda x: f(2 * x), x)),
    "checkpoint": lambda f: weft.grad(weft.checkpoint(f)),
    "policy": lambda f: weft.grad(
        weft.checkpoint(f, policy=weft.checkpoint_policies.everything_saveable)
    ),
}


@pytest.mark.parametrize("step", TWICE)
@pytest.mark.parametrize("derivative", DERIVATIVES)
def test_derivatives_of_functions_called_twice_at_each_level(step, derivative):
    """As many residuals as there are calls no program could hold: they are computed again."""
    f = nested(30, TWICE[step])
    assert len(weft.jit(DERIVATIVES[derivative](f)).lower(0.5).as_text()) < 100_000_000


def test_an_unjitted_derivative_of_functions_called_twice_comes_to_an_end():
    f = nested(30, TWICE["f(f(x))"])
    for g in (weft.grad(f), weft.grad(weft.grad(f))):
        with pytest.raises(RecursionError, match="operations"):
            g(0.5)


@pytest.mark.parametrize("step", ("f(f(x))", "f(x) * f(2 x)"))
def test_derivatives_of_a_few_levels(step):
    def derivatives(levels, x):
        """Value, first and second derivative."""
        if levels == 0:
            return math.sin(x), math.cos(x), -math.sin(x)
        y, y1, y2 = derivatives(levels - 1, x)
        if step == "f(f(x))":
            z, z1, z2 = derivatives(levels - 1, y)
            return z, z1 * y1, z2 * y1 * y1 + z1 * y2
        z, z1, z2 = derivatives(levels - 1, 2 * x)
        return y * z, y1 * z + 2 * y * z1, y2 * z + 4 * y1 * z1 + 4 * y * z2

    f = nested(3, TWICE[step])
    value, first, second = derivatives(3, 0.3)
    assert float(f(0.3)) == pytest.approx(value, rel=1e-5)
    assert float(weft.grad(f)(0.3)) == pytest.approx(first, rel=1e-4)
    assert float(weft.jit(weft.grad(weft.grad(f)))(0.3)) == pytest.approx(second, rel=1e-4)


def test_what_is_computed_again_has_no_effects():
    """A program so large that values are computed again: callbacks still run once."""
    calls = []
    chain = nested(11, TWICE["f(f(x))"])

    def seen(x):
        calls.append(float(x))
        return x

    @weft.jit
    def f(x):
        still = weft.lax.stop_gradient(x)
        weft.debug.callback(seen, still)
        scale = weft.experimental.io_callback(seen, weft.ShapeDtypeStruct((), "float32"), still)
        return chain(x * scale)

    rec = weft.jit(f).trace(0.5).graph
    residuals = weft._core.linearize_graph(rec, [True])[3]
    assert len(residuals) < 10

    def derivative(x, scale):
        x, product = x * scale, scale
        for _ in range(2**11):
            x, product = math.sin(x), product * math.cos(x)
        return product

    assert float(weft.grad(f)(0.5)) == pytest.approx(derivative(0.5, 0.5), rel=1e-3)
    assert calls == [0.5, 0.5]


DEEPER = {
    "scan": lambda f: lambda x: weft.lax.scan(lambda c, _: (f(c), None), x, length=1)[0],
    "cond": lambda f: lambda x: weft.lax.cond(x.sum() > 0, f, lambda x: x, x),
    "jit": weft.jit,
}


def deep(kind, levels):
    f = wnp.sin
    for _ in range(levels):
        f = DEEPER[kind](lambda x, f=f: f(x) * 2)
    return f


# Python 3.12 counts calls out of C by themselves, up to a limit that nobody can set.
DEEPEST = 100 if sys.version_info[:2] == (3, 12) else 250


@pytest.mark.parametrize("kind", DEEPER)
def test_derivatives_of_graphs_as_deep_as_can_be(kind):
    """No transform makes graphs deeper, so that none exceeds the limit, nor the stack."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(20_000)
    try:
        f = deep(kind, DEEPEST)
        for g in (
            weft.grad(lambda x: weft.vmap(f)(wnp.stack([x, x])).sum()),
            weft.grad(weft.grad(f)),
            weft.grad(weft.checkpoint(f)),
        ):
            weft.make_jaxpr(g)(1.0)
        if DEEPEST == 250:
            with pytest.raises(weft.errors.NestingError, match="at most 256"):
                weft.make_jaxpr(weft.grad(deep(kind, 260)))(1.0)
    finally:
        sys.setrecursionlimit(limit)


@pytest.mark.parametrize("kind", ("scan", "cond"))
def test_levels_of_recursion_that_run_out_in_a_loop_raise(kind):
    f = deep(kind, 250)

    def below(levels):
        return weft.make_jaxpr(f)(1.0) if levels == 0 else below(levels - 1)

    for levels in range(12):
        with pytest.raises(RecursionError):
            below(levels)
