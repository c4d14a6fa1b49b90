"""How arrays lie in memory, with the last axis running fastest, and where."""

import dataclasses
import typing

from weft.errors import AttributeValueError


class _Auto:
    """The layout that a compiler chooses."""

    def __repr__(self):
        return "AUTO"


@dataclasses.dataclass(frozen=True)
class Layout:
    """The order of an array's elements in memory.

    Attributes: major_to_minor (the axes, the slowest first), tiling (a tuple of tuples of ints, or
    None where nothing is said of it), sub_byte_element_size_in_bits (0 for elements of whole
    bytes). `Layout.AUTO` leaves it to the compiler.
    """

    major_to_minor: tuple
    tiling: tuple | None = None
    sub_byte_element_size_in_bits: int = 0

    AUTO: typing.ClassVar = _Auto()

    @classmethod
    def _of_arrays(cls, ndim):
        """That of every array of so many axes."""
        return cls(tuple(range(ndim)), ())


@dataclasses.dataclass(frozen=True)
class Format:
    """The layout of an array, and the sharding that says where it is; None where unknown.

    It may stand where a sharding does, with a layout in which the last axis runs fastest, as it
    does in every array.

    Raises ValueError for a layout without a sharding.
    """

    layout: Layout | _Auto | None = None
    sharding: object = None

    def __post_init__(self):
        if isinstance(self.layout, Layout) and self.sharding is None:
            raise ValueError(f"Format expected a sharding to go with {self.layout}; got None")

    def _place(self, function, ndim=None):
        """The sharding; raises ValueError for a layout that arrays do not have."""
        if isinstance(self.layout, Layout):
            order = tuple(self.layout.major_to_minor)
            wanted = tuple(range(len(order) if ndim is None else ndim))
            if order != wanted or self.layout.tiling:
                raise AttributeValueError(
                    f"{function} expected the layout of arrays, {Layout(wanted)}, as their last "
                    f"axis runs fastest; got {self.layout}"
                )
        return self.sharding


# What users see, and what pickles name.
for _kind in (Layout, Format):
    _kind.__module__ = "weft.experimental.layout"
