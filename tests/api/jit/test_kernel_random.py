"""Random small programs with kernels and without: see kernel_random.py."""

import os
import subprocess
import sys

import kernel_random
import numpy as np
import pytest
from conftest import EVERYTHING, SUPPORT

# As many programs as one process runs, and the number of all.
BATCH, ALL = (50, 2000) if EVERYTHING else (8, 16)


@pytest.mark.parametrize("first", range(0, ALL, BATCH))
def test_programs_give_what_they_give_without_kernels(first):
    # A process of its own: one that is ended from outside shows which program it was at.
    program = SUPPORT / "kernel_random.py"
    done = subprocess.run(
        [sys.executable, str(program), str(first), str(BATCH)],
        capture_output=True,
        text=True,
        timeout=1200,
        check=False,
        env=dict(os.environ),
    )
    assert done.returncode == 0 and done.stdout.endswith("ok\n"), done.stdout + done.stderr[-2000:]


def test_comparisons_tell_bits_apart():
    x = np.array([0.0, np.nan, 1.0], "f")
    assert kernel_random.is_same(x, np.array([0.0, -np.nan, 1.0], "f"))
    for other in (
        [-0.0, np.nan, 1.0],
        [0.0, 0.0, 1.0],
        [0.0, np.nan, np.nextafter(np.float32(1), np.float32(2))],
    ):
        assert not kernel_random.is_same(x, np.array(other, "f"))
    assert not kernel_random.is_same(x, x.astype("f8"))


def test_comparisons_allow_what_rounding_moves():
    y, moved = np.array([1.0, 2.0], "f"), np.array([1.001, 2.0], "f")
    assert kernel_random.is_near(np.array([1.02, 2.0], "f"), y, moved)
    assert not kernel_random.is_near(np.array([1.02, 2.0], "f"), y, y)
    assert not kernel_random.is_near(np.array([1.0, np.inf], "f"), y, moved)


def test_programs_are_of_many_kinds():
    programs = [kernel_random.Program(seed) for seed in range(60)]
    text = "\n".join(program.text for program in programs)
    for word in (
        "scan",
        "fori_loop",
        "while_loop",
        "cond",
        "switch",
        "sort",
        " @ ",
        "random",
        ".at[",
    ):
        assert word in text
    assert {p.float for p in programs} == set(kernel_random.FLOATS)
    assert len({p.is_exact for p in programs}) == len({p.is_odd for p in programs}) == 2
