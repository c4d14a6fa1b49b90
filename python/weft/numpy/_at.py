"""`x.at[index]`: reading with options, and updated copies."""

from weft import _core
from weft._surface import example_section, public_methods
from weft.dtypes import iinfo, is_integer
from weft.errors import OperandError
from weft.lax._sharding import split_as
from weft.numpy import _indexing as indexing, _select as select


@public_methods
class IndexedView:
    """What `x.at` is: index it to say which elements are meant.

    Examples:
      >>> wnp.zeros(3).at[1].set(5.0)
      Array([0., 5., 0.], dtype=float32)
    """

    __slots__ = ("array",)

    def __init__(self, array):
        self.array = array

    def __getitem__(self, index):
        return IndexedElements(self.array, index)

    def __setitem__(self, index, value):
        raise OperandError(
            "arrays are immutable; got an assignment to x.at[...]\n"
            "  Write x = x.at[index].set(value) instead of x.at[index] = value."
        )

    __iter__ = None  # Python would index it without an end

    def __repr__(self):
        return f"IndexedView({self.array!r})"


class IndexedElements:
    """Elements of an array, `x.at[index]`, to be read or updated. The array itself never changes.

    Updates return the updated array. Their values are broadcast to the shape of the elements and
    converted to the dtype of the array. If an element is indexed several times all updates count,
    but `set` keeps any one of them.

    All methods take
      indices_are_sorted, unique_indices: promises that the indices increase, and that none occurs
        twice.
      mode: what to do about indices out of bounds: "clip" moves them to the nearest element,
        "drop" or "fill" makes updates of them have no effect and reads of them give `fill_value`,
        "promise_in_bounds" asserts that there are none. Reads promise by default, updates drop.
      wrap_negative_indices: whether negative indices count from the end; else they are out of
        bounds.
      out_sharding: must be None (not of `apply`).
    """

    __slots__ = ("array", "index")

    def __init__(self, array, index):
        self.array = array
        self.index = index

    def __repr__(self):
        return f"IndexedElements({self.array!r}, {self.index!r})"

    def _index(self, mode, wrap_negative_indices, drops):
        if wrap_negative_indices:
            return self.index
        lowest = not (drops if mode is None else mode in ("drop", "fill"))
        if isinstance(self.index, list):  # refused with the others
            return self.index
        entries = self.index if isinstance(self.index, tuple) else (self.index,)
        return tuple(_unwrapped(entry, lowest) for entry in entries)

    def get(
        self,
        *,
        indices_are_sorted=False,
        unique_indices=False,
        mode=None,
        fill_value=None,
        out_sharding=None,
        wrap_negative_indices=True,
    ):
        """The elements, as `x[index]`, with a say in what happens out of bounds.

        Args:
          fill_value: what mode "fill" gives out of bounds; by default NaN, the lowest value of
            signed and the highest of unsigned integers, and True.
          out_sharding: None, or how the result is split, a PartitionSpec or NamedSharding.

        Examples:
          >>> wnp.arange(3).at[wnp.array([1, 9])].get(mode="fill", fill_value=-1)
          Array([ 1, -1], dtype=int32)
        """
        index = self._index(mode, wrap_negative_indices, False)
        options = (index, mode, fill_value, unique_indices, indices_are_sorted)
        if out_sharding is None:
            return indexing.getitem(self.array, *options)
        return split_as(out_sharding, "get", lambda: indexing.getitem(self.array, *options))

    def apply(
        self,
        func,
        *,
        indices_are_sorted=False,
        unique_indices=False,
        mode=None,
        wrap_negative_indices=True,
    ):
        """`func` applied to the elements; it takes and returns an array of any shape.

        An element that is indexed several times gets it applied as often.

        Examples:
          >>> wnp.arange(4).at[1:3].apply(lambda x: x * 10)
          Array([ 0, 10, 20,  3], dtype=int32)
        """
        index = self._index(mode, wrap_negative_indices, True)
        return indexing.apply(self.array, index, func, mode, unique_indices, indices_are_sorted)


def _unwrapped(entry, lowest):
    """An index whose negative numbers are out of bounds, or are those of the first element."""
    is_whole = isinstance(entry, int) and not isinstance(entry, bool)
    if not is_whole and not is_integer(getattr(entry, "dtype", None)):
        return entry
    entry = _core.asarray(entry)
    beyond = 0 if lowest else int(iinfo(entry.dtype).max)
    return select.where(entry < 0, beyond, entry)


def _update(kind, name, summary, call, result):
    def method(
        self,
        values,
        *,
        indices_are_sorted=False,
        unique_indices=False,
        mode=None,
        out_sharding=None,
        wrap_negative_indices=True,
    ):
        index = self._index(mode, wrap_negative_indices, True)
        options = (index, values, mode, unique_indices, indices_are_sorted)
        if out_sharding is None:
            return indexing.update(kind, self.array, *options)
        return split_as(out_sharding, name, lambda: indexing.update(kind, self.array, *options))

    method.__name__ = name
    method.__qualname__ = f"IndexedElements.{name}"
    method.__doc__ = f"{summary}\n\n{example_section(call, result)}"
    setattr(IndexedElements, name, method)


_update(
    *("set", "set", "The array with the elements replaced by `values`."),
    *("wnp.arange(3).at[1].set(9)", "Array([0, 9, 2], dtype=int32)"),
)
_update(
    *("add", "add", "The array with `values` added to the elements."),
    *("wnp.zeros(2).at[wnp.array([0, 0])].add(1)", "Array([2., 0.], dtype=float32)"),
)
_update(
    *("sub", "subtract", "The array with `values` subtracted from the elements."),
    *("wnp.arange(3).at[1:].subtract(5)", "Array([ 0, -4, -3], dtype=int32)"),
)
_update(
    *("mul", "multiply", "The array with the elements multiplied by `values`."),
    *("wnp.arange(3).at[2].multiply(10)", "Array([ 0,  1, 20], dtype=int32)"),
)
_update(
    *("mul", "mul", "The array with the elements multiplied by `values`."),
    *("wnp.arange(3).at[2].mul(10)", "Array([ 0,  1, 20], dtype=int32)"),
)
_update(
    *("div", "divide", "The array with the elements divided by `values`; it becomes float."),
    *("wnp.array([1, 3]).at[1].divide(2)", "Array([1. , 1.5], dtype=float32)"),
)
_update(
    *("pow", "power", "The array with the elements raised to the power `values`."),
    *("wnp.arange(4).at[2:].power(2)", "Array([0, 1, 4, 9], dtype=int32)"),
)
_update(
    *("min", "min", "The array with the lesser of the elements and `values`."),
    *("wnp.arange(4).at[:].min(2)", "Array([0, 1, 2, 2], dtype=int32)"),
)
_update(
    *("max", "max", "The array with the greater of the elements and `values`."),
    *("wnp.arange(4).at[:].max(2)", "Array([2, 2, 2, 3], dtype=int32)"),
)
public_methods(IndexedElements)
