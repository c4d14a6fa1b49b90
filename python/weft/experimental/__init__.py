"""Names that other frameworks of this kind keep under `experimental`."""

from weft._callback import io_callback
from weft._surface import public as _public

__all__ = [
    "checkify",
    "compilation_cache",
    "io_callback",
    "jet",
    "layout",
    "mesh_utils",
    "multihost_utils",
    "ode",
    "random",
    "shard_map",
]
__getattr__, __dir__ = _public(
    __name__,
    __all__,
    later={
        "weft.experimental.checkify": (),
        "weft.experimental.compilation_cache": (),
        "weft.experimental.jet": (),
        "weft.experimental.layout": (),
        "weft.experimental.mesh_utils": (),
        "weft.experimental.multihost_utils": (),
        "weft.experimental.ode": (),
        "weft.experimental.random": (),
        "weft.experimental.shard_map": (),
    },
)
