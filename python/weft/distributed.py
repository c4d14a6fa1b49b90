"""Several processes whose devices are used together, on one machine or on many.

Every process runs the same program, and calls `initialize` before it uses a device:

    weft.distributed.initialize("10.0.0.1:1234", num_processes=4, process_id=i)
    weft.devices()         # those of all processes
    weft.local_devices()   # those of this one

See docs/distributed.md.
"""

import operator
import os
from collections.abc import Sequence as _Sequence

from weft._surface import open_to_users as _open_to_users, public as _public
from weft.runtime import devices as _devices

__all__ = ["initialize", "is_initialized", "shutdown"]
__getattr__, __dir__ = _public(__name__, __all__)


def _integer(name, value, least=0):
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(
            f"distributed.initialize expected an int for {name}; got {value!r}"
        ) from None
    if number < least:
        raise ValueError(f"distributed.initialize expected {name} >= {least}; got {number}")
    return number


def _seconds(name, value):
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value <= 0:
        raise ValueError(f"distributed.initialize expected seconds for {name}; got {value!r}")
    return max(1, round(value))


def _address(name, value):
    host, colon, port = value.rpartition(":") if isinstance(value, str) else ("", "", "")
    if not colon or not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise ValueError(f"distributed.initialize expected host:port for {name}; got {value!r}")
    return value


def initialize(
    coordinator_address: str | None = None,
    num_processes: int | None = None,
    process_id: int | None = None,
    local_device_ids: int | _Sequence[int] | None = None,
    cluster_detection_method: str | None = None,
    initialization_timeout: int = 300,
    heartbeat_timeout_seconds: int = 100,
    shutdown_timeout_seconds: int = 300,
    coordinator_bind_address: str | None = None,
    slice_index: int | None = None,
    partition_index: int | None = None,
) -> None:
    """Makes this process one of several whose devices are used together.

    Returns when all processes have called it. What is not given is taken from the variables
    WEFT_COORDINATOR_ADDRESS, WEFT_NUM_PROCESSES and WEFT_PROCESS_ID, then from Slurm, Open MPI or
    an Indexed Job of Kubernetes, if the process was started by one.

    When a process fails, the others are told within `heartbeat_timeout_seconds` and a tenth more:
    ProcessFailureError is raised in their main thread, wherever that is.

    Args:
      coordinator_address: host and port of process 0, which must be free there.
      num_processes: how many processes there are.
      process_id: the number of this one, from 0.
      local_device_ids: numbers of the GPUs of the machine that this process uses, an int or a list;
        None is all, under Slurm and Open MPI the one of its number. CPUs ignore it.
      cluster_detection_method: "slurm", "ompi" or "k8s" looks for that one only; "deactivate"
        looks at no cluster.
      initialization_timeout: seconds until all processes must have joined.
      heartbeat_timeout_seconds: seconds after which a process that is not heard of has failed.
      shutdown_timeout_seconds: how long a process waits for the others when it ends.
      coordinator_bind_address: where process 0 listens; None is `coordinator_address`.
      slice_index: ignored.
      partition_index: ignored.

    Raises RuntimeError if called twice, after the first use of a device, and if the processes do
    not all come in time; ValueError for what is neither given nor found, and for wrong values.
    """
    from weft._clusters import CLUSTERS, detect
    from weft.runtime import processes

    if processes.joined() is not None:
        raise RuntimeError("distributed.initialize expected to be called once")
    if _devices.started():
        raise RuntimeError(
            "distributed.initialize expected to be called before the first use of a device, such "
            "as weft.devices() or an operation on an array"
        )
    methods = (None, *CLUSTERS, "deactivate")
    if cluster_detection_method not in methods:
        raise ValueError(
            f"distributed.initialize expected cluster_detection_method to be one of {methods}; "
            f"got {cluster_detection_method!r}"
        )
    found = detect(os.environ, cluster_detection_method)
    address = found.coordinator if coordinator_address is None else coordinator_address
    count = found.processes if num_processes is None else num_processes
    number = found.process_id if process_id is None else process_id
    for name, value in (
        ("coordinator_address", address),
        ("num_processes", count),
        ("process_id", number),
    ):
        if value is None:
            raise ValueError(
                f"distributed.initialize expected {name}, as an argument or as "
                f"WEFT_{name.upper()}: no cluster that was found tells it"
            )
    count = _integer("num_processes", count, 1)
    number = _integer("process_id", number)
    if number >= count:
        raise ValueError(
            f"distributed.initialize expected process_id < num_processes; got {number} and {count}"
        )
    _address("coordinator_address", address)
    bind = os.environ.get("WEFT_COORDINATOR_BIND_ADDRESS") or address
    if coordinator_bind_address is not None:
        bind = coordinator_bind_address
    _address("coordinator_bind_address", bind)
    timeouts = (
        _seconds("initialization_timeout", initialization_timeout),
        _seconds("heartbeat_timeout_seconds", heartbeat_timeout_seconds),
        _seconds("shutdown_timeout_seconds", shutdown_timeout_seconds),
    )
    if local_device_ids is None:
        local_device_ids = found.local_id
    elif not isinstance(local_device_ids, int):
        local_device_ids = [_integer("local_device_ids", i) for i in local_device_ids]
    _devices.use_local(local_device_ids)
    processes.join(address, bind, count, number, *timeouts)


def is_initialized():
    """Whether this process is one of several: `initialize` was called, `shutdown` was not."""
    from weft.runtime import processes

    return processes.joined() is not None


def shutdown():
    """Leaves the other processes, when all of them do. At the end of a process it is called.

    Its devices can be used on, for programs on devices of this process only. Raises RuntimeError if
    the others do not come in time, ProcessFailureError if one has failed.
    """
    from weft.runtime import processes

    joined = processes.joined()
    if joined is not None:
        joined.leave()
        joined.check()


_open_to_users(__name__)
