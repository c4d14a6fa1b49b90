"""What the tests of weft.scipy share: rows of `scipy_cases.py` against what jax gives."""

import functools
import json

import numpy as np
import oracle
import scipy_cases
from conftest import EVERYTHING

import weft


@functools.cache
def _answers():
    return json.loads(scipy_cases.GOLDEN.read_text())


@functools.cache
def _names(table):
    return scipy_cases.names_of(table, weft)


def sampled(table):
    """The first row of each function by default."""
    return oracle.sampled(scipy_cases.rows(table), step=len(scipy_cases.rows(table)))


def check(table, row, known=()):
    """Asserts that an expression has the type, and where it is unique the values, that jax gives;
    or raises an error of the same built-in class.

    Rows of functions that are `known`, whose values other tests compare, are only traced by
    default, which compiles nothing, where they can be.
    """
    expected, names = _answers()[table][row], _names(table)
    if not EVERYTHING and row.partition("(")[0].split(".")[-1] in known:
        found = []
        weft.eval_shape(lambda: found.append(scipy_cases.evaluate(row, names, values=False)))
        if "error" not in found[0]:
            compare(found[0], _types(expected))
            return
    compare(scipy_cases.evaluate(row, names), expected)


def _types(expected):
    """An answer without its values."""
    if isinstance(expected, list):
        return [_types(each) for each in expected]
    if isinstance(expected, dict):
        return {k: _types(v) for k, v in expected.items() if k != "values"}
    return expected


def compare(got, expected):
    if isinstance(expected, dict) and "error" in expected:
        assert isinstance(got, dict) and "error" in got, f"expected {expected}; got {got}"
        assert expected["error"][0] in got["error"], (got, expected)
    elif isinstance(expected, dict) and "type" in expected:
        assert isinstance(got, dict), (got, expected)
        assert got.get("type") == expected["type"], (got, expected)
        if "values" in expected:
            rtol = 5e-3 if expected["type"].startswith(("float16", "bfloat16")) else 3e-5
            values = np.array(expected["values"])
            scale = np.max(np.abs(values[np.isfinite(values)]), initial=1e-6)
            np.testing.assert_allclose(got["values"], values, rtol=rtol, atol=rtol * scale)
    elif isinstance(expected, dict):
        assert got.keys() == expected.keys()
        for key, value in expected.items():
            compare(got[key], value)
    elif isinstance(expected, list):
        assert isinstance(got, list) and len(got) == len(expected), (got, expected)
        for each, wanted in zip(got, expected, strict=True):
            compare(each, wanted)
    else:
        assert got == expected, (got, expected)
