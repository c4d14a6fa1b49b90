"""What describes a kernel's arguments: grids, blocks, memories and hints to compilers."""

import dataclasses
import enum
from collections.abc import Callable
from typing import Any

from weft.dtypes import as_dtype


class MemorySpace(enum.Enum):
    """Where an operand lies. Interpreted kernels have one memory, so it has no effect.

    A memory is also a function from a shape and a dtype to a MemoryRef, for `scratch_shapes`.

    Examples:
      >>> from weft.experimental import pallas as pl
      >>> pl.ANY((2, 3), "float32").shape
      (2, 3)
    """

    ANY = "any"
    DEFAULT = "default"
    ERROR = "error"
    INDEX = "index"
    KEY = "key"
    HOST = "host"

    def __call__(self, shape, dtype):
        return MemoryRef(tuple(shape), as_dtype(dtype), self)


@dataclasses.dataclass(frozen=True)
class MemoryRef:
    """A ref that a kernel is to get: its shape (ints), dtype and memory."""

    shape: tuple
    dtype: Any
    memory_space: Any


@dataclasses.dataclass(frozen=True)
class Blocked:
    """An axis in blocks of `block_size`; the index map gives the number of the block."""

    block_size: int


@dataclasses.dataclass(frozen=True)
class Element:
    """A window of `block_size` on an axis; the index map gives its first element.

    `padding`: how many elements stand before and after those of the operand; they are not
    initialized.
    """

    block_size: int
    padding: tuple = (0, 0)


@dataclasses.dataclass(frozen=True)
class Squeezed:
    """An axis that the kernel does not see, as None is; the index map gives the element."""

    block_size = 1


@dataclasses.dataclass(frozen=True)
class BoundedSlice:
    """A window whose size may change from step to step: interpreted kernels have none."""

    block_size: int


class RevisitMode(enum.Enum):
    """Which steps may come back to a block; without effect."""

    ANY = "any"
    IMMEDIATE = "immediate"


@dataclasses.dataclass(frozen=True)
class Buffered:
    """How many blocks a pipeline holds at a time; without effect."""

    buffer_count: int
    use_lookahead: bool = False
    revisit: Any = None


class _NoBlockSpec:
    def __repr__(self):
        return "NoBlockSpec"


squeezed = Squeezed()
no_block_spec = _NoBlockSpec()


@dataclasses.dataclass
class BlockSpec:
    """Which block of an operand a kernel gets in a step of the grid.

    Args:
      block_shape: for each axis of the operand an int (which means Blocked), None or Squeezed() for
        an axis that the kernel does not see, or Element. None: the operand as a whole.
      index_map: function from the indices of the step to the position of the block, an integer for
        each axis; a bare integer stands for a tuple of one. None: zeros.
      pipeline_mode, memory_space: without effect in an interpreted kernel.

    Blocks may reach past the end of an operand. What they read there is not initialized (NaN, and
    the least value of integers), and what they write there is dropped.
    """

    block_shape: tuple | None = None
    index_map: Callable | None = None
    pipeline_mode: Buffered | None = None
    memory_space: Any = dataclasses.field(default=None, kw_only=True)

    def replace(self, **changes):
        return dataclasses.replace(self, **changes)


@dataclasses.dataclass(init=False)
class GridSpec:
    """The steps of a kernel and what it gets in each; the last axis of the grid runs fastest.

    Args:
      grid: an int or a tuple of integers, which may be traced.
      in_specs, out_specs: trees of BlockSpecs like the arguments and like `out_shape`.
      scratch_shapes: a sequence of MemoryRefs, for refs that follow those of the results, or a
        dict of them, for keyword arguments. They keep their values from step to step.
    """

    grid: tuple
    in_specs: Any
    out_specs: Any
    scratch_shapes: Any
    num_scalar_prefetch = 0  # how many arguments come first, as a whole, also in index maps

    def __init__(self, grid=(), in_specs=no_block_spec, out_specs=no_block_spec, scratch_shapes=()):
        self.grid = tuple(grid) if isinstance(grid, (tuple, list)) else (grid,)
        self.in_specs, self.out_specs = in_specs, out_specs
        self.scratch_shapes = scratch_shapes


@dataclasses.dataclass(frozen=True, kw_only=True)
class CostEstimate:
    """What a kernel costs, in operations and bytes; a hint without effect."""

    flops: int
    transcendentals: int
    bytes_accessed: int
    remote_bytes_transferred: int = 0


class CompilerParams:
    """Options for the compilers of kernels; those of `pallas.tpu` and `pallas.triton` are of this
    class."""
