"""The operations that functions of `weft.numpy` are made of: users read them in printed programs.

Each line is an expression in the operands of `oracle.py` and the names of its operations.
"""

import pytest
from oracle import lines, operands

CASES = lines(
    """
    jnp.sin(x) -> sin
    jnp.sum(x) -> reduce_sum
    jnp.sum(x, axis=1, keepdims=True) -> reduce_sum broadcast_in_dim
    jnp.sum(h) -> convert_element_type reduce_sum convert_element_type
    jnp.sum(b) -> convert_element_type reduce_sum
    jnp.mean(x, axis=0) -> reduce_sum div
    jnp.max(x) -> reduce_max
    jnp.any(x) -> ne reduce_or
    jnp.argmax(x, 1) -> argmax
    jnp.argmax(x) -> reshape argmax
    x**2 -> integer_pow
    jnp.square(x) -> square
    x**2.0 -> pow
    x**x -> pow
    k / 2 -> convert_element_type div
    jnp.where(x > 2, x, 0.0) -> gt broadcast_in_dim select_n
    jnp.where(x > 2, x, -x) -> gt neg select_n
    jnp.clip(x, 0.0, 1.0) -> max min
    jnp.maximum(x, 0.0) -> max
    jnp.isnan(x) -> ne
    jnp.log10(x) -> log mul
    jnp.matmul(x, x.T) -> transpose dot_general
    jnp.dot(x, x[0]) -> slice squeeze dot_general
    jnp.einsum("ij,kj->ik", x, x) -> dot_general
    jnp.einsum("ij->ji", x) -> transpose
    jnp.einsum("ij->", x) -> reduce_sum
    jnp.einsum("...ij,jk->...ik", u, x.T) -> transpose dot_general
    jnp.tensordot(u, x, ((0, 2), (0, 1))) -> dot_general
    jnp.outer(i8, i8) -> broadcast_in_dim broadcast_in_dim broadcast_in_dim broadcast_in_dim mul
    jnp.reshape(x, (3, 2)) -> reshape
    jnp.reshape(x, (2, 3)) ->
    jnp.transpose(x, (0, 1)) ->
    jnp.concatenate([x, x]) -> concatenate
    jnp.stack([i8, i8]) -> broadcast_in_dim broadcast_in_dim concatenate
    jnp.split(x, 3, axis=1) -> split
    jnp.flip(x, 0) -> rev
    jnp.roll(x, 1, axis=1) -> slice slice concatenate
    jnp.pad(x, 1, constant_values=w) -> pad
    jnp.full((2, 3), 2.0) + x -> broadcast_in_dim add
    jnp.arange(3) + i8 -> iota convert_element_type add
    jnp.arange(1, 4) -> iota add
    x[0] -> slice squeeze
    x[:, None] -> broadcast_in_dim
    x + 1 -> add
    x + x[0] -> slice squeeze broadcast_in_dim add
    x.astype("int32") -> convert_element_type
    x.astype("float32") ->
    """
)


@pytest.mark.parametrize("case", CASES)
def test_operations(case):
    import weft

    expression, _, expected = case.rpartition("->")
    if not expected and not expression:
        expression, expected = case.removesuffix("->"), ""
    names, arrays = operands()
    arrays = {name: x for name, x in arrays.items() if isinstance(x, weft.Array)}
    traced = weft.make_jaxpr(lambda arrays: eval(expression.strip(), {**names, **arrays}))(arrays)
    assert traced.graph.op_names() == expected.split(), str(traced)
