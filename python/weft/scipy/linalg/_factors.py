"""Factorizations of matrices."""

from weft import _core, lax, numpy as jnp
from weft._arguments import ndim_of, shape_of, weak_as
from weft._jit import composite
from weft.dtypes import dtype_of, is_complex, is_inexact, real_dtype, to_complex_dtype
from weft.errors import AttributeValueError, DTypeError, NotImplementedRuleError, ShapeError
from weft.lax import _control as control, linalg as lax_linalg
from weft.numpy import _decompositions as decompositions
from weft.numpy._decompositions import adjoint, require_matrices


def _array(a):
    """The array that a list stands for, which these functions take as SciPy's do."""
    return jnp.asarray(a) if isinstance(a, (list, tuple)) else a


# ---- of symmetric matrices


def cholesky(a, lower=False, overwrite_a=False, check_finite=True):
    """The triangular factor of Hermitian positive definite matrices.

    Args:
      a: array `[..., n, n]`, of which one triangle counts.
      lower: whether to decompose the lower triangle and return the lower triangular L with
        a = L L^H; if not, the upper one, and U with a = U^H U.
      overwrite_a, check_finite: no effect.

    Returns:
      Array of the shape of `a`; NaN for matrices that are not positive definite.

    Examples:
      >>> weft.scipy.linalg.cholesky(wnp.array([[4.0, 2.0], [2.0, 5.0]]))  # the upper one
      Array([[2., 1.],
             [0., 2.]], dtype=float32)
    """
    return decompositions.cholesky(_array(a), upper=not lower, symmetrize_input=False)


def cho_factor(a, lower=False, overwrite_a=False, check_finite=True):
    """What `cho_solve` takes: the result of `cholesky`, and `lower`.

    Args:
      a, lower: see `cholesky`.
      overwrite_a, check_finite: no effect.

    Returns:
      Pair of the factors `[..., n, n]` and of `lower`.

    Examples:
      >>> factor = weft.scipy.linalg.cho_factor(wnp.array([[4.0, 2.0], [2.0, 5.0]]))
      >>> weft.scipy.linalg.cho_solve(factor, wnp.array([8.0, 12.0])).round(3)
      Array([1., 2.], dtype=float32)
    """
    return cholesky(a, lower), lower


def eigh(
    a,
    b=None,
    lower=True,
    eigvals_only=False,
    overwrite_a=False,
    overwrite_b=False,
    turbo=True,
    eigvals=None,
    type=1,
    check_finite=True,
):
    """Eigenvalues and eigenvectors of Hermitian matrices.

    Args:
      a: array `[..., n, n]`, of which (a + a^H) / 2 is decomposed.
      b: None; generalized problems are not supported.
      lower: whether the lower triangle counts; no effect on Hermitian matrices.
      eigvals_only: whether to return the eigenvalues alone.
      overwrite_a, overwrite_b, turbo, check_finite: no effect.
      eigvals: None; `[..., first:last]` takes some of the results.
      type: 1; the other kinds are of generalized problems.

    Returns:
      Pair of the eigenvalues `[..., n]`, real and ascending, and of the eigenvectors in the columns
      of `[..., n, n]`; or the eigenvalues.

    Raises NotImplementedRuleError for options that are not supported.

    Examples:
      >>> x = wnp.array([[2.0, 1.0], [1.0, 2.0]])
      >>> values, vectors = weft.scipy.linalg.eigh(x)
      >>> values.round(3), wnp.allclose(x @ vectors, values * vectors, atol=1e-5)
      (Array([1., 3.], dtype=float32), Array(True, dtype=bool))
    """
    for name, value in (("b", b), ("eigvals", eigvals)):
        if value is not None:
            raise NotImplementedRuleError(f"[eigh] expected {name}=None; got {value!r:.60}")
    if type != 1:
        raise NotImplementedRuleError(f"[eigh] expected type=1; got {type!r}")
    uplo, a = "L" if lower else "U", _array(a)
    if eigvals_only:
        return decompositions.eigvalsh(a, uplo)
    return tuple(decompositions.eigh(a, uplo))


# ---- of general matrices


def svd(
    a,
    full_matrices=True,
    compute_uv=True,
    overwrite_a=False,
    check_finite=True,
    lapack_driver="gesdd",
):
    """Singular value decomposition a = U diag(s) V^H.

    Args:
      a: array `[..., m, n]`.
      full_matrices: whether U and V are square; if not, they have min(m, n) columns. Derivatives of
        matrices that are not square need False.
      compute_uv: whether to return U and V^H.
      overwrite_a, check_finite: no effect.
      lapack_driver: no effect.

    Returns:
      Tuple of U, the singular values `[..., k]`, real and descending, and V^H; or the singular
      values.

    Examples:
      >>> x = wnp.array([[0.0, 2.0], [-5.0, 0.0]])
      >>> u, s, vh = weft.scipy.linalg.svd(x)
      >>> s.round(3), wnp.allclose(u * s @ vh, x, atol=1e-5)
      (Array([5., 2.], dtype=float32), Array(True, dtype=bool))
    """
    result = decompositions.svd(_array(a), full_matrices, compute_uv)
    return tuple(result) if compute_uv else result


def lu(a, permute_l=False, overwrite_a=False, check_finite=True):
    """Decomposition a = P L U with partial pivoting.

    Args:
      a: array `[..., m, n]`.
      permute_l: whether to return P L in place of P and L.
      overwrite_a, check_finite: no effect.

    Returns:
      Triple of the permutation P `[..., m, m]`, of a real dtype, the unit lower triangular L
      `[..., m, k]` and the upper triangular U `[..., k, n]`, k = min(m, n); or the pair of P L and
      U.

    Examples:
      >>> p, l, u = weft.scipy.linalg.lu(wnp.array([[1.0, 2.0], [4.0, 4.0]]))
      >>> p @ l @ u
      Array([[1., 2.],
             [4., 4.]], dtype=float32)
    """
    return _lu(_array(a), permute_l=bool(permute_l))


@composite(static_argnames=("permute_l",))
def _lu(a, *, permute_l):
    require_matrices("lu", a)
    (a,) = _core.promote_dtypes_inexact(a)
    m, n = shape_of(a)[-2:]
    k, dtype = min(m, n), dtype_of(a)
    factors, _, permutation = lax_linalg.lu(a)
    lower = jnp.tril(factors[..., :k], -1) + jnp.eye(m, k, dtype=dtype)
    upper = weak_as(jnp.triu(factors[..., :k, :]), a)
    if permute_l:
        inverse = jnp.argsort(permutation, -1)
        return jnp.take_along_axis(lower, inverse[..., None], -2), upper
    rows = lax.broadcasted_iota(dtype_of(permutation), (m, 1), 0)
    p = (rows == permutation[..., None, :]).astype(real_dtype(dtype))
    return p, lower, upper


def lu_factor(a, overwrite_a=False, check_finite=True):
    """What `lu_solve` takes: the factors of P a = L U, with partial pivoting.

    Args:
      a: array `[..., m, n]`.
      overwrite_a, check_finite: no effect.

    Returns:
      Pair of L (without its diagonal) and U in one array `[..., m, n]`, and of the row swaps made,
      int32 `[..., min(m, n)]`.

    Examples:
      >>> factors, pivots = weft.scipy.linalg.lu_factor(wnp.array([[1.0, 2.0], [4.0, 4.0]]))
      >>> pivots
      Array([1, 1], dtype=int32)
    """
    return _lu_factor(_array(a))


@composite
def _lu_factor(a):
    require_matrices("lu_factor", a)
    (a,) = _core.promote_dtypes_inexact(a)
    return tuple(lax_linalg.lu(a)[:2])


def qr(a, overwrite_a=False, lwork=None, mode="full", pivoting=False, check_finite=True):
    """Decomposition a = Q R, or a[:, p] = Q R, with unitary Q and upper triangular R.

    Args:
      a: array `[..., m, n]`.
      overwrite_a, check_finite: no effect.
      lwork: no effect.
      mode: "full" for Q with m columns, "economic" for min(m, n), "r" for R `[..., m, n]` alone.
      pivoting: whether columns are reordered so that the diagonal of R decreases. On CPU only.

    Returns:
      Tuple of Q, R and p, int32 `[..., n]`; without Q in mode "r", without p if not `pivoting`.

    Raises AttributeValueError (a ValueError) for another mode.

    Examples:
      >>> x = wnp.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
      >>> q, r = weft.scipy.linalg.qr(x, mode="economic")
      >>> q.shape, wnp.allclose(q @ r, x, atol=1e-5)
      ((3, 2), Array(True, dtype=bool))
    """
    if mode not in ("full", "economic", "r"):
        raise AttributeValueError(f"[qr] expected mode 'full', 'economic' or 'r'; got {mode!r}")
    result = _qr(_array(a), full=mode != "economic", pivoting=bool(pivoting))
    return result[1:] if mode == "r" else result


@composite(static_argnames=("full", "pivoting"))
def _qr(a, *, full, pivoting):
    require_matrices("qr", a)
    (a,) = _core.promote_dtypes_inexact(a)
    return lax_linalg.qr(a, full_matrices=full, pivoting=pivoting)


def qr_multiply(
    a, c, mode="right", pivoting=False, conjugate=False, overwrite_a=False, overwrite_c=False
):
    """The product of an array with the Q of a = Q R, which has k = min(m, n) columns.

    Args:
      a: array `[..., m, n]`.
      c: array `[..., p, m]` for mode "right", `[..., k, p]` for "left"; or a vector.
      mode: "right" for c Q, "left" for Q c.
      pivoting: whether columns of `a` are reordered, see `qr`.
      conjugate: whether the conjugate of Q takes the place of Q.
      overwrite_a, overwrite_c: no effect.

    Returns:
      Tuple of the product, R `[..., k, n]`, and p `[..., n]` if `pivoting`.

    Raises ShapeError for operands that do not fit, AttributeValueError (a ValueError) for another
    mode.

    Examples:
      >>> x = wnp.array([[1.0, 2.0], [3.0, 4.0]])
      >>> product, r = weft.scipy.linalg.qr_multiply(x, wnp.eye(2))
      >>> wnp.allclose(product @ r, x, atol=1e-5)
      Array(True, dtype=bool)
    """
    if mode not in ("left", "right"):
        raise AttributeValueError(f"[qr_multiply] expected mode 'left' or 'right'; got {mode!r}")
    require_matrices("qr_multiply", a)
    if not ndim_of(c):
        raise ShapeError("[qr_multiply] expected c to be a vector or matrices; got a scalar")
    m, n = shape_of(a)[-2:]
    size = shape_of(c)[-1 if mode == "right" or ndim_of(c) == 1 else -2]
    wanted = m if mode == "right" else min(m, n)
    if size != wanted:
        product = "c Q, c [..., p, m]" if mode == "right" else "Q c, c [..., min(m, n), p]"
        raise ShapeError(
            f"[qr_multiply] expected a [..., m, n] and, for {product}; got shapes {shape_of(a)} "
            f"and {shape_of(c)}"
        )
    return _qr_multiply(
        a, c, left=mode == "left", pivoting=bool(pivoting), conjugate=bool(conjugate)
    )


@composite(static_argnames=("left", "pivoting", "conjugate"))
def _qr_multiply(a, c, *, left, pivoting, conjugate):
    a, c = _core.promote_dtypes_inexact(a, c)
    q, *rest = lax_linalg.qr(a, full_matrices=False, pivoting=pivoting)
    q = jnp.conj(q) if conjugate else q
    return (q @ c if left else c @ q, *rest)


def polar(a, side="right", *, method="qdwh", eps=None, max_iterations=None):
    """Polar decomposition a = U P, or a = P U, with P Hermitian positive semidefinite.

    Args:
      a: array `[..., m, n]`.
      side: "right" for a = U P, "left" for a = P U.
      method: "svd", or "qdwh" for a weighted Halley iteration, which has no derivative in reverse
        mode and needs m >= n for "right", m < n for "left".
      eps: see `weft.lax.linalg.qdwh`; no effect on method "svd".
      max_iterations: how many steps are taken at most, 10 if None; no effect on method "svd".

    Returns:
      Pair of U `[..., m, n]`, with orthonormal columns or rows, and P.

    Raises ShapeError for what is no matrix, AttributeValueError (a ValueError) for another side or
    method, and for integers (DTypeError, a TypeError, if the method is "svd"),
    NotImplementedRuleError for matrices that the method does not take.

    Examples:
      >>> u, p = weft.scipy.linalg.polar(wnp.array([[-2.0, 0.0], [0.0, 3.0]]))
      >>> wnp.allclose(p, wnp.diag(wnp.array([2.0, 3.0])), atol=1e-5)
      Array(True, dtype=bool)
    """
    a = _array(a)
    if ndim_of(a) < 2:
        raise ShapeError(f"[polar] expected matrices [..., m, n]; got shape {shape_of(a)}")
    if side not in ("right", "left"):
        raise AttributeValueError(f"[polar] expected side 'right' or 'left'; got {side!r}")
    if method not in ("qdwh", "svd"):
        raise AttributeValueError(f"[polar] expected method 'qdwh' or 'svd'; got {method!r}")
    if not is_inexact(dtype_of(a)):
        kind = DTypeError if method == "svd" else AttributeValueError
        raise kind(f"[polar] expected a floating-point or complex dtype; got {dtype_of(a)}")
    m, n = shape_of(a)[-2:]
    right = side == "right"
    if method == "svd":
        return _polar_by_svd(a, right=right)
    if right != (m >= n):
        raise NotImplementedRuleError(
            "[polar] expected matrices [..., m, n] with m >= n for side='right', m < n for "
            f"side='left'; got shape {shape_of(a)} and side={side!r}. method='svd' takes all"
        )
    eps = None if eps is None else float(eps)
    return _polar(a, right=right, eps=eps, max_iterations=max_iterations)


@composite(static_argnames=("right",))
def _polar_by_svd(a, *, right):
    left, s, v = decompositions.svd(a, full_matrices=False)
    unitary = left @ v
    if right:
        return unitary, (adjoint(v) * s[..., None, :]) @ v
    return unitary, (left * s[..., None, :]) @ adjoint(left)


@composite(static_argnames=("right", "eps", "max_iterations"))
def _polar(a, *, right, eps, max_iterations):
    (a,) = _core.promote_dtypes_inexact(a)

    def factors(a):
        return lax_linalg.qdwh(a, eps=eps, max_iterations=max_iterations)[:2]

    u, p = jnp.vectorize(factors, signature="(m,n)->(m,n),(n,n)")(a if right else adjoint(a))
    return (u if right else adjoint(u)), p


# ---- to triangular form, or nearly so


def hessenberg(a, *, calc_q=False, overwrite_a=False, check_finite=True):
    """Decomposition a = Q H Q^H with unitary Q; H is zero below the diagonal under the main one.

    On CPU only; has no derivative.

    Args:
      a: array `[..., n, n]` of a floating-point dtype.
      calc_q: whether to return Q.
      overwrite_a, check_finite: no effect.

    Returns:
      H `[..., n, n]`, or the pair of H and Q.

    Examples:
      >>> x = wnp.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 10.0]])
      >>> h, q = weft.scipy.linalg.hessenberg(x, calc_q=True)
      >>> h[2, 0].item(), wnp.allclose(q @ h @ q.T, x, atol=1e-4)
      (0.0, Array(True, dtype=bool))
    """
    return _hessenberg(a, calc_q=bool(calc_q))


@composite(static_argnames=("calc_q",))
def _hessenberg(a, *, calc_q):
    require_matrices("hessenberg", a, square=True)
    n = shape_of(a)[-1]
    if n == 0:
        a = _core.asarray(a)
        return (a, a) if calc_q else a
    packed, taus = lax_linalg.hessenberg(a)
    h = jnp.triu(packed, -1)
    if not calc_q:
        return h
    q = lax_linalg.householder_product(packed[..., 1:, :-1], taus)
    first = jnp.zeros_like(packed[..., :1, 1:])
    q = jnp.concatenate([first, q], -2)
    e = jnp.broadcast_to(jnp.eye(n, 1, dtype=dtype_of(packed)), (*shape_of(packed)[:-1], 1))
    return h, jnp.concatenate([e, q], -1)


def schur(a, output="real"):
    """Decomposition a = Z T Z^H with unitary Z. On CPU only; has no derivative.

    Args:
      a: array `[..., n, n]` of a floating-point dtype.
      output: "complex" for an upper triangular T, complex for real `a` as well; "real" for a T with
        2 x 2 blocks on its diagonal for pairs of complex eigenvalues of a real `a`.

    Returns:
      List of T and Z `[..., n, n]`.

    Raises AttributeValueError (a ValueError) for another `output`.

    Examples:
      >>> x = wnp.array([[1.0, 2.0], [3.0, 4.0]])
      >>> t, z = weft.scipy.linalg.schur(x)
      >>> wnp.allclose(z @ t @ z.T, x, atol=1e-5)
      Array(True, dtype=bool)
    """
    if output not in ("real", "complex"):
        raise AttributeValueError(f"[schur] expected output 'real' or 'complex'; got {output!r}")
    return _schur(a, output=output)


@composite(static_argnames=("output",))
def _schur(a, *, output):
    require_matrices("schur", a, square=True)
    a = _core.asarray(a)
    if output == "complex" and not is_complex(dtype_of(a)):
        a = a.astype(to_complex_dtype(dtype_of(a)))
    return lax_linalg.schur(a)


def rsf2csf(T, Z, check_finite=True):
    """The Schur form with 2 x 2 blocks on the diagonal made triangular, by complex rotations.

    Args:
      T, Z: what `schur` returns, arrays `[..., n, n]`.
      check_finite: no effect.

    Returns:
      Pair of an upper triangular T and a unitary Z with the same Z T Z^H, both complex.

    Raises ShapeError for matrices of different sizes.

    Examples:
      >>> x = wnp.array([[0.0, 1.0], [-1.0, 0.0]])
      >>> t, z = weft.scipy.linalg.rsf2csf(*weft.scipy.linalg.schur(x))
      >>> abs(t[1, 0]).round(3).item(), wnp.allclose(z @ t @ z.conj().T, x, atol=1e-5)
      (0.0, Array(True, dtype=bool))
    """
    for name, x in (("T", T), ("Z", Z)):
        require_matrices(f"rsf2csf of {name}", x, square=True)
    if shape_of(T)[-1] != shape_of(Z)[-1]:
        raise ShapeError(
            f"[rsf2csf] expected T and Z of one size; got shapes {shape_of(T)} and {shape_of(Z)}"
        )
    return _rsf2csf(T, Z)


@composite
def _rsf2csf(T, Z):
    T, Z = _core.promote_dtypes_inexact(T, Z)
    dtype = to_complex_dtype(dtype_of(T))
    function = jnp.vectorize(_rotated, signature="(n,n),(n,n)->(n,n),(n,n)")
    return function(T.astype(dtype), Z.astype(dtype))


def complex_schur(a):
    """The triangular form of a matrix, complex for a real one as well."""
    t, z = lax_linalg.schur(a)
    if is_complex(dtype_of(a)):
        return t, z
    dtype = to_complex_dtype(dtype_of(a))
    return _rotated(t.astype(dtype), z.astype(dtype))


def _rotated(t, z):
    n, dtype = shape_of(t)[0], dtype_of(t)
    row = lax.broadcasted_iota("int32", (n, 1), 0)
    column = row.T
    eps = float(jnp.finfo(dtype).eps)

    def step(k, state):
        t, z = state
        m = n - 1 - k
        block = lax.dynamic_slice(t, (m - 1, m - 1), (2, 2))
        (a, b), (c, d) = ((block[i, 0], block[i, 1]) for i in (0, 1))
        blocked = jnp.abs(c) > eps * (jnp.abs(a) + jnp.abs(d))
        # The first column of the rotation is the eigenvector of a first eigenvalue of the block.
        half = (a - d) / 2
        root = jnp.sqrt(half * half + b * c)
        mu = half + jnp.where(jnp.real(jnp.conj(half) * root) < 0, -root, root)
        size = jnp.hypot(jnp.abs(mu), jnp.abs(c))
        size = jnp.where(blocked, size, 1).astype(dtype)
        cos, sin = jnp.where(blocked, mu / size, 1), jnp.where(blocked, c / size, 0)
        rotation = jnp.array([[jnp.conj(cos), jnp.conj(sin)], [-sin, cos]])
        rows = lax.dynamic_slice(t, (m - 1, 0), (2, n))
        rows = jnp.where(column >= m - 1, rotation @ rows, rows)
        t = lax.dynamic_update_slice(t, rows, (m - 1, 0))
        columns = lax.dynamic_slice(t, (0, m - 1), (n, 2))
        columns = jnp.where(row <= m, columns @ adjoint(rotation), columns)
        t = lax.dynamic_update_slice(t, columns, (0, m - 1))
        columns = lax.dynamic_slice(z, (0, m - 1), (n, 2)) @ adjoint(rotation)
        z = lax.dynamic_update_slice(z, columns, (0, m - 1))
        return t.at[m, m - 1].set(0), z

    if n > 1:
        t, z = control.fori_loop(0, n - 1, step, (t, z))
    return t, z
