"""Kernels on blocks of arrays, interpreted: loops of weft's own operations on refs.

    from weft.experimental import pallas as pl

`pallas_call` runs them on every device. It makes none for GPUs and TPUs.
"""

from weft._slice import Slice
from weft._surface import open_to_users as _open_to_users, public as _public
from weft.experimental.pallas._call import pallas_call
from weft.experimental.pallas._kernel import (
    align_to,
    cdiv,
    debug_print,
    delay,
    ds,
    dslice,
    empty,
    empty_like,
    load,
    loop,
    multiple_of,
    next_power_of_2,
    num_programs,
    program_id,
    reciprocal,
    run_scoped,
    run_state,
    store,
    strides_from_shape,
    when,
    with_scoped,
)
from weft.experimental.pallas._specs import (
    Blocked,
    BlockSpec,
    BoundedSlice,
    Buffered,
    CompilerParams,
    CostEstimate,
    Element,
    GridSpec,
    MemoryRef,
    MemorySpace,
    RevisitMode,
    Squeezed,
    no_block_spec,
    squeezed,
)
from weft.numpy import broadcast_to

ANY, HOST = MemorySpace.ANY, MemorySpace.HOST

__all__ = [
    "ANY",
    "BlockSpec",
    "Blocked",
    "BoundedSlice",
    "Buffered",
    "CompilerParams",
    "CostEstimate",
    "Element",
    "GridSpec",
    "HOST",
    "MemoryRef",
    "MemorySpace",
    "RevisitMode",
    "Slice",
    "Squeezed",
    "align_to",
    "broadcast_to",
    "cdiv",
    "debug_print",
    "delay",
    "ds",
    "dslice",
    "empty",
    "empty_like",
    "load",
    "loop",
    "mosaic_gpu",
    "multiple_of",
    "next_power_of_2",
    "no_block_spec",
    "num_programs",
    "pallas_call",
    "program_id",
    "reciprocal",
    "run_scoped",
    "run_state",
    "squeezed",
    "store",
    "strides_from_shape",
    "tpu",
    "triton",
    "when",
    "with_scoped",
]
__getattr__, __dir__ = _public(
    __name__,
    __all__,
    later={
        "weft.experimental.pallas.mosaic_gpu": (),
        "weft.experimental.pallas.tpu": (),
        "weft.experimental.pallas.triton": (),
    },
)
_open_to_users(__name__)
