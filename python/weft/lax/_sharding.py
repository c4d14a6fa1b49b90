"""Where arrays lie."""

import functools
import math

from weft import _core
from weft._placement import map_placed, placement_of
from weft._types.avals import ShapeDtypeStruct, typeof
from weft.errors import DeviceMismatchError, PreconditionError, ShardingError
from weft.sharding import AbstractMesh, AxisType, get_abstract_mesh, mesh_of_constraints


def with_sharding_constraint(x, shardings):
    """The tree of arrays, split as `shardings` says.

    Values of a function that is traced are split so where the program runs, which is on the devices
    of the mesh. XLA chooses for dimensions whose entry is `PartitionSpec.UNCONSTRAINED`, for those
    that the devices do not divide, and under vmap for the mapped axis. Cotangents are split like
    the values. Other arrays are moved over the devices that they are committed to.

    Args:
      x: tree of arrays.
      shardings: a device of `weft.devices()`, a sharding, or a PartitionSpec where a mesh is set;
        or a tree of such, of which `x` may go on below.

    Raises:
      ValueError: for a sharding that an array does not fit, and for axes that a shard_map around
        the call has taken. DeviceMismatchError, also a ValueError, for a mesh of other devices, or
        in another order, than an array is committed to, or the arguments of the program when it
        is called.

    Examples:
      >>> sharding = weft.NamedSharding(weft.make_mesh((1,), ("rows",)), P("rows"))
      >>> weft.jit(lambda x: lax.with_sharding_constraint(2 * x, sharding))(wnp.arange(3))
      Array([0, 2, 4], dtype=int32)
    """

    def put(leaf, place):
        value = _core.asarray(leaf)
        placement = placement_of(
            place, "with_sharding_constraint", value.shape, mesh_of_constraints
        )
        placement = _with_explicit(value, placement)
        if isinstance(value, _core.Tracer):
            placement = _where_it_divides(placement, value.shape)
            return _core.bind("sharding_constraint", value, sharding=placement)
        if value.committed:
            placement = _on_devices(placement, value._placement.mesh)
            if value._placement.mesh.devices != placement.mesh.devices:
                raise DeviceMismatchError(
                    "with_sharding_constraint expected the devices that the array is committed to, "
                    f"of {value._placement}; got {placement}\n  weft.device_put moves it."
                )
        return _core.commit(value, placement)

    return map_placed(put, x, shardings)


def _where_it_divides(placement, shape):
    """A sharding that leaves to XLA the dimensions that its axes do not divide."""

    def entry(size, dim):
        axes, _ = dim
        return dim if size % math.prod(sizes[name] for name in axes) == 0 else ((), True)

    mesh = placement.mesh
    sizes = dict(zip(mesh.names, mesh.sizes, strict=True))
    if len(placement.dims) > len(shape):
        return placement  # the core says what is wrong
    dims = [entry(size, dim) for size, dim in zip(shape, placement.dims, strict=False)]
    if dims == list(placement.dims):
        return placement
    return _core.make_sharding(mesh, dims, placement.unreduced, placement.memory, placement.reduced)


def _on_devices(placement, mesh):
    """A sharding over an abstract mesh on the devices of a mesh of the same axes; others as is."""
    own = placement.mesh
    if own.devices or (own.names, own.sizes) != (mesh.names, mesh.sizes):
        return placement
    return _core.make_sharding(
        mesh, placement.dims, placement.unreduced, placement.memory, placement.reduced
    )


def axis_types_here(mesh):
    """By name the types of a mesh's axes: in a scope that has other ones for them, those."""
    here, own = get_abstract_mesh(), AbstractMesh._of(mesh)
    kinds = here if here.axis_names == own.axis_names else own
    return dict(zip(kinds.axis_names, kinds.axis_types, strict=True))


def _with_explicit(x, placement):
    """A constraint that splits a value over explicit axes as it is split already.

    Raises where it names such axes itself: only reshard moves values over them.
    """
    kinds = axis_types_here(placement.mesh)
    if AxisType.Explicit not in kinds.values():
        return placement
    named = [n for names, _ in placement.dims for n in names if kinds[n] == AxisType.Explicit]
    if AxisType.Auto in kinds.values():
        if named:
            raise ShardingError(
                "with_sharding_constraint expected axes of type Auto; got "
                f"{named[0]!r}, of type Explicit, in {placement}\n"
                "  weft.reshard moves values there."
            )
        split = _core.split_of(x)
        if split is None or split.is_replicated:
            return placement
        ndim = len(x.shape)
        both = zip(_entries(split, ndim), _entries(placement, ndim), strict=True)
        dims = [((*own, *axes), is_open) for (own, _), (axes, is_open) in both]
        return _core.make_sharding(placement.mesh, dims, (), placement.memory)
    if any(is_open for _, is_open in placement.dims):
        raise ShardingError(
            "with_sharding_constraint expected a spec without UNCONSTRAINED, as no axis is of type "
            f"Auto; got {placement}"
        )
    split = _core.split_of(x)
    if split is None:
        return placement
    own, wanted = ([axes for axes, _ in _entries(s, len(x.shape))] for s in (split, placement))
    if own != wanted:
        raise PreconditionError(
            "with_sharding_constraint expected a value that is split as it says, as the axes of "
            f"the mesh are explicit; got {typeof(x)} and {placement}\n  weft.reshard moves it."
        )
    return placement


def _entries(sharding, ndim):
    return (*sharding.dims, *[((), False)] * (ndim - len(sharding.dims)))


def constrained(tracer, placement):
    """A traced value that is split over a mesh; as it is if that is a device."""
    if not placement.mesh.names:
        return tracer
    return _core.bind("sharding_constraint", tracer, sharding=placement)


def moved(tracer, placement):
    """A traced value in the memory that a sharding names."""
    return in_memory(tracer, placement.memory)


def in_memory(value, kind):
    """An Array or a tracer in a kind of memory of the devices that it is on.

    In programs only that of the host is told from that of devices.
    """
    if isinstance(value, _core.Array):
        return _core.commit(value, value.sharding.with_memory_kind(kind)._placement)
    if kind == "pinned_host":
        _core.watch_host_memory()
    here, there = (
        "pinned_host" if on_host else "device"
        for on_host in (_core.is_on_host(value), kind == "pinned_host")
    )
    if here == there:
        return value
    return _core.bind("device_put", value, memory=there, source=here)


def _is_abstract(sharding):
    """Whether it is over a mesh without devices, as those of types are."""
    return isinstance(getattr(sharding, "mesh", None), AbstractMesh)


def placed(x, device, function="device:"):
    """An array on a device, to which it is committed.

    It is as it is if that is None, or the sharding of a type that says nothing.
    """
    if device is None or (_is_abstract(device) and device.mesh.empty):
        return x
    placement = placement_of(device, function)
    value = _core.asarray(x)
    if isinstance(value, _core.Tracer):
        return moved(constrained(value, placement), placement)
    return _core.commit(value, placement)


def varying_like(x, like):
    """An array that varies over the axes of a shard_map as another one does, of whatever shape."""
    if isinstance(like, _core.Tracer) and _core.varying_axes():
        return _core.bind("vary_like", x, like)
    return x


def placed_like(x, like):
    """A new array, of whatever shape, where another one is.

    That is on the devices that hold a committed one, split alike if the shapes are the same or it
    is not split at all. Like a traced one of the same shape it is split over explicit axes, and in
    the memory of the host; it varies over the axes of a shard_map as that does, whatever its shape.
    """
    x = varying_like(x, like)
    is_same_shape = tuple(x.shape) == tuple(getattr(like, "shape", ()))
    if isinstance(like, _core.Array) and not isinstance(x, _core.Tracer):
        if like.committed and (is_same_shape or like.sharding.is_fully_replicated):
            return _core.commit(x, like.sharding._placement)
        return x
    if not is_same_shape:
        return x
    if isinstance(like, ShapeDtypeStruct) and not _is_abstract(like.sharding):
        return placed(x, like.sharding)
    if _core.is_on_host(like):
        x = in_memory(x, "pinned_host")
    split = _core.split_of(like)
    if split is None or (split.is_replicated and not split.reduced):
        return x
    if isinstance(x, _core.Tracer):
        return _core.bind("sharding_constraint", x, sharding=split)
    return _core.commit(x, split) if split.mesh.devices else x


def split_as(sharding, function, make):
    """make(), whose result is split as a parameter of the function says."""
    from weft._explicit import sharded  # circle: made of functions here

    return sharded(sharding, function, make)


def can_be_split(function):
    """The function, with a result that is split as its parameter out_sharding= says."""

    @functools.wraps(function)
    def call(*args, out_sharding=None, **kwargs):
        if out_sharding is None:
            return function(*args, **kwargs)
        return split_as(out_sharding, function.__name__, lambda: function(*args, **kwargs))

    return call
