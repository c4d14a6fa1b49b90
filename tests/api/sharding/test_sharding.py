"""Arrays and programs on several devices: in a process of eight, see sharding_checks.py."""

import os
import subprocess
import sys

from conftest import EVERYTHING, SUPPORT

CHECKS = SUPPORT / "sharding_checks.py"


def test_eight_devices():
    count = "200" if EVERYTHING else "7"
    done = subprocess.run(
        [sys.executable, "-W", "error", str(CHECKS), "0", count],
        capture_output=True,
        text=True,
        timeout=1200 if EVERYTHING else 200,
        env=dict(os.environ),
    )
    assert done.returncode == 0 and done.stdout.endswith("ok\n"), done.stderr[-4000:]
