"""Normal vectors of any covariance, and orthogonal matrices."""

from weft import _core, numpy as jnp
from weft._arguments import ndim_of, shape_of, static_int, static_shape
from weft._jit import composite
from weft.dtypes import default_float, is_complex, is_float, real_dtype, requested_dtype
from weft.errors import AttributeValueError, NotImplementedRuleError, ShapeError
from weft.lax._shape import common_shape
from weft.lax._sharding import can_be_split
from weft.random._continuous import normal
from weft.random._keys import checked_key
from weft.random._parameters import float_dtype, shapes_in

_METHODS = ("cholesky", "eigh", "svd")


@can_be_split
def multivariate_normal(
    key, mean, cov, shape=None, dtype=None, method="cholesky", *, out_sharding=None
):
    """Vectors of the normal distribution with a mean and a covariance matrix.

    p(x) ~ exp(-(x - mean) @ inv(cov) @ (x - mean) / 2). Made of independent normal numbers z as
    mean + A @ z, where A @ A.T = cov.

    Args:
      key: a key.
      mean: the means, of shape (..., n).
      cov: the covariance matrices, symmetric and positive definite (semidefinite with "eigh" and
        "svd"), of shape (..., n, n).
      shape: shape of the result without its last axis, to which those of the parameters broadcast;
        None for the shape that they broadcast to.
      dtype: a float dtype, which is promoted with those of the parameters; None for theirs.
      method: how `cov` is factored: "cholesky", which is fastest, "eigh" or "svd".
      out_sharding: None, or how the result is split, a PartitionSpec or NamedSharding.

    Returns:
      Array of shape (*shape, n).

    Raises AttributeValueError (a ValueError) for another method, ShapeError for a mean without axes
    or a covariance that does not fit it.

    Examples:
      >>> mean, cov = wnp.zeros(2), wnp.array([[1.0, 0.5], [0.5, 1.0]])
      >>> x = weft.random.multivariate_normal(weft.random.key(0), mean, cov, (10000,))
      >>> wnp.allclose(wnp.cov(x.T), cov, atol=0.05)
      Array(True, dtype=bool)
    """
    name = "multivariate_normal"
    key = checked_key(key, name)
    if dtype is None:
        dtype = _core.promote_dtypes_inexact(mean, cov)[0].dtype
    dtype = float_dtype(dtype, name)
    if method not in _METHODS:
        raise AttributeValueError(
            f"[{name}] expected a method of {', '.join(_METHODS)}; got {method!r}"
        )
    if ndim_of(mean) < 1:
        raise ShapeError(f"[{name}] expected mean to have an axis; got a number")
    (*rows, n), own = shape_of(mean), shape_of(cov)
    if own[-2:] != (n, n):
        raise ShapeError(
            f"[{name}] expected cov of shape (..., {n}, {n}), since mean has {n} elements; "
            f"got {own}"
        )
    shapes = [tuple(rows), own[:-2]]
    shape = common_shape(shapes, name) if shape is None else static_shape(shape, name)
    shapes_in(shape, shapes, name)
    return _multivariate_normal(key, mean, cov, shape=(*shape, n), dtype=dtype, method=method)


@composite(static_argnames=("shape", "dtype", "method"))
def _multivariate_normal(key, mean, cov, *, shape, dtype, method):
    mean, cov = _core.promote_dtypes_inexact(mean, cov)
    if method == "cholesky":
        factor = jnp.linalg.cholesky(cov)
    elif method == "eigh":
        values, vectors = jnp.linalg.eigh(cov)
        factor = vectors * jnp.sqrt(values[..., None, :])
    else:
        vectors, values, _ = jnp.linalg.svd(cov)
        factor = vectors * jnp.sqrt(values[..., None, :])
    return mean + jnp.einsum("...ij,...j->...i", factor, normal(key, shape, dtype))


@can_be_split
def orthogonal(key, n, shape=(), dtype=None, m=None, *, out_sharding=None):
    """Orthogonal (of complex dtypes unitary) matrices, evenly distributed.

    Made of matrices of normal numbers by QR decomposition, whose signs are then made unique
    (Mezzadri, "How to generate random matrices from the classical compact groups", 2007).

    Args:
      key: a key.
      n: number of rows.
      shape: shape of the result without its last two axes.
      dtype: a float or complex dtype.
      m: number of columns; None for `n`. The columns are orthonormal if there are at most as many
        as rows, else the rows are.
      out_sharding: None, or how the result is split, a PartitionSpec or NamedSharding.

    Returns:
      Array of shape (*shape, n, m).

    Raises AttributeValueError (a ValueError) for a dtype that is neither float nor complex.

    Examples:
      >>> q = weft.random.orthogonal(weft.random.key(0), 3)
      >>> wnp.allclose(q @ q.T, wnp.eye(3), atol=1e-5)
      Array(True, dtype=bool)
    """
    key = checked_key(key, "orthogonal")
    dtype = default_float() if dtype is None else requested_dtype(dtype, "orthogonal")
    if not (is_float(dtype) or is_complex(dtype)):
        raise AttributeValueError(f"[orthogonal] expected a float or complex dtype; got {dtype}")
    if real_dtype(dtype).itemsize < 4:
        raise NotImplementedRuleError(
            f"[orthogonal] expected a dtype of at least 32 bits, as QR decomposition needs; got "
            f"{dtype}\n  Draw in float32 and convert the result."
        )
    n = static_int(n, "orthogonal", "n")
    m = n if m is None else static_int(m, "orthogonal", "m")
    shape = static_shape((*static_shape(shape, "orthogonal"), n, m), "orthogonal")
    return _orthogonal(key, shape=shape, dtype=dtype)


@composite(static_argnames=("shape", "dtype"))
def _orthogonal(key, *, shape, dtype):
    *rest, n, m = shape
    q, r = jnp.linalg.qr(normal(key, (*rest, max(n, m), min(n, m)), dtype))
    q = q * jnp.sign(jnp.diagonal(r, 0, -2, -1))[..., None, :]
    return q.mT if n < m else q
