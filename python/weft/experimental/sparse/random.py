"""Random sparse arrays."""

import math
import operator

from weft import numpy as wnp, random
from weft._arguments import static_shape
from weft._surface import open_to_users as _open_to_users, public as _public
from weft.errors import AttributeValueError
from weft.experimental.sparse._entries import over_batch
from weft.experimental.sparse.bcoo import BCOO

__all__ = ["random_bcoo"]
__getattr__, __dir__ = _public(__name__, __all__)


def random_bcoo(
    key,
    shape,
    *,
    dtype=float,
    indices_dtype=None,
    nse=0.2,
    n_batch=0,
    n_dense=0,
    unique_indices=True,
    sorted_indices=False,
    generator=random.uniform,
    **kwds,
):
    """A BCOO array with random values at random places.

    Args:
      key: random key.
      shape: ints.
      dtype: of the values.
      indices_dtype: integer dtype; None for int32.
      nse: how many entries are stored (of each batch element), an int; or the share of the places,
        a float below 1.
      n_batch, n_dense: how many axes are batch and dense axes.
      unique_indices: whether no place is drawn twice; `nse` must not exceed their number.
      sorted_indices: whether entries are in lexicographic order.
      generator: function of (key, shape, dtype, **kwds) that draws the values.
      kwds: further arguments of `generator`.

    Raises AttributeValueError for arguments that do not fit.

    Examples:
      >>> weft.experimental.sparse.random_bcoo(weft.random.key(0), (4, 5), nse=3)
      BCOO(float32[4, 5], nse=3)
    """
    shape = static_shape(shape, "random_bcoo")
    n_sparse = len(shape) - n_batch - n_dense
    if n_batch < 0 or n_dense < 0 or n_sparse < 0:
        raise AttributeValueError(
            f"[random_bcoo] expected n_batch and n_dense of sum up to {len(shape)}; got {n_batch} "
            f"and {n_dense}"
        )
    batch, sizes = shape[:n_batch], shape[n_batch : n_batch + n_sparse]
    places = math.prod(sizes)
    count = math.ceil(nse * places) if 0 < nse < 1 else operator.index(nse)  # pyright: ignore[reportArgumentType]
    if count < 0 or (unique_indices and count > places):
        raise AttributeValueError(
            f"[random_bcoo] expected at most {places} entries, that is how many places there are; "
            f"got nse={nse}"
        )
    index_dtype = indices_dtype or "int32"
    keys = random.split(key)

    def drawn(key):
        if unique_indices:
            number = random.choice(key, places, (count,), replace=False)
        else:
            number = random.randint(key, (count,), 0, max(places, 1))
        columns = wnp.unravel_index(number, sizes) if sizes else ()
        empty = wnp.zeros((count, 0), index_dtype)
        return wnp.stack(columns, 1).astype(index_dtype) if columns else empty

    batch_keys = random.split(keys[0], batch) if batch else keys[0]
    indices = over_batch(drawn, n_batch)(batch_keys)
    data = generator(keys[1], (*batch, count, *shape[n_batch + n_sparse :]), dtype, **kwds)
    mat = BCOO((data, indices), shape=shape, unique_indices=unique_indices)
    return mat.sort_indices() if sorted_indices else mat


_open_to_users(__name__)
