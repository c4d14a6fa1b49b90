"""scan and map."""

import functools
import operator
from typing import Any

import numpy as np

from weft import _checkpoint, _core
from weft._arguments import from_whole_float, static_int
from weft._dims import is_symbolic_dim, to_size
from weft._recording import check_callable, check_leaves, leaf_paths
from weft._tree_mismatch import structure_text
from weft._types.avals import typeof
from weft._vmap import vmap
from weft.errors import AttributeValueError, ControlFlowTypeError, ShapeError, ShardingError
from weft.lax._regions import (
    Body,
    check_carry,
    check_no_refs,
    check_same_tree,
    promoted_carry,
    refs_among,
    regions,
    runs_in_python,
    split,
    unites_axes,
    weak_types,
    written,
)
from weft.lax._shape import concatenate, reshape, stack
from weft.lax._slice import index_in_dim, sliced
from weft.runtime.pytree import registry


def scan(
    f,
    init,
    xs=None,
    length=None,
    reverse=False,
    unroll=1,
    _split_transpose=False,
    *,
    checkpoint=None,
):
    """Loops over the leading axis of arrays, carrying a value along.

    It computes what this does, as one loop of the compiled program:

        def scan(f, init, xs):
            carry, ys = init, []
            for x in xs:
                carry, y = f(carry, x)
                ys.append(y)
            return carry, stack(ys)

    Args:
      f: function of the carry and a slice of xs; returns the next carry and a tree to be stacked.
      init: tree of arrays, the first carry. A Python number takes the dtype that `f` makes of it.
      xs: tree of arrays with leading axes of one length; None for a loop that reads nothing. For
        a ref among them `f` gets a ref to a slice of it.
      length: number of iterations; needed without xs.
      reverse: start with the last slice of xs. Slices of ys stand where those of xs stood.
      unroll: how many iterations are one of the loop in the compiled program; 0 or True for all.
      _split_transpose: accepted for compatibility; has no effect.
      checkpoint: reverse-mode derivatives keep the carry of every so many iterations only, and
        compute what lies between again. The square root of the length needs least memory.

    Returns (last carry, ys). Reverse-mode derivatives keep what each iteration needs, once.

    Raises ControlFlowTypeError if `f` returns no pair or changes the type of the carry, ShapeError
    or AttributeValueError if lengths disagree.

    Examples:
      >>> total, running = lax.scan(lambda sum, x: (sum + x, sum + x), 0, wnp.array([1, 2, 3]))
      >>> total.item(), running
      (6, Array([1, 3, 6], dtype=int32))
    """
    return scan_with(False, f, init, xs, length, reverse, unroll, checkpoint=checkpoint)


def scan_with(is_own, f, init, xs=None, length=None, reverse=False, unroll=1, *, checkpoint=None):
    """`scan`; `is_own`: for a function of weft (see `unites_axes`)."""
    check_callable(f, "scan")
    xs_leaves, xs_tree = registry.flatten(xs)
    xs_refs = refs_among(xs_leaves, lambda i: f"xs{leaf_paths(xs_tree)[i]} of scan")
    check_leaves(xs_leaves, lambda i: f"xs{leaf_paths(xs_tree)[i]} of scan")
    length = _length(xs_leaves, xs_tree, length)
    unroll = _unroll(unroll, length)
    leaves, tree = registry.flatten(init)
    check_no_refs(leaves, "init of scan")
    if checkpoint is not None:
        check_no_refs(xs_refs.values(), "xs of scan with checkpoint")
        return _in_segments(
            is_own, f, init, xs_leaves, xs_tree, length, reverse, unroll, checkpoint
        )
    if runs_in_python() and length > 0:
        return _run(f, init, xs_leaves, xs_refs, xs_tree, length, reverse)
    check_leaves(leaves, lambda i: f"init{leaf_paths(tree)[i]} of scan")
    slices = [_slice_type(x) for x in xs_leaves]
    while True:
        body = Body(
            f,
            [tree, xs_tree],
            [*leaves, *slices],
            "scan",
            ["carry", "x"],
            slices=[len(leaves) + i for i in xs_refs],
            writes=True,
        )
        ys_tree = _check_result(body, tree, [typeof(x) for x in leaves])
        leaves, changed = promoted_carry(leaves, body.out_types[: len(leaves)])
        if not changed:
            break
    check_carry(body, tree, leaves, "carry")
    refs = written(body)
    (graph,), captures = regions(body, refs=refs)
    results = _core.bind_graphs(
        "scan",
        [*captures, *leaves, *xs_leaves],
        (*weak_types(refs), *body.weak, *body.changed_weak),
        jaxpr=graph,
        length=length,
        reverse=bool(reverse),
        unroll=unroll,
        num_consts=len(captures) - len(refs),
        num_carry=len(refs) + len(leaves),
        auto_pcast=unites_axes(is_own),
    )
    values, carry, ys, parts = split(results, len(refs), len(leaves), ys_tree.num_leaves)
    _core.set_refs(
        refs + [xs_refs[i - len(leaves)] for i in body.changed],
        values + parts,
    )
    return tree.unflatten(carry), ys_tree.unflatten(ys)


def _length(leaves, tree, length):
    shapes = [_core.typeof(x)[0] for x in leaves]
    paths = [f"xs{path}" for path in leaf_paths(tree)] if leaves else []
    for path, shape in zip(paths, shapes, strict=True):
        if not shape:
            raise ShapeError(f"[scan] expected xs with a leading axis; {path} is a scalar")
    sizes = [shape[0] for shape in shapes]

    def listed():
        pairs = zip(paths, sizes, strict=True)
        return "".join(f"\n  {path}: length {size}" for path, size in pairs)

    if len(set(sizes)) > 1:
        raise ShapeError(f"[scan] expected leading axes of one length in xs; got{listed()}")
    if length is None:
        if not sizes:
            raise AttributeValueError("[scan] expected xs or a length; got neither")
        return sizes[0]
    try:
        length = to_size(from_whole_float(length))
    except TypeError:
        raise TypeError(f"[scan] expected an integer as length; got {length!r}") from None
    if not is_symbolic_dim(length) and not 0 <= length < 2**63:
        raise AttributeValueError(f"[scan] expected a length between 0 and 2**63 - 1; got {length}")
    if sizes and length != sizes[0]:
        raise ShapeError(f"[scan] expected xs of the given length {length}; got{listed()}")
    return length


def _unroll(unroll, length):
    if isinstance(unroll, bool):
        return max(length, 1) if unroll else 1
    try:
        unroll = operator.index(unroll)
    except TypeError:
        raise TypeError(f"[scan] expected unroll to be an int or a bool; got {unroll!r}") from None
    if unroll < 0:
        raise AttributeValueError(f"[scan] expected unroll >= 0; got {unroll}")
    return max(unroll or length, 1)


def _in_segments(is_own, f, carry, xs, xs_tree, length, reverse, unroll, size):
    """scan(..., checkpoint=size): a scan over segments, each a scan that is computed again."""
    size = static_int(size, "scan", "checkpoint")
    if size < 1:
        raise AttributeValueError(f"[scan] expected checkpoint >= 1; got {size}")
    name = getattr(f, "__name__", "f")

    def segment(carry, xs, length):
        # What the carry varies over is for the loop around to say.
        return scan_with(True, f, carry, xs, length, reverse, unroll)

    def part(begin, end):
        return [sliced(x, begin, end) for x in xs]

    count, rest = divmod(length, size)
    whole = count * size
    pieces = []

    def run_segments(carry):
        rows = [reshape(x, (count, size, *_core.typeof(x)[0][1:])) for x in part(0, whole)]
        body = _rematerialized(functools.partial(segment, length=size), name)
        carry, ys = scan_with(is_own, body, carry, xs_tree.unflatten(rows), count, reverse)
        leaves, tree = registry.flatten(ys)
        pieces.append([reshape(y, (whole, *_core.typeof(y)[0][2:])) for y in leaves])
        return carry, tree

    def run_rest(carry):
        body = _rematerialized(functools.partial(segment, length=rest), name)
        carry, ys = body(carry, xs_tree.unflatten(part(whole, length)))
        leaves, tree = registry.flatten(ys)
        pieces.append(leaves)
        return carry, tree

    stages = [run for run, n in ((run_segments, count), (run_rest, rest)) if n]
    for run in reversed(stages) if reverse else stages:
        carry, tree = run(carry)
    if not stages:
        return scan_with(is_own, f, carry, xs_tree.unflatten(xs), 0, reverse)
    if reverse:
        pieces.reverse()
    joined = (
        pieces[0] if len(pieces) == 1 else [concatenate(p, 0) for p in zip(*pieces, strict=True)]
    )
    return carry, tree.unflatten(joined)


def _rematerialized(fun: Any, name: str) -> Any:
    fun.__name__ = name
    return _checkpoint.checkpoint(fun)


def _slice_type(x):
    whole: Any = typeof(x)
    split = whole._place
    if split is not None:
        if split.spec[0] is not None:
            raise ShardingError(
                f"scan expected xs that are not split along axis 0, where it runs; got {whole}"
                "\n  Bring it into another sharding first with weft.reshard."
            )
        split = split.with_spec(split.spec[1:])
    return whole.update(shape=whole.shape[1:], sharding=split)


def _check_result(body, tree, types):
    """The tree of ys; raises unless the body returns a pair of a carry and them."""
    result = body.structure()
    if not (isinstance(result, (tuple, list)) and len(result) == 2):
        raise ControlFlowTypeError(
            f"[scan] expected '{body.name}' to return a pair (carry, y); got "
            f"{structure_text(body.out_tree)}"
        )
    check_same_tree(
        tree.unflatten(types),
        result[0],
        f"[scan] expected '{body.name}' to return a carry of the structure it takes",
        "carry",
    )
    return registry.flatten(result[1])[1]


def _run(f, carry, xs, refs, xs_tree, length, reverse):
    """The loop in Python, for debugging."""
    rows = []
    for i in reversed(range(length)) if reverse else range(length):
        x = [index_in_dim(x, i, keepdims=False) for x in xs]
        for k in refs:
            x[k] = _core.new_ref(x[k], True)
        carry, y = f(carry, xs_tree.unflatten(x))
        for k, ref in refs.items():
            ref[i] = x[k][...]
        rows.append(registry.flatten(y))
    if reverse:
        rows.reverse()
    columns = zip(*(leaves for leaves, _ in rows), strict=True)
    return carry, rows[0][1].unflatten([stack([_core.asarray(y) for y in ys]) for ys in columns])


def map(f, xs, *, batch_size=None):
    """`f` applied to each slice along the leading axis of arrays, one after the other; stacked.

    Args:
      f: function of a slice of xs to a tree of arrays.
      xs: tree of arrays with leading axes of one length.
      batch_size: how many slices are computed at a time, by `vmap`; None or 0: one, without `vmap`.

    Raises what `scan` raises.

    Examples:
      >>> lax.map(lambda x: x * x, wnp.array([1, 2, 3]))
      Array([1, 4, 9], dtype=int32)
    """
    return map_with(False, f, xs, batch_size=batch_size)


def map_with(is_own, f, xs, *, batch_size=None):
    """`map`; `is_own`: for a function of weft (see `unites_axes`)."""
    check_callable(f, "map")
    if not batch_size:
        return scan_with(is_own, lambda _, x: ((), f(x)), (), xs)[1]
    try:
        batch_size = operator.index(batch_size)
    except TypeError:
        raise TypeError(f"[map] expected an integer as batch_size; got {batch_size!r}") from None
    if batch_size < 1:
        raise AttributeValueError(f"[map] expected batch_size >= 1; got {batch_size}")
    leaves, tree = registry.flatten(xs)
    check_leaves(leaves, lambda i: f"xs{leaf_paths(tree)[i]} of map")
    length = _length(leaves, tree, None)
    whole = length - length % batch_size
    parts = []
    if whole or not length:
        groups = [
            reshape(sliced(x, 0, whole), (whole // batch_size, batch_size, *np.shape(x)[1:]))
            for x in leaves
        ]
        ys = scan_with(is_own, lambda _, x: ((), vmap(f)(x)), (), tree.unflatten(groups))[1]
        ys, ys_tree = registry.flatten(ys)
        parts.append([reshape(y, (whole, *_core.typeof(y)[0][2:])) for y in ys])
    if whole < length:
        rest = vmap(f)(tree.unflatten([sliced(x, whole, length) for x in leaves]))
        rest, ys_tree = registry.flatten(rest)
        parts.append(rest)
    joined = parts[0] if len(parts) == 1 else [concatenate(p, 0) for p in zip(*parts, strict=True)]
    return ys_tree.unflatten(joined)
