"""Sums, products and extremes of segments of an array: of the elements with the same number."""

from weft._segments import segment_max, segment_min, segment_prod, segment_sum
from weft._surface import open_to_users as _open_to_users, public as _public

__all__ = ["segment_max", "segment_min", "segment_prod", "segment_sum"]
__getattr__, __dir__ = _public(__name__, __all__)
_open_to_users(__name__)
