"""Settings: names, environment variables, context managers and their threads."""

import os
import subprocess
import sys
import threading

import pytest

from weft.config import config, default_device, disable_jit, enable_x64


def test_names():
    assert config.weft_enable_x64 is config.jax_enable_x64 is config.read("jax_enable_x64")
    with pytest.raises(AttributeError, match="weft_enable_x64"):
        config.update("weft_enable_x46", True)
    with pytest.raises(AttributeError):
        _ = config.nonsense
    with pytest.raises(AttributeError, match="update"):
        config.weft_enable_x64 = True
    assert "weft_disable_jit = False" in config.describe()
    assert "weft_enable_x64=False" in repr(config)


@pytest.mark.parametrize(
    "name, value, error",
    [
        ("weft_enable_x64", "yes", TypeError),
        ("weft_num_cpu_devices", 0, ValueError),
        ("weft_num_cpu_devices", 1.5, ValueError),
        ("weft_platforms", 3, TypeError),
    ],
)
def test_wrong_values(name, value, error):
    before = config.read(name)
    with pytest.raises(error, match=name):
        config.update(name, value)
    assert config.read(name) == before


def test_update_is_process_wide():
    seen = []
    config.update("jax_enable_x64", True)
    try:
        thread = threading.Thread(target=lambda: seen.append(config.weft_enable_x64))
        thread.start()
        thread.join()
    finally:
        config.update("weft_enable_x64", False)
    assert seen == [True]
    assert config.weft_enable_x64 is False


@pytest.mark.parametrize(
    "manager, name", [(enable_x64, "weft_enable_x64"), (disable_jit, "weft_disable_jit")]
)
def test_context_managers(manager, name):
    seen = []
    with manager():
        assert config.read(name) is True
        with manager(False):
            assert config.read(name) is False
        assert config.read(name) is True
        thread = threading.Thread(target=lambda: seen.append(config.read(name)))
        thread.start()
        thread.join()
    assert config.read(name) is False
    assert seen == [False]  # only the thread that entered is affected

    @manager(True)
    def decorated(depth=2):
        assert config.read(name) is True
        return depth == 0 or decorated(depth - 1)

    assert decorated()
    assert config.read(name) is False
    with pytest.raises(ZeroDivisionError), manager(True):
        raise ZeroDivisionError
    assert config.read(name) is False
    # Without an override of its own the thread follows the process-wide value again.
    config.update(name, True)
    assert config.read(name) is True
    config.update(name, False)


def test_default_device():
    before = config.weft_default_device
    with default_device(None):
        assert config.weft_default_device is None
    assert config.weft_default_device is before


@pytest.mark.parametrize(
    "variable, text, expression, value",
    [
        ("WEFT_ENABLE_X64", "1", "config.weft_enable_x64", "True"),
        ("WEFT_ENABLE_X64", "off", "config.weft_enable_x64", "False"),
        ("WEFT_DISABLE_JIT", "true", "config.weft_disable_jit", "True"),
        ("WEFT_NUM_CPU_DEVICES", "3", "config.weft_num_cpu_devices", "3"),
        ("WEFT_PLATFORMS", "cpu", "config.weft_platforms", "cpu"),
    ],
)
def test_environment(variable, text, expression, value):
    code = f"from weft.config import config; print({expression})"
    run = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, variable: text},
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.strip() == value


def test_wrong_environment_value():
    run = subprocess.run(
        [sys.executable, "-c", "import weft.config"],
        env={**os.environ, "WEFT_ENABLE_X64": "maybe"},
        capture_output=True,
        text=True,
    )
    assert run.returncode != 0
    assert "WEFT_ENABLE_X64: expected a truth value" in run.stderr
