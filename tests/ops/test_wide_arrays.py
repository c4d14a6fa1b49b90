"""64-bit arrays that exist while 64-bit dtypes are off keep their dtype, as in JAX."""

import copy
import pickle

import numpy as np
import pytest

import weft
import weft.numpy as wnp
from weft import lax, nn, random

DTYPES = ("float64", "int64", "uint64", "complex128")


def wide(dtype, shape=(2, 3)):
    with weft.enable_x64(True):
        return wnp.asarray(np.arange(1, 1 + np.prod(shape)).reshape(shape).astype(dtype))


def holds(x, dtype):
    """Whether the type of an array and its buffer agree on the dtype."""
    return x.dtype == dtype and np.asarray(x).dtype == dtype


KEEPING = {
    "set": lambda x: x.at[0].set(1),
    "set_float": lambda x: x.at[0, 1].set(2.0) if x.dtype.kind in "fc" else x,
    "set_array": lambda x: x.at[0].set(wnp.ones(3, "float32") if x.dtype.kind in "fc" else 1),
    "add": lambda x: x.at[wnp.array([0, 1])].add(1),
    "mul": lambda x: x.at[0, 1].mul(2),
    "getitem": lambda x: x[wnp.asarray(1)],
    "gather": lambda x: x[wnp.array([0, 1])],
    "mask": lambda x: x[np.array([True, False])],
    "alike": lambda x: x + x,
    "negative": lambda x: -x if x.dtype.kind != "u" else x,
    "where": lambda x: wnp.where(x == x, x, x),
    "concatenate": lambda x: wnp.concatenate([x, x]),
    "stack": lambda x: wnp.stack([x, x]),
    "array": lambda x: wnp.array([x, x]),
    "zeros_like": wnp.zeros_like,
    "full_like": lambda x: lax.full_like(x, 1),
    "matmul": lambda x: x @ x.T,
    "pad": lambda x: wnp.pad(x, 1),
    "take": lambda x: wnp.take(x, wide("int64", (2,)) - wide("int64", (2,))),
    "copy": wnp.copy,
    "scan": lambda x: lax.scan(lambda c, y: (c + y, c * y), x[0], x)[1],
    "scan_carry": lambda x: lax.scan(lambda c, y: (c + y, y), x[0], x)[0],
    "fori_loop": lambda x: lax.fori_loop(0, 3, lambda i, y: y + x, x),
    "while_loop": lambda x: lax.while_loop(lambda y: (y != x).all(), lambda y: y + x, x),
    "cond": lambda x: lax.cond(True, lambda y: y + y, lambda y: y, x),
    "map": lambda x: lax.map(lambda y: y * y, x),
    "associative_scan": lambda x: lax.associative_scan(wnp.add, x),
    "reduce": lambda x: lax.reduce(x, 0, lax.add, (0,)),
    "dynamic_update_slice": lambda x: lax.dynamic_update_slice(x, x[:1], (1, 0)),
    "jit": lambda x: weft.jit(lambda y: y.at[0].set(1) + y)(x),
    "vmap": lambda x: weft.vmap(lambda y: y * y)(x),
    "checkpoint": lambda x: weft.checkpoint(lambda y: y * y)(x),
    "device_put": lambda x: weft.device_put(x, weft.devices()[0]),
    "deepcopy": copy.deepcopy,
    "shallow copy": copy.copy,
    "eval_shape": lambda x: weft.jit(lambda y: y)(x),
    "permutation": lambda x: random.permutation(random.key(0), x),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", KEEPING)
def test_operations_keep_the_dtype(name, dtype):
    x = wide(dtype)
    result = KEEPING[name](x)
    assert holds(result, dtype)
    with weft.enable_x64(True):
        np.testing.assert_array_equal(result, KEEPING[name](x))


DERIVATIVES = {
    "grad": lambda x: weft.grad(lambda y: (y * y).sum())(x),
    "grad of scan": lambda x: weft.grad(lambda y: lax.scan(lambda c, z: (c * z, c), y[0], y)[0])(x),
    "grad of loop": lambda x: weft.grad(lambda y: lax.fori_loop(0, 3, lambda i, z: z * y, x).sum())(
        x
    ),
    "jvp": lambda x: weft.jvp(wnp.sin, (x,), (x,))[1],
    "vjp": lambda x: weft.vjp(wnp.sin, x)[1](x)[0],
    "linearize": lambda x: weft.linearize(wnp.sin, x)[1](x),
    "jacfwd": weft.jacfwd(lambda y: y * y),
    "jacrev": weft.jacrev(lambda y: y * y),
    "hessian": weft.hessian(lambda y: (y**3).sum()),
    "sigmoid": nn.sigmoid,
}


@pytest.mark.parametrize("name", DERIVATIVES)
def test_derivatives_keep_the_dtype(name):
    x = wide("float64", (3,)) / wide("float64", (3,))
    assert holds(DERIVATIVES[name](x), "float64")


def test_others_meet_them_in_32_bits():
    x, y = wide("float64"), wnp.ones((2, 3))
    for result in (x + 1, x + y, x * 2.5, wnp.maximum(x, np.float64(2)), wnp.where(True, x, 0)):
        assert holds(result, "float32")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (2, 3), (0,)])
def test_pickles_are_read_in_the_dtypes_of_the_reader(dtype, shape):
    stored = pickle.dumps(wide(dtype, shape))
    narrow = pickle.loads(stored)
    assert holds(narrow, weft.dtypes.canonicalize_dtype(dtype))
    assert holds(narrow + narrow, narrow.dtype)
    with weft.enable_x64(True):
        assert holds(pickle.loads(stored), dtype)
        assert holds(pickle.loads(pickle.dumps(narrow)), narrow.dtype)
    weak = pickle.loads(pickle.dumps(wnp.asarray(2.5)))
    assert weak.weak_type and holds(weak, "float32")


def test_parameters_of_distributions():
    p = wide("float64", (3,)) / 4
    key = random.key(0)
    np.testing.assert_array_equal(
        random.bernoulli(key, p), random.bernoulli(key, p.astype("float32"))
    )
    np.testing.assert_array_equal(
        random.categorical(key, p), random.categorical(key, p.astype("float32"))
    )
    bound = wide("int64", ()) + wide("int64", ())
    assert holds(random.randint(key, (5,), 0, bound), "int32")


def test_wide_numbers_of_numpy_wrap_around():
    x = np.uint64(2**63 + 5)
    assert wnp.asarray(x) == 5 and wnp.asarray(x).dtype == "uint32"
    assert wnp.uint32(1) + x == 6
    assert weft.jit(lambda y: y + x)(wnp.uint32(1)) == 6
    with weft.enable_x64(True):
        assert int(wnp.asarray(x)) == 2**63 + 5
        assert int(wnp.asarray(x).astype("int64")) == 5 - 2**63
        assert int(wnp.uint64(1) + x) == 2**63 + 6
    with pytest.raises(OverflowError):
        wnp.asarray(2**63 + 5)


def test_device_put_in_a_trace():
    device = weft.devices()[0]
    x = np.arange(3.0, dtype="float32")
    put = weft.jit(lambda x: weft.device_put({"a": x, "b": 2.0}, device)["a"] * 2)
    np.testing.assert_array_equal(put(x), 2 * x)
    constant = weft.jit(lambda: weft.device_put(x, device) + weft.device_put(1.0, device))
    np.testing.assert_array_equal(constant(), x + 1)
    slope = weft.grad(lambda x: (weft.device_put(x, device) ** 2).sum())
    np.testing.assert_array_equal(slope(x), 2 * x)
    np.testing.assert_array_equal(weft.vmap(lambda v: weft.device_put(v, device))(x), x)


def test_device_put_copies_where_nothing_may_be_shared():
    x = wnp.ones(3)
    assert weft.device_put(x) is x
    copied = weft.device_put(x, may_alias=False)
    x.delete()
    assert copied.tolist() == [1, 1, 1]
    with pytest.raises(ValueError, match="not both"):
        weft.device_put(copied, donate=True, may_alias=False)


WIDE_STARTS = {
    "dynamic_slice": lambda x, i: lax.dynamic_slice(x, (i, 0), (1, 3)),
    "dynamic_slice, array": lambda x, i: lax.dynamic_slice(x, wnp.stack([i, i]), (1, 3)),
    "dynamic_slice, narrow": lambda x, i: lax.dynamic_slice(x, (i, wnp.asarray(0)), (1, 3)),
    "dynamic_slice_in_dim": lambda x, i: lax.dynamic_slice_in_dim(x, i, 1),
    "dynamic_index_in_dim": lambda x, i: lax.dynamic_index_in_dim(x, i),
    "dynamic_update_slice": lambda x, i: lax.dynamic_update_slice(x, x[:1] * 0, (i, 0)).argmin(0),
    "dynamic_update_slice_in_dim": lambda x, i: lax.dynamic_update_slice_in_dim(
        x, x[:1] * 0, i, 0
    ).argmin(0),
    "dynamic_update_index_in_dim": lambda x, i: lax.dynamic_update_index_in_dim(
        x, x[0] * 0, i, 0
    ).argmin(0),
}


@pytest.mark.parametrize("name", WIDE_STARTS)
def test_wide_indices_are_not_cut_off(name):
    x = wnp.arange(1.0, 13.0).reshape(4, 3)
    for f in (WIDE_STARTS[name], weft.jit(WIDE_STARTS[name])):
        for index, row in ((2**32 + 1, 3), (-(2**32) + 1, 0), (-2, 2), (1, 1)):
            with weft.enable_x64(True):
                i = wnp.asarray(np.int64(index))
            expected = np.full(3, row) if "update" in name else np.asarray(x[row : row + 1])
            np.testing.assert_array_equal(f(x, i).reshape(expected.shape), expected)
