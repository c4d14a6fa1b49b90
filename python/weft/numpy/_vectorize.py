"""Functions of vectors or numbers applied to all of those in arrays: over vmap."""

import functools
import re

from weft import _core
from weft._arguments import ndim_of, normalize_axis, shape_of, static_shape
from weft._recording import check_callable
from weft._surface import named_after
from weft._vmap import vmap
from weft.dtypes import default_int, requested_dtype
from weft.errors import AttributeValueError, ShapeError
from weft.lax._creation import iota
from weft.lax._shape import common_shape
from weft.numpy._creation import array
from weft.numpy._shape import expand_dims, moveaxis, reshape
from weft.tree_util import tree_leaves, tree_map, tree_structure, treedef_is_leaf

_LIST = r"\((?:\w+(?:,\w+)*)?\)"
_SIGNATURE = re.compile(rf"^({_LIST}(?:,{_LIST})*)?->({_LIST}(?:,{_LIST})*)$")


def _parsed(signature):
    """The names of the axes of each argument and of each result."""
    match = _SIGNATURE.match(re.sub(r"\s", "", signature))
    if match is None:
        raise AttributeValueError(
            f"[vectorize] expected a signature like '(m,n),(n)->(m)'; got {signature!r}"
        )
    return [
        [tuple(filter(None, each[1:-1].split(","))) for each in re.findall(_LIST, side or "")]
        for side in match.groups()
    ]


def fromfunction(function, shape, *, dtype=float, **kwargs):
    """`function` of the indices of each element of an array of `shape`.

    Args:
      function: takes as many numbers as `shape` has sizes, and `kwargs` as they are; it is mapped
        over the indices by vmap, so that it sees numbers. What it returns gets the axes of `shape`
        in front.
      shape: the sizes.
      dtype: that of the indices, the default integer for None.

    Examples:
      >>> wnp.fromfunction(lambda row, column: 10 * row + column, (2, 3), dtype="int32")
      Array([[ 0,  1,  2],
             [10, 11, 12]], dtype=int32)
    """
    check_callable(function, "fromfunction")
    shape = static_shape(shape, "fromfunction")
    dtype = default_int() if dtype is None else requested_dtype(dtype, "fromfunction")
    mapped = functools.partial(function, **kwargs) if kwargs else function
    for axis in reversed(range(len(shape))):
        mapped = vmap(mapped, in_axes=tuple(0 if i == axis else None for i in range(len(shape))))
    return mapped(*(iota(dtype, size) for size in shape))


def vectorize(pyfunc, *, excluded=frozenset(), signature=None):
    """A function of numbers or small arrays, made to take arrays of them, which broadcast.

    Args:
      pyfunc: the function.
      excluded: positions and names of arguments that are passed on as they are. Without a
        signature, so is None.
      signature: the axes that each argument and result of `pyfunc` has, such as
        "(m,n),(n)->(m)"; None for numbers. The other axes of the arguments broadcast together.
        A result may be a tree: all its arrays have these axes, or any for "()".

    Returns:
      The function. It raises ShapeError for arguments that do not fit the signature, and
      AttributeValueError for None in place of an argument of the signature.

    Examples:
      >>> spread = wnp.vectorize(lambda x: x.max() - x.min(), signature="(n)->()")
      >>> spread(wnp.array([[1, 5, 3], [7, 7, 7]]))
      Array([4, 0], dtype=int32)
    """
    check_callable(pyfunc, "vectorize")
    excluded = frozenset(excluded)
    if any(not isinstance(each, (int, str)) for each in excluded):
        raise TypeError(
            f"[vectorize] expected excluded to hold positions and names; got {set(excluded)}"
        )
    if any(isinstance(each, int) and each < 0 for each in excluded):
        raise AttributeValueError(
            f"[vectorize] expected positions in excluded of at least 0; got {set(excluded)}"
        )
    parsed = None if signature is None else _parsed(signature)

    @named_after(pyfunc)
    def vectorized(*args, **kwargs):
        keys = [i for i in range(len(args)) if i not in excluded]
        keys += [name for name in kwargs if name not in excluded]
        values = [args[key] if isinstance(key, int) else kwargs[key] for key in keys]
        if any(x is None for x in values):
            if parsed is not None:
                raise AttributeValueError(
                    f"[vectorize] expected arrays, as the signature {signature} has; got None\n"
                    "  Name the argument in excluded."
                )
            # None has no elements to go through: the function gets it as it is.
            present = [i for i, x in enumerate(values) if x is not None]
            keys, values = [keys[i] for i in present], [values[i] for i in present]

        @named_after(pyfunc)
        def call(*values):
            given = dict(zip(keys, values, strict=True))
            return pyfunc(
                *(given.get(i, x) for i, x in enumerate(args)),
                **{name: given.get(name, x) for name, x in kwargs.items()},
            )

        return _apply(call, [array(x, copy=False) for x in values], parsed, signature)

    return vectorized


def _apply(call, values, parsed, signature):
    inputs, outputs = parsed or ([()] * len(values), None)
    if len(inputs) != len(values):
        raise TypeError(
            f"[vectorize] expected {len(inputs)} arguments, as the signature {signature} has; got "
            f"{len(values)}"
        )
    sizes = {}
    loops = []
    for x, names in zip(values, inputs, strict=True):
        split = ndim_of(x) - len(names)
        if split < 0:
            raise ShapeError(
                f"[vectorize] expected an argument with the axes ({', '.join(names)}); got shape "
                f"{shape_of(x)}"
            )
        loops.append(shape_of(x)[:split])
        _match(sizes, names, shape_of(x)[split:], "an argument")
    _core.check_ranks("vectorize", tuple(values), tuple(map(len, inputs)))
    batch = common_shape(loops, "vectorize")

    @named_after(call)
    def checked(*values):
        results = call(*values)
        return results if outputs is None else _checked(results, outputs, dict(sizes))

    # Axes of size 1 are left out, so that nothing is repeated.
    function, single = checked, []
    for axis in reversed(range(len(batch))):
        places = [axis - len(batch) + len(loop) for loop in loops]
        mapped = tuple(
            0 if at >= 0 and loop[at] != 1 else None for at, loop in zip(places, loops, strict=True)
        )
        if all(each is None for each in mapped):
            single.append(axis)
        if all(each is None for each in mapped) and batch[axis] == 1:
            continue
        function = vmap(function, in_axes=mapped)
    values = [
        reshape(x, [*(n for n in loop if n != 1), *shape_of(x)[len(loop) :]])
        for x, loop in zip(values, loops, strict=True)
    ]
    results = function(*values)
    return tree_map(lambda x: expand_dims(x, sorted(single)), results) if single else results


def _match(sizes, names, shape, what):
    for name, size in zip(names, shape, strict=True):
        if sizes.setdefault(name, size) != size:
            raise ShapeError(
                f"[vectorize] expected size {sizes[name]} of the axis {name!r} of {what}; got "
                f"{size}"
            )


def _checked(results, outputs, sizes):
    """The results, with as many axes as the signature says, of sizes that are alike."""
    several = len(outputs) != 1
    if several and not isinstance(results, tuple):
        raise TypeError(
            f"[vectorize] expected a tuple of {len(outputs)} results; got {results!r:.60}"
        )
    listed = results if several else (results,)
    if len(listed) != len(outputs):
        raise TypeError(f"[vectorize] expected {len(outputs)} results; got {len(listed)}")
    for result, names in zip(listed, outputs, strict=True):
        # As a whole a tree has no axes: "()" leaves open which its arrays have.
        if not names and not treedef_is_leaf(tree_structure(result)):
            continue
        for x in tree_leaves(result):
            if ndim_of(x) != len(names):
                raise ShapeError(
                    f"[vectorize] expected a result with the axes ({', '.join(names)}); got shape "
                    f"{shape_of(x)}"
                )
            _match(sizes, names, shape_of(x), "a result")
    return results


def apply_along_axis(func1d, axis, arr, *args, **kwargs):
    """A function of a vector applied to all vectors that lie along an axis.

    Args:
      func1d: the function; its results stand in the place of the axis.
      axis: the axis.
      arr: array.
      args, kwargs: further arguments of `func1d`.

    Examples:
      >>> wnp.apply_along_axis(lambda x: x / x.sum(), 1, wnp.array([[1.0, 3.0], [2.0, 2.0]]))
      Array([[0.25, 0.75],
             [0.5 , 0.5 ]], dtype=float32)
    """
    ndim = ndim_of(arr)
    axis = normalize_axis(axis, ndim, "apply_along_axis")

    def function(vector):
        return func1d(vector, *args, **kwargs)

    for _ in range(ndim - 1):
        function = vmap(function)

    def placed(x):
        new = ndim_of(x) - (ndim - 1)
        return moveaxis(x, range(ndim - 1, ndim_of(x)), range(axis, axis + new))

    return tree_map(placed, function(moveaxis(arr, axis, -1)))


def apply_over_axes(func, a, axes):
    """`func(a, axis)` applied for one axis after another, each to the result of the one before.

    Args:
      func: function of an array and an axis; a result that lacks the axis gets it back, of size 1.
      a: array.
      axes: the axes.

    Raises ShapeError for results of `func` with another number of axes.

    Examples:
      >>> wnp.apply_over_axes(wnp.sum, wnp.array([[1, 2], [3, 4]]), (0, 1))
      Array([[10]], dtype=int32)
    """
    ndim = ndim_of(a)
    for axis in axes:
        axis = normalize_axis(axis, ndim, "apply_over_axes")
        result = func(a, axis)
        if ndim_of(result) == ndim - 1:
            result = expand_dims(result, axis)
        if ndim_of(result) != ndim:
            raise ShapeError(
                f"[apply_over_axes] expected a result with {ndim} axes or one less; got shape "
                f"{shape_of(result)}"
            )
        a = result
    return _core.asarray(a)
