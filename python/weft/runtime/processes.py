"""Several processes that share their devices: joining them, and learning that one has failed.

The processes are tasks of jaxlib's coordination service. Left alone, jaxlib ends a process as soon
as another one fails (a function of Python that is given to it instead cannot be called), while
programs that wait for the failed process wait for ever. So the service is told that tasks may fail,
runs in a process of its own (`coordinator`), and a thread here asks it who is alive. When one is
not, the thread raises ProcessFailureError in the main thread by way of a signal, and closes the
connections of the collectives: programs that wait in them fail, and give the main thread back. A
process whose main thread has not come back after `_PATIENCE` seconds is ended with a message.

The same thread compares what the processes start on devices that they share: where the order of
programs differs, ProgramMismatchError comes in the same way.
"""

import contextlib
import os
import signal
import sys
import threading
import time
from typing import Any

import numpy as np

from weft import _core
from weft.errors import ProcessFailureError, ProgramMismatchError
from weft.runtime.errors import JaxRuntimeError

_PATIENCE = 30.0  # seconds
_SLICE = 0.5  # of a wait in jaxlib, during which no signal is seen
_CHUNK = 1 << 20  # bytes in one value of the store
_MEETING = 1200.0  # seconds that processes wait for one another where they start a program

_DIFFERENCE = "weft/difference"  # the key of what is known of processes that run other programs

_NEVER = 10**7  # seconds

_abandoned = False  # whether this process has failed to join the others
_joined = None  # the Membership of this process


def joined() -> Any:
    """The Membership of this process; None unless it is one of several."""
    return _joined


def _start_coordinator(address, processes, heartbeat, connect, shutdown):
    import subprocess

    class Child(subprocess.Popen):
        def __del__(self):
            pass  # it may outlive this process

    numbers = map(str, (processes, heartbeat, connect, shutdown))
    path = os.path.join(os.path.dirname(__file__), "coordinator.py")
    child = Child(
        [sys.executable, "-P", path, address, *numbers],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,  # an interrupt from the keyboard is for this process
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(p for p in sys.path if p),
            "TF_CPP_MIN_LOG_LEVEL": "2",
        },
    )
    assert child.stdin and child.stdout, "both are pipes"
    with child.stdout as answers:
        answer = answers.readline().decode().strip()
    if answer != "ready":
        child.stdin.close()
        child.wait()
        reason = answer or f"it ended with status {child.returncode}"
        raise RuntimeError(f"the coordinator could not be started at {address}: {reason}")
    return child


def _own_address(coordinator):
    """The address of this machine from which the coordinator is reached."""
    import socket

    host, _, port = coordinator.rpartition(":")
    family, kind, _, _, place = socket.getaddrinfo(
        host.strip("[]"), int(port), type=socket.SOCK_DGRAM
    )[0]
    with socket.socket(family, kind) as probe:  # connecting sends nothing
        probe.connect(place)
        return probe.getsockname()[0]


def _connect(client, timeout):
    """Connects a client. Raises TimeoutError when that takes longer than `timeout` seconds."""
    failed, done = [], threading.Event()

    def connect():
        try:
            client.connect()
        except Exception as error:
            failed.append(error)
        done.set()

    # jaxlib ends the process when its own time for this is over.
    threading.Thread(target=connect, name="weft-connect", daemon=True).start()
    if not done.wait(timeout):
        raise TimeoutError("no answer")
    if failed:
        raise failed[0]


def join(
    address, bind_address, processes, process_id, connect_timeout, heartbeat, shutdown_timeout
):
    """Joins the processes that share their devices, once all have come.

    Raises RuntimeError when they do not within `connect_timeout` seconds, when the address cannot
    be bound, and when the processes disagree about their number.
    """
    from jaxlib import _jax

    global _joined, _abandoned
    if _abandoned:
        raise RuntimeError(
            "distributed.initialize expected a new process, as it has failed in this one"
        )
    child = None
    if process_id == 0:
        child = _start_coordinator(bind_address, processes, heartbeat, _NEVER, shutdown_timeout)
    try:
        try:
            own_address = _own_address(address)
            client = _jax.get_distributed_runtime_client(
                address,
                process_id,
                init_timeout=_NEVER,
                shutdown_timeout=shutdown_timeout,
                heartbeat_timeout=heartbeat,
                shutdown_on_destruction=False,
                use_compression=True,
            )
            _connect(client, connect_timeout)
        except (JaxRuntimeError, OSError) as error:
            _abandoned = True
            raise RuntimeError(
                f"distributed.initialize: process {process_id} of {processes} could not join the "
                f"others at {address} within {connect_timeout} s: {error}\nexpected that a process "
                "0 runs, that the address is its own and can be reached from here, and that each "
                f"of the processes 0 to {processes - 1} calls initialize once"
            ) from None
        _joined = Membership(
            client,
            process_id,
            processes,
            own_address,
            child,
            connect_timeout,
            heartbeat,
            shutdown_timeout,
        )
    except BaseException:
        if child is not None:
            child.kill()
            child.wait()
        raise
    try:
        _joined.start()
    except Exception as error:
        _abandoned = True
        _joined.leave(error)
        raise


class Membership:
    """This process as one of several: what they share, and whether all are well."""

    def __init__(
        self, client, process_id, processes, own_address, child, connect, heartbeat, shutdown
    ):
        self.client = client
        self.pid = os.getpid()
        self.process_id = process_id
        self.num_processes = processes
        self._error: Any = None  # why programs of all processes cannot run any more
        self._own_address = own_address
        self._heartbeat = heartbeat
        self._interval = min(max(heartbeat / 20, 0.1), 5.0)
        self._connect_timeout = connect
        self._shutdown_timeout = shutdown
        self._child = child
        self._leaving = threading.Event()
        self._told = threading.Event()
        self._signal = self._take_signal()
        self._meeting = set()  # channels of barriers at which this process says what it starts
        self._barriers = {}  # how many there have been, by channel
        self._watcher = threading.Thread(target=self._watch, name="weft-processes", daemon=True)

    def start(self):
        """Begins to look after the others, and checks that they agree about their number."""
        self._watcher.start()
        key = "weft/processes"
        if self.process_id == 0:
            self.client.key_value_set(key, str(self.num_processes))
        else:
            first = int(self.get(key, self._connect_timeout))
            if first != self.num_processes:
                raise RuntimeError(
                    f"distributed.initialize: process {self.process_id} expected "
                    f"{self.num_processes} processes; process 0 has {first}"
                )
        self.barrier("initialize", self._connect_timeout)

    def client_options(self):
        """What makes a client of CPUs one of several."""
        from jaxlib import _jax

        # Making it waits for the others, and cannot be interrupted.
        self.barrier("devices", self._connect_timeout)
        return {
            "distributed_client": self.client,
            "node_id": self.process_id,
            "num_nodes": self.num_processes,
            "collectives": _jax.make_gloo_tcp_collectives(
                distributed_client=self.client, hostname=self._own_address
            ),
        }

    # The store of keys and values. Waits are cut into slices, so that signals are seen.

    @property
    def failed(self):
        """Whether a process is known to have failed."""
        return self._error is not None

    def check(self):
        """Raises ProcessFailureError if a process is known to have failed."""
        if self._error is not None:
            kind, *details = self._error
            raise kind(*details) from None

    def get(self, key, timeout):
        """The bytes of a key, as soon as it has some. Raises RuntimeError after `timeout` s."""
        value = self._get(key, timeout)
        if value is None:
            raise RuntimeError(
                f"process {self.process_id} waited {timeout} s for {key!r}, which no process has "
                "set"
            )
        return value

    def _get(self, key, timeout):
        """The same, and None after that time."""
        end = time.monotonic() + timeout
        while True:
            self.check()
            left = min(end - time.monotonic(), _SLICE)
            if left <= 0:
                return None
            try:
                return self.client.blocking_key_value_get_bytes(key, max(1, int(left * 1000)))
            except JaxRuntimeError as error:
                if "DEADLINE_EXCEEDED" not in str(error):
                    raise

    def put(self, key, data):
        """Sets a key, which must have no value, to any number of bytes."""
        view = memoryview(data).cast("B")
        for i in range(0, len(view), _CHUNK):
            self.client.key_value_set_bytes(f"{key}/{i // _CHUNK}", bytes(view[i : i + _CHUNK]))
        self.client.key_value_set_bytes(key, str(len(view)).encode())

    def take(self, key, timeout):
        """The bytes that `put` gave a key."""
        size = int(self.get(key, timeout))
        chunks = range(-(-size // _CHUNK))
        return b"".join(self.get(f"{key}/{i}", timeout) for i in chunks)

    def delete(self, key):
        """Deletes a key and those below it."""
        self.client.key_value_delete(key)

    def barrier(self, name, timeout, channel="main", members=None):
        """Waits until every process is here. In a channel, all pass the same barriers in order.

        `members` are the processes of the channel, a list; None for all.

        Raises RuntimeError after `timeout` seconds, AssertionError if processes call barriers of
        different names, ProcessFailureError if one has failed.
        """
        self.check()
        members = range(self.num_processes) if members is None else members
        number = self._barriers.get(channel, 0)
        self._barriers[channel] = number + 1
        prefix = f"weft/barrier/{channel}/{number}"
        self.client.key_value_set(f"{prefix}/of/{self.process_id}", name)
        arrived = self.client.key_value_increment(f"{prefix}/count", 1)
        if arrived == len(members):
            names = {value for _, value in self.client.key_value_dir_get(f"{prefix}/of/")}
            self.client.key_value_set(f"{prefix}/open", "\n".join(sorted(names)))
        opened = self._get(f"{prefix}/open", timeout)
        if opened is None:
            entries = self.client.key_value_dir_get(f"{prefix}/of/")
            here = {int(key.rpartition("/")[2]) for key, _ in entries}
            missing = sorted(set(members) - here)
            raise RuntimeError(
                f"process {self.process_id} waited {timeout} s at barrier {name!r} for processes "
                f"{missing}"
            )
        names = opened.decode().split("\n")
        if len(names) > 1:
            raise AssertionError(
                f"expected every process at one barrier; they are at {', '.join(map(repr, names))}"
            )
        # All have passed the barrier before the last one.
        if self.process_id == members[0] and number > 0:
            self.delete(f"weft/barrier/{channel}/{number - 1}")

    # Failures.

    def _take_signal(self):
        """Makes a signal raise the failure in the main thread; None outside of that thread."""
        if threading.current_thread() is not threading.main_thread():
            return None
        if hasattr(signal, "SIGRTMIN"):
            numbers = range(signal.SIGRTMAX - 1, signal.SIGRTMIN, -1)
        else:
            numbers = (signal.SIGUSR2, signal.SIGUSR1)
        for number in numbers:
            if signal.getsignal(number) is signal.SIG_DFL:
                signal.signal(number, self._raise)
                return number
        return None

    def _raise(self, number, frame):
        if not self._told.is_set() and not self._leaving.is_set():
            self._told.set()
            self.check()

    def alive(self):
        """The numbers of the processes that have not failed."""
        return set(self.client.get_live_nodes(list(range(self.num_processes))))

    def _watch(self):
        everyone = list(range(self.num_processes))
        while not self._leaving.wait(self._interval):
            try:
                alive = self.client.get_live_nodes(everyone)
            except JaxRuntimeError:
                return  # this process leaves, or the service is gone: jaxlib ends the process
            lost = sorted(set(everyone) - set(alive))
            different = self._different_runs()
            if self._leaving.is_set():
                return
            if different is not None:  # also where a process has ended for it
                self._fail((ProgramMismatchError, different))
                return
            if lost:
                whom = "; ".join(f"process {i}, {self._reason(i)}" for i in lost)
                text = f"process {self.process_id} of {self.num_processes} has lost {whom}"
                self._fail((ProcessFailureError, text, lost))
                return

    def _fail(self, error):
        self._error = error
        _core.end_shared_runs()
        if self._signal is None:
            self._told.set()
        end = time.monotonic() + _PATIENCE
        while True:
            self._cut_collectives()
            # A signal that comes before a wait begins does not end it: there is one more.
            main = threading.main_thread().ident
            if self._signal is not None and main is not None and not self._told.is_set():
                signal.pthread_kill(main, self._signal)
            if self._told.wait(0.5) or time.monotonic() > end:
                break
        if not self._told.is_set() and not self._leaving.is_set():
            sys.stderr.write(
                f"weft: {self._error[1]}\nThe main thread has been in a program for "
                f"{_PATIENCE:.0f} s since then: the process ends.\n"
            )
            sys.stderr.flush()
            os._exit(1)

    # Programs that several processes start.

    def meet(self, numbers, value, what):
        """Raises ProgramMismatchError unless all processes with these devices give one value.

        `numbers` are those of the devices in the core's table, `what` says what is compared.
        """
        members = _members(numbers)
        if self.process_id not in members:
            return
        channel = f"{what}/{_name_of(numbers)}"
        self._meeting.add(channel)
        try:
            self.barrier(value, _MEETING, channel, members)
        except AssertionError as error:
            found = str(error).partition("they are at ")[2]
            # What was said of a program that does not start is forgotten before any goes on.
            self._say(f"weft/runs/{self.process_id}", "{}")
            self.barrier("different", _MEETING, channel, members)
            raise ProgramMismatchError(
                f"processes {', '.join(map(str, members))} expected the same {what} in each; got "
                f"{found}"
            ) from None
        finally:
            self._meeting.discard(channel)

    def _different_runs(self):
        """What is to be said if another process is known to have started other programs."""
        import json

        runs = _core.shared_runs()
        if not runs:
            return None
        if found := self._said(_DIFFERENCE):
            return found
        said = {
            _name_of(numbers): [n, f"{_core.shared_order(i, n):x}"]
            for i, (numbers, n) in enumerate(runs)
        }
        self._say(f"weft/runs/{self.process_id}", json.dumps(said))
        for i, (numbers, n) in enumerate(runs):
            members = _members(numbers)
            if self.process_id not in members:
                continue
            at = members.index(self.process_id)
            # Each looks at the next one: then all are compared.
            for other in {members[at - 1], members[(at + 1) % len(members)]} - {self.process_id}:
                count, order = self._said(f"weft/runs/{other}").get(_name_of(numbers), (0, "0"))
                if count == n and f"program/{_name_of(numbers)}" in self._meeting:
                    continue  # found where they meet
                here = _core.shared_order(i, count)
                if here and int(order, 16) != here:
                    text = (
                        f"processes {self.process_id} and {other} expected to start the same "
                        f"programs on the devices that they share, in the same order; the first "
                        f"{count} of them differ"
                    )
                    self._say(_DIFFERENCE, json.dumps(text))  # to the others
                    return text
        return None

    def _say(self, key, text):
        with contextlib.suppress(JaxRuntimeError):  # found by the watch
            self.client.key_value_set(key, text, allow_overwrite=True)

    def _said(self, key):
        import json

        try:
            return json.loads(self.client.key_value_try_get(key))
        except JaxRuntimeError:
            return {}

    def explain(self, error):
        """Raises why a program failed, if that is soon known to be another process's failure."""
        text = str(error)
        if not any(word in text for word in ("Gloo", "gloo", "Connection")):
            return
        end = time.monotonic() + self._heartbeat * 1.1 + 2 * self._interval + 1.0
        while self._error is None and time.monotonic() < end:
            time.sleep(0.02)
        if self._error is not None:
            self._told.set()
            self.check()

    def _reason(self, process):
        try:
            return f"which ended with {self.client.key_value_try_get(f'weft/failed/{process}')}"
        except JaxRuntimeError:
            return "which has ended, or cannot be reached"

    def _cut_collectives(self):
        """Shuts the connections between processes that gloo has made, and no others.

        gloo publishes the socket addresses at which processes listen, each connection has one of
        them on one side.
        """
        import socket

        try:
            published = [value for _, value in self.client.key_value_dir_get_bytes("cpu:gloo")]
            descriptors = list(map(int, os.listdir("/proc/self/fd")))
        except (JaxRuntimeError, OSError):
            return
        for descriptor in descriptors:
            try:
                copy = socket.socket(fileno=os.dup(descriptor))
            except OSError:
                continue  # no socket
            with copy:
                if copy.family not in (socket.AF_INET, socket.AF_INET6):
                    continue
                try:
                    ends = [_packed(copy.family, end) for end in _ends(copy)]
                    if any(end in value for end in ends for value in published):
                        copy.shutdown(socket.SHUT_RDWR)
                except OSError:
                    continue  # not connected

    # The end.

    def leave(self, error=None):
        """Leaves the other processes: with them, or at once if one has failed.

        `error` is the exception that ends this process, which the others are told.
        """
        global _joined
        if _joined is not self:
            return
        try:
            if error is None and self._error is None:
                self.barrier("shutdown", self._shutdown_timeout)
        except RuntimeError as late:
            error = late
            raise
        finally:
            _joined = None
            self._leaving.set()
            self._told.set()
            _core.end_shared_runs()
            if self._signal is not None and threading.current_thread() is threading.main_thread():
                signal.signal(self._signal, signal.SIG_IGN)
            try:
                if error is not None and (
                    self._error is None or self._error[0] is ProgramMismatchError
                ):
                    text = f"{type(error).__name__}: {error}"
                    self.client.key_value_set(f"weft/failed/{self.process_id}", text[:2000])
                self.client.shutdown()
            except JaxRuntimeError:
                pass  # the service is gone, or has given this process up
            # At the end of the interpreter, a thread that comes back from jaxlib is fatal.
            self._watcher.join()
            if self._child is not None:
                self._child.stdin.close()
                self._child.poll()


def _members(numbers):
    """The processes with devices of these numbers, a sorted list."""
    from weft.runtime.devices import device_at

    return sorted({device_at(i).process_index for i in numbers})


def _name_of(numbers):
    """A name for a set of devices, the same in every process."""
    return _digest(repr(tuple(numbers)).encode())


def _digest(data):
    import hashlib

    return hashlib.sha256(data).hexdigest()[:16]


def _membership(what):
    if _joined is None:
        raise RuntimeError(
            f"expected processes that weft.distributed.initialize has brought together for {what}, "
            "of which other processes have a part; this one has left them, with shutdown()"
        )
    return _joined


def first_start(numbers, count, what):
    """The processes with these devices are about to start a program there, the first time.

    `what` names it, `count` have started there before. Raises ProgramMismatchError unless all say
    the same, before any of them is in the program, where it would wait for the others.
    """
    _membership(what).meet(numbers, f"{what}, number {count}", "program")


def check_same(value, numbers):
    """Raises ProgramMismatchError unless all processes with these devices have one NumPy array."""
    digest = _digest(np.ascontiguousarray(value).reshape(-1).view(np.uint8).data)
    text = f"{value.dtype}{list(value.shape)} ({digest})"
    _membership("an array").meet(numbers, text, "value")


def _ends(connection):
    return connection.getsockname(), connection.getpeername()


def _packed(family, address):
    """A socket address as the system keeps it, up to the host's address."""
    import socket

    head = int(family).to_bytes(2, sys.byteorder) + address[1].to_bytes(2, "big")
    host = socket.inet_pton(family, address[0].partition("%")[0])
    return head + host if family == socket.AF_INET else head + bytes(4) + host


def leave_at_exit():
    """Leaves the other processes at the end of this one."""
    if _joined is None or _joined.pid != os.getpid():  # a fork has nothing to leave
        return
    error = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
    try:
        _joined.leave(error)
    except Exception as failure:
        print(f"weft: {failure}", file=sys.stderr)
