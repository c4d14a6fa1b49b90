"""Floats of 8 and 4 bits, integers of 4 and 2: every operation that takes them.

All operations of one dtype are one program. What they should give is what they give for float32 or
int32, rounded or wrapped to the dtype.

usage: test_low_precision.py [DTYPE ...]       runs these dtypes, or all
"""

import copy
import pickle
import sys

import ml_dtypes
import numpy as np
import pytest

import weft
from weft import lax, numpy as wnp

FLOATS = (
    "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz",
    "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "float4_e2m1fn",
)  # fmt: skip
INTS = ("int4", "int2", "uint4", "uint2")
# Those that are tested each time; float8_e8m0fnu and float4_e2m1fn lack most results of functions.
SAMPLE = ("float8_e4m3fn", "float4_e2m1fn", "int4", "uint2")
FIXED = ("convert", "argmax", "argmin")  # their results have dtypes of their own
COARSE = ("float8_e8m0fnu", "float4_e2m1fn")

i = np.array([0, 3, -1])


def unary(*names):
    return {name: getattr(lax, name) for name in names}


def binary(*names):
    return {name: lambda x, name=name: getattr(lax, name)(x, x[::-1]) for name in names}


def over_axis(*names):
    return {name: lambda x, name=name: getattr(lax, name)(x, (0,)) for name in names}


OF_FLOATS = {
    **unary(
        "neg", "sign", "floor", "ceil", "is_finite", "abs", "square", "sqrt", "rsqrt", "cbrt",
        "exp", "exp2", "expm1", "log", "log1p", "logistic", "sin", "cos", "tan", "atan", "sinh",
        "cosh", "tanh", "asinh", "erf", "erfc", "lgamma", "digamma", "bessel_i0e", "bessel_i1e",
        "round", "cumlogsumexp",
    ),
    **binary("pow", "atan2"),
    "asin": lambda x: lax.asin(x / 4), "atanh": lambda x: lax.atanh(x / 8),
    "erf_inv": lambda x: lax.erf_inv(x / 8),
    "reduce_precision": lambda x: lax.reduce_precision(x, 4, 1),
}  # fmt: skip
OF_INTS = {
    **unary("neg", "sign", "square", "bitwise_not", "population_count", "clz"),
    **binary("mulhi", "bitwise_and", "bitwise_or", "bitwise_xor", "shift_left",
             "shift_right_arithmetic", "shift_right_logical"),
    **over_axis("reduce_and", "reduce_or", "reduce_xor"),
}  # fmt: skip
OF_ALL = {
    **binary("add", "sub", "mul", "div", "max", "min", "eq", "ne", "lt", "le", "gt", "ge"),
    **over_axis("reduce_sum", "reduce_prod", "reduce_max", "reduce_min"),
    **unary("cumsum", "cumprod", "cummax", "cummin", "sort", "optimization_barrier"),
    "rem": lambda x: lax.rem(x, x[:1] * 0 + 1),
    "integer_pow": lambda x: lax.integer_pow(x, 2),
    "clamp": lambda x: lax.clamp(x[1], x, x[0]),
    "select": lambda x: lax.select(x > x[1], x, x[::-1]),
    "argmax": lambda x: lax.argmax(x, 0, np.int32),
    "argmin": lambda x: lax.argmin(x.reshape(2, 3), 1, np.int8),
    "sort_keys": lambda x: lax.sort((x, x), num_keys=2),
    "top_k": lambda x: lax.top_k(x, 2),
    "reduce": lambda x: lax.reduce(x, x[0], lax.max, (0,)),
    "dot": lambda x: lax.dot(x.reshape(2, 3), x.reshape(3, 2)),
    "reshape": lambda x: x.reshape(3, 2),
    "broadcast": lambda x: lax.broadcast_in_dim(x, (2, 6), (1,)),
    "transpose": lambda x: x.reshape(2, 3).T,
    "rev": lambda x: lax.rev(x, (0,)),
    "concatenate": lambda x: lax.concatenate([x, x], 0),
    "pad": lambda x: lax.pad(x, x[0], [(1, -2, 1)]),
    "slice": lambda x: lax.slice(x, (1,), (5,), (2,)),
    "dynamic_slice": lambda x: lax.dynamic_slice(x, (1,), (3,)),
    "dynamic_update_slice": lambda x: lax.dynamic_update_slice(x, x[:2], (3,)),
    "gather": lambda x: x[i],
    "scatter": lambda x: x.at[i].set(x[0]),
    "scatter_add": lambda x: x.at[i].add(x[1]),
    "scatter_max": lambda x: x.at[i].max(x[0]),
    "scatter_mul": lambda x: x.at[i].mul(x[0], unique_indices=True),
    "convert": lambda x: (x.astype("float32"), x.astype("int32"), x.astype(bool)),
    "loop": lambda x: lax.fori_loop(0, 2, lambda _, c: c + c, x),
    "scan": lambda x: lax.scan(lambda c, y: (lax.max(c, y), c), x[0], x),
    "cond": lambda x: lax.cond(x[0] > x[1], lambda a: a, lambda a: a + a, x),
    "vmap": lambda x: weft.vmap(lambda a: a + a[0])(x.reshape(2, 3)),
    "where": lambda x: wnp.where(x > x[0], x, 0),
    "empty": lambda x: x[:0] + x[:0],
    "constant": lambda x: x + wnp.ones(6, x.dtype),
}
MOVING = (
    "reshape", "broadcast", "transpose", "rev", "concatenate", "pad", "slice", "dynamic_slice",
    "dynamic_update_slice", "gather", "scatter", "select", "clamp", "sort", "sort_keys", "top_k",
    "argmax", "argmin", "max", "min", "eq", "lt", "convert", "empty", "reduce_max", "reduce_min",
    "cummax", "scan",
)  # fmt: skip


def operations(dtype):
    if dtype in COARSE:
        return {name: OF_ALL[name] for name in MOVING}
    return OF_ALL | (OF_FLOATS if dtype in FLOATS else OF_INTS)


def wide(dtype):
    return np.float32 if dtype in FLOATS else np.int32 if dtype.startswith("i") else np.uint32


def operand(dtype):
    values = [1, 0.5, 2, 1, 4, 0.5] if dtype in FLOATS else [1, 0, 1, 1, 0, 1]
    return np.array(values).astype(dtype)


def expected(dtype, name, y, ref):
    """A result in float32 or int32 as one in the dtype; None if it says nothing of that."""
    if name in ("bitwise_not", "clz", "mulhi", "shift_right_logical", "shift_right_arithmetic"):
        return None  # depends on the width
    if y.dtype == dtype:
        bits = ml_dtypes.iinfo(dtype).bits if dtype in INTS else 0
        if dtype in INTS:
            ref = ref.astype(np.int64) % 2**bits
            ref = ref - 2**bits * (ref >= 2 ** (bits - 1)) if dtype.startswith("i") else ref
        ref = ref.astype(dtype)
    return ref.astype(np.float64)


def check(dtype):
    table = operations(dtype)
    program = weft.jit(lambda x: {name: f(x) for name, f in table.items()})
    x = operand(dtype)
    got, refs = program(x), program(x.astype(wide(dtype)))
    tolerance = 2 * float(ml_dtypes.finfo(dtype).eps) if dtype in FLOATS else 0
    for name in table:
        ys, wants = (weft.tree_util.tree_leaves(r[name]) for r in (got, refs))
        for y, ref in zip(ys, wants, strict=True):
            y, ref = np.asarray(y), np.asarray(ref)
            assert y.shape == ref.shape, name
            follows = ref.dtype == wide(dtype) and name not in FIXED
            assert name == "top_k" or y.dtype == (dtype if follows else ref.dtype), name
            want = expected(dtype, name, y, ref)
            if want is not None:
                np.testing.assert_allclose(
                    y.astype(np.float64), want, rtol=tolerance, atol=tolerance, err_msg=name
                )


@pytest.mark.parametrize("dtype", SAMPLE)
def test_every_operation(dtype):
    check(dtype)


@pytest.mark.parametrize("dtype", SAMPLE[:2] + ("float8_e5m2fnuz", "float8_e3m4"))
def test_all_numbers_of_a_narrow_dtype(dtype):
    """Functions that look at limits and bits, on every value there is, as NumPy has them."""
    bits = ml_dtypes.finfo(dtype).bits
    x = np.arange(2**bits, dtype=np.uint8).view(dtype)
    wide = x.astype(np.float32)

    @weft.jit
    def program(x):
        mantissa, exponent = wnp.frexp(x)
        found = [wnp.isinf(x), wnp.isposinf(x), wnp.isneginf(x), wnp.isnan(x), wnp.signbit(x)]
        limits = [wnp.nanmax(x), wnp.nanmin(x), wnp.ldexp(mantissa, exponent)]
        small = wnp.where(abs(x.astype("float32")) < 8, x, wnp.ones((), x.dtype))
        return [*found, *limits, mantissa, exponent, small.astype("int8"), small.astype("int4")]

    small = np.where(np.abs(wide) < 8, wide, 1)
    mantissa, exponent = np.frexp(wide)
    mantissa = mantissa.astype(dtype).astype(np.float32)  # float4_e2m1fn does not hold 0.75
    exponent = np.where(np.isfinite(wide), exponent, 0)
    want = [np.isinf(wide), np.isposinf(wide), np.isneginf(wide), np.isnan(wide)]
    want += [np.signbit(wide), np.nanmax(wide), np.nanmin(wide)]
    want += [np.ldexp(mantissa, exponent).astype(dtype).astype(np.float32)]
    want += [mantissa, exponent, small.astype(np.int8), small.astype(np.int8)]
    for i, (y, ref) in enumerate(zip(program(x), want, strict=True)):
        np.testing.assert_array_equal(np.asarray(y).astype(np.float32), ref, err_msg=str(i))


def callback(x):
    return weft.pure_callback(
        lambda v: np.asarray(v)[::-1], weft.ShapeDtypeStruct((5,), x.dtype), x
    )


MOVES = {
    "pickle": (lambda x, a: pickle.loads(pickle.dumps(x)), lambda a: a),
    "pickle nothing": (lambda x, a: pickle.loads(pickle.dumps(x[:0])), lambda a: a[:0]),
    "deepcopy": (lambda x, a: copy.deepcopy(x), lambda a: a),
    "device_put": (lambda x, a: weft.device_put(x, weft.devices()[0]), lambda a: a),
    "strided": (lambda x, a: weft.device_put(a[::2]), lambda a: a[::2]),
    "backwards": (lambda x, a: wnp.asarray(a[::-1]), lambda a: a[::-1]),
    "repeated": (lambda x, a: wnp.asarray(np.broadcast_to(a[1], (3,))), lambda a: a[[1, 1, 1]]),
    "argument": (lambda x, a: weft.jit(lambda y: y[::-1])(a), lambda a: a[::-1]),
    "donated": (lambda x, a: weft.jit(lambda y: y[::-1], donate_argnums=0)(wnp.array(a)),
                lambda a: a[::-1]),
    "constant": (lambda x, a: weft.jit(lambda i: wnp.asarray(a)[i])(2), lambda a: a[2]),
    "callback": (lambda x, a: weft.jit(callback)(x), lambda a: a[::-1]),
    "element": (lambda x, a: x[-2], lambda a: a[-2]),
    "elements": (lambda x, a: wnp.stack(list(x)), lambda a: a),
    "update": (lambda x, a: x.at[wnp.array([0, -1])].set(x[1]), lambda a: a[[1, 1, 2, 3, 1]]),
    "dynamic": (lambda x, a: lax.dynamic_update_slice(x, x[:1], (3,)),
                lambda a: a[[0, 1, 2, 0, 4]]),
    "text": (lambda x, a: np.array(str(x) == str(a) and repr(x)[:5] == "Array"), lambda a: True),
    "list": (lambda x, a: np.array(x.tolist()), lambda a: np.array(a.tolist())),
}  # fmt: skip


@pytest.mark.parametrize("dtype", SAMPLE[1:])
def test_arrays_with_elements_of_less_than_a_byte_move(dtype):
    a = operand(dtype)[:5]
    for name, (move, reference) in MOVES.items():
        got = np.asarray(move(wnp.asarray(a), a))
        np.testing.assert_array_equal(got, np.asarray(reference(a)), err_msg=name)
        assert got.dtype == np.asarray(reference(a)).dtype, name


@pytest.mark.parametrize("dtype", FLOATS + INTS)
def test_bits_of_narrow_numbers(dtype):
    bits = ml_dtypes.finfo(dtype).bits if dtype in FLOATS else ml_dtypes.iinfo(dtype).bits
    x = wnp.asarray(np.tile(operand(dtype), 4).reshape(-1, 8 // bits * 2 if bits < 8 else 2))
    for wider in ("uint8", "uint16"):
        if np.dtype(wider).itemsize * 8 // bits != x.shape[-1]:
            continue
        packed = lax.bitcast_convert_type(x, wider)
        assert packed.shape == x.shape[:-1]
        back = lax.bitcast_convert_type(packed, dtype)
        np.testing.assert_array_equal(np.asarray(back), np.asarray(x))
    same = {8: "uint8", 4: "uint4", 2: "uint2"}[bits]
    bits_of = lax.bitcast_convert_type(x, same)
    np.testing.assert_array_equal(
        np.asarray(lax.bitcast_convert_type(bits_of, dtype)), np.asarray(x)
    )


if __name__ == "__main__":
    for each in sys.argv[1:] or FLOATS + INTS:
        try:
            check(each)
        except Exception as error:
            sys.stdout.write(f"{each}: {type(error).__name__}: {str(error)[:900]}\n")
