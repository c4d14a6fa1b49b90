"""Makes the PJRT client of the chosen platform and hands the C++ core what it calls.

`install` runs at import of weft and costs nothing; `_start` runs when a device is first needed.
"""

import atexit
import os
import threading

import numpy as np

from weft import _core
from weft.config import config

# Before jaxlib is loaded: informational lines of the client do not belong on a user's terminal.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")

_lock = threading.Lock()
_clients = {}  # platform -> client
_devices = []  # in the order of the core's device table


class _Aval:
    """What jaxlib asks of an abstract value, and no more."""

    __slots__ = ("dtype", "shape", "weak_type")

    def __init__(self, shape, dtype):
        self.shape = shape
        self.dtype = dtype
        self.weak_type = False


def _make_cpu_client():
    from jaxlib import xla_client

    count = config.weft_num_cpu_devices
    # Without a count, XLA_FLAGS=--xla_force_host_platform_device_count=N is respected.
    return xla_client.make_cpu_client(**({} if count is None else {"num_devices": count}))


def _make_cuda_client():
    from weft.runtime.cuda import make_client

    return make_client()


_FACTORIES = {"cpu": _make_cpu_client, "cuda": _make_cuda_client}


def _wanted_platforms():
    """Platform names to start, most wanted first; and whether a missing one is an error."""
    chosen = config.weft_platforms
    if chosen:
        names = ["cuda" if n.strip() == "gpu" else n.strip() for n in chosen.split(",")]
        unknown = [n for n in names if n not in _FACTORIES]
        if unknown:
            raise ValueError(f"weft_platforms: expected {sorted(_FACTORIES)}; got {unknown[0]!r}")
        return names, True
    from weft.runtime.cuda import plugin_path

    return (["cuda", "cpu"] if plugin_path() else ["cpu"]), False


def _start():
    """Starts the clients and fills the core's device table. Runs once."""
    with _lock:
        if _devices:
            return
        from jaxlib import _jax

        _jax.set_tracebacks_enabled(False)
        names, required = _wanted_platforms()
        for name in names:
            try:
                client = _FACTORIES[name]()
            except Exception as error:
                if required or name == "cpu":
                    raise RuntimeError(f"could not start platform {name!r}: {error}") from error
                continue
            _clients[name] = client
            for device in client.devices():
                device_list = _jax.DeviceList((device,))
                sharding = _jax.GSPMDSharding(device_list, _hlo_replicated())
                _core.register_device(device, sharding, device_list, name)
                _devices.append((name, device))
        config.freeze("weft_num_cpu_devices", "weft_platforms")


def devices(platform=None):
    """Devices of a platform ("cpu", "gpu", "cuda"); by default of the first platform found."""
    _start()
    name = _devices[0][0] if platform is None else {"gpu": "cuda"}.get(platform, platform)
    found = [d for n, d in _devices if n == name]
    if not found:
        known = sorted({n for n, _ in _devices})
        raise RuntimeError(f"no devices of platform {platform!r}; there are {', '.join(known)}")
    return found


def platform_of(index):
    """Platform of a device of the core's table."""
    return _devices[index][0]


def client_of(index):
    """Client that owns a device of the core's table."""
    return _clients[_devices[index][0]]


def device_at(index):
    """The jaxlib device at a position of the core's table."""
    _start()
    return _devices[index][1]


def put_shared(host, index):
    """An Array that shares the memory of a NumPy array if that is aligned to 64 bytes."""
    from jaxlib import _jax

    device = device_at(index)
    sharding = _jax.GSPMDSharding(_jax.DeviceList((device,)), _hlo_replicated())
    buffer = _jax.batched_device_put(
        _Aval(host.shape, host.dtype), sharding, [host], [device], True, enable_x64=True
    )
    return _core.wrap_buffer(buffer, host.shape, host.dtype, False, index, False)


def _hlo_replicated():
    from jaxlib import _hlo

    return _hlo.HloSharding.replicate()


def _runtime_hooks():
    """Late-bound, so that importing weft does not load jaxlib's client."""
    import jaxlib
    from jaxlib import _jax

    from weft.runtime import buffers, callback, compile

    major_minor = tuple(int(part) for part in jaxlib.__version__.split(".")[:2])
    # jaxlib 0.10 checks shardings in Python unless told not to; later versions never do.
    skip = {"_skip_checks": True} if major_minor < (0, 11) else {}
    return {
        "put": _jax.batched_device_put,
        "put_semantics": _jax.HostBufferSemantics.IMMUTABLE_ONLY_DURING_CALL,
        "make_aval": _Aval,
        "make_handler": lambda aval, sharding: _jax.array_result_handler(
            aval, sharding, True, **skip
        ),
        "compile": compile.compile_text,
        "to_numpy": buffers.to_numpy,
        "copy_to_device": buffers.copy_to_device,
        "start": _start,
        "keep_token": callback.keep_token,
    }


def install():
    """Gives the core its hooks and NumPy's dtype objects."""
    import ml_dtypes

    dtypes = []
    for name in _core.dtype_names():
        if name == "float0":
            dtypes.append(np.dtype([("float0", np.void, 0)]))
        else:
            dtypes.append(np.dtype(getattr(ml_dtypes, name, None) or name))
    _core.install(numpy_dtypes=dtypes, **_runtime_hooks())
    atexit.register(_finish)


def _finish():
    """Waits for what still runs: XLA's threads would outlive the data of the process they use.

    An error of a host function that nobody has seen is raised, and printed by the interpreter.
    """
    from weft.runtime.callback import effects_barrier

    try:
        effects_barrier()
    finally:
        _wait_for_last_run()


def _wait_for_last_run():
    ran, result = _core.take_last_run()
    if not ran:
        return
    try:
        if result is None or result.is_deleted():
            # Runs of a thread end in order, so one that comes last is waited for instead.
            _core.bind("copy", 0.0)
            result = _core.take_last_run()[1]
        result.block_until_ready()
    except Exception:
        pass  # what a computation raised is no matter any more


def memory_stats():
    """Live arrays and bytes of this process, and each device's own figures where it has any.

    Returns a dict with `live_arrays` (int), `live_bytes` (int) and `devices`, a dict from device to
    the figures that the device reports (absent for devices, such as CPUs, that report none).
    """
    arrays = _core.live_arrays()
    figures = {}
    for _, device in _devices:
        stats = device.memory_stats()
        if stats is not None:
            figures[device] = dict(stats)
    return {
        "live_arrays": len(arrays),
        "live_bytes": sum(a.nbytes for a in arrays),
        "devices": figures,
    }
