"""Profiles of programs: what runs when, on the host and on devices, and what holds memory.

    with weft.profiler.trace("/tmp/profile"):
        train_step(state).block_until_ready()

`print(weft.profiler.summary("/tmp/profile"))` tells which lines took the time. The folder is for
TensorBoard's profile plugin and for xprof, too; `create_perfetto_trace` adds a file for
https://ui.perfetto.dev. Profiles of memory are for `pprof`.
"""

import contextlib
import glob
import os
import shutil
from typing import Any

from weft._surface import named_after, open_to_users as _open_to_users, public as _public
from weft.errors import ArgumentTypeError
from weft.runtime import devices as _devices, profiler as _profiler
from weft.runtime.profiler import (
    ProfileData as ProfileData,
    ProfileEvent as ProfileEvent,
    ProfileLine as ProfileLine,
    ProfileOptions as ProfileOptions,
    ProfilePlane as ProfilePlane,
)

__all__ = [
    "ProfileData",
    "ProfileEvent",
    "ProfileLine",
    "ProfileOptions",
    "ProfilePlane",
    "ProfileSession",
    "StepTraceAnnotation",
    "TraceAnnotation",
    "annotate_function",
    "device_memory_profile",
    "export_profile_data",
    "memory_summary",
    "register_subprocess",
    "save_device_memory_profile",
    "start_server",
    "start_trace",
    "stop_server",
    "stop_trace",
    "summary",
    "trace",
]
__getattr__, __dir__ = _public(__name__, __all__)


class _Running:
    """What runs in this process: the server, and the session."""

    server: Any = None
    session: Any = None


class TraceAnnotation(_profiler.TraceMe):
    """Context manager: the time of a block of code, as a span of the host's in profiles.

        with weft.profiler.TraceAnnotation("loading", batch=3):
            ...

    Keyword arguments are shown with the span.
    """


class StepTraceAnnotation(TraceAnnotation):
    """Context manager: a step of training, of which profiles tell how long each took.

    with weft.profiler.StepTraceAnnotation("train", step_num=i):
        ...
    """

    def __init__(self, name, **kwargs):
        super().__init__(name, _r=1, **kwargs)


def annotate_function(func, name=None, **decorator_kwargs):
    """A function whose calls are spans in profiles; a decorator.

    Args:
      func: the function.
      name: the name of the spans; that of the function by default.
      decorator_kwargs: what is shown with each.
    """
    name = name or getattr(func, "__qualname__", None) or getattr(func, "__name__", repr(func))

    @named_after(func)
    def annotated(*args, **kwargs):
        with TraceAnnotation(name, **decorator_kwargs):
            return func(*args, **kwargs)

    return annotated


def start_server(port, requires_backend=True):
    """Starts a server from which TensorBoard and xprof take profiles of this process.

    Args:
      port: where it listens.
      requires_backend: whether devices are looked for first, to be in the profiles.

    Raises ValueError if one is running.
    """
    if _Running.server is not None:
        raise ValueError("start_server: a profiler server is running; there is one per process")
    if requires_backend:
        _devices.start()
    _Running.server = _profiler.start_server(port)
    return _Running.server


def stop_server():
    """Stops the server; ValueError if there is none."""
    if _Running.server is None:
        raise ValueError("stop_server: expected a profiler server that runs; there is none")
    _Running.server = None


def register_subprocess(pid, port):
    """Has this process's server take profiles of a process beside it, too.

    Args:
      pid: its number.
      port: where its own profiler server listens.

    Returns:
      A function that ends this.
    """
    return _profiler.register_subprocess(pid, port)


class ProfileSession:
    """A profile of this process, from `start()` to `stop()`, or of a block of code under `with`.

        with weft.profiler.ProfileSession() as session:
            train_step(state).block_until_ready()
        names = [plane.name for plane in session.profile_data.planes]

    Attributes: is_running; profile_data, the ProfileData after the end, None before; log_dir.

    Args:
      log_dir: folder in which the profile gets a folder `plugins/profile/DATE` at the end; None to
        write nothing.
      create_perfetto_link: no effect but that of `create_perfetto_trace`; open the file in
        https://ui.perfetto.dev.
      create_perfetto_trace: whether to write `perfetto_trace.json.gz` as well.
      profiler_options: None or ProfileOptions.
    """

    def __init__(
        self,
        log_dir=None,
        create_perfetto_link=False,
        create_perfetto_trace=False,
        profiler_options=None,
    ):
        self.log_dir = None if log_dir is None else os.fspath(log_dir)
        self._for_perfetto = create_perfetto_link or create_perfetto_trace
        self._options = profiler_options
        self._recording: Any = None
        self._write: Any = None
        self._data: Any = None

    is_running = property(lambda self: self._recording is not None)
    profile_data = property(lambda self: self._data)

    def start(self):
        """Begins, and gives the session itself.

        Raises RuntimeError if a profile is being taken.
        """
        if _Running.session is not None:
            raise RuntimeError("start_trace: a profile is being taken; call stop_trace first")
        self._recording = _profiler.start_session(self._options)
        self._write = self._data = None
        _Running.session = self
        return self

    def stop(self):
        """Ends, writes the profile if there is a `log_dir`, and gives the ProfileData.

        Raises RuntimeError for a session that is not running.
        """
        if self._recording is None:
            raise RuntimeError("stop: expected a session that runs; start it first")
        recording, self._recording, _Running.session = self._recording, None, None
        self._write, self._data = _profiler.stop_session(recording)
        if self.log_dir is not None:
            self.export_profile_data(self.log_dir, create_perfetto_trace=self._for_perfetto)
        return self._data

    def export_profile_data(
        self, log_dir, create_perfetto_link=False, create_perfetto_trace=False, session_id=None
    ):
        """Writes the profile; see weft.profiler.export_profile_data."""
        if self._write is None:
            raise RuntimeError(
                "export_profile_data: expected a session that has ended; stop it first"
            )
        options_id = getattr(self._options, "session_id", None)
        self._write(os.fspath(log_dir), session_id or options_id)
        if create_perfetto_link or create_perfetto_trace:
            _write_for_perfetto(os.fspath(log_dir))

    def __enter__(self):
        return self.start()

    def __exit__(self, *exception):
        if self.is_running:
            self.stop()


def start_trace(
    log_dir, create_perfetto_link=False, create_perfetto_trace=False, profiler_options=None
):
    """Begins a profile of this process, which `stop_trace` writes; the ProfileSession.

    `create_perfetto_link`, `create_perfetto_trace` and `profiler_options` are those of
    ProfileSession. Raises RuntimeError if a profile is being taken.
    """
    return ProfileSession(
        log_dir, create_perfetto_link, create_perfetto_trace, profiler_options
    ).start()


def stop_trace():
    """Ends a profile and writes it; its ProfileData. Raises RuntimeError if none is being taken."""
    if _Running.session is None:
        raise RuntimeError("stop_trace: expected a profile that start_trace began; there is none")
    return _Running.session.stop()


def export_profile_data(
    profile_data,
    log_dir,
    create_perfetto_link=False,
    create_perfetto_trace=False,
    session_id=None,
):
    """Writes a profile to a folder.

    Args:
      profile_data: a ProfileSession that has ended, or, with jaxlib 0.12 and later, ProfileData.
      log_dir: folder in which it gets a folder `plugins/profile/DATE`.
      create_perfetto_link, create_perfetto_trace: as for ProfileSession.
      session_id: the name of that folder in place of the date, with jaxlib 0.12 and later.

    Raises TypeError for another object, RuntimeError for a session that has not ended and for what
    needs a later jaxlib.

    Examples:
      >>> import tempfile
      >>> with weft.profiler.ProfileSession() as session:
      ...     y = wnp.sin(1.0)
      >>> with tempfile.TemporaryDirectory() as folder:
      ...     weft.profiler.export_profile_data(session, folder)
    """
    if isinstance(profile_data, ProfileSession):
        profile_data.export_profile_data(
            log_dir, create_perfetto_link, create_perfetto_trace, session_id
        )
    elif isinstance(profile_data, ProfileData):
        _profiler.export(profile_data, os.fspath(log_dir), session_id)
        if create_perfetto_link or create_perfetto_trace:
            _write_for_perfetto(os.fspath(log_dir))
    else:
        raise ArgumentTypeError(
            f"export_profile_data expected a ProfileSession or ProfileData; got {profile_data!r}"
        )


def _write_for_perfetto(directory):
    """Puts the newest profile's timeline beside it under the name that is looked for."""
    runs = sorted(glob.glob(os.path.join(glob.escape(directory), "plugins", "profile", "*")))
    for timeline in glob.glob(os.path.join(glob.escape(runs[-1]), "*.trace.json.gz")):
        shutil.copyfile(timeline, os.path.join(runs[-1], "perfetto_trace.json.gz"))


@contextlib.contextmanager
def trace(log_dir, create_perfetto_link=False, create_perfetto_trace=False, profiler_options=None):
    """Context manager: a profile of a block of code, as the ProfileSession that it gives.

    `create_perfetto_link`, `create_perfetto_trace` and `profiler_options` are those of
    ProfileSession.
    """
    with ProfileSession(
        log_dir, create_perfetto_link, create_perfetto_trace, profiler_options
    ) as session:
        yield session


def device_memory_profile(backend=None):
    """What holds the memory of devices now, as a profile for `pprof`.

    Args:
      backend: the platform; None for the default one.
    """
    from weft.runtime.listing import devices

    return devices(backend)[0].client.heap_profile()


def save_device_memory_profile(filename, backend=None):
    """Writes `device_memory_profile(backend)` to a file."""
    profile = device_memory_profile(backend)
    with open(filename, "wb") as file:
        file.write(profile)


def summary(log_dir):
    """Which lines of the user's, and which operations, took the time of a profile.

    print(weft.profiler.summary("/tmp/profile"))
    weft.profiler.summary("/tmp/profile").show("profile.html")  # a page with flames

    Args:
      log_dir: the folder given to `trace` or `start_trace`, of which the newest profile counts, or
        a file *.xplane.pb.

    Returns:
      A summary with by_line and by_op, dicts from a name to (nanoseconds, number of runs), largest
      first; total, in nanoseconds; and `show(path)`, which writes a page. Times are those that
      operations of compiled programs ran, on all threads and devices, each without operations
      within it. A fusion counts for the line of one of the operations that it is made of.

    Raises FileNotFoundError where there is no profile.
    """
    from weft import _profiles

    return _profiles.summary(log_dir)


def memory_summary():
    """What holds the memory of devices now, by type and device of the arrays.

    Returns:
      A summary as `summary` gives, of bytes and numbers of arrays. Which lines made the arrays is
      not known; `weft.compiler.show` tells by line what lives within a program.
    """
    from weft import _profiles

    return _profiles.memory_summary()


_open_to_users(__name__)
