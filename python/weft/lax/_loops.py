"""while_loop and fori_loop."""

import contextlib
import itertools
import math
import operator

import numpy as np

from weft import _core
from weft._arguments import static_int
from weft._checkpoint import checkpoint
from weft._dims import SymbolicDim
from weft._recording import check_callable, check_leaves, leaf_paths
from weft._tree_mismatch import structure_text
from weft._types.avals import typeof
from weft.config import enable_x64
from weft.dtypes import is_float
from weft.errors import AttributeValueError, ConcretizationTypeError, ControlFlowTypeError
from weft.lax._branches import cond_with
from weft.lax._regions import (
    Body,
    check_carry,
    check_no_refs,
    check_same_tree,
    promoted_carry,
    regions,
    runs_in_python,
    split,
    unites_axes,
    weak_types,
    written,
)
from weft.lax._scan import scan_with
from weft.runtime.pytree import registry
from weft.tree_util import tree_map


def while_loop(cond_fun, body_fun, init_val, *, max_steps=None):
    """Repeats `val = body_fun(val)` while `cond_fun(val)` holds, from `init_val`; returns `val`.

    Forward-mode derivatives and `vmap` work; under `vmap` with a condition that differs between
    lanes, the loop runs until no lane is left, and lanes that have stopped keep their value. A
    reverse-mode derivative of what changes has to keep something of every step, and needs a bound:
    `max_steps`, or use `scan`, or `fori_loop` with bounds that are known.

    Args:
      cond_fun: function from the loop's value to a bool scalar.
      body_fun: function from the loop's value to one of the same structure, shapes and dtypes.
      init_val: tree of arrays. A Python number takes the dtype that `body_fun` makes of it.
      max_steps: at most so many steps are made, and there is a reverse-mode derivative, which
        keeps about twice the square root of max_steps values and makes each step once more.

    Raises ControlFlowTypeError if `cond_fun` returns something else, or if the value changes its
    type.

    Examples:
      >>> lax.while_loop(lambda x: x < 100, lambda x: 2 * x, 7).item()
      112
    """
    return while_loop_with(False, cond_fun, body_fun, init_val, max_steps=max_steps)


def while_loop_with(is_own, cond_fun, body_fun, init_val, *, max_steps=None):
    """`while_loop`; `is_own`: for a function of weft (see `unites_axes`)."""
    check_callable(cond_fun, "while_loop")
    check_callable(body_fun, "while_loop")
    if max_steps is not None:
        max_steps = static_int(max_steps, "while_loop", "max_steps")
        if max_steps < 0:
            raise AttributeValueError(f"[while_loop] expected max_steps >= 0; got {max_steps}")
    if runs_in_python():
        try:
            val = tree_map(_core.asarray, init_val)
            steps = itertools.count() if max_steps is None else range(max_steps)
            for _ in steps:
                if not cond_fun(val):
                    break
                val = body_fun(val)
            return val
        except ConcretizationTypeError:
            pass  # a condition without one value (vmap): only the loop itself can decide
    leaves, tree = registry.flatten(init_val)
    check_no_refs(leaves, "init_val of while_loop")
    check_leaves(leaves, lambda i: f"init_val{leaf_paths(tree)[i]} of while_loop")
    while True:
        body = Body(body_fun, [tree], leaves, "while_loop", ["val"], writes=True)
        check_same_tree(
            tree.unflatten([typeof(x) for x in leaves]),
            body.structure(),
            f"[while_loop] expected '{body.name}' to return a value of the structure it takes",
            "val",
        )
        leaves, changed = promoted_carry(leaves, body.out_types)
        if not changed:
            break
    check_carry(body, tree, leaves, "val")
    condition = Body(cond_fun, [tree], leaves, "while_loop", ["val"])
    _check_condition(condition)
    if max_steps is not None:
        return _bounded(is_own, cond_fun, body_fun, tree.unflatten(leaves), max_steps)
    refs = written(body)
    (cond_graph,), captures = regions(condition, refs=refs, returned=False)
    cond_consts, _ = split(captures, len(captures) - len(refs))
    (body_graph,), captures = regions(body, refs=refs)
    body_consts, values = split(captures, len(captures) - len(refs))
    results = _core.bind_graphs(
        "while",
        [*cond_consts, *body_consts, *values, *leaves],
        (*weak_types(refs), *body.weak),
        cond_jaxpr=cond_graph,
        cond_nconsts=len(cond_consts),
        body_jaxpr=body_graph,
        body_nconsts=len(body_consts),
        auto_pcast=unites_axes(is_own),
    )
    values, results = split(results, len(refs))
    _core.set_refs(refs, values)
    return tree.unflatten(results)


def _bounded(is_own, cond_fun, body_fun, val, max_steps):
    """The loop as a scan over segments, which are skipped once the condition has failed."""
    size = max(math.isqrt(max_steps), 1)
    count, rest = divmod(max_steps, size)

    def while_true(fun):
        # What the carry varies over is for the loop around to say.
        return lambda val, _: (cond_with(True, cond_fun(val), fun, lambda val: val, val), None)

    def segment(val):
        return scan_with(True, while_true(body_fun), val, length=size)[0]

    val = scan_with(is_own, while_true(checkpoint(segment)), val, length=count)[0]
    return scan_with(is_own, while_true(body_fun), val, length=rest)[0]


def _check_condition(condition):
    leaf = registry.flatten(0)[1]
    types = condition.out_types
    if condition.out_tree != leaf:
        got = f"the tree {structure_text(condition.out_tree)}"
    elif types[0].shape or types[0].dtype != bool:
        got = types[0]
    else:
        return
    raise ControlFlowTypeError(
        f"[while_loop] expected '{condition.name}' to return a bool scalar; got {got}"
    )


def fori_loop(lower, upper, body_fun, init_val, *, unroll=None, max_steps=None):
    """Repeats `val = body_fun(i, val)` for i = lower .. upper - 1, from `init_val`; returns `val`.

    With bounds whose values are known it is a `scan` and has derivatives in both modes; with traced
    bounds it is a `while_loop`, which needs `max_steps` for a reverse-mode derivative.

    Args:
      lower, upper: integer scalars of one dtype, which the index has; a Python number takes the
        other's, which is signed. Where a bound does not fit that dtype, the index is an int64 (also
        in 32-bit mode), or as wide as it takes. Both may be floats, for a `while_loop` that counts
        in them.
      body_fun: function of the index and the loop's value to one of the same structure, shapes and
        dtypes.
      init_val: tree of arrays. A Python number takes the dtype that `body_fun` makes of it.
      unroll: for known bounds, as for `scan`.
      max_steps: for traced bounds, as for `while_loop`: at most so many steps are made.

    Raises ControlFlowTypeError for bounds that are no integers, of two dtypes or beyond 64 bits, or
    if the value changes its type; ValueError for `unroll` with traced bounds.

    Examples:
      >>> lax.fori_loop(1, 5, lambda i, product: product * i, 1).item()
      24
    """
    return fori_loop_with(
        False, lower, upper, body_fun, init_val, unroll=unroll, max_steps=max_steps
    )


def fori_loop_with(is_own, lower, upper, body_fun, init_val, *, unroll=None, max_steps=None):
    """`fori_loop`; `is_own`: for a function of weft (see `unites_axes`)."""
    check_callable(body_fun, "fori_loop")
    if _check_bounds(lower, upper):

        def counted(state):
            i, val = state
            return i + 1, body_fun(i, val)

        start = (lower, init_val)
        return while_loop_with(is_own, lambda state: state[0] < upper, counted, start)[1]
    if runs_in_python():
        try:
            val = init_val
            for i in range(int(lower), int(upper)):
                val = body_fun(i, val)
            return val
        except ConcretizationTypeError:
            pass
    dtype = _index_dtype(lower, upper)
    first, last = _known(lower), _known(upper)
    name = getattr(body_fun, "__name__", "body_fun")
    if first is None or last is None:
        if unroll not in (None, False, 1):
            raise ValueError("[fori_loop] expected bounds of known values with unroll; got traced")
        with _counting_in(dtype):
            if dtype is not None:
                lower, upper = _weak(lower, dtype), _weak(upper, dtype)
            elif typeof(lower).dtype != typeof(upper).dtype:
                lower, upper = _core.promote_dtypes(lower, upper)

        def step(state):
            i, val = state
            return _next(i, dtype), body_fun(i, val)

        def below(state):
            with _counting_in(dtype):
                return state[0] < upper

        step.__name__ = name
        start = (lower, init_val)
        return while_loop_with(is_own, below, step, start, max_steps=max_steps)[1]

    def scanned(state, _):
        i, val = state
        return (_next(i, dtype), body_fun(i, val)), None

    scanned.__name__ = name
    length = max(last - first, 0)
    unroll = 1 if unroll is None else unroll
    if dtype is not None:
        with _counting_in(dtype):
            first = _weak(first, dtype)
    return scan_with(is_own, scanned, (first, init_val), length=length, unroll=unroll)[0][1]


def _index_dtype(lower, upper):
    """The dtype to count in, if that of the bounds does not hold one of them; else None."""
    bounds = [(bound, typeof(bound), _known(bound)) for bound in (lower, upper)]
    is_traced = any(value is None for _, _, value in bounds)
    strong = [aval.dtype for _, aval, _ in bounds if is_traced and not aval.weak_type]
    own = strong[0] if strong else _core.canonical_dtype(int)
    limits = [own if value is None else value for _, _, value in bounds]
    lowest = min(np.iinfo(x).min if x is own else x for x in limits)
    highest = max(np.iinfo(x).max if x is own else x for x in limits)
    for dtype in (own, *map(np.dtype, ("int32", "int64", "uint64"))):
        if np.iinfo(dtype).min <= lowest and highest <= np.iinfo(dtype).max:
            return None if dtype == own == _core.canonical_dtype(own) else dtype
    raise ControlFlowTypeError(
        "[fori_loop] expected bounds that an integer of 64 bits can count between; got "
        + " and ".join(str(aval if value is None else value) for _, aval, value in bounds)
    )


def _counting_in(dtype):
    """Where arithmetic on an index of such a dtype keeps it, also in 32-bit mode."""
    wide = dtype is not None and dtype.itemsize == 8
    return enable_x64(True) if wide else contextlib.nullcontext()


def _next(i, dtype):
    with _counting_in(dtype):
        return i + 1


def _weak(x, dtype):
    """x, which may be a Python integer of any size, as a weakly typed scalar of the dtype."""
    if not isinstance(x, (_core.Tracer, SymbolicDim)):
        x = dtype.type(x)
    return _core.bind("convert_element_type", x, new_dtype=dtype, weak_type=True)


def _check_bounds(lower, upper):
    """Raises for bounds that the loop does not take; whether they are floats."""
    types = []
    for bound in (lower, upper):
        try:
            types.append(typeof(bound))
        except TypeError:
            raise ControlFlowTypeError(
                f"[fori_loop] expected integer bounds; got {bound!r:.60}"
            ) from None
    floats = all(aval.shape == () and is_float(aval.dtype) for aval in types)
    if floats and len({aval.dtype for aval in types}) == 1:
        return True
    for aval in types:
        if aval.shape or aval.dtype.kind not in "iu":
            raise ControlFlowTypeError(
                f"[fori_loop] expected integer scalars as bounds; got {types[0]} and {types[1]}"
            )
    strong = {aval.dtype for aval in types if not aval.weak_type}
    # A Python integer is a signed one.
    if len(strong) > 1 or (strong and len({aval.dtype.kind for aval in types}) > 1):
        raise ControlFlowTypeError(
            f"[fori_loop] expected bounds of one dtype; got {types[0]} and {types[1]}"
        )
    return False


def _known(bound):
    """The bound as a Python integer; None if it is traced."""
    return None if isinstance(bound, (_core.Tracer, SymbolicDim)) else operator.index(bound)
