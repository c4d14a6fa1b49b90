"""What devices and processes there are, and what is alive on them, as users ask for it."""

from weft import _core
from weft.errors import AttributeValueError
from weft.runtime import devices as _devices


def devices(backend=None):
    """The devices of a platform ("cpu", "gpu"), by default of the first that is present.

    Raises RuntimeError for a platform that is not.

    `backend` is the name of the platform.

    Examples:
      >>> weft.devices("cpu")[0].platform
      'cpu'
    """
    return list(_devices.devices(backend))


def local_devices(process_index=None, backend=None, host_id=None):
    """The devices of a process, by default of this one.

    `host_id` is `process_index` by a name that JAX has deprecated. Raises ValueError for a process
    that is not there.

    `backend` names the platform, as for `devices`.

    Examples:
      >>> weft.local_devices() == weft.devices()
      True
    """
    wanted = host_id if process_index is None else process_index
    if wanted is None:
        wanted = _devices.devices(backend)[0].client.process_index()
    if wanted not in process_indices(backend):
        raise AttributeValueError(f"local_devices: there is no process {wanted!r}")
    return [d for d in devices(backend) if d.process_index == wanted]


def device_count(backend=None):
    """Number of devices of a platform.

    `backend` names it, as for `devices`.

    Examples:
      >>> weft.device_count() == len(weft.devices())
      True
    """
    return len(devices(backend))


def local_device_count(backend=None):
    """Number of devices of this process.

    `backend` names the platform, as for `devices`.

    Examples:
      >>> weft.local_device_count() == len(weft.local_devices())
      True
    """
    return len(local_devices(backend=backend))


def process_index(backend=None):
    """The number of this process among those that share the devices of a platform.

    `backend` names the platform, as for `devices`.

    Examples:
      >>> weft.process_index()
      0
    """
    return _devices.devices(backend)[0].client.process_index()


def process_count(backend=None):
    """How many processes share the devices of a platform.

    `backend` names it, as for `devices`.

    Examples:
      >>> weft.process_count()
      1
    """
    return len(process_indices(backend))


def process_indices(backend=None):
    """The numbers of the processes that share the devices of a platform, a list.

    `backend` names it, as for `devices`.

    Examples:
      >>> weft.process_indices()
      [0]
    """
    return sorted({device.process_index for device in devices(backend)})


def host_count(backend=None):
    """`process_count`, by a name that JAX has deprecated.

    `backend` is the same.

    Examples:
      >>> weft.host_count()
      1
    """
    return process_count(backend)


def host_id(backend=None):
    """`process_index`, by a name that JAX has deprecated.

    `backend` is the same.

    Examples:
      >>> weft.host_id()
      0
    """
    return process_index(backend)


def host_ids(backend=None):
    """`process_indices`, by a name that JAX has deprecated.

    `backend` is the same.

    Examples:
      >>> weft.host_ids()
      [0]
    """
    return process_indices(backend)


def default_backend():
    """Name of the platform that is used by default: "cpu" or "gpu".

    Examples:
      >>> weft.default_backend() in ("cpu", "gpu")
      True
    """
    name = _devices.platform_of(_core.current_device())
    return "gpu" if name == "cuda" else name


def live_arrays(platform=None):
    """The arrays whose buffers are alive in this process, on devices of a platform.

    Examples:
      >>> x = wnp.arange(3)
      >>> any(each is x for each in weft.live_arrays())
      True
    """
    wanted = set(devices(platform))
    return [a for a in _core.live_arrays() if a.devices() & wanted]


memory_stats = _devices.memory_stats
