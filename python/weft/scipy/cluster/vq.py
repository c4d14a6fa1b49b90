"""Vector quantization."""

from weft import _core, numpy as jnp
from weft._arguments import ndim_of, shape_of
from weft._jit import composite
from weft._surface import open_to_users as _open_to_users, public as _public
from weft.errors import ShapeError

__all__ = ["vq"]
__getattr__, __dir__ = _public(__name__, __all__)


def vq(obs, code_book, check_finite=True):
    """For each observation the nearest code, and how far it is.

    Args:
      obs: observations `[m, n]`, or numbers `[m]`.
      code_book: codes `[k, n]`, or numbers `[k]`; at least one.
      check_finite: no effect.

    Returns:
      Pair of the positions of the codes, integers `[m]`, and of the distances `[m]`.

    Raises ShapeError unless both have one axis or two, and as many columns.
    """
    shapes = shape_of(obs), shape_of(code_book)
    if ndim_of(obs) not in (1, 2) or len(shapes[0]) != len(shapes[1]):
        raise ShapeError(
            f"[vq] expected two arrays of one axis, or of two; got shapes {shapes[0]} and "
            f"{shapes[1]}"
        )
    if shapes[0][1:] != shapes[1][1:] or not shapes[1][0]:
        raise ShapeError(
            "[vq] expected as many columns in both arrays, and a code at least; got shapes "
            f"{shapes[0]} and {shapes[1]}"
        )
    return _vq(obs, code_book)


@composite
def _vq(obs, code_book):
    obs, code_book = _core.promote_dtypes_inexact(obs, code_book)
    if ndim_of(obs) == 1:
        obs, code_book = obs[:, None], code_book[:, None]
    distances = jnp.linalg.norm(obs[:, None] - code_book[None], axis=-1)
    return jnp.argmin(distances, -1), jnp.min(distances, -1)


_open_to_users(__name__)
