"""Loops that do the same to many small values: arrays take their place, with the same bits."""

import re

import numpy as np
import pytest

import weft
import weft.numpy as wnp
from weft import compiler, lax

STEPS = 5
# What becomes of a value x. Beside it: y and z are values of other places; p is one in no order; q
# is one of the other list; k is a number of its own; c is a constant of the loop, r a slice of its
# own. In these XLA finds no product and sum to make one operation of, which would round once.
EXACT = [
    "k * wnp.sin(y)", "wnp.where(x > y, z, x * k)", "wnp.tanh(x + y - z)", "wnp.abs(x) + p - q",
    "wnp.exp(-y)", "wnp.maximum(x, y * 0.5)", "x / (2 + wnp.cos(z))", "(x + q) * (q + y)",
    "wnp.minimum(x, z) + r", "wnp.floor(x + y)", "-z + c", "c * wnp.log1p(wnp.abs(x))", "x",
]  # fmt: skip
ROUNDED = [
    "x * 0.999 + k * wnp.sin(y)", "k * wnp.sin(y) + 0.999 * x", "y - k * x", "q + 0.5 * x",
    "0.5 * q - p", "wnp.exp(-y * y) * p + x", "wnp.sqrt(1 + x * x) - r", "wnp.sin(x * y - z * p)",
]  # fmt: skip
WHOLE = ["x * 3 + y", "(x ^ y) + r", "wnp.where(x > y, z, -x)", "q + (y >> 1)", "(x & c) | p"]


class Loop:
    """A random loop over two lists of values: `run(*arguments)` is a scan of `step`."""

    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        self.is_whole, self.is_exact = rng.random(2) < (0.2, 0.5)
        dtype = np.int32 if self.is_whole else np.float64 if rng.random() < 0.2 else np.float32
        self.n = n = int(rng.integers(8, 24))
        shape = [(), (), (), (3,), (2, 2)][rng.integers(5)]
        # No jumps where values are rounded.
        smooth = [rule for rule in EXACT if "floor" not in rule] + ROUNDED
        rules = WHOLE if self.is_whole else EXACT if self.is_exact else smooth
        rules = [compile(rules[i], rules[i], "eval") for i in rng.integers(len(rules), size=3)]
        self.rules, self.rule_of_ends = rules[:2], rules[2]
        self.num_ends = int(rng.integers(0, 3))  # values at each end of the first list
        self.shifts, self.order = rng.integers(-2, 3, 2), rng.permutation(n)
        self.own = rng.standard_normal(n).astype(np.float32).tolist()
        self.what_is_returned = int(rng.integers(4))

        def values(*before):
            many = (n, *before, *shape)
            x = rng.integers(-9, 9, many) if self.is_whole else rng.standard_normal(many)
            return list(x.astype(dtype))

        self.arguments = (values(), values(), values(), values(STEPS))

    def become(self, rule, xs, qs, consts, slices, i):
        y, z = (xs[(i + shift) % self.n] for shift in self.shifts)
        here = {"x": xs[i], "y": y, "z": z, "p": xs[self.order[i]], "q": qs[i], "k": self.own[i],
                "c": consts[i], "r": slices[i], "wnp": wnp}  # fmt: skip
        return eval(rule, here)

    def step(self, carry, consts, slices):
        a, b, total = carry
        is_end = [min(i, self.n - 1 - i) < self.num_ends for i in range(self.n)]
        rules = [self.rule_of_ends if end else self.rules[0] for end in is_end]
        new_a = [self.become(rules[i], a, b, consts, slices, i) for i in range(self.n)]
        new_b = [self.become(self.rules[1], b, a, consts, slices, i) for i in range(self.n)]
        if not self.is_exact and not self.is_whole:  # stay small
            new_a, new_b = ([wnp.sin(x) for x in new] for new in (new_a, new_b))
        ys = [(), new_a, [new_b[i] for i in self.order], (a[0], new_b[1])][self.what_is_returned]
        return (new_a, new_b, wnp.maximum(total, new_a[0])), ys

    def run(self, a, b, consts, slices):
        step = lambda carry, slices: self.step(carry, consts, slices)
        return lax.scan(step, (a, b, wnp.zeros_like(a[0])), slices, length=STEPS)

    def loss(self, *arguments):
        return sum(wnp.sum(wnp.sin(x)) for x in weft.tree.leaves(self.run(*arguments)))


def packed(f, args):
    """A program of f, and the same with its loops packed."""
    plain = compiler.optimize(f, *args)
    return plain, compiler.optimize(plain, passes=("pack", "dce", "canonicalize"), verify=True)


def values(graph, args):
    run = weft.jit(graph.__call__, compile="unrolled")
    return [np.asarray(x) for x in run(*weft.tree.leaves(args))]


def num_carried(graph):
    return [int(n) for n in re.findall(r"num_carry=(\d+)", str(graph))]


def check(f, loop, is_exact):
    plain, arrays = packed(f, loop.arguments)
    for want, got in zip(*(values(g, loop.arguments) for g in (plain, arrays)), strict=True):
        if is_exact:
            np.testing.assert_array_equal(got, want)
        else:
            few = 1e-10 if want.dtype == np.float64 else 1e-3
            np.testing.assert_allclose(got, want, few, few)
    return plain, arrays


@pytest.mark.parametrize("seed", range(60))
def test_random_loops(seed):
    loop = Loop(seed)
    with weft.enable_x64():
        check(loop.run, loop, loop.is_exact or loop.is_whole)
        if not loop.is_exact and not loop.is_whole:
            check(weft.grad(loop.loss, (0, 1, 2, 3)), loop, False)


def ring(values, next_of, length=STEPS):
    """A loop in which each value becomes next_of(itself, the one before it, the one after it)."""

    def step(xs, _):
        around = zip(xs, [xs[-1], *xs[:-1]], [*xs[1:], xs[0]], strict=True)
        return [next_of(*each) for each in around], None

    return lax.scan(step, values, None, length=length)[0]


def arguments(n, dtype=np.float32):
    return (list(np.linspace(0, 1, n).astype(dtype)),)


def test_values_become_one_array():
    args = arguments(60)
    f = lambda xs: sum(ring(xs, lambda x, before, after: x * 0.999 + 0.001 * wnp.sin(after)))
    plain, arrays = packed(f, args)
    assert (num_carried(plain), num_carried(arrays)) == ([60], [1])
    plain, arrays = packed(weft.grad(f), args)
    assert (num_carried(plain), num_carried(arrays)) == ([60, 60], [1, 1])
    # What the first loop keeps for the second one is an array, too.
    assert re.search(r"_:f32\[60\] \w+:f32\[5,60\] = scan", str(arrays))


def test_groups_of_values():
    """Parameters, and what an optimizer keeps of each: three arrays."""

    def step(state, _):
        xs, means, squares = state
        slopes = [2 * x - wnp.cos(x) for x in xs]
        means = [0.9 * m + 0.1 * g for m, g in zip(means, slopes, strict=True)]
        squares = [0.99 * s + 0.01 * g * g for s, g in zip(squares, slopes, strict=True)]
        moved = zip(xs, means, squares, strict=True)
        return ([x - m / (wnp.sqrt(s) + 1e-3) for x, m, s in moved], means, squares), None

    f = lambda *state: lax.scan(step, state, None, length=STEPS)[0]
    args = arguments(12) * 3
    plain, arrays = packed(f, args)
    assert (num_carried(plain), num_carried(arrays)) == ([36], [3])
    for want, got in zip(values(plain, args), values(arrays, args), strict=True):
        np.testing.assert_allclose(got, want, 1e-5, 1e-6)


def test_ends_stay_apart():
    def step(xs, _):
        inner = [x + 0.1 * (b - x - x + a) for b, x, a in zip(xs, xs[1:], xs[2:], strict=False)]
        return [xs[0], *inner, wnp.tanh(xs[-1])], None

    f = lambda xs: lax.scan(step, xs, None, length=STEPS)[0]
    plain, arrays = packed(f, arguments(30))
    assert num_carried(plain)[0] >= 29
    assert num_carried(arrays)[0] <= 5
    for want, got in zip(*(values(g, arguments(30)) for g in (plain, arrays)), strict=True):
        np.testing.assert_allclose(got, want, 1e-6, 1e-6)


def test_loops_in_loops():
    inner = lambda xs, _: (ring(xs, lambda x, before, after: wnp.sin(before) * after), None)
    f = lambda xs: lax.scan(inner, xs, None, length=3)[0]
    plain, arrays = packed(f, arguments(9))
    assert sorted(num_carried(plain)) == [9, 9]
    assert 1 in num_carried(arrays)
    for want, got in zip(*(values(g, arguments(9)) for g in (plain, arrays)), strict=True):
        np.testing.assert_array_equal(got, want)


def running(xs, _):
    new = [wnp.sin(xs[0])]
    for x in xs[1:]:
        new.append(wnp.sin(new[-1]) * x)  # waits for the one before it
    return new, None


def printing(xs, _):
    weft.debug.print("{}", xs[0])
    return [x * 2 for x in xs], None


@pytest.mark.parametrize("step, n, dtype", [
    (running, 20, np.float32),
    (printing, 20, np.float32),
    (lambda xs, _: ([x * 2 for x in xs], None), 7, np.float32),  # few
    (lambda xs, _: ([x * 2 for x in xs], None), 20, np.float16),  # other bits in other vectors
    (lambda xs, _: ([wnp.arctan(x) for x in xs], None), 20, np.float32),
    (lambda xs, _: ([x * wnp.arange(17.0) for x in xs], None), 9, np.float32),  # large
])  # fmt: skip
def test_left_as_they_are(step, n, dtype):
    start = arguments(n, dtype)[0]
    start = [wnp.broadcast_to(x, weft.eval_shape(lambda x: step([x] * n, None)[0][-1], x).shape)
             for x in start]  # fmt: skip
    f = lambda xs: lax.scan(step, xs, None, length=STEPS)[0]
    plain, arrays = packed(f, (start,))
    assert num_carried(arrays) == num_carried(plain) == [n]


def test_under_jit():
    f = lambda xs: ring(xs, lambda x, before, after: x * 0.999 + 0.001 * wnp.sin(after))
    args, arrays = arguments(60), weft.jit(f)
    apart = weft.jit(f, compile="unrolled")
    np.testing.assert_allclose(arrays(*args), apart(*args), 1e-6)
    told = "operations fewer as small values became arrays"
    assert told in str(arrays.explain())
    assert str(apart.explain()).count(told) == 1  # of `arrays`; both are f
