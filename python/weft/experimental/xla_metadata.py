"""Names and values for XLA's passes at operations: accepted without effect."""

from weft._surface import open_to_users as _open_to_users, public as _public
from weft.experimental import _hints

__all__ = ["set_xla_metadata"]
__getattr__, __dir__ = _public(__name__, __all__)


def set_xla_metadata(x=None, **kwargs):
    """`x`, an array, a tree or a function, as it is; without it a context manager.

    `kwargs` are names and values for XLA's passes at what is computed; they have no effect.

    Examples:
      >>> from weft.experimental.xla_metadata import set_xla_metadata
      >>> with set_xla_metadata(note="here"):
      ...     y = wnp.sin(0.0)
    """
    return _hints.region() if x is None else x


_open_to_users(__name__)
