"""The installed CMake package: a C++ program that embeds weft builds against it and runs."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import ROOT

EMBED = ROOT / "tests" / "embed"
# What `pip install .` of tools/test leaves behind; without it the core is built here.
PACKAGE_BUILD = ROOT / "build" / "package"


def run(*command: str | Path, cwd: Path | None = None) -> str:
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, cwd=cwd)
    assert done.returncode == 0, f"{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    build = Path(os.environ.get("WEFT_BUILD_DIR", PACKAGE_BUILD))
    if not (build / "libweft.a").exists():
        build = tmp_path_factory.mktemp("core")
        run("cmake", "-S", ROOT, "-B", build, "-G", "Ninja", "-DWEFT_BUILD_TOOLS=OFF",
            "-DCMAKE_CXX_FLAGS_RELEASE=-O0")  # fmt: skip
        run("cmake", "--build", build, "--target", "weft")
    prefix = tmp_path_factory.mktemp("prefix")
    run("cmake", "--install", build, "--prefix", prefix, "--component", "dev")
    return prefix


@pytest.fixture(scope="module")
def output(prefix, tmp_path_factory):
    if shutil.which("ninja") is None:
        pytest.skip("needs ninja")
    build = tmp_path_factory.mktemp("embedding")
    run("cmake", "-S", EMBED, "-B", build, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}")
    run("cmake", "--build", build)
    return run(build / "embedding")


def test_package_holds_no_absolute_paths(prefix):
    for path in (prefix / "lib" / "cmake" / "weft").iterdir():
        assert str(ROOT) not in path.read_text()


def test_program_with_own_op(output):
    before, after = output.partition("module @")[0].split("optimized\n")
    assert "= softsign" in before and "= exp" in before
    assert "= softsign" in after and "exp" not in after and "add" not in after


def test_own_op_is_lowered(output):
    assert "module @embedded" in output
    for op in ("stablehlo.abs", "stablehlo.add", "stablehlo.divide", "stablehlo.reduce"):
        assert op in output
    assert "softsign" not in output[output.index("module @embedded") : output.index("round trip")]


def test_round_trip_and_errors(output):
    assert "round trip: equal" in output
    assert "error: " in output and "[softsign] expected a float; got i32[]" in output
