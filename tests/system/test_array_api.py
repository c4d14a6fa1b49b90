"""The public conformance suite of the Python array API standard, on `weft.numpy`.

The suite is not part of weft: the folder `shared/array-api` beside the checkout has it, or the one
that WEFT_ARRAY_API names. A sample of its tests is run by default, all with WEFT_TESTS=all. What
fails and why is in docs/array-api.md.
"""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import EVERYTHING, ROOT

SUITE = Path(os.environ.get("WEFT_ARRAY_API", ROOT.parent / "shared" / "array-api"))
NEEDED = ("hypothesis", "ndindex", "pytest_jsonreport")
SAMPLE = (
    "test_has_names or test_signatures or floor_divide or test_searchsorted or test_iinfo"
    " or test_cumulative"
)
LEAST = 1355

pytestmark = [
    pytest.mark.skipif(not (SUITE / "run").exists(), reason="the suite is not there"),
    pytest.mark.skipif(
        any(importlib.util.find_spec(name) is None for name in NEEDED), reason="needs its tools"
    ),
]


def known_failures():
    """The names of tests in docs/array-api.md."""
    return set(
        re.findall(r"^\| `(test_\S.*?)` \|", (ROOT / "docs" / "array-api.md").read_text(), re.M)
    )


def environment(examples):
    """The suite runs in its own folder: what is imported from relative paths here, is there too."""
    given = os.environ.get("PYTHONPATH")
    paths = [os.path.abspath(path) for path in given.split(os.pathsep)] if given else []
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(paths),
        "PYTHON": sys.executable,
        "EXAMPLES": str(examples),
    }


def run(*arguments, examples):
    done = subprocess.run(
        [str(SUITE / "run"), "weft.numpy", "-rf", "--tb=short", "--disable-deadline", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=environment(examples),
    )
    failed = re.findall(r"^FAILED array_api_tests/(\S+\.py::.*?)(?: - .*)?$", done.stdout, re.M)
    counted = re.search(r"(\d+) passed", done.stdout)
    assert counted, done.stdout[-4000:] + done.stderr[-2000:]
    unknown = {name.split("::")[1] for name in failed} - known_failures()
    assert not unknown, f"{unknown}\n{done.stdout[-8000:]}"
    return int(counted[1])


def test_a_sample_of_the_suite_passes():
    run("-k", SAMPLE, "--derandomize", examples=1)


@pytest.mark.skipif(not EVERYTHING, reason="takes minutes")
def test_the_suite_passes_but_for_what_is_listed():
    assert run(examples=8) >= LEAST
