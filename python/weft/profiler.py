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

from weft._surface import named_after, open_to_users as _open_to_users, public as _public
from weft.runtime import devices as _devices, profiler as _profiler
from weft.runtime.profiler import (
    ProfileData as ProfileData,
    ProfileEvent as ProfileEvent,
    ProfileOptions as ProfileOptions,
    ProfilePlane as ProfilePlane,
)

__all__ = [
    "ProfileData",
    "ProfileEvent",
    "ProfileOptions",
    "ProfilePlane",
    "StepTraceAnnotation",
    "TraceAnnotation",
    "annotate_function",
    "device_memory_profile",
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
    """What runs in this process: the server, and the session with where its profile goes."""

    server = None
    session = None
    directory = None
    for_perfetto = False


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


def start_trace(
    log_dir, create_perfetto_link=False, create_perfetto_trace=False, profiler_options=None
):
    """Begins a profile of this process, which `stop_trace` writes.

    Args:
      log_dir: folder in which each profile gets a folder `plugins/profile/DATE`.
      create_perfetto_link: no effect but that of `create_perfetto_trace`; open the file in
        https://ui.perfetto.dev.
      create_perfetto_trace: whether to write `perfetto_trace.json.gz` as well.
      profiler_options: None or ProfileOptions.

    Raises RuntimeError if a profile is being taken.
    """
    if _Running.session is not None:
        raise RuntimeError("start_trace: a profile is being taken; call stop_trace first")
    _Running.session = _profiler.start_session(profiler_options)
    _Running.directory = os.fspath(log_dir)
    _Running.for_perfetto = create_perfetto_link or create_perfetto_trace


def stop_trace():
    """Ends a profile and writes it; RuntimeError if none is being taken."""
    session = _Running.session
    if session is None:
        raise RuntimeError("stop_trace: expected a profile that start_trace began; there is none")
    _Running.session = None
    session.stop_and_export(_Running.directory)
    if _Running.for_perfetto:
        _write_for_perfetto(_Running.directory)


def _write_for_perfetto(directory):
    """Puts the newest profile's timeline beside it under the name that is looked for."""
    runs = sorted(glob.glob(os.path.join(glob.escape(directory), "plugins", "profile", "*")))
    for timeline in glob.glob(os.path.join(glob.escape(runs[-1]), "*.trace.json.gz")):
        shutil.copyfile(timeline, os.path.join(runs[-1], "perfetto_trace.json.gz"))


@contextlib.contextmanager
def trace(log_dir, create_perfetto_link=False, create_perfetto_trace=False, profiler_options=None):
    """Context manager: a profile of a block of code. The arguments are those of `start_trace`."""
    start_trace(log_dir, create_perfetto_link, create_perfetto_trace, profiler_options)
    try:
        yield
    finally:
        stop_trace()


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
