"""The PJRT clients and their devices. `start` makes them, when a device is first needed."""

import gc
import threading
from typing import TYPE_CHECKING, Any

from weft import _core
from weft._settings import devices_come_from
from weft.config import config
from weft.errors import ProcessFailureError

if TYPE_CHECKING:

    class Device:
        """What a device says of itself; jaxlib has no types."""

        id: int
        platform: str
        device_kind: str
        process_index: int
        host_id: int
        local_hardware_id: int | None
        client: Any

        def addressable_memories(self) -> list[Any]: ...
        def default_memory(self) -> Any: ...
        def memory(self, kind: str) -> Any: ...
        def memory_stats(self) -> dict[str, Any] | None: ...
        def live_buffers(self) -> list[Any]: ...

else:
    from jaxlib._jax import Device as Device

_lock = threading.Lock()
_clients = {}  # platform -> client
_devices = []  # (platform, device), in the order of the core's device table
_local_ids = None  # numbers of the GPUs that this process uses; None for all


class Aval:
    """What jaxlib asks of an abstract value, and no more."""

    __slots__ = ("dtype", "shape", "weak_type")

    def __init__(self, shape, dtype):
        self.shape = shape
        self.dtype = dtype
        self.weak_type = False


def _joined():
    """This process as one of several; None if it is the only one."""
    from weft.runtime.processes import joined  # circle: they ask for devices

    return joined()


def use_local(numbers):
    """Chooses the GPUs of the machine that this process uses: an int, a list or None for all."""
    global _local_ids
    _local_ids = [numbers] if isinstance(numbers, int) else numbers


def started():
    """Whether there are clients."""
    return bool(_devices)


def _make_cpu_client():
    from jaxlib import xla_client

    from weft.runtime import ffi, memory

    memory.keep(config.weft_cpu_memory_kept)
    options = {"asynchronous": config.weft_cpu_enable_async_dispatch}
    # Without a count, XLA_FLAGS=--xla_force_host_platform_device_count=N is respected.
    if config.weft_num_cpu_devices != -1:
        options["num_devices"] = config.weft_num_cpu_devices
    joined = _joined()
    if joined is not None:
        options |= joined.client_options()
    client = xla_client.make_cpu_client(**options)
    ffi.register_own_kernels()
    return client


def _make_cuda_client():
    from weft.runtime.cuda import make_client

    return make_client(_joined(), _local_ids)


_FACTORIES = {"cpu": _make_cpu_client, "cuda": _make_cuda_client}


def _wanted_platforms():
    """Platform names to start, most wanted first, and those of them that must not be missing."""
    from weft.runtime import plugins

    chosen = config.weft_platforms
    if chosen:
        names = ["cuda" if n.strip() == "gpu" else n.strip() for n in chosen.split(",")]
        unknown = [n for n in names if n not in _FACTORIES and not plugins.exists(n)]
        if unknown:
            known = sorted({*_FACTORIES, *plugins.named(), *plugins.packaged()})
            raise ValueError(f"weft_platforms: expected {known}; got {unknown[0]!r}")
        return names, names
    from weft.runtime.cuda import plugin_path

    named = list(plugins.named())
    return [*named, *(["cuda"] if plugin_path() else []), "cpu"], [*named, "cpu"]


def _make_client(name):
    """The client of a platform, and the platform that programs for it are written for."""
    if name in _FACTORIES:
        return _FACTORIES[name](), name
    from weft.runtime import plugins

    return plugins.make_client(name), plugins.EMITTED_FOR


def start():
    """Starts the clients and fills the core's device table. Runs once."""
    with _lock:
        if _devices:
            return
        from jaxlib import _jax

        _jax.set_tracebacks_enabled(False)
        # Functions of the host that a dropped program called wait in jaxlib until it is asked.
        gc.callbacks.append(_core.before_collections(_jax.collect_garbage))
        names, required = _wanted_platforms()
        for name in names:
            try:
                client, emitted_for = _make_client(name)
            except ProcessFailureError:
                raise
            except Exception as error:
                if name in required:
                    raise RuntimeError(f"could not start platform {name!r}: {error}") from error
                continue
            _clients[name] = client
            # In one order everywhere: programs of several processes are laid out in it.
            for device in sorted(client.devices(), key=lambda d: d.id):
                own = device.process_index == client.process_index()
                _core.register_device(device, emitted_for, own)
                _devices.append((name, device))
        config.freeze(
            "weft_cpu_enable_async_dispatch",
            "weft_cpu_memory_kept",
            "weft_num_cpu_devices",
            "weft_platforms",
        )


def devices(platform=None):
    """Devices of a platform ("cpu", "gpu", "cuda"); by default of the first platform found.

    They are those of all processes.
    """
    start()
    name = _devices[0][0] if platform is None else {"gpu": "cuda"}.get(platform, platform)
    found = [d for n, d in _devices if n == name]
    if not found:
        known = sorted({n for n, _ in _devices})
        hint = "\n  pip install 'weft[cuda13]' brings NVIDIA GPUs." if name == "cuda" else ""
        raise RuntimeError(f"Unknown backend {platform!r}; there are: {', '.join(known)}{hint}")
    return found


def clients():
    """The clients by platform, those that are wanted most first."""
    start()
    return dict(_clients)


def own_cpu():
    """The first CPU device of this process."""
    return next(d for d in devices("cpu") if d.process_index == d.client.process_index())


def platform_of(index):
    """Platform of a device of the core's table."""
    return _devices[index][0]


def device_at(index):
    """The jaxlib device at a position of the core's table."""
    start()
    return _devices[index][1]


def check_device(device, what):
    """Raises ArgumentTypeError unless `device` is one of weft.devices()."""
    start()
    if not any(device is d for _, d in _devices):
        from weft.errors import ArgumentTypeError

        raise ArgumentTypeError(f"{what} expected a device, one of weft.devices(); got {device!r}")


def memory_kinds(device):
    """The names of a device's memories, the default one first."""
    default = device.default_memory().kind
    return [default, *(m.kind for m in device.addressable_memories() if m.kind != default)]


def make_sharding(device_list, blocks, order, memory):
    """jaxlib's sharding of an array that is split into blocks (None: whole on each device).

    `order` has the positions in the list of the devices that hold them, block by block.
    """
    from jaxlib import _jax

    layout = hlo_sharding(blocks, order)
    if memory is None:
        return _jax.GSPMDSharding(device_list, layout)
    return _jax.GSPMDSharding(device_list, layout, memory_kind=memory)


def hlo_sharding(blocks, order):
    """How an array is split, as `make_sharding` is told."""
    from jaxlib import _hlo

    kind = _hlo.HloSharding
    if blocks is None:
        return kind.replicate()
    count = 1
    for n in blocks:
        count *= n
    repeats = len(order) // count
    dims = ",".join(map(str, (*blocks, repeats) if repeats > 1 else blocks))
    last = " last_tile_dim_replicate" if repeats > 1 else ""
    return kind.from_string(f"{{devices=[{dims}]{','.join(map(str, order))}{last}}}")


def placement_of(device, memory=""):
    """The core's sharding of what is whole in a memory of a device of the core's table."""
    start()
    return _core.make_sharding(
        _core.make_mesh((), (), (), (_core.device_index(device),)), (), (), memory
    )


def memory_stats():
    """Live arrays and bytes of this process, and each device's own figures where it has any.

    Returns a dict with `live_arrays` (int), `live_bytes` (int) and `devices`, a dict from device to
    the figures that the device reports (absent for devices, such as CPUs, that report none).

    Examples:
      >>> x = wnp.zeros(1000)
      >>> weft.memory_stats()["live_bytes"] >= 4000
      True
    """
    arrays = _core.live_arrays()
    figures = {}
    for device in {d for client in _clients.values() for d in client.local_devices()}:
        stats = device.memory_stats()
        if stats is not None:
            figures[device] = dict(stats)
    return {
        "live_arrays": len(arrays),
        "live_bytes": sum(a.nbytes for a in arrays),
        "devices": figures,
    }


devices_come_from(devices)
ProcessFailureError._devices = staticmethod(devices)
