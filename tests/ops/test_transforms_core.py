"""Derivatives and vectorisation of every row of the op table, through the graph transforms.

jvp is checked against differences, reverse mode against jvp by dot products, vmap against a loop
over lanes. The programs of a row are compiled together, since a compilation costs far more than
the work.
"""

import itertools
from collections import Counter

import numpy as np
import pytest
from conftest import EVERYTHING
from op_table import EPS, Row, all_rows, widen

import weft
from weft import _core

ROWS = all_rows()
ROWS_OF_OP = Counter(row.op for row in ROWS)
DIFFERENTIABLE = [row for row in ROWS if row.diff]
FIRST_ROWS = {row.op: row for row in reversed(DIFFERENTIABLE)}
MAPPED = [row for row in ROWS if row.batch and row.args[0]]
# Steps of the differences, and how well they agree with a derivative in float64.
STEP = 1e-4
RTOL = 1e-6
ROUGH = 2.0**-11
LANES = 3
# Choices of mapped axes per argument list; the rows of an op share its batch rule, and so do all
# elementwise ops.
MAX_CHOICES = 24
MIN_CHOICES = 4
MAX_CHOICES_OF_OP = 96
MAX_ELEMENTWISE_CHOICES = 5
MAX_SLOW_CHOICES = 2
SLOW_TO_COMPILE = 200  # lines of StableHLO

# Rows whose values do not follow their derivative at the scale of STEP, with the reason.
NOT_SMOOTH = {"reduce_precision": "a staircase that is differentiated as if it were a line"}
# Ops whose programs are large: by default test_incomplete_functions.py alone compares their second
# derivatives.
FIRST_ORDER = {
    "derivative",
    "igamma",
    "igamma_grad_a",
    "igamma_grad_x",
    "igammac",
    "random_gamma_grad",
    "regularized_incomplete_beta",
    "regularized_incomplete_beta_grad_x",
}


@pytest.fixture(autouse=True)
def x64():
    with weft.enable_x64(True):
        yield


FEW = 5 if EVERYTHING else 3


def few_of_each_op(rows):
    """Rows for what depends on the op more than on the case: the first few of each op."""
    seen = Counter()
    out = []
    for row in rows:
        seen[row.op] += 1
        if seen[row.op] <= FEW:
            out.append(row)
    return out


def sample(rows):
    """Rows for what depends on the case: all of them, or by default few_of_each_op."""
    return rows if EVERYTHING else few_of_each_op(rows)


BATCHED_DERIVATIVES = few_of_each_op(row for row in DIFFERENTIABLE if row.batch)


def trace(fn, xs):
    return weft.jit(fn).trace(*xs).graph


class Program:
    """Graphs compiled as one program."""

    def __init__(self, graphs):
        def call(args):
            return [
                _core.bind("jit", *xs, jaxpr=graph, name="f") if len(graph.out_types) else []
                for graph, xs in zip(graphs, args, strict=True)
            ]

        self.call = weft.jit(call)

    def __call__(self, args):
        """The results of each graph on its arguments."""
        results = self.call([list(xs) for xs in args])
        return [[np.asarray(y) for y in as_list(ys)] for ys in results]


def run(calls):
    """Evaluates graphs, given with their arguments, once."""
    graphs, args = zip(*calls, strict=True) if calls else ((), ())
    return Program(graphs)(args)


def as_list(x):
    return list(x) if isinstance(x, (list, tuple)) else [x]


def wide_dtypes(row: Row):
    """The dtypes in which derivatives are checked."""
    out = []
    if {"float32", "float64"} & set(row.dtypes):
        out.append("float64")
    if {"complex64", "complex128"} & set(row.dtypes):
        out.append("complex128")
    return out


def is_slow(row):
    """Whether the op is a long program."""
    graph = trace(row.call, row.cases()[0][1])
    return _core.emit_stablehlo(graph).count("\n") > SLOW_TO_COMPILE


def arg_lists(row):
    """The argument lists of a row, or the last ones: large arrays, and scalars among arrays."""
    if is_slow(row):
        return row.args[-2:]
    return row.args[-4:] if _core.op_info(row.op)["elementwise"] else row.args


class Case:
    """A row with arguments of one dtype, and a direction for those it is differentiable in."""

    def __init__(self, row, dtype, args, rng):
        self.label = f"{row.id} {dtype} {[a.shape for a in args]}"
        self.smooth = row.op not in NOT_SMOOTH
        self.xs = [a.draw(rng, dtype) for a in args]
        self.graph = trace(row.call, self.xs)
        self.active = [i in row.diff and is_inexact(x.dtype) for i, x in enumerate(self.xs)]
        self.ts = [normal(rng, x) for x, a in zip(self.xs, self.active, strict=True) if a]
        self.out_dtypes = [np.dtype(d) for _, d in self.graph.out_types]

    def at(self, step):
        """The arguments, `step` along the direction."""
        ts = iter(self.ts)
        return [
            np.asarray(x + step * next(ts)).astype(x.dtype) if a else x
            for x, a in zip(self.xs, self.active, strict=True)
        ]

    @property
    def rounding(self):
        """The rounding error of the results."""
        if not self.smooth:
            return ROUGH
        return max([EPS["float64"], *[EPS[d.name] for d in self.out_dtypes if is_inexact(d)]])


def random_outputs(rng, graph, mask):
    types = [np.empty(shape, dtype) for shape, dtype in graph.out_types]
    return [normal(rng, y) for y, m in zip(types, mask, strict=True) if m]


def normal(rng, like):
    x = rng.normal(size=like.shape)
    if like.dtype.kind == "c":
        x = x + 1j * rng.normal(size=like.shape)
    return np.asarray(x).astype(like.dtype)


def is_inexact(dtype):
    return np.dtype(dtype).kind in "fc" or np.dtype(dtype).name == "bfloat16"


def differences(values):
    """Derivatives from values at -2, -1, 1 and 2 steps; NaN where those are not finite."""
    with np.errstate(invalid="ignore"):
        return [
            (8 * (c - b) - (d - a)) / (12 * STEP)
            for a, b, c, d in zip(*[[widen(v) for v in vs] for vs in values], strict=True)
        ]


def assert_close(got, want, message, rtol):
    got, want = widen(np.asarray(got)), widen(np.asarray(want))
    assert got.shape == want.shape, message
    known = np.isfinite(want)
    scale = np.max(np.abs(want[known]), initial=1.0)
    np.testing.assert_allclose(
        got[known], want[known], rtol=rtol, atol=rtol * scale, err_msg=message
    )


def product(xs, ys):
    """The pairing of tangents and cotangents: no conjugation, the real part. And the size of its
    terms, of which rounding errors are a part however much of them cancels."""
    pairs = [(widen(x), widen(y)) for x, y in zip(xs, ys, strict=True)]
    value = sum(np.sum((x * y).real) for x, y in pairs)
    return value, sum(np.sum(np.abs(x) * np.abs(y)) for x, y in pairs)


def assert_adjoint(ts_out, cts_out, ts_in, cts_in, message, rtol):
    """<A t, y> = <t, A' y>"""
    (left, size), (right, other) = product(ts_out, cts_out), product(ts_in, cts_in)
    difference = abs(left - right)
    assert difference <= rtol * max(size, other, 1e-3), f"{message}: {left} and {right}"


class Derivatives:
    """The graphs made from one case, and what they gave."""

    def __init__(self, case, rng, second_order):
        self.case = case
        n = len(case.graph.out_types)
        self.jvp, self.t_mask = _core.jvp_graph(case.graph, case.active)
        self.vjp, self.ct_mask = _core.vjp_graph(case.graph, case.active)
        # Where linearize finds a zero, jvp may still have made zeros.
        assert all(t or not c for t, c in zip(self.t_mask, self.ct_mask, strict=True))
        self.cts = random_outputs(rng, case.graph, self.ct_mask)
        self.graphs = [case.graph, self.jvp, self.vjp]
        self.num_outputs = n
        if second_order:
            active = [*case.active, *[False] * len(self.cts)]
            self.jvp_of_vjp, self.t2_mask = _core.jvp_graph(self.vjp, active)
            self.vjp_of_vjp, self.ct2_mask = _core.vjp_graph(self.vjp, active)
            self.ct2s = random_outputs(rng, self.vjp, self.ct2_mask)
            self.graphs += [self.jvp_of_vjp, self.vjp_of_vjp]
        for graph in self.graphs:
            graph.verify()

    def args(self, step):
        xs, ts = self.case.at(step), self.case.ts
        tail = [[*xs, *self.cts, *ts], [*xs, *self.cts, *self.ct2s]] if len(self.graphs) > 3 else []
        return [xs, [*xs, *ts], [*xs, *self.cts], *tail]

    def check(self, results):
        """Results of the graphs at -2, -1, 0, 1 and 2 steps."""
        case, at_zero = self.case, results[2]
        moved = [results[i] for i in (0, 1, 3, 4)]
        n = self.num_outputs
        tangents = self.check_tangents(moved, 0, at_zero[1][n:], self.t_mask)
        gradients = at_zero[2][n:]
        assert [(g.shape, g.dtype) for g in gradients] == [(t.shape, t.dtype) for t in case.ts]
        outs = [t for t, m in zip(tangents, self.ct_mask, strict=True) if m]
        message = f"vjp: {case.label}"
        assert_adjoint(outs, self.cts, case.ts, gradients, message, 64 * case.rounding)
        assert all(m or not np.any(t) for t, m in zip(tangents, self.ct_mask, strict=True))
        if len(self.graphs) == 3:
            return
        m = len(self.vjp.out_types)
        tangents = self.check_tangents(moved, 2, at_zero[3][m:], self.t2_mask)
        outs = [t for t, m in zip(tangents, self.ct2_mask, strict=True) if m]
        message = f"vjp of vjp: {case.label}"
        gradients = at_zero[4][m:]
        assert_adjoint(outs, self.ct2s, case.ts, gradients, message, 1e-10 + 64 * case.rounding)

    def check_tangents(self, moved, which, tangents, mask):
        """The tangents of all results of a graph, compared with differences of its values."""
        made = iter(tangents)
        order = "jvp of vjp" if which else "jvp"
        # Values of low precision are that far off, over the width of a step.
        rtol = max(RTOL, 4 * self.case.rounding / STEP)
        out = []
        for i, (want, m) in enumerate(
            zip(differences([r[which] for r in moved]), mask, strict=True)
        ):
            value = moved[0][which][i]
            out.append(next(made) if m else np.zeros(value.shape))
            if is_inexact(value.dtype):
                assert not m or out[-1].dtype == value.dtype
                if self.case.smooth:
                    assert_close(out[-1], want, f"{order}: {self.case.label}", rtol)
            else:
                assert not m
        return out


def has_second_order(row):
    """Whether second derivatives are compared: by default of one row of each op."""
    return EVERYTHING or (row.op not in FIRST_ORDER and row is FIRST_ROWS[row.op])


@pytest.mark.parametrize("row", sample(DIFFERENTIABLE), ids=lambda r: r.id)
def test_derivatives(row):
    """jvp and jvp of vjp against differences; reverse mode against these by dot products."""
    rng = row.rng()
    work = []
    for dtype, args in itertools.product(wide_dtypes(row), arg_lists(row)):
        case = Case(row, dtype, args, rng)
        if any(case.active):
            work.append(Derivatives(case, rng, has_second_order(row)))
    program = Program([graph for w in work for graph in w.graphs])
    results = [program([xs for w in work for xs in w.args(k * STEP)]) for k in (-2, -1, 0, 1, 2)]
    begin = 0
    for w in work:
        end = begin + len(w.graphs)
        w.check([r[begin:end] for r in results])
        begin = end


@pytest.mark.parametrize("row", [r for r in ROWS if r.linear_in], ids=lambda r: r.id)
def test_transpose(row):
    """<A u, y> = <u, A' y> for each set of arguments in which the op is linear."""
    rng = row.rng()
    calls, plans = [], []
    for dtype, args, group in itertools.product(wide_dtypes(row), row.args, row.linear_in):
        case = Case(row, dtype, args, rng)
        linear = [i in group and x.dtype.kind in "fc" for i, x in enumerate(case.xs)]
        if not any(linear):
            continue
        inexact = [is_inexact(d) for d in case.out_dtypes]
        graph, out_mask = _core.transpose_graph(case.graph, linear, inexact)
        graph.verify()
        us = [x for x, m in zip(case.xs, linear, strict=True) if m]
        fixed = [x for x, m in zip(case.xs, linear, strict=True) if not m]
        cts = random_outputs(rng, case.graph, inexact)
        calls += [(case.graph, case.xs), (graph, [*fixed, *cts])]
        plans.append((case, us, cts, out_mask))
    results = iter(run(calls))
    for case, us, cts, out_mask in plans:
        ys, made = next(results), iter(next(results))
        cts_in = [next(made) if m else np.zeros_like(u) for u, m in zip(us, out_mask, strict=True)]
        assert_adjoint(ys, cts, us, cts_in, case.label, 64 * case.rounding)


def lane_dtype(row: Row):
    """The dtype in which a row is vectorised: its most usual one."""
    usual = [d for d in ("float32", "int32", "complex64", "bool", "uint8") if d in row.dtypes]
    return usual[0] if usual else row.dtypes[0]


def draw_lanes(row, args, rng, count=LANES):
    dtype = lane_dtype(row)
    lanes = []
    for lane in range(count):
        xs = [a.draw(rng, dtype) for a in args]
        # A fixed index differs between lanes too.
        lanes.append([
            x + np.asarray(lane % 2, x.dtype) if a.value is not None and x.dtype.kind == "i" else x
            for a, x in zip(args, xs, strict=True)
        ])  # fmt: skip
    return lanes


def stacked(lanes, dims):
    """Arguments with lanes along the axes in dims; those that are not mapped from the first."""
    return [
        lanes[0][i] if d is None else np.stack([xs[i] for xs in lanes], axis=d)
        for i, d in enumerate(dims)
    ]


def max_choices(row):
    if is_slow(row):
        return MAX_SLOW_CHOICES
    if _core.op_info(row.op)["elementwise"]:
        return MAX_ELEMENTWISE_CHOICES
    return min(MAX_CHOICES, max(MIN_CHOICES, MAX_CHOICES_OF_OP // ROWS_OF_OP[row.op]))


def choices(args, count, rng):
    """Every choice of mapped axes with at least one argument mapped, or a sample of many."""
    every = list(itertools.product(*[[None, *range(len(a.shape) + 1)] for a in args]))[1:]
    if len(every) <= count:
        return every
    n = len(args)
    ends = [(0,) * n, tuple(len(a.shape) for a in args)]
    alone = [tuple(len(args[i].shape) if i == j else None for i in range(n)) for j in range(n)]
    others = [every[k] for k in rng.permutation(len(every))]
    return list(dict.fromkeys([*ends, *alone, *others]))[:count]


@pytest.mark.parametrize("row", sample(MAPPED), ids=lambda r: r.id)
def test_vmap(row):
    rng = row.rng()
    calls, checks = [], []
    for args in arg_lists(row):
        lanes = draw_lanes(row, args, rng)
        single = weft.jit(row.call)
        graph = single.trace(*lanes[0]).graph
        for dims in choices(args, max_choices(row), rng):
            mapped, out_dims = _core.vmap_graph(graph, dims, LANES)
            mapped.verify()
            calls.append((mapped, stacked(lanes, dims)))
            inputs = [
                [lanes[k if d is not None else 0][i] for i, d in enumerate(dims)]
                for k in range(LANES)
            ]
            checks.append((single, inputs, out_dims, f"{row.id} {args} {dims}"))
    for ys, (single, inputs, out_dims, message) in zip(run(calls), checks, strict=True):
        for k, xs in enumerate(inputs):
            wanted = as_list(single(*xs))
            for y, d, want in zip(ys, out_dims, wanted, strict=True):
                got = y if d is None else np.take(y, k, axis=d)
                assert_lane(got, np.asarray(want), message)


def assert_lane(got, want, message):
    assert got.dtype == want.dtype, message
    if got.dtype.name in EPS:
        finite = np.isfinite(widen(want))
        scale = np.max(np.abs(widen(want)[finite]), initial=1.0)
        tol = 64 * EPS[got.dtype.name]
        np.testing.assert_allclose(widen(got), widen(want), rtol=tol, atol=tol * scale,
                                   err_msg=message)  # fmt: skip
    else:
        np.testing.assert_array_equal(got, want, err_msg=message)


@pytest.mark.parametrize("row", few_of_each_op(MAPPED), ids=lambda r: r.id)
def test_nested_and_empty_vmap(row):
    rng = row.rng()
    args = max(row.args, key=lambda args: sum(len(a.shape) for a in args))
    lanes = [draw_lanes(row, args, rng) for _ in range(2)]
    single = weft.jit(row.call)
    graph = single.trace(*lanes[0][0]).graph
    inner = tuple(len(a.shape) for a in args)
    outer = (0,) * len(args)
    once, once_dims = _core.vmap_graph(graph, inner, LANES, [0] * len(graph.out_types))
    twice, twice_dims = _core.vmap_graph(once, outer, 2, [0] * len(graph.out_types))
    assert once_dims == twice_dims == (0,) * len(graph.out_types)
    empty, _ = _core.vmap_graph(graph, outer, 0, [0] * len(graph.out_types))
    both = [np.stack(xs) for xs in zip(*[stacked(l, inner) for l in lanes], strict=True)]
    none = [np.zeros((0, *x.shape), x.dtype) for x in lanes[0][0]]
    ys, zs = run([(twice, both), (empty, none)])
    for j, k in itertools.product(range(2), range(LANES)):
        for y, want in zip(ys, as_list(single(*lanes[j][k])), strict=True):
            assert_lane(y[j, k], np.asarray(want), row.id)
    for z, (shape, dtype) in zip(zs, graph.out_types, strict=True):
        assert z.shape == (0, *shape) and z.dtype == dtype


@pytest.mark.parametrize("row", BATCHED_DERIVATIVES, ids=lambda r: r.id)
def test_vmap_of_vjp(row):
    """vmap of vjp, and vjp of vmap, against vjp lane by lane."""
    rng = row.rng()
    calls, checks = [], []
    for dtype in wide_dtypes(row):
        args = max(row.args, key=lambda args: sum(len(a.shape) for a in args))
        cases = [Case(row, dtype, args, rng) for _ in range(2)]
        graph, active = cases[0].graph, cases[0].active
        if not any(active):
            continue
        vjp, ct_mask = _core.vjp_graph(graph, active)
        cts = [random_outputs(rng, graph, ct_mask) for _ in cases]
        n = len(graph.out_types)
        outer, _ = _core.vmap_graph(vjp, [0] * len(vjp.in_types), 2, [0] * len(vjp.out_types))
        vmapped, _ = _core.vmap_graph(graph, [0] * len(active), 2, [0] * n)
        inner, inner_mask = _core.vjp_graph(vmapped, active, ct_mask)
        assert inner_mask == ct_mask
        lanes = [[*c.xs, *ys] for c, ys in zip(cases, cts, strict=True)]
        both = [np.stack(xs) for xs in zip(*lanes, strict=True)]
        calls += [(outer, both), (inner, both), *[(vjp, xs) for xs in lanes]]
        checks.append((cases[0].label, n))
    results = iter(run(calls))
    for label, n in checks:
        outer, inner, first, second = (next(results)[n:] for _ in range(4))
        for a, b, *want in zip(outer, inner, first, second, strict=True):
            assert_close(a, np.stack(want), f"vmap of vjp: {label}", 1e-10)
            assert_close(b, np.stack(want), f"vjp of vmap: {label}", 1e-10)


@pytest.mark.parametrize("row", few_of_each_op(DIFFERENTIABLE), ids=lambda r: r.id)
def test_low_precision(row):
    """vjp in narrow dtypes: of the operands' dtypes, and near that in a wide one."""
    if row.op == "eig":
        pytest.skip("which eigenvalue comes first depends on the dtype")
    narrow = [d for d in ("bfloat16", "float16", "float32", "complex64") if d in row.dtypes]
    rng = row.rng()
    calls, plans = [], []
    for dtype in narrow:
        args = min(row.args, key=lambda args: abs(sum(len(a.shape) for a in args) - 2))
        xs = [a.draw(rng, dtype) for a in args]
        active = [i in row.diff and is_inexact(x.dtype) for i, x in enumerate(xs)]
        graph = trace(row.call, xs)
        vjp, ct_mask = _core.vjp_graph(graph, active)
        vjp.verify()
        if not any(ct_mask):
            continue
        types = [np.empty(s, d) for (s, d), m in zip(graph.out_types, ct_mask, strict=True) if m]
        cts = [normal(rng, y) for y in types]
        calls.append((vjp, [*xs, *cts]))
        wide_xs = [widen(x) for x in xs]
        wide_graph = trace(row.call, wide_xs)
        if len(graph.out_types) == len(wide_graph.out_types) and not row.attrs.get("new_dtype"):
            out_types = [d for (_, d), m in zip(wide_graph.out_types, ct_mask, strict=True) if m]
            wide_cts = [widen(y).astype(d) for y, d in zip(cts, out_types, strict=True)]
            wide_vjp, _ = _core.vjp_graph(wide_graph, active, ct_mask)
            calls.append((wide_vjp, [*wide_xs, *wide_cts]))
        else:
            calls.append(calls[-1])
        plans.append((dtype, len(ct_mask), [x for x, a in zip(xs, active, strict=True) if a]))
    results = iter(run(calls))
    for dtype, n, xs in plans:
        got, want = next(results)[n:], next(results)[n:]
        for x, g, w in zip(xs, got, want, strict=True):
            assert g.dtype == x.dtype and g.shape == x.shape
            assert_close(g, w, f"{row.id} {dtype}", 64 * EPS[dtype])
