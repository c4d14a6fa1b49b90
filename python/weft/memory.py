"""Kinds of memory without a word on devices: where `weft.device_put` moves arrays to."""

import enum

from weft._surface import public as _public

__all__ = ["Space"]
__getattr__, __dir__ = _public(__name__, __all__)


class Space(enum.Enum):
    """The memory of devices, that of the host, or whichever an array is in."""

    Device = enum.auto()
    Host = enum.auto()
    Any = enum.auto()

    def __repr__(self):
        return f"MemorySpace.{self.name}"

    __str__ = __repr__
