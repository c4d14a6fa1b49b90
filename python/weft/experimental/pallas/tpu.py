"""Names for kernels of TPUs: memories, options and scalar prefetch, for interpreted kernels.

What moves data between memories and devices is not here: such kernels run on TPUs only.
"""

import dataclasses as _dataclasses
import enum as _enum
from typing import Any as _Any

from weft._surface import open_to_users as _open_to_users, public as _public
from weft.experimental.pallas import _call, _kernel, _specs

__all__ = [
    "ARBITRARY",
    "CMEM",
    "CORE_PARALLEL",
    "CompilerParams",
    "GridDimensionSemantics",
    "HBM",
    "InterpretParams",
    "MemorySpace",
    "PARALLEL",
    "PrefetchScalarGridSpec",
    "SEMAPHORE",
    "SMEM",
    "SUBCORE_PARALLEL",
    "VMEM",
    "VMEM_SHARED",
    "force_tpu_interpret_mode",
    "is_tpu_device",
    "load",
    "store",
]
__getattr__, __dir__ = _public(__name__, __all__)


class MemorySpace(_enum.Enum):
    """The memories of a TPU; each is a function from a shape and a dtype to a `pallas.MemoryRef`.

    Examples:
      >>> from weft.experimental.pallas import tpu
      >>> tpu.VMEM((8, 128), "float32").shape
      (8, 128)
    """

    CMEM = "cmem"
    HBM = "hbm"
    SEMAPHORE = "semaphore_mem"
    SMEM = "smem"
    VMEM = "vmem"
    VMEM_SHARED = "vmem_shared"

    __call__ = _specs.MemorySpace.__call__


CMEM, HBM, SEMAPHORE = MemorySpace.CMEM, MemorySpace.HBM, MemorySpace.SEMAPHORE
SMEM, VMEM, VMEM_SHARED = MemorySpace.SMEM, MemorySpace.VMEM, MemorySpace.VMEM_SHARED


class GridDimensionSemantics(_enum.Enum):
    """Whether the steps along an axis of the grid may run at once; no effect."""

    PARALLEL = "parallel"
    CORE_PARALLEL = "core_parallel"
    SUBCORE_PARALLEL = "subcore_parallel"
    ARBITRARY = "arbitrary"


ARBITRARY, PARALLEL = GridDimensionSemantics.ARBITRARY, GridDimensionSemantics.PARALLEL
CORE_PARALLEL = GridDimensionSemantics.CORE_PARALLEL
SUBCORE_PARALLEL = GridDimensionSemantics.SUBCORE_PARALLEL


@_dataclasses.dataclass(frozen=True, kw_only=True)
class CompilerParams(_specs.CompilerParams):
    """Options of the TPU compiler, without effect on interpreted kernels."""

    dimension_semantics: _Any = None
    allow_input_fusion: _Any = None
    vmem_limit_bytes: int | None = None
    collective_id: int | None = None
    has_side_effects: _Any = False
    flags: _Any = None
    internal_scratch_in_bytes: int | None = None
    serialization_format: int = 1
    disable_bounds_checks: bool = False
    disable_semaphore_checks: bool = False
    skip_device_barrier: bool = False
    allow_collective_id_without_custom_barrier: bool = False
    shape_invariant_numerics: bool = True
    use_tc_tiling_on_sc: bool | None = None
    needs_layout_passes: bool = True
    fuse_transposed_lhs_in_matmul: bool = False


@_dataclasses.dataclass(frozen=True, kw_only=True)
class InterpretParams:
    """A value for `interpret`; kernels run as with True, whatever is in it."""

    dma_execution_mode: str = "on_wait"
    detect_races: bool = False
    out_of_bounds_reads: str = "raise"
    skip_floating_point_ops: bool = False
    uninitialized_memory: str = "nan"
    random_seed: int | None = None
    grid_point_recorder: _Any = None
    num_cores_or_threads: int = 1
    vector_clock_size: int | None = None
    logging_mode: _Any = None
    allow_hbm_allocation_in_run_scoped: bool = False
    buffer_bounds: str = "logical"


class PrefetchScalarGridSpec(_specs.GridSpec):
    """A GridSpec whose first arguments are also arguments of the index maps, as refs.

    Args:
      num_scalar_prefetch: how many. The kernel gets them as a whole; `in_specs` leaves them out.
      grid, in_specs, out_specs, scratch_shapes: as for `pallas.GridSpec`.

    Examples:
      >>> from weft.experimental import pallas as pl
      >>> from weft.experimental.pallas import tpu
      >>> def kernel(order, x, out):
      ...     out[...] = x[...]
      >>> spec = tpu.PrefetchScalarGridSpec(
      ...     num_scalar_prefetch=1,
      ...     grid=(3,),
      ...     in_specs=[pl.BlockSpec((1,), lambda i, order: order[i])],
      ...     out_specs=pl.BlockSpec((1,), lambda i, order: i),
      ... )
      >>> shape = weft.ShapeDtypeStruct((3,), "float32")
      >>> call = pl.pallas_call(kernel, shape, grid_spec=spec, interpret=True)
      >>> call(wnp.array([2, 0, 1]), wnp.array([5.0, 6.0, 7.0]))
      Array([7., 5., 6.], dtype=float32)
    """

    def __init__(
        self,
        num_scalar_prefetch,
        grid=(),
        in_specs=_specs.no_block_spec,
        out_specs=_specs.no_block_spec,
        scratch_shapes=(),
    ):
        super().__init__(grid, in_specs, out_specs, scratch_shapes)
        self.num_scalar_prefetch = num_scalar_prefetch


def force_tpu_interpret_mode(params=None):
    """A context within which `pallas_call` interprets all kernels, whatever their `interpret`.

    `params` has no effect.

    Examples:
      >>> from weft.experimental import pallas as pl
      >>> from weft.experimental.pallas import tpu
      >>> def ones(out):
      ...     out[...] = wnp.ones(2)
      >>> with tpu.force_tpu_interpret_mode():
      ...     pl.pallas_call(ones, weft.ShapeDtypeStruct((2,), "float32"))()
      Array([1., 1.], dtype=float32)
    """
    return _call.interpreting()


def is_tpu_device():
    """False: weft makes no kernels for TPUs."""
    return False


def load(ref, *, mask=None):
    """`ref[...]`, with 0 where `mask` is False.

    Examples:
      >>> from weft.experimental.pallas import tpu
      >>> tpu.load(weft.new_ref(wnp.arange(1, 3)), mask=wnp.array([True, False]))
      Array([1, 0], dtype=int32)
    """
    return _kernel.load(ref, mask=mask)


def store(ref, val, *, mask=None):
    """`ref[...] = val`, but where `mask` is False.

    Examples:
      >>> from weft.experimental.pallas import tpu
      >>> ref = weft.new_ref(wnp.arange(2))
      >>> tpu.store(ref, 7, mask=wnp.array([True, False]))
      >>> ref[...]
      Array([7, 1], dtype=int32)
    """
    _kernel.store(ref, ..., val, mask=mask)


_open_to_users(__name__)
