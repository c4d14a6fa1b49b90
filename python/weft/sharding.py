"""Where the parts of an array lie: on one device, so far."""

from typing import Any as _Any

from weft._surface import open_to_users as _open_to_users, public as _public

__all__ = ["Sharding", "SingleDeviceSharding"]
__getattr__, __dir__ = _public(__name__, __all__)


class Sharding:
    """How an array is laid out on devices. The class of all shardings."""

    def devices_indices_map(self, global_shape) -> dict[_Any, tuple[slice, ...]]:
        """Which part each device has of an array of a shape: slices, by device."""
        raise NotImplementedError


class SingleDeviceSharding(Sharding):
    """The whole array on one device.

    Args:
      device: one of `weft.devices()`.
      memory_kind: which of the device's memories; None is its default.

    Attributes: device_set, addressable_devices (sets), num_devices, memory_kind,
    is_fully_replicated, is_fully_addressable, has_addressable_devices.
    """

    __slots__ = ("_device", "memory_kind")

    def __init__(self, device, *, memory_kind=None):
        from weft.runtime.devices import check_device, memory_kinds

        check_device(device, "SingleDeviceSharding")
        kinds = memory_kinds(device)
        if memory_kind is not None and memory_kind not in kinds:
            raise ValueError(
                f"SingleDeviceSharding expected a memory of {device}, one of {', '.join(kinds)}; "
                f"got {memory_kind!r}"
            )
        self._device = device
        self.memory_kind = kinds[0] if memory_kind is None else memory_kind

    num_devices = property(lambda self: 1)
    device_set = property(lambda self: {self._device})
    addressable_devices = device_set
    is_fully_replicated = property(lambda self: True)
    is_fully_addressable = property(lambda self: True)
    has_addressable_devices = property(lambda self: True)

    def shard_shape(self, global_shape):
        """The shape of what a device holds of an array of a shape: all of it."""
        return tuple(global_shape)

    def devices_indices_map(self, global_shape):
        """By device, the index of what it holds of an array of a shape."""
        return {self._device: (slice(None),) * len(global_shape)}

    def addressable_devices_indices_map(self, global_shape):
        """The same for the devices of this process."""
        return self.devices_indices_map(global_shape)

    def is_equivalent_to(self, other, ndim):
        """Whether two shardings place arrays of `ndim` axes, whatever their number, alike."""
        return self == other

    def with_memory_kind(self, kind):
        """The same in another memory of the device."""
        return SingleDeviceSharding(self._device, memory_kind=kind)

    def check_compatible_aval(self, aval_shape):
        """Raises nothing: arrays of any shape fit, `aval_shape` is ignored."""

    def __eq__(self, other):
        if not isinstance(other, SingleDeviceSharding):
            return NotImplemented
        return (self._device, self.memory_kind) == (other._device, other.memory_kind)

    def __hash__(self):
        return hash((self._device, self.memory_kind))

    def __repr__(self):
        return f"SingleDeviceSharding(device={self._device!r}, memory_kind={self.memory_kind})"


_open_to_users(__name__)
