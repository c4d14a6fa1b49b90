"""What kernels call: where in the grid they are, loads and stores, conditions and loops."""

import contextvars
import math

import numpy as np

from weft import debug
from weft._refs import new_ref
from weft._slice import ds as dslice
from weft.dtypes import as_dtype, iinfo, issubdtype
from weft.errors import AttributeValueError
from weft.experimental.pallas._specs import MemoryRef
from weft.lax._branches import cond
from weft.lax._creation import full
from weft.lax._loops import fori_loop
from weft.numpy import where
from weft.tree_util import tree_map

ds = dslice

# The step of the kernel that is running: its indices and the sizes of the grid.
STEP = contextvars.ContextVar("step")


def _of_step(which, axis, function):
    step = STEP.get(None)
    if step is None:
        raise RuntimeError(f"[{function}] expected to be called by a kernel of pallas_call")
    if not 0 <= axis < len(step[which]):
        raise AttributeValueError(
            f"[{function}] expected an axis of the grid {step[1]}; got axis {axis}"
        )
    return step[which][axis]


def program_id(axis):
    """The index of the running step along an axis of the grid, an int32 scalar.

    Raises AttributeValueError for an axis that the grid does not have, RuntimeError outside of
    kernels.

    Examples:
      >>> from weft.experimental import pallas as pl
      >>> def kernel(out):
      ...     out[pl.program_id(0)] = 10 * pl.program_id(0)
      >>> shape = weft.ShapeDtypeStruct((3,), "int32")
      >>> pl.pallas_call(kernel, shape, grid=3, interpret=True)()
      Array([ 0, 10, 20], dtype=int32)
    """
    return _of_step(0, axis, "program_id")


def num_programs(axis):
    """The size of an axis of the grid: an int, or an array if the grid has that."""
    return _of_step(1, axis, "num_programs")


def when(condition, /):
    """A decorator that runs a function without arguments and results where `condition` is true.

    Examples:
      >>> from weft.experimental import pallas as pl
      >>> def kernel(out):
      ...     @pl.when(pl.program_id(0) == 1)
      ...     def _():
      ...         out[...] = wnp.ones(2)
      >>> shape = weft.ShapeDtypeStruct((2,), "float32")
      >>> pl.pallas_call(kernel, shape, grid=3, interpret=True)()
      Array([1., 1.], dtype=float32)
    """

    def run(function):
        if isinstance(condition, bool):
            if condition:
                function()
        else:
            cond(condition, function, lambda: None)

    return run


def loop(lower, upper, *, init_carry=None, step=1, unroll=None):
    """A decorator that runs `body(i)`, or `body(i, carry)`, for i = lower, lower + step, ...

    The name of the body stands for the last carry, or for None without `init_carry`. `unroll` is
    that of `weft.lax.fori_loop`.

    Examples:
      >>> from weft.experimental import pallas as pl
      >>> @pl.loop(0, 10, step=3, init_carry=1)
      ... def total(i, carry):
      ...     return carry + i
      >>> total.item()
      19
    """

    def run(body):
        def stepped(count, carry):
            i = lower + count * step
            return body(i) if init_carry is None else body(i, carry)

        return fori_loop(0, cdiv(upper - lower, step), stepped, init_carry, unroll=unroll)

    return run


def load(
    ref,
    idx=...,
    *,
    mask=None,
    other=None,
    cache_modifier=None,
    eviction_policy=None,
    volatile=False,
):
    """`ref[idx]`, with `other` where `mask` is False.

    Args:
      ref: a ref.
      idx: an index.
      mask: a boolean array that fits the result; None: all of it.
      other: what stands for masked elements, 0 by default.
      cache_modifier, eviction_policy, volatile: they have no effect.

    Examples:
      >>> from weft.experimental import pallas as pl
      >>> ref = weft.new_ref(wnp.arange(3))
      >>> pl.load(ref, mask=wnp.array([True, False, True]), other=-1)
      Array([ 0, -1,  2], dtype=int32)
    """
    found = ref[idx]
    if mask is None:
        return found
    return where(mask, found, np.zeros((), found.dtype) if other is None else other).astype(
        found.dtype
    )


def update(ref, idx, val, mask, rule, neutral=None):
    """What `ref[idx]` was before an update by a method of `.at[idx]`, such as "add".

    `neutral` takes the place of masked values; without one they are what was there.
    """
    old = ref[idx]
    if mask is not None:
        val = where(mask, val, old if neutral is None else neutral)
    ref[...] = getattr(ref[...].at[idx], rule)(val)
    return old


def store(ref, idx, val, *, mask=None, eviction_policy=None):
    """`ref[idx] = val`, but where `mask` is False; `eviction_policy` has no effect.

    Examples:
      >>> from weft.experimental import pallas as pl
      >>> ref = weft.new_ref(wnp.arange(3))
      >>> pl.store(ref, ..., 9, mask=wnp.array([True, False, True]))
      >>> ref[...]
      Array([9, 1, 9], dtype=int32)
    """
    ref[idx] = val if mask is None else where(mask, val, ref[idx]).astype(ref.dtype)


def uninitialized(shape, dtype):
    """The array that stands for memory nobody has written: NaN, or the least value."""
    if issubdtype(dtype, np.inexact):
        return full(shape, np.nan, dtype)
    least = iinfo(dtype).min if issubdtype(dtype, np.integer) else 0
    return full(shape, least, dtype)


def empty(shape, dtype, *, out_sharding=None):
    """An array that is not initialized; it has NaN, or the least value of its dtype.

    `out_sharding` has no effect.

    Examples:
      >>> from weft.experimental import pallas as pl
      >>> pl.empty((2,), "float32")
      Array([nan, nan], dtype=float32)
    """
    return uninitialized(shape, as_dtype(dtype))


def empty_like(x):
    """`empty` with the shapes and dtypes of a tree of arrays.

    Examples:
      >>> from weft.experimental import pallas as pl
      >>> pl.empty_like(wnp.ones(2))
      Array([nan, nan], dtype=float32)
    """
    return tree_map(lambda each: empty(each.shape, each.dtype), x)


def scratch_ref(ty):
    """A ref for a MemoryRef, not initialized."""
    if not isinstance(ty, MemoryRef):
        raise NotImplementedError(
            f"interpreted kernels have scratch refs that memories make, as ANY(shape, dtype); got "
            f"{ty!r}"
        )
    return new_ref(uninitialized(ty.shape, ty.dtype))


def run_scoped(f, *types, collective_axes=(), **kw_types):
    """`f` of refs that live as long as it runs: one for each MemoryRef in `types`.

    `collective_axes` has no effect.

    Examples:
      >>> from weft.experimental import pallas as pl
      >>> def twice(ref):
      ...     ref[...] = wnp.arange(2)
      ...     return 2 * ref[...]
      >>> pl.run_scoped(twice, pl.ANY((2,), "int32"))
      Array([0, 2], dtype=int32)
    """
    return f(*tree_map(scratch_ref, types), **tree_map(scratch_ref, kw_types))


def with_scoped(*types, collective_axes=(), **kw_types):
    """A decorator: the function with refs for `types` after its own arguments (see `run_scoped`).

    `collective_axes` has no effect.

    Examples:
      >>> from weft.experimental import pallas as pl
      >>> @pl.with_scoped(pl.ANY((), "int32"))
      ... def doubled(x, ref):
      ...     ref[...] = x
      ...     return 2 * ref[...]
      >>> doubled(4).item()
      8
    """

    def decorate(f):
        def scoped(*args, **kwargs):
            return run_scoped(
                lambda *refs, **kw_refs: f(*args, *refs, **kwargs, **kw_refs), *types, **kw_types
            )

        return scoped

    return decorate


def run_state(f):
    """A function from a tree of arrays to what `f` leaves in a tree of refs that hold them.

    Examples:
      >>> from weft.experimental import pallas as pl
      >>> def shift(refs):
      ...     a, b = refs
      ...     b[...] = a[...] + b[...]
      >>> [x.item() for x in pl.run_state(shift)((wnp.array(1), wnp.array(2)))]
      [1, 3]
    """

    def run(values):
        refs = tree_map(new_ref, values)
        f(refs)
        return tree_map(lambda ref: ref[...], refs)

    return run


def debug_print(fmt, *args):
    """`weft.debug.print`; arguments beyond the format's placeholders follow its text."""
    if args and "{" not in fmt:
        fmt = " ".join([fmt, *["{}"] * len(args)])
    debug.print(fmt, *args)


def delay(nanos):
    """Does nothing: `nanos` has no effect, since interpreted kernels need not wait."""


def multiple_of(x, values):
    """`x`, which is said to be a multiple of `values`; that has no effect.

    Examples:
      >>> from weft.experimental import pallas as pl
      >>> pl.multiple_of(16, 8)
      16
    """
    return x


def reciprocal(x, *, approx=False, full_range=True):
    """`1 / x`, exactly rounded; `approx` and `full_range` have no effect.

    Examples:
      >>> from weft.experimental import pallas as pl
      >>> pl.reciprocal(wnp.array([2.0, 4.0]))
      Array([0.5 , 0.25], dtype=float32)
    """
    return 1 / x


def cdiv(a, b):
    """a / b for integers, rounded up.

    Examples:
      >>> from weft.experimental import pallas as pl
      >>> pl.cdiv(7, 2)
      4
    """
    return (a + b - 1) // b


def align_to(x, alignment):
    """`x` rounded up to a multiple of `alignment`.

    Examples:
      >>> from weft.experimental import pallas as pl
      >>> pl.align_to(9, 8)
      16
    """
    return cdiv(x, alignment) * alignment


def next_power_of_2(x):
    """The least power of two that is not less than a positive int.

    Raises ValueError for other ints.

    Examples:
      >>> from weft.experimental import pallas as pl
      >>> pl.next_power_of_2(9)
      16
    """
    if x < 1:
        raise ValueError(f"[next_power_of_2] expected a positive int; got {x}")
    return 1 << (x - 1).bit_length()


def strides_from_shape(shape):
    """How many elements apart neighbours along each axis are, with the last axis fastest.

    Examples:
      >>> from weft.experimental import pallas as pl
      >>> pl.strides_from_shape((2, 3, 4))
      (12, 4, 1)
    """
    return tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))
