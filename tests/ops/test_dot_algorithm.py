"""Algorithms of products: against jax, in derivatives, as they are emitted, mistakes."""

import ml_dtypes
import numpy as np
import pytest
from oracle import check, lines, needs_jax

import weft
from weft import compiler, lax, numpy as wnp
from weft.errors import AttributeValueError, DTypeError, NotImplementedRuleError
from weft.runtime import mlir

Preset = lax.DotAlgorithmPreset
ON_CPU = [
    "DEFAULT",
    "F16_F16_F16",
    "BF16_BF16_F32",
    "BF16_BF16_F32_X3",
    "BF16_BF16_F32_X6",
    "F32_F32_F32",
    "F64_F64_F64",
]
CASES = lines(
    """
    lax.dot(x,x.T,precision="F32_F32_F32")
    lax.dot(x/3,x.T,precision=lax.DotAlgorithmPreset.F16_F16_F16)
    lax.dot(x/3,x.T,precision=lax.DotAlgorithmPreset.BF16_BF16_F32)
    lax.dot(h,x.T,precision="BF16_BF16_F32_X3")
    lax.dot(h/3,h.T,precision="F64_F64_F64")
    lax.dot(h,h.T,precision="BF16_BF16_F32_X6",preferred_element_type="float32")
    lax.dot(k,k.T,precision="F32_F32_F32")
    lax.dot(k,k.T,precision="F32_F32_F32",preferred_element_type="int8")
    lax.dot(k,k.T,preferred_element_type="int8")
    lax.dot(x,x.T,precision=lax.DotAlgorithmPreset.DEFAULT)
    lax.dot(x,x.T,precision="TF32_TF32_F32")
    lax.dot(x,x.T,precision="ANY_F8_ANY_F8_F32")
    lax.dot(x,x.T,precision="BF16_BF16_F32_X9")
    lax.dot(x,x.T,precision="f32_f32_f32")
    lax.dot(x,x.T,precision=3)
    lax.dot(x,x.T,precision=("high","highest"))
    lax.dot(x,x.T,precision=("high",))
    lax.dot(x,x.T,precision=("high",None))
    lax.dot(x,x.T,precision=("F32_F32_F32","F32_F32_F32"))
    lax.dot_general(u,u,(((2,),(1,)),((0,),(0,))),"BF16_BF16_F32")
    lax.batch_matmul(u,u,precision="F32_F32_F32")
    lax.ragged_dot(x,jnp.ones((2,3,2)),jnp.array([1,1]),precision="F32_F32_F32")
    lax.ragged_dot(x,jnp.ones((2,3,2)),jnp.array([1,1]),precision="TF32_TF32_F32")
    lax.conv(jnp.ones((1,2,5)),jnp.ones((3,2,3)),(1,),"SAME",precision="BF16_BF16_F32")
    jnp.matmul(x/3,x.T,precision="F16_F16_F16")
    jnp.dot(h,h.T,precision="F32_F32_F32",preferred_element_type="float32")
    jnp.einsum("ij,kj->k",x,x,precision=lax.DotAlgorithmPreset.F32_F32_F32)
    jnp.tensordot(x,x,2,precision="F32_F32_F32")
    jnp.inner(x,x,precision="F32_F32_F32")
    jnp.vdot(x,x,precision="F32_F32_F32")
    [str(p) for p in lax.DotAlgorithmPreset] + [repr(lax.DotAlgorithmPreset.F32_F32_F32)]
    [[np.dtype(t).name for t in p.supported_lhs_types or ()] for p in lax.DotAlgorithmPreset]
    [p.accumulation_type and np.dtype(p.accumulation_type).name for p in lax.DotAlgorithmPreset]
    """
)

X, Y = np.ones((3, 4), np.float32), np.ones((4, 2), np.float32)


def product(x, y):
    return lax.dot(x, y, precision="BF16_BF16_F32_X3")


@needs_jax
@pytest.mark.oracle
@pytest.mark.parametrize("case", CASES)
def test_against_jax(case):
    check(CASES, case)


def test_an_algorithm_is_the_preset_that_it_describes():
    bf16 = ml_dtypes.bfloat16
    for algorithm, name in [
        (lax.DotAlgorithm(np.float32, "float32", np.float32), "F32_F32_F32"),
        (lax.DotAlgorithm(bf16, "bfloat16", np.float32, 1, 1, 6), "BF16_BF16_F32_X6"),
        (lax.DotAlgorithm(np.float16, np.float16, np.float16), "F16_F16_F16"),
    ]:
        program = weft.make_jaxpr(lambda x, y, a=algorithm: lax.dot(x, y, precision=a))(X, Y)
        assert program.eqns[0].params["precision"] == name


def test_derivatives_and_vmap_keep_the_algorithm():
    programs = [
        weft.make_jaxpr(weft.grad(lambda x, y: product(x, y).sum(), (0, 1)))(X, Y),
        weft.make_jaxpr(lambda x, y: weft.jvp(product, (x, y), (x, y)))(X, Y),
        weft.make_jaxpr(weft.vmap(product))(X[None], Y[None]),
    ]
    for program in programs:
        products = [eqn for eqn in program.eqns if eqn.primitive.name == "dot_general"]
        assert {eqn.params["precision"] for eqn in products} == {"BF16_BF16_F32_X3"}
    slope = weft.jit(weft.grad(lambda x, y: wnp.sin(product(x, y)).sum()))(X / 8, Y)
    np.testing.assert_allclose(slope, np.full((3, 4), 2 * np.cos(0.5)), rtol=1e-6)


@pytest.mark.parametrize("preset", Preset)
def test_every_preset_is_valid_stablehlo(preset):
    dtype = "float8_e5m2" if "F8" in preset.name else "float32"
    x, y = X.astype(dtype), Y.astype(dtype)
    f = lambda x, y: lax.dot(x, y, precision=preset, preferred_element_type="float32")
    graph = weft.jit(f).trace(x, y).graph
    program = compiler.emit_stablehlo(graph, platform="cuda")
    mlir.verify_module(program)
    assert ("algorithm = <" in program) == (preset is not Preset.DEFAULT)
    assert compiler.parse(str(graph)).structural_hash == graph.structural_hash
    if preset.name in ON_CPU:
        np.testing.assert_array_equal(f(x, y), np.full((3, 2), 4, "f4"))
    else:
        with pytest.raises(NotImplementedRuleError, match=f"cpu has: .*; got {preset}\\n  at "):
            f(x, y)


def test_mistakes():
    with pytest.raises(AttributeValueError, match="some platform has: .*TF32_TF32_F32"):
        lax.dot(X, Y, precision=lax.DotAlgorithm("bfloat16", "bfloat16", np.float32, 2))
    with pytest.raises(DTypeError, match="real dtypes for precision F32_F32_F32; got .*c64"):
        lax.dot(X + 0j, Y, precision="F32_F32_F32")
    with pytest.raises(DTypeError, match="float8 dtypes for precision ANY_F8_ANY_F8_F32"):
        lax.dot(X, Y, precision="ANY_F8_ANY_F8_F32")
    with pytest.raises(AttributeValueError, match="None or an algorithm .*got f32_f32_f32"):
        numbers = (((1,), (0,)), ((), ()))
        weft._core.bind("dot_general", X, Y, dimension_numbers=numbers, precision="f32_f32_f32")
