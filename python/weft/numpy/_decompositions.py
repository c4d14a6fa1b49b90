"""Decompositions of matrices with NumPy's arguments and results."""

from typing import Any, NamedTuple

from weft import _core
from weft._arguments import ndim_of, shape_of
from weft._jit import composite
from weft.dtypes import dtype_of
from weft.errors import AttributeValueError, ShapeError
from weft.lax import linalg as lax_linalg
from weft.lax._creation import broadcasted_iota
from weft.lax._slice import sliced
from weft.lax._sort import sort
from weft.numpy import _ufuncs as u
from weft.numpy._shape import expand_dims, matrix_transpose
from weft.numpy._take import take_along_axis


class EigResult(NamedTuple):
    """What `eig` returns."""

    eigenvalues: _core.Array
    eigenvectors: _core.Array


class EighResult(NamedTuple):
    """What `eigh` returns."""

    eigenvalues: _core.Array
    eigenvectors: _core.Array


class QRResult(NamedTuple):
    """What `qr` returns."""

    Q: _core.Array
    R: _core.Array


class SVDResult(NamedTuple):
    """What `svd` returns."""

    U: _core.Array
    S: _core.Array
    Vh: _core.Array


def adjoint(x):
    """The conjugates of the last two axes exchanged."""
    return u.conj(matrix_transpose(x))


def require_matrices(function, x, square=False):
    """ShapeError unless the last two axes of an array hold matrices, square ones if asked for."""
    shape = shape_of(x)
    if len(shape) < 2 or (square and shape[-1] != shape[-2]):
        kind = "square matrices [..., n, n]" if square else "matrices [..., m, n]"
        raise ShapeError(f"[{function}] expected {kind}; got shape {shape}")


@composite(static_argnames=("upper", "symmetrize_input"))
def cholesky(a, *, upper=False, symmetrize_input=True):
    """The triangular factor of Hermitian positive definite matrices.

    Args:
      a: array `[..., n, n]`.
      upper: whether to return the upper triangular R with a = R^H R, not the lower L with
        a = L L^H.
      symmetrize_input: whether to decompose (a + a^H) / 2. If not, one triangle of `a` counts.

    Returns:
      Array of the shape of `a`; NaN for matrices that are not positive definite.

    Examples:
      >>> wnp.linalg.cholesky(wnp.array([[4.0, 2.0], [2.0, 5.0]])).round(3)
      Array([[2., 0.],
             [1., 2.]], dtype=float32)
    """
    require_matrices("cholesky", a, square=True)
    (a,) = _core.promote_dtypes_inexact(a)
    factor = lax_linalg.cholesky(
        adjoint(a) if upper and not symmetrize_input else a, symmetrize_input=symmetrize_input
    )
    return adjoint(factor) if upper else factor


def _is_lower(function, uplo):
    if uplo not in (None, "L", "U"):
        raise AttributeValueError(
            f"[{function}] expected UPLO to be 'L', 'U' or None; got {uplo!r}"
        )
    return uplo != "U"


def eigh(a, UPLO=None, symmetrize_input=True):
    """Eigenvalues and eigenvectors of Hermitian matrices.

    Args:
      a: array `[..., n, n]`.
      UPLO: which triangle of `a` counts if it is not symmetrized, "L" (or None) or "U".
      symmetrize_input: whether to decompose (a + a^H) / 2.

    Returns:
      EighResult of the eigenvalues `[..., n]`, real and ascending, and of the eigenvectors in the
      columns of `[..., n, n]`.

    Examples:
      >>> values, vectors = wnp.linalg.eigh(wnp.array([[2.0, 1.0], [1.0, 2.0]]))
      >>> values.round(3)
      Array([1., 3.], dtype=float32)
      >>> (vectors @ wnp.diag(values) @ vectors.T).round(3)
      Array([[2., 1.],
             [1., 2.]], dtype=float32)
    """
    lower = _is_lower("eigh", UPLO)
    return _eigh(a, lower=lower, symmetrize_input=bool(symmetrize_input))


@composite(static_argnames=("lower", "symmetrize_input"))
def _eigh(a, *, lower, symmetrize_input):
    require_matrices("eigh", a, square=True)
    (a,) = _core.promote_dtypes_inexact(a)
    v, w = lax_linalg.eigh(a, lower=lower, symmetrize_input=symmetrize_input)
    return EighResult(w, v)


def eigvalsh(a, UPLO="L", *, symmetrize_input=True):
    """Eigenvalues `[..., n]` of Hermitian matrices, ascending; see `eigh` for the arguments.

    Examples:
      >>> wnp.linalg.eigvalsh(wnp.array([[2.0, 1.0], [1.0, 2.0]])).round(3)
      Array([1., 3.], dtype=float32)
    """
    lower = _is_lower("eigvalsh", UPLO)
    return _eigvalsh(a, lower=lower, symmetrize_input=bool(symmetrize_input))


@composite(static_argnames=("lower", "symmetrize_input"))
def _eigvalsh(a, *, lower, symmetrize_input):
    return _eigh(a, lower=lower, symmetrize_input=symmetrize_input).eigenvalues


@composite
def eig(a):
    """Eigenvalues and right eigenvectors of general matrices. On CPU only.

    Derivatives of the eigenvectors hold for distinct eigenvalues, see `weft.lax.linalg.eig`.

    Args:
      a: array `[..., n, n]`.

    Returns:
      EigResult of the eigenvalues `[..., n]`, complex and in no order, and of the eigenvectors in
      the columns of `[..., n, n]`.

    Examples:
      >>> values, vectors = wnp.linalg.eig(wnp.array([[2.0, 0.0], [1.0, 3.0]]))
      >>> wnp.sort(values.real).round(3)
      Array([2., 3.], dtype=float32)
    """
    require_matrices("eig", a, square=True)
    (a,) = _core.promote_dtypes_inexact(a)
    return EigResult(*lax_linalg.eig(a, compute_left_eigenvectors=False, enable_eigvec_derivs=True))


@composite
def eigvals(a):
    """Eigenvalues `[..., n]` of general matrices `[..., n, n]`, complex. On CPU only.

    Examples:
      >>> wnp.sort(wnp.linalg.eigvals(wnp.array([[0.0, -1.0], [1.0, 0.0]])).imag).round(3)
      Array([-1.,  1.], dtype=float32)
    """
    require_matrices("eigvals", a, square=True)
    (a,) = _core.promote_dtypes_inexact(a)
    return lax_linalg.eig(a, compute_left_eigenvectors=False, compute_right_eigenvectors=False)[0]


def qr(a, mode="reduced"):
    """Decomposition a = Q R with unitary Q and upper triangular R.

    Args:
      a: array `[..., m, n]`.
      mode: "reduced" (or "full") for Q with min(m, n) columns, "complete" for m columns, "r" for R
        alone, "raw" for Householder reflectors, transposed, and their factors.

    Returns:
      QRResult of Q and R, or of what mode "raw" gives; R for mode "r".

    Raises AttributeValueError (a ValueError) for another mode.

    Examples:
      >>> q, r = wnp.linalg.qr(wnp.array([[3.0, 1.0], [4.0, 2.0]]))
      >>> (q @ r).round(3)
      Array([[3., 1.],
             [4., 2.]], dtype=float32)
      >>> wnp.allclose(q.T @ q, wnp.eye(2), atol=1e-5)
      Array(True, dtype=bool)
    """
    if mode not in ("reduced", "full", "complete", "r", "raw"):
        raise AttributeValueError(
            f"[qr] expected mode to be 'reduced', 'complete', 'r', 'raw' or 'full'; got {mode!r}"
        )
    return _qr(a, mode=mode)


@composite(static_argnames=("mode",))
def _qr(a, *, mode):
    require_matrices("qr", a)
    (a,) = _core.promote_dtypes_inexact(a)
    if mode == "raw":
        reflectors, factors = _core.bind("geqrf", a)
        return QRResult(matrix_transpose(reflectors), factors)
    q, r = lax_linalg.qr(a, full_matrices=mode == "complete")
    return r if mode == "r" else QRResult(q, r)


def svd(a, full_matrices=True, compute_uv=True, hermitian=False, subset_by_index=None):
    """Singular value decomposition a = U diag(S) V^H.

    Args:
      a: array `[..., m, n]`.
      full_matrices: whether U and V are square; if not, they have min(m, n) columns. Derivatives of
        matrices that are not square need False.
      compute_uv: whether to return U and V^H.
      hermitian: whether `a` is known to be Hermitian.
      subset_by_index: pair (start, end): only these of the singular values, and their vectors. Not
        with `full_matrices`.

    Returns:
      SVDResult of U, the singular values `[..., k]`, real and descending, and V^H; the singular
      values alone if not `compute_uv`.

    Raises AttributeValueError (a ValueError) for subset_by_index with full matrices.

    Examples:
      >>> u, s, vh = wnp.linalg.svd(wnp.array([[0.0, 2.0, 0.0], [3.0, 0.0, 0.0]]))
      >>> s.round(3)
      Array([3., 2.], dtype=float32)
      >>> u.shape, vh.shape
      ((2, 2), (3, 3))
    """
    if subset_by_index is not None:
        subset_by_index = tuple(subset_by_index)
        if full_matrices:
            raise AttributeValueError(
                "[svd] expected full_matrices=False with subset_by_index; got both"
            )
    return _svd(
        a,
        full_matrices=bool(full_matrices),
        compute_uv=bool(compute_uv),
        hermitian=bool(hermitian),
        subset=subset_by_index,
    )


@composite(static_argnames=("full_matrices", "compute_uv", "hermitian", "subset"))
def _svd(a, *, full_matrices, compute_uv, hermitian, subset):
    require_matrices("svd", a, square=hermitian)
    (a,) = _core.promote_dtypes_inexact(a)
    if hermitian:
        return _hermitian_svd(a, compute_uv, subset)
    result = lax_linalg.svd(
        a, full_matrices=full_matrices, compute_uv=compute_uv, subset_by_index=subset
    )
    return SVDResult(*result) if compute_uv else result


def _hermitian_svd(a, compute_uv, subset):
    v, w = lax_linalg.eigh(a)
    keys = u.negative(u.absolute(w))
    positions = broadcasted_iota("int32", shape_of(w), ndim_of(w) - 1)
    s, order = sort((keys, positions))
    start, end = (0, shape_of(w)[-1]) if subset is None else subset
    s, order = (sliced(x, start, end, axis=-1) for x in (u.negative(s), order))
    if not compute_uv:
        return s
    v = take_along_axis(v, expand_dims(order, -2), -1)
    signs = _core.astype(u.sign(take_along_axis(w, order, -1)), dtype_of(v))
    return SVDResult(v, s, adjoint(u.multiply(v, expand_dims(signs, -2))))


@composite
def svdvals(x, /) -> Any:
    """The singular values `[..., k]` of matrices `[..., m, n]`, descending.

    Examples:
      >>> wnp.linalg.svdvals(wnp.array([[0.0, 2.0], [3.0, 0.0]])).round(3)
      Array([3., 2.], dtype=float32)
    """
    return _svd(x, full_matrices=False, compute_uv=False, hermitian=False, subset=None)
