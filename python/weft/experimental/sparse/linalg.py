"""Linear systems and eigenvalues of sparse matrices."""

import numpy as np

from weft import _core, lax, numpy as wnp
from weft._callback import pure_callback
from weft._surface import open_to_users as _open_to_users, public as _public
from weft._types.avals import ShapeDtypeStruct
from weft.errors import ShapeError
from weft.experimental.sparse._base import is_sparse
from weft.experimental.sparse.bcsr import BCSR

__all__ = ["lobpcg_standard", "spsolve"]
__getattr__, __dir__ = _public(__name__, __all__)


def spsolve(data, indices, indptr, b, tol=1e-6, reorder=1):
    """The x with A x = b for a sparse square matrix A, by a direct method.

    SciPy solves the system on the host: a program that calls this runs on CPUs. Derivatives by
    `data` and `b` are those of the solution.

    Args:
      data, indices, indptr: vectors, A by rows, as of BCSR. float32 or float64.
      b: array (n,) or (n, k).
      tol: no effect.
      reorder: int: 0 keeps the order of the columns, others let SciPy find one that keeps factors
        sparse.

    Raises ShapeError if these do not fit. A singular matrix gives NaN or infinities.

    Examples:
      >>> from weft.experimental import sparse
      >>> a = sparse.BCSR.fromdense(wnp.array([[4.0, 1.0], [0.0, 2.0]]))
      >>> sparse.linalg.spsolve(a.data, a.indices, a.indptr, wnp.array([6.0, 4.0]))
      Array([1., 2.], dtype=float32)
    """
    del tol
    data, b = _core.promote_dtypes_inexact(data, b)
    n = indptr.shape[0] - 1
    if b.ndim not in (1, 2) or b.shape[0] != n:
        raise ShapeError(
            f"[spsolve] expected b of shape ({n},) or ({n}, k) beside an indptr of shape "
            f"{indptr.shape}; got {b.shape}"
        )
    order = "NATURAL" if reorder == 0 else "COLAMD"

    def solver(transposed):
        solve = _SOLVERS[transposed, order]

        def solved(_, b):
            result = ShapeDtypeStruct(b.shape, b.dtype)
            args = (lax.stop_gradient(data), indices, indptr, b)
            return pure_callback(solve, result, *args, vmap_method="sequential")

        return solved

    mat = BCSR((data, indices, indptr), shape=(n, n)).to_bcoo()
    return lax.custom_linear_solve(
        lambda x: mat @ x, b, solver(False), transpose_solve=solver(True)
    )


def _solver(transposed, order):
    def solve(data, indices, indptr, b):
        import scipy.sparse  # on the host, where a system is solved

        data, indices, indptr, b = map(np.asarray, (data, indices, indptr, b))
        n = len(indptr) - 1
        mat = scipy.sparse.csr_matrix((data[: indptr[-1]], indices[: indptr[-1]], indptr), (n, n))
        mat = mat.T.tocsc() if transposed else mat.tocsc()
        try:
            found = scipy.sparse.linalg.splu(mat, permc_spec=order).solve(b)
        except RuntimeError:  # exactly singular
            found = np.full(b.shape, np.nan)
        return found.astype(b.dtype, copy=False)

    return solve


# Programs that call one function are one program.
_SOLVERS = {(t, order): _solver(t, order) for t in (False, True) for order in ("NATURAL", "COLAMD")}


def lobpcg_standard(A, X, m=100, tol=None):
    """The largest eigenvalues of a symmetric matrix, with their vectors, by LOBPCG.

    The method of Knyazev (2001) without preconditioner: in each step the best vectors of the space
    that the present ones, their residuals and the last step span, in an orthonormal basis of it.

    Args:
      A: positive semidefinite matrix, dense or sparse; or a function that multiplies a matrix of
        shape (n, k) by it.
      X: matrix (n, k), where to start: k linearly independent vectors, with 5 k < n.
      m: int, the most steps.
      tol: a vector has converged when the norm of its residual is at most `tol` times n times the
        sum of the norm of A, as far as it shows, and the eigenvalue; None for the precision of the
        dtype.

    Returns (eigenvalues (k,) from the largest on, vectors (n, k), the number of steps).

    Raises ShapeError for an X that is too wide.
    """
    (X,) = _core.promote_dtypes_inexact(X)
    if X.ndim != 2 or not 0 < 5 * X.shape[1] < X.shape[0]:
        raise ShapeError(
            f"[lobpcg_standard] expected X of shape (n, k) with 0 < 5 k < n; got {X.shape}"
        )
    if not callable(A):
        if not is_sparse(A):
            A = wnp.asarray(A)
        if tuple(A.shape) != (X.shape[0], X.shape[0]):
            raise ShapeError(
                f"[lobpcg_standard] expected A of shape {(X.shape[0], X.shape[0])}; got {A.shape}"
            )
        matrix = A
        A = lambda x: matrix @ x
    return _lobpcg(A, X, m, wnp.finfo(X.dtype).eps if tol is None else tol)


def _lobpcg(multiply, X, m, tol):
    n, k = X.shape
    scale = wnp.asarray(n, X.dtype)

    def ritz(basis):
        """(values, coordinates) of the k best vectors in a basis, whose columns may be zero."""
        small = basis.T @ multiply(basis)
        # Columns of zeros have eigenvalues below all others.
        absent = (wnp.abs(basis).sum(0) == 0) * (1 + 2 * wnp.abs(small).sum())
        values, coordinates = wnp.linalg.eigh((small + small.T) / 2 - wnp.diag(absent))
        return values[::-1][:k], coordinates[:, ::-1][:, :k]

    def residual(X, values):
        AX = multiply(X)
        return AX - X * values, wnp.linalg.norm(AX, axis=0)

    def unfinished(X, values):
        R, norms = residual(X, values)
        bound = tol * scale * (norms.max() + wnp.abs(values))
        return wnp.linalg.norm(R, axis=0) > bound

    def step(state):
        i, X, P, values, _ = state
        R, _ = residual(X, values)
        others = _orthonormal(_without(wnp.concatenate([R, P], 1), X), X)
        basis = wnp.concatenate([X, others], 1)
        values, c = ritz(basis)
        new = basis @ c
        # The part of the step that leaves the present vectors.
        P = others @ c[k:]
        new = wnp.linalg.qr(new)[0]
        return i + 1, new, P, values, unfinished(new, values).any()

    X = wnp.linalg.qr(X)[0]
    values, c = ritz(X)
    X = X @ c
    state = (0, X, wnp.zeros_like(X), values, unfinished(X, values).any())
    i, X, _, values, _ = lax.while_loop(lambda s: (s[0] < m) & s[4], step, state)
    return values, X, i


def _without(S, X):
    """Columns without their parts along those of X; twice, since once leaves rounding errors."""
    for _ in range(2):
        S = S - X @ (X.T @ S)
    return S


def _orthonormal(S, X):
    """An orthonormal basis of the columns of S; zeros where they are linearly dependent."""
    norms = wnp.linalg.norm(S, axis=0)
    S = wnp.where(norms > 0, S / wnp.where(norms > 0, norms, 1), 0)
    values, vectors = wnp.linalg.eigh(S.T @ S)
    kept = values > values[-1] * wnp.finfo(S.dtype).eps * 10 * S.shape[1]
    basis = wnp.where(kept, S @ vectors / wnp.sqrt(wnp.where(kept, values, 1)), 0)
    basis = _without(basis, X)
    norms = wnp.linalg.norm(basis, axis=0)
    return wnp.where(norms > 0.5, basis / wnp.where(norms > 0.5, norms, 1), 0)


_open_to_users(__name__)
