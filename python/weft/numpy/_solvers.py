"""Determinants, inverses, and systems of linear equations."""

import math
from typing import NamedTuple

from weft import _core
from weft._arguments import ndim_of, normalize_axes, shape_of, static_int, weak_as
from weft._custom_rules import custom_jvp
from weft._jit import composite
from weft.dtypes import default_int, dtype_of, finfo, is_complex, real_dtype
from weft.errors import AttributeValueError, NotImplementedRuleError, ShapeError
from weft.lax import linalg as lax_linalg
from weft.lax._creation import broadcasted_iota
from weft.lax._elementwise import stop_gradient
from weft.lax._shape import broadcast_shapes
from weft.lax._solve import custom_linear_solve
from weft.numpy import _reductions as r, _ufuncs as u
from weft.numpy._decompositions import adjoint, eigvalsh, require_matrices, svd, svdvals
from weft.numpy._linalg import dot, matmul
from weft.numpy._matrices import diagonal, eye
from weft.numpy._select import choose
from weft.numpy._shape import expand_dims, moveaxis, reshape
from weft.numpy._take import take_along_axis


class SlogdetResult(NamedTuple):
    """What `slogdet` returns."""

    sign: _core.Array
    logabsdet: _core.Array


# ---- determinants


@composite
def det(a):
    """Determinants `[...]` of square matrices `[..., n, n]`.

    Examples:
      >>> wnp.linalg.det(wnp.array([[1.0, 2.0], [3.0, 4.0]])).round(3)
      Array(-2., dtype=float32)
    """
    require_matrices("det", a, square=True)
    (a,) = _core.promote_dtypes_inexact(a)
    return _SMALL.get(shape_of(a)[-1], _large_det)(a)


def _small_det(a):
    """By the minors of the first row."""
    n = shape_of(a)[-1]
    if n == 0:
        return _core.broadcast_to(_core.astype(1, dtype_of(a)), shape_of(a)[:-2])

    def minor(rows, columns):
        if len(rows) == 1:
            return a[..., rows[0], columns[0]]
        total = None
        for i, column in enumerate(columns):
            others = [c for c in columns if c != column]
            term = u.multiply(a[..., rows[0], column], minor(rows[1:], others))
            total = term if total is None else (u.subtract if i % 2 else u.add)(total, term)
        return total

    return minor(range(n), range(n))


@custom_jvp
def _large_det(a):
    factors, pivots, _ = lax_linalg.lu(a)
    return u.multiply(_parity(pivots, dtype_of(a)), r.prod(_diagonal(factors), -1))


@_large_det.defjvp
def _large_det_jvp(primals, tangents):
    # d det(A) = trace(adj(A) dA). Of A = P^T L U the adjugate is det(P) adj(U) L^-1 P, which is
    # there for singular matrices too: U adj(U) = det(U), where the one zero pivot is the last one.
    # It is that if the column whose pivot is least comes last.
    (a,), (da,) = primals, tangents
    n, dtype = shape_of(a)[-1], dtype_of(a)
    factors, pivots, _ = lax_linalg.lu(a)
    pivot = _diagonal(factors)
    result = u.multiply(_parity(pivots, dtype), r.prod(pivot, -1))
    least = r.argmin(u.absolute(pivot), -1, keepdims=True)
    places = broadcasted_iota(dtype_of(least), (n,), 0)
    swapped = choose(u.equal(places, n - 1), least, choose(u.equal(places, least), n - 1, places))
    a, da = (take_along_axis(x, swapped[..., None, :], -1) for x in (a, da))
    factors, pivots, permutation = lax_linalg.lu(a)
    sign = choose(u.equal(least[..., 0], n - 1), 1, -1)
    sign = u.multiply(_parity(pivots, dtype), _core.astype(sign, dtype))
    pivot = _diagonal(factors)
    is_last = u.equal(places, n - 1)
    leading = r.prod(pivot[..., :-1], -1, keepdims=True)
    scale = choose(is_last, leading, u.multiply(leading, pivot[..., -1:]))
    # Other zero pivots are of matrices whose adjugate is zero.
    divisor = choose(u.logical_or(is_last, u.equal(pivot, 0)), 1, pivot)
    difference = u.multiply(u.subtract(divisor, pivot)[..., None], eye(n, dtype=dtype))
    rows = take_along_axis(da, permutation[..., None], -2)
    product = _triangular(factors, rows, lower=True, unit_diagonal=True)
    # trace(U^-1 S X) for X = L^-1 P dA is that of S X U^-1.
    product = u.multiply(scale[..., None], product)
    product = _triangular(u.add(factors, difference), product, left_side=False)
    return result, u.multiply(sign, r.sum(_diagonal(product), -1))


_SMALL = dict.fromkeys(range(4), _small_det)


def _diagonal(x):
    return diagonal(x, 0, -2, -1)


def _parity(pivots, dtype):
    """1 or -1: the determinant of the permutation that row swaps amount to."""
    places = _core.bind(
        "iota", dtype=dtype_of(pivots), shape=shape_of(pivots), dimension=ndim_of(pivots) - 1
    )
    swaps = r.sum(u.not_equal(pivots, places), -1)
    return _core.astype(u.subtract(1, u.multiply(2, u.bitwise_and(swaps, 1))), dtype)


def _triangular(a, b, *, left_side=True, **options):
    return lax_linalg.triangular_solve(a, b, left_side=left_side, **options)


def slogdet(a, *, method=None):
    """Signs and logarithms of the absolute values of determinants.

    Args:
      a: array `[..., n, n]`.
      method: "lu" (or None) or "qr": no effect, the result comes from an LU decomposition.

    Returns:
      SlogdetResult of the signs `[...]` (of absolute value 1 for complex matrices) and the
      logarithms `[...]`; 0 and -inf for singular matrices.

    Raises AttributeValueError (a ValueError) for another method, NotImplementedRuleError for
    complex matrices and "qr".

    Examples:
      >>> sign, logdet = wnp.linalg.slogdet(wnp.array([[0.0, 2.0], [3.0, 0.0]]))
      >>> sign, wnp.exp(logdet).round(3)
      (Array(-1., dtype=float32), Array(6., dtype=float32))
    """
    if method not in (None, "lu", "qr"):
        raise AttributeValueError(
            f"[slogdet] expected method to be 'lu', 'qr' or None; got {method!r}"
        )
    if method == "qr" and is_complex(dtype_of(a)):
        raise NotImplementedRuleError("[slogdet] expected real matrices for method 'qr'")
    return _slogdet(a)


@composite
def _slogdet(a):
    require_matrices("slogdet", a, square=True)
    (a,) = _core.promote_dtypes_inexact(a)
    factors, pivots, _ = lax_linalg.lu(a)
    pivot = _diagonal(factors)
    sign = u.multiply(_parity(pivots, dtype_of(a)), r.prod(u.sign(pivot), -1))
    return SlogdetResult(weak_as(sign, a), weak_as(r.sum(u.log(u.absolute(pivot)), -1), u.real(a)))


# ---- systems of equations


@composite
def solve(a, b):
    """The x with a x = b.

    Args:
      a: array `[..., n, n]`.
      b: array `[n]`, a vector for all matrices, or `[..., n, k]`; the leading axes broadcast.

    Returns:
      Array `[..., n]` or `[..., n, k]`; NaN or infinite for singular matrices.

    Raises ShapeError for operands of other shapes.

    Examples:
      >>> wnp.linalg.solve(wnp.array([[2.0, 1.0], [0.0, 4.0]]), wnp.array([4.0, 8.0])).round(3)
      Array([1., 2.], dtype=float32)
    """
    require_matrices("solve", a, square=True)
    a_shape, b_shape = shape_of(a), shape_of(b)
    is_vector = len(b_shape) == 1
    if not b_shape or a_shape[-1] != b_shape[-1 if is_vector else -2]:
        raise ShapeError(
            f"[solve] expected a [..., n, n] and b [n] or [..., n, k]; got shapes {a_shape} and "
            f"{b_shape}"
        )
    a, b = _core.promote_dtypes_inexact(a, b)
    x = _solve(a, expand_dims(b, -1) if is_vector else b)
    return x[..., 0] if is_vector else x


def _solve(a, b):
    """The x with a x = b, for arrays of matrices."""
    batch = broadcast_shapes(shape_of(a)[:-2], shape_of(b)[:-2])
    factors, _, permutation = lax_linalg.lu(stop_gradient(a))
    inverse = _inverse_permutation(permutation)
    b = _core.broadcast_to(b, (*batch, *shape_of(b)[-2:]))
    factors = _core.broadcast_to(factors, (*batch, *shape_of(a)[-2:]))
    permutation, inverse = (
        _core.broadcast_to(x[..., None], (*batch, shape_of(a)[-1], 1))
        for x in (permutation, inverse)
    )

    def straight(_, b):
        y = take_along_axis(b, permutation, -2)
        return _triangular(factors, _triangular(factors, y, lower=True, unit_diagonal=True))

    def transposed(_, b):
        y = _triangular(factors, b, transpose_a=True)
        y = _triangular(factors, y, lower=True, unit_diagonal=True, transpose_a=True)
        return take_along_axis(y, inverse, -2)

    return custom_linear_solve(lambda x: matmul(a, x), b, straight, transposed)


def _inverse_permutation(order):
    """Where 0, 1, ... stand in permutations `[..., n]`: each is compared with all."""
    shape, dtype = (*shape_of(order), shape_of(order)[-1]), dtype_of(order)
    axis = len(shape) - 1
    is_there = u.equal(order[..., None, :], broadcasted_iota(dtype, shape, axis - 1))
    return r.sum(choose(is_there, broadcasted_iota(dtype, shape, axis), 0), -1, dtype=dtype)


@composite
def inv(a):
    """Inverses of square matrices `[..., n, n]`; NaN or infinite for singular ones.

    Examples:
      >>> wnp.linalg.inv(wnp.array([[2.0, 1.0], [1.0, 1.0]])).round(3)
      Array([[ 1., -1.],
             [-1.,  2.]], dtype=float32)
    """
    require_matrices("inv", a, square=True)
    (a,) = _core.promote_dtypes_inexact(a)
    return _solve(a, eye(shape_of(a)[-1], dtype=dtype_of(a)))


def tensorinv(a, ind=2):
    """The inverse of the linear map that `tensordot(a, x, ...)` is.

    Args:
      a: array whose first `ind` axes have as many elements as the others.
      ind: how many axes the results of the map have.

    Returns:
      Array with the axes of `a` from `ind` on, then the first ones.

    Raises ShapeError unless both groups of axes have as many elements, AttributeValueError (a
    ValueError) for an `ind` less than 1.

    Examples:
      >>> a = wnp.eye(6).reshape(2, 3, 6)
      >>> wnp.linalg.tensorinv(a).shape
      (6, 2, 3)
    """
    ind, shape = static_int(ind, "tensorinv", "ind"), shape_of(a)
    if ind < 1:
        raise AttributeValueError(f"[tensorinv] expected ind of at least 1; got {ind}")
    if math.prod(shape[:ind]) != math.prod(shape[ind:]):
        raise ShapeError(
            f"[tensorinv] expected as many elements in the first {ind} axes as in the others; got "
            f"shape {shape}"
        )
    return _tensorinv(a, ind=ind)


@composite(static_argnames=("ind",))
def _tensorinv(a, *, ind):
    first, rest = shape_of(a)[:ind], shape_of(a)[ind:]
    n = math.prod(first)
    return reshape(inv(reshape(a, (n, n))), (*rest, *first))


def tensorsolve(a, b, axes=None):
    """The x with tensordot(a, x, x.ndim) = b.

    Args:
      a: array whose first axes are those of `b`, and whose other axes have as many elements.
      b: array.
      axes: axes of `a` to move to its end before.

    Returns:
      Array with the axes of `a` after those of `b`.

    Examples:
      >>> a = 2.0 * wnp.eye(6).reshape(2, 3, 2, 3)
      >>> wnp.linalg.tensorsolve(a, wnp.ones((2, 3))).round(3)
      Array([[0.5, 0.5, 0.5],
             [0.5, 0.5, 0.5]], dtype=float32)
    """
    axes = () if axes is None else normalize_axes(axes, ndim_of(a), "tensorsolve")
    return _tensorsolve(a, b, axes=axes)


@composite(static_argnames=("axes",))
def _tensorsolve(a, b, *, axes):
    a = moveaxis(a, axes, range(ndim_of(a) - len(axes), ndim_of(a)))
    first, rest = shape_of(a)[: ndim_of(b)], shape_of(a)[ndim_of(b) :]
    n = math.prod(first)
    if first != shape_of(b) or math.prod(rest) != n:
        raise ShapeError(
            "[tensorsolve] expected the axes of b first in a, and as many elements in the others; "
            f"got shapes {shape_of(a)} and {shape_of(b)}"
        )
    return reshape(solve(reshape(a, (n, n)), reshape(b, (n,))), rest)


def lstsq(a, b, rcond=None, *, numpy_resid=False):
    """The x with the least norm of a x - b; of several, the one with the least norm itself.

    Args:
      a: array `[m, n]`.
      b: array `[m]` or `[m, k]`.
      rcond: singular values below this times the greatest one count as zero; None for the
        precision of the dtype times the greater of m and n, a negative number for the precision.
      numpy_resid: whether the sums of squares are left out where NumPy leaves them out: if the rank
        is less than n, or m at most n. The rank must be known then.

    Returns:
      Tuple of x, `[n]` or `[n, k]`; the sums of the squares of a x - b, `[k]`; the rank of `a`;
      and the singular values of `a`.

    Raises ShapeError for operands of other shapes.

    Examples:
      >>> a = wnp.array([[0.0, 1.0], [1.0, 1.0], [2.0, 1.0]])
      >>> x, residuals, rank, s = wnp.linalg.lstsq(a, wnp.array([1.0, 3.0, 5.0]))
      >>> x.round(3)
      Array([2., 1.], dtype=float32)
    """
    if ndim_of(a) != 2 or ndim_of(b) not in (1, 2) or shape_of(a)[0] != shape_of(b)[0]:
        raise ShapeError(
            "[lstsq] expected a [m, n] and b [m] or [m, k]; got shapes "
            f"{shape_of(a)} and {shape_of(b)}"
        )
    x, residuals, rank, s = _lstsq(a, b, rcond)
    if numpy_resid and (shape_of(a)[0] <= shape_of(a)[1] or int(rank) < shape_of(a)[1]):
        residuals = residuals[:0]
    return x, residuals, rank, s


@composite
def _lstsq(a, b, rcond):
    a, b = _core.promote_dtypes_inexact(a, b)
    m, n = shape_of(a)
    dtype = real_dtype(dtype_of(a))
    columns = expand_dims(b, -1) if ndim_of(b) == 1 else b
    precision = float(finfo(dtype).eps)
    default = precision * max(m, n)
    if m == 0 or n == 0:
        x = _core.broadcast_to(_core.astype(0, dtype_of(a)), (n, shape_of(columns)[1]))
        s, rank = _core.broadcast_to(_core.astype(0, dtype), (0,)), _core.astype(0, default_int())
    else:
        if rcond is None:
            rcond = default
        else:
            rcond = choose(u.less(rcond, 0), precision, _core.astype(rcond, dtype))
        left, s, right = svd(a, full_matrices=False)
        present = u.logical_and(
            u.greater(s, 0), u.greater_equal(s, u.multiply(_core.astype(rcond, dtype), s[0]))
        )
        rank = r.sum(present)
        inverses = choose(present, u.divide(1, choose(present, s, 1)), 0)
        x = matmul(adjoint(left), columns)
        x = matmul(adjoint(right), u.multiply(_core.astype(inverses, dtype_of(a))[:, None], x))
    error = u.subtract(columns, matmul(a, x))
    residuals = r.sum(u.real(u.multiply(error, u.conj(error))), 0)
    return (x[:, 0] if ndim_of(b) == 1 else x), residuals, rank, s


# ---- what the singular values tell


def pinv(a, rtol=None, hermitian=False, *, rcond=None):
    """Pseudoinverses of matrices.

    Args:
      a: array `[..., m, n]`.
      rtol: singular values up to this times the greatest one of a matrix count as zero; a number or
        an array `[...]`. None for 10 times the precision of the dtype times the greater of m and n.
      hermitian: whether `a` is known to be Hermitian; (a + a^H) / 2 counts then.
      rcond: another name for `rtol`.

    Returns:
      Array `[..., n, m]`.

    Examples:
      >>> wnp.linalg.pinv(wnp.ones((2, 2))).round(3)
      Array([[0.25, 0.25],
             [0.25, 0.25]], dtype=float32)
    """
    return _pinv(a, _tolerance("pinv", rtol, rcond, "rcond"), hermitian=bool(hermitian))


def _tolerance(function, rtol, other, name):
    if rtol is not None and other is not None:
        raise AttributeValueError(f"[{function}] expected rtol or {name}; got both")
    return other if rtol is None else rtol


@composite(static_argnames=("hermitian",))
def _pinv(a, rtol, *, hermitian):
    require_matrices("pinv", a, square=hermitian)
    (a,) = _core.promote_dtypes_inexact(a)
    if 0 in shape_of(a):
        *batch, m, n = shape_of(a)
        return _core.broadcast_to(_core.astype(0, dtype_of(a)), (*batch, n, m))
    if hermitian:
        a = u.multiply(u.add(a, adjoint(a)), 0.5)  # what counts of it, also of its tangent
    dtype = real_dtype(dtype_of(a))
    if rtol is None:
        rtol = 10 * max(shape_of(a)[-2:]) * float(finfo(dtype).eps)

    @custom_jvp
    def pseudoinverse(a):
        left, s, right = svd(a, full_matrices=False, hermitian=hermitian)
        cutoff = u.multiply(_core.astype(rtol, dtype)[..., None], s[..., :1])
        present = u.greater(s, cutoff)
        inverses = choose(present, u.divide(1, choose(present, s, 1)), 0)
        inverses = _core.astype(inverses, dtype_of(a))[..., None, :]
        return matmul(u.multiply(adjoint(right), inverses), adjoint(left))

    @pseudoinverse.defjvp
    def jvp(primals, tangents):
        (a,), (da,) = primals, tangents
        p = pseudoinverse(a)
        down, up = adjoint(da), adjoint(p)
        # dP = -P dA P + P P^H dA^H (1 - A P) + (1 - P A) dA^H P^H P, at matrices of constant rank.
        first = matmul(matmul(p, da), p)
        second = matmul(matmul(p, up), down)
        third = matmul(matmul(down, up), p)
        second = u.subtract(second, matmul(matmul(second, a), p))
        third = u.subtract(third, matmul(p, matmul(a, third)))
        return p, u.add(u.subtract(second, first), third)

    return pseudoinverse(a)


def matrix_rank(M, rtol=None, *, hermitian=False, tol=None):
    """Ranks of matrices: how many singular values count.

    Args:
      M: array `[..., m, n]`; of a vector or number, the rank is 1 unless it is zero.
      rtol: singular values up to this times the greatest one of a matrix do not count; a number or
        an array `[...]`. None for the precision of the dtype times the greater of m and n.
      hermitian: whether `M` is known to be Hermitian.
      tol: singular values up to this do not count.

    Returns:
      Integer array `[...]`.

    Raises AttributeValueError (a ValueError) for `rtol` together with `tol`, ShapeError for
    matrices without elements unless `rtol` or `tol` is given.

    Examples:
      >>> wnp.linalg.matrix_rank(wnp.array([[1.0, 2.0], [2.0, 4.0]]))
      Array(1, dtype=int32)
    """
    if rtol is not None and tol is not None:
        raise AttributeValueError("[matrix_rank] expected rtol or tol; got both")
    return _matrix_rank(M, rtol, tol, hermitian=bool(hermitian))


@composite(static_argnames=("hermitian",))
def _matrix_rank(M, rtol, tol, *, hermitian):
    if ndim_of(M) < 2:
        return _core.astype(r.any(u.not_equal(M, 0)), "int32")
    (M,) = _core.promote_dtypes_inexact(M)
    s = u.absolute(eigvalsh(M)) if hermitian else svdvals(M)
    if tol is None:
        initial = None
        if rtol is None:
            rtol = max(shape_of(M)[-2:]) * float(finfo(dtype_of(s)).eps)
        else:
            initial = 0.0  # of matrices without elements
        tol = u.multiply(_core.astype(rtol, dtype_of(s)), r.max(s, -1, initial=initial))
    return r.sum(u.greater(s, _core.astype(tol, dtype_of(s))[..., None]), -1)


# ---- products


def matrix_power(a, n):
    """Powers of square matrices; of their inverses if `n` is negative.

    Args:
      a: array `[..., m, m]`.
      n: an integer.

    Examples:
      >>> wnp.linalg.matrix_power(wnp.array([[1, 1], [1, 0]]), 10)
      Array([[89, 55],
             [55, 34]], dtype=int32)
    """
    return _matrix_power(a, n=static_int(n, "matrix_power", "n"))


@composite(static_argnames=("n",))
def _matrix_power(a, *, n):
    require_matrices("matrix_power", a, square=True)
    if n == 0:
        return _core.broadcast_to(eye(shape_of(a)[-1], dtype=dtype_of(a)), shape_of(a))
    a = inv(a) if n < 0 else _core.asarray(a)
    result, rest = None, abs(n)
    while rest:
        if rest & 1:
            result = a if result is None else matmul(result, a)
        rest >>= 1
        if rest:
            a = matmul(a, a)
    return result


def multi_dot(arrays, *, precision=None):
    """The product of several matrices, in the order that takes the fewest multiplications.

    Args:
      arrays: two matrices or more; the first may be a vector, a row, and the last one, a column.
      precision: see `weft.lax.Precision`.

    Raises AttributeValueError (a ValueError) for fewer than two arrays, ShapeError for sizes that
    do not fit together.

    Examples:
      >>> wnp.linalg.multi_dot([wnp.ones((2, 50)), wnp.ones((50, 60)), wnp.ones((60, 3))]).shape
      (2, 3)
    """
    arrays = tuple(arrays)
    shapes = [shape_of(x) for x in arrays]
    if len(arrays) < 2:
        raise AttributeValueError(f"[multi_dot] expected at least two arrays; got {len(arrays)}")
    inner = all(len(shape) == 2 for shape in shapes[1:-1])
    outer = len(shapes[0]) in (1, 2) and len(shapes[-1]) in (1, 2)
    if not (inner and outer) or any(
        x[-1] != y[0] for x, y in zip(shapes, shapes[1:], strict=False)
    ):
        raise ShapeError(
            "[multi_dot] expected matrices whose sizes fit together, the first and last one "
            f"matrices or vectors; got shapes {shapes}"
        )
    return _multi_dot(arrays, precision=precision)


@composite(static_argnames=("precision",))
def _multi_dot(arrays, *, precision):
    shapes = [shape_of(x) for x in arrays]
    rows = 1 if len(shapes[0]) == 1 else shapes[0][0]
    sizes = [rows, *(shape[0] for shape in shapes[1:])]
    sizes.append(1 if len(shapes[-1]) == 1 else shapes[-1][-1])
    split = _fewest_multiplications(sizes)

    def product(first, last):
        if first == last:
            return arrays[first]
        at = split[first, last]
        return dot(product(first, at), product(at + 1, last), precision=precision)

    return product(0, len(arrays) - 1)


def _fewest_multiplications(sizes):
    """Where to split the product of matrices i to j, for all i < j.

    Matrix i is of shape (sizes[i], sizes[i + 1]).
    """
    count = len(sizes) - 1
    cost, split = {(i, i): 0 for i in range(count)}, {}
    for length in range(1, count):
        for i in range(count - length):
            j = i + length
            costs = {
                k: cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1]
                for k in range(i, j)
            }
            split[i, j] = min(costs, key=costs.__getitem__)
            cost[i, j] = costs[split[i, j]]
    return split
