"""Systems of linear equations, determinants and inverses."""

from weft import _core, lax, numpy as jnp
from weft._arguments import ndim_of, shape_of
from weft._jit import composite
from weft.dtypes import dtype_of, is_complex, to_complex_dtype
from weft.errors import AttributeValueError, ShapeError
from weft.lax import _control as control, linalg as lax_linalg
from weft.numpy import _solvers as solvers
from weft.numpy._decompositions import adjoint, require_matrices
from weft.scipy.linalg._factors import complex_schur


def det(a, overwrite_a=False, check_finite=True):
    """Determinants `[...]` of square matrices.

    Args:
      a: array `[..., n, n]`.
      overwrite_a, check_finite: no effect.

    Examples:
      >>> weft.scipy.linalg.det(wnp.array([[1.0, 2.0], [3.0, 4.0]])).round(3)
      Array(-2., dtype=float32)
    """
    return solvers.det(a)


def inv(a, overwrite_a=False, check_finite=True):
    """Inverses of square matrices; NaN or infinite for singular ones.

    Args:
      a: array `[..., n, n]`.
      overwrite_a, check_finite: no effect.

    Examples:
      >>> weft.scipy.linalg.inv(wnp.array([[2.0, 0.0], [0.0, 4.0]]))
      Array([[0.5 , 0.  ],
             [0.  , 0.25]], dtype=float32)
    """
    return solvers.inv(a)


def solve(
    a,
    b,
    lower=False,
    overwrite_a=False,
    overwrite_b=False,
    debug=False,
    check_finite=True,
    assume_a="gen",
):
    """The x with a x = b.

    Args:
      a: array `[..., n, n]`.
      b: array `[n]`, a vector for all matrices, or `[..., n, k]`; the leading axes broadcast, but
        are those of `a` if assume_a is "pos".
      lower: which triangle of `a` counts if assume_a is "pos".
      overwrite_a, overwrite_b, debug, check_finite: no effect.
      assume_a: "pos" if `a` is known to be Hermitian positive definite; "gen", "sym" and "her" are
        the same.

    Returns:
      Array `[..., n]` or `[..., n, k]`; NaN or infinite for singular matrices, and NaN for matrices
      that are not positive definite if assume_a is "pos".

    Raises ShapeError for operands of other shapes, AttributeValueError (a ValueError) for another
    `assume_a`.

    Examples:
      >>> a = wnp.array([[2.0, 1.0], [1.0, 3.0]])
      >>> weft.scipy.linalg.solve(a, wnp.array([5.0, 10.0])).round(3)
      Array([1., 3.], dtype=float32)
    """
    if assume_a not in ("gen", "sym", "her", "pos"):
        raise AttributeValueError(
            f"[solve] expected assume_a 'gen', 'sym', 'her' or 'pos'; got {assume_a!r}"
        )
    if assume_a != "pos":
        return solvers.solve(a, b)
    require_matrices("solve", a, square=True)
    if shape_of(b)[: ndim_of(a) - 1] != shape_of(a)[:-1] or ndim_of(b) > ndim_of(a):
        raise ShapeError(
            "[solve] expected, with assume_a='pos', a [..., n, n] and b [..., n] or [..., n, k]; "
            f"got shapes {shape_of(a)} and {shape_of(b)}"
        )
    return _solve_positive(a, b, lower=bool(lower))


@composite(static_argnames=("lower",))
def _solve_positive(a, b, *, lower):
    a, b = _core.promote_dtypes_inexact(a, b)
    is_vector = ndim_of(b) < ndim_of(a)
    # The triangle that counts, mirrored: half of its diagonal comes from either side.
    half = (jnp.tril(a) if lower else jnp.triu(a)) * (
        1 - 0.5 * jnp.eye(shape_of(a)[-1], dtype=dtype_of(a))
    )
    a = half + adjoint(half)
    factor = lax_linalg.cholesky(lax.stop_gradient(a), symmetrize_input=False)

    def solved(_, b):
        return _by_cholesky(factor, b, lower=True)

    x = lax.custom_linear_solve(
        lambda x: a @ x, b[..., None] if is_vector else b, solved, symmetric=True
    )
    return x[..., 0] if is_vector else x


def _by_cholesky(factor, b, lower):
    first = {"transpose_a": not lower, "conjugate_a": not lower}
    second = {"transpose_a": lower, "conjugate_a": lower}
    b = lax_linalg.triangular_solve(factor, b, left_side=True, lower=lower, **first)
    return lax_linalg.triangular_solve(factor, b, left_side=True, lower=lower, **second)


def _aligned(function, a, b):
    """Operands of one dtype and with the same leading axes, and whether b holds vectors.

    It does if it is one, or has the shape of the rows of `a`.
    """
    require_matrices(function, a, square=True)
    is_vector = ndim_of(b) == 1 or shape_of(b) == shape_of(a)[:-1]
    if not ndim_of(b) or shape_of(b)[-1 if is_vector else -2] != shape_of(a)[-1]:
        raise ShapeError(
            f"[{function}] expected matrices [..., n, n] and a right-hand side [..., n] or "
            f"[..., n, k]; got shapes {shape_of(a)} and {shape_of(b)}"
        )
    a, b = _core.promote_dtypes_inexact(a, b)
    b = b[..., None] if is_vector else b
    batch = jnp.broadcast_shapes(shape_of(a)[:-2], shape_of(b)[:-2])
    a, b = (jnp.broadcast_to(x, (*batch, *shape_of(x)[-2:])) for x in (a, b))
    return a, b, is_vector


def solve_triangular(
    a,
    b,
    trans=0,
    lower=False,
    unit_diagonal=False,
    overwrite_b=False,
    debug=None,
    check_finite=True,
):
    """The x with op(a) x = b, for triangular a.

    Args:
      a: array `[..., n, n]`.
      b: array `[n]`, `[..., n]` with all the leading axes of `a`, or `[..., n, k]`, whose leading
        axes broadcast.
      trans: op: 0 or "N" for `a`, 1 or "T" for its transpose, 2 or "C" for its adjoint.
      lower: which triangle of `a` counts.
      unit_diagonal: whether the diagonal of `a` is taken to be ones.
      overwrite_b, debug, check_finite: no effect.

    Returns:
      Array `[..., n]` or `[..., n, k]`.

    Raises AttributeValueError (a ValueError) for another `trans`.

    Examples:
      >>> a = wnp.array([[2.0, 0.0], [1.0, 4.0]])
      >>> weft.scipy.linalg.solve_triangular(a, wnp.array([2.0, 9.0]), lower=True)
      Array([1., 2.], dtype=float32)
    """
    ops = {0: "N", 1: "T", 2: "C", "N": "N", "T": "T", "C": "C"}
    if trans not in ops:
        raise AttributeValueError(
            f"[solve_triangular] expected trans to be 0, 1, 2, 'N', 'T' or 'C'; got {trans!r}"
        )
    return _solve_triangular(
        a, b, op=ops[trans], lower=bool(lower), unit_diagonal=bool(unit_diagonal)
    )


@composite(static_argnames=("op", "lower", "unit_diagonal"))
def _solve_triangular(a, b, *, op, lower, unit_diagonal):
    a, b, is_vector = _aligned("solve_triangular", a, b)
    x = lax_linalg.triangular_solve(
        a,
        b,
        left_side=True,
        lower=lower,
        transpose_a=op != "N",
        conjugate_a=op == "C",
        unit_diagonal=unit_diagonal,
    )
    return x[..., 0] if is_vector else x


def cho_solve(c_and_lower, b, overwrite_b=False, check_finite=True):
    """The x with a x = b, for a that `cho_factor` has factorized.

    Args:
      c_and_lower: the result of `cho_factor`, for matrices `[..., n, n]`.
      b: array `[n]`, `[..., n]` with all the leading axes of the factors, or `[..., n, k]`, whose
        leading axes broadcast.
      overwrite_b, check_finite: no effect.

    Returns:
      Array `[..., n]` or `[..., n, k]`.

    Examples:
      >>> factor = weft.scipy.linalg.cho_factor(wnp.array([[4.0, 2.0], [2.0, 5.0]]))
      >>> weft.scipy.linalg.cho_solve(factor, wnp.array([8.0, 12.0])).round(3)
      Array([1., 2.], dtype=float32)
    """
    c, lower = c_and_lower
    return _cho_solve(c, b, lower=bool(lower))


@composite(static_argnames=("lower",))
def _cho_solve(c, b, *, lower):
    c, b, is_vector = _aligned("cho_solve", c, b)
    x = _by_cholesky(c, b, lower)
    return x[..., 0] if is_vector else x


def lu_solve(lu_and_piv, b, trans=0, overwrite_b=False, check_finite=True):
    """The x with op(a) x = b, for a that `lu_factor` has factorized.

    Args:
      lu_and_piv: the result of `lu_factor`, for matrices `[..., n, n]`.
      b: array `[n]`, `[..., n]` with all the leading axes of the factors, or `[..., n, k]`, whose
        leading axes broadcast.
      trans: op: 0 for `a`, 1 for its transpose, 2 for its adjoint.
      overwrite_b, check_finite: no effect.

    Returns:
      Array `[..., n]` or `[..., n, k]`.

    Raises AttributeValueError (a ValueError) for another `trans`.

    Examples:
      >>> factors = weft.scipy.linalg.lu_factor(wnp.array([[1.0, 2.0], [4.0, 4.0]]))
      >>> weft.scipy.linalg.lu_solve(factors, wnp.array([5.0, 12.0])).round(3)
      Array([1., 2.], dtype=float32)
    """
    if trans not in (0, 1, 2):
        raise AttributeValueError(f"[lu_solve] expected trans to be 0, 1 or 2; got {trans!r}")
    lu, pivots = lu_and_piv
    return _lu_solve(lu, pivots, b, trans=int(trans))


@composite(static_argnames=("trans",))
def _lu_solve(lu, pivots, b, *, trans):
    if shape_of(pivots) != shape_of(lu)[:-1]:
        raise ShapeError(
            "[lu_solve] expected factors [..., n, n] and row swaps [..., n]; got shapes "
            f"{shape_of(lu)} and {shape_of(pivots)}"
        )
    lu, b, is_vector = _aligned("lu_solve", lu, b)
    permutation = lax_linalg.lu_pivots_to_permutation(pivots, shape_of(lu)[-1])
    if trans:
        permutation = jnp.argsort(permutation, -1)
    permutation = jnp.broadcast_to(permutation, shape_of(lu)[:-1])[..., None]
    options = {"left_side": True, "transpose_a": trans > 0, "conjugate_a": trans == 2}

    def lower(b):
        return lax_linalg.triangular_solve(lu, b, lower=True, unit_diagonal=True, **options)

    def upper(b):
        return lax_linalg.triangular_solve(lu, b, **options)

    if trans:
        x = jnp.take_along_axis(lower(upper(b)), permutation, -2)
    else:
        x = upper(lower(jnp.take_along_axis(b, permutation, -2)))
    return x[..., 0] if is_vector else x


def solve_sylvester(A, B, C, *, method="schur", tol=1e-08):
    """The X with A X + X B = C, by the algorithm of Bartels and Stewart (1972). On CPU only.

    Args:
      A, B, C: arrays `[..., m, m]`, `[..., n, n]` and `[..., m, n]`.
      method: "schur" for triangular forms, "eigen" for diagonal ones, of matrices that have them.
      tol: where an eigenvalue of `A` and one of `B` sum up to less, there is no unique solution.

    Returns:
      Array `[..., m, n]`; NaN where there is no unique solution.

    Raises ShapeError for matrices that do not fit, AttributeValueError (a ValueError) for another
    method.

    Examples:
      >>> a, b, c = wnp.diag(wnp.array([1.0, 2.0])), wnp.eye(2), wnp.ones((2, 2))
      >>> weft.scipy.linalg.solve_sylvester(a, b, c).round(3)
      Array([[0.5  , 0.5  ],
             [0.333, 0.333]], dtype=float32)
    """
    if method not in ("schur", "eigen"):
        raise AttributeValueError(
            f"[solve_sylvester] expected method 'schur' or 'eigen'; got {method!r}"
        )
    shapes = [shape_of(x) for x in (A, B, C)]
    a, b, c = shapes
    if min(map(len, shapes)) < 2 or a[-1] != a[-2] or b[-1] != b[-2] or c[-2:] != (a[-1], b[-1]):
        raise ShapeError(
            "[solve_sylvester] expected A [..., m, m], B [..., n, n] and C [..., m, n]; got shapes "
            f"{a}, {b} and {c}"
        )
    return _solve_sylvester(A, B, C, tol, method=method)


@composite(static_argnames=("method",))
def _solve_sylvester(a, b, c, tol, *, method):
    a, b, c = _core.promote_dtypes_inexact(a, b, c)
    solve = _sylvester_by_schur if method == "schur" else _sylvester_by_eig

    def solved(a, b, c):
        def equation(x):
            return a @ x + x @ b

        # The matrices of the equation and of the transposed one have the same eigenvalues.
        return lax.custom_linear_solve(
            equation,
            c,
            lambda _, c: solve(lax.stop_gradient(a), lax.stop_gradient(b), c, tol),
            lambda _, c: solve(lax.stop_gradient(a.T), lax.stop_gradient(b.T), c, tol),
        )

    return jnp.vectorize(solved, signature="(m,m),(n,n),(m,n)->(m,n)")(a, b, c)


def _unique(x, sums, tol, dtype):
    """The solution, NaN if a sum of eigenvalues counts as zero; real if the dtype is."""
    result = jnp.where(jnp.any(jnp.abs(sums) < tol), jnp.nan, x)
    return result.astype(dtype) if is_complex(dtype) else jnp.real(result).astype(dtype)


def _sylvester_by_schur(a, b, c, tol):
    dtype = dtype_of(c)
    wide = to_complex_dtype(dtype)
    (r, u), (s, v) = complex_schur(a), complex_schur(b)
    f = adjoint(u) @ c.astype(wide) @ v
    m, n = shape_of(c)
    diagonal = jnp.eye(m, dtype=wide)

    def column(k, y):
        # R Y + Y S = F, column by column.
        rhs = f[:, k] - y @ s[:, k]
        x = lax_linalg.triangular_solve(r + s[k, k] * diagonal, rhs, left_side=True)
        return y.at[:, k].set(x)

    y = control.fori_loop(0, n, column, jnp.zeros_like(f)) if n else f
    sums = jnp.diagonal(r)[:, None] + jnp.diagonal(s)[None, :]
    return _unique(u @ y @ adjoint(v), sums, tol, dtype)


def _sylvester_by_eig(a, b, c, tol):
    dtype = dtype_of(c)
    r, u = jnp.linalg.eig(a)
    s, v = jnp.linalg.eig(b)
    sums = r[:, None] + s[None, :]
    y = solvers.solve(u, c.astype(dtype_of(u)) @ v) / sums
    # X = U Y V^-1, by the transposed system.
    x = u @ jnp.matrix_transpose(solvers.solve(v.T, y.T))
    return _unique(x, sums, tol, dtype)
