"""Linear algebra with SciPy's arguments: factorizations, equations, functions of matrices, and
matrices of special form.

Matrices lie in the last two axes of arrays; axes before these count matrices. Integers become
floats. Arrays never change: parameters that let SciPy overwrite or check its arguments are there so
that programs run, and have no effect.
"""

from weft._surface import open_to_users as _open_to_users, public as _public
from weft.scipy.linalg._factors import (
    cho_factor,
    cholesky,
    eigh,
    hessenberg,
    lu,
    lu_factor,
    polar,
    qr,
    qr_multiply,
    rsf2csf,
    schur,
    svd,
)
from weft.scipy.linalg._functions import expm, expm_frechet, funm, sqrtm
from weft.scipy.linalg._matrices import (
    block_diag,
    circulant,
    companion,
    convolution_matrix,
    dft,
    fiedler,
    fiedler_companion,
    hadamard,
    hankel,
    helmert,
    hilbert,
    invhilbert,
    invpascal,
    leslie,
    pascal,
    toeplitz,
)
from weft.scipy.linalg._systems import (
    cho_solve,
    det,
    inv,
    lu_solve,
    solve,
    solve_sylvester,
    solve_triangular,
)
from weft.scipy.linalg._tridiagonal import eigh_tridiagonal

__all__ = [
    "block_diag",
    "cho_factor",
    "cho_solve",
    "cholesky",
    "circulant",
    "companion",
    "convolution_matrix",
    "det",
    "dft",
    "eigh",
    "eigh_tridiagonal",
    "expm",
    "expm_frechet",
    "fiedler",
    "fiedler_companion",
    "funm",
    "hadamard",
    "hankel",
    "helmert",
    "hessenberg",
    "hilbert",
    "inv",
    "invhilbert",
    "invpascal",
    "leslie",
    "lu",
    "lu_factor",
    "lu_solve",
    "pascal",
    "polar",
    "qr",
    "qr_multiply",
    "rsf2csf",
    "schur",
    "solve",
    "solve_sylvester",
    "solve_triangular",
    "sqrtm",
    "svd",
    "toeplitz",
]
__getattr__, __dir__ = _public(__name__, __all__)

_open_to_users(__name__)
