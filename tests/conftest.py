"""Helpers that several test files use."""

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import kept_answers
import pytest
from program_runs import FEW_PASSES

ROOT = Path(__file__).resolve().parent.parent
SUPPORT = ROOT / "tests" / "support"  # tables, and programs that tests run
GOLDEN = ROOT / "tests" / "golden"

# WEFT_TESTS=all: tables are run whole where a sample of their rows is run otherwise.
EVERYTHING = os.environ.get("WEFT_TESTS") == "all"

# No test is served by what another run has left on disk; those of the cache have their own folders.
os.environ["WEFT_ENABLE_COMPILATION_CACHE"] = "0"

# Programs that tests run import what is beside them, too.
for folder in (SUPPORT, ROOT / "tests"):
    paths = [str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]
    os.environ["PYTHONPATH"] = os.pathsep.join(paths)

# Most of the time goes into compiling programs that run once.
if not EVERYTHING:
    os.environ.setdefault("XLA_FLAGS", " ".join(FEW_PASSES))


def verify_stablehlo(text: str) -> None:
    """Raises unless jaxlib's MLIR reads and verifies the module."""
    from weft import compiler

    compiler.verify_stablehlo(text)


@pytest.fixture(scope="session")
def run_python() -> Callable[..., str]:
    """run_python(code, **env) runs code in a fresh process and returns what it printed."""

    def run(code: str, timeout: float = 120, **env: str) -> str:
        done = subprocess.run(
            [sys.executable, "-W", "error::DeprecationWarning:weft", "-c", textwrap.dedent(code)],
            capture_output=True,
            text=True,
            timeout=timeout,
            env={**os.environ, **env},
        )
        assert done.returncode == 0, done.stderr[-4000:]
        return done.stdout

    return run


def pytest_sessionfinish(exitstatus: int) -> None:
    if kept_answers.WRITING and exitstatus == pytest.ExitCode.OK:
        kept_answers.write()
