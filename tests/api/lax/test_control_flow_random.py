"""Random programs of nested loops and branches against the same program in plain Python and NumPy.

A program is a random tree of constructs; it is run by `weft.lax` and by the functions of `Plain`.
Derivatives are compared with differences in float64, reverse mode with forward mode, and vmap with
a loop over lanes.
"""

import numpy as np
import pytest
from conftest import EVERYTHING

import weft
from weft import lax, numpy as wnp

SEEDS = range(14 if EVERYTHING else 8)
STEP = 1e-6


@pytest.fixture(autouse=True)
def x64():
    with weft.enable_x64(True):
        yield


class Plain:
    """The constructs as Python."""

    xp = np

    @staticmethod
    def checkpoint(fun):
        return fun

    @staticmethod
    def cond(pred, true_fun, false_fun, *operands):
        return (true_fun if pred else false_fun)(*operands)

    @staticmethod
    def switch(index, branches, *operands):
        return branches[min(max(int(index), 0), len(branches) - 1)](*operands)

    @staticmethod
    def while_loop(cond_fun, body_fun, val):
        while cond_fun(val):
            val = body_fun(val)
        return val

    @staticmethod
    def fori_loop(lower, upper, body_fun, val, unroll=None):
        for i in range(lower, upper):
            val = body_fun(np.int32(i), val)
        return val

    @staticmethod
    def scan(f, carry, xs, length=None, reverse=False, unroll=1):
        n = length if xs is None else len(xs)
        ys = [None] * n
        for i in reversed(range(n)) if reverse else range(n):
            carry, ys[i] = f(carry, None if xs is None else xs[i])
        # The type of what is stacked, for loops without iterations.
        return carry, np.stack(ys) if n else np.zeros((0, *SHAPES["v"]))


class Compiled:
    """The constructs of weft."""

    xp = wnp
    checkpoint = staticmethod(weft.checkpoint)
    cond, switch = lax.cond, lax.switch
    while_loop, fori_loop, scan = lax.while_loop, lax.fori_loop, lax.scan


SHAPES = {"v": (3,), "s": (), "n": (), "unused": (2,)}
DIFFERENTIABLE = ("v", "s", "unused")


def state(rng):
    return {
        "v": rng.normal(size=3),
        "s": rng.normal(),
        "n": np.int32(rng.integers(-3, 4)),
        "unused": rng.normal(size=2),
    }


# ---- Programs: nested tuples


def program(rng, depth):
    """A few statements; those that hold programs have at most `depth` levels of them."""
    return tuple(statement(rng, depth) for _ in range(int(rng.integers(1, 4))))


def statement(rng, depth):
    kinds = ["vector", "scalar", "mixed", "integer", "closure", "matrix"]
    if depth:
        kinds += ["scan", "fori", "while", "cond", "switch"] * 2 + ["remat"]
    kind = str(rng.choice(kinds))
    number = float(np.round(rng.uniform(0.2, 0.9), 2))
    if kind in ("vector", "scalar", "mixed", "integer", "closure", "matrix"):
        return kind, number
    if kind == "remat":
        return kind, program(rng, depth - 1)
    if kind == "scan":
        length = int(rng.choice([0, 1, 2, 3, 5]))
        reads = bool(rng.integers(2))
        unroll = int(rng.choice([1, 1, 2, 8]))
        return kind, length, reads, bool(rng.integers(2)), unroll, program(rng, depth - 1)
    if kind == "fori":
        return kind, int(rng.integers(0, 4)), int(rng.choice([1, 2])), program(rng, depth - 1)
    if kind == "while":
        return kind, int(rng.integers(0, 4)), number, program(rng, depth - 1)
    count = 2 if kind == "cond" else int(rng.integers(1, 4))
    by = str(rng.choice(["s", "n"]))
    return kind, by, number, tuple(program(rng, depth - 1) for _ in range(count))


def run(api, statements, val, env):
    """Runs a program on a state; `env` is a vector that nested functions close over."""
    for one in statements:
        val = STATEMENTS[one[0]](api, val, env, *one[1:])
    return val


def vector(api, val, env, a):
    return {**val, "v": api.xp.sin(val["v"] * a + val["s"])}


def scalar(api, val, env, a):
    return {**val, "s": api.xp.tanh(val["s"] * a + (val["v"] * val["v"]).sum() * 0.1)}


def mixed(api, val, env, a):
    return {**val, "v": api.xp.sin(val["v"] * val["s"] * a), "s": val["s"] + a * val["v"][0]}


def integer(api, val, env, a):
    return {**val, "n": (val["n"] * 3 + 1) % 5 - 2}


def closure(api, val, env, a):
    return {**val, "v": val["v"] + a * env, "s": val["s"] - a * api.xp.sin(env[1] * val["s"])}


def matrix(api, val, env, a):
    return {**val, "v": api.xp.tanh(val["v"] @ (MATRIX * val["s"]) + a * (MATRIX @ env))}


MATRIX = np.array([[0.3, -0.6, 0.2], [1.1, 0.4, -0.5], [-0.7, 0.1, 0.9]])


def scan(api, val, env, length, reads, reverse, unroll, inner):
    xs = api.xp.outer(np.linspace(-1.0, 1.0, length), env) if reads else None

    def body(carry, x):
        # Products that the compiled program moves out of the loop.
        weights = MATRIX * env
        carry = run(api, inner, carry, env if x is None else env * (x @ weights))
        return carry, api.xp.sin(carry["v"] + carry["s"]) @ weights

    val, ys = api.scan(
        body, val, xs, length=None if reads else length, reverse=reverse, unroll=unroll
    )
    weights = np.linspace(0.5, 1.0, length)[:, None]
    return {**val, "v": val["v"] + api.xp.tanh((ys * weights).sum(0))}


def fori(api, val, env, trips, unroll, inner):
    return api.fori_loop(
        -1, trips - 1, lambda i, val: run(api, inner, val, env + 0.1 * i), val, unroll=unroll
    )


def while_(api, val, env, trips, bound, inner):
    def goes_on(pair):
        i, val = pair
        return (i < trips) & (val["s"] * val["s"] + env[0] < bound + 2)

    return api.while_loop(goes_on, lambda p: (p[0] + 1, run(api, inner, p[1], env)), (0, val))[1]


def cond(api, val, env, by, bound, branches):
    pred = val["s"] > bound - 0.5 if by == "s" else val["n"] > 0
    functions = [lambda val, inner=inner: run(api, inner, val, env) for inner in branches]
    return api.cond(pred, *functions, val)


def switch(api, val, env, by, bound, branches):
    index = val["n"] if by == "n" else api.xp.floor(val["s"] * 2).astype("int32")
    functions = [lambda val, inner=inner: run(api, inner, val, env) for inner in branches]
    return api.switch(index, functions, val)


def remat(api, val, env, inner):
    return api.checkpoint(lambda val: run(api, inner, val, env))(val)


STATEMENTS = {
    "vector": vector, "scalar": scalar, "mixed": mixed, "integer": integer, "closure": closure,
    "matrix": matrix,
    "scan": scan, "fori": fori, "while": while_, "cond": cond, "switch": switch,
    "remat": remat,
}  # fmt: skip


def contains(statements, kind):
    """Whether a program has a statement of this kind, on any level."""
    if isinstance(statements, tuple):
        return any(x == kind or contains(x, kind) for x in statements)
    return False


# ---- What is compared


def random_program(seed):
    """(program, state, env) of a seed; every construct stands outermost for some seed."""
    rng = np.random.default_rng(seed)
    kinds = ["scan", "fori", "while", "cond", "switch", "remat"]
    first = statement(rng, 2)
    while first[0] != kinds[seed % len(kinds)]:
        first = statement(rng, 2)
    return (*program(rng, 2), first), state(rng), rng.normal(size=3)


def loss_of(api, statements):
    """(float inputs) -> scalar, as a function of v, s and env."""

    def loss(v, s, env, n):
        out = run(api, statements, {"v": v, "s": s, "n": n, "unused": env[:2]}, env)
        return (out["v"] * np.array([1.0, -2.0, 0.5])).sum() + out["s"] + 0.1 * out["n"]

    return loss


def inputs(seed):
    statements, val, env = random_program(seed)
    return statements, (val["v"], val["s"], env), val["n"]


@pytest.mark.parametrize("seed", SEEDS)
def test_values(seed):
    statements, val, env = random_program(seed)
    expected = run(Plain, statements, val, env)
    eager = run(Compiled, statements, val, wnp.asarray(env))
    staged = weft.jit(lambda val, env: run(Compiled, statements, val, env))(val, env)
    for name in SHAPES:
        np.testing.assert_allclose(eager[name], expected[name], rtol=1e-9, err_msg=name)
        np.testing.assert_allclose(staged[name], expected[name], rtol=1e-9, err_msg=name)
        assert staged[name].dtype == np.asarray(expected[name]).dtype


def along(rng, xs):
    return tuple(rng.normal(size=np.shape(x)) for x in xs)


def moved(xs, direction, step):
    return tuple(x + step * d for x, d in zip(xs, direction, strict=True))


def difference(f, xs, direction):
    """The derivative of f along a direction, by central differences."""
    plus, minus = (f(*moved(xs, direction, step)) for step in (STEP, -STEP))
    return (np.asarray(plus) - np.asarray(minus)) / (2 * STEP)


@pytest.mark.parametrize("seed", SEEDS)
def test_derivatives(seed):
    statements, xs, n = inputs(seed)
    plain, compiled = (loss_of(api, statements) for api in (Plain, Compiled))
    direction = along(np.random.default_rng(seed + 1000), xs)
    f = lambda *xs: compiled(*xs, n)
    slope = difference(lambda *xs: plain(*xs, n), xs, direction)

    def forward(*xs):
        return weft.jvp(f, xs, direction)[1]

    np.testing.assert_allclose(forward(*xs), slope, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(weft.jit(forward)(*xs), slope, rtol=1e-5, atol=1e-7)
    curvature = difference(lambda *xs: weft.jit(forward)(*xs), xs, direction)
    twice = weft.jit(lambda *xs: weft.jvp(forward, xs, direction)[1])(*xs)
    np.testing.assert_allclose(twice, curvature, rtol=1e-4, atol=1e-5)

    gradient = weft.grad(f, (0, 1, 2))
    if contains(statements, "while") and not has_reverse_mode(gradient, xs):
        return

    def dot(gs):
        return sum((g * d).sum() for g, d in zip(gs, direction, strict=True))

    np.testing.assert_allclose(dot(gradient(*xs)), slope, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(dot(weft.jit(gradient)(*xs)), slope, rtol=1e-5, atol=1e-7)
    second = weft.jit(weft.grad(lambda *xs: dot(gradient(*xs)), (0, 1, 2)))
    np.testing.assert_allclose(dot(second(*xs)), curvature, rtol=1e-4, atol=1e-5)
    forward_over_reverse = weft.jit(lambda *xs: dot(weft.jvp(gradient, xs, direction)[1]))
    np.testing.assert_allclose(forward_over_reverse(*xs), curvature, rtol=1e-4, atol=1e-5)


def has_reverse_mode(gradient, xs):
    """A while that tangents pass through has none; where they do not, it does no harm."""
    try:
        gradient(*xs)
    except NotImplementedError as error:
        assert "while_loop has no reverse-mode derivative" in str(error)
        return False
    return True


# Which of v, s, env and n have lanes.
PATTERNS = {
    "v": (0, None, None, None),
    "s": (None, 0, None, None),
    "env": (None, None, 1, None),
    "n": (None, None, None, 0),
    "all": (1, 0, 0, 0),
}


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("seed", SEEDS)
def test_vmap(seed, pattern):
    statements, (v, s, env), n = inputs(seed)
    rng = np.random.default_rng(seed + 2000)
    lanes = 4
    single = (v, s, env, n)
    axes = PATTERNS[pattern]
    batched, per_lane = [], []
    for x, axis in zip(single, axes, strict=True):
        if axis is None:
            batched.append(x)
            per_lane.append([x] * lanes)
            continue
        values = [np.int32(rng.integers(-3, 4)) if x is n else rng.normal(size=np.shape(x))
                  for _ in range(lanes)]  # fmt: skip
        batched.append(np.stack(values, axis))
        per_lane.append(values)
    plain, compiled = (loss_of(api, statements) for api in (Plain, Compiled))
    expected = [plain(*lane) for lane in zip(*per_lane, strict=True)]
    mapped = weft.vmap(compiled, axes)
    np.testing.assert_allclose(mapped(*batched), expected, rtol=1e-9)
    if pattern != "all":
        return
    slope = lambda *xs: weft.jvp(lambda *at: compiled(*at, xs[3]), xs[:3], xs[:3])[1]
    slopes = weft.jit(weft.vmap(slope, axes))
    wanted = [
        difference(lambda *xs, k=k: plain(*xs, k), (v, s, e), (v, s, e))
        for v, s, e, k in zip(*per_lane, strict=True)
    ]
    np.testing.assert_allclose(slopes(*batched), wanted, rtol=1e-5, atol=1e-7)
    if contains(statements, "while"):
        return

    def total(*xs):
        return mapped(*xs, batched[3]).sum()

    of_lanes = weft.jit(weft.vmap(lambda *xs: weft.grad(compiled, (0, 1, 2))(*xs), axes))
    of_total = weft.jit(weft.grad(total, (0, 1, 2)))(*batched[:3])
    for one, axis, x in zip(of_lanes(*batched), axes[:3], batched[:3], strict=True):
        got = of_total[[x is b for b in batched].index(True)]
        np.testing.assert_allclose(got, np.moveaxis(one, 0, axis), rtol=1e-9, atol=1e-12)
    along_values = sum((g * x).sum() for g, x in zip(of_total, batched[:3], strict=True))
    np.testing.assert_allclose(along_values, np.sum(wanted), rtol=1e-5, atol=1e-6)
