"""What the environment says about the processes that were started together.

Each cluster is a function from the environment to a Found, or None where it does not run.
"""

import re
import socket
import zlib
from typing import NamedTuple

# Ports that the processes agree on without a word: the dynamic ones of RFC 6335.
_FIRST_PORT, _PORTS = 49152, 16384


class Found(NamedTuple):
    """What a cluster tells; None for what it does not."""

    coordinator: str | None = None
    processes: int | None = None
    process_id: int | None = None
    local_id: int | None = None  # of the process among those of its machine


def _port(job):
    return _FIRST_PORT + zlib.crc32(job.encode()) % _PORTS


def _number(env, *names):
    for name in names:
        if env.get(name):
            return int(env[name])
    return None


def first_host(nodes):
    """The first host of a list of Slurm: `rack[3-5,9]-gpu,login` gives `rack3-gpu`."""
    first = re.findall(r"(?:\[[^\]]*\]|[^,\[])*", nodes)[0]
    return re.sub(r"\[([^\]]*)\]", lambda found: re.split("[,-]", found[1])[0], first)


def slurm(env):
    """Steps of Slurm: `srun python ...`."""
    nodes = env.get("SLURM_STEP_NODELIST") or env.get("SLURM_JOB_NODELIST")
    if "SLURM_PROCID" not in env or "SLURM_JOB_ID" not in env or not nodes:
        return None
    return Found(
        f"{first_host(nodes)}:{_port(env['SLURM_JOB_ID'])}",
        _number(env, "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"),
        _number(env, "SLURM_PROCID"),
        _number(env, "SLURM_LOCALID"),
    )


def open_mpi(env):
    """Open MPI: `mpirun -n 4 python ...`.

    Version 4 names the host of mpirun, which need not be that of the first process; with 5 the
    address is known where all processes are on one machine.
    """
    if "OMPI_COMM_WORLD_RANK" not in env:
        return None
    coordinator = None
    processes = _number(env, "OMPI_COMM_WORLD_SIZE")
    daemon = env.get("OMPI_MCA_orte_hnp_uri")  # "1531576320.0;tcp://10.0.0.1,10.1.0.1:34911"
    if processes == _number(env, "OMPI_COMM_WORLD_LOCAL_SIZE"):
        job = env.get("PMIX_NAMESPACE") or daemon or ""
        coordinator = f"127.0.0.1:{_port(job)}"
    elif daemon:
        job, _, uri = daemon.partition(";")
        host = re.match(r"tcp6?://\[?([^,\]:]+)", uri)
        if host:
            coordinator = f"{host[1]}:{_port(job)}"
    return Found(
        coordinator,
        processes,
        _number(env, "OMPI_COMM_WORLD_RANK"),
        _number(env, "OMPI_COMM_WORLD_LOCAL_RANK"),
    )


def kubernetes(env):
    """Indexed Jobs of Kubernetes with a headless Service, whose pods are `job-0`, `job-1`, ...

    The number of processes is not in the environment: WEFT_NUM_PROCESSES has it.
    """
    index = env.get("JOB_COMPLETION_INDEX")
    if "KUBERNETES_SERVICE_HOST" not in env or not index:
        return None
    coordinator = None
    job, dash, last = env.get("HOSTNAME", "").rpartition("-")
    if dash and last == index:
        _, _, domain = socket.getfqdn().partition(".")
        coordinator = f"{job}-0{'.' if domain else ''}{domain}:{_port(job)}"
    return Found(coordinator, None, int(index))


CLUSTERS = {"slurm": slurm, "ompi": open_mpi, "k8s": kubernetes}


def variables(env):
    """What WEFT_COORDINATOR_ADDRESS, WEFT_NUM_PROCESSES and WEFT_PROCESS_ID say."""
    return Found(
        env.get("WEFT_COORDINATOR_ADDRESS") or None,
        _number(env, "WEFT_NUM_PROCESSES"),
        _number(env, "WEFT_PROCESS_ID"),
    )


def detect(env, method=None):
    """What the environment says: the variables first, then the cluster that it is of."""
    own = variables(env)
    if method == "deactivate":
        return own
    for name, cluster in CLUSTERS.items():
        found = cluster(env) if method in (None, name) else None
        if found is not None:
            known = {k: v for k, v in own._asdict().items() if v is not None}
            return found._replace(**known)
    return own
