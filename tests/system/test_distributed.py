"""Several processes on this machine: meeting, exchanging values, and the failure of one."""

import json
import os
import socket
import subprocess
import sys

import numpy as np
import pytest
from conftest import EVERYTHING, ROOT, SUPPORT

from weft import _clusters

WORKER = SUPPORT / "distributed_worker.py"
LIMIT = 120  # seconds for a group of processes
HEARTBEAT = 3  # as in the worker
# The stated time: a tenth more than the heartbeat's. The rest is for a machine that is busy.
SOON = HEARTBEAT * 1.1 + 10


def address():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


def run_group(mode, count, folder, stays=()):
    """What each process printed and its status; those of `stays` are killed after the others."""
    place = address()
    group = [
        subprocess.Popen(
            [sys.executable, WORKER, mode, place, str(count), str(i), folder],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for i in range(count)
    ]
    outputs = {}
    try:
        for i, process in enumerate(group):
            if i not in stays:
                outputs[i] = process.communicate(timeout=LIMIT)
    finally:
        for i, process in enumerate(group):
            process.kill()
            outputs.setdefault(i, process.communicate())
    seen = []
    for i, process in enumerate(group):
        lines = [line for line in outputs[i][0].splitlines() if line.startswith("{")]
        seen.append((json.loads(lines[-1]) if lines else None, process.returncode, outputs[i][1]))
    return seen


@pytest.mark.parametrize("count", [2, 4] if EVERYTHING else [2])
def test_processes_meet(count, tmp_path):
    pytest.importorskip("tensorstore")
    folder = str(tmp_path / "run")
    group = run_group("meet", count, folder)
    for i, (seen, status, errors) in enumerate(group):
        assert status == 0, errors[-3000:]
        assert seen["counts"] == [i, count, 2 * count, 2]
        assert seen["owners"] == [p for p in range(count) for _ in range(2)]
        assert seen["own_device"] == i
        assert seen["twice"][0] == "RuntimeError" and "once" in seen["twice"][1]
        everyone = range(count)
        assert seen["gathered"] == [[[p, p + 1] for p in everyone], list(everyone)]
        assert seen["tiled"] == ["bfloat16", [float(p) for p in everyone for _ in range(2)]]
        assert (seen["broadcast"], seen["from_last"], seen["big"]) == (0.5, count - 1, 0)
        assert seen["no_source"][0] == "ValueError"
        assert (seen["shapes"] is None) == (i == 0)
        if i:
            assert f"this process has float64[{i}]" in seen["shapes"][1]
            assert seen["differ"][0] == "AssertionError"
            assert seen["differ"][1].startswith("numbers: expected the value of process 0")
        assert seen["same"] is None
        assert seen["names"][0] == "AssertionError" and "place 1" in seen["names"][1]
        assert seen["saved"] == [1, 2]
        assert seen["restored"] == [0.0, 1, 2, 3, 4, 5], "process 0 has saved what all have"
        assert "disk full" in seen["not_saved"][1]
        assert seen["not_saved"][0] == ("RuntimeError" if i else "OSError")
        assert seen["after"] == [False, [0, 2]]
    from weft import checkpoints

    assert checkpoints.restore(folder)["n"] == 0
    assert checkpoints.all_steps(folder) == [1, 2]
    spread = checkpoints.restore(os.path.join(folder, "spread"))
    assert spread["x"].is_fully_addressable, "restored by one process"
    assert (np.asarray(spread["x"]).ravel() == np.arange(8 * count)).all()


MODES = ["kill_first", "kill", "stop", "raise", "sleep"]


@pytest.mark.parametrize("mode", MODES if EVERYTHING else MODES[:1])
def test_failure_reaches_the_others(mode, tmp_path):
    count = 4
    victim = 0 if mode == "kill_first" else count - 1
    stays = (victim,) if mode == "stop" else ()
    group = run_group(mode, count, str(tmp_path), stays)
    for i, (seen, status, errors) in enumerate(group):
        if i == victim:
            assert status == (1 if mode == "raise" else -9)
            continue
        assert status == 0, errors[-3000:]
        assert seen["took"] < SOON
        assert seen["told"].startswith(f"process {i} of {count} has lost process {victim}, which")
        assert seen["lost"] == [[victim], [2048 * victim, 2048 * victim + 1]]
        assert seen["again"][0] == seen["program"][0] == "ProcessFailureError"
        if mode == "raise":
            assert "which ended with ValueError: a mistake" in seen["told"]


def test_programs_differ(tmp_path):
    for seen, status, errors in run_group("diverge", 2, str(tmp_path)):
        assert status == 0, errors[-3000:]
        assert "programs on the devices that they share" in seen["told"]


def test_numbers_of_processes_differ(tmp_path):
    (first, *_), (second, *_) = run_group("mismatch", 2, str(tmp_path))
    assert second["initialize"][1] == (
        "distributed.initialize: process 1 expected 3 processes; process 0 has 2"
    )
    assert first["initialize"][0] == "ProcessFailureError"


def test_mistakes(run_python):
    text = run_python(
        """
        import socket, weft
        from weft import distributed
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            port = taken.getsockname()[1]
            here = f"127.0.0.1:{port}"
            calls = {
                "nothing": dict(),
                "no address": dict(num_processes=2, process_id=0),
                "address": dict(coordinator_address="somewhere", num_processes=2, process_id=0),
                "number": dict(coordinator_address=here, num_processes=2, process_id=2),
                "float": dict(coordinator_address=here, num_processes=2.5, process_id=1),
                "none": dict(coordinator_address=here, num_processes=0, process_id=0),
                "method": dict(cluster_detection_method="pbs"),
                "seconds": dict(coordinator_address=here, num_processes=1, process_id=0,
                                heartbeat_timeout_seconds=0),
                "taken": dict(coordinator_address="192.0.2.1:80", num_processes=1, process_id=0),
                "unreachable": dict(coordinator_address=here, num_processes=2, process_id=1,
                                    initialization_timeout=1),
            }
            for name, arguments in calls.items():
                try:
                    distributed.initialize(**arguments)
                    print(name, "passed")
                except Exception as error:
                    print(name, "|", type(error).__name__, "|", error)
        weft.devices()
        try:
            distributed.initialize("127.0.0.1:1", 1, 0)
        except RuntimeError as error:
            print("late |", error)
        distributed.shutdown()
        print(distributed.is_initialized(), weft.process_count())
        """,
        WEFT_COORDINATOR_ADDRESS="",
    )
    for line in (
        "nothing | ValueError | distributed.initialize expected coordinator_address, as an argum",
        "no address | ValueError | distributed.initialize expected coordinator_address",
        "address | ValueError | distributed.initialize expected host:port for coordinator_address",
        "number | ValueError | distributed.initialize expected process_id < num_processes",
        "float | TypeError | distributed.initialize expected an int for num_processes; got 2.5",
        "none | ValueError | distributed.initialize expected num_processes >= 1; got 0",
        "method | ValueError | distributed.initialize expected cluster_detection_method",
        "seconds | ValueError | distributed.initialize expected seconds for heartbeat",
        "unreachable | RuntimeError | distributed.initialize: process 1 of 2 could not join",
        "taken | RuntimeError | the coordinator could not be started at 192.0.2.1:80",
        "late | distributed.initialize expected to be called before the first use of a device",
        "False 1",
    ):
        assert line in text, text


SLURM = {
    "SLURM_JOB_ID": "77",
    "SLURM_STEP_NODELIST": "rack[03-05,9]-gpu,login",
    "SLURM_STEP_NUM_TASKS": "8",
    "SLURM_PROCID": "5",
    "SLURM_LOCALID": "1",
}
OPEN_MPI = {
    "OMPI_COMM_WORLD_SIZE": "4",
    "OMPI_COMM_WORLD_RANK": "3",
    "OMPI_COMM_WORLD_LOCAL_RANK": "1",
    "OMPI_COMM_WORLD_LOCAL_SIZE": "2",
}
DAEMON = {"OMPI_MCA_orte_hnp_uri": "1531576320.0;tcp://10.96.0.1,10.148.0.1:34911"}
JOB = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "JOB_COMPLETION_INDEX": "2", "HOSTNAME": "job-a-2"}


def test_clusters():
    found = _clusters.detect(SLURM)
    assert found[1:] == (8, 5, 1)
    host, _, port = found.coordinator.partition(":")
    assert host == "rack03-gpu" and 49152 <= int(port) < 65536
    assert _clusters.detect({**SLURM, "SLURM_PROCID": "0"}).coordinator == found.coordinator
    assert _clusters.detect({**SLURM, "SLURM_JOB_ID": "78"}).coordinator != found.coordinator

    assert _clusters.detect(OPEN_MPI) == (None, 4, 3, 1)
    assert _clusters.detect({**OPEN_MPI, **DAEMON}).coordinator.startswith("10.96.0.1:")
    local = _clusters.detect({**OPEN_MPI, "OMPI_COMM_WORLD_LOCAL_SIZE": "4"})
    assert local.coordinator.startswith("127.0.0.1:")

    job = _clusters.detect({**JOB, "WEFT_NUM_PROCESSES": "3"})
    assert job.coordinator.startswith("job-a-0") and job[1:] == (3, 2, None)

    own = {"WEFT_COORDINATOR_ADDRESS": "h:1", "WEFT_NUM_PROCESSES": "2", "WEFT_PROCESS_ID": "0"}
    assert _clusters.detect({**SLURM, **own}) == ("h:1", 2, 0, 1)
    assert _clusters.detect({**SLURM, **OPEN_MPI}, "ompi")[1:] == (4, 3, 1)
    assert _clusters.detect({**SLURM, **own}, "deactivate") == ("h:1", 2, 0, None)
    assert _clusters.detect({}) == (None, None, None, None)


@pytest.mark.parametrize(
    "nodes, host", [("a", "a"), ("a,b", "a"), ("n[1-3]", "n1"), ("n[07,9]x,m", "n07x"), ("", "")]
)
def test_first_host_of_slurm(nodes, host):
    assert _clusters.first_host(nodes) == host


def test_training_goes_on_from_its_checkpoint(tmp_path):
    pytest.importorskip("tensorstore")
    examples = ROOT / "examples"

    def train(count, *options):
        command = [examples / "distributed_run.py", "-n", str(count)]
        command += [examples / "distributed_training.py", "--out", tmp_path / "run", *options]
        return subprocess.run(
            [sys.executable, *command],
            capture_output=True,
            text=True,
            timeout=LIMIT,
            env={k: v for k, v in os.environ.items() if not k.startswith("SLURM_")},
        )

    broken = train(2, "--steps", "20", "--fail-at", "12")
    assert broken.returncode == 1 and "ProcessFailureError" in broken.stdout, broken.stdout
    whole = train(1)
    assert whole.returncode == 0, whole.stdout
    losses = {}
    for line in (broken.stdout + whole.stdout).splitlines():
        if line.startswith("[0] step"):
            _, _, step, _, value = line.split()
            losses.setdefault(int(step), []).append(float(value))
    assert sorted(losses) == list(range(20))
    twice = [step for step, values in losses.items() if len(values) == 2]
    # The checkpoint of step 10 may not have been complete, that of step 5 was.
    assert twice[0] in (5, 10) and twice == list(range(twice[0], twice[0] + len(twice)))
    assert 12 in twice
    for first, *again in losses.values():
        assert all(abs(value - first) < 1e-5 for value in again)
