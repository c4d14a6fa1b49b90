"""Functions of square matrices."""

import functools

from weft import _core, lax, numpy as jnp
from weft._arguments import shape_of, static_int
from weft._autodiff import jvp
from weft._jit import composite
from weft.dtypes import dtype_of, finfo, is_inexact, itemsize_bits, real_dtype, to_complex_dtype
from weft.errors import DTypeError, NotImplementedRuleError, ShapeError
from weft.lax import _control as control, linalg as lax_linalg
from weft.numpy._decompositions import adjoint, require_matrices
from weft.scipy.linalg._factors import complex_schur

# Coefficients of the numerators of Pade approximants of exp, and norms up to which they are exact
# to the precision of their dtype (Higham, "The scaling and squaring method for the matrix
# exponential revisited", 2005).
_PADE = {
    32: (
        (17297280.0, 8648640.0, 1995840.0, 277200.0, 25200.0, 1512.0, 56.0, 1.0),
        3.925724783138660,
    ),
    64: (
        (64764752532480000.0, 32382376266240000.0, 7771770303897600.0, 1187353796428800.0,
         129060195264000.0, 10559470521600.0, 670442572800.0, 33522128640.0, 1323241920.0,
         40840800.0, 960960.0, 16380.0, 182.0, 1.0),
        5.371920351148152,
    ),
}  # fmt: skip


def expm(A, *, upper_triangular=False, max_squarings=16):
    """The exponentials of square matrices, by a Pade approximant, scaling and squaring.

    Args:
      A: array `[..., n, n]`.
      upper_triangular: whether `A` is known to be upper triangular.
      max_squarings: how often the approximant is squared at most.

    Returns:
      Array of the shape of `A` and of a floating-point dtype; NaN for matrices that need more
      squarings.

    Raises DTypeError for floats of other than 32 or 64 bits.

    Examples:
      >>> weft.scipy.linalg.expm(wnp.array([[0.0, 3.0], [0.0, 0.0]])).round(3)
      Array([[1., 3.],
             [0., 1.]], dtype=float32)
    """
    require_matrices("expm", A, square=True)
    if is_inexact(dtype_of(A)) and itemsize_bits(dtype_of(A)) < 32:
        raise DTypeError(
            f"[expm] expected float32, float64, complex64 or complex128; got {dtype_of(A)}"
        )
    count = static_int(max_squarings, "expm", "max_squarings")
    return _expm(A, upper_triangular=bool(upper_triangular), max_squarings=count)


@composite(static_argnames=("upper_triangular", "max_squarings"))
def _expm(a, *, upper_triangular, max_squarings):
    (a,) = _core.promote_dtypes_inexact(a)
    if 0 in shape_of(a):
        return a
    real = real_dtype(dtype_of(a))
    coefficients, limit = _PADE[itemsize_bits(real)]

    def exponential(a):
        norm = jnp.max(jnp.sum(jnp.abs(a), 0))
        needed = jnp.log2(lax.stop_gradient(norm) / limit)
        squarings = jnp.maximum(jnp.ceil(needed), 0)
        scale = jnp.exp2(-jnp.minimum(squarings, max(max_squarings, 0)))
        p, q = _pade(a * scale.astype(dtype_of(a)), coefficients)
        if upper_triangular:
            result = lax_linalg.triangular_solve(q, p, left_side=True)
        else:
            result = jnp.linalg.solve(q, p)

        def squared(result, i):
            return control.cond(i < squarings, lambda x: x @ x, lambda x: x, result), None

        if max_squarings > 0:
            steps = jnp.arange(max_squarings, dtype=real)
            result, _ = control.scan(squared, result, steps)
        # Up to twice the limit the approximant still serves.
        return jnp.where(jnp.floor(needed) <= max_squarings, result, jnp.nan)

    return jnp.vectorize(exponential, signature="(n,n)->(n,n)")(a)


def _pade(a, coefficients):
    """Numerator and denominator: the even powers of `a`, plus and minus the odd ones."""
    identity = jnp.eye(shape_of(a)[0], dtype=dtype_of(a))
    square = a @ a
    powers = [identity, square]
    while 2 * len(powers) < len(coefficients):
        powers.append(powers[-1] @ square)

    def weighted(weights):
        return sum(w * power for w, power in zip(weights, powers, strict=True))

    even, odd = weighted(coefficients[::2]), a @ weighted(coefficients[1::2])
    return even + odd, even - odd


def expm_frechet(A, E, *, method=None, compute_expm=True):
    """The exponentials of matrices, and their derivatives in given directions.

    Args:
      A: array `[..., n, n]`.
      E: the directions, of the type of `A`.
      method: no effect.
      compute_expm: whether to return the exponentials.

    Returns:
      Pair of the exponentials and the derivatives, or the derivatives, of the type of `A`.

    Raises ShapeError for `A` and `E` of different shapes.

    Examples:
      >>> value, derivative = weft.scipy.linalg.expm_frechet(wnp.zeros((2, 2)), wnp.eye(2))
      >>> derivative.round(3)
      Array([[1., 0.],
             [0., 1.]], dtype=float32)
    """
    require_matrices("expm_frechet", A, square=True)
    if shape_of(A) != shape_of(E):
        raise ShapeError(
            "[expm_frechet] expected A and E of one shape; got shapes "
            f"{shape_of(A)} and {shape_of(E)}"
        )
    return _expm_frechet(A, E, compute_expm=bool(compute_expm))


@composite(static_argnames=("compute_expm",))
def _expm_frechet(a, e, *, compute_expm):
    both = jvp(expm, (a,), (e,))
    return both if compute_expm else both[1]


def funm(A, func, disp=True):
    """A function of a square matrix, by the recurrence of Parlett (1976). On CPU only.

    It is inexact for matrices whose eigenvalues are close to each other.

    Args:
      A: array `[n, n]` of a floating-point dtype.
      func: the function of scalars, on arrays, elementwise.
      disp: whether to return the result alone, without the estimate of its error.

    Returns:
      Complex array `[n, n]`; or the pair of it and of an estimate of the error in the 1-norm.

    Raises ShapeError for other than a square matrix.

    Examples:
      >>> x = wnp.diag(wnp.array([1.0, 4.0]))
      >>> weft.scipy.linalg.funm(x, wnp.sqrt).real.round(3)
      Array([[1., 0.],
             [0., 2.]], dtype=float32)
    """
    shape = shape_of(A)
    if len(shape) != 2 or shape[0] != shape[1]:
        raise ShapeError(f"[funm] expected a square matrix; got shape {shape}")
    result, error = composite(functools.partial(_funm, func=func))(A)
    return result if disp else (result, error)


def _funm(a, func):
    t, z = complex_schur(a)
    n, dtype = shape_of(t)[0], dtype_of(t)
    row = jnp.arange(n)
    values = func(jnp.diagonal(t))

    def column(j, f):
        # T F = F T, and above the diagonal of its column j: (T - T_jj) x = (F - F_jj) t.
        above = row < j
        shifted = t - t[j, j] * jnp.eye(n, dtype=dtype)
        rhs = jnp.where(above, f @ jnp.where(above, t[:, j], 0) - f[j, j] * t[:, j], 0)
        return f.at[:, j].add(_solve_above(shifted, rhs, above, -1))

    f = control.fori_loop(0, n, column, jnp.diag(values.astype(dtype))) if n else t
    gaps = jnp.diagonal(t)[None, :] - jnp.diagonal(t)[:, None]
    gaps = jnp.where((row[:, None] < row) & (gaps != 0), jnp.abs(gaps), jnp.inf)
    least = jnp.min(gaps, initial=jnp.abs(t[0, 0])) if n else 1.0
    eps = float(finfo(dtype).eps)
    least = jnp.where(least == 0, eps, least)
    norm = jnp.max(jnp.sum(jnp.abs(jnp.triu(t, 1)), 0), initial=0)
    error = jnp.minimum(1, jnp.maximum(eps, eps / least * norm))
    error = jnp.where(jnp.all(jnp.isfinite(f)), error, jnp.inf)
    return z @ f @ adjoint(z), error.astype(real_dtype(dtype))


def _solve_above(t, rhs, above, for_zero):
    """The x with t x = rhs in the leading rows `above`, zero elsewhere; t is upper triangular.

    In place of zeros on the diagonal stands `for_zero`.
    """
    n = shape_of(t)[0]
    diagonal = jnp.diagonal(t)
    fixed = jnp.where(above & (diagonal != 0), diagonal, for_zero)
    t = jnp.where(above[:, None] & above[None, :], t, 0)
    t = jnp.where(jnp.eye(n, dtype=bool), fixed[:, None], t)
    return lax_linalg.triangular_solve(t, rhs, left_side=True)


def sqrtm(A, blocksize=1):
    """The principal square roots of matrices, by the method of Bjorck and Hammarling (1983).

    On CPU only.

    Args:
      A: array `[..., n, n]`.
      blocksize: 1.

    Returns:
      Complex array `[..., n, n]`; NaN for matrices without a square root, that are singular.

    Raises NotImplementedRuleError for another `blocksize` than 1.

    Examples:
      >>> root = weft.scipy.linalg.sqrtm(wnp.array([[2.0, 1.0], [1.0, 1.0]]))
      >>> (root @ root).real.round(3)
      Array([[2., 1.],
             [1., 1.]], dtype=float32)
    """
    if blocksize > 1:
        raise NotImplementedRuleError(f"[sqrtm] expected blocksize=1; got {blocksize!r}")
    return _sqrtm(A)


@composite
def _sqrtm(a):
    require_matrices("sqrtm", a, square=True)
    (a,) = _core.promote_dtypes_inexact(a)
    a = a.astype(to_complex_dtype(dtype_of(a)))
    return jnp.vectorize(_root, signature="(n,n)->(n,n)")(a)


def _root(a):
    t, z = lax_linalg.schur(a)
    n, dtype = shape_of(t)[0], dtype_of(t)
    row = jnp.arange(n)

    def column(j, root):
        # R R = T, and above the diagonal of its column j: (R + R_jj) x = t.
        above = row < j
        shifted = root + root[j, j] * jnp.eye(n, dtype=dtype)
        x = _solve_above(shifted, jnp.where(above, t[:, j], 0), above, 1)
        undefined = above & (jnp.diagonal(shifted) == 0) & (x != 0)
        return root.at[:, j].add(jnp.where(undefined, jnp.nan, x))

    root = jnp.diag(jnp.sqrt(jnp.diagonal(t)))
    root = control.fori_loop(0, n, column, root) if n else root
    return z @ root @ adjoint(z)
