"""Explicit mode: how values are split is part of their types; see explicit_checks.py."""

import os
import subprocess
import sys

from conftest import EVERYTHING, SUPPORT

CHECKS = SUPPORT / "explicit_checks.py"


def test_eight_devices():
    done = subprocess.run(
        [sys.executable, "-W", "error", str(CHECKS), "1" if EVERYTHING else "7"],
        capture_output=True,
        text=True,
        timeout=600 if EVERYTHING else 200,
        env=dict(os.environ),
    )
    assert done.returncode == 0 and done.stdout.endswith("ok\n"), done.stderr[-4000:]
