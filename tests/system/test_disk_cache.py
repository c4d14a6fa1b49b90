"""The cache of compiled programs on disk: its files in any state, processes that share it or die,
what is found in it and what never is, `weft cache`."""

import json
import logging
import os
import random
import re
import stat
import subprocess
import sys
import time

import numpy as np
import pytest
from conftest import EVERYTHING

import weft
import weft.numpy as wnp
from weft import compiler
from weft.cli import main
from weft.config import config
from weft.experimental.compilation_cache import compilation_cache
from weft.runtime import disk_cache
from weft.runtime.disk_cache import Damaged, Store, Unusable, pack, unpack

ABOUT = {"name": "f", "created": 1.0, "seconds": 0.5, "versions": "v", "devices": "1 x cpu"}
X = np.linspace(0, 1, 12, dtype=np.float32).reshape(3, 4)


@pytest.fixture
def store(tmp_path):
    return Store(str(tmp_path / "cache"))


@pytest.fixture
def on(tmp_path, monkeypatch):
    """The cache is on, in a folder of the test's own, and nothing is in memory."""
    monkeypatch.delenv("WEFT_CACHE_DIR", raising=False)
    disk_cache.reset()
    names = ("enable_compilation_cache", "compilation_cache_dir", "compilation_cache_max_size")
    before = {name: config.read(f"weft_{name}") for name in names}
    config.update("weft_compilation_cache_dir", str(tmp_path / "on"))
    config.update("weft_enable_compilation_cache", True)
    weft.clear_caches()
    yield tmp_path / "on"
    for name, value in before.items():
        config.update(f"weft_{name}", value)
    weft.clear_caches()


def counts(f):
    """What f() returns, how many programs it compiled, and how many it found on disk."""
    before = compiler.cache_stats()
    result = f()
    after = compiler.cache_stats()
    return result, *(after[k] - before[k] for k in ("compiles", "disk_hits"))


def again(f):
    """The same, as a process would see it that has nothing in memory."""
    weft.clear_caches()
    return counts(f)


def entry(path):
    (found,) = path.glob("*.weft")
    return found


# Files


def test_entries_come_back(store, tmp_path):
    assert store.get(b"key") is None and not list(store.entries())
    store.put(ABOUT, b"key", b"program" * 100)
    assert store.get(b"key") == b"program" * 100
    assert store.get(b"other") is None
    store.put(ABOUT, b"key", b"")
    assert store.get(b"key") == b""
    ((name, _, about, error),) = store.entries()
    assert (name, about, error) == (disk_cache.name_of(b"key"), ABOUT, None)
    assert [p.name for p in (tmp_path / "cache").iterdir()] == [name]


def test_damaged_bytes_are_refused():
    whole = pack(ABOUT, b"preimage" * 5, bytes(range(256)))
    assert unpack(whole) == (b"preimage" * 5, bytes(range(256)))
    for n in range(len(whole)):
        with pytest.raises(Damaged):
            unpack(whole[:n])
        for bit in range(8) if EVERYTHING else (n % 8,):
            flipped = bytearray(whole)
            flipped[n] ^= 1 << bit
            with pytest.raises(Damaged):
                unpack(bytes(flipped))
    for more in (b"\0", whole):
        with pytest.raises(Damaged):
            unpack(whole + more)


def test_damaged_files_go(store, tmp_path):
    for damage in (lambda d: d[:-1], lambda d: b"", lambda d: b"text", lambda d: d[:60] + d[61:]):
        store.put(ABOUT, b"key", b"program")
        path = entry(tmp_path / "cache")
        path.write_bytes(damage(path.read_bytes()))
        assert store.get(b"key") is None
        assert not path.exists()


def test_another_program_under_the_name(store, tmp_path):
    """Hashes that collide, or a file that someone renamed."""
    store.put(ABOUT, b"key", b"program")
    path = entry(tmp_path / "cache")
    os.rename(path, path.with_name(disk_cache.name_of(b"other")))
    assert store.get(b"other") is None
    store.put(ABOUT, b"other", b"its own")
    assert store.get(b"other") == b"its own"


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o777])
def test_only_the_user_may_read_and_write(store, tmp_path, umask):
    (tmp_path / "cache").parent.chmod(0o755)
    before = os.umask(umask & 0o077)  # a directory without rights of its owner is no use to anyone
    try:
        store.put(ABOUT, b"first", b"program")
        os.umask(umask)
        store.put(ABOUT, b"key", b"program")
        assert store.get(b"key") == b"program"
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "cache").stat().st_mode) == 0o700
    assert {stat.S_IMODE(p.stat().st_mode) for p in (tmp_path / "cache").iterdir()} == {0o600}


def test_files_that_are_not_the_users_own(store, tmp_path):
    store.put(ABOUT, b"key", b"program")
    path = entry(tmp_path / "cache")
    for mode in (0o620, 0o602, 0o666):
        path.chmod(mode)
        with pytest.raises(Unusable, match="others can write"):
            store.get(b"key")
    path.chmod(0o600)
    if os.geteuid() == 0:
        os.chown(path, 12345, -1)
        with pytest.raises(Unusable, match="owned by user 12345"):
            store.get(b"key")
        os.chown(path, 0, -1)
    assert store.get(b"key") == b"program"
    for mode in (0o770, 0o702, 0o777, 0o1777):
        (tmp_path / "cache").chmod(mode)
        for use in (lambda: store.get(b"key"), lambda: store.put(ABOUT, b"key", b"")):
            with pytest.raises(Unusable, match=r"others can write to the directory"):
                use()


def test_what_stands_in_the_place_of_a_file(store, tmp_path):
    store.put(ABOUT, b"key", b"program")
    path = entry(tmp_path / "cache")
    real = path.rename(tmp_path / "real")
    path.symlink_to(real)
    with pytest.raises(OSError):
        store.get(b"key")
    path.unlink()
    os.mkfifo(path)
    with pytest.raises((OSError, Unusable)):
        store.get(b"key")  # and does not wait for a writer
    store.put(ABOUT, b"key", b"program")  # takes its place
    assert store.get(b"key") == b"program" and real.exists()
    path.unlink()
    path.mkdir()
    with pytest.raises((OSError, Unusable)):
        store.get(b"key")
    with pytest.raises(OSError):
        store.put(ABOUT, b"key", b"program")
    assert [p.name for p in (tmp_path / "cache").iterdir()] == [path.name]


def test_directory_is_a_link_or_gone(store, tmp_path):
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    (tmp_path / "cache").symlink_to(tmp_path / "elsewhere")
    store.put(ABOUT, b"key", b"program")
    assert store.get(b"key") == b"program" and entry(tmp_path / "elsewhere")
    (tmp_path / "cache").unlink()
    assert store.get(b"key") is None
    store.put(ABOUT, b"key", b"program")
    assert store.get(b"key") == b"program"


def test_least_recently_used_goes(tmp_path):
    size = len(pack(ABOUT, b"key 0", os.urandom(1000)))
    store = Store(str(tmp_path), 8 * size)
    old = time.time() - 10000
    for i in range(8):
        store.put(ABOUT, b"key %d" % i, os.urandom(1000))
        os.utime(tmp_path / disk_cache.name_of(b"key %d" % i), (old + i, old + i))
    dead, alive = tmp_path / "dead.part", tmp_path / "alive.part"
    dead.write_bytes(b"x")
    os.utime(dead, (old, old))
    alive.write_bytes(b"x")
    foreign = tmp_path / "notes.txt"
    foreign.write_text("not ours")
    assert store.get(b"key 0") is not None  # younger now
    store.put(ABOUT, b"key 8", os.urandom(1000))
    left = [i for i in range(9) if store.get(b"key %d" % i) is not None]
    assert left == [0, 4, 5, 6, 7, 8] or left == [0, 3, 4, 5, 6, 7, 8]
    assert not dead.exists() and alive.exists() and foreign.exists()
    Store(str(tmp_path), 100).put(ABOUT, b"large", os.urandom(1000))
    assert store.get(b"large") is None
    for i in range(40):
        store.put(ABOUT, b"%d" % i, os.urandom(1000))
    assert sum(p.stat().st_size for p in tmp_path.glob("*.weft")) <= 8 * size


# Processes that die while they write, or share a directory. The one that makes them has no threads.

FORKED = """
import os, random, signal, sys, time
from weft.runtime.disk_cache import Store

path, count = sys.argv[1], int(sys.argv[2])
rng = random.Random(7)

def program(i):
    return random.Random(i).randbytes(1000 + 40000 * (i % 3))

def child(work):
    pid = os.fork()
    if pid == 0:
        try:
            work()
        except BaseException as error:
            print(repr(error), flush=True)
            os._exit(1)
        os._exit(0)
    return pid
"""
KILLS = (
    FORKED
    + """
def write_for_ever():
    store, i = Store(path, 2_000_000), 0
    while True:
        store.put({"name": str(i)}, b"key %d" % (i % 20), program(i % 20))
        i += 1

for n in range(count):
    pid = child(write_for_ever)
    time.sleep(rng.uniform(0.001, 0.04))
    os.kill(pid, signal.SIGKILL)
    assert os.WIFSIGNALED(os.waitpid(pid, 0)[1])
    store = Store(path, 2_000_000)
    assert all(error is None for *_, error in store.entries(whole=True))
    for i in range(20):
        assert store.get(b"key %d" % i) in (None, program(i)), i
store.put({}, b"after", b"all")
assert store.get(b"after") == b"all"
print("unfinished", sum(name.endswith(".part") for name in os.listdir(path)))
print("entries", sum(name.endswith(".weft") for name in os.listdir(path)))
"""
)
SHARED = (
    FORKED
    + """
def use(seed):
    rng, store, found = random.Random(seed), Store(path, 400_000), 0
    for _ in range(count):
        i = rng.randrange(60)
        got = store.get(b"key %d" % i)
        assert got in (None, program(i)), i
        found += got is not None
        if got is None:
            store.put({"name": str(i)}, b"key %d" % i, program(i))
        if rng.random() < 0.01:
            store.clear()
        if rng.random() < 0.02:
            name = rng.choice(os.listdir(path) or ["none.weft"])
            try:
                with open(os.path.join(path, name), "r+b") as file:
                    file.seek(rng.randrange(200))
                    file.write(b"damage")
            except OSError:
                pass
    assert found

os.mkdir(path, 0o700)
pids = [child(lambda: use(seed)) for seed in range(4)]
assert [os.waitpid(pid, 0)[1] for pid in pids] == [0] * 4
"""
)


def test_kill_while_writing(run_python, tmp_path):
    code = f"import sys; sys.argv[1:] = [{str(tmp_path / 'k')!r}, '{400 if EVERYTHING else 40}']\n"
    unfinished, entries = run_python(code + KILLS, timeout=600).split("\n")[:2]
    assert 2 <= int(entries.split()[1]) <= 21
    assert EVERYTHING <= int(unfinished.split()[1])  # some died in the middle


def test_processes_that_share_a_directory(run_python, tmp_path):
    code = (
        f"import sys; sys.argv[1:] = [{str(tmp_path / 's')!r}, '{3000 if EVERYTHING else 300}']\n"
    )
    assert run_python(code + SHARED, timeout=600) == ""


# Programs


def step(w, x):
    return wnp.sum(wnp.tanh(x @ w) ** 2)


def test_programs_are_found(on):
    args = (X.T.copy(), X)
    first, compiles, hits = counts(lambda: weft.jit(weft.value_and_grad(step))(*args))
    assert (compiles, hits) == (1, 0)
    second, compiles, hits = again(lambda: weft.jit(weft.value_and_grad(step))(*args))
    assert (compiles, hits) == (0, 1)
    assert weft.tree.map(lambda a, b: bool((a == b).all()), first, second) == (True, True)

    def renamed(w, x):

        return wnp.sum(wnp.tanh(x @ w) ** 2)

    assert again(lambda: weft.jit(weft.value_and_grad(renamed))(*args))[1:] == (0, 1)
    assert again(lambda: weft.jit(step)(*args))[1:] == (1, 0)
    assert again(lambda: weft.jit(weft.value_and_grad(step))(*args[:1], X[:2]))[1:] == (1, 0)
    config.update("weft_compilation_cache_include_metadata_in_key", True)
    try:
        assert again(lambda: weft.jit(weft.value_and_grad(renamed))(*args))[1:] == (1, 0)
        assert again(lambda: weft.jit(weft.value_and_grad(renamed))(*args))[1:] == (0, 1)
        assert again(lambda: weft.jit(weft.value_and_grad(step))(*args))[1:] == (1, 0)
    finally:
        config.update("weft_compilation_cache_include_metadata_in_key", False)


def test_all_that_decides_is_told_apart(on):
    """Programs that differ in one thing each, all of whose results are other bits or places."""
    x = np.linspace(0.1, 3, 64, dtype=np.float32)
    variants = {
        "plain": lambda: weft.jit(lambda x: wnp.sin(x) * 2)(x),
        "number": lambda: weft.jit(lambda x: wnp.sin(x) * 3)(x),
        "function": lambda: weft.jit(lambda x: wnp.cos(x) * 2)(x),
        "dtype": lambda: weft.jit(lambda x: wnp.sin(x) * 2)(x.astype(wnp.bfloat16)),
        "shape": lambda: weft.jit(lambda x: wnp.sin(x) * 2)(x.reshape(8, 8)),
        "donated": lambda: weft.jit(lambda x: wnp.sin(x) * 2, donate_argnums=0)(wnp.array(x)),
        "twice": lambda: weft.jit(lambda x: (wnp.sin(x) * 2, wnp.sin(x)))(x)[0],
        "options": lambda: weft.jit(
            lambda x: wnp.sin(x) * 2, compiler_options={"xla_cpu_enable_fast_math": True}
        )(x),
        "other options": lambda: weft.jit(
            lambda x: wnp.sin(x) * 2, compiler_options={"xla_cpu_enable_fast_math": False}
        )(x),
        "checkpoint": lambda: weft.jit(weft.grad(weft.checkpoint(lambda x: wnp.sum(wnp.sin(x)))))(
            x
        ),
        "no checkpoint": lambda: weft.jit(weft.grad(lambda x: wnp.sum(wnp.sin(x))))(x),
    }
    first = {}
    for name, f in variants.items():
        x_was = wnp.array(x) if name == "donated" else None  # the move is no program of ours
        first[name], compiles, _ = counts(f)
        assert compiles >= 1, name
        del x_was
    for name, f in variants.items():
        value, compiles, hits = again(f)
        assert compiles == 0 and hits >= 1, name
        assert value.dtype == first[name].dtype and value.shape == first[name].shape, name
        assert np.asarray(value).tobytes() == np.asarray(first[name]).tobytes(), name


def test_what_a_program_tells_of_itself(on):
    def compiled():
        return weft.jit(weft.grad(step)).lower(X.T.copy(), X).compile()

    first, second = compiled(), again(compiled)[0]
    assert first.as_text() == second.as_text()
    assert first.cost_analysis() == second.cost_analysis()
    a, b = first.memory_analysis(), second.memory_analysis()
    assert a.temp_size_in_bytes == b.temp_size_in_bytes
    assert a.argument_size_in_bytes == b.argument_size_in_bytes


def test_kinds_of_programs(on):
    """Loops, sorting, random numbers, LAPACK, results without elements, of one operation."""
    a = np.eye(3, dtype=np.float32) * 2 + 1

    def programs():
        return [
            weft.jit(lambda x: weft.lax.scan(lambda c, y: (c + y, c * y), x[0], x))(X),
            weft.jit(lambda x: weft.lax.while_loop(lambda v: v[0] < 5, lambda v: v + 1, x[0]))(X),
            weft.jit(lambda x: (wnp.sort(x, axis=1), wnp.argsort(x), wnp.zeros((0, 3))))(X),
            weft.jit(lambda k: weft.random.normal(k, (5,)))(weft.random.PRNGKey(3)),
            weft.jit(lambda a: (wnp.linalg.cholesky(a), wnp.linalg.eigh(a), wnp.linalg.inv(a)))(a),
            weft.jit(lambda x: wnp.fft.fft(x))(X),
            wnp.array(X) + 1,
        ]

    first, compiles, _ = counts(programs)
    second, again_compiled, hits = again(programs)
    assert again_compiled == 0 and hits == compiles >= 7
    for x, y in zip(weft.tree.leaves(first), weft.tree.leaves(second), strict=True):
        assert np.asarray(x).tobytes() == np.asarray(y).tobytes()


def test_what_stays_out(on):
    told = []

    def program():
        def f(x):
            weft.debug.callback(told.append, x[0, 0])
            return weft.pure_callback(lambda y: y, weft.ShapeDtypeStruct(x.shape, x.dtype), x)

        return weft.jit(f)(X)

    for _ in range(2):
        weft.clear_caches()
        np.testing.assert_array_equal(program(), X)
        weft.effects_barrier()
    assert len(told) == 2
    dumped = {"xla_dump_to": str(on.parent / "dump")}
    for _ in range(2):
        weft.jit(lambda x: x * 5, compiler_options=dumped).lower(X).compile()
        weft.clear_caches()
    assert not on.exists()
    config.update("weft_enable_compilation_cache", False)
    weft.jit(step)(X.T.copy(), X)
    config.update("weft_enable_compilation_cache", True)
    config.update("weft_compilation_cache_max_size", 0)
    weft.clear_caches()
    weft.jit(step)(X.T.copy(), X)
    assert not on.exists()


def test_small_and_fast_programs_by_setting(on):
    for name, value in (
        ("weft_persistent_cache_min_compile_time_secs", 1e6),
        ("weft_persistent_cache_min_entry_size_bytes", 10**9),
    ):
        before = config.read(name)
        config.update(name, value)
        try:
            weft.jit(lambda x: x * 7)(X)
        finally:
            config.update(name, before)
        weft.clear_caches()
        assert not list(on.glob("*.weft"))


def test_one_layer_changed(on):
    def model(head):
        def loss(params, x):
            for w in params:
                h = wnp.tanh(x @ w)
                x = x + h - wnp.mean(h, axis=-1, keepdims=True) * wnp.cos(x) + wnp.sin(x) ** 2 / 8
                x = x / (1 + wnp.std(x, axis=-1, keepdims=True))
            return head(x)

        return weft.jit(weft.grad(loss), compile="blocks")

    params = [np.eye(4, dtype=np.float32) * 0.1] * 6

    def run(head):
        return lambda: model(head)(params, X)

    first, compiles, _ = counts(run(lambda x: wnp.sum(x**2)))
    assert compiles >= 2
    second, none, hits = again(run(lambda x: wnp.sum(x**2)))
    assert none == 0 and hits == compiles
    np.testing.assert_array_equal(np.stack(first), np.stack(second))
    _, other, hits = again(run(lambda x: wnp.sum(wnp.exp(x) * 3)))
    assert 1 <= other < compiles and hits >= 1


def test_damaged_entries_compile_again(on):
    def run():
        return float(weft.jit(step)(X.T.copy(), X))

    expected = run()
    whole = entry(on).read_bytes()
    rng = random.Random(3)
    places = [rng.randrange(len(whole)) for _ in range(50 if EVERYTHING else 6)]
    for n in places:
        for damaged in (whole[:n], whole[:n] + bytes([whole[n] ^ 16]) + whole[n + 1 :]):
            entry(on).write_bytes(damaged)
            value, compiles, hits = again(run)
            assert (value, compiles, hits) == (expected, 1, 0)
    assert again(run)[1:] == (0, 1)
    # What is whole, but jaxlib cannot load.
    preimage, executable = unpack(entry(on).read_bytes())
    for other in (b"", b"no program", executable[: len(executable) // 2]):
        entry(on).write_bytes(pack(ABOUT, preimage, other))
        assert again(run) == (expected, 1, 0)


def test_disks_that_refuse(on, monkeypatch, caplog):
    def run(n):
        weft.clear_caches()
        return weft.jit(lambda x: x[0, 1] * n)(X)

    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch, caplog.at_level(logging.INFO, "weft"):
        patch.setattr(disk_cache.os, "replace", full)
        for n in range(3):
            assert run(n) == X[0, 1] * n
    assert len(caplog.records) == 1 and "No space left" in caplog.text
    assert not list(on.iterdir())
    (on.parent / "file").write_text("")
    for place, why in (
        (on.parent / "file" / "below", "Not a directory"),
        ("/proc/weft", "No such file"),
        ("gs://bucket/x", "of this machine"),
    ):
        caplog.clear()
        config.update("weft_compilation_cache_dir", str(place))
        for n in range(2):
            assert run(n) == X[0, 1] * n
        assert len(caplog.records) == 1 and why in caplog.text
    compilation_cache.set_cache_dir(on)
    on.chmod(0o777)
    caplog.clear()
    compilation_cache.reset_cache()
    assert run(4) == X[0, 1] * 4 and run(5) == X[0, 1] * 5
    assert len(caplog.records) == 1 and "others can write" in caplog.text
    compilation_cache.reset_cache()
    config.update("weft_raise_persistent_cache_errors", True)
    try:
        with pytest.raises(Unusable, match="others can write"):
            run(6)
    finally:
        config.update("weft_raise_persistent_cache_errors", False)


def test_where_the_directory_is(monkeypatch, tmp_path):
    monkeypatch.delenv("WEFT_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert disk_cache.location() == (str(tmp_path / "weft"), False)
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert disk_cache.location() == (str(tmp_path / "home" / ".cache" / "weft"), False)
    with monkeypatch.context() as patch:
        patch.setattr(disk_cache.os.path, "expanduser", lambda path: path)
        with pytest.raises(FileNotFoundError, match="no home"):
            disk_cache.location()
    config.update("jax_compilation_cache_dir", str(tmp_path / "set"))
    try:
        assert disk_cache.location() == (str(tmp_path / "set"), True)
        monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path / "env"))
        assert disk_cache.location() == (str(tmp_path / "env"), True)
    finally:
        config.update("jax_compilation_cache_dir", None)


# A new process: other addresses, other hashes of strings, and several devices.
PROCESS = """
import sys
import numpy as np
import weft, weft.numpy as wnp
from weft import compiler
from weft.sharding import Mesh, NamedSharding, PartitionSpec as P

mesh = weft.make_mesh((4,), ("x",))
x = weft.device_put(np.arange(32, dtype=np.float32).reshape(8, 4), NamedSharding(mesh, P("x")))
y = weft.jit(lambda x: wnp.sin(x @ x.T).sum(axis=0))(x)
z = weft.jit(weft.shard_map(
    lambda v: weft.lax.psum(wnp.cos(v), "x"), mesh=mesh, in_specs=P("x"), out_specs=P()))(x)
there = weft.device_put(np.ones(3, np.float32), weft.devices()[2])
w = weft.jit(lambda a: wnp.exp(a) * 2)(there)
{more}
print(y.sharding, z.sharding, w.devices())
print([np.asarray(v).tobytes().hex() for v in (y, z, w)])
stats = compiler.cache_stats()
print(stats["compiles"], stats["disk_hits"], file=sys.stderr)
print(stats["compiles"] > 0, stats["disk_hits"] > 0)
"""


def test_other_processes_and_devices(run_python, tmp_path):
    env = {
        "WEFT_CACHE_DIR": str(tmp_path / "p"),
        "WEFT_ENABLE_COMPILATION_CACHE": "1",
        "XLA_FLAGS": os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=4",
    }
    runs = [
        run_python(PROCESS.replace("{more}", ""), **env, PYTHONHASHSEED=str(seed)).splitlines()
        for seed in range(2)
    ]
    assert runs[0][:2] == runs[1][:2]
    assert (runs[0][2], runs[1][2]) == ("True False", "False True")


WORK = """
import numpy as np
import weft, weft.numpy as wnp

x = np.linspace(0, 1, 12, dtype=np.float32).reshape(3, 4)
for k in range(6):
    f = weft.jit(lambda x: (wnp.sin(x) * k, wnp.cumsum(x @ x.T + k, axis=0)))
    print([np.asarray(v).tobytes().hex() for v in f(x)], flush=True)
"""


def test_programs_of_processes_that_die(tmp_path):
    """Those that live get right results, whatever the others were at."""
    env = os.environ | {
        "WEFT_CACHE_DIR": str(tmp_path / "w"),
        "WEFT_ENABLE_COMPILATION_CACHE": "1",
        "WEFT_COMPILATION_CACHE_MAX_SIZE": "20000",  # four entries: some go all the time
        "WEFT_RAISE_PERSISTENT_CACHE_ERRORS": "1",
    }
    alone = env | {"WEFT_ENABLE_COMPILATION_CACHE": "0"}

    def start(env):
        command = [sys.executable, "-c", WORK]
        return subprocess.Popen(command, env=env, text=True, stdout=-1, stderr=-1)

    rng = random.Random(5)
    for _ in range(100 if EVERYTHING else 2):
        process = start(env)
        time.sleep(rng.uniform(0.2, 1.2))
        process.kill()
        process.communicate()
    outputs = [p.communicate(timeout=120) for p in [start(alone), start(env), start(env)]]
    assert outputs[0][0].count("\n") == 6
    assert outputs[1:] == [outputs[0]] * 2
    assert all(error is None for *_, error in Store(env["WEFT_CACHE_DIR"]).entries(whole=True))


# The command


def test_command(on, capsys):
    def tangent(x):
        return wnp.tanh(x) + 1

    assert main(["cache", "where"]) == 0
    assert capsys.readouterr().out.startswith(f"{on}\n0 programs, 0 B of 1.1 GB")
    weft.jit(tangent)(X)
    weft.jit(step)(X.T.copy(), X)
    assert main(["cache", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3 and lines[-1].startswith("2 programs")
    assert any("tangent" in line and "jaxlib" in line for line in lines)
    assert main(["cache", "list", "tang"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2
    assert main(["cache", "sizes"]) == 0
    assert re.search(r"^step +\d\.\d KB  1 program$", capsys.readouterr().out, re.MULTILINE)
    found = {}
    for action in ("where", "list", "sizes", "verify"):
        assert main(["cache", action, "--json"]) == 0
        found[action] = json.loads(capsys.readouterr().out)
    sizes = sorted(path.stat().st_size for path in on.glob("*.weft"))
    assert found["where"]["path"] == str(on) and found["where"]["bytes"] == sum(sizes)
    assert sorted(program["bytes"] for program in found["list"]) == sizes
    assert [total["bytes"] for total in found["sizes"]] == sizes[::-1]
    assert found["verify"] == {"whole": 2, "damaged": [], "removed": 0}
    assert main(["cache", "verify"]) == 0
    assert capsys.readouterr().out == "2 programs as they were written, 0 not\n"
    assert main(["cache", "clear", "tang"]) == 0
    assert capsys.readouterr().out.startswith("1 program removed")
    entry(on).write_bytes(entry(on).read_bytes()[:-3])
    assert main(["cache", "verify"]) == 2
    assert "checksum" in capsys.readouterr().out
    assert main(["cache", "verify", "--remove"]) == 0
    assert "1 removed" in capsys.readouterr().out and not list(on.glob("*.weft"))
    assert main(["cache", "clear"]) == 0
    assert main(["cache", "where", "x"]) == 2
    assert main(["cache", "list", "--remove"]) == 2
    on.chmod(0o777)
    assert main(["cache", "list"]) == 2
    assert "others can write" in capsys.readouterr().err


def test_about_is_text(on):
    """Names with any characters: the file that lists them is JSON."""
    f = eval("lambda x: x + 3")  # a name that is no identifier
    weft.jit(f)(X)
    ((_, _, about, _),) = Store(str(on)).entries()
    assert about["name"] and json.dumps(about)


def test_kernels_of_weft_are_found(run_python, tmp_path):
    """A process that did not compile what calls one of weft's own kernels has it."""
    code = """
        import numpy as np
        import weft
        import weft.numpy as wnp

        a = wnp.asarray(np.eye(3, dtype=np.float32))
        assert ((a @ a) == a).all()
        stats = weft.compiler.cache_stats()
        print(stats["compiles"], stats["disk_hits"])
    """
    env = {"WEFT_ENABLE_COMPILATION_CACHE": "1", "WEFT_CACHE_DIR": str(tmp_path)}
    compiled, found = map(int, run_python(code, **env).split())
    assert compiled > 0 and found == 0
    assert run_python(code, **env).split() == ["0", str(compiled)]
