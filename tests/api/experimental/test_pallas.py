"""Pallas: kernels against jax, derivatives against NumPy, and what is refused."""

import importlib
import subprocess
import sys

import numpy as np
import pytest
from oracle import needs_jax
from pallas_kernels import KERNELS, RAMP, A, B, Modules

import weft
import weft.numpy as wnp
from weft import lax
from weft.errors import AttributeValueError, ShapeError, TreeStructureError
from weft.experimental import pallas as pl
from weft.experimental.pallas import tpu, triton

WEFT = Modules(weft, wnp, lax, pl, tpu)
F32 = weft.ShapeDtypeStruct((20,), "float32")


def _jax():
    names = ("jax", "jax.numpy", "jax.lax", "jax.experimental.pallas")
    return Modules(*map(importlib.import_module, (*names, "jax.experimental.pallas.tpu")))


def double(x, out):
    out[...] = 2 * x[...]


@needs_jax
@pytest.mark.parametrize("name", KERNELS)
def test_as_jax(name):
    got, tree = weft.tree.flatten(KERNELS[name](WEFT))
    expected, same = weft.tree.flatten(KERNELS[name](_jax()))
    assert tree == same
    for x, y in zip(got, expected, strict=True):
        assert (x.shape, x.dtype) == (y.shape, y.dtype)
        wide = np.promote_types(x.dtype, "float32")
        np.testing.assert_allclose(np.asarray(x, wide), np.asarray(y, wide), rtol=2e-5, atol=2e-5)


def test_derivatives_in_reverse():
    a, b = KERNELS["matmul"](WEFT)
    np.testing.assert_allclose(a, A @ B, rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(a, b)

    def kernel(a, b, o, acc):
        @pl.when(pl.program_id(1) == 0)
        def _():
            acc[...] = wnp.zeros_like(acc)

        acc[...] += a[...] @ b[...]
        o[...] = acc[...]

    call = pl.pallas_call(
        kernel,
        weft.ShapeDtypeStruct((32, 24), "float32"),
        grid=(4, 3),
        in_specs=[
            pl.BlockSpec((8, 16), lambda i, k: (i, k)),
            pl.BlockSpec((16, 24), lambda i, k: (k, 0)),
        ],
        out_specs=pl.BlockSpec((8, 24), lambda i, k: (i, 0)),
        scratch_shapes=[pl.ANY((8, 24), "float32")],
        interpret=True,
    )
    weights = np.cos(np.arange(32 * 24)).reshape(32, 24).astype("float32")
    slopes = weft.grad(lambda a, b: (weights * call(a, b)).sum(), (0, 1))(A, B)
    np.testing.assert_allclose(slopes[0], weights @ B.T, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(slopes[1], A.T @ weights, rtol=1e-4, atol=1e-4)


def test_traced_once_for_calls_of_one_type():
    traced = []

    def kernel(x, out):
        traced.append(x.shape)
        double(x, out)

    call = pl.pallas_call(kernel, F32, interpret=True)
    np.testing.assert_array_equal(call(RAMP), 2 * RAMP)
    np.testing.assert_array_equal(call(RAMP + 1), 2 * RAMP + 2)
    assert len(traced) == 1


def test_names_of_gpu_kernels():
    def kernel(x, o, old):
        valid = wnp.arange(20) < 18
        triton.store(o, triton.load(x, mask=valid, other=-1.0), mask=wnp.arange(20) > 0)
        old[0] = triton.atomic_add(o, 1, 5.0)
        old[1] = triton.atomic_max(o, wnp.array([2, 2]), wnp.array([7.0, 6.0]))[1]
        triton.atomic_xchg(o, 3, 9.0, mask=False)

    out, old = pl.pallas_call(
        kernel, [F32, weft.ShapeDtypeStruct((2,), "float32")], interpret=True
    )(RAMP)
    expected = np.where(np.arange(20) < 18, RAMP, -1)
    expected[:3] = np.nan, 6, 7
    np.testing.assert_array_equal(out, expected)
    np.testing.assert_array_equal(old, [1, 2])


def test_interpreted_where_that_is_forced():
    call = pl.pallas_call(double, F32)
    with tpu.force_tpu_interpret_mode():
        np.testing.assert_array_equal(call(RAMP), 2 * RAMP)
    params = tpu.InterpretParams(detect_races=True)
    call = pl.pallas_call(double, F32, interpret=params)
    np.testing.assert_array_equal(call(RAMP), 2 * RAMP)


def test_prints(capfd):
    def kernel(x, out):
        pl.debug_print("first", x[0])
        pl.debug_print("step {}", pl.program_id(0))

    pl.pallas_call(kernel, F32, grid=2, interpret=True)(RAMP)
    weft.effects_barrier()
    assert sorted(capfd.readouterr().out.split("\n")) == [
        "",
        *["first 0.0"] * 2,
        "step 0",
        "step 1",
    ]


def _call(kernel=double, out_shape=F32, **options):
    return pl.pallas_call(kernel, out_shape, **{"interpret": True, **options})(RAMP)


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: _call(interpret=False), NotImplementedError, "interpret=True"),
        (lambda: _call(lambda x, o: x[...]), ValueError, "returns None"),
        (lambda: _call(lambda x, o: pl.program_id(1), grid=2), AttributeValueError, "axis 1"),
        (lambda: _call(grid=2, grid_spec=pl.GridSpec(2)), AttributeValueError, "in grid_spec"),
        (lambda: _call(in_specs=[pl.BlockSpec()] * 2), TreeStructureError, "in_specs"),
        (lambda: _call(in_specs=[pl.BlockSpec((2, 2))]), ShapeError, "input 0, of shape"),
        (
            lambda: _call(out_specs=pl.BlockSpec((2,), lambda i: (i, 0)), grid=2),
            ShapeError,
            "map for output 0 with 1",
        ),
        (
            lambda: _call(in_specs=[pl.BlockSpec((2,), lambda i: 1.0)], grid=2),
            TypeError,
            "integer scalars",
        ),
        (
            lambda: _call(in_specs=[pl.BlockSpec((pl.BoundedSlice(2),))]),
            NotImplementedError,
            "BoundedSlice",
        ),
        (lambda: _call(input_output_aliases={1: 0}), AttributeValueError, "below 1; got 1"),
        (
            lambda: _call(
                out_shape=weft.ShapeDtypeStruct((20,), "int32"), input_output_aliases={0: 0}
            ),
            ShapeError,
            "one shape and dtype",
        ),
        (lambda: _call(out_shape=20), TypeError, "out_shape"),
        (lambda: _call(scratch_shapes=[F32]), NotImplementedError, "memories make"),
        (lambda: pl.program_id(0), RuntimeError, "by a kernel"),
        (lambda: pl.core_map, AttributeError, "makes none for GPUs"),
        (lambda: pl.mosaic_gpu.wgmma, AttributeError, "makes none for GPUs"),
    ],
)
def test_refused(make, error, text):
    with pytest.raises(error, match=text):
        make()


def test_imports_of_libraries():
    code = """
import weft.as_jax
import jax.experimental.pallas as pl
from jax.experimental.pallas import tpu as pltpu, triton as plgpu, mosaic_gpu as plmgpu
from jax.experimental.pallas.tpu import make_async_copy, VMEM
plmgpu.wgmma, plmgpu.SMEM, pltpu.SemaphoreType, pl.load, pl.swap, plgpu.load
try:
    make_async_copy(1, 2, 3)
except NotImplementedError as error:
    print(error)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "makes none for GPUs and TPUs" in run.stdout
