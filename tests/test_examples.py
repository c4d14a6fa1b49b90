"""The programs in examples/ do what they say."""

import re
import subprocess
import sys

import pytest
from conftest import ROOT


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
