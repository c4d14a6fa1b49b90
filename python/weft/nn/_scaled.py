"""Products of matrices of few bits whose blocks have scales (the microscaling formats of OCP)."""

import dataclasses
import math
from typing import Any

import numpy as np

from weft import _core, lax, numpy as jnp
from weft._arguments import normalize_axes, shape_of
from weft._custom_rules import custom_vjp
from weft._jit import composite
from weft.dtypes import dtype_of, finfo, requested_dtype
from weft.errors import AttributeValueError, DTypeError, ShapeError


def scaled_matmul(lhs, rhs, lhs_scales, rhs_scales, preferred_element_type=np.float32):
    """Products of batches of rows, whose blocks of elements are multiplied with scales first.

    Args:
      lhs: array `[B, M, K]`.
      rhs: array `[B, N, K]`.
      lhs_scales: array `[B, M, K / b]`, a factor for each `b` elements of a row.
      rhs_scales: array `[B, N, K / b]`.
      preferred_element_type: dtype of the result.

    Returns:
      Array `[B, M, N]`. Factors and sums are float32.

    Raises:
      ShapeError (a ValueError): for shapes that do not fit.

    Examples:
      >>> lhs, rhs = wnp.ones((1, 1, 4)), wnp.ones((1, 2, 4))
      >>> scales = wnp.array([[[1.0, 10.0]]])  # of two blocks of lhs
      >>> weft.nn.scaled_matmul(lhs, rhs, scales, wnp.ones((1, 2, 2)))
      Array([[[22., 22.]]], dtype=float32)
    """
    function = "scaled_matmul"
    if preferred_element_type is None:
        raise AttributeValueError(f"[{function}] expected preferred_element_type to be a dtype")
    dtype = requested_dtype(preferred_element_type, function)
    shapes = [shape_of(x) for x in (lhs, rhs, lhs_scales, rhs_scales)]
    if any(len(shape) != 3 for shape in shapes):
        raise ShapeError(f"[{function}] expected arrays with three axes; got shapes {shapes}")
    a, b, a_scales, b_scales = shapes
    fits = (
        (a[0], a[2]) == (b[0], b[2])
        and a[:2] == a_scales[:2]
        and b[:2] == b_scales[:2]
        and a_scales[2] == b_scales[2]
        and a_scales[2] > 0
        and a[2] % a_scales[2] == 0
    )
    if not fits:
        raise ShapeError(
            f"[{function}] expected lhs (B, M, K), rhs (B, N, K), scales (B, M, k) and (B, N, k), "
            f"where k divides K; got shapes {a}, {b}, {a_scales} and {b_scales}"
        )
    return _scaled_matmul(lhs, rhs, lhs_scales, rhs_scales, dtype=dtype)


@composite(static_argnames=("dtype",))
def _scaled_matmul(lhs, rhs, lhs_scales, rhs_scales, *, dtype):
    def scaled(x, scales):
        size = x.shape[2] // scales.shape[2]
        blocks = lax.reshape(x.astype(np.float32), (*scales.shape, size))
        return lax.reshape(blocks * scales.astype(np.float32)[..., None], x.shape)

    product = jnp.einsum(
        "bmk,bnk->bmn",
        scaled(lhs, lhs_scales),
        scaled(rhs, rhs_scales),
        preferred_element_type=np.float32,
    )
    return product.astype(dtype)


@dataclasses.dataclass
class BlockScaleConfig:
    """How `scaled_dot_general` rounds an operand.

    Attributes:
      mode: "mxfp8" or "nvfp4".
      block_size: how many elements of the contracted axis share a scale.
      data_type: dtype of the elements.
      scale_type: dtype of the scales.
      global_scale: factor of all scales, a number or an array of one; None for 1.
      infer_only: has no effect.
    """

    mode: str
    block_size: int
    data_type: Any
    scale_type: Any
    global_scale: Any
    infer_only: bool = False


def get_scaled_dot_general_config(mode, global_scale=None):
    """How to round an operand of `scaled_dot_general`.

    Args:
      mode: "mxfp8": float8_e4m3fn, with a power of two for each 32 elements; or "nvfp4":
        float4_e2m1fn, with a float8_e4m3fn scale for each 16.
      global_scale: for "nvfp4" a factor of all scales, an array of one; None for 1. Ignored for
        "mxfp8".

    Raises AttributeValueError (a ValueError) for another mode.

    Examples:
      >>> weft.nn.get_scaled_dot_general_config("mxfp8").block_size
      32
    """
    if mode == "mxfp8":
        return BlockScaleConfig(mode, 32, jnp.float8_e4m3fn, jnp.float8_e8m0fnu, None)
    if mode != "nvfp4":
        raise AttributeValueError(
            f"[get_scaled_dot_general_config] expected mode 'mxfp8' or 'nvfp4'; got {mode!r}"
        )
    if global_scale is None:
        global_scale = jnp.ones((1,), np.float32)
    return BlockScaleConfig(mode, 16, jnp.float4_e2m1fn, jnp.float8_e4m3fn, global_scale)


def _power_of_two_above(x):
    """The exponents (biased by 127, uint8) of the least powers of two that are not below x >= 0.

    They start at 2**-127, which as a float32 is half of the smallest normal number.
    """
    bits = lax.bitcast_convert_type(x, np.uint32)
    above = jnp.minimum((bits + np.uint32(0x7FFFFF)) >> np.uint32(23), np.uint32(254))
    return jnp.where(bits <= np.uint32(0x400000), np.uint32(0), above).astype(np.uint8)


def _rounded(x, config):
    """An array `[B, M, K]` as elements and their scales, `[B, M, K / block_size]`."""
    size = config.block_size
    if x.shape[2] % size:
        raise ShapeError(
            f"[scaled_dot_general] expected the contracted axes to have a multiple of {size} "
            f"elements for {config.mode}, also in derivatives; got {x.shape[2]}"
        )
    blocks = lax.reshape(x.astype(np.float32), (*x.shape[:2], x.shape[2] // size, size))
    if config.global_scale is not None:
        blocks = blocks / config.global_scale
    limit = float(finfo(config.data_type).max)
    needed = jnp.max(jnp.abs(blocks), axis=3, keepdims=True) / limit
    if config.mode == "mxfp8":
        exponents = _power_of_two_above(needed)
        scales = lax.bitcast_convert_type(exponents, config.scale_type)
        factors = jnp.ldexp(np.float32(1), exponents.astype(np.int32) - 127)
    else:
        scales = jnp.clip(needed, 0, float(finfo(config.scale_type).max)).astype(config.scale_type)
        factors = scales.astype(np.float32)
    elements = jnp.clip(blocks / factors, -limit, limit).astype(config.data_type)
    return lax.reshape(elements, x.shape), scales[..., 0]


def _product(lhs, rhs, configs, dtype):
    """`[B, M, N]` from `[B, M, K]` and `[B, N, K]`, both rounded."""
    (a, a_scales), (b, b_scales) = map(_rounded, (lhs, rhs), configs)
    result = scaled_matmul(a, b, a_scales, b_scales, dtype)
    for config in configs:
        if config.global_scale is not None:
            result = (result * config.global_scale).astype(dtype)
    return result


def scaled_dot_general(
    lhs,
    rhs,
    dimension_numbers,
    preferred_element_type=np.float32,
    configs=None,
    implementation=None,
):
    """`weft.lax.dot_general` of operands that are rounded to few bits, with scales for blocks.

    Args:
      lhs, rhs: arrays.
      dimension_numbers: as for `weft.lax.dot_general`.
      preferred_element_type: float32, bfloat16 or float16: dtype of the result.
      configs: how to round: three of what `get_scaled_dot_general_config` returns, for lhs, rhs and
        the cotangent of the result. None for `dot_general` as it is.
      implementation: accepted for compatibility; has no effect.

    Returns:
      Array with the batch axes, the other axes of lhs, and those of rhs. Its derivative takes the
      rounding for the identity, and rounds operands and cotangents in its own products.

    Raises:
      ShapeError (a ValueError): for a contracted axis that is no multiple of the size of blocks.

    Examples:
      >>> config = weft.nn.get_scaled_dot_general_config("mxfp8")
      >>> numbers, x = (([2], [2]), ([0], [0])), wnp.ones((1, 2, 32))
      >>> weft.nn.scaled_dot_general(x, x, numbers, configs=[config] * 3)
      Array([[[32., 32.],
              [32., 32.]]], dtype=float32)
    """
    function = "scaled_dot_general"
    dtype = requested_dtype(preferred_element_type, function)
    if dtype.name not in ("float32", "bfloat16", "float16"):
        raise DTypeError(
            f"[{function}] expected preferred_element_type float32, bfloat16 or float16; got "
            f"{dtype}"
        )
    if configs is None:
        return lax.dot_general(lhs, rhs, dimension_numbers, preferred_element_type=dtype)
    if len(configs) != 3:
        raise AttributeValueError(
            f"[{function}] expected three configs, for lhs, rhs and the cotangent; got "
            f"{len(configs)}"
        )
    contracted, batch = (tuple(map(tuple, pair)) for pair in dimension_numbers)
    sides = [
        _as_rows(_core.asarray(x), contracted[i], batch[i], function)
        for i, x in enumerate((lhs, rhs))
    ]
    (rows, outer), (columns, inner) = sides
    if (rows.shape[0], rows.shape[2]) != (columns.shape[0], columns.shape[2]):
        raise ShapeError(
            f"[{function}] expected axes of equal sizes in dimension_numbers {dimension_numbers}; "
            f"got shapes {shape_of(lhs)} and {shape_of(rhs)}"
        )
    leading = tuple(shape_of(lhs)[axis] for axis in batch[0])
    product = _differentiable_product(rows, columns, configs, dtype)
    return lax.reshape(product, leading + outer + inner)


def _as_rows(x, contracted, batch, function):
    """An operand as `[batch, others, contracted]`, and the sizes of its other axes."""
    rank = x.ndim
    contracted, batch = (normalize_axes(axes, rank, function) for axes in (contracted, batch))
    others = [axis for axis in range(rank) if axis not in contracted + batch]
    x = lax.transpose(x, (*batch, *others, *contracted))
    sizes = x.shape
    b, o = len(batch), len(batch) + len(others)
    shape = tuple(math.prod(part) for part in (sizes[:b], sizes[b:o], sizes[o:]))
    return lax.reshape(x, shape), tuple(sizes[b:o])


def _differentiable_product(lhs, rhs, configs, dtype):
    of_lhs, of_rhs, of_cotangent = configs

    @custom_vjp
    def product(lhs, rhs):
        return _product(lhs, rhs, (of_lhs, of_rhs), dtype)

    def forward(lhs, rhs):
        return product(lhs, rhs), (lhs, rhs)

    def backward(operands, cotangent):
        lhs, rhs = operands
        by_column = lax.transpose(cotangent, (0, 2, 1))
        lhs_rows, rhs_rows = (lax.transpose(x, (0, 2, 1)) for x in (lhs, rhs))
        return (
            _product(cotangent, rhs_rows, (of_cotangent, of_rhs), dtype_of(lhs)),
            _product(by_column, lhs_rows, (of_cotangent, of_lhs), dtype_of(rhs)),
        )

    product.defvjp(forward, backward)
    return product(lhs, rhs)
