"""The programs in examples/ do what they say."""

import re
import subprocess
import sys

import pytest
from conftest import EVERYTHING, ROOT


def test_first_program():
    command = [sys.executable, ROOT / "examples" / "first.py"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1] == "y = 2.000 x + 0.999"


def test_digits_are_learnt(tmp_path):
    for module in ("sklearn", "matplotlib", "tqdm"):
        pytest.importorskip(module)
    command = [sys.executable, ROOT / "examples" / "digits.py", "--out", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-4000:]
    assert float(re.search(r"accuracy .*: ([\d.]+)", done.stdout)[1]) > 0.95
    assert (tmp_path / "digits_loss.png").stat().st_size > 1000
    assert str(tmp_path / "digits_loss.png") in done.stdout
    assert "stablehlo.dot_general" in done.stdout and "time of a step" in done.stdout


def test_digits_reports_a_failure(tmp_path):
    for module in ("sklearn", "matplotlib", "tqdm"):
        pytest.importorskip(module)
    command = [sys.executable, ROOT / "examples" / "digits.py", "--out", tmp_path, "--epochs", "1"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 1 and "not above 0.95" in done.stderr


more = pytest.mark.skipif(not EVERYTHING, reason="the others show that the model is trained")


@pytest.mark.parametrize(
    "example, held, sent",
    [
        ("data_parallel", 1, {"all-reduce"}),
        ("pipeline", 1 / 8, {"collective-permute", "all-reduce"}),
        pytest.param("tensor_parallel", 1 / 4, {"all-reduce"}, marks=more),
        pytest.param("fsdp", 1 / 8, {"all-gather", "reduce-scatter", "all-reduce"}, marks=more),
    ],
)
def test_parallel_training_is_that_of_one_device(example, held, sent):
    command = [sys.executable, ROOT / "examples" / f"{example}.py", "--quick", "--steps", "3"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-4000:]
    assert "losses on one device differ" in done.stdout
    first, last = re.search(r"loss ([\d.]+) -> ([\d.]+)", done.stdout).groups()
    assert float(last) < float(first)
    # Some parameters are on every device, less than a tenth of them.
    share = float(re.search(r"holds ([\d.]+)%", done.stdout)[1]) / 100
    assert held - 1e-3 <= share <= held + 0.1
    assert sent == set(re.findall(r"^([a-z]+-[a-z-]+) ", done.stdout, re.MULTILINE))


@more
def test_parallel_training_by_two_processes():
    examples = ROOT / "examples"
    command = [sys.executable, examples / "distributed_run.py", "-n", "2"]
    command += [examples / "fsdp.py", "--quick", "--steps", "2"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    assert done.stdout.count("losses on one device differ") == 1
    assert "[0] a device holds 12.5%" in done.stdout
