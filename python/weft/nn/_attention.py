"""Scaled dot-product attention."""

import math
from typing import Any

import numpy as np

from weft import _core, lax, numpy as jnp
from weft._arguments import shape_of, static_int
from weft._jit import composite
from weft.dtypes import dtype_of, finfo, real_dtype
from weft.errors import AttributeValueError, NotImplementedRuleError, PreconditionError, ShapeError
from weft.nn._normalized import logsumexp, softmax

_FUNCTION = "dot_product_attention"


def dot_product_attention(
    query,
    key,
    value,
    bias=None,
    mask=None,
    *,
    scale=None,
    is_causal=False,
    query_seq_lengths=None,
    key_value_seq_lengths=None,
    local_window_size=None,
    implementation=None,
    return_residual=False,
):
    """softmax(scale * query @ key.T + bias) @ value for each head (Vaswani et al., 2017).

    B is the size of the batch, T the number of queries, S that of keys, N that of heads, H their
    size. K heads of keys and values serve N // K heads of queries each: one for multi-query
    attention, several for grouped queries (Ainslie et al., 2023).

    Args:
      query: array `[B, T, N, H]`, or `[T, N, H]`.
      key: array `[B, S, K, H]`, or `[S, K, H]`, of the same dtype; N is a multiple of K.
      value: array of the shape and dtype of `key`.
      bias: array that broadcasts to `[B, N, T, S]`, added to the logits.
      mask: array of booleans that broadcasts to `[B, N, T, S]`: where it is False, no attention.
      scale: factor of the logits, a number; None for 1 / sqrt(H).
      is_causal: whether a query attends only to keys that do not stand after it.
      query_seq_lengths: int32 array `[B]`: how many queries there are; the others give zeros.
      key_value_seq_lengths: int32 array `[B]`: how many keys there are; the others are left out.
      local_window_size: (l, r): a query at i attends only to keys from i - l to i + r. One number
        stands for both.
      implementation: None or "xla", which are the same; "cudnn" raises NotImplementedError.
      return_residual: whether to return the logarithms of the sums of exp(logits) as well.

    Returns:
      Array of the shape of `query` and the dtype of `value`; with `return_residual` a pair of it
      and an array `[B, T, N]` (or `[T, N]`). Logits and softmax are float32 at least. Where a query
      has no key to attend to, all weigh the same.

    Raises:
      ShapeError (a ValueError): for shapes that do not fit.
      AttributeValueError (a ValueError): for dtypes that differ, or other options.

    Examples:
      >>> query, keys = wnp.ones((8, 2, 4)), wnp.ones((10, 2, 4))  # tokens, heads, features
      >>> weft.nn.dot_product_attention(query, keys, keys).shape
      (8, 2, 4)
    """
    if implementation == "cudnn":
        raise NotImplementedRuleError(
            f"[{_FUNCTION}] expected implementation None or 'xla': weft has no kernels of cuDNN"
        )
    if implementation not in (None, "xla"):
        raise AttributeValueError(
            f"[{_FUNCTION}] expected implementation None, 'xla' or 'cudnn'; got {implementation!r}"
        )
    query, key, value = map(jnp.asarray, (query, key, value))
    shape = shape_of(query)
    query, key, value, bias, mask = (
        x if x is None else _with_rank_4(jnp.asarray(x)) for x in (query, key, value, bias, mask)
    )
    _check(query, key, value, bias, mask)
    lengths = [
        _checked_lengths(name, x, shape_of(query)[0])
        for name, x in (
            ("query_seq_lengths", query_seq_lengths),
            ("key_value_seq_lengths", key_value_seq_lengths),
        )
    ]
    result, residual = _attention(
        query,
        key,
        value,
        bias,
        mask,
        *lengths,
        scale=1 / math.sqrt(shape_of(query)[3]) if scale is None else float(scale),
        is_causal=bool(is_causal),
        window=_window(local_window_size),
        with_residual=bool(return_residual),
    )
    result = lax.reshape(result, shape)
    return (result, lax.reshape(residual, shape[:-1])) if return_residual else result


def _with_rank_4(x):
    rank = len(shape_of(x))
    if rank > 4:
        raise ShapeError(f"[{_FUNCTION}] expected at most 4 axes; got shape {shape_of(x)}")
    return lax.expand_dims(x, range(4 - rank))


def _check(query, key, value, bias, mask):
    batch, queries, heads, size = shape_of(query)
    keys, groups = shape_of(key)[1:3]
    for name, x, expected in (
        ("key", key, (batch, keys, groups, size)),
        ("value", value, (batch, keys, groups, size)),
    ):
        if shape_of(x) != expected:
            raise ShapeError(
                f"[{_FUNCTION}] expected {name} of shape {expected}, for a query of shape "
                f"{shape_of(query)} and a key of shape {shape_of(key)}; got {shape_of(x)}"
            )
        if dtype_of(x) != dtype_of(query):
            raise AttributeValueError(
                f"[{_FUNCTION}] expected {name} of the query's dtype {dtype_of(query)}; got "
                f"{dtype_of(x)}"
            )
    if groups == 0 or heads % groups:
        raise ShapeError(
            f"[{_FUNCTION}] expected a number of heads of queries that is a multiple of the "
            f"number of heads of keys; got {heads} and {groups}"
        )
    if mask is not None and dtype_of(mask) != np.bool_:
        raise AttributeValueError(
            f"[{_FUNCTION}] expected a mask of booleans; got dtype {dtype_of(mask)}"
        )
    whole = (batch, heads, queries, keys)
    for name, x in (("bias", bias), ("mask", mask)):
        if x is not None and any(n not in (1, m) for n, m in zip(shape_of(x), whole, strict=True)):
            raise PreconditionError(
                f"[{_FUNCTION}] expected a {name} that broadcasts to {whole}; got shape "
                f"{shape_of(x)}"
            )


def _checked_lengths(name, lengths, batch):
    if lengths is None:
        return None
    lengths = jnp.asarray(lengths)
    if shape_of(lengths) != (batch,):
        raise ShapeError(
            f"[{_FUNCTION}] expected {name} of shape {(batch,)}; got {shape_of(lengths)}"
        )
    if dtype_of(lengths) != np.int32:
        raise AttributeValueError(
            f"[{_FUNCTION}] expected {name} of dtype int32; got {dtype_of(lengths)}"
        )
    return lengths


def _window(size):
    """The numbers of places to the left and to the right, or None."""
    if size is None:
        return None
    sides = tuple(size) if isinstance(size, (tuple, list)) else (size, size)
    if len(sides) != 2:
        raise AttributeValueError(
            f"[{_FUNCTION}] expected local_window_size to be a number or a pair; got {size!r}"
        )
    return tuple(static_int(side, _FUNCTION, "local_window_size") for side in sides)


def _by_group(x, groups):
    """`[B, N, T, S]`, where N may be 1, as `[B, K, N // K, T, S]`."""
    batch, heads, queries, keys = shape_of(x)
    split = (1, 1) if heads == 1 else (groups, heads // groups)
    return lax.reshape(x, (batch, *split, queries, keys))


@composite(static_argnames=("scale", "is_causal", "window", "with_residual"))
def _attention(
    query,
    key,
    value,
    bias,
    mask,
    query_lengths,
    key_lengths,
    *,
    scale,
    is_causal,
    window,
    with_residual,
) -> Any:
    batch, queries, heads, size = query.shape
    keys, groups = key.shape[1:3]
    query = lax.reshape(query, (batch, queries, groups, heads // groups, size))
    wide = _core.result_type(query, _core.astype(0, "float32"))[0]
    # The sums of products of 16-bit floats are kept in 32 bits.
    precise = "BF16_BF16_F32" if query.dtype.name == "bfloat16" else None
    logits = jnp.einsum(
        "btkgh,bskh->bkgts", query, key, precision=precise, preferred_element_type=wide
    )
    logits = logits * _core.astype(scale, wide)
    if bias is not None:
        logits = (logits + _by_group(bias, groups)).astype(wide)
    seen = _seen(batch, queries, keys, query_lengths, key_lengths, is_causal, window)
    if mask is not None:
        seen.append(_by_group(mask, groups))
    if seen:
        lowest = -0.7 * float(finfo(real_dtype(wide)).max)
        allowed = seen[0]
        for each in seen[1:]:
            allowed = allowed & each
        logits = jnp.where(allowed, logits, _core.astype(lowest, wide))
    weights = softmax(logits).astype(key.dtype)
    result = jnp.einsum("bkgts,bskh->btkgh", weights, value, preferred_element_type=value.dtype)
    result = lax.reshape(result, (batch, queries, heads, size))
    if query_lengths is not None:
        result = result * _within(query_lengths, queries)[:, :, None, None].astype(result.dtype)
    if not with_residual:
        return result, None
    sums = lax.stop_gradient(logsumexp(logits, axis=-1)).astype(key.dtype)
    return result, lax.reshape(jnp.moveaxis(sums, 3, 1), (batch, queries, heads))


def _within(lengths, count):
    """`[B, count]`: which places lie within the lengths."""
    places = lax.broadcasted_iota(np.int32, (1, count), 1)
    return places < lengths[:, None]


def _seen(batch, queries, keys, query_lengths, key_lengths, is_causal, window):
    """Masks, each of which broadcasts to `[B, K, N // K, T, S]`."""
    masks = []
    shape = (1, 1, 1, queries, keys)
    i, j = (lax.broadcasted_iota(np.int32, shape, axis) for axis in (3, 4))
    if is_causal:
        masks.append(j <= i)
    if window is not None:
        left, right = window
        masks.append((j >= i - left) & (j <= i + right))
    if query_lengths is not None:
        masks.append(_within(query_lengths, queries)[:, None, None, :, None])
    if key_lengths is not None:
        masks.append(_within(key_lengths, keys)[:, None, None, None, :])
    return masks
