"""Rows of linear algebra: NumPy, and SciPy's interface of LAPACK, matrix by matrix.

Where vectors have a sign or a phase that nothing fixes, the function of the row is one that does
not depend on it.
"""

import numpy as np
import scipy.linalg
from op_table import Arg, Row, bind

from weft import lax
from weft.lax import linalg

DTYPES = ("float32", "float64", "complex64", "complex128")


def row(op, fn, ref, *args, attrs=None, label="", ulps=400, **options):
    """A row with several lists of arguments."""
    return Row(op, fn, ref, args, attrs or {}, label, options.pop("dtypes", DTYPES), ulps=ulps,
               **options)  # fmt: skip


def real(d):
    return {"complex64": np.dtype("float32"), "complex128": np.dtype("float64")}.get(d.name, d)


def complexed(d):
    return np.dtype("complex64") if d.name in ("float32", "complex64") else np.dtype("complex128")


def each(f):
    """f, of matrices and vectors, over the leading axes; results alike, several as a tuple."""

    def over(*xs, core=None, **attrs):
        batch = xs[0].shape[: -(core or 2)]
        flat = [x.reshape(int(np.prod(batch)), *x.shape[len(batch) :]) for x in xs]
        made = [f(*parts, **attrs) for parts in zip(*flat, strict=True)]
        if not made:  # of what the shapes would give
            made = [f(*(np.ones(x.shape[1:], x.dtype) for x in flat), **attrs)]
            batch_of = lambda r: np.zeros((*batch, *np.shape(r)), np.asarray(r).dtype)
        else:
            batch_of = None
        many = isinstance(made[0], tuple)
        parts = zip(*made, strict=True) if many else [made]
        out = [
            batch_of(p[0]) if batch_of else np.stack(p).reshape(*batch, *np.shape(p[0]))
            for p in map(list, parts)
        ]
        return tuple(out) if many else out[0]

    return over


def lapack(name, *arrays):
    return scipy.linalg.get_lapack_funcs((name,), arrays)[0]


def adjoint(x):
    return np.conj(np.swapaxes(x, -1, -2))


# ---- Factorizations


def triangular(a, lower, unit_diagonal, transpose_a, conjugate_a):
    a = np.tril(a) if lower else np.triu(a)
    if unit_diagonal:
        i = np.arange(a.shape[-1])
        a[..., i, i] = 1
    a = np.swapaxes(a, -1, -2) if transpose_a else a
    return np.conj(a) if conjugate_a else a


def triangular_solve(
    a, b, left_side=False, lower=False, transpose_a=False, conjugate_a=False, unit_diagonal=False
):
    a = triangular(a, lower, unit_diagonal, transpose_a, conjugate_a)
    if left_side:
        return np.linalg.solve(a, b)
    return np.swapaxes(np.linalg.solve(np.swapaxes(a, -1, -2), np.swapaxes(b, -1, -2)), -1, -2)


def permutation(pivots, permutation_size):
    order = np.arange(permutation_size, dtype=np.int32)
    for i, j in enumerate(pivots):
        order[[i, j]] = order[[j, i]]
    return order


@each
def lu(x):
    m, n = x.shape
    if x.size == 0:
        return x, np.zeros(0, np.int32), np.arange(m, dtype=np.int32)
    packed, pivots, _ = lapack("getrf", x)(x)
    pivots = pivots.astype(np.int32)
    return packed, pivots, permutation(pivots, m)


# ---- Householder reflectors


@each
def geqrf(x):
    if x.size == 0:
        return x, np.zeros(0, x.dtype)
    packed, taus, _, _ = lapack("geqrf", x)(x)
    return packed, taus


def geqp3(x, jpvt):
    return each(lambda x: _geqp3(x))(x)


def _geqp3(x):
    if x.size == 0:
        return x, 1 + np.arange(x.shape[1], dtype=np.int32), np.zeros(0, x.dtype)
    packed, order, taus, _, _ = lapack("geqp3", x)(x)
    return packed, order.astype(np.int32), taus


def reflected(a, taus):
    """The product of the reflectors, m x m."""
    m = a.shape[0]
    q = np.eye(m, dtype=a.dtype)
    for i, tau in enumerate(taus):
        v = np.zeros((m, 1), a.dtype)
        v[i] = 1
        v[i + 1 :, 0] = a[i + 1 :, i]
        q = q @ (np.eye(m) - tau * v @ adjoint(v))
    return q


def householder_product(a, taus):
    return each(lambda a, t: reflected(a, t)[:, : a.shape[1]])(a, taus)


def ormqr(a, taus, c, left=True, transpose=False):
    def one(a, taus, c):
        q = reflected(a, taus)
        q = adjoint(q) if transpose else q
        return q @ c if left else c @ q

    return each(one)(a, taus, c)


def qr(x, full_matrices=True, pivoting=False):
    def one(x):
        if x.size == 0:
            m, n = x.shape
            k = m if full_matrices else min(m, n)
            out = np.eye(m, k, dtype=x.dtype), np.zeros((k, n), x.dtype)
            return (*out, np.arange(n, dtype=np.int32)) if pivoting else out
        mode = "full" if full_matrices else "economic"
        out = scipy.linalg.qr(x, mode=mode, pivoting=pivoting)
        return (*out[:2], out[2].astype(np.int32)) if pivoting else out

    return each(one)(x)


# ---- Eigenvalues and singular values


def svd(x, compute_uv=True, **attrs):
    """The singular values, and U weights V^H, in which phases cancel."""
    out = linalg.svd(x, compute_uv=compute_uv, **attrs)
    if not compute_uv:
        return out
    u, s, vh = out
    k = s.shape[-1]
    weighted = u[..., :k] * (lax.iota(s.dtype, k) + 1)
    return s, weighted @ vh[..., :k, :]


def svd_ref(x, full_matrices=True, compute_uv=True, algorithm=None):
    u, s, vh = np.linalg.svd(x, full_matrices=False)
    if not compute_uv:
        return s
    return s, (u * np.arange(1, s.shape[-1] + 1)) @ vh


def svd_out(d):
    return (real(d), d)


def eigh(x, **attrs):
    """The eigenvalues, and V weights V^H."""
    v, w = linalg.eigh(x, **attrs)
    weighted = v * (lax.iota(w.dtype, w.shape[-1]) + 1)
    vh = v.mT.conj() if v.dtype.kind == "c" else v.mT
    return w, weighted @ vh


def eigh_ref(x, lower=True, symmetrize_input=True, sort_eigenvalues=True):
    if symmetrize_input:
        x = (x + adjoint(x)) / 2
    w, v = np.linalg.eigh(x, UPLO="L" if lower else "U")
    return w, (v * np.arange(1, w.shape[-1] + 1)) @ adjoint(v)


def eig(x, **attrs):
    """The largest eigenvalue, and its vectors; of matrices whose order is certain."""
    return tuple(linalg.eig(x, **attrs))


def eig_ref(x, compute_left_eigenvectors=True, compute_right_eigenvectors=True, **_):
    # Signs hang on the last digits: the reference computes in the row's own dtype.
    def one(x):
        dtype = np.result_type(x.dtype, np.complex64)
        if x.size == 0:
            w, vl, vr = np.zeros(0, dtype), x.astype(dtype), x.astype(dtype)
        else:
            w, vl, vr = (y.astype(dtype) for y in scipy.linalg.eig(x, left=True))
        return (w, *[vl] * compute_left_eigenvectors, *[vr] * compute_right_eigenvectors)

    return each(one)(x)


def schur(x, compute_schur_vectors=True):
    def one(x):
        if x.size == 0:
            return (x, x) if compute_schur_vectors else (x,)
        output = "complex" if x.dtype.kind == "c" else "real"
        t, z = scipy.linalg.schur(x, output=output)
        return (t, z) if compute_schur_vectors else (t,)

    return each(one)(x)


@each
def hessenberg(x):
    if len(x) < 2:
        return x, np.zeros(max(len(x) - 1, 0), x.dtype)
    packed, taus, _ = lapack("gehrd", x)(x)
    return packed, taus


def tridiagonal(x, lower=True):
    def one(x):
        n = len(x)
        if n < 2:
            rest = max(n - 1, 0)
            return x, np.diagonal(x).real.copy(), np.zeros(rest), np.zeros(rest, x.dtype)
        kind = "hetrd" if x.dtype.kind == "c" else "sytrd"
        packed, d, e, taus, _ = lapack(kind, x)(x, lower=int(lower))
        return packed, d, e, taus

    return each(one)(x)


def tridiagonal_solve(dl, d, du, b, perturb_singular=False):
    def one(dl, d, du, b):
        return np.linalg.solve(np.diag(d) + np.diag(dl[1:], -1) + np.diag(du[:-1], 1), b)

    return each(one)(dl, d, du, b, core=1)


def square(*shapes, domain="spread"):
    return [(Arg(shape, domain),) for shape in shapes]


def systems(*kinds):
    return [(Arg(a, "spread"), Arg(b)) for a, b in kinds]


SQUARE = ((3, 3), (2, 3, 3), (0, 0), (1, 1), (0, 2, 2))
TALL = ((4, 3), (2, 3, 4), (3, 0), (1, 1), (0, 2))
# Derivatives are not taken of empty lists of matrices: there is nothing to differ.
SOLVES = [
    ("left_lower", {"left_side": True, "lower": True}),
    ("left_upper_t", {"left_side": True, "transpose_a": True}),
    ("left_unit_h", {"left_side": True, "lower": True, "unit_diagonal": True,
                     "transpose_a": True, "conjugate_a": True}),
    ("left_conj", {"left_side": True, "conjugate_a": True}),
]  # fmt: skip
RIGHTS = [
    ("right_upper", {}),
    ("right_lower_t", {"lower": True, "transpose_a": True}),
    ("right_unit_conj", {"lower": True, "unit_diagonal": True, "conjugate_a": True}),
]


def with_attrs(fn, **fixed):
    return lambda *xs, **attrs: fn(*xs, **fixed, **attrs)


# Pairs of a row and a column of a matrix with 2 rows and 3 columns; the last lies outside.
PLACES = Arg((4, 2), dtype="int32", value=((0, 2), (1, 0), (0, 2), (1, 3)))


def entries_of(places, shape):
    """(which, row, column) of the pairs that lie in a matrix."""
    pairs = enumerate(np.asarray(places))
    return [(i, r, c) for i, (r, c) in pairs if 0 <= r < shape[0] and 0 <= c < shape[1]]


def sparse_dot(data, places, rhs, *, num_rows, transposed):
    pairs = places[:, ::-1] if transposed else places
    out = np.zeros((num_rows, rhs.shape[1]), rhs.dtype)
    for i, r, c in entries_of(pairs, (num_rows, rhs.shape[0])):
        out[r] += data[i] * rhs[c]
    return out


def sampled_dot(lhs, rhs, places):
    out = np.zeros(len(places), lhs.dtype)
    for i, r, c in entries_of(places, (lhs.shape[0], rhs.shape[0])):
        out[i] = lhs[r] @ rhs[c]
    return out


def csr_places(begins, columns):
    rows = np.searchsorted(begins[1:], np.arange(len(columns)), side="right")
    return np.stack([rows, columns], 1).astype(columns.dtype)


ROWS = [
    row("cholesky", linalg.cholesky, lambda x: np.linalg.cholesky((x + adjoint(x)) / 2),
        *square(*SQUARE, domain="definite"), diff=(0,)),
    row("cholesky", with_attrs(linalg.cholesky, symmetrize_input=False), np.linalg.cholesky,
        *square((3, 3), domain="definite"), diff=(0,), label="lower"),
    *[row("triangular_solve", linalg.triangular_solve, triangular_solve,
          *systems(((3, 3), (3, 2)), ((2, 2, 2), (2, 2, 3)), ((0, 0), (0, 2)), ((1, 1), (1, 1))),
          attrs=attrs, label=label, diff=(0, 1), linear_in=((1,),)) for label, attrs in SOLVES],
    *[row("triangular_solve", linalg.triangular_solve, triangular_solve,
          *systems(((3, 3), (2, 3)), ((2, 2, 2), (2, 3, 2)), ((3, 3), (0, 3))),
          attrs=attrs, label=label, diff=(0, 1), linear_in=((1,),)) for label, attrs in RIGHTS],
    row("lu", linalg.lu, lu, *square((3, 3), *TALL), out=lambda d: (d, "int32", "int32"),
        diff=(0,)),
    *[row("lu_pivots_to_permutation", linalg.lu_pivots_to_permutation,
          lambda p, permutation_size: each(lambda q: permutation(q, permutation_size))(p, core=1),
          (Arg((3,), dtype="int32", value=[2, 2, 2]),),
          (Arg((2, 3), dtype="int32", value=[[1, 3, 2], [0, 2, 3]]),), (Arg((0,), dtype="int32"),),
          attrs={"permutation_size": n}, label=f"to_{n}", dtypes=("int32",), ulps=0)
      for n in (4, 6)],
    row("geqrf", bind("geqrf"), geqrf, *square((3, 3), *TALL), out=lambda d: (d, d)),
    row("geqp3", bind("geqp3"), geqp3,
        *[(Arg(s, "spread"), Arg((*s[:-2], s[-1]), dtype="int32", value=0))
          for s in ((3, 3), *TALL)],
        out=lambda d: (d, "int32", d)),
    row("householder_product", linalg.householder_product, householder_product,
        *[(Arg((*b, m, n), "small"), Arg((*b, k), "small"))
          for b, m, n, k in (((), 4, 3, 3), ((2,), 3, 3, 2), ((), 3, 2, 0), ((), 0, 0, 0))]),
    *[row("ormqr", linalg.ormqr, ormqr,
          *[(Arg((*b, 4, 3), "small"), Arg((*b, k), "small"), Arg((*b, *c)))
            for b, k in (((), 3), ((2,), 2), ((), 0))],
          attrs={"left": left, "transpose": transpose}, diff=(2,), linear_in=((2,),),
          label=f"{'left' if left else 'right'}{'_h' if transpose else ''}")
      for left, c in ((True, (4, 2)), (False, (2, 4))) for transpose in (False, True)],
    row("qr", linalg.qr, qr, *square((3, 3), *TALL), attrs={"full_matrices": True}, label="full",
        out=lambda d: (d, d)),
    row("qr", linalg.qr, qr, *square((4, 3), (2, 3, 4), (3, 0), (3, 3)), label="reduced",
        attrs={"full_matrices": False}, out=lambda d: (d, d), diff=(0,)),
    row("qr", linalg.qr, qr, *square((4, 3), (2, 3, 4), (3, 0), (3, 3)), label="pivoting",
        attrs={"full_matrices": False, "pivoting": True}, out=lambda d: (d, d, "int32"), diff=(0,)),
    row("svd", svd, svd_ref, *square((3, 3), *TALL), attrs={"full_matrices": True}, label="full",
        out=svd_out),
    row("svd", svd, svd_ref, *square((4, 3), (2, 2, 3), (3, 0), (3, 3)), label="reduced",
        attrs={"full_matrices": False}, out=svd_out, diff=(0,)),
    row("svd", svd, svd_ref, *square((4, 3)), attrs={"full_matrices": False, "algorithm": "QR"},
        label="by_qr", out=svd_out),
    row("svd", svd, svd_ref, *square((4, 3), (2, 2, 3), (0, 3)), attrs={"compute_uv": False},
        label="values", out=real, diff=(0,)),
    row("eigh", eigh, eigh_ref, *square(*SQUARE), out=lambda d: (real(d), d), diff=(0,),
        attrs={"lower": True}),
    *[row("eigh", eigh, eigh_ref, *square((3, 3)), out=lambda d: (real(d), d), diff=(0,),
          attrs={"lower": lower, "symmetrize_input": False}, label="lower" if lower else "upper")
      for lower in (True, False)],
    row("eig", eig, eig_ref, *square((3, 3), (2, 2, 2), (0, 0), (1, 1)),
        attrs={"enable_eigvec_derivs": True}, out=lambda d: (complexed(d),) * 3,
        wide=False, diff=(0,)),
    row("eig", eig, eig_ref, *square((3, 3)), label="values", out=lambda d: (complexed(d),),
        attrs={"compute_left_eigenvectors": False, "compute_right_eigenvectors": False},
        wide=False, diff=(0,)),
    row("schur", lambda x, **a: tuple(linalg.schur(x, **a)), schur, *square(*SQUARE),
        attrs={"compute_schur_vectors": True}, wide=False, out=lambda d: (d, d)),
    row("schur", lambda x, **a: tuple(linalg.schur(x, **a)), schur, *square((3, 3)),
        attrs={"compute_schur_vectors": False}, wide=False, out=lambda d: (d,), label="values"),
    row("hessenberg", linalg.hessenberg, hessenberg, *square((4, 4), *SQUARE),
        out=lambda d: (d, d)),
    *[row("tridiagonal", linalg.tridiagonal, tridiagonal,
          *square((4, 4), (2, 3, 3), (1, 1), (0, 0), domain="definite"),
          attrs={"lower": lower}, label="lower" if lower else "upper",
          out=lambda d: (d, real(d), real(d), d)) for lower in (True, False)],
    *[row("tridiagonal_solve", linalg.tridiagonal_solve, tridiagonal_solve,
          *[(Arg((*b, n), "small"), Arg((*b, n), "above_one"), Arg((*b, n), "small"),
             Arg((*b, n, k))) for b, n, k in sizes],
          attrs={"perturb_singular": perturb}, label="perturbed" if perturb else "", dtypes=dtypes,
          diff=(0, 1, 2, 3), linear_in=((3,),))
      for perturb, sizes, dtypes in (
          (False, (((), 4, 2), ((2,), 3, 1), ((), 1, 2), ((), 0, 2)), DTYPES),
          (True, (((), 4, 2), ((2,), 3, 1)), ("float32", "float64")))],
    *[row("sparse_dot", bind("sparse_dot"), sparse_dot,
          *[(Arg((4,), "small"), PLACES, Arg((rows, columns), "small")) for columns in (2, 1)],
          attrs={"num_rows": num_rows, "transposed": transposed}, label=label,
          diff=(0, 2), linear_in=((0,), (2,)))
      for label, num_rows, rows, transposed in (
          ("", 2, 3, False), ("transposed", 3, 2, True),
          ("square", 3, 3, False), ("square_transposed", 3, 3, True))],
    row("sampled_dot", bind("sampled_dot"), sampled_dot,
        (Arg((2, 5), "small"), Arg((3, 5), "small"), PLACES), diff=(0, 1),
        linear_in=((0,), (1,))),
    row("csr_places", bind("csr_places"), csr_places,
        (Arg((4,), value=(0, 2, 2, 3)), Arg((5,), "shift")), dtypes=("int32", "int64", "int8"),
        wide=False, ulps=0),
]  # fmt: skip
