"""Rules of users for functions under vmap."""

from weft._custom_batching import custom_vmap, sequential_vmap
from weft._surface import open_to_users as _open_to_users, public as _public

__all__ = ["custom_vmap", "sequential_vmap"]
__getattr__, __dir__ = _public(__name__, __all__)
_open_to_users(__name__)
