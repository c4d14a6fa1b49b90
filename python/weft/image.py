"""Images of other sizes: resampling along any axes of an array."""

from weft._resample import ResizeMethod, resize, scale_and_translate
from weft._surface import open_to_users as _open_to_users, public as _public

__all__ = ["ResizeMethod", "resize", "scale_and_translate"]
__getattr__, __dir__ = _public(__name__, __all__)
_open_to_users(__name__)
