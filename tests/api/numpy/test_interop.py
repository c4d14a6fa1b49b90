"""Arrays and the outside: NumPy, buffers, DLPack, pickle, copies, text, numbers; weft and jax."""

import copy
import ctypes
import gc
import operator
import os
import pickle
import subprocess
import sys
import warnings

import ml_dtypes
import numpy as np
import pytest

import weft
import weft.numpy as wnp

DTYPES = [
    *["bool", "int8", "int16", "int32", "uint8", "uint16", "uint32"],
    *["float16", "float32", "complex64"],
    *[ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2],
]
# The others of ml_dtypes, those of less than a byte among them.
RARE = [
    *["int2", "int4", "uint2", "uint4", "float4_e2m1fn", "float8_e3m4", "float8_e4m3"],
    *["float8_e4m3b11fnuz", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu"],
]
WIDE = ["int64", "uint64", "float64", "complex128"]


def sample(dtype, shape=(2, 3)):
    return np.arange(int(np.prod(shape))).reshape(shape).astype(dtype)


# NumPy.


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)
@pytest.mark.parametrize("shape", [(), (0,), (1,), (2, 3), (2, 1, 0, 3)])
def test_round_trip_through_numpy(dtype, shape):
    x = sample(dtype, shape)
    y = weft.device_put(x)
    assert (y.shape, y.dtype, y.ndim, y.size) == (x.shape, x.dtype, x.ndim, x.size)
    assert (y.nbytes, y.itemsize) == (x.nbytes, x.itemsize)
    back = np.asarray(y)
    assert back.dtype == x.dtype and type(back) is np.ndarray
    np.testing.assert_array_equal(back, x)


@pytest.mark.parametrize("dtype", WIDE)
def test_64_bit_types(dtype):
    x = sample(dtype)
    assert weft.device_put(x).dtype.itemsize == x.dtype.itemsize // 2
    with weft.enable_x64(True):
        y = weft.device_put(x)
    assert y.dtype == x.dtype
    np.testing.assert_array_equal(np.asarray(y), x)
    # NumPy has two types of 64 bits that are equal; other extension modules take one of them.
    for same in (np.asarray(y), np.array(y), np.asarray(memoryview(y)), y.__array__(), y._value()):
        assert same.dtype.num == np.dtype(dtype).num
    if x.dtype.kind != "c":  # which memoryview cannot index
        assert memoryview(y)[1, 2] == 5


def test_array_protocol_arguments():
    x = weft.device_put(sample("float32"))
    assert np.asarray(x, dtype="float64").dtype == np.float64
    copied = np.array(x)
    copied[0, 0] = 7
    assert float(x[0, 0]) == 0.0
    with pytest.raises(ValueError, match="read-only"):
        np.asarray(x)[0, 0] = 7


def test_later_changes_of_the_numpy_array_do_not_show():
    x = np.zeros(4096, np.float32)
    y = weft.device_put(x)
    z = wnp.asarray(x)
    x[:] = 1
    assert float(y.sum()) == 0.0 and float(z.sum()) == 0.0


def test_layouts_of_numpy_arrays():
    x = np.arange(24, dtype=np.float32).reshape(4, 6)
    for view in (x.T, x[::2, ::-1], np.asfortranarray(x), np.broadcast_to(x[0], (3, 6))):
        np.testing.assert_array_equal(weft.device_put(view), view)
        np.testing.assert_array_equal(weft.jit(lambda a: a + 1)(view), view + 1)


def test_numpy_operators_give_way():
    x, y = np.ones(3, np.float32), wnp.ones(3)
    for result in (x + y, y + x, np.float32(2) * y, x @ y, x == y):
        assert isinstance(result, weft.Array)


def test_buffer_protocol():
    x = weft.device_put(sample("float32"))
    view = memoryview(x)
    assert (view.shape, view.format, view.readonly) == ((2, 3), "f", True)
    np.testing.assert_array_equal(np.frombuffer(view, np.float32), np.arange(6))


# DLPack.


def test_dlpack_to_numpy_shares_memory():
    x = weft.device_put(np.arange(64, dtype=np.float32))
    y = np.from_dlpack(x)
    np.testing.assert_array_equal(y, np.arange(64))
    assert y.ctypes.data == np.asarray(x).ctypes.data
    assert x.__dlpack_device__() == (1, 0)


@pytest.mark.parametrize("dtype", ["int32", "float32", "uint8", "complex64", "bool"])
def test_dlpack_from_numpy(dtype):
    x = sample(dtype)
    y = wnp.from_dlpack(x)
    assert isinstance(y, weft.Array) and y.dtype == x.dtype
    np.testing.assert_array_equal(np.asarray(y), x)


def test_dlpack_keeps_its_owner_alive():
    y = np.from_dlpack(weft.jit(lambda: wnp.arange(1000.0) * 2)())
    for _ in range(10):
        np.ones(1000, np.float32) * 3
    np.testing.assert_array_equal(y, np.arange(1000) * 2)


@pytest.mark.parametrize("dtype", ["float32", "int32", "bool", "bfloat16"])
def test_dlpack_with_torch(dtype):
    torch = pytest.importorskip("torch")
    t = torch.arange(6).reshape(2, 3).to(getattr(torch, dtype))
    x = weft.device_put(t.float().numpy()).astype(dtype)
    there = torch.from_dlpack(x)
    assert there.dtype == t.dtype and torch.equal(there, t)
    back = wnp.from_dlpack(t)
    assert back.dtype == x.dtype
    np.testing.assert_array_equal(np.asarray(back), np.asarray(x))
    np.testing.assert_array_equal(np.asarray(wnp.from_dlpack(t.T)), np.asarray(x).T)


def test_dlpack_arguments():
    x = wnp.arange(64.0)
    address = np.asarray(x).ctypes.data
    for same in ({}, {"max_version": (1, 0)}, {"dl_device": (1, 0)}, {"copy": False}):
        capsule = x.__dlpack__(stream=None, **same)
        assert type(capsule).__name__ == "PyCapsule"
    assert np.from_dlpack(x, copy=False, device="cpu").ctypes.data == address
    copied = np.from_dlpack(x, copy=True)
    assert copied.ctypes.data != address and copied.tolist() == x.tolist()
    for wrong in ({"stream": "a"}, {"stream": True}, {"max_version": 1}, {"dl_device": "cpu"}):
        with pytest.raises(weft.errors.OperandError, match=rf"__dlpack__.*{next(iter(wrong))}"):
            x.__dlpack__(**wrong)
    for stream in (-1, 0, 7):
        with pytest.raises(ValueError, match=f"cpu:0, which has none; got {stream}"):
            x.__dlpack__(stream=stream)
    for device in ((1, 1), (2, 0)):
        with pytest.raises(BufferError, match=r"one of \[\(1, 0\)\]; got"):
            x.__dlpack__(dl_device=device)
    key = weft.random.key(0)
    floats0 = wnp.zeros(3, weft.dtypes.float0)
    for refused in (x.astype("int4"), x.astype("uint2"), x.astype("float4_e2m1fn"), floats0, key):
        for importer in (np.from_dlpack, wnp.from_dlpack, lambda x: x.__dlpack__()):
            with pytest.raises(BufferError, match="expected .*(bits|DLPack has|numbers); got"):
                importer(refused)
    x.delete()
    with pytest.raises(weft.errors.DeletedArrayError):
        x.__dlpack__()


def test_arrays_that_share_memory_are_deleted():
    x = wnp.arange(64.0) * 2
    shared, viewed = np.from_dlpack(x), np.asarray(x)
    x.delete()
    assert x.is_deleted() and shared[3] == 6 and viewed[3] == 6
    for use in (x.block_until_ready, x.on_device_size_in_bytes, x.unsafe_buffer_pointer, x.item):
        with pytest.raises(weft.errors.DeletedArrayError):
            use()
    y = wnp.arange(64.0) * 2
    shared = np.from_dlpack(y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        z = weft.jit(lambda y: y + 1, donate_argnums=0)(y)
    assert shared[3] == 6 and z[3] == 7
    with pytest.raises(weft.errors.DeletedArrayError):
        weft.jit(lambda x, y: x + y, donate_argnums=(0, 1))(x, x)


def test_from_dlpack_arguments():
    own = wnp.arange(64.0)
    shared = wnp.from_dlpack(own, copy=False)
    assert np.asarray(shared).ctypes.data == np.asarray(own).ctypes.data
    copied = wnp.from_dlpack(own, copy=True)
    assert np.asarray(copied).ctypes.data != np.asarray(own).ctypes.data
    here = wnp.from_dlpack(own, device=weft.devices()[0], copy=False)
    assert here.committed and not shared.committed
    memory = np.zeros(80, np.float32)
    odd = memory[1 + (-memory.ctypes.data // 4) % 16 :][:32]
    for unshared in (odd, own.astype("bfloat16"), np.arange(3.0)):
        with pytest.raises(ValueError, match="memory that can be shared"):
            wnp.from_dlpack(unshared, copy=False)
        np.testing.assert_array_equal(wnp.from_dlpack(unshared), np.asarray(unshared))
    for wrong in (3, own.__dlpack__(), np.float32):
        with pytest.raises(weft.errors.OperandError, match="an object that has __dlpack"):
            wnp.from_dlpack(wrong)
    with pytest.raises(BufferError, match="native byte order"):
        wnp.from_dlpack(np.zeros(3, ">f4"))


class _Producer:
    """A library whose tensors are the capsules of an array, or cannot be exported."""

    def __init__(self, give):
        self._give = give

    def __dlpack__(self, **options):
        return self._give(**options)

    def __dlpack_device__(self):
        return 1, 0


def test_what_a_producer_refuses_is_its_own_error():
    def refuses(**_):
        raise RuntimeError("tensors that require a gradient are not exported")

    with pytest.raises(RuntimeError, match="require a gradient"):
        wnp.from_dlpack(_Producer(refuses))
    held = np.arange(8, dtype=np.float32)
    held.flags.writeable = False
    for give in (held.__dlpack__, lambda: np.arange(8, dtype=np.float32).__dlpack__()):
        assert wnp.from_dlpack(_Producer(give)).tolist() == list(range(8))
    rare = wnp.arange(8, dtype="bfloat16")
    for give in (rare.__dlpack__, lambda: rare.__dlpack__()):
        assert wnp.from_dlpack(_Producer(give)).tolist() == list(range(8))


_AS_BYTES = {"dltensor": 0, "dltensor_versioned": 32}  # where the tensor stands in the struct


def _capsule(capsule):
    """(name, version, flags, address, shape) of a capsule, read by the layout of dlpack.h."""
    api = ctypes.pythonapi
    api.PyCapsule_GetName.restype = ctypes.c_char_p
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    name = api.PyCapsule_GetName(ctypes.py_object(capsule))
    at = api.PyCapsule_GetPointer(ctypes.py_object(capsule), ctypes.c_char_p(name))
    words = (ctypes.c_uint64 * 12).from_address(at)
    tensor = _AS_BYTES[name.decode()] // 8
    version = (words[0] % 2**32, words[0] >> 32) if tensor else None
    data, rank, shape = words[tensor], words[tensor + 2] % 2**32, words[tensor + 3]
    sizes = tuple((ctypes.c_int64 * rank).from_address(shape)) if rank else ()
    return name.decode(), version, words[3] if tensor else None, data, sizes


def test_capsules_with_a_version_are_read_only():
    x = wnp.arange(32.0).reshape(4, 8)
    address = np.asarray(x).ctypes.data
    assert (
        _capsule(x.__dlpack__())[0] == _capsule(x.__dlpack__(max_version=(0, 8)))[0] == "dltensor"
    )
    for newest in ((1, 0), (1, 3), (2, 0)):
        name, version, flags, data, sizes = _capsule(x.__dlpack__(max_version=newest))
        assert (name, version, flags) == ("dltensor_versioned", (1, 0), 1)
        assert data == address and sizes == (4, 8)
    name, _, flags, data, _ = _capsule(x.__dlpack__(max_version=(1, 0), copy=True))
    assert flags == 2 and data != address  # a copy, which may be written to
    shared, copied = np.from_dlpack(x), np.from_dlpack(x, copy=True)
    assert not shared.flags.writeable and copied.flags.writeable
    assert shared.ctypes.data == address
    copied[0, 0] = 7
    assert x[0, 0] == 0
    with pytest.raises(ValueError, match="read-only"):
        shared[0, 0] = 7
    for dtype in DTYPES:
        y = sample(dtype)
        if np.dtype(dtype).itemsize >= 1 and weft.dlpack.is_supported_dtype(dtype):
            assert _capsule(wnp.asarray(y).__dlpack__(max_version=(1, 0)))[2] == 1


def test_capsules_own_their_arrays():
    def live():
        return len(weft.live_arrays())

    gc.collect()
    before, capsules = live(), []
    for _ in range(4):
        capsules.append(wnp.arange(1000.0).__dlpack__(max_version=(1, 0)))
    viewed = np.from_dlpack(wnp.arange(1000.0))
    gc.collect()
    assert live() == before  # capsules hold the memory, not the array
    assert viewed.sum() == 499500
    memory = np.frombuffer((ctypes.c_float * 4).from_address(_capsule(capsules[0])[3]), np.float32)
    assert memory.tolist() == [0, 1, 2, 3]
    capsules.clear()
    del viewed


# Pickle and copies.


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)
def test_pickle(dtype):
    x = weft.device_put(sample(dtype))
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        y = pickle.loads(pickle.dumps(x, protocol))
        assert isinstance(y, weft.Array) and y.dtype == x.dtype
        np.testing.assert_array_equal(np.asarray(y), np.asarray(x))


@pytest.mark.parametrize("name", RARE)
def test_rare_dtypes(name):
    """Values that each has: 0 and 1, but for the one that has powers of two only."""
    values = [[1, 2, 1]] if name == "float8_e8m0fnu" else [[0, 1, 1]]
    host = np.asarray(values).astype(np.dtype(getattr(ml_dtypes, name)))
    x = weft.device_put(host)
    assert x.dtype == host.dtype and (x.shape, x.nbytes) == (host.shape, host.nbytes)
    copies = (
        x,
        pickle.loads(pickle.dumps(x)),
        copy.deepcopy(x),
        x.copy(),
        weft.jit(lambda x: x)(x),
    )
    for same in copies:
        back = np.asarray(same)
        assert back.dtype == host.dtype and back.tolist() == host.tolist()
        assert np.asarray(same, "float32").tolist() == values
    assert str(x) == str(host) and f"dtype={name}" in repr(x)
    assert [x.tolist(), float(x[0, 1]), x[0, 1].item()] == [host.tolist(), values[0][1], host[0, 1]]
    assert x.tobytes() == host.tobytes()
    assert np.asarray(x.astype("float32")).tolist() == values
    assert np.asarray(weft.device_put(host[:, :0])).shape == (1, 0)


@pytest.mark.parametrize("name", ["int2", "int4", "uint2", "uint4", "float4_e2m1fn"])
def test_orders_of_elements_of_less_than_a_byte(name):
    """XLA's own sorting takes elements of two bits for others."""
    host = np.array([1, 0, 1, 1, 0, 0, 1]).astype(np.dtype(getattr(ml_dtypes, name)))
    x, positions = weft.device_put(host), np.arange(7)
    assert np.asarray(weft.lax.sort(x)).tolist() == [0, 0, 0, 1, 1, 1, 1]
    assert weft.lax.sort((x, positions))[1].tolist() == [1, 4, 5, 0, 2, 3, 6]
    assert np.asarray(weft.lax.sort((positions, x))[1]).tolist() == host.tolist()
    assert [int(wnp.argmax(x)), int(wnp.argmin(x))] == [0, 1]
    assert np.asarray(wnp.concatenate([x, x])).tolist() == [*host.tolist(), *host.tolist()]


def test_float0():
    float0 = weft.dtypes.float0
    zeros = np.zeros((2, 3), float0)
    x = wnp.asarray(zeros)
    made = [x, wnp.zeros((2, 3), float0), weft.device_put(zeros), wnp.zeros_like(zeros)]
    made += [
        weft.jit(lambda x: x)(zeros),
        weft.vmap(lambda x: x)(x),
        wnp.ones((2, 3)).astype(float0),
    ]
    made += [pickle.loads(pickle.dumps(x)), copy.copy(x), wnp.stack([zeros[0], x[0]])]
    for same in made:
        assert same.dtype == float0 and same.shape == (2, 3)
        back = np.asarray(same)
        assert back.dtype == float0 and back.shape == (2, 3)
    assert "dtype=float0" in repr(x) and wnp.reshape(zeros, (3, 2)).dtype == float0
    assert np.asarray(x[0, 0]).shape == () and weft.device_put(zeros[0, 0]).dtype == float0
    for refused in (lambda: x + 1, lambda: zeros[0, 0] + x, lambda: wnp.sin(x), lambda: wnp.sum(x)):
        with pytest.raises(TypeError, match="float0"):
            refused()
    with pytest.raises(BufferError):
        memoryview(x)


def test_pickle_keeps_weak_types():
    x = wnp.asarray(1.0)
    assert pickle.loads(pickle.dumps(x)).weak_type == x.weak_type


def test_copies():
    x = weft.device_put(sample("float32"))
    for y in (copy.copy(x), copy.deepcopy(x), x.copy()):
        assert isinstance(y, weft.Array)
        np.testing.assert_array_equal(y, x)
    y = copy.deepcopy({"a": [x]})["a"][0]
    x.delete()
    np.testing.assert_array_equal(y, sample("float32"))


# Text and numbers.


@pytest.mark.parametrize(
    "value",
    [np.float32(1.5), np.arange(3), np.ones((2, 2), np.float32), np.zeros((0, 3), np.int32),
     np.array(True), np.arange(2000.0, dtype=np.float32), np.complex64(1 + 2j)],
)  # fmt: skip
def test_str_and_format_are_those_of_numpy(value):
    value = np.asarray(value)
    x = weft.device_put(value)
    value = np.asarray(x)
    assert str(x) == str(value)
    assert repr(x).startswith("Array(") and f"dtype={value.dtype.name}" in repr(x)


def test_format():
    assert f"{wnp.asarray(3.14159):.2f}" == "3.14"
    assert f"{wnp.asarray(7):05d}" == "00007"
    assert f"{wnp.ones(2)}" == "[1. 1.]"
    with pytest.raises(TypeError):
        f"{wnp.ones(2):.2f}"


def test_repr_of_tracers_shows_the_type():
    shown = []
    weft.jit(lambda x: (shown.append(repr(x)), x)[1])(np.ones((2, 3), np.float32))
    assert "f32[2,3]" in shown[0] or "float32[2,3]" in shown[0]


def test_scalar_conversions():
    x = wnp.asarray(3)
    assert (int(x), float(x), complex(x), bool(x)) == (3, 3.0, 3 + 0j, True)
    assert operator.index(x) == 3 and range(5)[x] == 3
    assert wnp.asarray([[2.5]]).item() == 2.5
    assert x.item() == 3 and isinstance(x.item(), int)
    assert wnp.arange(4).tolist() == [0, 1, 2, 3]
    assert round(wnp.asarray(2.567), 1) == pytest.approx(2.6)


@pytest.mark.parametrize("kind, value", [(int, 3), (float, 2.5), (complex, 1 + 2j)])
def test_numbers_of_derived_classes(kind, value):
    number = type("Own", (kind,), {})(value)
    x = wnp.asarray(number)
    assert x.weak_type and x.dtype == wnp.asarray(value).dtype
    assert x == value
    assert (weft.jit(lambda x: x * 2)(number) == 2 * value).all()
    np.testing.assert_array_equal(wnp.ones(2) * number, np.ones(2) * value)


@pytest.mark.parametrize("value", [np.clongdouble(1), np.longdouble(1), np.datetime64("2020")])
def test_numbers_of_numpy_that_no_dtype_holds(value):
    for call in (wnp.asarray, weft.jit(lambda x: x)):
        with pytest.raises(weft.errors.WeftError) as caught:
            call(value)
        assert type(value).__name__ in str(caught.value)
        assert "Convert it" not in str(caught.value)


def test_iteration_and_length():
    x = wnp.arange(6).reshape(3, 2)
    assert len(x) == 3
    rows = list(x)
    assert [row.tolist() for row in rows] == [[0, 1], [2, 3], [4, 5]]
    assert all(isinstance(row, weft.Array) for row in rows)
    a, b = wnp.asarray([1, 2])
    assert (int(a), int(b)) == (1, 2)
    assert 2 in wnp.arange(3)
    assert [int(v) for v in reversed(wnp.arange(3))] == [2, 1, 0]


def test_iteration_over_a_tracer():
    assert float(weft.jit(lambda x: sum(v * v for v in x))(np.arange(4.0))) == 14.0


def test_readiness():
    x = weft.jit(lambda: wnp.ones((200, 200)) @ wnp.ones((200, 200)))()
    assert x.block_until_ready() is x
    assert x.is_ready() and not x.is_deleted()


def test_live_arrays_and_memory_stats():
    before = weft.memory_stats()
    x = weft.device_put(np.ones(1 << 20, np.float32))
    after = weft.memory_stats()
    assert after["live_arrays"] == before["live_arrays"] + 1
    assert after["live_bytes"] - before["live_bytes"] == x.nbytes
    assert any(y is x for y in weft.live_arrays())
    del x
    assert weft.memory_stats()["live_arrays"] == before["live_arrays"]


# jax and weft.

NO_JAX = """
    import importlib.abc, sys

    class Blocker(importlib.abc.MetaPathFinder):
        seen = []

        def find_spec(self, name, path=None, target=None):
            if name == "jax" or name.startswith("jax."):
                self.seen.append(name)
                raise ImportError(f"{name} is not to be imported")
            return None

    sys.meta_path.insert(0, Blocker())
"""

USE_WEFT = """
    import numpy as np, weft, weft.numpy as wnp
    f = weft.jit(lambda t: {"y": t["x"] @ t["x"].T, "s": wnp.sum(t["x"])})
    out = f({"x": np.ones((2, 3), np.float32)})
    assert np.asarray(out["y"]).tolist() == [[3, 3], [3, 3]], out
    x = wnp.arange(4.0)
    assert float((x + x)[3]) == 6.0 and float(x.sum()) == 6.0
    assert np.asarray(wnp.ones(3, "bfloat16") + 1).astype("f4").tolist() == [2, 2, 2]
    with weft.enable_x64(True):
        assert wnp.arange(3.0).dtype == np.float64
    f.lower({"x": np.ones((2, 3), np.float32)}).compile().as_text()
    [np.asarray(v) for v in x]
    np.from_dlpack(x)
"""

USE_JAX = """
    import numpy as np, jax, jax.numpy as jnp
    y = jax.jit(lambda x: x @ x.T)(jnp.ones((2, 3)))
    assert y.tolist() == [[3, 3], [3, 3]] and isinstance(y, jax.Array)
    assert jax.grad(lambda x: (x ** 2).sum())(jnp.ones(2)).tolist() == [2, 2]
    assert jnp.arange(3).dtype == np.int32
    assert jax.tree_util.tree_leaves({"a": [1, 2]}) == [1, 2]
"""


def has_jax() -> bool:
    import importlib.util

    return importlib.util.find_spec("jax") is not None


def test_nothing_imports_jax(run_python):
    check = "assert not Blocker.seen, Blocker.seen; assert 'jax' not in sys.modules; print('ok')"
    assert run_python(f"{NO_JAX}\n{USE_WEFT}\n    {check}").strip() == "ok"


@pytest.mark.oracle
@pytest.mark.parametrize("order", ["jax first", "weft first", "weft, jax, weft, jax"])
def test_jax_in_the_same_process(run_python, order):
    if not has_jax():
        pytest.skip("needs jax")
    code = {
        "jax first": USE_JAX + USE_WEFT + USE_JAX,
        "weft first": USE_WEFT + USE_JAX + USE_WEFT,
        "weft, jax, weft, jax": USE_WEFT + USE_JAX + USE_WEFT + USE_JAX,
    }[order]
    assert run_python(code + "\n    print('ok')").strip() == "ok"


@pytest.mark.oracle
def test_arrays_of_jax_become_arrays_of_weft_and_back(run_python):
    if not has_jax():
        pytest.skip("needs jax")
    run_python(
        """
        import jax.numpy as jnp, weft.numpy as wnp
        x = jnp.arange(4.0)
        assert wnp.asarray(x).tolist() == [0, 1, 2, 3]
        assert jnp.asarray(wnp.arange(3.0)).tolist() == [0, 1, 2]
        """
    )


READ_BACK = """
import copy, pickle, sys
import numpy as np
import weft
import weft.numpy as wnp

for name in sorted(dtype.name for dtype in weft.dtypes.SUPPORTED):
    dtype = weft.dtypes.as_dtype(name)
    values = np.ones(5).astype(dtype)
    with weft.enable_x64(True):
        x = wnp.asarray(values)
        for y in (x, x[1:4], wnp.concatenate([x, x]), copy.deepcopy(x), wnp.copy(x)):
            host = np.asarray(y)
            assert host.dtype == dtype and host.shape == y.shape, name
            assert repr(y) and str(y) and y.tobytes() and y[0].item() is not None
            back = pickle.loads(pickle.dumps(y))
            assert back.dtype == dtype and (np.asarray(back) == host).all(), name
        assert np.asarray(x).tolist() == x.tolist() == values.tolist(), name
        assert np.asarray(wnp.concatenate([x, x])).tolist() == values.tolist() * 2, name
        for f in (lambda: np.from_dlpack(x), lambda: wnp.from_dlpack(x), x.unsafe_buffer_pointer):
            try:
                f()
            except (BufferError, RuntimeError, weft.errors.DTypeError):
                pass  # not every dtype is one of DLPack's
        weft.device_put(x, weft.devices()[0]).block_until_ready()
        assert x.is_ready() and x.on_device_size_in_bytes() and weft.memory_stats()
    assert not any(m == "jax" or m.startswith("jax.") for m in sys.modules), name
print("ok")
"""


def test_reading_back_never_imports_jax():
    """jaxlib 0.10 imports jax, where that is installed, in several of its ways to the host."""
    result = subprocess.run([sys.executable, "-c", READ_BACK], capture_output=True, text=True)
    assert result.stdout == "ok\n", result.stderr


def test_the_first_program_writes_nothing_on_the_terminal():
    """jaxlib reports its clients unless told before it is loaded."""
    code = "import weft.numpy as wnp; wnp.ones(2) + 1"
    quiet = {k: v for k, v in os.environ.items() if not k.startswith("TF_CPP")}
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=quiet)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
