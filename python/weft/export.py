"""Traced functions that leave the process: as bytes, and as StableHLO (docs/export.md)."""

from weft._dims import SymbolicScope, is_symbolic_dim, symbolic_shape
from weft._export import (
    DisabledSafetyCheck,
    Exported,
    default_export_platform,
    deserialize,
    export,
    maximum_supported_calling_convention_version,
    minimum_supported_calling_convention_version,
)
from weft._export_trees import (
    register_namedtuple_serialization,
    register_pytree_node_serialization,
)
from weft._surface import open_to_users as _open_to_users, public as _public
from weft._symbolic_specs import symbolic_args_specs

__all__ = [
    "DisabledSafetyCheck",
    "Exported",
    "SymbolicScope",
    "default_export_platform",
    "deserialize",
    "export",
    "is_symbolic_dim",
    "maximum_supported_calling_convention_version",
    "minimum_supported_calling_convention_version",
    "register_namedtuple_serialization",
    "register_pytree_node_serialization",
    "symbolic_args_specs",
    "symbolic_shape",
]
__getattr__, __dir__ = _public(__name__, __all__)

_open_to_users(__name__)
