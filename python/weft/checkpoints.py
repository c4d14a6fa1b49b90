"""Trees of arrays on disk: saved whole or not at all, restored to any layout.

    save = weft.checkpoints.save("run", {"w": w, "step": 7}, step=7, keep=3)
    tree = weft.checkpoints.restore("run")             # the last step
    tree = weft.checkpoints.restore("run", target)     # checked against a tree of such arrays

A checkpoint is a directory named by its step that holds Zarr arrays, written by TensorStore, and a
manifest; docs/checkpoints.md has the layout. (`weft.checkpoint`, without an s, is for gradients.)
"""

from weft._saving import Save, all_steps, latest_step, restore, save
from weft._surface import open_to_users as _open_to_users, public as _public

__all__ = ["Save", "all_steps", "latest_step", "restore", "save"]
__getattr__, __dir__ = _public(__name__, __all__)
_open_to_users(__name__)
