"""jaxlib's profiler: one session per process, spans of time, a server."""

from jaxlib import _profile_data, _profiler

from weft.runtime import devices

ProfileData = _profile_data.ProfileData
ProfileEvent = _profile_data.ProfileEvent
ProfilePlane = _profile_data.ProfilePlane
ProfileOptions = _profiler.ProfileOptions
TraceMe = _profiler.TraceMe
register_subprocess = _profiler.register_subprocess
start_server = _profiler.start_server


def start_session(options):
    """Begins to record. The client is started first: profilers of devices come with it."""
    devices.start()
    return _profiler.ProfilerSession() if options is None else _profiler.ProfilerSession(options)
