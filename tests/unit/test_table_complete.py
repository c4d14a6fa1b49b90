"""The registry, the op table and the waivers agree."""

import re

import pytest
from conftest import ROOT
from op_table import MISSING_RULES, NO_ROW, all_rows

import weft
from weft import compiler

OPS = {op["name"]: op for op in compiler.registry()}
ROWS = all_rows()


def test_every_op_has_a_row_or_a_waiver():
    missing = set(OPS) - {row.op for row in ROWS} - set(NO_ROW)
    assert not missing, f"no row in the op table for {sorted(missing)}"


def test_every_waiver_is_used():
    assert set(NO_ROW) <= set(OPS)
    assert not set(NO_ROW) & {row.op for row in ROWS}
    lacking = {name for name, op in OPS.items() if op["missing"]}
    assert set(MISSING_RULES) <= lacking


@pytest.mark.parametrize("name", OPS)
def test_missing_rules_are_waived(name):
    waived, reason = MISSING_RULES.get(name, ((), ""))
    assert tuple(OPS[name]["missing"]) == waived
    assert not waived or reason


@pytest.mark.parametrize("name", OPS)
def test_every_op_is_documented(name):
    doc = OPS[name]["doc"]
    assert len(doc) > 8 and doc.endswith("."), f"{name}: {doc!r}"


def test_rows_are_distinct_and_their_ops_exist():
    ids = [row.id for row in ROWS]
    assert len(ids) == len(set(ids)), sorted({i for i in ids if ids.count(i) > 1})
    assert {row.op for row in ROWS} <= set(OPS)


@pytest.mark.parametrize("name", sorted(OPS.keys() - NO_ROW.keys()))
def test_rows_reach_their_op(name):
    """weft.lax may spare an op that does nothing; some row must show the op itself."""
    with weft.enable_x64(True):
        graphs = (graph_of(row) for row in ROWS if row.op == name)
        assert any(name in graph.op_names() for graph in graphs)


def graph_of(row):
    _, xs = row.cases()[0]
    return weft.jit(row.call).trace(*xs).graph


@pytest.mark.parametrize("row", ROWS, ids=lambda r: r.id)
def test_rows_say_what_the_next_tests_need(row):
    arity = len(row.args[0])
    assert all(0 <= i < arity for i in row.diff)
    assert all(set(group) <= set(row.diff) for group in row.linear_in)


def test_programs_for_mutants_have_every_op():
    """tests/core/programs.txt is written by tests/support/dump_programs.py."""
    text = (ROOT / "tests" / "core" / "programs.txt").read_text()
    words = set(re.findall(r"[\w-]+", text))
    # Their functions are objects of Python, which have no text.
    unwritten = {"custom_jvp_call", "custom_vjp_call", "custom_lin"}
    unwritten.add("dim_as_value")  # its attribute is a name that a scope has to know
    unwritten |= {"pure_callback", "io_callback", "debug_callback", "inspect_sharding", "check"}
    assert OPS.keys() - unwritten <= words
