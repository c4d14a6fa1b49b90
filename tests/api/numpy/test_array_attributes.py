"""Attributes and methods of arrays, and of traced ones, that are no functions of NumPy."""

import unittest.mock

import numpy as np
import pytest

import weft
import weft.numpy as wnp
from weft._tensor_hints import OF_TENSORS
from weft.errors import ConcretizationTypeError
from weft.sharding import SingleDeviceSharding

X = wnp.arange(6.0).reshape(2, 3)
DEVICE = weft.devices()[0]
HERE = SingleDeviceSharding(DEVICE)


def test_where_an_array_lies():
    assert X.sharding == HERE and hash(X.sharding) == hash(HERE)
    assert repr(HERE).startswith("SingleDeviceSharding(device=")
    assert HERE.device_set == HERE.addressable_devices == {DEVICE} and HERE.num_devices == 1
    assert HERE.shard_shape((2, 3)) == (2, 3) and HERE.is_equivalent_to(X.sharding, 2)
    assert HERE.with_memory_kind(HERE.memory_kind) == HERE
    (shard,) = X.addressable_shards
    assert (shard.device, shard.replica_id) == (DEVICE, 0) and shard.data is X
    assert shard.index == (slice(None),) * 2 == HERE.devices_indices_map((2, 3))[DEVICE]
    assert X.global_shards[0].data is X.addressable_data(0) is X
    assert X.is_fully_addressable and X.is_fully_replicated and X.copy_to_host_async() is None
    assert weft.copy_to_host_async([X, 1])[0] is X
    other = unittest.mock.Mock(spec=["copy_to_host_async"])
    assert weft.copy_to_host_async([other, X])[0] is other
    other.copy_to_host_async.assert_called_once_with()
    assert str(X.aval) == "float32[2,3]"
    for place in (DEVICE, HERE):
        assert X.to_device(place).committed
    with pytest.raises(NotImplementedError):
        X.to_device(DEVICE, stream=1)
    with pytest.raises(IndexError):
        X.addressable_data(2)
    for wrong in ("cpu", None, 3):
        with pytest.raises(TypeError):
            SingleDeviceSharding(wrong)
    with pytest.raises(ValueError):
        SingleDeviceSharding(DEVICE, memory_kind="nonsense")


def test_arrays_from_parts():
    made = [
        weft.make_array_from_callback((2, 3), HERE, lambda index: np.asarray(X)[index]),
        weft.make_array_from_single_device_arrays((2, 3), HERE, [X]),
        weft.make_array_from_process_local_data(HERE, np.asarray(X)),
        weft.device_put((X, 1.0), (HERE, None))[0],
    ]
    for array in made:
        assert array.committed and (array == X).all()
    f = weft.make_array_from_single_device_arrays
    for error, shape, parts, dtype in [
        (ValueError, (2, 4), [X], None),
        (ValueError, (2, 3), [], None),
        (ValueError, (2, 3), [X], "int32"),
        (TypeError, (2, 3), X, None),
        (TypeError, (2, 3), [np.asarray(X)], None),
    ]:
        with pytest.raises(error):
            f(shape, HERE, parts, dtype=dtype)
    local = weft.make_array_from_process_local_data
    with weft.set_mesh(weft.make_mesh((1,), ("i",))):
        tree = local({"a": DEVICE, "b": weft.P("i")}, {"a": [X, X[0]], "b": np.asarray(X)})
    assert tree["a"][1].shape == (3,) and (tree["a"][0] == X).all() and (tree["b"] == X).all()
    assert tree["a"][0].committed and tree["b"].sharding.spec == weft.P("i")
    tree = local(HERE, {"a": np.ones(2), "b": [np.ones(3)]}, {"a": (2,), "b": (3,)})
    assert tree["b"][0].shape == (3,)
    for wrong in ("cpu", 3, X):
        with pytest.raises(TypeError, match="sharding"):
            local(wrong, np.ones(2))
    with pytest.raises(ValueError, match="mesh"):
        local(weft.P("i"), np.ones(2))
    with pytest.raises(TypeError, match="sharding"):
        weft.make_array_from_callback((2,), DEVICE, lambda index: np.ones(2))
    with pytest.raises(ValueError, match="shape"):
        weft.make_array_from_callback((2,), HERE, lambda index: np.ones(3))
    with pytest.raises(ValueError):
        weft.device_put(X, "cpu")


def test_python_looks_into_arrays():
    assert 1.0 in X[0] and 7.0 not in X[0]
    with pytest.raises(ValueError, match="one axis"):
        _ = 1.0 in X
    assert round(wnp.float32(2.5)) == 2 and round(X).dtype == "int32"
    assert round(wnp.float32(2.567), 2).dtype == "float32"
    for number in (int, float, complex):
        assert number(wnp.float32(2)) == 2
        with pytest.raises(TypeError):
            number(wnp.ones(1))
    assert bool(wnp.ones(1)) and wnp.ones((1, 1)).item() == 1
    for other in ([1.0], (1.0,), {1.0}, {}):
        with pytest.raises(TypeError, match="compare"):
            _ = other != X
    assert (X == None) is False and (X != "a") is True  # noqa: E711
    with pytest.raises(NotImplementedError, match="ravel"):
        _ = X.flat


@pytest.mark.parametrize(
    ("start", "to"),
    [("float32", "int8"), ("bool", "int8"), ("complex64", "float32"), ("float32", "complex64")],
)
def test_views_are_those_of_numpy(start, to):
    x = np.arange(8).reshape(2, 4).astype(start)
    got = wnp.asarray(x).view(to)
    np.testing.assert_array_equal(np.asarray(got), x.view(to))
    np.testing.assert_array_equal(
        np.asarray(wnp.asarray(x).byteswap()).view("uint8"), x.byteswap().view("uint8")
    )
    with pytest.raises(ValueError):
        wnp.float32(1).view("int8")
    with pytest.raises(NotImplementedError):
        X.view(type=np.ndarray)


def test_traced_arrays_have_no_place():
    @weft.jit
    def f(x):
        assert str(x.aval) == "float32[2,3]" and x.to_device(DEVICE) is x
        for name in ("sharding", "device", "is_ready", "copy_to_host_async"):
            assert not hasattr(x, name)
        for name in (
            "addressable_shards",
            "committed",
            "global_shards",
            "is_fully_addressable",
            "is_fully_replicated",
        ):
            with pytest.raises(ConcretizationTypeError):
                getattr(x, name)
        for name in ("delete", "devices", "is_deleted", "tobytes", "unsafe_buffer_pointer"):
            with pytest.raises(ConcretizationTypeError):
                getattr(x, name)()
        return round(x).byteswap()

    assert f(X).dtype == "int32"


def test_negative_indices_that_do_not_wrap():
    where = X.ravel().at[wnp.array([-1, 2])]
    assert where.set(9.0, wrap_negative_indices=False).tolist() == [0, 1, 9, 3, 4, 5]
    assert where.add(9.0, mode="clip", wrap_negative_indices=False).tolist() == [9, 1, 11, 3, 4, 5]
    assert where.get(mode="fill", fill_value=7, wrap_negative_indices=False).tolist() == [7, 2]
    assert where.get(wrap_negative_indices=False, out_sharding=None).tolist() == [0, 2]
    assert where.apply(wnp.negative, wrap_negative_indices=False)[5] == 5


def test_values_while_a_function_is_traced():
    @weft.jit
    def f(x):
        with weft.ensure_compile_time_eval():
            n = int(wnp.arange(3).sum())
            twice = x * 2
        return twice * n

    assert f(2.0) == 12 and weft.grad(lambda x: f(x))(1.0) == 6

    @weft.jit
    def traced(x):
        with weft.ensure_compile_time_eval():
            return bool(x > 0)

    with pytest.raises(weft.errors.TracerBoolConversionError):
        traced(1.0)
    assert weft.jit(lambda x: x + 1)(1) == 2


def test_processes():
    assert weft.process_count() == weft.host_count("cpu") == 1
    assert weft.process_indices() == weft.host_ids() == [weft.process_index()] == [weft.host_id()]
    assert weft.local_devices(process_index=0) == weft.local_devices(backend="cpu")
    for error, call in [
        (ValueError, lambda: weft.local_devices(3)),
        (RuntimeError, lambda: weft.process_count("nonsense")),
    ]:
        with pytest.raises(error):
            call()
    assert isinstance(DEVICE, weft.Device) and weft.float0 == weft.dtypes.float0
    assert "numpy" in weft.print_environment_info(return_string=True)
    assert any(a is X for a in weft.live_arrays("cpu"))


def test_numbers_as_arrays():
    assert wnp.asarray(2.5).byteswap() == np.float32(2.5).byteswap()
    assert wnp.asarray(1j).byteswap().shape == ()
    assert wnp.ones((2, 3)).aval.str_short() == "float32[2,3]"
    assert wnp.ones((2, 3), "uint8").aval.str_short(short_dtypes=True) == "u8[2,3]"
    assert weft.device_get([1, wnp.ones(1)])[0] == 1 and type(weft.device_get(1)) is int


class _Members:
    """What weft.Array has for arrays and traced values, by name."""

    CALLS = {
        "sum": lambda f, x: f(x),
        "all": lambda f, x: f(x),
        "astype": lambda f, x: f(x, "int32"),
        "reshape": lambda f, x: f(x, 3, 2),
        "__add__": lambda f, x: f(x, 1),
        "__rsub__": lambda f, x: f(x, 1),
        "__matmul__": lambda f, x: f(x, x.T),
        "__getitem__": lambda f, x: f(x, 1),
        "__lt__": lambda f, x: f(x, 3),
        "__eq__": lambda f, x: f(x, 3),
        "__neg__": lambda f, x: f(x),
    }
    PROPERTIES = ("shape", "dtype", "ndim", "size", "T", "mT", "real", "nbytes", "weak_type")


def test_the_class_has_the_attributes_of_arrays():
    missing = [n for n in dir(X) if not hasattr(weft.Array, n) and not n.startswith("_")]
    assert not missing
    public = [n for n in dir(weft.Array) if not n.startswith("_")]
    assert [n for n in public if not getattr(weft.Array, n).__doc__] == []
    for name, call in _Members.CALLS.items():
        method = getattr(weft.Array, name)
        right = np.asarray(call(lambda x, *args, n=name: getattr(x, n)(*args), X))
        traced = weft.jit(lambda x, c=call, m=method: c(m, x))(X)
        np.testing.assert_array_equal(call(method, X), right)
        np.testing.assert_array_equal(traced, right)
    for name in _Members.PROPERTIES:
        member = getattr(weft.Array, name)
        assert isinstance(member, property)
        assert np.all(np.asarray(member.fget(X)) == np.asarray(getattr(X, name)))
    at = weft.Array.at.fget
    assert weft.jit(lambda x: at(x)[0, 0].set(7))(X)[0, 0] == 7
    assert weft.grad(weft.Array.sum)(wnp.ones(2)).tolist() == [1, 1]
    assert [float(x) for x in map(weft.Array.sum, [X, X])] == [15, 15]
    assert weft.Array.__hash__ is None and weft.Array.__array_priority__ == X.__array_priority__
    for name in ("__add__", "copy", "tolist"):
        with pytest.raises(TypeError, match=rf"Array.{name} expected an array; got ndarray"):
            getattr(weft.Array, name)(np.ones(3))
    with pytest.raises(TypeError, match="expected an array; got int"):
        weft.Array.shape.fget(3)
    with pytest.raises(ConcretizationTypeError, match="devices"):
        weft.jit(weft.Array.devices)(X)


@pytest.mark.parametrize("name", sorted(OF_TENSORS))
def test_attributes_of_tensors_of_other_frameworks_say_what_to_write(name):
    assert name not in dir(X) and not hasattr(weft.Array, name)

    def ask(x):
        with pytest.raises(
            AttributeError, match=f"no attribute '{name}': .*{OF_TENSORS[name][:6]}"
        ):
            getattr(x, name)
        assert not hasattr(x, name)
        return x

    ask(X)
    weft.jit(ask)(X)
