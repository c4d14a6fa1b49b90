"""Names that other frameworks of this kind keep under `experimental`."""

from weft import _core
from weft._callback import io_callback
from weft._surface import public as _public

__all__ = [
    "buffer_callback",
    "checkify",
    "compilation_cache",
    "compute_on",
    "custom_partitioning",
    "io_callback",
    "jet",
    "layout",
    "mesh_utils",
    "multihost_utils",
    "ode",
    "overlap",
    "pallas",
    "pjit",
    "random",
    "rnn",
    "roofline",
    "scheduling_groups",
    "serialize_executable",
    "shard_alike",
    "shard_map",
    "sparse",
    "topologies",
    "xla_metadata",
]
__getattr__, __dir__ = _public(
    __name__,
    __all__,
    later={
        "weft.experimental.buffer_callback": (),
        "weft.experimental.checkify": (),
        "weft.experimental.compilation_cache": (),
        "weft.experimental.compute_on": (),
        "weft.experimental.custom_partitioning": (),
        "weft.experimental.jet": (),
        "weft.experimental.layout": (),
        "weft.experimental.mesh_utils": (),
        "weft.experimental.multihost_utils": (),
        "weft.experimental.ode": (),
        "weft.experimental.overlap": (),
        "weft.experimental.pallas": (),
        "weft.experimental.pjit": (),
        "weft.experimental.random": (),
        "weft.experimental.rnn": (),
        "weft.experimental.roofline": (),
        "weft.experimental.scheduling_groups": (),
        "weft.experimental.serialize_executable": (),
        "weft.experimental.shard_alike": (),
        "weft.experimental.shard_map": (),
        "weft.experimental.sparse": (),
        "weft.experimental.topologies": (),
        "weft.experimental.xla_metadata": (),
    },
)


def _reject_check(*found):
    from weft.experimental.checkify import (
        Error,  # nothing that a program without errors should load
    )

    Error(*found).throw()


_core.install(reject_check=_reject_check)
