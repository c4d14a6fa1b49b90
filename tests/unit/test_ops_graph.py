"""The graphs of every row of the op table: text round trip, emission, equality of attributes.

Also constant folding and simplification: an optimised program computes what the plain one does.
"""

import re
from collections import defaultdict
from itertools import combinations

import numpy as np
import pytest
from conftest import verify_stablehlo
from op_table import FLOATS, INTS, NO_ROW, SAMPLE, Row, all_rows, widen

import weft
from weft import compiler

ROWS = all_rows()


@pytest.fixture(autouse=True)
def x64():
    with weft.enable_x64(True):
        yield


def avals(xs):
    return [weft.ShapeDtypeStruct(x.shape, x.dtype) for x in xs]


def trace(fn, *xs):
    return weft.jit(fn).trace(*xs).graph


def row_graph(row: Row, dtypes=SAMPLE):
    """One graph with all cases of a row, in a few dtypes."""
    few = [d for d in row.dtypes if d in dtypes] or row.dtypes
    args = [avals(xs) for d, xs in row.cases() if d in few]
    return trace(lambda args: [row.call(*xs) for xs in args], args)


@pytest.mark.parametrize("row", ROWS, ids=lambda r: r.id)
def test_text_round_trip(row):
    graph = row_graph(row)
    text = str(graph)
    read = compiler.parse(text)
    assert read == graph
    assert hash(read) == hash(graph)
    assert str(read) == text


@pytest.mark.parametrize("row", ROWS, ids=lambda r: r.id)
def test_emitted_text_verifies(row):
    graph = row_graph(row, dtypes=row.dtypes)
    verify_stablehlo(compiler.emit_stablehlo(graph))
    verify_stablehlo(compiler.emit_stablehlo(compiler.optimize(graph), locations=True))


def signature(row: Row):
    return (row.op, tuple((a.shape, a.dtype) for a in row.args[0]))


def pairs():
    """Rows of one op on equal types that differ in attributes only."""
    groups = defaultdict(list)
    for row in ROWS:
        if row.attrs:
            groups[signature(row)].append(row)
    return [
        (a, b)
        for rows in groups.values()
        for a, b in combinations(rows, 2)
        if a.attrs != b.attrs and set(a.dtypes) & set(b.dtypes)
    ]


@pytest.mark.parametrize("pair", pairs(), ids=lambda p: f"{p[0].id}--{p[1].label}")
def test_cse_keeps_attributes_apart(pair):
    first, second = pair
    common = [d for d in first.dtypes if d in second.dtypes]
    dtype = "float32" if "float32" in common else common[0]
    xs = avals([a.draw(first.rng(), dtype) for a in first.args[0]])
    one = [count_ops(trace(row.call, *xs), row.op) for row in pair]
    both = trace(lambda *xs: (first.call(*xs), second.call(*xs)), *xs)
    twice = trace(lambda *xs: (first.call(*xs), first.call(*xs)), *xs)
    assert count_ops(compiler.optimize(both, passes=["cse"]), first.op) == sum(one)
    assert count_ops(compiler.optimize(twice, passes=["cse"]), first.op) == one[0]


def count_ops(graph, name):
    return graph.op_names().count(name)


def test_every_op_with_attributes_has_such_a_pair():
    compared = {first.op for first, _ in pairs()}
    with_attributes = {op["name"] for op in compiler.registry() if op["attrs"]}
    # What these are called with decides what they print; others have no rows, or hold graphs.
    exempt = {"conj", "dynamic_slice", "dynamic_update_slice", "custom_linear_solve", *NO_ROW}
    exempt |= {op["name"] for op in compiler.registry() if set(op["attrs"]) == {"accuracy"}}
    assert with_attributes - compared <= exempt


ELEMENTWISE_DTYPES = {
    "float": ("float32", "float16", "bfloat16", "float64"),
    "int": ("int8", "uint8", "int32", "uint64"),
    "other": ("bool", "complex64"),
}


def scalar_cases(row: Row):
    """Scalars to fold: some of the row's domain, and special values where it takes them."""
    dtypes = [d for ds in ELEMENTWISE_DTYPES.values() for d in ds if d in row.dtypes]
    args = next((a for a in row.args if all(x.shape == () for x in a)), None)
    if args is None:
        return
    rng = row.rng()
    for dtype in dtypes:
        for _ in range(3):
            yield [a.draw(rng, dtype) for a in args]
        if dtype in FLOATS and row.special:
            for special in row.special:
                rest = [a.draw(rng, dtype) for a in args[1:]]
                yield [np.asarray(special).astype(args[0].dtype_in(dtype)), *rest]
        if dtype in INTS and len(args) == 2 and row.op not in ("div", "rem"):
            info = np.iinfo(dtype)
            yield [np.asarray(info.max, dtype), np.asarray(info.min, dtype)]


@pytest.mark.parametrize("row", [r for r in ROWS if any(scalar_cases(r))], ids=lambda r: r.id)
def test_folding_is_exact(row):
    """What `fold` computes on literals is what the executed op gives, to the last bit."""
    folded = []
    for xs in scalar_cases(row):
        # NumPy scalars trace to literals.
        graph = trace(lambda xs=xs: row.call(*[x[()] for x in xs]))
        value = literal_result(compiler.optimize(graph, passes=["fold"]))
        if value is not None:
            folded.append((xs, value))
    if not folded:
        return
    executed = weft.jit(lambda args: [row.call(*xs) for xs in args])([xs for xs, _ in folded])
    for (xs, y), z in zip(folded, executed, strict=True):
        z = np.asarray(z)
        assert y.dtype == z.dtype
        message = f"{row.id} of {xs}"
        np.testing.assert_array_equal(widen(y), widen(z), err_msg=message)
        if y.dtype.kind in "fV" and y == 0:
            assert np.signbit(widen(y)) == np.signbit(widen(z)), message


def literal_result(graph):
    """The value of a program that is nothing but a literal, read from its text."""
    match = re.search(r"let *in \((.*):\w+\[\],\) }", str(graph))
    if match is None:
        return None
    dtype = np.dtype(graph.out_types[0][1])
    read = {"b": lambda s: s == "True", "c": complex, "i": int, "u": int}.get(dtype.kind, float)
    return np.asarray(read(match[1])).astype(dtype)
