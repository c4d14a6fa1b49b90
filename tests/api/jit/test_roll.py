"""Programs in which a loop of Python is written out, rolled into loops again: the same results."""

import numpy as np
import pytest
from conftest import EVERYTHING
from repeating_programs import program

import weft
from weft import compiler, lax, numpy as jnp
from weft.compiler._programs import call
from weft.tree_util import tree_leaves

STEPS = 40


@pytest.mark.parametrize("seed", range(300) if EVERYTHING else (1, 3, 7))
def test_all_that_repeats_in_a_random_program_can_be_rolled(seed):
    f, args = program(seed)
    whole = compiler.optimize(weft.jit(f).lower(*args).graph)
    rolled = compiler.optimize(whole, passes=["roll"])
    rolled.verify()
    rolled = compiler.optimize(rolled, passes=["dce", "canonicalize", "dce"])
    loops = [g.op_names().count("scan") for g in (whole, rolled)]
    assert loops[0] < loops[1] or seed not in (1, 3, 7)
    if loops[0] == loops[1]:
        return
    run = lambda graph: weft.jit(
        call, static_argnums=0, compile="unrolled", optimize="fast_compile"
    )(graph, *tree_leaves(args))
    results = run(rolled), run(whole)
    for got, wanted in zip(*results, strict=True):
        # Another fusion rounds otherwise, and the program is up to 30 layers deep.
        np.testing.assert_allclose(got, wanted, rtol=2e-4, atol=2e-5)


def agree(f, *args, loops, rtol=1e-4):
    """What `f` compiles to, rolled into so many loops, with the results that it has unrolled."""
    compiled = weft.jit(f).lower(*args).compile()
    assert len(compiled.loops) == loops
    unrolled = weft.jit(f, compile="unrolled", optimize="fast_compile").lower(*args).compile()
    assert unrolled.loops == [] and " while(" not in unrolled.as_text()
    results = (tree_leaves(c(*args)) for c in (compiled, unrolled))
    for got, wanted in zip(*results, strict=True):
        assert got.dtype == wanted.dtype
        # Products in loops may be summed in another order.
        atol = 1e-5 + 1e-6 * np.max(np.abs(wanted), initial=0)
        np.testing.assert_allclose(got, wanted, rtol=rtol, atol=atol)
    return compiled


def make(*shape, seed=0):
    return jnp.asarray(np.random.default_rng(seed).standard_normal(shape) * 0.4, "float32")


def recurrent(params, xs):
    h, total = jnp.zeros((8, 32)), 0.0
    for i in range(STEPS):
        h = jnp.tanh(xs[i] @ params[0] + h @ params[1] + params[2])
        total = total + jnp.sum(h**2)
    return total


ARGS = (make(32, 32) / 2, make(32, 32) / 2, make(32)), make(STEPS, 8, 32)


def test_a_recurrent_network_and_its_gradient_are_two_loops():
    f = weft.jit(weft.grad(recurrent))
    lowered = f.lower(*ARGS)
    compiled = agree(weft.grad(recurrent), *ARGS, loops=2)
    assert sum(loop.num_ops for loop in compiled.loops) > 0.8 * lowered.graph.num_ops
    assert all(loop.length > STEPS - 5 for loop in compiled.loops)
    assert "while" not in lowered.as_text() and " while(" in compiled.as_text()
    f(*ARGS)
    (made,) = f.explain().events[0].programs
    assert made.loops == 2 and f"{made.rolled} of them rolled into 2 loops" in str(made)


def test_the_gradient_by_slices_and_what_is_collected_are_rolled():
    def collect(params, xs):
        h, kept = jnp.zeros((8, 32)), []
        for i in range(STEPS):
            h = jnp.sin(h @ params[1]) * (0.1 + i / 400) + xs[i] @ params[0]
            h = h / (1 + jnp.abs(h)) + jnp.cos(h) * params[2] - jnp.exp(-h * h)
            h = h - h**3 * 0.01 + jnp.tanh(h * 0.3) * params[2]
            kept.append(h)
        return jnp.stack(kept), h

    agree(collect, *ARGS, loops=1)


def test_two_steps_back():
    def oscillate(x, y):
        for _ in range(100):
            x, y = y, jnp.tanh(1.6 * y - x * jnp.cos(y) * 0.1) + jnp.sin(x) / 8
        return x, y

    agree(oscillate, make(600), make(600, seed=1), loops=1)


def test_what_has_effects_stays_as_it_is():
    def f(params, xs):
        h = jnp.zeros((8, 32))
        for i in range(STEPS):
            weft.debug.callback(lambda v: None, h.sum())
            h = jnp.tanh(xs[i] @ params[0] + h @ params[1] + params[2]) + jnp.sin(h) * 0.5
            h = h - jnp.cos(h) * params[2] + jnp.exp(-h * h) / (1 + h * h) + jnp.abs(h)
        return h

    assert weft.jit(f).lower(*ARGS).compile().loops == []


def test_loops_within_a_written_out_loop_stay_loops():
    def f(params, xs):
        h = jnp.zeros((8, 32))
        for i in range(STEPS):
            h = lax.fori_loop(0, 3, lambda _, z: jnp.sin(z @ params[1]), h) + xs[i]
            h = jnp.tanh(h) * params[2] + jnp.cos(h) / (2 + jnp.abs(h)) - jnp.exp(-h * h)
            h = h - h**3 * 0.01 + jnp.tanh(h * 0.3) * params[2]
        return h

    compiled = weft.jit(f).lower(*ARGS).compile()
    assert len(compiled.loops) == 1
    wanted = weft.jit(f, compile="unrolled", optimize="fast_compile")(*ARGS)
    np.testing.assert_allclose(compiled(*ARGS), wanted, rtol=1e-4, atol=1e-5)
