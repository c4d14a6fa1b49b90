"""Where the parts of an array lie: meshes of devices, and how arrays are split over them."""

import collections
import contextlib
import dataclasses
import enum
import functools
import math
import weakref
from collections.abc import Iterable
from typing import Any as _Any

import numpy as np

from weft import _core
from weft._arguments import static_int as _static_int
from weft._surface import open_to_users as _open_to_users, public as _public
from weft._user_context import UserContext as _UserContext
from weft.errors import (
    ArgumentTypeError,
    AttributeValueError,
    NotImplementedRuleError,
    ShardingError,
    ShardingTypeError,
)

__all__ = [
    "AbstractDevice",
    "AbstractMesh",
    "AxisType",
    "ManualAxisType",
    "Mesh",
    "NamedSharding",
    "PartitionSpec",
    "Sharding",
    "SingleDeviceSharding",
    "UnreducedKind",
    "auto_axes",  # noqa: F822
    "explicit_axes",  # noqa: F822
    "get_abstract_mesh",
    "get_mesh",
    "make_single_device_sharding",
    "no_collectives",
    "reshard",  # noqa: F822
    "set_mesh",
    "use_abstract_mesh",
    "use_mesh",
]
__getattr__, __dir__ = _public(
    __name__, __all__, later={"weft._explicit": ("auto_axes", "explicit_axes", "reshard")}
)


class AxisType(enum.Enum):
    """Who decides how values are split over an axis: XLA, the types of values, or the program."""

    Auto = enum.auto()
    Explicit = enum.auto()
    Manual = enum.auto()

    def __repr__(self):
        return self.name


@dataclasses.dataclass(frozen=True, kw_only=True)
class ManualAxisType:
    """What the type of a value says of the manual axes of a mesh in a shard_map: sets of names.

    Attributes: varying (those over which it may differ), unreduced (those over which it has yet to
    be summed up), reduced (those over which its cotangent has yet to be). It is the same over the
    others.

    Raises TypeError for what is no set, and ValueError for an axis in two of them, unless these are
    unreduced and reduced.
    """

    varying: frozenset = frozenset()
    unreduced: frozenset = frozenset()
    reduced: frozenset = frozenset()

    def __post_init__(self):
        for field in dataclasses.fields(self):
            names = getattr(self, field.name)
            if not isinstance(names, (set, frozenset)):
                raise ArgumentTypeError(
                    f"ManualAxisType expected a set for {field.name}; got {names!r}"
                )
            object.__setattr__(self, field.name, frozenset(names))
        for other in ("unreduced", "reduced"):
            both = self.varying & getattr(self, other)
            if both:
                raise AttributeValueError(
                    f"ManualAxisType expected each axis once; got {sorted(map(str, both))} in "
                    f"varying and in {other}"
                )

    empty = property(lambda self: not any(self._sets))
    _sets = property(lambda self: (self.varying, self.unreduced, self.reduced))

    def update(self, **changes):
        """The same with some of the sets replaced."""
        return dataclasses.replace(self, **changes)

    def to_ct_mat(self):
        """That of cotangents."""
        return self.update(unreduced=self.reduced, reduced=self.unreduced)

    def _short(self):
        """ "{V:x}", "{V:(x,y), U:z}"; nothing if it is empty."""
        order = get_abstract_mesh().axis_names  # of the shard_map that is being traced
        parts = []
        for letter, names in zip("VUR", (self.varying, self.unreduced, self.reduced), strict=True):
            if names:
                named = [name for name in order if name in names]
                text = ",".join(map(str, [*named, *sorted(map(str, names.difference(named)))]))
                parts.append(f"{letter}:({text})" if len(names) > 1 else f"{letter}:{text}")
        return f"{{{', '.join(parts)}}}" if parts else ""


_TYPES = tuple(AxisType)  # in the order of the core


def _axis_types(types, count, function):
    if types is None:
        return (AxisType.Auto,) * count
    each = (types,) * count if isinstance(types, AxisType) else types
    types = _tuple(each, function, "axis_types")
    if len(types) != count or not all(isinstance(t, AxisType) for t in types):
        raise ArgumentTypeError(
            f"{function} expected an AxisType for each of {count} axes; got axis_types={types}"
        )
    return types


def _tuple(x, function, parameter):
    if not isinstance(x, Iterable):
        raise ArgumentTypeError(f"{function} expected a tuple for {parameter}; got {x!r}")
    return tuple(x)


def _names(names, function):
    names = (names,) if isinstance(names, str) else _tuple(names, function, "axis_names")
    for name in names:
        if not isinstance(name, str):
            raise ArgumentTypeError(f"{function} expected names of axes, strings; got {name!r}")
    if len(set(names)) < len(names):
        raise ShardingError(f"{function} expected axes of different names; got {names}")
    return names


class _Axes:
    """What meshes with and without devices have in common."""

    _core: _Any
    empty: _Any
    axis_names = property(lambda self: self._core.names)
    axis_sizes = property(lambda self: self._core.sizes)
    axis_types = property(lambda self: tuple(_TYPES[t] for t in self._core.types))
    shape_tuple = property(lambda self: tuple(zip(self.axis_names, self.axis_sizes, strict=True)))
    size = property(lambda self: 0 if self.empty else math.prod(self.axis_sizes))
    shape = property(lambda self: collections.OrderedDict(self.shape_tuple))
    auto_axes = property(lambda self: self._of_type(AxisType.Auto))
    explicit_axes = property(lambda self: self._of_type(AxisType.Explicit))
    manual_axes = property(lambda self: self._of_type(AxisType.Manual))
    are_all_axes_auto = property(lambda self: len(self.auto_axes) == len(self.axis_names))
    are_all_axes_explicit = property(lambda self: len(self.explicit_axes) == len(self.axis_names))
    are_all_axes_manual = property(lambda self: len(self.manual_axes) == len(self.axis_names))

    def _of_type(self, kind):
        pairs = zip(self.axis_names, self.axis_types, strict=True)
        return tuple(name for name, own in pairs if own is kind)

    def __eq__(self, other):
        return self._core is other._core if type(other) is type(self) else NotImplemented

    def __hash__(self):
        return hash(self._core)

    def __str__(self):
        axes = ", ".join(f"{name!r}: {size}" for name, size in self.shape_tuple)
        return f"{type(self).__name__}({axes or '()'}, axis_types={self.axis_types})"


_meshes = weakref.WeakValueDictionary()  # (class, mesh of the core) -> Mesh


class Mesh(_Axes, contextlib.ContextDecorator):
    """A grid of devices whose axes have names. Equal ones are one object.

    `with mesh:` sets it for the specs of `with_sharding_constraint` and for `pjit`; as a decorator
    it does so for the calls of a function.

    Args:
      devices: an array or nested list of devices, with an axis for each name; an array of None
        alone for a mesh without devices and axes.
      axis_names: a name or a tuple of names.
      axis_types: an AxisType per axis; None is Auto for all.

    Raises ValueError for another number of names or types than axes, for a device or a name that is
    there twice.

    Examples:
      >>> mesh = weft.sharding.Mesh(np.array(weft.devices()[:1]).reshape(1, 1), ("x", "y"))
      >>> dict(mesh.shape)
      {'x': 1, 'y': 1}
    """

    def __new__(cls, devices, axis_names, axis_types=None):
        from weft.runtime.devices import check_device

        grid = np.array(devices, dtype=object)
        names = _names(axis_names, "Mesh")
        if grid.ndim != len(names):
            raise ShardingError(
                f"Mesh expected an axis of devices for each of the names {names}; got devices of "
                f"shape {grid.shape}"
            )
        listed = [] if not names and grid[()] is None else list(grid.flat)
        for device in listed:
            check_device(device, "Mesh")
        types = _axis_types(axis_types, len(names), "Mesh")
        numbers = [_core.device_index(d) for d in listed]
        kinds = [_TYPES.index(t) for t in types]
        return cls._of(_core.make_mesh(names, grid.shape, kinds, numbers))

    @classmethod
    def _of(cls, core):
        made = _meshes.get((cls, core))
        if made is None:
            made = _meshes[cls, core] = object.__new__(cls)
            made._core = core
        return made

    @functools.cached_property
    def devices(self):
        """The devices, a NumPy array of the mesh's shape."""
        from weft.runtime.devices import device_at

        if self.empty:
            return np.empty((), dtype=object)
        grid = np.empty(len(self._core.devices), dtype=object)
        grid[:] = [device_at(i) for i in self._core.devices]
        return grid.reshape(self.axis_sizes)

    empty = property(lambda self: not self._core.devices)
    is_scalar = property(lambda self: not self.axis_names)
    device_ids = property(
        lambda self: np.array([d.id for d in self.devices.flat]).reshape(self.axis_sizes)
    )

    @property
    def abstract_mesh(self):
        """The same axes without devices."""
        made = AbstractMesh._of(self._core.abstract)
        if not self.empty:
            first = self.devices.flat[0]
            cores = getattr(first, "num_cores", None)
            made.abstract_device = AbstractDevice(first.device_kind, cores, first.platform)
        return made

    @property
    def local_devices(self):
        """The devices of this process, a list."""
        return [d for d in self.devices.flat if d.process_index == d.client.process_index()]

    @property
    def is_multi_process(self):
        """Whether some devices are other processes'."""
        return len(self.local_devices) != self.devices.size

    @property
    def local_mesh(self):
        """The part of the mesh that this process has; itself if that is all."""
        if not self.is_multi_process:
            return self
        own = np.vectorize(lambda d: d in self.local_devices, otypes=[bool])(self.devices)
        places = np.nonzero(own)
        part = self.devices[tuple(slice(p.min(), p.max() + 1) for p in places)]
        return Mesh(part, self.axis_names, self.axis_types)

    def update(self, devices=None, axis_names=None, axis_types=None):
        """The mesh with other devices, names or types."""
        return Mesh(
            self.devices if devices is None else devices,
            self.axis_names if axis_names is None else axis_names,
            self.axis_types if axis_types is None else axis_types,
        )

    def __enter__(self):
        _entered.set((*_entered.value, self))
        return self

    def __exit__(self, *exception):
        _entered.set(_entered.value[:-1])
        return False

    def __repr__(self):
        sizes = f"axis_sizes={self.axis_sizes}, axis_names={self.axis_names}"
        types = "" if self.empty else f", axis_types={self.axis_types}"
        return f"Mesh({sizes}{types})"

    def __reduce__(self):
        return Mesh, (self.devices, self.axis_names, self.axis_types)

    def __deepcopy__(self, memo):
        return self


def make_mesh(axis_shapes, axis_names, axis_types=None, *, devices=None):
    """A mesh of the first devices there are.

    Args:
      axis_shapes, axis_names: sizes and names of the axes, tuples of one length.
      axis_types: a weft.sharding.AxisType per axis; None is Auto for all.
      devices: those to take them from; None is `weft.devices()`.

    Raises ValueError for more positions than devices.

    Examples:
      >>> mesh = weft.make_mesh((1,), ("rows",))
      >>> mesh.shape
      OrderedDict([('rows', 1)])
    """
    if not isinstance(axis_shapes, Iterable) or isinstance(axis_shapes, str):
        raise ArgumentTypeError(f"make_mesh expected a tuple of sizes; got {axis_shapes!r}")
    sizes = tuple(_static_int(n, "make_mesh", "each of axis_shapes") for n in axis_shapes)
    if min(sizes, default=1) < 1:
        raise ShardingError(f"make_mesh expected axis_shapes of at least 1; got {sizes}")
    if devices is None:
        from weft.runtime.devices import devices as present

        devices = present()
    found = list(devices)
    count = math.prod(sizes)
    if count > len(found):
        raise ShardingError(
            f"make_mesh expected axis_shapes of at most the {len(found)} devices; got {sizes}, "
            f"which are {count}\n"
            f"  On a CPU, WEFT_NUM_CPU_DEVICES={count} in the environment makes {count} devices."
        )
    grid = np.empty(count, dtype=object)
    grid[:] = found[:count]
    return Mesh(grid.reshape(sizes), axis_names, axis_types)


def _no_devices(self):
    raise ShardingError(f"expected a Mesh; got {self}, which has no devices")


@dataclasses.dataclass(frozen=True)
class AbstractDevice:
    """What a device is like.

    Attributes: device_kind (str), num_cores (int or None), platform (str).
    """

    device_kind: str
    num_cores: int | None
    platform: str

    @property
    def _text(self):
        names = ("device_kind", "num_cores", "platform")
        return ", ".join(f"{name}={getattr(self, name)}" for name in names)

    def __repr__(self):
        return f"AbstractDevice({self._text})"


class AbstractMesh(_Axes):
    """The axes of a mesh without devices.

    Args:
      axis_sizes, axis_names: tuples of one length.
      axis_types: an AxisType, for all axes or one per axis; None is Auto for all.
      abstract_device: an AbstractDevice, what the devices are like, or None; it plays no part in
        whether meshes are equal.

    What a mesh knows of its devices (devices, device_ids, local_devices, local_mesh,
    is_multi_process) raises ValueError.

    Examples:
      >>> mesh = weft.sharding.AbstractMesh((2, 4), ("x", "y"))
      >>> weft.NamedSharding(mesh, P("y")).shard_shape((8, 3))
      (2, 3)
    """

    def __init__(self, axis_sizes, axis_names, axis_types=None, *, abstract_device=None):
        names = _names(axis_names, "AbstractMesh")
        types = _axis_types(axis_types, len(names), "AbstractMesh")
        sizes = _tuple(axis_sizes, "AbstractMesh", "axis_sizes")
        if len(sizes) != len(names):
            raise ShardingError(f"AbstractMesh expected a size per name; got {sizes} and {names}")
        self._core = _core.make_mesh(names, sizes, [_TYPES.index(t) for t in types], ())
        self.abstract_device = abstract_device

    @classmethod
    def _of(cls, core):
        made = object.__new__(cls)
        made._core = core
        made.abstract_device = None
        return made

    empty = property(lambda self: not self.axis_names)
    abstract_mesh = property(lambda self: self)

    devices = device_ids = local_devices = local_mesh = is_multi_process = property(_no_devices)

    def update(self, axis_sizes=None, axis_names=None, axis_types=None, **kwargs):
        """The mesh with other sizes, names or types."""
        return AbstractMesh(
            self.axis_sizes if axis_sizes is None else axis_sizes,
            self.axis_names if axis_names is None else axis_names,
            self.axis_types if axis_types is None else axis_types,
            **{"abstract_device": self.abstract_device, **kwargs},
        )

    def update_axis_types(self, name_to_type):
        """The mesh with other types of the axes that a dict names."""
        pairs = zip(self.axis_names, self.axis_types, strict=True)
        return self.update(axis_types=tuple(name_to_type.get(n, t) for n, t in pairs))

    def __reduce__(self):
        make = functools.partial(AbstractMesh, abstract_device=self.abstract_device)
        return make, (self.axis_sizes, self.axis_names, self.axis_types)

    def __deepcopy__(self, memo):
        return self

    def __repr__(self):
        text = super().__str__()
        return (
            text if self.abstract_device is None else f"{text[:-1]}, {self.abstract_device._text})"
        )

    __str__ = __repr__


class _Unconstrained:
    """The entry of a PartitionSpec that leaves a dimension to XLA."""

    def __repr__(self):
        return "UNCONSTRAINED"

    def __reduce__(self):
        return "PartitionSpec.UNCONSTRAINED"


class UnreducedKind(enum.Enum):
    """How the parts along unreduced axes are yet to be made one: their sum, maximum or minimum."""

    sum = enum.auto()
    max = enum.auto()
    min = enum.auto()


class PartitionSpec:
    """Over which axes of a mesh each dimension of an array is split.

    Args:
      partitions: per dimension None (not split), a name, a tuple of names, of which the first
        splits outermost, or `PartitionSpec.UNCONSTRAINED`; dimensions beyond them are not split.
      unreduced: a set of axes along which the parts are yet to be added up.
      reduced: a set of axes along which each device has the same, and the parts of the cotangents
        are yet to be added up.
      unreduced_kind: an UnreducedKind, where there are unreduced axes: `sum` if it is None. Arrays
        have sums only.

    Raises TypeError for what is no set, no kind, and for an entry that no name can be, ValueError
    for a tuple within a tuple, None in a set, an axis that is in two of the three, and a kind
    without unreduced axes.

    Examples:
      >>> P("rows", None)
      P('rows', None)
      >>> P(("rows", "columns"))
      P(('rows', 'columns'),)
    """

    __slots__ = ("_partitions", "reduced", "unreduced", "unreduced_kind")
    UNCONSTRAINED = _Unconstrained()

    def __init__(
        self, *partitions, unreduced=frozenset(), reduced=frozenset(), unreduced_kind=None
    ):
        self._partitions = tuple(map(_entry, partitions))
        if unreduced or reduced:
            _check_sums(self._partitions, unreduced, reduced)
        self.unreduced = frozenset(unreduced)
        self.reduced = frozenset(reduced)
        self.unreduced_kind = _kind(unreduced_kind, self.unreduced)

    partitions = property(lambda self: self._partitions)

    def update(self, partitions=None, unreduced=None, reduced=None, unreduced_kind=None):
        """The spec with other parts."""
        return PartitionSpec(
            *(self._partitions if partitions is None else partitions),
            unreduced=self.unreduced if unreduced is None else unreduced,
            reduced=self.reduced if reduced is None else reduced,
            unreduced_kind=self.unreduced_kind if unreduced_kind is None else unreduced_kind,
        )

    def to_ct_spec(self):
        """That of cotangents: what is unreduced is reduced, and the other way round."""
        return PartitionSpec(*self._partitions, unreduced=self.reduced, reduced=self.unreduced)

    def index(self, value):
        """The first dimension with an entry."""
        return self._partitions.index(_entry(value))

    def count(self, value):
        """How many dimensions have an entry."""
        return self._partitions.count(_entry(value))

    def __getitem__(self, i):
        return self._partitions[i]

    def __iter__(self):
        return iter(self._partitions)

    def __len__(self):
        return len(self._partitions)

    def __add__(self, other):
        other = self._beside(other)
        if other is None:
            return NotImplemented
        kinds = {self.unreduced_kind, other.unreduced_kind} - {None}
        if len(kinds) > 1:
            raise ShardingError(f"expected specs of one unreduced_kind; got {self} and {other}")
        return PartitionSpec(
            *self,
            *other,
            unreduced=self.unreduced | other.unreduced,
            reduced=self.reduced | other.reduced,
            unreduced_kind=next(iter(kinds), None),
        )

    def __radd__(self, other):
        other = self._beside(other)
        return NotImplemented if other is None else other + self

    def _beside(self, other):
        """A summand as a spec, None if it is another object."""
        if isinstance(other, tuple) and (self.unreduced or self.reduced):
            raise ArgumentTypeError(
                f"expected a PartitionSpec to add to {self}, which has unreduced or reduced axes; "
                f"got {other}"
            )
        if isinstance(other, tuple):
            return PartitionSpec(*other)
        return other if isinstance(other, PartitionSpec) else None

    def __eq__(self, other):
        if not isinstance(other, PartitionSpec):
            return NotImplemented
        return self._key == other._key

    def __hash__(self):
        return hash(self._key)

    @property
    def _key(self):
        return self._partitions, self.unreduced, self.reduced, self.unreduced_kind

    def __repr__(self):
        parts = ", ".join(map(repr, self._partitions))
        named = [
            f"{name}={set(axes)!r}"
            for name, axes in (("unreduced", self.unreduced), ("reduced", self.reduced))
            if axes
        ]
        if self.unreduced_kind not in (None, UnreducedKind.sum):
            named.append(f"unreduced_kind={self.unreduced_kind.name}")
        if named:
            return f"P({', '.join([parts, *named] if parts else named)})"
        return f"P({parts},)" if len(self._partitions) == 1 else f"P({parts})"

    def __reduce__(self):
        sets = {"unreduced": self.unreduced, "reduced": self.reduced}
        made = functools.partial(PartitionSpec, unreduced_kind=self.unreduced_kind, **sets)
        return made, self._partitions


P = PartitionSpec


def _check_sums(partitions, unreduced, reduced):
    used = {n for entry in partitions for n in (entry if isinstance(entry, tuple) else (entry,))}
    for name, axes in (("unreduced", unreduced), ("reduced", reduced)):
        if not isinstance(axes, (set, frozenset)):
            raise ArgumentTypeError(
                f"PartitionSpec expected a set of axes for {name}; got {axes!r}"
            )
        if None in axes:
            raise ShardingError(f"PartitionSpec expected names of axes in {name}; got {set(axes)}")
        twice = axes & (used | (unreduced if axes is reduced else set()))
        if twice:
            raise ShardingError(
                f"PartitionSpec expected each axis once; got {sorted(map(str, twice))[0]!r} in "
                f"{name} and elsewhere"
            )


def _kind(kind, unreduced):
    if kind is not None and not isinstance(kind, UnreducedKind):
        raise ArgumentTypeError(f"PartitionSpec expected an UnreducedKind; got {kind!r}")
    if kind is not None and not unreduced:
        raise ShardingError(f"PartitionSpec expected unreduced axes beside {kind}; got none")
    return UnreducedKind.sum if unreduced and kind is None else kind


def _entry(x):
    """A tuple of one name is that name, of none None."""
    if isinstance(x, (tuple, list)):
        if any(isinstance(name, (tuple, list)) for name in x):
            raise ShardingError(
                f"PartitionSpec expected a name or a tuple of names per dimension; got {x!r}"
            )
        return None if not x else x[0] if len(x) == 1 else tuple(x)
    if x is not None and x.__hash__ is None:
        raise ArgumentTypeError(
            f"PartitionSpec expected None, a name or a tuple of names per dimension; got {x!r}"
        )
    return x


class Sharding:
    """How an array is laid out on devices. The class of all shardings.

    Attributes: device_set, addressable_devices (sets), num_devices, memory_kind,
    is_fully_replicated, is_fully_addressable, has_addressable_devices.
    """

    _core: _Any
    num_devices = property(lambda self: math.prod(self._core.mesh.sizes))
    is_fully_addressable = property(lambda self: self.addressable_devices == self.device_set)
    has_addressable_devices = property(lambda self: bool(self.addressable_devices))
    _placement = property(lambda self: self._core)

    def with_memory_kind(self, kind):
        """The same in another memory of the devices; NotImplementedError for a class without it."""
        raise NotImplementedError(f"{type(self).__name__} has no with_memory_kind")

    @property
    def is_fully_replicated(self):
        """Whether every device has the whole array."""
        return not self._core.unreduced and all(n == 1 for n in self._num_blocks(0))

    @property
    def device_set(self):
        """The devices, a set; ValueError where the mesh has none."""
        from weft.runtime.devices import device_at

        if not self._core.mesh.devices:
            _no_devices(self)
        return {device_at(i) for i in self._core.mesh.devices}

    @property
    def addressable_devices(self):
        """Those of this process, a set."""
        return {d for d in self.device_set if d.process_index == d.client.process_index()}

    def shard_shape(self, global_shape):
        """The shape of what a device holds of an array of a shape.

        Raises ValueError if the sharding does not divide it.

        Examples:
          >>> mesh = weft.sharding.AbstractMesh((2, 4), ("x", "y"))
          >>> weft.NamedSharding(mesh, P("y", "x")).shard_shape((8, 6))
          (2, 3)
        """
        shape = tuple(global_shape)
        self._check_divides(shape)
        return tuple(n // k for n, k in zip(shape, self._num_blocks(len(shape)), strict=True))

    def devices_indices_map(self, global_shape) -> dict[_Any, tuple[slice, ...]]:
        """By device, the index of what it holds of an array of a shape, a tuple of slices."""
        return {d: index for d, _, index in _core.shards(self._core, tuple(global_shape), False)}

    def addressable_devices_indices_map(self, global_shape):
        """The same for the devices of this process."""
        return {d: index for d, _, index in _core.shards(self._core, tuple(global_shape), True)}

    def _num_blocks(self, ndim):
        """In how many blocks each dimension of an array is split."""
        sizes = dict(zip(self._core.mesh.names, self._core.mesh.sizes, strict=True))
        split = [math.prod(sizes[n] for n in names) for names, _ in self._core.dims]
        return (*split, *[1] * (ndim - len(split)))

    def _blocks_of_processes(self, ndim):
        """By process, per dimension, the set of the numbers of the blocks that it holds."""
        blocks = self._num_blocks(ndim)
        held = {d.process_index: [set() for _ in blocks] for d in self.device_set}
        for device, index in self.devices_indices_map(blocks).items():
            for numbers, block in zip(held[device.process_index], index, strict=True):
                numbers.add(block.start or 0)
        return held

    def is_equivalent_to(self, other, ndim):
        """Whether two shardings place arrays of `ndim` axes alike.

        Examples:
          >>> mesh = weft.make_mesh((1,), ("x",))
          >>> split, whole = weft.NamedSharding(mesh, P("x")), weft.NamedSharding(mesh, P())
          >>> split.is_equivalent_to(whole, 1), split == whole
          (True, False)
        """
        if not isinstance(other, Sharding):
            return False
        if self._core == other._core:
            return True
        if set(self._core.unreduced) != set(other._core.unreduced):
            return False
        if self.memory_kind != other.memory_kind or self.device_set != other.device_set:
            return False
        size = math.lcm(*self._core.mesh.sizes, *other._core.mesh.sizes)
        shape = (math.prod([size, size]),) * ndim
        return self.devices_indices_map(shape) == other.devices_indices_map(shape)

    def check_compatible_aval(self, aval_shape):
        """Raises ValueError for arrays of a shape that cannot be so split."""
        self._check_divides(tuple(aval_shape))

    def _check_divides(self, shape):
        problem = _core.misfit(self._core, shape)
        if problem:
            raise ShardingError(problem)

    @property
    def memory_kind(self):
        """Which memory of the devices holds the array."""
        from weft.runtime.devices import device_at, memory_kinds

        devices = self._core.mesh.devices
        default = None if not devices else memory_kinds(device_at(devices[0]))[0]
        return self._core.memory or default

    def __eq__(self, other):
        return self._core == other._core if type(other) is type(self) else NotImplemented

    def __hash__(self):
        return hash(self._core)


def _example_device(mesh):
    """One of a mesh's devices; of an abstract one, one of those that programs run on."""
    from weft.runtime.devices import devices

    return devices()[0] if isinstance(mesh, AbstractMesh) else mesh.devices.flat[0]


def _memory(kind, device, what):
    """The name of a memory for the core: "" is the default one."""
    from weft.runtime.devices import memory_kinds

    kinds = memory_kinds(device)
    if kind is not None and kind not in kinds:
        raise ShardingError(
            f"{what} expected a memory of {device}, one of {', '.join(kinds)}; got {kind!r}"
        )
    return "" if kind in (None, kinds[0]) else kind


class SingleDeviceSharding(Sharding):
    """The whole array on one device.

    Args:
      device: one of `weft.devices()`.
      memory_kind: which of the device's memories; None is its default.

    Examples:
      >>> one = weft.sharding.SingleDeviceSharding(weft.devices()[0])
      >>> weft.device_put(wnp.arange(3), one).committed
      True
    """

    __slots__ = ("_core",)

    def __init__(self, device, *, memory_kind=None):
        from weft.runtime.devices import check_device

        check_device(device, "SingleDeviceSharding")
        mesh = _core.make_mesh((), (), (), (_core.device_index(device),))
        memory = _memory(memory_kind, device, "SingleDeviceSharding")
        self._core = _core.make_sharding(mesh, (), (), memory)

    @property
    def _device(self):
        (device,) = self.device_set
        return device

    def with_memory_kind(self, kind):
        """The same in another memory of the device."""
        return SingleDeviceSharding(self._device, memory_kind=kind)

    def __repr__(self):
        return f"SingleDeviceSharding(device={self._device!r}, memory_kind={self.memory_kind})"


def make_single_device_sharding(device, *, memory_kind=None):
    """`SingleDeviceSharding(device, memory_kind=memory_kind)`.

    Examples:
      >>> weft.sharding.make_single_device_sharding(weft.devices()[0]).num_devices
      1
    """
    return SingleDeviceSharding(device, memory_kind=memory_kind)


class NamedSharding(Sharding):
    """An array split over the axes of a mesh.

    Args:
      mesh: a Mesh, or an AbstractMesh for programs that do not care which the devices are.
      spec: a PartitionSpec.
      memory_kind: which memory of the devices; None is their default.

    Attributes: mesh, spec, besides those of Sharding.

    Raises ValueError for axes that the mesh does not have or that are used twice.

    Examples:
      >>> mesh = weft.make_mesh((1,), ("rows",))
      >>> x = weft.device_put(wnp.zeros((4, 2)), weft.NamedSharding(mesh, P("rows")))
      >>> x.sharding.spec
      P('rows',)
    """

    __slots__ = ("_core", "mesh", "spec")

    def __init__(self, mesh, spec, *, memory_kind=None):
        if not isinstance(mesh, (Mesh, AbstractMesh)):
            raise ArgumentTypeError(f"NamedSharding expected a Mesh; got {mesh!r}")
        if not isinstance(spec, PartitionSpec):
            raise ArgumentTypeError(f"NamedSharding expected a PartitionSpec; got {spec!r}")
        dims: list[tuple[tuple, bool]] = []
        for entry in spec:
            if entry is PartitionSpec.UNCONSTRAINED:
                dims.append(((), True))
                continue
            names = () if entry is None else entry if isinstance(entry, tuple) else (entry,)
            dims.append((names, False))
        if spec.unreduced_kind not in (None, UnreducedKind.sum):
            raise NotImplementedRuleError(
                f"NamedSharding expected sums over the unreduced axes; got {spec}"
            )
        sums = spec.unreduced | spec.reduced
        split = [n for names, _ in dims for n in names]
        for name in (*split, *sums):
            if name not in mesh.axis_names:
                raise ShardingError(
                    f"NamedSharding expected axes of the mesh, {mesh}; got {name!r} in {spec}"
                )
            if split.count(name) > 1:
                raise ShardingError(
                    f"NamedSharding expected each axis of {mesh} once; got {name!r} twice in {spec}"
                )
        for name in sums:
            if mesh.axis_types[mesh.axis_names.index(name)] == AxisType.Auto:
                raise ShardingError(
                    "NamedSharding expected unreduced and reduced axes that are not of type Auto; "
                    f"got {name!r} of {mesh} in {spec}"
                )
        memory = ""
        if memory_kind is not None:
            memory = _memory(memory_kind, _example_device(mesh), "NamedSharding")
        self.mesh, self.spec = mesh, spec
        self._core = _core.make_sharding(mesh._core, dims, spec.unreduced, memory, spec.reduced)

    def check_compatible_aval(self, aval_shape):
        """Raises ValueError for arrays of a shape that cannot be so split."""
        if len(self.spec) > len(aval_shape):
            raise ShardingError(
                f"expected an array of at least {len(self.spec)} dimensions for {self}; got shape "
                f"{tuple(aval_shape)}"
            )
        super().check_compatible_aval(aval_shape)

    @property
    def replicated_axes(self):
        """The axes along which the array is repeated, a set of names."""
        used = {n for names, _ in self._core.dims for n in names}
        return frozenset(self.mesh.axis_names) - used

    def update(self, **kwargs):
        """The sharding with another mesh, spec or memory_kind."""
        return NamedSharding(
            kwargs.get("mesh", self.mesh),
            kwargs.get("spec", self.spec),
            memory_kind=kwargs.get("memory_kind", self._core.memory or None),
        )

    def with_spec(self, spec):
        """The same mesh and memory with another spec, which may be a tuple.

        Examples:
          >>> mesh = weft.make_mesh((1,), ("x",))
          >>> weft.NamedSharding(mesh, P()).with_spec(P("x")).spec
          P('x',)
        """
        return self.update(spec=spec if isinstance(spec, PartitionSpec) else PartitionSpec(*spec))

    def with_memory_kind(self, kind):
        """The same in another memory of the devices."""
        return self.update(memory_kind=kind)

    def __repr__(self):
        kind = "" if self.memory_kind is None else f", memory_kind={self.memory_kind}"
        return f"NamedSharding(mesh={self.mesh}, spec={self.spec}{kind})"

    def __reduce__(self):
        make = functools.partial(NamedSharding, memory_kind=self._core.memory or None)
        return make, (self.mesh, self.spec)


def _seen(core) -> _Any:
    """The sharding that stands for one of the core's."""
    if not core.mesh.names:
        made = object.__new__(SingleDeviceSharding)
        made._core = core
        return made
    made = object.__new__(NamedSharding)
    entries = [
        PartitionSpec.UNCONSTRAINED if is_open and not names else tuple(names)
        for names, is_open in core.dims
    ]
    made.mesh = Mesh._of(core.mesh)
    made.spec = PartitionSpec(
        *entries, unreduced=frozenset(core.unreduced), reduced=frozenset(core.reduced)
    )
    made._core = core
    return made


_NONE = AbstractMesh((), ())
_NO_MESH = Mesh._of(_NONE._core)
# The meshes that the thread has set: what it traces depends on them.
_stack: _Any = _UserContext(())


# Those of `with mesh:`, older than set_mesh, which is for with_sharding_constraint and pjit.
_entered: _Any = _UserContext(())


def _set_stack(meshes):
    _stack.set(meshes)
    last, whole = (meshes[-1], mesh_set()) if meshes else (_NONE, _NONE)
    _core.set_current_mesh((whole if whole.abstract_mesh == last else last)._core)


class set_mesh:
    """The mesh of the code that follows, or of a `with` block: that of bare PartitionSpecs.

    Args:
      mesh: a Mesh; None for none.

    Raises ValueError in a function that is traced, and for a mesh with axes of type Manual.

    Examples:
      >>> with weft.set_mesh(weft.make_mesh((1,), ("rows",))):
      ...     x = weft.device_put(wnp.zeros(4), P("rows"))
      >>> x.sharding.spec
      P('rows',)
    """

    def __init__(self, mesh):
        _check_not_traced("set_mesh")
        if mesh is not None and not isinstance(mesh, Mesh):
            raise AttributeValueError(f"set_mesh expected a Mesh; got {mesh!r}")
        if mesh is not None and AxisType.Manual in mesh.axis_types:
            raise ShardingError(
                f"set_mesh expected a mesh without axes of type Manual; got {mesh}\n"
                "  weft.shard_map makes axes manual."
            )
        self._before = _stack.value
        _set_stack(() if mesh is None else (mesh,))

    def __enter__(self):
        return None

    def __exit__(self, *exception):
        _set_stack(self._before)


class use_abstract_mesh:
    """In the `with` block `get_abstract_mesh` gives this mesh.

    Examples:
      >>> mesh = weft.sharding.AbstractMesh((2, 4), ("x", "y"))
      >>> with weft.sharding.use_abstract_mesh(mesh):
      ...     size = weft.sharding.get_abstract_mesh().size
      >>> size
      8
    """

    def __init__(self, mesh):
        if not isinstance(mesh, AbstractMesh):
            raise ArgumentTypeError(f"use_abstract_mesh expected an AbstractMesh; got {mesh!r}")
        self._mesh = mesh

    def __enter__(self):
        _set_stack((*_stack.value, self._mesh))
        return self._mesh

    def __exit__(self, *exception):
        _set_stack(_stack.value[:-1])


use_mesh = set_mesh


def _check_not_traced(function):
    if _core.in_context():
        raise ShardingError(
            f"{function} expected to be called outside of functions that are traced; got a call in "
            "one\n  weft.sharding.get_abstract_mesh() tells the mesh there."
        )


def get_mesh():
    """The mesh that `set_mesh` set; an empty one if there is none.

    Raises ValueError in a function that is traced, where `get_abstract_mesh` tells it.

    Examples:
      >>> mesh = weft.make_mesh((1,), ("x",))
      >>> with weft.set_mesh(mesh):
      ...     same = weft.sharding.get_mesh() == mesh
      >>> same, weft.sharding.get_mesh().empty
      (True, True)
    """
    _check_not_traced("get_mesh")
    return mesh_set()


def mesh_set():
    """get_mesh(), anywhere."""
    for mesh in reversed(_stack.value):
        if isinstance(mesh, Mesh):
            return mesh
    return _NO_MESH


def mesh_of_specs():
    """The mesh of bare PartitionSpecs: the one that is set, or of a shard_map around the call."""
    mesh = mesh_set()
    return get_abstract_mesh() if mesh.empty else mesh


def mesh_of_constraints():
    """The same in with_sharding_constraint, for which `with mesh:` sets one, too."""
    mesh = mesh_of_specs()
    return _entered.value[-1] if mesh.empty and _entered.value else mesh


@contextlib.contextmanager
def entered_mesh():
    """A scope in which the mesh of `with mesh:`, unless another is set, is as one that is set.

    Gives it, or an empty one.
    """
    entered = _NO_MESH
    if mesh_of_specs().empty and _entered.value:
        entered = _entered.value[-1]
    if entered.empty:
        yield entered
        return
    _set_stack((*_stack.value, entered))
    try:
        yield entered
    finally:
        _set_stack(_stack.value[:-1])


def get_abstract_mesh():
    """The mesh that is set, without devices; an empty one if there is none.

    Examples:
      >>> with weft.set_mesh(weft.make_mesh((1,), ("x",))):
      ...     names = weft.sharding.get_abstract_mesh().axis_names
      >>> names
      ('x',)
    """
    return _stack.value[-1].abstract_mesh if _stack.value else _NONE


_forbidden = _UserContext(frozenset())


@contextlib.contextmanager
def _forbidding(names):
    earlier = _core.forbid_collectives(sorted(names))
    try:
        with _forbidden(names):
            yield
    finally:
        _core.forbid_collectives(earlier)


def no_collectives(axis_names):
    """A context manager in which nothing may communicate over some axes of meshes.

    What would do so raises ShardingTypeError when it is traced. Over axes of type Explicit that is
    an operation whose operands are split over an axis, or have sums over it that are yet to be
    made, and whose result is not; over those of a shard_map it is a collective. Over axes of type
    Auto, and within functions that are given out_sharding=, XLA decides, and nothing is known.

    axis_names: a set of names. Raises TypeError for anything else.

    Examples:
      >>> mesh = weft.make_mesh((1,), ("x",))
      >>> f = weft.shard_map(lambda y: lax.psum(y, "x"), mesh=mesh, in_specs=P("x"), out_specs=P())
      >>> try:
      ...     with weft.sharding.no_collectives({"x"}):
      ...         f(wnp.ones(2))
      ... except weft.errors.ShardingTypeError:
      ...     print("communicates over x")
      communicates over x
    """
    if not isinstance(axis_names, (set, frozenset)):
        raise ArgumentTypeError(f"no_collectives expected a set of names; got {axis_names!r}")
    return _forbidding(frozenset(axis_names))


def check_collective(op, names):
    """Raises ShardingTypeError for an operation over axes of which `no_collectives` has one."""
    for name in names:
        if name in _forbidden.value and name in get_abstract_mesh().manual_axes:
            raise ShardingTypeError(
                f"[{op}] expected to communicate nothing over axis {name!r}, which no_collectives "
                "forbids"
            )


def check_reshard(op, x, placement):
    """The same for an array that is moved to another placement of the core."""
    own = getattr(getattr(x, "sharding", None), "spec", None)
    if not _forbidden.value or own is None:
        return
    new = [names for names, _ in placement.dims]
    for name in _forbidden.value:
        before = [i for i, n in enumerate(own) if name in (n if isinstance(n, tuple) else (n,))]
        after = [i for i, names in enumerate(new) if name in names]
        lost = (before or name in own.unreduced) and not (after or name in placement.unreduced)
        if lost or (before and after and before != after):
            raise ShardingTypeError(
                f"[{op}] expected to communicate nothing over axis {name!r}, which no_collectives "
                f"forbids; got {own} and {placement}"
            )


_open_to_users(__name__)
