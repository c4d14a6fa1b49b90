"""Eigenvalues of tridiagonal matrices."""

import numpy as np

from weft import _core, numpy as jnp
from weft._arguments import shape_of, static_int
from weft._jit import composite
from weft.dtypes import dtype_of, finfo, real_dtype
from weft.errors import AttributeValueError, DTypeError, NotImplementedRuleError, ShapeError
from weft.lax import _control as control
from weft.numpy import _decompositions as decompositions
from weft.numpy._decompositions import adjoint


def eigh_tridiagonal(
    d, e, *, eigvals_only=False, select="a", select_range=None, tol=None, key=None
):
    """Eigenvalues and eigenvectors of a Hermitian matrix with three diagonals.

    Args:
      d: the diagonal `[n]`; float32, float64, complex64 or complex128. Real parts count.
      e: the diagonal below it `[n - 1]`, of the same dtype.
      eigvals_only: whether to return the eigenvalues alone. These come from bisection (Barth,
        Martin and Wilkinson, 1967), and have no derivative in reverse mode.
      select: "a" for all eigenvalues, "i" for those that `select_range` counts.
      select_range: for "i", a pair of the first and the last one, in ascending order from 0.
      tol: eigenvalues found by bisection may be off by as much; None for the precision of the
        dtype. No effect on eigenvectors.
      key: no effect; results are not random.

    Returns:
      Pair of the eigenvalues `[k]`, real and ascending, and of the eigenvectors in the columns of
      `[n, k]`; or the eigenvalues.

    Raises DTypeError for dtypes that differ or are not of 32 or 64 bits, ShapeError for diagonals
    of other sizes.

    Examples:
      >>> diagonal, beside = wnp.array([2.0, 2.0]), wnp.array([1.0])
      >>> weft.scipy.linalg.eigh_tridiagonal(diagonal, beside, eigvals_only=True).round(3)
      Array([1., 3.], dtype=float32)
    """
    d, e = (jnp.asarray(x) for x in (d, e))
    if dtype_of(d) != dtype_of(e):
        raise DTypeError(
            "[eigh_tridiagonal] expected diagonals of one dtype; got "
            f"{dtype_of(d)} and {dtype_of(e)}"
        )
    if dtype_of(d).name not in ("float32", "float64", "complex64", "complex128"):
        raise DTypeError(
            "[eigh_tridiagonal] expected float32, float64, complex64 or complex128; got "
            f"{dtype_of(d)}"
        )
    n = shape_of(d)[0] if len(shape_of(d)) == 1 else -1
    if n < 0 or shape_of(e) != (max(n - 1, 0),):
        raise ShapeError(
            f"[eigh_tridiagonal] expected diagonals [n] and [n - 1]; got shapes {shape_of(d)} and "
            f"{shape_of(e)}"
        )
    first, last = _selected(select, select_range, n)
    if eigvals_only:
        return _eigenvalues(d, e, tol, first=first, last=last)
    return _eigenpairs(d, e, first=first, last=last)


def _selected(select, select_range, n):
    if select == "a":
        return 0, n - 1
    if select == "v":
        raise NotImplementedRuleError(
            "[eigh_tridiagonal] expected select 'a' or 'i'; with 'v' the shape of the result would "
            "depend on values"
        )
    if select != "i":
        raise AttributeValueError(f"[eigh_tridiagonal] expected select 'a' or 'i'; got {select!r}")
    if select_range is None or len(select_range) != 2:
        raise AttributeValueError(
            "[eigh_tridiagonal] expected select_range to be a pair (first, last) for select='i'; "
            f"got {select_range!r}"
        )
    first, last = (static_int(x, "eigh_tridiagonal", "select_range") for x in select_range)
    if not 0 <= first <= last < n:
        raise AttributeValueError(
            f"[eigh_tridiagonal] expected select_range within 0 and {n - 1}; got {select_range}"
        )
    return first, last


@composite(static_argnames=("first", "last"))
def _eigenpairs(d, e, *, first, last):
    matrix = jnp.diag(jnp.real(d).astype(dtype_of(d))) + jnp.diag(e, -1) + adjoint(jnp.diag(e, -1))
    w, v = decompositions.eigh(matrix, symmetrize_input=False)
    return w[first : last + 1], v[:, first : last + 1]


@composite(static_argnames=("first", "last"))
def _eigenvalues(d, e, tol, *, first, last):
    dtype = real_dtype(dtype_of(d))
    d, squares = jnp.real(d), jnp.square(jnp.abs(e))
    n = shape_of(d)[0]
    if n == 0:
        return d
    # The eigenvalues lie within the discs of Gershgorin.
    size = jnp.pad(jnp.abs(e), 1)
    radius = size[1:] + size[:-1]
    low, high = jnp.min(d - radius), jnp.max(d + radius)
    limits = finfo(dtype)
    norm = jnp.maximum(jnp.abs(low), jnp.abs(high))
    least = float(limits.tiny) * jnp.maximum(jnp.max(squares, initial=0), 1)
    rows = (d, jnp.concatenate([jnp.zeros(1, dtype), squares]))
    wanted = jnp.arange(first, last + 1)
    margin = 2 * n * float(limits.eps) * norm + 2 * least

    def count_below(x):
        """How many eigenvalues are less than each x: as many as pivots are negative."""

        def pivot(state, row):
            count, q = state
            q = row[0] - x - row[1] / q
            q = jnp.where(jnp.abs(q) < least, -least, q)
            return (count + (q < 0).astype(count.dtype), q), None

        start = jnp.zeros(shape_of(x), "int32"), jnp.ones(shape_of(x), dtype)
        return control.scan(pivot, start, rows)[0][0]

    def halved(state):
        step, low, high = state
        middle = low + (high - low) / 2
        above = count_below(middle) > wanted
        return step + 1, jnp.where(above, low, middle), jnp.where(above, middle, high)

    if tol is None:
        tol = float(limits.eps) * norm
    tol = jnp.maximum(_core.astype(tol, dtype), least)

    def goes_on(state):
        step, low, high = state
        return (step < limits.bits * 2) & jnp.any(high - low > 2 * tol)

    start = (
        np.int32(0),
        jnp.broadcast_to(low - margin, shape_of(wanted)),
        jnp.broadcast_to(high + margin, shape_of(wanted)),
    )
    _, low, high = control.while_loop(goes_on, halved, start)
    result = low + (high - low) / 2
    return jnp.where(jnp.isfinite(norm), result, jnp.nan)
