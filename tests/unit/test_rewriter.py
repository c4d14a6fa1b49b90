"""What the passes promise of any program: they come to an end, and obey their options."""

import pytest
import random_programs
from op_table import SAMPLE, all_rows

import weft
import weft.numpy as wnp
from weft import compiler, lax

PASSES = [
    "strip_rules", "lower_keys", "expand", "inline", "fold", "scan_products", "simplify", "cse",
    "canonicalize", "dce", "fuse",
]  # fmt: skip


@pytest.fixture(autouse=True)
def x64():
    with weft.enable_x64(True):
        yield


# ---- A second walk finds nothing


def check_second_walk(graph):
    for keep in (True, False):
        once = compiler.optimize(graph, keep_derivatives=keep)
        stats = []
        twice = compiler.optimize(once, keep_derivatives=keep, stats=stats)
        fired = [s["rewrites"] for s in stats if s["rewrites"]]
        assert not fired and twice == once, f"{fired} in\n{once}\nof\n{graph}"


def row_programs(row):
    """Cases of a row: of arguments, of constants, and twice with operands exchanged."""
    few = [d for d in row.dtypes if d in SAMPLE] or row.dtypes
    cases = [xs for d, xs in row.cases() if d in few]
    yield lambda *args: [row.call(*xs) for xs in args], cases
    yield lambda: [row.call(*xs) for xs in cases], []
    alike = [xs for xs in cases if len({(x.shape, x.dtype) for x in xs}) == 1]
    if alike:
        yield lambda *args: [(row.call(*xs), row.call(*xs[::-1])) for xs in args], alike


@pytest.mark.parametrize("row", all_rows(), ids=lambda r: r.id)
def test_a_second_walk_finds_nothing_in_rows(row):
    for f, cases in row_programs(row):
        check_second_walk(weft.jit(f).trace(*cases).graph)


@pytest.mark.parametrize("start", range(0, 200, 40))
def test_a_second_walk_finds_nothing_in_random_programs(start):
    for seed in range(start, start + 40):
        x, levels = random_programs.generate(seed).build(weft)
        check_second_walk(weft.jit(levels[-1][1]).trace(x).graph)


# ---- Commutativity

COMMUTATIVE = {"add", "add_any", "mul", "max", "min", "and", "or", "xor", "eq", "ne", "mulhi"}


def binary_ops():
    ops = [op for op in compiler.registry() if op["elementwise"] and not op["attrs"]]
    return [op["name"] for op in ops if op["num_operands"] == 2]


@pytest.mark.parametrize("op", binary_ops())
def test_exchanged_operands_meet_where_the_op_commutes(op):
    seen = 0
    for dtype in ("f32", "i32", "bool", "c64"):
        for out in (dtype, "bool", "c64"):
            text = (
                f"{{ lambda ; a:{dtype}[2] b:{dtype}[2]. let c:{out}[2] = {op} a b; "
                f"d:{out}[2] = {op} b a in (c, d) }}"
            )
            try:
                graph = compiler.parse(text)
            except weft.errors.WeftError:
                continue
            seen += 1
            merged = compiler.optimize(graph, passes=["cse"])
            assert str(merged).count(f" = {op} ") == (1 if op in COMMUTATIVE else 2), merged
            assert compiler.optimize(graph, passes=["cse"], disable=["cse"]) == graph
            break
    assert seen, f"no dtype for {op}"


# ---- Only uses


def fired(graph, **options):
    stats = []
    result = compiler.optimize(graph, stats=stats, verify=True, **options)
    hits = {}
    for s in stats:
        for name, count in s["rewrites"].items():
            hits[name] = hits.get(name, 0) + count
    return result, hits


TWICE = "b:f32[3] = reduce_max[axes=(1,)] a; c:f32[] = reduce_max[axes=(0,)] b"
MEETS = {
    "the only use": (f"{TWICE} in (c,)", 1),
    "an output": (f"{TWICE} in (c, b)", 0),
    "another op": (f"{TWICE}; d:f32[3] = sin b in (c, d)", 0),
    "an op that nothing needs": (f"{TWICE}; d:f32[3] = sin b; e:f32[3] = cos d in (c,)", 1),
    "a use that goes": (f"{TWICE}; d:f32[3] = mul b 0:f32[]; e:f32[3] = sub b b in (c,)", 1),
    # What else uses b is merged with what uses it already, or replaced by something else.
    "an equal use": (f"{TWICE}; d:f32[] = reduce_max[axes=(0,)] b in (c, d)", 1),
    "a use that is rewritten away": (f"{TWICE}; d:f32[3] = select_n p b b in (c,)", 1),
    "a use by what becomes a literal": (
        f"{TWICE}; d:bool[3] = eq b b; e:f32[3] = broadcast_in_dim[shape=(3,) "
        "broadcast_dimensions=()] 2.0:f32[]; f:f32[3] = mul e 2.0:f32[] in (c, f)",
        1,
    ),
}


@pytest.mark.parametrize("case", MEETS)
def test_what_needs_an_only_use_counts_uses(case):
    body, hits = MEETS[case]
    graph = compiler.parse(f"{{ lambda ; a:f32[3,4] p:bool[]. let {body} }}")
    result, found = fired(graph)
    assert found.get("reduce_max_twice", 0) == hits, result


def test_a_use_that_goes_later_is_found_by_another_walk():
    """The use stands after the op that asks for it."""
    graph = compiler.parse(
        f"{{ lambda ; a:f32[3,4] p:bool[]. let {TWICE}; d:f32[3] = integer_pow[y=1] b; "
        "e:f32[3] = sub d b; f:f32[3] = neg e; g:f32[3] = neg f; h:f32[3] = integer_pow[y=0] g "
        "in (c, h) }"
    )
    result, found = fired(graph, passes=["canonicalize"])
    assert found["reduce_max_twice"] == 1, result


# ---- Options


def whole_program():
    """Rewrites of all kinds, at the top and in functions, loops and branches."""

    @weft.custom_jvp
    def ruled(x):
        return wnp.sin(x) * 2

    ruled.defjvps(lambda t, y, x: t * y)

    @weft.jit
    def inner(x, unused):
        return wnp.cos(x), x

    def body(x):
        k = wnp.float32(2.0) * lax.neg(wnp.float32(3.0))
        y = ruled(lax.neg(lax.neg(x * 3.5)) + x * 3.5)
        y, _ = inner(y, x)
        return lax.stop_gradient(y * 5.5) + k

    def f(x):
        y = body(x)
        y, _ = lax.scan(lambda c, _: (body(c), None), y, length=3)
        y = lax.cond(y[0] > 0, body, lambda x: x, y)
        rows = wnp.outer(y, lax.igamma(y, y))
        y, _ = lax.scan(lambda c, row: (c * wnp.tanh(row @ rows), None), y, rows)
        seed = (y[0] > 0).astype("int32")
        y = wnp.where(weft.random.key(seed) == weft.random.key(seed + 1), y, x)
        return weft.jit(lambda z: body(z) * body(z + 1))(y)

    return weft.jit(f).trace(wnp.ones(3, "float32")).graph


@pytest.mark.parametrize("name", PASSES)
def test_every_pass_obeys_disable_and_only(name):
    graph = whole_program()
    every = [rewrite for _, rewrite, _ in compiler.rewrites()]
    _, hits = fired(graph, passes=[name])
    assert hits
    for rewrite in hits:
        _, left = fired(graph, passes=[name], disable=[rewrite])
        assert rewrite not in left
        _, alone = fired(graph, passes=[name], only=[rewrite])
        assert set(alone) == {rewrite}
    unused = next(r for r in every if r not in hits)
    untouched, none = fired(graph, passes=[name], only=[unused])
    assert not none
    nothing, none = fired(graph, passes=[name], disable=every)
    assert not none
    if name != "dce":  # what nothing needs goes all the same
        assert untouched == nothing == graph


def test_all_passes_together_obey_disable():
    graph = whole_program()
    every = [rewrite for _, rewrite, _ in compiler.rewrites()]
    result, hits = fired(graph, passes=PASSES, disable=every)
    assert not hits
    assert result == compiler.optimize(graph, passes=["dce"], disable=every)


def test_statistics_count_regions():
    """Each distinct graph once, however deep it stands and however often it is used."""
    negs = lambda x: lax.neg(lax.neg(x))
    inner = lambda x: lax.cond(x > 0, lambda x: negs(wnp.sin(x)), lambda x: negs(wnp.cos(x)), x)

    def f(x):
        y, _ = lax.scan(lambda c, _: (negs(inner(c)), None), negs(x), length=3)
        z, _ = lax.scan(lambda c, _: (negs(inner(c)), None), negs(y * 2), length=3)
        return z

    graph = weft.jit(f).trace(1.0).graph
    stats = []
    compiler.optimize(graph, passes=["simplify"], only=["neg_neg"], stats=stats)
    assert stats[0]["rewrites"] == {"neg_neg": 2 + 1 + 2}
    graph = weft.jit(lambda x: lax.scan(lambda c, _: (negs(inner(c)), None), x, length=3)[0])
    compiler.optimize(graph.trace(1.0).graph, passes=["simplify", "dce"], stats=stats)
    assert stats[1]["ops_before"] - stats[2]["ops_after"] == 2 * (1 + 2)


# ---- Phases


def test_what_keeps_derivatives():
    graph = whole_program()
    kept, hits = fired(graph, keep_derivatives=True)
    assert "strip_rule" not in hits and "stop_gradient" not in hits
    text = str(kept)
    assert "custom_jvp_call" in text and "stop_gradient" in text
    _, hits = fired(graph)
    assert "strip_rule" in hits and "stop_gradient" in hits
    x = wnp.asarray([0.5, -0.25, 2.0], "float32")
    gradient = lambda g: weft.grad(lambda x: g(x)[0].sum())(x)
    assert gradient(kept).tolist() == gradient(graph).tolist()


@pytest.mark.parametrize(
    "options", [{"passes": ["strip_rules"]}, {"only": ["stop_gradient"]}, {"only": ["strip_rule"]}]
)
def test_what_changes_derivatives_is_refused_by_name(options):
    with pytest.raises(weft.errors.WeftError, match="keeps derivatives"):
        compiler.optimize(whole_program(), keep_derivatives=True, **options)
    compiler.optimize(whole_program(), keep_derivatives=True, disable=["stop_gradient"])
