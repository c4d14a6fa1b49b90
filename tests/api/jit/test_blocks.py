"""Programs that are compiled in blocks and run in steps: the same results, and what is cut."""

import numpy as np
import pytest
from conftest import EVERYTHING
from repeating_programs import KINDS, program

import weft
from weft import numpy as jnp
from weft.tree_util import tree_leaves, tree_map

SEEDS = range(300 if EVERYTHING else 8)


@pytest.mark.parametrize("seed", SEEDS)
def test_blocks_compute_what_the_whole_program_does(seed):
    f, args = program(seed)
    wanted = weft.jit(f, compile="whole")(*args)
    given = tree_map(lambda a: a + 0, args)
    donated = {"donate_argnums": 0} if KINDS[seed % len(KINDS)] == "step" else {}
    compiled = weft.jit(f, compile="blocks", **donated).lower(*given).compile()
    assert max((block.times for block in compiled.blocks), default=0) >= 2 or seed not in range(8)
    got = compiled(*given)
    if compiled.blocks and donated:
        assert all(a.is_deleted() for a in tree_leaves(given[0]))
    for a, b in zip(tree_leaves(got), tree_leaves(wanted), strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape
        # Another fusion rounds otherwise, and the program is up to 30 layers deep.
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-5)


def deep(params, x, of_columns=jnp.max):
    for w in params:
        x = jnp.tanh(x @ w) * 0.5 + jnp.sin(x) * 0.25 + x.mean(0)
        x = x - of_columns(x, axis=0) * 0.125
        x = x * jnp.cos(x) + jnp.sqrt(1 + x * x) - x**3 * 0.01
    return (x**2).sum()


def deep_args(layers=12):
    rng = np.random.default_rng(0)
    ws = [jnp.asarray(rng.standard_normal((8, 8)) * 0.3, "float32") for _ in range(layers)]
    return ws, jnp.ones((4, 8), "float32")


def test_an_operand_may_be_the_same_value_as_another_in_one_layer_only():
    def f(params, x):
        h, kept = x, []
        for i, w in enumerate(params):
            h = jnp.sin(h @ w) * 0.5 + jnp.tanh(x @ w.T)
            h = h - h.mean(0) + jnp.sqrt(1 + h * h) / 5 - jnp.arctan(h) * 0.1 + jnp.square(h) / 9
            if i == 3:  # read outside in one layer only
                kept.append(h)
        return h, kept

    ws, x = deep_args(6)
    compiled = weft.jit(f, compile="blocks").lower(ws, x).compile()
    assert max(block.times for block in compiled.blocks) == 6
    got, wanted = compiled(ws, x), weft.jit(f)(ws, x)
    for a, b in zip(tree_leaves(got), tree_leaves(wanted), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_each_layer_and_its_derivative_is_one_block():
    compiled = weft.jit(weft.grad(deep), compile="blocks").lower(*deep_args()).compile()
    times = sorted(block.times for block in compiled.blocks)
    assert times[-2] >= 10  # forwards and backwards
    ops = sum(block.graph.num_ops for block in compiled.blocks)
    assert ops < 0.4 * compiled.graph.num_ops
    more = weft.jit(weft.grad(deep), compile="blocks").lower(*deep_args(40)).compile()
    assert sum(block.graph.num_ops for block in more.blocks) < 1.2 * ops
    assert compiled.as_text().count("HloModule") == len(compiled.blocks)
    assert compiled.runtime_executable() is None
    assert any("pieces of" in block.why for block in compiled.blocks)

    whole = weft.jit(weft.grad(deep)).lower(*deep_args()).compile()
    cost, of_whole = compiled.cost_analysis(), whole.cost_analysis()
    assert 0.5 < cost["flops"] / of_whole["flops"] < 2
    memory, of_whole = compiled.memory_analysis(), whole.memory_analysis()
    for name in ("argument_size_in_bytes", "alias_size_in_bytes"):
        assert getattr(memory, name) == getattr(of_whole, name)
    pointers = of_whole.output_size_in_bytes - memory.output_size_in_bytes  # XLA's, in a tuple
    assert pointers in (0, 8 * 12)
    assert memory.temp_size_in_bytes > 0


def test_a_step_writes_its_result_where_a_value_was_that_nothing_needs_more():
    def chain(x):
        for _ in range(12):
            x = jnp.sin(x) * 0.5 + jnp.cos(x + 1)
            x = jnp.tanh(x * x) - jnp.sqrt(1 + x * x) / 4 + jnp.exp(-x * x) * 0.1
            x = x - x**3 / 6 + jnp.arctan(x) * 0.3 - 0.2
        return x

    x = jnp.linspace(0.0, 1.0, 4096)
    donated = weft.jit(chain, compile="blocks", donate_argnums=0).lower(x).compile()
    kept = weft.jit(chain, compile="blocks").lower(x).compile()
    assert "input_output_alias" in donated.as_text()
    # The first of the steps, which are all one executable, reads an array of the caller's.
    assert "input_output_alias" not in kept.as_text()
    assert donated.memory_analysis().temp_size_in_bytes < kept.memory_analysis().temp_size_in_bytes
    wanted = weft.jit(chain)(x)
    np.testing.assert_allclose(kept(x), wanted, rtol=1e-5, atol=1e-6)
    given = x + 0
    np.testing.assert_allclose(donated(given), wanted, rtol=1e-5, atol=1e-6)
    assert given.is_deleted() and not x.is_deleted()


def test_a_buffer_that_is_passed_twice_is_not_given_away():
    def f(a, b):
        for _ in range(10):
            a, b = jnp.sin(b) + jnp.tanh(a) * b - jnp.cos(a) * 0.5, jnp.cos(a * b) * 0.9 + a / 3
            b = b - jnp.mean(b) + jnp.sqrt(1 + a * a) * 0.1 + jnp.exp(-b * b) - jnp.arctan(a)
        return a, b

    x = jnp.linspace(0.0, 1.0, 64)
    wanted = weft.jit(f)(x, x)
    jitted = weft.jit(f, compile="blocks", donate_argnums=0)
    got = weft.jit(f, compile="blocks")(x, x)
    with pytest.raises(RuntimeError, match="donated array to be passed once"):
        jitted(x, x)
    for a, b in zip(got, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(jitted(x + 0, x)[0], wanted[0], rtol=1e-4, atol=1e-5)


def test_a_nan_within_a_program_in_steps_is_found():
    ws, x = deep_args()
    f = weft.jit(weft.grad(deep), compile="blocks")
    with weft.debug_nans(True):
        f(ws, x)
        with pytest.raises(FloatingPointError):
            f(ws, x * float("nan"))


def test_blocks_of_one_program_serve_a_longer_one():
    f = weft.jit(weft.grad(deep), compile="blocks")
    f(*deep_args(20))
    before = weft._core.cache_stats()["compiles"]
    f(*deep_args(21))
    assert weft._core.cache_stats()["compiles"] - before <= 2


def test_auto_leaves_programs_whole_that_are_small_or_quick():
    compiled = weft.jit(weft.grad(deep), compile="auto").lower(*deep_args()).compile()
    assert compiled.blocks == [] and compiled.runtime_executable() is not None
    compiled = weft.jit(lambda x: jnp.sin(x) + 1, compile="blocks").lower(1.0).compile()
    assert compiled.blocks == []


@pytest.mark.parametrize(("of_columns", "most"), [(jnp.std, 27e6), (jnp.max, 42e6)])
def test_auto_compiles_a_deep_model_in_blocks(of_columns, most):
    shape = weft.ShapeDtypeStruct((256, 256), "float32")
    f = weft.grad(lambda params, x: deep(params, x, of_columns))
    lowered = weft.jit(f).lower([shape] * 48, shape)  # the default
    compiled = lowered.compile()
    assert sum(block.graph.num_ops for block in compiled.blocks) < lowered.graph.num_ops / 10
    # What one module needs, whose kernels compute again what lies between layers: 26 MB. What the
    # derivative of a maximum compares with it is kept, besides.
    assert compiled.memory_analysis().temp_size_in_bytes < most


def test_effects_keep_a_program_whole_and_their_order():
    seen = []
    see = lambda v: seen.append(float(v))

    def layer(x, w):
        x = jnp.tanh(x @ w) + jnp.sin(x) - x.mean(0) * jnp.cos(x) / 3
        return x / jnp.sqrt(1 + x**2) + x**3 / (9 + x**4) - jnp.arctan(x) * jnp.exp(-x * x) + w[:4]

    def f(ws, x):
        for w in ws:
            weft.debug.callback(see, x.sum(), ordered=True)
            x = layer(x, w)
        return [w + x.sum() for w in ws]

    ws, x = deep_args()
    given = [w + 0 for w in ws]
    compiled = weft.jit(f, compile="blocks", donate_argnums=0).lower(given, x).compile()
    assert compiled.blocks == []
    new = compiled(given, x)
    weft.effects_barrier()
    assert all(w.is_deleted() for w in given)
    assert len(set(seen)) == len(ws)
    for total, w in zip(seen, ws, strict=True):
        np.testing.assert_allclose(total, x.sum(), rtol=1e-4, atol=1e-4)
        x = layer(x, w)
    assert np.isfinite(x).all()
    np.testing.assert_allclose(new[3], ws[3] + x.sum(), rtol=1e-4, atol=1e-4)


def test_donated_arguments_and_results_that_are_arguments():
    def f(ws, x, y):
        return [w - 0.1 * d for w, d in zip(ws, weft.grad(deep)(ws, x), strict=True)], y, ws[3]

    ws, x = deep_args()
    wanted = weft.jit(f)(ws, x, 7.0)
    given = [w + 0 for w in ws]
    got = weft.jit(f, compile="blocks", donate_argnums=0)(given, x, 7.0)
    for a, b in zip(tree_leaves(got), tree_leaves(wanted), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)
    assert given[0].is_deleted()
    assert float(got[1]) == 7.0


def test_a_wrong_way_to_compile_is_refused():
    with pytest.raises(ValueError, match="'blocks' or 'unrolled'; got 'parts'"):
        weft.jit(deep, compile="parts")


def test_a_call_in_a_trace_refuses_blocks_only():
    ws, x = deep_args(2)
    inner = {cut: weft.jit(deep, compile=cut) for cut in ("auto", "whole", "blocks")}
    for cut in ("auto", "whole"):
        weft.jit(lambda ws, x, cut=cut: inner[cut](ws, x) * 2)(ws, x)
    with pytest.raises(ValueError, match="compile= expected to be that of the outermost jit"):
        weft.jit(lambda ws, x: inner["blocks"](ws, x) * 2)(ws, x)


def test_what_stays_whole_is_compiled_once_however_it_was_to_be_cut():
    f = lambda x: jnp.arctan(x) * 1.75 + 3.5
    before = weft._core.cache_stats()["compiles"]
    for cut in ("whole", "auto", "blocks"):
        weft.jit(f, compile=cut)(jnp.ones((3, 5)))
    assert weft._core.cache_stats()["compiles"] - before <= 2  # with that of jnp.ones
