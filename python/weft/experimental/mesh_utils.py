"""Grids of devices for `weft.sharding.Mesh`."""

import math

import numpy as np

from weft._surface import open_to_users as _open_to_users, public as _public
from weft.runtime import devices as _devices

__all__ = ["create_device_mesh", "create_hybrid_device_mesh"]
__getattr__, __dir__ = _public(__name__, __all__)


def _grid(devices, shape):
    out = np.empty(len(devices), dtype=object)
    out[:] = devices
    return out.reshape(shape)


def create_device_mesh(
    mesh_shape,
    devices=None,
    *,
    contiguous_submeshes=False,
    allow_split_physical_axes=False,
):
    """A NumPy array of all devices, of a shape, to make a Mesh of.

    CPUs, and GPUs that reach each other alike, are taken in the order in which they come: the last
    axis, along which neighbours are next to each other, is for what communicates most.

    Args:
      mesh_shape: sizes of the axes.
      devices: those to take; None is `weft.devices()`.
      contiguous_submeshes: ignored: devices of one process follow each other.
      allow_split_physical_axes: ignored: CPUs and GPUs are on no grid of wires.

    Raises ValueError unless there are as many devices as positions.

    Examples:
      >>> from weft.experimental import mesh_utils
      >>> mesh_utils.create_device_mesh((1, 1), weft.devices()[:1]).shape
      (1, 1)
    """
    found = list(_devices.devices() if devices is None else devices)
    shape = tuple(mesh_shape)
    if math.prod(shape) != len(found):
        raise ValueError(
            f"create_device_mesh expected {len(found)} positions, one per device; got the shape "
            f"{shape}"
        )
    return _grid(found, shape)


def create_hybrid_device_mesh(
    mesh_shape,
    dcn_mesh_shape,
    devices=None,
    *,
    process_is_granule=False,
    should_sort_granules_by_key=True,
    allow_split_physical_axes=False,
):
    """A NumPy array of all devices, in groups between which communication is slow.

    Axis `i` of the result has `dcn_mesh_shape[i] * mesh_shape[i]` positions: along it groups come
    one after the other, and within each its devices.

    Args:
      mesh_shape: sizes of the axes within a group.
      dcn_mesh_shape: how many groups there are along each axis.
      devices: those to take; None is `weft.devices()`.
      process_is_granule: whether the devices of a process are a group; else those of one
        `slice_index`, which CPUs do not have.
      should_sort_granules_by_key: whether groups come by number; else as their devices come.
      allow_split_physical_axes: ignored: CPUs and GPUs are on no grid of wires.

    Raises ValueError unless there are as many groups, and devices in each, as positions.

    Examples:
      >>> from weft.experimental import mesh_utils
      >>> devices = weft.devices()[:1]
      >>> mesh_utils.create_hybrid_device_mesh((1,), (1,), devices, process_is_granule=True).shape
      (1,)
    """
    found = list(_devices.devices() if devices is None else devices)
    key = "process_index" if process_is_granule else "slice_index"
    groups = {}
    for device in found:
        number = getattr(device, key, None)
        if number is None:
            raise ValueError(
                "create_hybrid_device_mesh expected devices with a slice_index, or "
                f"process_is_granule=True; got {device!r}"
            )
        groups.setdefault(number, []).append(device)
    inner, outer = tuple(mesh_shape), tuple(dcn_mesh_shape)
    # Axes that one of them does not have come first in the other.
    rank = max(len(inner), len(outer))
    inner = (1,) * (rank - len(inner)) + inner
    outer = (1,) * (rank - len(outer)) + outer
    if math.prod(outer) != len(groups):
        raise ValueError(
            f"create_hybrid_device_mesh expected {len(groups)} positions in dcn_mesh_shape, one "
            f"per group of devices; got {tuple(dcn_mesh_shape)}"
        )
    order = sorted(groups) if should_sort_granules_by_key else list(groups)
    parts = _grid([None] * len(groups), outer)
    for at, number in zip(np.ndindex(outer), order, strict=True):
        parts[at] = create_device_mesh(inner, groups[number])
    return np.block(parts.tolist()) if rank else parts[()]


_open_to_users(__name__)
