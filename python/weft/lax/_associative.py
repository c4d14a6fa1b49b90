"""associative_scan: prefix combinations in blocks."""

import math

from weft import _core
from weft._arguments import normalize_axis
from weft._recording import check_callable, check_leaves, function_name, leaf_paths
from weft._types.avals import typeof
from weft.errors import ShapeError, TreeStructureError
from weft.lax._control import scan
from weft.lax._regions import check_same_tree, check_same_types
from weft.lax._shape import broadcast_in_dim, concatenate, reshape, rev, transpose
from weft.lax._slice import sliced
from weft.runtime.pytree import registry

# Up to this many elements are combined one after the other.
_BLOCK = 64


def associative_scan(fn, elems, reverse=False, axis=0):
    """All prefix combinations of the elements along an axis: e0, e0*e1, e0*e1*e2, ...

    The axis is cut into blocks. A loop goes through the elements of all blocks at once; the totals
    of the blocks are scanned in the same way, and combined with what is within the blocks. So `fn`
    is applied to at most about three times as many elements as there are, is traced and compiled
    a few times however many there are, and loops are short: 126 steps for 4096 elements. (Blelloch,
    "Prefix sums and their applications", 1990, with blocks in place of pairs.)

    Args:
      fn: associative function of two trees like `elems`, whose arrays have any number of elements
        along the axis; combines them element by element, and returns a tree of as many arrays, of
        the same types.
      elems: tree of arrays of one length along the axis.
      reverse: combine from the last element on: element i is e[n-1] * ... * e[i].
      axis: the axis, of every array.

    Returns a tree like `elems`.

    Raises ShapeError if lengths differ, TreeStructureError if `fn` returns more arrays or
    fewer, ControlFlowTypeError if it returns other types, AttributeValueError for an axis out of
    bounds.

    Examples:
      >>> lax.associative_scan(wnp.multiply, wnp.array([1, 2, 3, 4]))
      Array([ 1,  2,  6, 24], dtype=int32)
    """
    check_callable(fn, "associative_scan")
    leaves, tree = registry.flatten(elems)
    check_leaves(leaves, lambda i: f"elems{leaf_paths(tree)[i]} of associative_scan")
    if not leaves:
        return elems
    prefixes = _Prefixes(fn, leaves, tree, axis)
    if reverse:
        leaves = [rev(x, (a,)) for x, a in zip(leaves, prefixes.axes, strict=True)]
    results = prefixes(leaves)
    if reverse:
        results = [rev(x, (a,)) for x, a in zip(results, prefixes.axes, strict=True)]
    return tree.unflatten(results)


class _Prefixes:
    """The prefix combinations of lists of leaves, along one axis of each."""

    def __init__(self, fn, leaves, tree, axis):
        self.fn, self.tree = fn, tree
        shapes = [_core.typeof(x)[0] for x in leaves]
        self.axes = [normalize_axis(axis, len(shape), "associative_scan") for shape in shapes]
        sizes = [shape[a] for shape, a in zip(shapes, self.axes, strict=True)]
        if len(set(sizes)) > 1:
            pairs = zip(leaf_paths(tree), sizes, strict=True)
            listed = "".join(f"\n  elems{path}: length {size}" for path, size in pairs)
            raise ShapeError(f"[associative_scan] expected one length along the axis; got{listed}")

    def __call__(self, xs):
        n = self._length(xs)
        if n < 2:
            return [_core.asarray(x) for x in xs]
        if n <= _BLOCK:
            return self._one_by_one(self._part(xs, 0, 1), self._part(xs, 1, n), keep_first=True)
        block = min(_BLOCK, math.isqrt(n))
        count = n // block
        whole = count * block
        # [i-th of its block, ..., block, ...]
        rows = [
            _to_front(_split(x, a, count, block), a + 1)
            for x, a in zip(self._part(xs, 0, whole), self.axes, strict=True)
        ]
        first = [reshape(x, x.shape[1:]) for x in (sliced(r, 0, 1) for r in rows)]
        totals, inner = self._loop(first, [sliced(r, 1, block) for r in rows])
        inner = [concatenate([sliced(r, 0, 1), y], 0) for r, y in zip(rows, inner, strict=True)]
        inner = [_join(_from_front(y, a + 1), a) for y, a in zip(inner, self.axes, strict=True)]
        totals = self(totals)
        before = [
            _repeat(x, a, block)
            for x, a in zip(self._part(totals, 0, count - 1), self.axes, strict=True)
        ]
        later = self._combine(before, self._part(inner, block, whole))
        parts = [self._part(inner, 0, block), later]
        if whole < n:
            last = self._part(totals, count - 1, count)
            parts.append(self._one_by_one(last, self._part(xs, whole, n), keep_first=False))
        return self._concatenated(parts)

    def _one_by_one(self, first, rest, keep_first):
        """Prefixes of `first` (one element) and the elements of `rest`, by a loop."""
        rows = [_to_front(_split(x, a, -1, 1), a) for x, a in zip(rest, self.axes, strict=True)]
        _, ys = self._loop(first, rows)
        ys = [_join(_from_front(y, a), a) for y, a in zip(ys, self.axes, strict=True)]
        return self._concatenated([first, ys]) if keep_first else ys

    def _loop(self, first, rows):
        def step(carry, row):
            carry = self._combine(carry, row)
            return carry, carry

        return scan(step, first, rows)

    def _combine(self, xs, ys):
        result = self.fn(self.tree.unflatten(xs), self.tree.unflatten(ys))
        leaves, tree = registry.flatten(result)
        name = function_name(self.fn)
        check_leaves(leaves, lambda i: f"a result of '{name}'")
        message = f"[associative_scan] expected '{name}' to return what it takes"
        types = [typeof(x) for x in xs]
        own = [typeof(x) for x in leaves]
        if len(own) != len(types):  # a list does where there was a tuple
            whole, got = self.tree.unflatten(types), tree.unflatten(own)
            check_same_tree(whole, got, message, "result", TreeStructureError)
        check_same_types(self.tree, types, own, message, "result")
        return leaves

    def _length(self, xs):
        return _core.typeof(xs[0])[0][self.axes[0]]

    def _part(self, xs, begin, end):
        return [sliced(x, begin, end, axis=a) for x, a in zip(xs, self.axes, strict=True)]

    def _concatenated(self, parts):
        columns = zip(*parts, strict=True)
        return [concatenate(list(p), a) for p, a in zip(columns, self.axes, strict=True)]


def _split(x, axis, count, block):
    """An axis as two: blocks, and the elements of each; count -1: as many as there are."""
    shape = _core.typeof(x)[0]
    count = shape[axis] // block if count < 0 else count
    return reshape(x, (*shape[:axis], count, block, *shape[axis + 1 :]))


def _join(x, axis):
    """The axes `axis` and the next as one."""
    shape = _core.typeof(x)[0]
    return reshape(x, (*shape[:axis], shape[axis] * shape[axis + 1], *shape[axis + 2 :]))


def _to_front(x, axis):
    rest = [i for i in range(len(x.shape)) if i != axis]
    return transpose(x, (axis, *rest))


def _from_front(x, axis):
    order = list(range(1, len(x.shape)))
    order.insert(axis, 0)
    return transpose(x, tuple(order))


def _repeat(x, axis, times):
    """Each element along an axis, several times."""
    shape = _core.typeof(x)[0]
    kept = tuple(i if i <= axis else i + 1 for i in range(len(shape)))
    wide = broadcast_in_dim(x, (*shape[: axis + 1], times, *shape[axis + 1 :]), kept)
    return _join(wide, axis)
