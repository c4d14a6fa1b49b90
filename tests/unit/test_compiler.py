"""weft.compiler: what takes a program; figures worked out by hand; graphs as functions."""

import numpy as np
import pytest

import weft
import weft.numpy as wnp
from weft import compiler, lax
from weft.errors import ArgumentTypeError, AttributeValueError, ParseError

N = 6
X = np.linspace(-1, 1, N).astype(np.float32)
F32 = 4  # bytes


def sin_cos(x):
    return wnp.sin(x) * wnp.cos(x)


def counts(a):
    """ops, critical path, levels, width"""
    return a.ops, a.critical_path, a.levels, a.width


# What may stand for a program.


PROGRAMS = {
    "graph": lambda: weft.jit(sin_cos).trace(X).graph,
    "closed jaxpr": lambda: weft.make_jaxpr(sin_cos)(X),
    "jaxpr": lambda: weft.make_jaxpr(sin_cos)(X).jaxpr,
    "traced": lambda: weft.jit(sin_cos).trace(X),
    "lowered": lambda: weft.jit(sin_cos).lower(X),
    "compiled": lambda: weft.jit(sin_cos).lower(X).compile(),
    "parsed": lambda: compiler.parse(str(weft.make_jaxpr(sin_cos)(X))),
}
CALLS = {
    "function": (sin_cos, X),
    "abstract argument": (sin_cos, weft.ShapeDtypeStruct((N,), "float32")),
    "jitted": (weft.jit(sin_cos), X),
}


@pytest.mark.parametrize("form", [*CALLS, *PROGRAMS])
def test_programs(form):
    program = CALLS[form] if form in CALLS else (PROGRAMS[form](),)
    a = compiler.analyze(*program)
    assert counts(a) == (3, 2, 2, 2)
    assert (a.flops, a.transcendentals, a.bytes) == (N, 2 * N, 7 * N * F32)
    fused = compiler.optimize(*program, passes=["fuse"])
    assert isinstance(fused, compiler.Graph) and fused.op_names() == ["fusion"]
    assert "fusion[" in str(fused) and "sin a" in str(fused)
    np.testing.assert_allclose(fused(X)[0], sin_cos(X), rtol=1e-6)


@pytest.mark.parametrize("form", PROGRAMS)
def test_programs_are_emitted(form):
    program = PROGRAMS[form]()
    assert "stablehlo.sine" in compiler.emit_stablehlo(program)
    assert compiler.fusion_report(program) == []


def test_functions_with_static_arguments_and_trees():
    power = weft.jit(lambda x, n: x**n, static_argnames="n")
    assert compiler.optimize(power, X, n=3, passes=[]).op_names() == ["integer_pow"]
    nested = compiler.analyze(lambda p, *, scale: p["x"] * scale, {"x": X}, scale=X)
    assert (nested.ops, nested.input_bytes) == (1, 2 * N * F32)


def test_closed_over_arrays_are_inputs():
    w = wnp.asarray(X)
    for program in [(lambda x: x * w, X), (weft.make_jaxpr(lambda x: x * w)(X),)]:
        a = compiler.analyze(*program)
        assert (a.ops, a.input_bytes, a.peak_bytes) == (1, 2 * N * F32, 3 * N * F32)


def test_what_is_no_program():
    graph = weft.jit(sin_cos).trace(X).graph
    for f in (compiler.analyze, compiler.optimize):
        with pytest.raises(ArgumentTypeError, match="expected a graph, .*; got int"):
            f(3)
        with pytest.raises(ArgumentTypeError, match="expected no arguments for a Graph"):
            f(graph, X)
    with pytest.raises(ArgumentTypeError, match="emit_stablehlo expected .*; got function"):
        compiler.emit_stablehlo(sin_cos)
    with pytest.raises(TypeError, match="parse expected a program as text; got int"):
        compiler.parse(3)
    with pytest.raises(ArgumentTypeError, match=r"passes go by name: passes=\[\.\.\.\]"):
        compiler.optimize(graph, ["cse"])
    with pytest.raises(TypeError, match="passes: expected a list of names; got 'cse'"):
        compiler.optimize(graph, passes="cse")
    with pytest.raises(TypeError, match="only: expected a list of names"):
        compiler.optimize(graph, only=[3])
    with pytest.raises(AttributeValueError, match="expected one of strip_rules, "):
        compiler.optimize(sin_cos, X, passes=["cs"])


# Figures.


def test_chain_and_independent_ops():
    chain = compiler.analyze(lambda x: wnp.exp(wnp.sin(wnp.cos(x))), X)
    assert counts(chain) == (3, 3, 3, 1)
    # One operand and one result at a time.
    assert chain.peak_bytes == 2 * N * F32
    wide = compiler.analyze(lambda x: (wnp.sin(x), wnp.cos(x), wnp.exp(x), -x), X)
    assert counts(wide) == (4, 1, 1, 4)
    assert wide.peak_bytes == 5 * N * F32 and wide.output_bytes == 4 * N * F32


def test_peak_is_of_values_that_live():
    # x | x a | x a b | a b c: after b nothing needs x.
    assert compiler.analyze(sin_cos, X).peak_bytes == 3 * N * F32
    # With x as an output it lives to the end: x a b c.
    assert compiler.analyze(lambda x: (sin_cos(x), x), X).peak_bytes == 4 * N * F32

    def outer(x, y):  # x y | m: the product is the peak
        return wnp.sum(x[:, None] * y[None, :])

    n = 50
    x = np.ones(n, np.float32)
    a = compiler.analyze(outer, x, x)
    assert n * n * F32 <= a.peak_bytes <= 3 * n * n * F32 + 4 * n * F32


def test_nothing_to_do():
    a = compiler.analyze(lambda x: x, X)
    assert counts(a) == (0, 0, 0, 0)
    assert (a.flops, a.bytes, a.peak_bytes) == (0, 0, N * F32)
    assert a.by_op == {} and a.by_line == {} and "ops" in str(a)
    b = compiler.analyze(lambda x, unused: wnp.sin(x), X, np.ones(1000, np.float32))
    assert b.peak_bytes == 2 * N * F32 and b.input_bytes == (N + 1000) * F32


def test_numbers_in_the_program_are_neither_ops_nor_memory():
    a = compiler.analyze(lambda x: x * 2.0 + 1.0, X)
    assert counts(a) == (2, 2, 2, 1)
    assert (a.flops, a.bytes, a.peak_bytes) == (2 * N, 4 * N * F32, 2 * N * F32)


def test_products():
    m, k, n = 3, 5, 7
    a = compiler.analyze(wnp.dot, np.ones((m, k), np.float32), np.ones((k, n), np.float32))
    assert a.flops == 2 * m * k * n and a.by_op == {"dot_general": 1}
    assert a.bytes == (m * k + k * n + m * n) * F32 == a.peak_bytes


@pytest.mark.parametrize(("power", "products"), [(2, 1), (3, 2), (4, 2), (7, 4), (8, 3), (-2, 2)])
def test_powers_are_products(power, products):
    assert compiler.analyze(lambda x: x**power, X).flops == products * N


@pytest.mark.parametrize("depth", [1, 3])
def test_calls_count_as_their_ops(depth):
    f = sin_cos
    for _ in range(depth):
        f = weft.jit(f)
    a = compiler.analyze(weft.make_jaxpr(lambda x: -f(x))(X))
    b = compiler.analyze(lambda x: -sin_cos(x), X)
    assert counts(a) == counts(b) == (4, 3, 3, 2)
    assert (a.flops, a.bytes, a.peak_bytes) == (b.flops, b.bytes, b.peak_bytes)
    assert a.by_op == b.by_op == {"sin": 1, "cos": 1, "mul": 1, "neg": 1}


def test_an_argument_that_outlives_the_call_stays():
    inner = weft.jit(sin_cos)

    def after(x):
        return inner(x) + x

    assert compiler.analyze(after, X).peak_bytes == 4 * N * F32
    assert compiler.analyze(lambda x: sin_cos(x) + x, X).peak_bytes == 4 * N * F32


def test_calls_of_calls_are_looked_at_once():
    f = weft.jit(wnp.sin)
    for _ in range(60):
        f = weft.jit(lambda x, f=f: f(f(x)))
    a = compiler.analyze(f, X)
    assert a.ops == a.critical_path == a.levels == 2**60
    assert a.transcendentals == N * 2**60 and a.width == 1 and a.peak_bytes == 2 * N * F32


def test_scan_counts_its_length():
    def f(x):
        return lax.scan(lambda c, _: (wnp.sin(c) * c, None), x, None, length=10)[0]

    a = compiler.analyze(f, X)
    assert counts(a) == (20, 20, 2, 1)
    assert (a.flops, a.transcendentals) == (10 * N, 10 * N)
    assert a.by_op == {"sin": 10, "mul": 10}
    # The carry that goes in, the one that comes out, and sin(c) inside.
    assert a.peak_bytes == 3 * N * F32


def test_a_long_loop_costs_nothing_to_analyze():
    a = compiler.analyze(lambda x: lax.fori_loop(0, 10**9, lambda i, c: c + 1.0, x), X)
    assert a.ops >= 10**9 and a.flops >= 10**9 * N


def test_while_counts_one_round():
    a = compiler.analyze(lambda x: lax.while_loop(lambda c: c[0] < 3.0, lambda c: wnp.sin(c), x), X)
    assert a.transcendentals == N and a.by_op["sin"] == 1 and a.by_op["lt"] == 1


def test_cond_counts_the_branch_that_has_most():
    def f(p, x):
        return lax.cond(p, lambda x: wnp.sin(wnp.sin(x)), lambda x: x + x, x)

    a = compiler.analyze(f, True, X)
    assert a.transcendentals == 2 * N and a.flops >= N
    assert a.by_op["sin"] == 2 and a.by_op["add"] == 1


def test_fusions_are_one_op_without_memory_between():
    def f(x):
        return wnp.exp(wnp.sin(x) * wnp.cos(x))

    plain = compiler.analyze(f, X)
    fused = compiler.analyze(compiler.optimize(f, X, passes=["fuse"]))
    assert counts(fused) == (1, 1, 1, 1) and fused.by_op == {"fusion": 1}
    assert (fused.flops, fused.transcendentals) == (plain.flops, plain.transcendentals)
    assert fused.bytes == fused.peak_bytes == 2 * N * F32 < plain.peak_bytes


def test_by_line():
    def f(x):
        y = wnp.sin(x)  # one
        return y * y + y  # two

    first = f.__code__.co_firstlineno
    a = compiler.analyze(f, X)
    assert a.by_line == {f"{__file__}:{first + 2}": 2, f"{__file__}:{first + 1}": 1}
    assert a.cost_by_line[f"{__file__}:{first + 1}"] == {
        "flops": 0,
        "transcendentals": N,
        "bytes": 2 * N * F32,
    }
    assert a.cost_by_op["mul"]["flops"] == N and sum(a.by_op.values()) == a.ops == 3
    assert compiler.analyze(compiler.parse(str(weft.make_jaxpr(f)(X)))).by_line == {"<unknown>": 3}


def test_totals_are_sums():
    def f(w, x):
        return wnp.sum(wnp.tanh(x @ w) ** 2)

    a = compiler.analyze(weft.grad(f), np.ones((3, 4), np.float32), np.ones((5, 3), np.float32))
    for name in ("flops", "transcendentals", "bytes"):
        for part in (a.cost_by_op, a.cost_by_line):
            assert sum(cost[name] for cost in part.values()) == getattr(a, name)
    text = str(a)
    for figure in (a.flops, a.bytes, a.peak_bytes):
        assert f"{figure:,}" in text
    assert repr(a) == text and "dot_general" in text and __file__ in text


# Graphs as functions.

TEXT = (
    "{ lambda ; a:f32[3] b:f32[3]. let c:f32[3] = mul a b d:f32[] = reduce_sum[axes=(0,)] c "
    "in (d, c) }"
)
A, B = np.float32([1, 2, 3]), np.float32([4, 5, 6])


def test_a_parsed_graph_runs():
    graph = compiler.parse(TEXT)
    total, product = graph(A, B)
    assert isinstance(total, weft.Array) and total == 32.0
    np.testing.assert_array_equal(product, [4, 10, 18])
    np.testing.assert_array_equal(compiler.optimize(graph)(A, wnp.asarray(B))[1], [4, 10, 18])


def test_programs_that_jax_prints_are_read():
    """As make_jaxpr of JAX 0.10.2 prints them: attributes without effect, that weft has not."""
    text = """{ lambda ; a:f32[3,3]. let
        b:f32[3,3] = jit[
          name=tril
          jaxpr={ lambda ; a:f32[3,3]. let
              c:i32[3,3] = iota[dimension=0 dtype=int32 shape=(3, 3) sharding=None]
              d:i32[3,3] = add c 0:i32[]
              e:i32[3,3] = iota[dimension=1 dtype=int32 shape=(3, 3) sharding=None]
              f:bool[3,3] = ge d e
              g:f32[3,3] = broadcast_in_dim 0.0:f32[]
              b:f32[3,3] = select_n f g a
            in (b,) }
        ] a
        h:f32[] = reduce_sum[axes=(0, 1) out_sharding=None] b
        i:f32[9] = reshape[dimensions=None new_sizes=(np.int64(9),) sharding=None] b
      in (h, i) }"""
    x = np.arange(1, 10, dtype=np.float32).reshape(3, 3)
    total, flat = compiler.parse(text)(x)
    assert total == np.tril(x).sum()
    np.testing.assert_array_equal(flat, np.tril(x).ravel())
    with pytest.raises(ParseError, match=r'expected "\)" after an integer of NumPy'):
        compiler.parse(text.replace("int64(9)", "int64(9"))
    for other in ("out_sharding=(None,)", "out_sharding=0", "out_sharding"):
        with pytest.raises(ParseError, match=r"\[reduce_sum\] has no attribute named out_sharding"):
            compiler.parse(text.replace("out_sharding=None", other))


def test_a_graph_composes():
    graph = compiler.parse(TEXT)
    assert weft.jit(graph)(A, B)[0] == 32.0
    np.testing.assert_array_equal(weft.grad(lambda a, b: graph(a, b)[0])(A, B), B)
    np.testing.assert_array_equal(weft.jit(weft.grad(lambda a: graph(a, B)[0]))(A), B)
    np.testing.assert_array_equal(weft.vmap(graph)(np.stack([A, B]), np.stack([B, B]))[0], [32, 77])
    assert "mul a b" in str(weft.make_jaxpr(graph)(A, B))


def test_constvars_come_first_and_numbers_take_the_type():
    graph = compiler.parse("{ lambda a:f32[] ; b:f32[]. let c:f32[] = sub a b in (c,) }")
    assert graph(5, 3.0) == (2.0,)
    assert graph(wnp.float32(5), 3)[0] == 2.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "the graph expected 2 arrays, one per input; got 0"),
        ((A, B, A), "the graph expected 2 arrays, one per input; got 3"),
        ((A, np.ones(4, np.float32)), r"input 1 of type float32\[3\]; got float32\[4\]"),
        ((A.astype(np.int32), B), r"input 0 of type float32\[3\]; got int32\[3\]"),
        ((A, "x"), r"input 1 of type float32\[3\]; got str: 'x'"),
        ((A, None), r"input 1 of type float32\[3\]; got NoneType"),
        ((A, 3.0), r"input 1 of type float32\[3\]; got ~?float32\[\]"),
    ],
)
def test_arguments_that_do_not_fit(arguments, message):
    with pytest.raises(ArgumentTypeError, match=message):
        compiler.parse(TEXT)(*arguments)
    with pytest.raises(TypeError):
        compiler.parse(TEXT)(a=A, b=B)
