"""Iterative solvers of linear equations.

Derivatives are those of the solution, not of the iteration: they are solutions of the same kind
(`weft.lax.custom_linear_solve`).
"""

import math

from weft import _core, lax, numpy as jnp
from weft._arguments import shape_of, static_int
from weft._autodiff import linear_transpose
from weft._jit import composite
from weft._surface import open_to_users as _open_to_users, public as _public
from weft.dtypes import dtype_of, finfo, is_complex, is_inexact, real_dtype
from weft.errors import AttributeValueError, DTypeError, OperandError, ShapeError
from weft.lax import _control as control
from weft.runtime.pytree import registry

__all__ = ["bicgstab", "cg", "gmres"]
__getattr__, __dir__ = _public(__name__, __all__)


def cg(A, b, x0=None, *, tol=1e-5, atol=0.0, maxiter=None, M=None):
    """The x with A x = b, by conjugate gradients (Hestenes and Stiefel, 1952).

    Args:
      A: Hermitian positive definite: a square matrix, or a linear function of trees like `b`.
      b: array, or tree of arrays, of a floating-point dtype.
      x0: where to start, a tree like `b`; None for zeros.
      tol, atol: the iteration ends when the norm of b - A x is at most the greater of tol times the
        norm of b, and atol.
      maxiter: how many steps are taken at most; None for 10 times the size of `b`.
      M: matrix or function that approximates the inverse of `A`, and is of the same kind.

    Returns:
      Pair of x, a tree like `b`, and None.

    Examples:
      >>> a = wnp.array([[4.0, 1.0], [1.0, 3.0]])
      >>> x, info = weft.scipy.sparse.linalg.cg(a, wnp.array([6.0, 7.0]))
      >>> x.round(2)
      Array([1., 2.], dtype=float32)
    """
    return _solved("cg", A, b, x0, tol, atol, maxiter, M, _conjugate_gradients), None


def bicgstab(A, b, x0=None, *, tol=1e-5, atol=0.0, maxiter=None, M=None):
    """The x with A x = b, by stabilized biconjugate gradients (van der Vorst, 1992).

    Args:
      A: a square matrix, or a linear function of trees like `b`.
      b, x0, tol, atol, maxiter, M: see `cg`.

    Returns:
      Pair of x, a tree like `b`, and None.
    """
    return _solved("bicgstab", A, b, x0, tol, atol, maxiter, M, _biconjugate_gradients), None


def gmres(
    A,
    b,
    x0=None,
    *,
    tol=1e-5,
    atol=0.0,
    restart=20,
    maxiter=None,
    M=None,
    solve_method="batched",
):
    """The x with A x = b, by the generalized method of minimal residuals (Saad and Schultz, 1986).

    Args:
      A: a square matrix, or a linear function of trees like `b`.
      restart: how many products with `A` a step takes; the memory is as many times that of `b`.
      solve_method: "batched" for always as many, "incremental" to end a step as soon as the
        residual is small enough.
      b, x0, tol, atol, maxiter, M: see `cg`.

    Returns:
      Pair of x, a tree like `b`, and 0, or -1 if it has NaN.

    Raises AttributeValueError (a ValueError) for another solve_method, or a restart less than 1.
    """
    if solve_method not in ("batched", "incremental"):
        raise AttributeValueError(
            f"[gmres] expected solve_method 'batched' or 'incremental'; got {solve_method!r}"
        )
    restart = static_int(restart, "gmres", "restart")
    if restart < 1:
        raise AttributeValueError(f"[gmres] expected restart of at least 1; got {restart}")

    def method(*arguments):
        return _minimal_residuals(
            *arguments, restart=restart, incremental=solve_method == "incremental"
        )

    x = _solved("gmres", A, b, x0, tol, atol, maxiter, M, method)
    failed = False
    for leaf in registry.flatten(x)[0]:
        failed = failed | jnp.any(jnp.isnan(leaf))
    return x, jnp.where(failed, -1, 0)


# ---- trees as vectors


def _operator(function, name, A):
    """The arrays and the function of them and of a tree that an argument stands for."""
    if callable(A):
        return None, lambda _, x: A(x)
    if not hasattr(A, "shape"):
        raise OperandError(f"[{function}] expected {name} to be a function or a matrix; got {A!r}")
    if len(shape_of(A)) != 2 or shape_of(A)[0] != shape_of(A)[1]:
        raise ShapeError(
            f"[{function}] expected {name} to be a square matrix; got shape {shape_of(A)}"
        )
    return A, jnp.matmul


def _flat(leaves):
    leaves = _core.promote_dtypes(*leaves)
    return jnp.concatenate([jnp.ravel(x) for x in leaves])


def _solved(function, A, b, x0, tol, atol, maxiter, M, method):
    matrix, product = _operator(function, "A", A)
    preconditioner, approximate = (
        (None, lambda _, x: x) if M is None else _operator(function, "M", M)
    )
    leaves, tree = registry.flatten(b)
    shapes = [shape_of(x) for x in leaves]
    start = None
    if x0 is not None:
        start, other = registry.flatten(x0)
        if other != tree or [shape_of(x) for x in start] != shapes:
            raise ShapeError(
                f"[{function}] expected x0 to be a tree like b, {tree} of shapes {shapes}; got "
                f"{other} of shapes {[shape_of(x) for x in start]}"
            )
    size = sum(map(math.prod, shapes))
    maxiter = 10 * size if maxiter is None else maxiter

    def run(matrix, preconditioner, leaves, start, tol, atol, maxiter):
        if start is not None:
            pairs = [_core.promote_dtypes(x, y) for x, y in zip(leaves, start, strict=True)]
            leaves, start = ([pair[i] for pair in pairs] for i in (0, 1))
        dtypes = [dtype_of(x) for x in leaves]
        if not all(map(is_inexact, dtypes)):
            raise DTypeError(
                f"[{function}] expected b of floating-point or complex dtypes; got {dtypes}"
            )

        def unflat(x):
            parts, at = [], 0
            for shape, dtype in zip(shapes, dtypes, strict=True):
                part = jnp.reshape(x[at : at + math.prod(shape)], shape)
                if is_complex(dtype_of(part)) and not is_complex(dtype):
                    part = jnp.real(part)
                parts.append(part.astype(dtype))
                at += math.prod(shape)
            return tree.unflatten(parts)

        def on_vectors(apply, held, name):
            def applied(x):
                results, other = registry.flatten(apply(held, unflat(x)))
                if other != tree or [shape_of(y) for y in results] != shapes:
                    raise ShapeError(
                        f"[{function}] expected {name} to return a tree like b, {tree} of shapes "
                        f"{shapes}; got {other} of shapes {[shape_of(y) for y in results]}"
                    )
                return _flat(results)

            return applied

        vector = _flat(leaves)
        matvec = on_vectors(product, matrix, "A")
        inverse = on_vectors(approximate, preconditioner, "M")
        first = jnp.zeros_like(vector) if start is None else _flat(start)
        real = real_dtype(dtype_of(vector))

        def solve(inverse, first):
            def solver(matvec, b):
                limit = jnp.maximum(_core.astype(tol, real) * _norm(b), _core.astype(atol, real))
                return method(matvec, inverse, b, first, limit, maxiter)

            return solver

        def transposed(vecmat, b):
            if M is None:
                return solve(inverse, jnp.zeros_like(b))(vecmat, b)
            transpose = linear_transpose(inverse, b)
            return solve(lambda x: transpose(x)[0], jnp.zeros_like(b))(vecmat, b)

        known = lax.stop_gradient(first)
        x = lax.custom_linear_solve(matvec, vector, solve(inverse, known), transposed)
        return unflat(x)

    return composite(run)(matrix, preconditioner, leaves, start, tol, atol, maxiter)


def _dot(x, y):
    return jnp.vdot(x, y, precision=lax.Precision.HIGHEST)


def _norm(x):
    return jnp.sqrt(jnp.real(_dot(x, x)))


# ---- methods, on vectors


def _conjugate_gradients(matvec, inverse, b, x, limit, maxiter):
    residual = b - matvec(x)
    step = inverse(residual)

    def body(state):
        x, residual, step, gamma, count = state
        image = matvec(step)
        alpha = gamma / jnp.real(_dot(step, image)).astype(dtype_of(b))
        x, residual = x + alpha * step, residual - alpha * image
        improved = inverse(residual)
        fresh = jnp.real(_dot(residual, improved)).astype(dtype_of(b))
        return x, residual, improved + (fresh / gamma) * step, fresh, count + 1

    def goes_on(state):
        return (_norm(state[1]) > limit) & (state[4] < maxiter)

    gamma = jnp.real(_dot(residual, step)).astype(dtype_of(b))
    return control.while_loop(goes_on, body, (x, residual, step, gamma, 0))[0]


def _biconjugate_gradients(matvec, inverse, b, x, limit, maxiter):
    shadow = residual = b - matvec(x)
    one = jnp.ones((), dtype_of(b))

    def body(state):
        x, residual, step, image, rho, alpha, omega, count, _ = state
        fresh = _dot(shadow, residual)
        step = residual + (fresh / rho) * (alpha / omega) * (step - omega * image)
        improved = inverse(step)
        image = matvec(improved)
        alpha = fresh / _dot(shadow, image)
        half = residual - alpha * image
        improved_half = inverse(half)
        image_half = matvec(improved_half)
        early = _norm(half) <= limit
        omega = _dot(image_half, half) / _dot(image_half, image_half)
        omega = jnp.where(early, 0, omega)
        x = x + alpha * improved + omega * improved_half
        residual = half - jnp.where(early, 0, omega * image_half)
        broken = (fresh == 0) | ((omega == 0) & jnp.logical_not(early))
        omega = jnp.where(early, 1, omega)
        return x, residual, step, image, fresh, alpha, omega, count + 1, broken

    def goes_on(state):
        return (_norm(state[1]) > limit) & (state[7] < maxiter) & jnp.logical_not(state[8])

    nothing = jnp.zeros_like(b)
    start = (x, residual, nothing, nothing, one, one, one, 0, jnp.zeros((), bool))
    return control.while_loop(goes_on, body, start)[0]


def _minimal_residuals(matvec, inverse, b, x, limit, maxiter, restart, incremental):
    size, dtype = shape_of(b)[0], dtype_of(b)
    restart = min(restart, size)
    eps = float(finfo(dtype).eps)
    # Residuals are those of the equation multiplied by M, and so is what they are compared with.
    scale = _norm(b)
    limit = limit * jnp.where(scale > 0, _norm(inverse(b)) / jnp.where(scale > 0, scale, 1), 1)

    def residual_of(x):
        return inverse(b - matvec(x))

    def step(state):
        x, residual, count = state
        norm = _norm(residual)
        basis = jnp.zeros((restart + 1, size), dtype)
        basis = basis.at[0].set(residual / jnp.where(norm > 0, norm, 1).astype(dtype))

        def extended(state):
            k, basis, r, rhs, turns = state
            image = inverse(matvec(basis[k]))
            before = _norm(image)
            column = jnp.zeros(restart + 1, dtype)
            for _ in range(2):  # once more, for what rounding has left
                part = jnp.conj(basis) @ image
                image = image - part @ basis
                column = column + part
            length = _norm(image)
            independent = length > eps * before
            image = jnp.where(independent, image / jnp.where(independent, length, 1), 0)
            column = column.at[k + 1].set(jnp.where(independent, length, 0).astype(dtype))

            def turned(i, column):
                c, s = turns[i, 0], turns[i, 1]
                upper, lower = column[i], column[i + 1]
                column = column.at[i].set(jnp.conj(c) * upper + jnp.conj(s) * lower)
                return column.at[i + 1].set(c * lower - s * upper)

            column = control.fori_loop(0, restart, turned, column)
            upper, lower = column[k], column[k + 1]
            reach = jnp.sqrt(jnp.square(jnp.abs(upper)) + jnp.square(jnp.abs(lower)))
            some = reach > 0
            reach = jnp.where(some, reach, 1)
            c, s = jnp.where(some, upper / reach, 1), jnp.where(some, lower / reach, 0)
            turns = turns.at[k].set(jnp.stack([c, s]).astype(dtype))
            column = column.at[k].set(jnp.where(some, reach, 0).astype(dtype)).at[k + 1].set(0)
            first = rhs[k]
            rhs = rhs.at[k].set(jnp.conj(c) * first).at[k + 1].set(-s * first)
            return k + 1, basis.at[k + 1].set(image), r.at[:, k].set(column[:-1]), rhs, turns

        def goes_on(state):
            enough = (jnp.abs(state[3][state[0]]) <= limit) if incremental else False
            return (state[0] < restart) & jnp.logical_not(enough)

        turns = jnp.zeros((restart, 2), dtype).at[:, 0].set(1)
        rhs = jnp.zeros(restart + 1, dtype).at[0].set(norm.astype(dtype))
        start = (0, basis, jnp.zeros((restart, restart), dtype), rhs, turns)
        k, basis, r, rhs, _ = control.while_loop(goes_on, extended, start)
        # Rows that were not reached, or are zero, have no part in the solution.
        diagonal = jnp.diagonal(r)
        used = (jnp.arange(restart) < k) & (jnp.abs(diagonal) > eps * jnp.max(jnp.abs(r)))
        r = jnp.where(used[:, None] & used, r, jnp.eye(restart, dtype=dtype))
        y = lax.linalg.triangular_solve(r, jnp.where(used, rhs[:-1], 0), left_side=True)
        x = x + y @ basis[:-1]
        return x, residual_of(x), count + 1

    def goes_on(state):
        return (_norm(state[1]) > limit) & (state[2] < maxiter)

    if not size:
        return x
    return control.while_loop(goes_on, step, (x, residual_of(x), 0))[0]


_open_to_users(__name__)
