"""shard_map under its former name and with its former arguments."""

from weft import _shard_map
from weft._surface import open_to_users as _open_to_users, public as _public

__all__ = ["shard_map"]
__getattr__, __dir__ = _public(__name__, __all__)


def shard_map(f, mesh, in_specs, out_specs, check_rep=True):
    """weft.shard_map(f, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_vma=check_rep)."""
    return _shard_map.shard_map(
        f, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_vma=check_rep
    )


_open_to_users(__name__)
