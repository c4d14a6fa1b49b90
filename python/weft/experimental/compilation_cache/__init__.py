"""The cache on disk, by the names that other frameworks of this kind have for it."""

from weft._surface import public as _public

__all__ = ["compilation_cache"]
__getattr__, __dir__ = _public(
    __name__, __all__, later={"weft.experimental.compilation_cache.compilation_cache": ()}
)
