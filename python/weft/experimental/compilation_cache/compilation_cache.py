"""The directory of compiled programs; docs/cache.md tells what is kept there."""

import os as _os

from weft._surface import open_to_users as _open_to_users, public as _public
from weft.config import config as _config
from weft.runtime import disk_cache as _disk_cache

__all__ = ["reset_cache", "set_cache_dir"]
__getattr__, __dir__ = _public(__name__, __all__)


def set_cache_dir(path):
    """Sets the directory of compiled programs, a path: the setting `weft_compilation_cache_dir`.

    Raises TypeError for what is no path.
    """
    _config.update("weft_compilation_cache_dir", _os.fsdecode(path))


def reset_cache():
    """Tries directories again with which something was wrong. What is in them stays."""
    _disk_cache.reset()


_open_to_users(__name__)
