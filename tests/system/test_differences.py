"""Every row of docs/differences.md holds for weft, and not for jax 0.10.2."""

import functools
import inspect
import operator
import os
import pickle
import runpy
import subprocess
import sys

import differences
import kept_answers
import oracle
import pytest
from conftest import ROOT
from differences import HERE

import weft
import weft.numpy as wnp

ROWS = differences.rows()
differences.import_all("weft")


def _run(package, modules):
    program = [sys.executable, differences.__file__, package, *modules]
    environment = {**os.environ, "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(program, capture_output=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr.decode()[-4000:]
    return pickle.loads(done.stdout)


@functools.cache
def _of(package):
    """Whether rows hold, by name."""
    if package == "weft":
        found = _run(package, differences.modules())
    else:
        texts = {(HERE / f"{name}.py").read_text(): name for name in differences.modules()}
        ask = lambda missing: _run(package, [texts[text] for text in missing])
        how = inspect.getsource(differences.holds)
        found = kept_answers.answers(how, list(texts), ask)
    return functools.reduce(operator.or_, found)


def test_names_are_unique():
    names = [row.name for row in ROWS]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_weft_is_right(row):
    if row.devices > 1:
        assert _of("weft")[row.name]
        return
    with weft.enable_x64(row.x64):
        result = row.run(weft, wnp)
        assert differences.holds(row, result), f"got {result}, right {row.right}"


@pytest.mark.oracle
@oracle.needs_jax
@pytest.mark.parametrize("row", [row for row in ROWS if row.ask_jax], ids=lambda row: row.name)
def test_jax_differs(row):
    if oracle.is_later_jax():
        pytest.skip("the page speaks of jax 0.10.2")
    assert not _of("jax")[row.name], "jax gives the right result as well"


def test_page_is_up_to_date():
    page = runpy.run_path(str(ROOT / "tools" / "differences"), run_name="differences_page")
    assert (ROOT / "docs" / "differences.md").read_text() == page["text"](), "run tools/differences"
