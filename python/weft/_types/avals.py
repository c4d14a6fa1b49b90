"""Abstract values: shapes and dtypes without values, the types that `typeof` tells."""

import abc
import functools
import math
from itertools import zip_longest
from typing import Any, NamedTuple

import numpy as np

from weft import _core
from weft._dims import is_symbolic_dim
from weft.dtypes import as_dtype, canonicalize_dtype, tangent_dtype
from weft.errors import ArgumentTypeError, AttributeValueError, ShardingError
from weft.memory import Space


def _own_dtype(dtype):
    _core.canonical_dtype(dtype)  # raises for what names none
    return as_dtype(dtype)


class ShapeDtypeStruct:
    """Shape and dtype of an array without its values; stands for one where only these matter.

    Attributes: shape (tuple of ints), dtype (NumPy dtype, as given: traces take a 64-bit one as the
    narrow one while 64-bit types are off), weak_type (bool), sharding (None, or
    where the array lies for which it stands: `jit(f).lower` makes a program for arrays there),
    format (the weft.experimental.layout.Format of that), is_ref (whether it
    stands for a ref that holds such an array: `jit(f).lower` gives `f` a ref then),
    manual_axis_type (None, or a weft.sharding.ManualAxisType: what is known of the manual axes of a
    shard_map).

    Examples:
      >>> weft.eval_shape(wnp.sum, weft.ShapeDtypeStruct((1000, 1000), "float32"))
      ShapeDtypeStruct(shape=(), dtype=float32)
    """

    __slots__ = ("_manual", "_place", "dtype", "is_ref", "shape", "weak_type")
    _dtype = staticmethod(_own_dtype)

    def __init__(
        self, shape, dtype, *, sharding=None, weak_type=False, manual_axis_type=None, is_ref=False
    ):
        if dtype is None:
            raise ValueError("ShapeDtypeStruct expected a dtype; got None")
        if manual_axis_type is not None:
            from weft.sharding import ManualAxisType

            if not isinstance(manual_axis_type, ManualAxisType):
                raise TypeError(
                    "ShapeDtypeStruct expected a weft.sharding.ManualAxisType for "
                    f"manual_axis_type; got {manual_axis_type!r}"
                )
        if isinstance(sharding, (str, int, float)):
            raise ValueError(
                f"ShapeDtypeStruct expected a sharding or a PartitionSpec; got {sharding!r}"
            )
        self.shape = tuple(d if is_symbolic_dim(d) else int(d) for d in shape)
        if sharding is not None:
            sharding = _checked_place(sharding, self.shape)
        self.dtype = self._dtype(dtype)
        self._place: Any = sharding
        self._manual = manual_axis_type
        self.weak_type = bool(weak_type)
        self.is_ref = bool(is_ref)

    # `_place` is a Format where that has a layout.
    sharding = property(lambda self: getattr(self._place, "sharding", self._place))
    manual_axis_type = property(lambda self: self._manual)
    # The axes over which it varies, is unreduced and is reduced; None where that is not known.
    _varying = property(lambda self: self._manual and self._manual._sets)
    ndim = property(lambda self: len(self.shape))
    size = property(lambda self: math.prod(self.shape))

    def update(self, **changes):
        """The same with shape, dtype, weak_type or others replaced.

        Raises ValueError for a sharding without a layout in place of a Format with one.
        """
        place = changes.get("sharding")
        if self.format.layout and place is not None and not hasattr(place, "layout"):
            raise AttributeValueError(
                f"ShapeDtypeStruct.update expected a Format for sharding, as {self} has one; got "
                f"{place!r}"
            )
        own = {name: getattr(self, name) for name in ("shape", "dtype", "weak_type", "is_ref")}
        own |= {"sharding": self._place, "manual_axis_type": self._manual}
        return type(self)(**{**own, **changes})

    @classmethod
    def like(cls, x):
        """That of an array, number, ref or type."""
        described = isinstance(x, ShapeDtypeStruct)
        is_ref = x.is_ref if described else isinstance(x, (_core.Ref, AbstractRef))
        aval = x if described or isinstance(x, AbstractRef) else typeof(x)
        place = x._place if described else None
        return cls(
            aval.shape,
            aval.dtype,
            sharding=place,
            weak_type=aval.weak_type,
            manual_axis_type=aval._manual,
            is_ref=is_ref,
        )

    @property
    def format(self):
        from weft._sharding.layout import Format

        return Format(getattr(self._place, "layout", None), self.sharding)

    def __len__(self):
        if not self.shape:
            raise TypeError("len() of unsized object: a type of no axes")
        return self.shape[0]

    def __bool__(self):
        return True

    def __repr__(self):
        weak = ", weak_type=True" if self.weak_type else ""
        place = "" if self._place is None else f", sharding={self._place}"
        ref = ", is_ref=True" if self.is_ref else ""
        manual = f", manual_axis_type={self._manual}" if self._manual else ""
        text = f"shape={self.shape}, dtype={self.dtype.name}{place}{weak}{manual}{ref}"
        return f"ShapeDtypeStruct({text})"

    def __eq__(self, other):
        if not isinstance(other, ShapeDtypeStruct):
            return NotImplemented
        return self._key() == other._key()

    def __hash__(self):
        return hash(self._key())

    def _key(self):
        manual = None if self._manual is None or self._manual.empty else self._manual
        return (self.shape, self.dtype, self._place, self.weak_type, self.is_ref, manual)


def _checked_place(sharding, shape):
    """The sharding, or the Format if that has a layout.

    Raises for a layout that a compiler chooses, a spec where no mesh is set, and more axes than a
    shape has.
    """
    from weft._sharding.layout import Format, Layout
    from weft.sharding import PartitionSpec, get_abstract_mesh

    if isinstance(sharding, Format):
        if sharding.layout is Layout.AUTO:
            raise ArgumentTypeError(
                f"ShapeDtypeStruct expected a layout other than Layout.AUTO; got {sharding}"
            )
        inner = None if sharding.sharding is None else _checked_place(sharding.sharding, shape)
        return inner if sharding.layout is None else sharding
    spec = sharding if isinstance(sharding, PartitionSpec) else getattr(sharding, "spec", ())
    if spec is sharding and get_abstract_mesh().empty:
        raise TypeError(
            f"ShapeDtypeStruct expected a mesh for {spec}: use a NamedSharding, or set a mesh with "
            "weft.set_mesh"
        )
    if len(spec) > len(shape):
        raise ShardingError(
            f"ShapeDtypeStruct expected at least {len(spec)} dimensions for {sharding}; got {shape}"
        )
    return sharding


class AbstractValue(abc.ABC):  # noqa: B024
    """The class of the types of values: what `typeof` gives."""


@AbstractValue.register
class ShapedArray(ShapeDtypeStruct):
    """The type of a value, as `typeof` tells it; prints as `float32[3,4]` (`~` when weak).

    `memory_space` is a `weft.memory.Space`: that of the host for values in the memory
    "pinned_host", which prints as `float32<host>[3,4]`, else that of devices.

    `sharding` says how the value is split over the explicit axes of a mesh, and is printed as
    `float32[8@x,16@(y,z)]`; where no mesh has such axes, it is a NamedSharding on a mesh of none.

    `manual_axis_type` says, within a shard_map with check_vma, over which of its axes the value
    varies, and is printed as `float32[8]{V:x}`; `mat` is another name of it.
    """

    __slots__ = ("memory_space",)
    _dtype = staticmethod(as_dtype)  # a value made with 64-bit dtypes enabled keeps its own

    def __init__(self, shape, dtype, *, sharding=None, memory_space=Space.Device, **options):
        self.memory_space = memory_space
        mesh = getattr(sharding, "mesh", None)
        split = None if mesh is not None and mesh.empty else sharding
        super().__init__(shape, dtype, sharding=split, **options)

    @property
    def sharding(self):
        return _unsplit(self.ndim) if self._place is None else self._place

    @property
    def manual_axis_type(self):
        if self._manual is not None:
            return self._manual
        from weft.sharding import ManualAxisType

        return ManualAxisType()

    mat = property(lambda self: self.manual_axis_type)
    itemsize = property(lambda self: self.dtype.itemsize)
    nbytes = property(lambda self: self.size * self.dtype.itemsize)

    def update(self, **changes):
        """The same with shape, dtype, weak_type, sharding, manual_axis_type or memory_space
        replaced."""
        return super().update(**{"memory_space": self.memory_space, **changes})

    def _key(self):
        elsewhere = () if self.memory_space is Space.Device else (self.memory_space,)
        return (*super()._key(), *elsewhere)

    def strip_weak_type(self):
        """The same, not weak."""
        return self.update(weak_type=False)

    def to_tangent_aval(self):
        """The type of tangents: the same for floats and complex numbers, float0 for others."""
        return self.update(dtype=tangent_dtype(self.dtype))

    to_ct_aval = at_least_vspace = to_tangent_aval

    def __str__(self):
        return f"{'~' if self.weak_type else ''}{self.str_short()}"

    def __repr__(self):
        weak = ", weak_type=True" if self.weak_type else ""
        return f"ShapedArray({self.str_short()}{weak})"

    def str_short(self, short_dtypes=False):
        """The shape and dtype as `float32[3,4]`, or as `f32[3,4]` with `short_dtypes`."""
        name = self._dtype_name()
        if short_dtypes and name != "float0":
            for long in ("float", "uint", "int", "complex"):
                name = name.replace(long, long[0])
        return f"{name}{self._space()}[{self._dims()}]{self._axes()}"

    def _dtype_name(self):
        return self.dtype.name.replace("void", "float0")  # NumPy's name of float0

    def _space(self):
        return "" if self.memory_space is Space.Device else f"<{self.memory_space.name.lower()}>"

    def _axes(self):
        """Over which axes of meshes it varies, is unreduced and is reduced: "{V:x, U:y, R:z}"."""
        spec = None if self._place is None else self._place.spec
        if spec is None or not (spec.unreduced or spec.reduced):
            return "" if self._manual is None else self._manual._short()
        from weft.sharding import ManualAxisType

        own = self._manual or ManualAxisType()
        return own.update(
            unreduced=own.unreduced | spec.unreduced, reduced=own.reduced | spec.reduced
        )._short()

    def _dims(self):
        if self._place is None:
            return ",".join(map(str, self.shape))
        texts = []
        for size, axes in zip_longest(self.shape, self._place.spec):
            names = f"({','.join(axes)})" if isinstance(axes, tuple) else axes
            texts.append(f"{size}@{names}" if names else str(size))
        return ",".join(texts)


@functools.cache
def _unsplit(ndim):
    from weft.sharding import AbstractMesh, NamedSharding, PartitionSpec

    return NamedSharding(AbstractMesh((), ()), PartitionSpec(*[None] * ndim))


class SourceInfo(NamedTuple):
    """Where in the user's program an operation was made; file and function None if unknown."""

    file: str | None
    line: int
    function: str | None

    def __str__(self):
        return f"{self.file}:{self.line} ({self.function})" if self.file else "<unknown>"


_core.install(shaped_array=ShapedArray, source_info=SourceInfo)


@AbstractValue.register
class AbstractRef(NamedTuple):
    """The type of a ref, as `typeof` tells it; prints as `Ref{float32[3,4]}`.

    Attributes: inner_aval (ShapedArray, the type of what it holds), shape, dtype, weak_type.
    """

    inner_aval: ShapedArray

    shape = property(lambda self: self.inner_aval.shape)
    sharding = property(lambda self: self.inner_aval.sharding)
    _place = property(lambda self: self.inner_aval._place)
    manual_axis_type = property(lambda self: self.inner_aval.manual_axis_type)
    _manual = property(lambda self: self.inner_aval._manual)
    dtype = property(lambda self: self.inner_aval.dtype)
    weak_type = property(lambda self: self.inner_aval.weak_type)
    ndim = property(lambda self: self.inner_aval.ndim)
    size = property(lambda self: self.inner_aval.size)

    def __str__(self):
        return f"Ref{{{self.inner_aval}}}"

    __repr__ = __str__


def typeof(x):
    """The shape, dtype and weak type of an array, number or ShapeDtypeStruct: a ShapedArray.

    Of a ref it is an AbstractRef.

    Examples:
      >>> weft.typeof(wnp.ones((2, 3)))
      ShapedArray(float32[2,3])
    """
    if isinstance(x, _core.Ref):
        split = _split(x, len(x.shape))
        return AbstractRef(ShapedArray(x.shape, x.dtype, sharding=split, weak_type=x.weak_type))
    if isinstance(x, ShapeDtypeStruct):
        dtype = canonicalize_dtype(x.dtype, allow_extended_dtype=True)
        return ShapedArray(x.shape, dtype, weak_type=x.weak_type, manual_axis_type=x._manual)
    shape, dtype, weak = _core.typeof(x)
    space = Space.Host if _core.is_on_host(x) else Space.Device
    return ShapedArray(
        shape,
        dtype,
        sharding=_split(x, len(shape)),
        weak_type=weak,
        memory_space=space,
        manual_axis_type=_manual(_core.varying_of(x)),
    )


def typed(x):
    """An argument of which only the type matters: a ShapeDtypeStruct for an object of another
    library that has `shape` and `dtype` and is no array, anything else as it is."""
    known = (_core.Array, _core.Tracer, _core.Ref, ShapeDtypeStruct, np.ndarray, np.generic)
    if isinstance(x, known) or _core.is_foreign_array(x):
        return x
    has_type = hasattr(x, "shape") and hasattr(x, "dtype")
    return ShapeDtypeStruct(x.shape, x.dtype) if has_type else x


def _manual(sets):
    if sets is None:
        return None
    from weft.sharding import ManualAxisType

    varying, unreduced, reduced = map(frozenset, sets)
    return ManualAxisType(varying=varying, unreduced=unreduced, reduced=reduced)


def _split(x, ndim):
    return split_seen(_core.split_of(x), ndim)


def split_seen(split, ndim):
    """How a value of a type is split, as users see it; `split` is the core's sharding, or None."""
    if split is None:
        return None
    from weft._placement import split_seen as seen

    return seen(split, ndim)
