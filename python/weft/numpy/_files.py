"""Arrays in files and as text. NumPy does the work, so values must be known."""

import ml_dtypes
import numpy as np

from weft.dtypes import default_float
from weft.numpy._creation import array


def save(file, arr, allow_pickle=True):
    """Writes an array to a file in NumPy's format.

    Args:
      file: name, which gets the ending .npy if it has none, or a file that is open for bytes.
      arr: array.
      allow_pickle: whether objects may be pickled; no effect on arrays of numbers.

    Examples:
      >>> import io
      >>> file = io.BytesIO()
      >>> wnp.save(file, wnp.array([1, 2]))
      >>> wnp.load(io.BytesIO(file.getvalue()))
      Array([1, 2], dtype=int32)
    """
    np.save(file, np.asarray(arr), allow_pickle=allow_pickle)


def savez(file, *args, allow_pickle=True, **kwds):
    """Writes several arrays to a file in NumPy's format.

    Args:
      file: name, which gets the ending .npz if it has none, or a file that is open for bytes.
      args, kwds: arrays, and arrays by their names.
      allow_pickle: see `save`.

    Examples:
      >>> import io
      >>> file = io.BytesIO()
      >>> wnp.savez(file, a=wnp.array([1, 2]), b=wnp.zeros(3))
      >>> sorted(wnp.load(io.BytesIO(file.getvalue())))
      ['a', 'b']
    """
    arrays = {name: np.asarray(x) for name, x in kwds.items()}
    np.savez(file, *map(np.asarray, args), allow_pickle=allow_pickle, **arrays)


def load(file, *args, **kwargs):
    """What `save` or `savez` has written.

    Args:
      file: name, or a file that is open for bytes.
      args, kwargs: as for `numpy.load`.

    Returns:
      An array; or NumPy's object for files of several arrays, which gives NumPy arrays by name.

    Examples:
      >>> import io
      >>> file = io.BytesIO()
      >>> np.save(file, np.arange(3, dtype="int32"))
      >>> wnp.load(io.BytesIO(file.getvalue()))
      Array([0, 1, 2], dtype=int32)
    """
    found = np.load(file, *args, **kwargs)
    if not isinstance(found, np.ndarray):
        return found
    if found.dtype == np.dtype("V2"):  # NumPy writes bfloat16 without its name
        found = found.view(ml_dtypes.bfloat16)
    return array(found)


def fromstring(string, dtype=float, count=-1, *, sep):
    """A one-dimensional array of the numbers in a text.

    Args:
      string: the text.
      dtype: their dtype.
      count: how many to read; -1 for all.
      sep: what stands between them.

    Examples:
      >>> wnp.fromstring("1 2 3", dtype="int32", sep=" ")
      Array([1, 2, 3], dtype=int32)
    """
    dtype = default_float() if dtype is float else dtype
    return array(np.fromstring(string, np.dtype(dtype), count, sep=sep))


def _impure(name):
    def function(*args, **kwargs):
        raise NotImplementedError(
            f"[{name}] what it reads changes from call to call, which no traced program could "
            f"repeat\n  Use weft.numpy.asarray(numpy.{name}(...))."
        )

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Raises NotImplementedError: use weft.numpy.asarray(numpy.{name}(...))."
    return function


fromfile = _impure("fromfile")
fromiter = _impure("fromiter")


def array_repr(arr, max_line_width=None, precision=None, suppress_small=None):
    """The text of an array as `repr` gives it.

    Args:
      arr: array.
      max_line_width: characters in a line; precision: digits after the point; suppress_small:
        whether numbers near zero are shown as 0. None for what `set_printoptions` says.

    Examples:
      >>> wnp.array_repr(wnp.array([1.25, 1e-9]), precision=1, suppress_small=True)
      'Array([1.2, 0. ], dtype=float32)'
    """
    return _text(repr, arr, max_line_width, precision, suppress_small)


def array_str(a, max_line_width=None, precision=None, suppress_small=None):
    """The text of the values of an array as `str` gives it; for the arguments see `array_repr`.

    Examples:
      >>> wnp.array_str(wnp.array([1.25, 2.0]))
      '[1.25 2.  ]'
    """
    return _text(str, a, max_line_width, precision, suppress_small)


def _text(kind, a, max_line_width, precision, suppress_small):
    options = {"linewidth": max_line_width, "precision": precision, "suppress": suppress_small}
    with np.printoptions(**{name: x for name, x in options.items() if x is not None}):
        return kind(array(a, copy=False))
