"""Linear algebra: decompositions of matrices, and systems of linear equations.

Matrices lie in the last two axes of arrays; axes before these count matrices. Dtypes are float32,
float64, complex64 and complex128, of `triangular_solve` also float16 and bfloat16. Where a solver
fails on a matrix, the results for it are nan. LAPACK does the work on CPU.
"""

import enum

from weft import _core
from weft._arguments import ndim_of, shape_of, static_int, static_ints
from weft._surface import public as _public
from weft._types.primitives import primitive_named
from weft.dtypes import dtype_of, is_complex, is_float
from weft.errors import AttributeValueError, DTypeError, NotImplementedRuleError, ShapeError
from weft.lax._creation import full_like
from weft.lax._elementwise import add, conj, mul, select_n
from weft.lax._reduce import reduce_sum
from weft.lax._shape import broadcast_in_dim, concatenate, expand_dims, squeeze, transpose
from weft.lax._slice import sliced

__all__ = [
    "EigImplementation",
    "EighImplementation",
    "SvdAlgorithm",
    "cholesky",
    "cholesky_update",
    "eig",
    "eigh",
    "hessenberg",
    "householder_product",
    "lu",
    "lu_pivots_to_permutation",
    "ormqr",
    "qdwh",
    "qr",
    "schur",
    "svd",
    "symmetric_product",
    "triangular_solve",
    "tridiagonal",
    "tridiagonal_solve",
]


__getattr__, __dir__ = _public(__name__, __all__, primitive_named)  # linalg.cholesky_p


class EigImplementation(enum.Enum):
    """Which library computes `eig`; on CPU it is LAPACK."""

    CUSOLVER = "cusolver"
    MAGMA = "magma"
    LAPACK = "lapack"


class EighImplementation(enum.Enum):
    """Which algorithm computes `eigh`; QR is the one there is."""

    QR = "qr"
    JACOBI = "jacobi"
    QDWH = "qdwh"


class SvdAlgorithm(enum.Enum):
    """Which algorithm computes `svd`: DEFAULT divides and conquers."""

    DEFAULT = "default"
    QR = "QR"
    JACOBI = "Jacobi"
    POLAR = "polar"
    DIVIDE_AND_CONQUER = "divide_and_conquer"


def _mT(x):
    n = ndim_of(x)
    return transpose(x, (*range(n - 2), n - 1, n - 2))


def _adjoint(x):
    return conj(_mT(x)) if is_complex(dtype_of(x)) else _mT(x)


def _symmetrized(x):
    """(x + x^H) / 2, a float for integers; x that has no square matrices the operation refuses."""
    (x,) = _core.promote_dtypes_inexact(x)
    shape = shape_of(x)
    if len(shape) < 2 or shape[-1] != shape[-2]:
        return x
    return mul(add(x, _adjoint(x)), full_like(x, 0.5))


def _chosen(function, name, value, kinds, default, there):
    """The name of a member of an enumeration, given itself or by name."""
    if value is None:
        return default.value
    try:
        kind = value if isinstance(value, kinds) else kinds(value)
    except ValueError:
        known = ", ".join(f"{kinds.__name__}.{k.name}" for k in kinds)
        raise AttributeValueError(
            f"[{function}] expected {name} to be one of {known} or None; got {value!r}"
        ) from None
    if kind not in there:
        known = " or ".join(f"{kinds.__name__}.{k.name}" for k in there)
        raise NotImplementedRuleError(f"[{function}] expected {name}={known} or None; got {kind}")
    return kind.value


def _subset(function, subset_by_index, size):
    """(start, end) of a range of results."""
    start_end = static_ints(subset_by_index, function, "subset_by_index")
    if len(start_end) != 2 or not 0 <= start_end[0] <= start_end[1] <= size:
        raise AttributeValueError(
            f"[{function}] expected subset_by_index to be a pair (start, end) within 0 and {size}; "
            f"got {subset_by_index!r}"
        )
    return start_end


def cholesky(x, *, symmetrize_input=True):
    """The lower triangular L with L L^H = x, for Hermitian positive definite matrices.

    Args:
      x: array `[..., n, n]`.
      symmetrize_input: whether to decompose (x + x^H) / 2. If not, the lower triangle of `x` alone
        counts.

    Returns:
      Array of the type of `x`; nan for matrices that are not positive definite.

    Raises:
      ShapeError, DTypeError: if `x` holds no square matrices, or is of another dtype.

    Examples:
      >>> lax.linalg.cholesky(wnp.array([[4.0, 2.0], [2.0, 5.0]]))
      Array([[2., 0.],
             [1., 2.]], dtype=float32)
    """
    return _core.bind("cholesky", _symmetrized(x) if symmetrize_input else x)


def cholesky_update(r_matrix, w_vector):
    """The upper triangular R' with R'^T R' = R^T R + w w^T.

    Args:
      r_matrix: R, real and upper triangular with a positive diagonal: `[n, n]`.
      w_vector: w, `[n]`.

    Returns:
      Array of the type of `r_matrix`.

    Raises ShapeError for operands of other shapes, DTypeError for other dtypes than float32 or
    float64.

    Examples:
      >>> r = lax.linalg.cholesky_update(3.0 * wnp.eye(1), wnp.array([4.0]))
      >>> r.round(3)
      Array([[5.]], dtype=float32)
    """
    shape = shape_of(r_matrix)
    if len(shape) != 2 or shape[0] != shape[1] or shape_of(w_vector) != shape[:1]:
        raise ShapeError(
            "[cholesky_update] expected r_matrix [n, n] and w_vector [n]; got "
            f"{list(shape)} and {list(shape_of(w_vector))}"
        )
    if is_complex(dtype_of(r_matrix)) or dtype_of(r_matrix) != dtype_of(w_vector):
        raise DTypeError(
            "[cholesky_update] expected operands of float32, or of float64; got "
            f"{dtype_of(r_matrix)} and {dtype_of(w_vector)}"
        )
    # The triangular factor of R with w below it: no squares are formed, so no digits lost.
    stacked = concatenate((r_matrix, expand_dims(w_vector, (0,))), 0)
    r = qr(stacked, full_matrices=False)[1]
    n = shape[0]
    row = _core.bind("iota", dtype="int32", shape=(n, n), dimension=0)
    column = _core.bind("iota", dtype="int32", shape=(n, n), dimension=1)
    diagonal = reduce_sum(select_n(_core.bind("eq", row, column), full_like(r, 0), r), (1,))
    is_negative = _core.bind("lt", diagonal, full_like(diagonal, 0))
    sign = select_n(is_negative, full_like(diagonal, 1), full_like(diagonal, -1))
    return mul(r, broadcast_in_dim(sign, (n, n), (0,)))


def eig(
    x,
    *,
    compute_left_eigenvectors=True,
    compute_right_eigenvectors=True,
    enable_eigvec_derivs=False,
    implementation=None,
    use_magma=None,
):
    """Eigenvalues and eigenvectors of general matrices. On CPU only.

    Args:
      x: array `[..., n, n]`.
      compute_left_eigenvectors, compute_right_eigenvectors: whether to return them.
      enable_eigvec_derivs: whether eigenvectors can be differentiated. Their derivatives are those
        of vectors of norm 1 whose largest component is real, and hold where all eigenvalues are
        distinct and no vector has two largest components. Without it, derivatives need both
        `compute_` arguments to be False.
      implementation: `EigImplementation.LAPACK` or None.
      use_magma: None or False.

    Returns:
      List of the eigenvalues `[..., n]`, the left eigenvectors vl and the right ones vr
      `[..., n, n]`, as asked for; all complex. x vr = vr diag(w) and vl^H x = diag(w) vl^H.

    Raises NotImplementedRuleError for `use_magma`.

    Examples:
      >>> values, vectors = lax.linalg.eig(
      ...     wnp.array([[2.0, 1.0], [0.0, 3.0]]), compute_left_eigenvectors=False
      ... )
      >>> values
      Array([2.+0.j, 3.+0.j], dtype=complex64)
    """
    _chosen("eig", "implementation", implementation, EigImplementation, EigImplementation.LAPACK,
            (EigImplementation.LAPACK,))  # fmt: skip
    if use_magma:
        raise NotImplementedRuleError(f"[eig] expected use_magma=False or None; got {use_magma!r}")
    return _core.bind(
        "eig",
        x,
        compute_left_eigenvectors=bool(compute_left_eigenvectors),
        compute_right_eigenvectors=bool(compute_right_eigenvectors),
        enable_eigvec_derivs=bool(enable_eigvec_derivs),
    )


def eigh(
    x,
    *,
    lower=True,
    symmetrize_input=True,
    sort_eigenvalues=True,
    subset_by_index=None,
    implementation=None,
):
    """Eigenvectors and eigenvalues of Hermitian matrices.

    Args:
      x: array `[..., n, n]`.
      lower: which triangle of `x` counts if it is not symmetrized.
      symmetrize_input: whether to decompose (x + x^H) / 2.
      sort_eigenvalues: whether eigenvalues must be in ascending order, which they always are.
      subset_by_index: pair (start, end): only these of the eigenvalues, and their vectors.
      implementation: `EighImplementation.QR` or None.

    Returns:
      Pair of the eigenvectors v `[..., n, k]` in columns and the eigenvalues `[..., k]`, which are
      real. Derivatives of vectors of equal eigenvalues are not finite: such vectors are arbitrary.

    Examples:
      >>> x = wnp.array([[2.0, 1.0], [1.0, 2.0]])
      >>> vectors, values = lax.linalg.eigh(x)
      >>> values.round(3), wnp.allclose(x @ vectors, values * vectors, atol=1e-5)
      (Array([1., 3.], dtype=float32), Array(True, dtype=bool))
    """
    _chosen("eigh", "implementation", implementation, EighImplementation, EighImplementation.QR,
            (EighImplementation.QR,))  # fmt: skip
    v, w = _core.bind(
        "eigh",
        _symmetrized(x) if symmetrize_input else x,
        lower=bool(lower),
        sort_eigenvalues=bool(sort_eigenvalues),
    )
    if subset_by_index is not None:
        start, end = _subset("eigh", subset_by_index, shape_of(w)[-1])
        v, w = sliced(v, start, end, axis=-1), sliced(w, start, end, axis=-1)
    return v, w


def hessenberg(a):
    """Reduces square matrices to upper Hessenberg form. On CPU only; has no derivative.

    Args:
      a: array `[..., n, n]`.

    Returns:
      List of an array of the type of `a`, with the Hessenberg matrix in the upper triangle and the
      diagonal below it, and Householder reflectors further below; and of their factors
      `[..., n - 1]`.

    Examples:
      >>> a, taus = lax.linalg.hessenberg(wnp.ones((3, 3)))
      >>> a.shape, taus.shape
      ((3, 3), (2,))
    """
    return _core.bind("hessenberg", a)


def householder_product(a, taus):
    """The first n columns of a product of Householder reflectors. Has no derivative.

    Args:
      a: array `[..., m, n]` with n <= m, with reflectors below the diagonal.
      taus: their factors, `[..., k]` with k <= n.

    Returns:
      Array of the type of `a`, with orthonormal columns.

    Examples:
      >>> a, taus = lax.linalg.hessenberg(wnp.arange(9.0).reshape(3, 3))
      >>> q = lax.linalg.householder_product(a[1:, :-1], taus)
      >>> wnp.allclose(q.T @ q, wnp.eye(2), atol=1e-5)
      Array(True, dtype=bool)
    """
    return _core.bind("householder_product", a, taus)


def lu(x):
    """Decomposition P x = L U with partial pivoting.

    Args:
      x: array `[..., m, n]`.

    Returns:
      List of L and U in one array of the type of `x`, L below the diagonal, without its ones; the
      row swaps made, int32 `[..., min(m, n)]`; and the permutation that they amount to, int32
      `[..., m]`: `x[permutation] = L @ U`. A singular matrix has such factors too.

    Examples:
      >>> factors, pivots, permutation = lax.linalg.lu(wnp.array([[1.0, 2.0], [4.0, 4.0]]))
      >>> factors
      Array([[4.  , 4.  ],
             [0.25, 1.  ]], dtype=float32)
      >>> pivots, permutation
      (Array([1, 1], dtype=int32), Array([1, 0], dtype=int32))
    """
    return _core.bind("lu", x)


def lu_pivots_to_permutation(pivots, permutation_size):
    """The permutation that row swaps, as `lu` gives them, amount to.

    Args:
      pivots: int32 `[..., k]`: row i is swapped with row pivots[i], for i = 0, 1, ...
      permutation_size: the number of rows, at least k.

    Returns:
      int32 array `[..., permutation_size]`.

    Examples:
      >>> lax.linalg.lu_pivots_to_permutation(wnp.array([2, 1, 2]), 3)
      Array([2, 1, 0], dtype=int32)
    """
    size = static_int(permutation_size, "lu_pivots_to_permutation", "permutation_size")
    return _core.bind("lu_pivots_to_permutation", pivots, permutation_size=size)


def ormqr(a, taus, c, *, left=True, transpose=False):
    """Product of a matrix and the Q that Householder reflectors stand for.

    Args:
      a: array `[..., m, n]` with reflectors below the diagonal, as `householder_product` takes it.
      taus: their factors, `[..., k]`.
      c: array `[..., m, p]`, or `[..., p, m]` if not `left`. Derivatives are in `c` alone.
      left: whether to compute Q c; if not, c Q.
      transpose: whether Q^H takes the place of Q.

    Returns:
      Array of the type of `c`.

    Examples:
      >>> reflectors = wnp.array([[1.0], [1.0]])  # the first element of each counts as 1
      >>> lax.linalg.ormqr(reflectors, wnp.array([1.0]), wnp.array([[5.0], [7.0]]))
      Array([[-7.],
             [-5.]], dtype=float32)
    """
    return _core.bind("ormqr", a, taus, c, left=bool(left), transpose=bool(transpose))


def qr(x, *, pivoting=False, full_matrices=True, use_magma=None):
    """Decomposition x = Q R, or x[:, p] = Q R, with unitary Q and upper triangular R.

    Args:
      x: array `[..., m, n]`.
      pivoting: whether columns are reordered so that the diagonal of R decreases. On CPU only.
      full_matrices: whether Q has m columns, else min(m, n). Derivatives of matrices with more rows
        than columns need False.
      use_magma: None or False.

    Returns:
      Pair (q, r), or with `pivoting` a triple (q, r, p), p int32 `[..., n]`.

    Raises NotImplementedRuleError for `use_magma`.

    Examples:
      >>> x = wnp.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
      >>> q, r = lax.linalg.qr(x, full_matrices=False)
      >>> q.shape, wnp.allclose(q @ r, x, atol=1e-5)
      ((3, 2), Array(True, dtype=bool))
    """
    if use_magma:
        raise NotImplementedRuleError(f"[qr] expected use_magma=False or None; got {use_magma!r}")
    return tuple(_core.bind("qr", x, pivoting=bool(pivoting), full_matrices=bool(full_matrices)))


def schur(x, *, compute_schur_vectors=True, sort_eig_vals=False, select_callable=None):
    """Decomposition x = Q T Q^H with unitary Q. On CPU only; has no derivative.

    T is upper triangular; of a real matrix, it has 2 x 2 blocks on its diagonal for pairs of
    complex eigenvalues.

    Args:
      x: array `[..., n, n]`.
      compute_schur_vectors: whether to return Q.
      sort_eig_vals, select_callable: not there; anything but False and None raises.

    Returns:
      List of T and, as asked for, Q.

    Raises NotImplementedRuleError for `sort_eig_vals` and `select_callable`.

    Examples:
      >>> x = wnp.array([[1.0, 2.0], [3.0, 4.0]])
      >>> t, q = lax.linalg.schur(x)
      >>> wnp.allclose(q @ t @ q.T, x, atol=1e-5)
      Array(True, dtype=bool)
    """
    if sort_eig_vals or select_callable is not None:
        raise NotImplementedRuleError(
            "[schur] expected sort_eig_vals=False and select_callable=None; got "
            f"{sort_eig_vals!r} and {select_callable!r}"
        )
    return _core.bind("schur", x, compute_schur_vectors=bool(compute_schur_vectors))


def svd(x, *, full_matrices=True, compute_uv=True, subset_by_index=None, algorithm=None):
    """Singular value decomposition x = U diag(s) V^H.

    Args:
      x: array `[..., m, n]`.
      full_matrices: whether U and V are square; if not, they have min(m, n) columns. Derivatives of
        matrices that are not square need False.
      compute_uv: whether to return U and V^H.
      subset_by_index: pair (start, end): only these of the singular values, and their vectors. Not
        with `full_matrices`.
      algorithm: `SvdAlgorithm.DEFAULT`, `DIVIDE_AND_CONQUER` (the same) or `QR`, or None.

    Returns:
      The singular values `[..., k]`, real and descending, if not `compute_uv`; else a triple of U,
      the singular values and V^H.

    Raises AttributeValueError (a ValueError) for subset_by_index with full matrices.

    Examples:
      >>> lax.linalg.svd(wnp.array([[0.0, 2.0], [-5.0, 0.0]]), compute_uv=False).round(3)
      Array([5., 2.], dtype=float32)
    """
    there = (SvdAlgorithm.DEFAULT, SvdAlgorithm.QR, SvdAlgorithm.DIVIDE_AND_CONQUER)
    name = _chosen("svd", "algorithm", algorithm, SvdAlgorithm, SvdAlgorithm.DEFAULT, there)
    if subset_by_index is not None and full_matrices and compute_uv:
        raise AttributeValueError(
            "[svd] expected full_matrices=False with subset_by_index; got both"
        )
    s, *vectors = _core.bind(
        "svd",
        x,
        full_matrices=bool(full_matrices),
        compute_uv=bool(compute_uv),
        algorithm=name,
    )
    if subset_by_index is not None:
        start, end = _subset("svd", subset_by_index, shape_of(s)[-1])
        s = sliced(s, start, end, axis=-1)
        vectors = [sliced(m, start, end, axis=-1 - i) for i, m in enumerate(vectors)]
    return (vectors[0], s, vectors[1]) if compute_uv else s


def qdwh(x, *, is_hermitian=False, max_iterations=None, eps=None, dynamic_shape=None):
    """Polar decomposition x = U H, by a weighted Halley iteration.

    Args:
      x: matrix `[m, n]` of full rank, with m >= n.
      is_hermitian: no effect.
      max_iterations: how many steps are taken at most; None is 10.
      eps: the iteration ends when a step changes U by less than the cube root of 4 eps, relative to
        U; None is the machine epsilon.
      dynamic_shape: pair of the numbers of rows and columns that count, if `x` is padded; they may
        be traced.

    Returns:
      U `[m, n]`, whose columns are orthonormal; H `[n, n]`, positive semidefinite; the number of
      steps; and whether they were enough.

    Examples:
      >>> u, h, steps, enough = lax.linalg.qdwh(wnp.array([[-2.0, 0.0], [0.0, 3.0]]))
      >>> wnp.allclose(h, wnp.diag(wnp.array([2.0, 3.0])), atol=1e-5), enough
      (Array(True, dtype=bool), Array(True, dtype=bool))
    """
    from weft.lax._polar import polar  # circle: made of functions here

    return polar(x, max_iterations, eps, dynamic_shape)


def symmetric_product(a_matrix, c_matrix, *, alpha=1.0, beta=0.0, symmetrize_output=False):
    """alpha A A^T + beta C.

    Args:
      a_matrix: A, `[..., m, n]`.
      c_matrix: C, symmetric, `[..., m, m]`.
      alpha, beta: numbers.
      symmetrize_output: no effect; the upper triangle of the result is always valid.

    Returns:
      Array of the type of `c_matrix`.

    Raises ShapeError for operands of other shapes, DTypeError for dtypes that differ or are not
    real floating-point ones.

    Examples:
      >>> lax.linalg.symmetric_product(wnp.array([[1.0], [3.0]]), wnp.eye(2), beta=1.0)
      Array([[ 2.,  3.],
             [ 3., 10.]], dtype=float32)
    """
    a_shape, c_shape = shape_of(a_matrix), shape_of(c_matrix)
    if len(a_shape) < 2 or c_shape != (*a_shape[:-1], a_shape[-2]):
        raise ShapeError(
            "[symmetric_product] expected a_matrix [..., m, n] and c_matrix [..., m, m]; got "
            f"{list(a_shape)} and {list(c_shape)}"
        )
    if dtype_of(a_matrix) != dtype_of(c_matrix) or not is_float(dtype_of(a_matrix)):
        raise DTypeError(
            "[symmetric_product] expected operands of one floating-point dtype; got "
            f"{dtype_of(a_matrix)} and {dtype_of(c_matrix)}"
        )
    batch = tuple(range(len(a_shape) - 2))
    contract = (len(a_shape) - 1,)
    numbers = ((contract, contract), (batch, batch))
    product = _core.bind(
        "dot_general", a_matrix, a_matrix, dimension_numbers=numbers, precision="HIGHEST"
    )
    return add(mul(product, full_like(product, alpha)), mul(c_matrix, full_like(c_matrix, beta)))


def triangular_solve(
    a,
    b,
    *,
    left_side=False,
    lower=False,
    transpose_a=False,
    conjugate_a=False,
    unit_diagonal=False,
):
    """The X with op(a) X = b if `left_side`, else with X op(a) = b, for triangular a.

    Args:
      a: array `[..., n, n]`.
      b: array `[..., n, k]` if `left_side`, else `[..., k, n]`; or `[..., n]`, a vector for each
        matrix.
      left_side: see above.
      lower: which triangle of `a` counts.
      transpose_a, conjugate_a: what op does.
      unit_diagonal: whether the diagonal of `a` is taken to be ones.

    Returns:
      Array of the type of `b`.

    Examples:
      >>> a = wnp.array([[2.0, 0.0], [1.0, 4.0]])
      >>> lax.linalg.triangular_solve(a, wnp.array([[2.0], [9.0]]), left_side=True, lower=True)
      Array([[1.],
             [2.]], dtype=float32)
    """
    is_vector = ndim_of(b) == ndim_of(a) - 1
    axis = ndim_of(b) if left_side else ndim_of(b) - 1
    if is_vector:
        b = expand_dims(b, (axis,))
    x = _core.bind(
        "triangular_solve",
        a,
        b,
        left_side=bool(left_side),
        lower=bool(lower),
        transpose_a=bool(transpose_a),
        conjugate_a=bool(conjugate_a) and is_complex(dtype_of(a)),
        unit_diagonal=bool(unit_diagonal),
    )
    return squeeze(x, (axis,)) if is_vector else x


def tridiagonal(a, *, lower=True):
    """Reduces Hermitian matrices to tridiagonal form. Has no derivative.

    Args:
      a: array `[..., n, n]`.
      lower: which triangle of `a` counts.

    Returns:
      List of an array of the type of `a`, with both diagonals and, beyond the second, Householder
      reflectors in that triangle; the diagonal `[..., n]` and the one beside it `[..., n - 1]`,
      both real; and the factors of the reflectors `[..., n - 1]`.

    Examples:
      >>> a, diagonal, beside, taus = lax.linalg.tridiagonal(wnp.eye(3))
      >>> diagonal, beside.shape
      (Array([1., 1., 1.], dtype=float32), (2,))
    """
    return _core.bind("tridiagonal", a, lower=bool(lower))


def tridiagonal_solve(dl, d, du, b, *, perturb_singular=False):
    """The X with T X = b, for matrices T with three diagonals.

    Args:
      dl, d, du: the diagonals, `[..., n]`: dl[i] = T[i, i - 1], d[i] = T[i, i] and
        du[i] = T[i, i + 1]; dl[0] and du[n - 1] are 0.
      b: array `[..., n, k]`.
      perturb_singular: whether a singular T is changed a little so that the result is finite.
        On CPU only.

    Returns:
      Array of the type of `b`.

    Examples:
      >>> below, diagonal, above = wnp.array([[0.0, 1.0], [2.0, 2.0], [1.0, 0.0]])
      >>> lax.linalg.tridiagonal_solve(below, diagonal, above, wnp.array([[3.0], [3.0]]))
      Array([[1.],
             [1.]], dtype=float32)
    """
    return _core.bind("tridiagonal_solve", dl, d, du, b, perturb_singular=bool(perturb_singular))
