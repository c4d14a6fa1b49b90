"""Matrices of special form, made of vectors or of their size."""

import math
import operator

import numpy as np

from weft import _core, lax, numpy as jnp
from weft._arguments import ndim_of, shape_of, strong
from weft._jit import composite
from weft.dtypes import default_float, dtype_of, is_complex, requested_dtype
from weft.errors import AttributeValueError, ShapeError

# ---- of vectors


def _vectors(function, **arrays):
    """ShapeError unless all arrays have an axis at least."""
    for name, x in arrays.items():
        if not ndim_of(x):
            raise ShapeError(f"[{function}] expected {name} to have an axis; got a scalar")


def _offsets(rows, columns):
    """The row of each element of a matrix minus its column."""
    shape = (rows, columns)
    return lax.broadcasted_iota("int32", shape, 0) - lax.broadcasted_iota("int32", shape, 1)


@composite
def block_diag(*arrs):
    """The matrix with the given ones along its diagonal, zero elsewhere.

    Args:
      arrs: arrays with at most two axes; vectors are rows.

    Returns:
      Array of the promoted dtype, with all their rows and columns; `[1, 0]` for none.

    Raises ShapeError for more than two axes.

    Examples:
      >>> weft.scipy.linalg.block_diag(wnp.array([[1, 2]]), wnp.array([[3], [4]]))
      Array([[1, 2, 0],
             [0, 0, 3],
             [0, 0, 4]], dtype=int32)
    """
    for x in arrs:
        if ndim_of(x) > 2:
            raise ShapeError(
                f"[block_diag] expected arrays with at most two axes; got shape {shape_of(x)}"
            )
    if not arrs:
        return jnp.zeros((1, 0))
    blocks = [strong(jnp.atleast_2d(x)) for x in _core.promote_dtypes(*arrs)]
    width = sum(shape_of(x)[1] for x in blocks)
    rows, before = [], 0
    for x in blocks:
        count = shape_of(x)[1]
        rows.append(jnp.pad(x, ((0, 0), (before, width - before - count))))
        before += count
    return jnp.concatenate(rows)


@composite
def circulant(c):
    """The matrices whose columns are a vector `c`, rolled by one more place each.

    Args:
      c: array `[..., n]`, or a scalar, which is a vector of one element.

    Returns:
      Array `[..., n, n]` of the type of `c`.

    Examples:
      >>> weft.scipy.linalg.circulant(wnp.array([1, 2, 3]))
      Array([[1, 3, 2],
             [2, 1, 3],
             [3, 2, 1]], dtype=int32)
    """
    c = jnp.atleast_1d(c)
    n = shape_of(c)[-1]
    return c[..., _offsets(n, n) % max(n, 1)]


def companion(a):
    """The companion matrices of polynomials.

    Args:
      a: the coefficients, that of the highest power first: `[..., n]` with n >= 2.

    Returns:
      Array `[..., n - 1, n - 1]` of a floating-point dtype, whose eigenvalues are the zeros.

    Raises ShapeError for fewer than two coefficients.

    Examples:
      >>> weft.scipy.linalg.companion(wnp.array([1, -5, 6]))  # of x**2 - 5 x + 6
      Array([[ 5., -6.],
             [ 1.,  0.]], dtype=float32)
    """
    if not ndim_of(a) or shape_of(a)[-1] < 2:
        raise ShapeError(
            f"[companion] expected at least 2 coefficients along the last axis; got {shape_of(a)}"
        )
    return _companion(a)


@composite
def _companion(a):
    (a,) = _core.promote_dtypes_inexact(a)
    n = shape_of(a)[-1] - 1
    first = (-a[..., 1:] / a[..., :1])[..., None, :]
    below = jnp.eye(n - 1, n, dtype=dtype_of(a))
    return jnp.concatenate([first, jnp.broadcast_to(below, (*shape_of(a)[:-1], n - 1, n))], -2)


def convolution_matrix(a, n, mode="full"):
    """The matrices A for which A @ v is the convolution of `a` with a vector v.

    Args:
      a: array `[..., m]`.
      n: how many elements v has.
      mode: see `weft.numpy.convolve`: "full" for m + n - 1 rows, "same" for max(m, n) in their
        middle, "valid" for max(m, n) - min(m, n) + 1.

    Returns:
      Array `[..., rows, n]` of the dtype of `a`.

    Raises ShapeError for an `a` without elements, AttributeValueError (a ValueError) for another
    mode or an `n` less than 1.

    Examples:
      >>> a, v = wnp.array([1, 10]), wnp.array([1, 2, 3])
      >>> weft.scipy.linalg.convolution_matrix(a, 3) @ v
      Array([ 1, 12, 23, 30], dtype=int32)
    """
    _vectors("convolution_matrix", a=a)
    n = operator.index(n)
    if n < 1:
        raise AttributeValueError(f"[convolution_matrix] expected n of at least 1; got {n}")
    if not shape_of(a)[-1]:
        raise ShapeError(f"[convolution_matrix] expected a with elements; got shape {shape_of(a)}")
    if mode not in ("full", "same", "valid"):
        raise AttributeValueError(
            f"[convolution_matrix] expected mode 'full', 'same' or 'valid'; got {mode!r}"
        )
    return _convolution_matrix(a, n=n, mode=mode)


@composite(static_argnames=("n", "mode"))
def _convolution_matrix(a, *, n, mode):
    m = shape_of(a)[-1]
    count = {"full": m + n - 1, "same": max(m, n), "valid": max(m, n) - min(m, n) + 1}[mode]
    first = (m + n - 1 - count) // 2
    at = _offsets(count, n) + first
    return _elements(a, at)


def _elements(a, at):
    """The elements of vectors at a matrix of positions, zero outside of the vectors."""
    m = shape_of(a)[-1]
    inside = (at >= 0) & (at < m)
    a = _core.asarray(a)
    return jnp.where(inside, a[..., jnp.clip(at, 0, max(m - 1, 0))], jnp.zeros((), dtype_of(a)))


@composite
def fiedler(a):
    """The matrices of the distances of the elements of vectors: |a[i] - a[j]|.

    Args:
      a: array `[..., n]`, or a scalar, which is a vector of one element.

    Returns:
      Array `[..., n, n]`, symmetric and real.

    Examples:
      >>> weft.scipy.linalg.fiedler(wnp.array([1, 4, 9]))
      Array([[0, 3, 8],
             [3, 0, 5],
             [8, 5, 0]], dtype=int32)
    """
    a = jnp.atleast_1d(a)
    return jnp.abs(a[..., :, None] - a[..., None, :])


def fiedler_companion(a):
    """Matrices with five diagonals whose eigenvalues are the zeros of polynomials (Fiedler, 2003).

    Args:
      a: the coefficients, that of the highest power first: `[..., n]` with n >= 1.

    Returns:
      Array `[..., n - 1, n - 1]` of a floating-point dtype.

    Raises ShapeError without coefficients.

    Examples:
      >>> x = weft.scipy.linalg.fiedler_companion(wnp.array([1.0, -6.0, 11.0, -6.0]))
      >>> wnp.sort(wnp.linalg.eigvals(x).real).round(2)  # (x - 1) (x - 2) (x - 3)
      Array([1., 2., 3.], dtype=float32)
    """
    if ndim_of(a) and not shape_of(a)[-1]:
        raise ShapeError(
            f"[fiedler_companion] expected coefficients along the last axis; got {shape_of(a)}"
        )
    return _fiedler_companion(a)


@composite
def _fiedler_companion(a):
    (a,) = _core.promote_dtypes_inexact(jnp.atleast_1d(a))
    n = shape_of(a)[-1] - 1
    if n < 1:
        return jnp.zeros_like(a, shape=(*shape_of(a)[:-1], 0, 0))
    a = -a / a[..., :1]
    # Coefficients lie in each second column from the second on, in pairs below one another, and
    # ones beside them; the first column has a coefficient and a one below it.
    pattern = np.zeros((n, n), int)  # of which coefficient an element is
    ones = np.zeros((n, n), bool)
    pattern[0, 0] = 1
    if n > 1:
        ones[1, 0] = True
        pattern[0, 1] = 2
    for i in range(1, n - 1):
        if i % 2:
            pattern[i + 1, i] = i + 2
            ones[i - 1, i + 1] = True
        else:
            pattern[i, i + 1] = i + 2
            ones[i + 1, i - 1] = True
    return jnp.where(pattern > 0, a[..., pattern], jnp.asarray(ones, dtype=dtype_of(a)))


def hankel(c, r=None):
    """The matrices that are constant along the diagonals from the lower left to the upper right.

    Args:
      c: first columns `[..., m]`.
      r: last rows `[..., n]`, whose first element has no effect; zeros `[..., m]` if None. The
        leading axes broadcast.

    Returns:
      Array `[..., m, n]` of the promoted dtype.

    Examples:
      >>> weft.scipy.linalg.hankel(wnp.array([1, 2, 3]), wnp.array([3, 4]))
      Array([[1, 2],
             [2, 3],
             [3, 4]], dtype=int32)
    """
    _vectors("hankel", c=c, **({} if r is None else {"r": r}))
    return _hankel(c, r)


@composite
def _hankel(c, r):
    c = _core.asarray(c)
    c, r = _core.promote_dtypes(c, jnp.zeros_like(c) if r is None else r)
    m, n = shape_of(c)[-1], shape_of(r)[-1]
    at = lax.broadcasted_iota("int32", (m, n), 0) + lax.broadcasted_iota("int32", (m, n), 1)
    return _joined(c, r[..., 1:])[..., at]


def _joined(x, y):
    """Vectors joined end to end; the leading axes broadcast."""
    batch = jnp.broadcast_shapes(shape_of(x)[:-1], shape_of(y)[:-1])
    parts = [jnp.broadcast_to(each, (*batch, shape_of(each)[-1])) for each in (x, y)]
    return jnp.concatenate(parts, -1)


def leslie(f, s):
    """The matrices by which populations grow (Leslie, 1945).

    Args:
      f: the offspring of each age, `[..., n]` with n >= 2.
      s: the share of each age that survives to the next one, `[..., n - 1]`.

    Returns:
      Array `[..., n, n]` of the promoted dtype: `f` in the first row, `s` below the diagonal.

    Raises ShapeError for vectors of other sizes.

    Examples:
      >>> weft.scipy.linalg.leslie(wnp.array([0.0, 5.0, 1.0]), wnp.array([0.5, 0.25]))
      Array([[0.  , 5.  , 1.  ],
             [0.5 , 0.  , 0.  ],
             [0.  , 0.25, 0.  ]], dtype=float32)
    """
    shapes = shape_of(f), shape_of(s)
    if not shapes[0] or shapes[0][-1] < 2:
        raise ShapeError(f"[leslie] expected f [..., n] with n of at least 2; got {shapes[0]}")
    if not shapes[1] or shapes[1][-1] != shapes[0][-1] - 1:
        raise ShapeError(f"[leslie] expected f [..., n] and s [..., n - 1]; got shapes {shapes}")
    return _leslie(f, s)


@composite
def _leslie(f, s):
    f, s = _core.promote_dtypes(f, s)
    batch = jnp.broadcast_shapes(shape_of(f)[:-1], shape_of(s)[:-1])
    n = shape_of(f)[-1]
    f = jnp.broadcast_to(f, (*batch, n))[..., None, :]
    s = jnp.broadcast_to(s, (*batch, n - 1))[..., None]
    below = jnp.where(_offsets(n - 1, n) == 0, s, jnp.zeros((), dtype_of(s)))
    return jnp.concatenate([f, below], -2)


@composite(broadcasts=True)
def toeplitz(c, r=None):
    """The matrices that are constant along their diagonals.

    Args:
      c: first columns `[..., m]`; a scalar is a vector of one element.
      r: first rows `[..., n]`, whose first element has no effect; the conjugate of `c` if None. The
        leading axes broadcast.

    Returns:
      Array `[..., m, n]` of the promoted dtype.

    Examples:
      >>> weft.scipy.linalg.toeplitz(wnp.array([1, 2, 3]), wnp.array([1, 8, 9]))
      Array([[1, 8, 9],
             [2, 1, 8],
             [3, 2, 1]], dtype=int32)
    """
    c = jnp.atleast_1d(c)
    r = jnp.conj(c) if r is None else jnp.atleast_1d(r)
    c, r = map(strong, _core.promote_dtypes(c, r))
    m, n = shape_of(c)[-1], shape_of(r)[-1]
    return _joined(jnp.flip(r[..., 1:], -1), c)[..., _offsets(m, n) + (n - 1)]


# ---- of a size


def _kind(function, kind):
    kinds = ("symmetric", "lower", "upper")
    if kind is None:
        return "symmetric"
    if kind not in kinds:
        raise AttributeValueError(
            f"[{function}] expected kind to be one of {', '.join(map(repr, kinds))}; got {kind!r}"
        )
    return kind


def _size(n):
    """A number of rows; one that is not whole counts up, as in `arange`."""
    return max(math.ceil(n), 0)


def _positive(function, n):
    if n < 1:
        raise AttributeValueError(f"[{function}] expected n of at least 1; got {n}")
    return _size(n)


def dft(n, scale=None, *, dtype=None):
    """The matrix whose product with a vector is its discrete Fourier transform.

    Args:
      n: how many elements the vector has.
      scale: "sqrtn" to divide by the root of `n`, "n" to divide by `n`.
      dtype: a complex dtype; the default one if None.

    Returns:
      Array `[n, n]`.

    Raises AttributeValueError (a ValueError) for another scale, or a dtype that is not complex.

    Examples:
      >>> x = wnp.array([1.0, 2.0, 4.0])
      >>> wnp.allclose(weft.scipy.linalg.dft(3) @ x, wnp.fft.fft(x), atol=1e-5)
      Array(True, dtype=bool)
    """
    if scale not in (None, "sqrtn", "n"):
        raise AttributeValueError(f"[dft] expected scale 'sqrtn', 'n' or None; got {scale!r}")
    dtype = requested_dtype(complex if dtype is None else dtype, "dft")
    if not is_complex(dtype):
        raise AttributeValueError(f"[dft] expected a complex dtype; got {dtype}")
    return _dft(n=_size(n), over=float({None: 1, "sqrtn": n**0.5, "n": n}[scale]), dtype=dtype)


@composite(static_argnames=("n", "over", "dtype"))
def _dft(*, n, over, dtype):
    k = np.arange(n)
    roots = jnp.asarray(np.exp(-2j * np.pi * k / max(n, 1)) / (over or 1), dtype=dtype)
    k = jnp.asarray(k, dtype="uint32")
    return roots[_products_mod(k, n)] if n else jnp.zeros((0, 0), dtype)


def _products_mod(k, n):
    """k[i] k[j] mod n."""
    return (k[:, None] * k[None, :]) % np.uint32(n)


def hadamard(n, dtype=int):
    """The matrix of 1 and -1 with orthogonal rows that Sylvester's doubling gives.

    Args:
      n: its size, a power of 2.
      dtype: dtype of the result.

    Returns:
      Array `[n, n]`.

    Raises AttributeValueError (a ValueError) for other sizes than powers of 2.

    Examples:
      >>> weft.scipy.linalg.hadamard(4)
      Array([[ 1,  1,  1,  1],
             [ 1, -1,  1, -1],
             [ 1,  1, -1, -1],
             [ 1, -1, -1,  1]], dtype=int32)
    """
    size = int(n)
    if size != n or size < 1 or size & (size - 1):
        raise AttributeValueError(f"[hadamard] expected n to be a power of 2; got {n}")
    dtype = requested_dtype(dtype, "hadamard")
    return _hadamard(n=size, dtype=dtype)


@composite(static_argnames=("n", "dtype"))
def _hadamard(*, n, dtype):
    k = jnp.arange(n, dtype="uint32")
    odd = jnp.bitwise_count(k[:, None] & k[None, :]) & 1
    one = jnp.ones((), dtype)
    return jnp.where(odd == 1, -one, one)


def helmert(n, full=False):
    """A matrix of contrasts with orthonormal rows, each of which but the first sums to zero.

    Args:
      n: how many columns there are.
      full: whether the first row, of equal elements, is there as well.

    Returns:
      Array `[n - 1, n]`, or `[n, n]`.

    Examples:
      >>> h = weft.scipy.linalg.helmert(4)
      >>> h.shape, wnp.allclose(h.sum(axis=1), 0, atol=1e-5)
      ((3, 4), Array(True, dtype=bool))
    """
    return _helmert(n=_positive("helmert", n), full=bool(full), dtype=default_float())


@composite(static_argnames=("n", "full", "dtype"))
def _helmert(*, n, full, dtype):
    row = jnp.arange(n, dtype=dtype)[:, None]
    column = jnp.arange(n, dtype=dtype)[None, :]
    rows = jnp.where(column < row, 1, jnp.where(column == row, -row, 0))
    scale = jnp.where(row > 0, row * (row + 1), n)
    rows = jnp.where(row > 0, rows, 1) / jnp.sqrt(scale)
    return rows if full else rows[1:]


def hilbert(n):
    """The Hilbert matrix: 1 / (i + j + 1) in row i and column j, counted from 0.

    Args:
      n: its size, an integer.

    Returns:
      Array `[n, n]` of the default float dtype.

    Examples:
      >>> weft.scipy.linalg.hilbert(2).round(3)
      Array([[1.   , 0.5  ],
             [0.5  , 0.333]], dtype=float32)
    """
    shape = (operator.index(n),) * 2
    i, j = (lax.broadcasted_iota(default_float(), shape, axis) for axis in (0, 1))
    return 1 / (i + j + 1)


def invhilbert(n):
    """The inverse of the Hilbert matrix, rounded from whole numbers.

    Args:
      n: its size.

    Returns:
      Array `[n, n]` of the default float dtype.

    Examples:
      >>> weft.scipy.linalg.invhilbert(2)
      Array([[ 4., -6.],
             [-6., 12.]], dtype=float32)
    """
    n = _size(n)
    # Element (i, j) is p[i] p[j] / (i + j + 1) with alternating signs.
    p, factors = n, []
    for i in range(n):
        factors.append(float(p) if p.bit_length() <= 1023 else math.inf)
        p = p * (n - 1 - i) * (n + 1 + i) // (i + 1) ** 2
    p, k = np.array(factors), np.arange(n)
    with np.errstate(over="ignore", invalid="ignore"):
        inverse = np.outer(p * (-1.0) ** k, p * (-1.0) ** k) / (k[:, None] + k + 1)
    return _rounded(inverse)


def _rounded(x, dtype=None):
    """An array of NumPy's as one of weft's, in the default float dtype unless given another."""
    with np.errstate(over="ignore"):
        return _core.asarray(x.astype(default_float() if dtype is None else dtype))


def _binomials(n):
    """The binomial coefficients: n rows of Pascal's triangle below one another."""
    rows = np.zeros((n, n))
    for i in range(n):
        rows[i, 0] = 1
        rows[i, 1 : i + 1] = rows[i - 1, :i] + rows[i - 1, 1 : i + 1]
    return rows


def pascal(n, kind=None):
    """The Pascal matrix, of binomial coefficients.

    Args:
      n: its size.
      kind: "lower" or "upper" for Pascal's triangle in that half of the matrix, "symmetric" (or
        None) for the product of the two.

    Returns:
      float32 array `[n, n]`, also where 64-bit dtypes are enabled.

    Examples:
      >>> weft.scipy.linalg.pascal(3)
      Array([[1., 1., 1.],
             [1., 2., 3.],
             [1., 3., 6.]], dtype=float32)
    """
    kind, n = _kind("pascal", kind), _size(n)
    if kind != "symmetric":
        triangle = _binomials(n)
        return _rounded(triangle if kind == "lower" else triangle.T, "float32")
    rows = np.ones((n, n))
    for i in range(1, n):
        rows[i] = np.cumsum(rows[i - 1])
    return _rounded(rows, "float32")


def invpascal(n, kind=None):
    """The inverse of `pascal(n, kind)`, in the default float dtype.

    Examples:
      >>> weft.scipy.linalg.invpascal(3)
      Array([[ 3., -3.,  1.],
             [-3.,  5., -2.],
             [ 1., -2.,  1.]], dtype=float32)
    """
    kind, n = _kind("invpascal", kind), _size(n)
    k = np.arange(n)
    signs = (-1.0) ** (k[:, None] + k)
    lower = signs * _binomials(n)
    if kind == "symmetric":
        with np.errstate(over="ignore", invalid="ignore"):
            return _rounded(lower.T @ lower)
    return _rounded(lower if kind == "lower" else lower.T)
