"""Products over groups of different sizes, and of scaled operands: against jax, derivatives,
mistakes."""

import numpy as np
import pytest
from oracle import check, lines, needs_jax

import weft
from weft import lax, numpy as wnp
from weft.errors import AttributeValueError, DTypeError, NotImplementedRuleError, ShapeError

ROWS = "jnp.sin(jnp.arange(6*3.)).reshape(6,3)"
GROUPS = "jnp.cos(jnp.arange(4*3*2.)).reshape(4,3,2)"
LHS = "jnp.sin(jnp.arange(2*5*3.)).reshape(2,5,3)"
RHS = "jnp.cos(jnp.arange(2*3*4.)).reshape(2,3,4)"
DIMS = "lax.RaggedDotDimensionNumbers"
BATCHED = "((2,),(1,)),((0,),(0,))"
SCALED = "(jnp.arange(2*4*8)%7).reshape(2,4,8).astype('float8_e4m3fn')"
CASES = lines(
    f"""
    lax.ragged_dot({ROWS},{GROUPS},jnp.array([2,0,3,1]))
    lax.ragged_dot({ROWS},{GROUPS},jnp.array([1,1,0,1]))
    lax.ragged_dot({ROWS},{GROUPS},jnp.array([1,1,2]))
    lax.ragged_dot({ROWS},{GROUPS},jnp.array([1.,1.,2.,2.]))
    lax.ragged_dot({ROWS}.astype("bfloat16"),{GROUPS}.astype("bfloat16"),jnp.array([2,0,3,1]),preferred_element_type="float32")
    lax.ragged_dot_general({ROWS},{GROUPS},jnp.array([2,0,3,1]),{DIMS}((((1,),(1,)),((),())),[0],[0]))
    lax.ragged_dot_general({LHS},jnp.stack([{RHS},2*{RHS}]),jnp.array([2,3]),{DIMS}((((2,),(2,)),((0,),(1,))),[1],[0]))
    lax.ragged_dot_general({LHS},jnp.stack([{RHS},2*{RHS}]),jnp.array([[2,3],[1,4]]),{DIMS}((((2,),(2,)),((0,),(1,))),[1],[0]))
    lax.ragged_dot_general({LHS},{RHS},jnp.array([1,2]),{DIMS}(({BATCHED}),[2],[]))
    lax.ragged_dot_general({LHS},{RHS},jnp.array([[1,2],[2,1]]),{DIMS}(({BATCHED}),[2],[]))
    lax.ragged_dot_general({LHS},{RHS},jnp.array([1,1]),{DIMS}(({BATCHED}),[0],[]))
    lax.ragged_dot_general({LHS},{RHS},jnp.array([1,1]),{DIMS}(({BATCHED}),[2],[0]))
    lax.ragged_dot_general({LHS},{RHS},jnp.array([1,1]),{DIMS}(({BATCHED}),[2,1],[]))
    lax.ragged_dot_general({LHS},{RHS},jnp.array([1,1]),{DIMS}(({BATCHED}),[7],[]))
    lax.scaled_dot({SCALED},{SCALED}.swapaxes(1,2),preferred_element_type="float32")
    lax.scaled_dot({SCALED},{SCALED}.swapaxes(1,2),lhs_scale=jnp.ones((2,4,2))*3,rhs_scale=jnp.ones((2,4,4))*.5,preferred_element_type="float32")
    lax.scaled_dot({SCALED},{SCALED}.swapaxes(1,2),lhs_scale=jnp.ones((2,4,3)))
    lax.dot_general(x,x.T,(((1,),(0,)),((),())),out_sharding=None)
    lax.dot(x,x.T,out_sharding=None)
    """
)


@needs_jax
@pytest.mark.oracle
@pytest.mark.parametrize("expression", CASES)
def test_as_jax(expression):
    check(CASES, expression)


LEFT = np.sin(np.arange(18.0, dtype=np.float32)).reshape(6, 3)
RIGHT = np.cos(np.arange(24.0, dtype=np.float32)).reshape(4, 3, 2)
SIZES = np.array([2, 0, 3, 1], np.int32)


def by_groups(x, w):
    return np.concatenate([x[:2] @ w[0], x[2:5] @ w[2], x[5:] @ w[3]])


def test_ragged_dot_is_differentiated_and_mapped():
    y, pull = weft.vjp(lambda x, w: lax.ragged_dot(x, w, SIZES), LEFT, RIGHT)
    np.testing.assert_allclose(y, by_groups(LEFT, RIGHT), rtol=1e-5)
    ct = np.ones_like(y)
    x_ct, w_ct = pull(ct)
    np.testing.assert_allclose(x_ct[2:5], ct[2:5] @ RIGHT[2].T, rtol=1e-5)
    np.testing.assert_allclose(w_ct[2], LEFT[2:5].T @ ct[2:5], rtol=1e-5)
    assert not np.any(w_ct[1])
    mapped = weft.vmap(lambda x, n: lax.ragged_dot(x, RIGHT, n))(
        np.stack([LEFT, 2 * LEFT]), np.stack([SIZES, SIZES])
    )
    np.testing.assert_allclose(mapped[1], 2 * by_groups(LEFT, RIGHT), rtol=1e-5)


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda: lax.ragged_dot(LEFT, RIGHT[0], SIZES), ShapeError, "g, k, n"),
        (lambda: lax.ragged_dot(LEFT, RIGHT, SIZES[:3]), ShapeError, "number of groups"),
        (lambda: lax.ragged_dot(LEFT, RIGHT, SIZES * 1.0), DTypeError, "integer group_sizes"),
        (
            lambda: lax.ragged_dot(LEFT, RIGHT, SIZES, group_offset=SIZES[:1]),
            NotImplementedRuleError,
            "group_offset",
        ),
        (
            lambda: lax.ragged_dot_general(
                LEFT,
                RIGHT,
                SIZES,
                lax.RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), (0,), ()),
            ),
            AttributeValueError,
            "rhs_group_dimensions of one axis",
        ),
        (lambda: lax.scaled_dot(LEFT, LEFT.T, lhs_scale=LEFT), ShapeError, "divisors"),
        (
            lambda: lax.scaled_dot(LEFT, LEFT.T, preferred_element_type="float16"),
            DTypeError,
            "bfloat16 or float32",
        ),
        (lambda: lax.dot(LEFT, LEFT.T, out_sharding=wnp.float32), AttributeValueError, "dot"),
    ],
)
def test_mistakes(call, error, words):
    with pytest.raises(error, match=words) as caught:
        call()
    assert "test_ragged.py" in str(caught.value)
