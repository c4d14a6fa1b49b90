"""How arrays are split and what is communicated: in a process of eight, see seeing_checks.py."""

import subprocess
import sys

from conftest import SUPPORT

CHECKS = SUPPORT / "seeing_checks.py"


def test_what_is_split_and_communicated():
    done = subprocess.run(
        [sys.executable, str(CHECKS)], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0 and done.stdout.endswith("ok\n"), done.stderr[-4000:]
