"""The short form of the soak test: the same calls in smaller numbers (see soak.py)."""

import subprocess
import sys

from conftest import SUPPORT


def test_memory_stays_flat_while_threads_call_everything():
    script = SUPPORT / "soak.py"
    numbers = ["--threads", "4", "--calls", "1500", "--lambdas", "600", "--recompiles", "60"]
    numbers += ["--shapes", "1500"]
    command = [sys.executable, "-X", "faulthandler", str(script), "--rounds", "3", *numbers]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr[-4000:]
