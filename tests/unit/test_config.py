"""Settings: names, environment variables, context managers and their threads."""

import logging
import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from conftest import ROOT, SUPPORT

import weft
import weft.numpy as wnp
from weft.config import config, default_device, disable_jit, enable_x64
from weft.errors import TypePromotionError, UnexpectedTracerError


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
        ("weft_cpu_memory_kept", -1, ValueError),
        ("weft_cpu_memory_kept", 2**31, ValueError),
        ("weft_cpu_memory_kept", True, ValueError),
        ("weft_platforms", 3, ValueError),
        ("weft_numpy_dtype_promotion", None, TypeError),
        ("weft_legacy_prng_key", "bogus", ValueError),
        ("weft_optimization_level", "O9", ValueError),
        ("weft_random_seed_offset", "a", ValueError),
        ("weft_random_seed_offset", 1.5, ValueError),
        ("weft_serialization_version", 2.5, ValueError),
    ],
)
def test_wrong_values(name, value, error):
    before = config.read(name)
    with pytest.raises(error, match=name):
        config.update(name, value)
    assert config.read(name) == before


def test_names_of_jax_are_among_the_values():
    assert "jax_enable_x64" in config.values and "jax_nonsense" not in config.values
    assert config.values.get("jax_enable_x64") is False
    names = (SUPPORT / "settings_of_jax.txt").read_text().split()
    assert [name for name in names if name not in config.values] == []


def test_seed_offset():
    make = weft.jit(weft.random.key)
    keys = weft.random.key(8), make(8), make(7)
    config.update("jax_random_seed_offset", 5)
    try:
        assert config.jax_random_seed_offset == 5
        shifted = weft.random.key(3), make(3), weft.random.key(np.int32(2))
    finally:
        config.update("jax_random_seed_offset", 0)
    assert all(wnp.array_equal(a, b) for a, b in zip(keys, shifted, strict=True))
    assert not wnp.array_equal(make(3), shifted[1])


def test_transfer_guard_has_the_value_of_its_context():
    with weft.transfer_guard("allow"):
        assert config.jax_transfer_guard == "allow"
    assert config.jax_transfer_guard is None


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


X = wnp.ones((2, 3))
Y = wnp.ones(3)


def test_ranks():
    with weft.numpy_rank_promotion("warn"), pytest.warns(UserWarning, match="different ranks"):
        X + Y
    with weft.numpy_rank_promotion("raise"):
        assert (X + 1.0 == 2).all() and (X + wnp.float32(1) == 2).all()
        assert wnp.matmul(X, Y).shape == (2,)
        for f in (lambda x, y: x + y, wnp.subtract, weft.jit(lambda x, y: x * y)):
            with pytest.raises(ValueError, match="rank"):
                f(X, Y)
    assert weft.jit(lambda x, y: x * y)(X, Y).shape == (2, 3)


def test_strict_promotion():
    whole, real = wnp.int32(1), wnp.float32(1)
    with weft.numpy_dtype_promotion("strict"):
        kept = (X + 1, X + 1.0, X + np.float32(1), wnp.uint8(1) + 1, wnp.arange(3) / 2)
        assert [x.dtype.name for x in kept[:4]] == ["float32", "float32", "float32", "uint8"]
        for f in (
            lambda: whole + real,
            lambda: whole * 1.5,
            lambda: X + True,
            lambda: X + 1j,
            lambda: X + np.ones(3, np.float16),
            lambda: wnp.result_type(np.int32, np.float32),
            lambda: wnp.where(True, whole, real),
            lambda: wnp.power(X, wnp.arange(3)),
            lambda: wnp.power(X, X.astype("float16")),
            lambda: wnp.power(wnp.arange(3), wnp.ones(3, "int8")),
            lambda: wnp.float_power(Y, wnp.arange(3)),
            lambda: wnp.clip(Y, wnp.arange(3)),
            lambda: wnp.clip(Y, 0, wnp.arange(3)),
            lambda: wnp.cross(Y, wnp.arange(3)),
            lambda: wnp.outer(Y, wnp.arange(3)),
            lambda: X.at[0].set(whole),
            lambda: weft.jit(lambda x, y: x == y)(whole, real),
        ):
            with pytest.raises(TypePromotionError, match="strict"):
                f()
    assert (whole + real).dtype == "float32"


def test_strict_promotion_is_not_about_what_functions_convert_within():
    half = wnp.array([0.25, 0.5], "float16")
    with weft.numpy_dtype_promotion("strict"):
        assert wnp.var(wnp.ones(3, "complex64")) == 0
        assert wnp.var(wnp.arange(5), dtype="float16") == 2
        assert wnp.std(X, dtype="complex64") == 0
        for f in (wnp.quantile, wnp.percentile, wnp.nanquantile, wnp.nanpercentile):
            assert f(X.astype("float16"), half, axis=0).dtype == "float16"
            assert f(wnp.arange(4), half).dtype == "float32"
        mass = wnp.ones(3)
        assert wnp.quantile(Y.astype("float16"), half, method="inverted_cdf", weights=mass).all()
        with weft.enable_x64():
            assert wnp.quantile(wnp.arange(4), wnp.float32(0.5)) == 1.5
            assert wnp.quantile(wnp.arange(4.0), wnp.float32(0.5)) == 1.5


def test_precision_of_products():
    def f(a, b):
        return wnp.matmul(a, b)

    def of(function, *args):
        text = str(weft.make_jaxpr(function)(*args))
        return text.split("precision=")[1].split("\n")[0].strip()

    image, kernel = wnp.ones((1, 1, 4)), wnp.ones((1, 1, 2))
    conv = lambda a, b: weft.lax.conv(a, b, (1,), "SAME")
    for name, product in [
        ("bfloat16", "DEFAULT"),
        ("tensorfloat32", "HIGH"),
        ("highest", "HIGHEST"),
        ("F32_F32_F32", "F32_F32_F32"),
    ]:
        with weft.default_matmul_precision(name):
            assert of(f, X, X.T) == product
            assert of(conv, image, kernel) == ("DEFAULT" if product[0] == "F" else product)
            assert of(lambda a, b: wnp.dot(a, b, precision="high"), X, X.T) == "HIGH"
    assert "precision" not in str(weft.make_jaxpr(f)(X, X.T))


@pytest.fixture
def heard(caplog):
    caplog.set_level(logging.WARNING, "weft")
    return caplog


def test_compilations_are_logged(heard):
    with weft.log_compiles():
        weft.jit(lambda x: x * 3.25 + 2)(X)
    text = heard.text
    for words in ("Finished tracing", "Compiling jit(", "f32[2,3]", "Finished XLA compilation"):
        assert words in text
    heard.clear()
    weft.jit(lambda x: x * 4.25 + 2)(X)
    assert not heard.text


def test_misses_are_explained(heard):
    f = weft.jit(lambda x: x + 1)
    with weft.explain_cache_misses():
        f(X)
        for words in ("TRACING CACHE MISS", "first call", "test_config.py", "traced in", "XLA"):
            assert words in heard.text
        heard.clear()
        f(X)
        assert not heard.text
        f(Y)
        assert "argument x is f32[3], before f32[2,3]" in heard.text


def test_nothing_is_traced_or_run():
    f = weft.jit(lambda x: x * 2.5 + 1)
    f(X)
    with weft.no_tracing():
        f(X)
        for call in (lambda: f(Y), lambda: weft.make_jaxpr(f)(Y)):
            with pytest.raises(RuntimeError, match="no_tracing"):
                call()
    with weft.no_execution():
        weft.jit(lambda x: x * 3).lower(X)
        for call in (lambda: f(X), lambda: X + 1):
            with pytest.raises(RuntimeError, match="no_execution"):
                call()


def test_leaks_are_found():
    kept = []

    def leaks(x):
        kept.append(x * 2)
        return x

    with weft.checking_leaks():
        for transform in (weft.jit, weft.vmap, lambda f: weft.make_jaxpr(f)):
            with pytest.raises(UnexpectedTracerError, match="Leaked"):
                transform(leaks)(Y)
        with pytest.raises(UnexpectedTracerError, match="Leaked"):
            weft.lax.scan(lambda c, x: (leaks(c), x), 0.0, Y)
        assert weft.jit(lambda x: x * 2)(1.0) == 2
    weft.jit(leaks)(Y)


@weft.custom_batching.custom_vmap
def with_rule(x):
    return wnp.sin(x)


with_rule.def_vmap(lambda size, mapped, x: (wnp.sin(x), mapped[0]))


def root(x):
    solve = lambda f, x0: wnp.sqrt(x.sum())
    return weft.lax.custom_root(lambda y: y**2 - x.sum(), 1.0, solve, lambda g, y: y / g(1.0))


@pytest.mark.parametrize(
    "f",
    [root, with_rule, weft.custom_batching.sequential_vmap(wnp.sin), lambda x: series(x)],
)
def test_what_the_library_keeps_is_no_leak(f):
    with weft.checking_leaks():
        for transform in (weft.jit, weft.vmap, lambda f: weft.make_jaxpr(f)):
            transform(lambda x: f(x))(wnp.ones((2, 3)) + 1)
        weft.jvp(lambda x: f(x), (X,), (X,))
        if f is root:
            weft.jit(weft.grad(lambda x: f(x)))(X)


def series(x):
    from weft.experimental.jet import jet

    return jet(wnp.sin, (x,), ((x,),))[0]


def test_guards_of_transfers(heard):
    host = np.ones(3, np.float32)
    implicit = (lambda: Y + host, lambda: Y + 7.5, lambda: wnp.asarray([1.0]), lambda: wnp.ones(2))
    jitted = weft.jit(lambda x: x + host)
    for level in ("disallow", "disallow_explicit"):
        with weft.transfer_guard(level):
            assert np.asarray(jitted(Y))[0] == 2 and float(Y.sum()) == 3
            for call in (*implicit, lambda: jitted(host)):
                with pytest.raises(RuntimeError, match="Disallowed host-to-device"):
                    call()
            if level == "disallow":
                assert weft.device_get(weft.device_put(host))[0] == 1
            else:
                with pytest.raises(RuntimeError, match="Disallowed"):
                    weft.device_put(host)
    with weft.transfer_guard_host_to_device("log"):
        _ = Y + host
        assert "host-to-device transfer of f32[3]" in heard.text
        heard.clear()
        weft.device_put(host)
        assert not heard.text
    config.update("jax_transfer_guard", "disallow")
    try:
        assert config.jax_transfer_guard_device_to_host == "disallow"
    finally:
        config.update("jax_transfer_guard", None)
    assert config.weft_transfer_guard_host_to_device is None


def test_settings_are_part_of_what_calls_share():
    f = weft.jit(lambda x: wnp.matmul(x, x))
    f(wnp.ones((2, 2)))
    with weft.default_matmul_precision("highest"):
        f(wnp.ones((2, 2)))
    assert f.cache_info().currsize == 2


@pytest.mark.parametrize("name", sorted(config.values))
def test_every_setting_is_read_and_set(name):
    value = config.read(name)
    assert config.read(name.replace("weft_", "jax_", 1)) == value == getattr(config, name)
    config.update(name, value)
    with pytest.raises((TypeError, ValueError, RuntimeError)):
        config.update(name, object())


@pytest.mark.parametrize("name", ["enable_checks", "softmax_custom_jvp", "thread_guard"])
def test_settings_without_effect_are_kept(name):
    before = config.read(f"weft_{name}")
    with getattr(weft, name)(True):
        assert config.read(f"weft_{name}") is True
    assert config.read(f"weft_{name}") is before


def test_the_table_of_settings_is_up_to_date():
    path = ROOT / "docs" / "config.md"
    assert path.read_text() == config.table(), "run tools/settings"


KEPT = """
import resource
import weft, weft.numpy as wnp

def resident():
    return 4096 * int(open("/proc/self/statm").read().split()[1])

f = weft.jit(lambda x: x + 1)
x = wnp.zeros(10_000_000, "float32")
for _ in range(3):
    f(x).block_until_ready()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(10):
    f(x).block_until_ready()
faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
held = resident()
weft.clear_caches()
print(faults, held - resident())
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc")
def test_memory_that_is_kept_between_calls(run_python):
    kept = [int(n) for n in run_python(KEPT).split()]
    others = [int(n) for n in run_python(KEPT, WEFT_CPU_MEMORY_KEPT="0").split()]
    # An array is 9,766 pages. Now and then the allocator has none of that size left.
    assert kept[0] < 30_000 and kept[1] > 30_000_000, kept
    assert others[0] > 90_000, others


def test_settings_of_the_allocator_in_the_environment_count(monkeypatch):
    from weft.runtime import memory

    calls = []
    monkeypatch.setattr(memory, "_function", lambda name: lambda *args: calls.append(args))
    monkeypatch.setenv("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1")
    memory.keep(2**20)
    assert not calls
    monkeypatch.setenv("GLIBC_TUNABLES", "")
    memory.keep(2**20)
    memory.keep(0)
    assert [size for _, size in calls if size > 2**10] == [2**20] * 2
