"""The coordination service, run as a process of its own by the first of several processes.

usage: coordinator.py ADDRESS PROCESSES HEARTBEAT_TIMEOUT CONNECT_TIMEOUT SHUTDOWN_TIMEOUT

In the first process it would end with that process, and jaxlib ends every process whose service is
gone. Here the end of the first process is seen by the others as that of any other. The service says
"ready" on its output, or what went wrong; its input is a pipe from the first process, after whose
end it stays for those that are still connected.
"""

import os
import sys
import time

_LINGER = 600.0  # seconds at most after the first process has ended
_LOOK_EVERY = 0.2


def _connected(port):
    """Whether somebody is connected to a port of this machine; None where that is not known."""
    known = False
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            with open(table) as file:
                lines = file.read().splitlines()[1:]
        except OSError:
            continue
        known = True
        for line in lines:
            _, local, _, state = line.split()[:4]
            if state == "01" and int(local.rpartition(":")[2], 16) == port:
                return True
    return False if known else None


def main():
    address = sys.argv[1]
    processes, heartbeat, connect, shutdown = map(int, sys.argv[2:])
    from jaxlib import _jax

    try:
        service = _jax.get_distributed_runtime_service(
            address,
            processes,
            heartbeat_timeout=heartbeat,
            cluster_register_timeout=connect,
            shutdown_timeout=shutdown,
            # Otherwise jaxlib ends all processes when one has failed.
            recoverable=True,
        )
    except Exception as error:
        print(error, flush=True)
        return
    print("ready", flush=True)
    # Whoever reads the first process's output waits for its end, not for that of this one.
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    while os.read(0, 1024):
        pass
    port = int(address.rpartition(":")[2])
    end = time.monotonic() + _LINGER
    while _connected(port) is not False and time.monotonic() < end:
        time.sleep(_LOOK_EVERY)
    service.shutdown()


if __name__ == "__main__":
    main()
