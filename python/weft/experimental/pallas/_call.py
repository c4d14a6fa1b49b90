"""pallas_call: kernels run as a loop over their grid, in operations of weft on refs."""

import contextlib
import contextvars
import math

from weft._jit import jit
from weft._refs import new_ref
from weft._types.avals import typeof
from weft.dtypes import is_integer
from weft.errors import AttributeValueError, ShapeError, TreeStructureError
from weft.experimental.pallas._kernel import STEP, cdiv, scratch_ref, uninitialized
from weft.experimental.pallas._specs import (
    Blocked,
    BlockSpec,
    Element,
    GridSpec,
    Squeezed,
    no_block_spec,
)
from weft.lax._loops import fori_loop
from weft.lax._slice import dynamic_slice, dynamic_update_slice
from weft.numpy import asarray, int32
from weft.tree_util import tree_flatten, tree_structure, tree_unflatten

# Whether kernels run as if `interpret` were set (see `pallas.tpu.force_tpu_interpret_mode`).
_INTERPRETING = contextvars.ContextVar("interpreting", default=False)


@contextlib.contextmanager
def interpreting():
    """Within it, `pallas_call` interprets every kernel."""
    token = _INTERPRETING.set(True)
    try:
        yield
    finally:
        _INTERPRETING.reset(token)


class _Window:
    """The blocks of an operand: where they lie and how they are taken and put back.

    The operand is held with as much around it as whole blocks need, not initialized.
    """

    def __init__(self, spec, aval, what):
        self.shape, self.dtype, self.what = aval.shape, aval.dtype, what
        self.index_map = spec.index_map
        shape = self.shape if spec.block_shape is None else spec.block_shape
        self.axes = tuple(_axis(size, what) for size in shape)
        if len(self.axes) != len(self.shape):
            raise ShapeError(
                f"pallas_call: expected for {what}, of shape {self.shape}, a block of as many "
                f"axes; got {tuple(shape)}"
            )
        self.sizes = tuple(axis.block_size for axis in self.axes)
        self.kept = tuple(axis.block_size for axis in self.axes if not isinstance(axis, Squeezed))
        self.before = tuple(_padding(axis)[0] for axis in self.axes)
        self.held = tuple(
            cdiv(sum(_padding(axis)) + n, axis.block_size) * axis.block_size
            for axis, n in zip(self.axes, self.shape, strict=True)
        )

    def hold(self, value=None):
        """A ref of `value`, or of nothing yet, with room for whole blocks."""
        if value is not None and self.held == self.shape:
            return new_ref(value)
        room = uninitialized(self.held, self.dtype)
        return new_ref(room if value is None else dynamic_update_slice(room, value, self.before))

    def result(self, ref):
        """What a ref that `hold` made has of the operand itself."""
        return dynamic_slice(ref[...], self.before, self.shape)

    def starts(self, indices, prefetched):
        """The first element of the block that the index map gives for a step."""
        if self.index_map is None:
            return (0,) * len(self.axes)
        at = self.index_map(*indices, *prefetched)
        at = tuple(at) if isinstance(at, (tuple, list)) else (at,)
        if len(at) != len(self.axes):
            raise ShapeError(
                f"pallas_call: expected an index map for {self.what} with {len(self.axes)} "
                f"results, one for each axis of the block; got {len(at)}"
            )
        for each in at:
            if not is_integer(typeof(each).dtype) or typeof(each).shape:
                raise TypeError(
                    f"pallas_call: expected an index map for {self.what} with integer scalars; "
                    f"got {typeof(each)}"
                )
        return tuple(
            asarray(each, int32) * (axis.block_size if isinstance(axis, Blocked) else 1)
            for each, axis in zip(at, self.axes, strict=True)
        )

    def take(self, ref, starts):
        value = ref[...]
        if self.sizes != self.held:
            value = dynamic_slice(value, starts, self.sizes)
        return value if self.kept == self.sizes else value.reshape(self.kept)

    def put(self, ref, starts, block):
        block = block if self.kept == self.sizes else block.reshape(self.sizes)
        if self.sizes != self.held:
            block = dynamic_update_slice(ref[...], block, starts)
        ref[...] = block


def _padding(axis):
    return axis.padding if isinstance(axis, Element) else (0, 0)


def _axis(size, what):
    if size is None:
        return Squeezed()
    if isinstance(size, (Blocked, Element, Squeezed)):
        return size
    try:
        return Blocked(int(size))
    except TypeError:
        raise NotImplementedError(
            f"pallas_call: expected for {what} a block of ints, None, Blocked, Element and "
            f"Squeezed; got {size!r}"
        ) from None


def _specs(specs, leaves, tree, what):
    """The BlockSpec of each leaf of a tree."""
    if specs is no_block_spec:
        return [BlockSpec() for _ in leaves]
    specs = tuple(specs) if isinstance(specs, list) else specs
    found, structure = tree_flatten(specs, is_leaf=lambda x: isinstance(x, BlockSpec))
    if structure != tree:
        raise TreeStructureError(
            f"pallas_call: expected {what}_specs like the {what}puts, {tree}; got {structure}"
        )
    return [BlockSpec() if spec is no_block_spec else spec for spec in found]


def _each_step(grid, step):
    """Runs `step(indices)` for all indices of a grid, whose last axis runs fastest."""
    if not grid:
        step(())
        return

    def numbered(number, _):
        indices = []
        for size in reversed(grid):
            indices.append(asarray(number % size, int32))
            number = number // size
        step(tuple(reversed(indices)))

    fori_loop(0, math.prod(grid), numbered, None)


def _check_aliases(aliases, ins, outs):
    for source, target in aliases.items():
        for what, index, there in (("input", source, ins), ("output", target, outs)):
            if not 0 <= index < len(there):
                raise AttributeValueError(
                    f"pallas_call input_output_aliases: expected an {what} below {len(there)}; "
                    f"got {index}"
                )
        a, b = ins[source], outs[target]
        if (a.shape, a.dtype) != (b.shape, b.dtype):
            raise ShapeError(
                f"pallas_call input_output_aliases: expected input {source} and output {target} "
                f"of one shape and dtype; got {typeof(a)} and {typeof(b)}"
            )


def pallas_call(
    kernel,
    out_shape,
    *,
    grid_spec=None,
    grid=(),
    in_specs=no_block_spec,
    out_specs=no_block_spec,
    scratch_shapes=(),
    input_output_aliases=None,
    debug=False,
    interpret=False,
    name=None,
    compiler_params=None,
    cost_estimate=None,
    metadata=None,
):
    """A function that runs `kernel` on refs, once for each step of a grid, one after the other.

    The kernel is interpreted: it is a program like any other of weft's, a loop of operations on
    refs, under `jit`, `vmap` and derivatives of both modes as well. It runs on every device, and
    as fast as such a loop does. GPU and TPU kernels are not made.

    Args:
      kernel: function of refs: those of the arguments, of the results, and the scratch refs. It
        writes to refs and returns None.
      out_shape: the shape and dtype of the result, or a tree of them; a tuple or a list of them is
        that many results.
      grid, in_specs, out_specs, scratch_shapes: as for `GridSpec`; without specs the kernel gets
        each operand as a whole.
      grid_spec: a GridSpec that has all four of them.
      input_output_aliases: dict from numbers of arguments to numbers of results, which begin with
        the value of the argument; the argument keeps its own.
      interpret: must be true, or anything that stands for it.
      name: a name for the program.
      debug, compiler_params, cost_estimate, metadata: they have no effect.

    Returns a function of arrays, or of trees of them. What no step writes is NaN, or the least
    value of integers. So is what blocks read past the end of an operand, and derivatives in which
    it takes part are NaN: blocks that divide the operand have none, and kernels can mask it.

    Raises NotImplementedError unless `interpret` is set; ShapeError for blocks and index maps that
    do not fit; TreeStructureError for specs of another structure; ValueError for a kernel that
    returns something.

    Examples:
      >>> from weft.experimental import pallas as pl
      >>> def add(x, y, out):
      ...     out[...] = x[...] + y[...]
      >>> block = pl.BlockSpec((2,), lambda i: i)
      >>> shape = weft.ShapeDtypeStruct((4,), "float32")
      >>> call = pl.pallas_call(
      ...     add, shape, grid=2, in_specs=[block, block], out_specs=block, interpret=True
      ... )
      >>> call(wnp.arange(4.0), wnp.ones(4))
      Array([1., 2., 3., 4.], dtype=float32)
    """
    if grid_spec is None:
        grid_spec = GridSpec(grid, in_specs, out_specs, scratch_shapes)
    else:
        for option, value, absent in (
            ("grid", grid, ()),
            ("in_specs", in_specs, no_block_spec),
            ("out_specs", out_specs, no_block_spec),
            ("scratch_shapes", scratch_shapes, ()),
        ):
            if value is not absent and value != absent:
                raise AttributeValueError(
                    f"pallas_call {option}: expected it in grid_spec, which is given; got {value}"
                )
    out_shape = tuple(out_shape) if isinstance(out_shape, list) else out_shape
    outs, out_tree = tree_flatten(out_shape)
    for out in outs:
        if not hasattr(out, "shape") or not hasattr(out, "dtype"):
            raise TypeError(f"pallas_call out_shape: expected a shape and a dtype; got {out!r}")

    def run(*args):
        results = _run(kernel, grid_spec, args, outs, out_tree, dict(input_output_aliases or {}))
        return tree_unflatten(out_tree, results)

    run.__name__ = name or getattr(kernel, "__name__", "pallas_call")
    run = jit(run)

    def call(*args):
        if not (interpret or _INTERPRETING.get()):
            raise NotImplementedError(
                "pallas_call: weft interprets kernels and makes none for GPUs and TPUs; got "
                "interpret=False\n  Pass interpret=True, which runs on every device, or write the "
                "function with weft.numpy and weft.jit."
            )
        return run(*args)

    return call


def _run(kernel, spec, args, outs, out_tree, aliases):
    """The flat results of a kernel."""
    ins, in_tree = tree_flatten(args)
    ins = [asarray(x) for x in ins]
    _check_aliases(aliases, ins, outs)
    first = spec.num_scalar_prefetch  # of the arguments with blocks
    scalars, scalar_tree = tree_flatten(args[:first])
    count = len(scalars)
    blocked, blocked_tree = ins[count:], tree_structure(args[first:])
    in_windows = [
        _Window(each, x, f"input {count + i}")
        for i, (each, x) in enumerate(
            zip(_specs(spec.in_specs, blocked, blocked_tree, "in"), blocked, strict=True)
        )
    ]
    out_windows = [
        _Window(each, typeof(out), f"output {i}")
        for i, (each, out) in enumerate(
            zip(_specs(spec.out_specs, outs, out_tree, "out"), outs, strict=True)
        )
    ]
    initial = {target: ins[source] for source, target in aliases.items()}
    prefetched = [new_ref(x) for x in ins[:count]]
    index_refs = tree_unflatten(scalar_tree, prefetched)
    windows = in_windows + out_windows
    held = [window.hold(x) for window, x in zip(in_windows, blocked, strict=True)]
    held += [window.hold(initial.get(i)) for i, window in enumerate(out_windows)]
    scratch = spec.scratch_shapes
    named = {name: scratch_ref(ty) for name, ty in scratch.items()} if _is_dict(scratch) else {}
    unnamed = () if _is_dict(scratch) else tuple(scratch_ref(ty) for ty in scratch)

    def step(indices):
        starts = [window.starts(indices, index_refs) for window in windows]
        taken = [window.take(*at) for window, *at in zip(windows, held, starts, strict=True)]
        blocks = [new_ref(x) for x in taken]
        arguments = tree_unflatten(in_tree, [*prefetched, *blocks[: len(in_windows)]])
        results = tree_unflatten(out_tree, blocks[len(in_windows) :])
        results = results if isinstance(results, tuple) else (results,)
        token = STEP.set((indices, spec.grid))
        try:
            returned = kernel(*arguments, *results, *unnamed, **named)
        finally:
            STEP.reset(token)
        if returned is not None:
            raise ValueError(f"pallas_call: expected a kernel that returns None; got {returned!r}")
        for window, ref, at, block, before in zip(
            windows, held, starts, blocks, taken, strict=True
        ):
            if block[...] is not before:
                window.put(ref, at, block[...])

    _each_step(spec.grid, step)
    return [
        window.result(ref) for window, ref in zip(out_windows, held[len(in_windows) :], strict=True)
    ]


def _is_dict(scratch):
    return isinstance(scratch, dict)
