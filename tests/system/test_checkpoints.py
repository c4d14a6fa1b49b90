"""Checkpoints: what comes back, what is refused, and that none is ever half there."""

import collections
import json
import os
import random
import socket
import subprocess
import sys
import time

import numpy as np
import pytest
from conftest import EVERYTHING, SUPPORT

import weft
import weft.numpy as wnp
from weft import _manifest, _saving, checkpoints, random as weft_random

pytest.importorskip("tensorstore")

Pair = collections.namedtuple("Pair", "first second")
DTYPES = [
    "bool int2 int4 int8 int16 int32 uint2 uint4 uint8 uint16 uint32 float16 bfloat16 float32",
    "float8_e4m3fn float8_e5m2 float8_e4m3b11fnuz float8_e8m0fnu float4_e2m1fn complex64",
    "int64 uint64 float64 complex128",
]
PYTHON = [True, 7, -(10**30), 0.1, float("inf"), 1 + 2j, "text", b"\x00bytes", None, (), [], {}]


def assert_same(a, b):
    """The same trees: classes, dtypes, bits."""
    left, treedef = weft.tree.flatten(a)
    right, other = weft.tree.flatten(b)
    assert treedef == other
    for x, y in zip(left, right, strict=True):
        assert type(x) is type(y)
        if not hasattr(x, "dtype"):
            assert x == y
        elif str(x.dtype).startswith("key"):
            assert x.dtype == y.dtype
            assert_same(weft_random.key_data(x), weft_random.key_data(y))
        else:
            assert (x.dtype, x.shape) == (y.dtype, y.shape)
            assert np.asarray(x).tobytes() == np.asarray(y).tobytes()


def test_what_is_saved_comes_back(tmp_path):
    with weft.enable_x64():
        tree = {
            "arrays": {
                name: wnp.asarray([[0, 1, 1], [1, 0, 1]]).astype(name)
                for name in " ".join(DTYPES).split()
            },
            "shapes": [wnp.float32(3), wnp.zeros((0, 4)), wnp.arange(24).reshape(2, 3, 4)],
            "numpy": (np.arange(5.0)[::-2], np.asfortranarray(np.eye(3)[:2]), np.ones(0)),
            "python": PYTHON,
            "keys": {
                1: weft_random.key(3),
                2: weft_random.split(weft_random.key(1, impl="rbg"), 3),
            },
            "none": np.zeros((2,), weft.float0),
            "nan": wnp.asarray([np.nan, -0.0, np.inf]),
        }
        done = checkpoints.save(tmp_path / "run", tree, 5)
        assert done.done() and done.step == 5
        assert_same(checkpoints.restore(tmp_path / "run"), tree)
        assert_same(checkpoints.restore(tmp_path / "run", tree), tree)
        shapes = weft.tree.map(
            lambda x: weft.ShapeDtypeStruct(x.shape, x.dtype) if hasattr(x, "dtype") else x, tree
        )
        again = checkpoints.restore(tmp_path / "run", shapes, 5)
        assert isinstance(again["numpy"][0], weft.Array)
        assert_same(again["arrays"], tree["arrays"])


def test_classes_need_a_target(tmp_path):
    tree = Pair(wnp.ones(2), {"x": collections.OrderedDict(b=1, a=wnp.zeros(1))})
    checkpoints.save(tmp_path, tree, 0)
    with pytest.raises(ValueError, match="expected a target, as the tree has a Pair"):
        checkpoints.restore(tmp_path)
    assert_same(checkpoints.restore(tmp_path, tree), tree)
    place = weft.devices()[0]
    there = checkpoints.restore(tmp_path, tree, shardings=place)
    assert there.first.device is place and there.first.committed


def test_steps(tmp_path):
    folder = tmp_path / "run"
    assert checkpoints.all_steps(folder) == [] and checkpoints.latest_step(folder) is None
    for step in (2, 10, 9, 30):
        saving = checkpoints.save(folder, {"step": step}, step, keep=3, asynchronous=True)
    saving.wait()
    saving.wait()
    assert checkpoints.all_steps(folder) == [9, 10, 30] and checkpoints.latest_step(folder) == 30
    assert checkpoints.restore(folder, step=10) == {"step": 10}
    assert sorted(os.listdir(folder)) == ["10", "30", "9"]
    os.mkdir(folder / ".incomplete-31")
    os.mkdir(folder / "40")
    assert checkpoints.latest_step(folder) == 30, "no manifest"
    checkpoints.save(folder, {"step": 31}, 31)
    assert sorted(os.listdir(folder)) == ["10", "30", "31", "40", "9"]


def test_values_are_those_at_the_call(tmp_path):
    host = np.zeros(1000)
    array = wnp.ones(1000)
    saving = checkpoints.save(tmp_path, [host, array], 0, asynchronous=True)
    host[:] = 7
    weft.jit(lambda x: x * 2, donate_argnums=0)(array).block_until_ready()
    saving.wait()
    assert_same(checkpoints.restore(tmp_path), [np.zeros(1000), wnp.ones(1000)])


def test_mistakes(tmp_path):
    tree = {"w": wnp.zeros((3, 4)), "n": 1}
    checkpoints.save(tmp_path, tree, 1)

    def refused(kind, text, function, *args, **kwargs):
        with pytest.raises(kind, match=text):
            function(*args, **kwargs)

    save, restore = checkpoints.save, checkpoints.restore
    taken = "there is a checkpoint.*\n  Save with another step"
    refused(FileExistsError, taken, save, tmp_path, tree, 1)
    refused(ValueError, "expected an integer step >= 0; got -1", save, tmp_path, tree, -1)
    refused(ValueError, "expected keep >= 1 or None; got 0", save, tmp_path, tree, 2, keep=0)
    refused(
        TypeError, r"tree\['x'\]: expected an array.*got object", save, tmp_path, {"x": object()}, 2
    )
    refused(TypeError, "expected a dtype of numbers; got <U1", save, tmp_path, np.array(["a"]), 2)
    refused(TypeError, "expected a value; got", weft.jit(lambda x: save(tmp_path, x, 2)), 1.0)
    refused(FileNotFoundError, r"of step 7 in .*; it has steps \[1\]", restore, tmp_path, step=7)
    refused(FileNotFoundError, "it has none", restore, tmp_path / "no")
    error = weft.errors.TreeStructureError
    refused(error, r"target\['q'\] is not in the checkpoint", restore, tmp_path, {**tree, "q": 1})
    refused(error, r"has tree\['n'\], target has not", restore, tmp_path, {"w": tree["w"]})
    other = {**tree, "w": wnp.zeros((4, 3))}
    refused(ValueError, r"tree\['w'\] expected float32\[4, 3\]", restore, tmp_path, other)
    refused(
        ValueError,
        r"expected int32\[3, 4\]",
        restore,
        tmp_path,
        {**tree, "w": np.zeros((3, 4), "i4")},
    )
    refused(ValueError, "is an array float32.* target has 3", restore, tmp_path, {**tree, "w": 3})
    with weft.enable_x64():
        save(tmp_path, wnp.arange(3), 2)
    refused(ValueError, "is int64, which arrays are not while weft_enable_x64", restore, tmp_path)
    assert restore(tmp_path, np.zeros(3, int)).tolist() == [0, 1, 2]


def test_damage_is_found(tmp_path):
    checkpoints.save(tmp_path, [wnp.arange(4)], 0)
    chunk = tmp_path / "0" / "arrays" / "0" / "c" / "0"
    data = chunk.read_bytes()
    chunk.write_bytes(data[:3] + b"\x55" + data[4:])
    with pytest.raises(ValueError, match="is damaged"):
        checkpoints.restore(tmp_path)
    chunk.unlink()
    with pytest.raises(ValueError, match="is damaged"):
        checkpoints.restore(tmp_path)
    manifest = tmp_path / "0" / "manifest.json"
    sealed = json.loads(manifest.read_text())
    sealed["manifest"] = sealed["manifest"].replace("int32", "int16")
    manifest.write_text(json.dumps(sealed))
    with pytest.raises(ValueError, match="the manifest of .* is damaged"):
        checkpoints.restore(tmp_path)


def test_parts_are_read_in_any_layout(tmp_path):
    """What several processes write of one array, each its parts, is read by regions of any kind."""
    whole = np.arange(48, dtype=np.float32).reshape(8, 6)
    place, layout = str(tmp_path / "array"), (2, 3)
    record = {"kind": "array", "dtype": "float32", "shape": [8, 6]}
    cells = [(slice(i, i + 2), slice(j, j + 3)) for i in range(0, 8, 2) for j in (0, 3)]
    for own in (cells[::2], cells[1::2]):
        parts = [(cell, whole[cell]) for cell in own]
        _saving._write_parts("", [(place, whole.shape, whole.dtype, layout, parts)])
    assert len(list((tmp_path / "array").glob("c/*/*"))) == 8
    for region in (cells[3], (slice(None), slice(1, 5)), (slice(3, 4), slice(None, None))):
        part = _saving._read(place, record, whole.dtype, whole.shape, region)
        assert part.tolist() == whole[region].tolist()


def test_chunks():
    assert _manifest.chunk_shape((), 4) == []
    assert _manifest.chunk_shape((6, 5), 4) == [6, 5]
    assert _manifest.chunk_shape((1 << 15, 1 << 10), 4) == [1 << 14, 1 << 10]
    assert _manifest.chunk_shape((3, 1 << 26), 1) == [1, 1 << 26]
    assert _manifest.chunk_shape((7, 1 << 28), 1) == [1, 1 << 26]


def test_errors_of_other_threads_reach_the_caller(tmp_path):
    (tmp_path / "file").write_text("")
    inside = tmp_path / "file" / "run"
    saving = checkpoints.save(inside, {"x": 1}, 0, asynchronous=True)
    with pytest.raises(NotADirectoryError):
        saving.wait()
    checkpoints.save(inside, {"x": 1}, 0, asynchronous=True)
    with pytest.raises(NotADirectoryError):
        checkpoints.save(tmp_path / "other", {"x": 1}, 0)


def read_all(folder):
    """Restores every checkpoint; returns the last step."""
    steps = checkpoints.all_steps(folder)
    for step in steps:
        tree = checkpoints.restore(folder, step=step)
        assert tree["step"] == step
        assert all((a == step + i).all() for i, a in enumerate(tree["arrays"]))
    return steps[-1] if steps else 0


def test_a_kill_leaves_the_last_checkpoint(tmp_path):
    chance = random.Random(0)
    # At calls of the system, which are some 40 for each checkpoint, and at any time.
    kills = range(1, 160, 3) if EVERYTHING else (12, 47, 74)
    times = [chance.random() for _ in range(30 if EVERYTHING else 1)]
    assert last_after_kills(tmp_path, [*kills, *times], 1) >= 2


def last_after_kills(folder, kills, count):
    """The last checkpoint that processes left which were killed at each of these; none is lost."""
    last = 0
    for kill in kills:
        write_and_kill(folder, kill, count)
        now = read_all(folder)
        assert now >= last
        last = now
    return last


def write_and_kill(folder, kill, count):
    """Processes that save checkpoints until the first is killed, at a call or after some time."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    call = str(kill) if isinstance(kill, int) else "0"
    command = [sys.executable, SUPPORT / "checkpoint_writer.py", folder]
    groups = [[address, str(count), str(i)] if count > 1 else [] for i in range(count)]
    writers = [
        subprocess.Popen(
            [*command, "0" if i else call, *group],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        for i, group in enumerate(groups)
    ]
    try:
        assert "ready\n" in iter(writers[0].stdout.readline, "")
        if call != "0":
            writers[0].wait(timeout=60)
        else:
            time.sleep(kill)
    finally:
        for writer in writers:
            writer.kill()
            writer.communicate()


def test_a_kill_of_one_of_several_leaves_the_last_checkpoint(tmp_path):
    chance = random.Random(1)
    calls = range(2, 110, 9) if EVERYTHING else (23, 41)
    times = [0.3 + chance.random() for _ in range(12 if EVERYTHING else 0)]
    assert last_after_kills(tmp_path, [*calls, *times], 2) >= 1
