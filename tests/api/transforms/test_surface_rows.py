"""Transforms, stages, control flow, rules of users and host functions: what jax gave for short
programs, kept in golden/surface_rows.json."""

import json

import numpy as np
import pytest
import surface_rows

GOLDEN = json.loads(surface_rows.GOLDEN.read_text())


def agree(got, expected):
    if isinstance(expected, list) and expected[:1] == ["array"]:
        return got[:4] == expected[:4] and np.allclose(got[4], expected[4], rtol=1e-5)
    if isinstance(expected, list):
        return len(got) == len(expected) and all(map(agree, got, expected))
    if isinstance(expected, dict):
        return got.keys() == expected.keys() and all(agree(got[k], expected[k]) for k in expected)
    return got == expected


@pytest.mark.parametrize("row", surface_rows.rows())
def test_as_jax(row):
    expected = GOLDEN[row]
    got = surface_rows.outcome(row, "weft")
    if expected[0] == "error":
        # The most specific one; an error of weft's may be of several.
        assert got[0] == "error" and expected[1] in got, (got, expected)
    else:
        assert agree(got, expected), (got, expected)
