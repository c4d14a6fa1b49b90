"""Random programs on eight devices: see sharded_random.py and sums_random.py."""

import os
import subprocess
import sys

import pytest
from conftest import EVERYTHING, SUPPORT

# Of each generator as many programs as one process runs, and the number of all.
BATCH, ALL = 100, 2000
SAMPLE = 12


@pytest.mark.parametrize("first", range(0, ALL if EVERYTHING else SAMPLE, BATCH))
@pytest.mark.parametrize("generator", ["sharded_random.py", "sums_random.py"])
def test_programs_give_what_they_give_on_one_device(generator, first):
    # A process of its own: one that is ended from outside shows which program it was at.
    program = [sys.executable, str(SUPPORT / generator), str(first)]
    done = subprocess.run(
        [*program, str(BATCH if EVERYTHING else SAMPLE)],
        capture_output=True,
        text=True,
        timeout=1200,
        check=False,
        env=dict(os.environ),
    )
    assert done.returncode == 0 and done.stdout.endswith("ok\n"), done.stdout + done.stderr[-2000:]
