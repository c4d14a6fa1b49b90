"""jaxlib's profiler: one session per process, spans of time, a server."""

from jaxlib import _profile_data, _profiler

from weft.runtime import devices

ProfileData = _profile_data.ProfileData
ProfileEvent = _profile_data.ProfileEvent
ProfileLine = _profile_data.ProfileLine
ProfilePlane = _profile_data.ProfilePlane
ProfileOptions = _profiler.ProfileOptions
TraceMe = _profiler.TraceMe
register_subprocess = _profiler.register_subprocess
start_server = _profiler.start_server


def start_session(options):
    """Begins to record. The client is started first: profilers of devices come with it."""
    devices.start()
    return _profiler.ProfilerSession() if options is None else _profiler.ProfilerSession(options)


def stop_session(session):
    """Ends a recording; a function that writes it to a folder, and its ProfileData."""
    recorded = session.stop()
    data = ProfileData.from_serialized_xspace(recorded)

    def write(directory, session_id):
        if session_id:
            export(data, directory, session_id)
        else:
            session.export(recorded, directory)

    return write, data


def export(data, directory, session_id):
    """Writes ProfileData to a folder, which needs jaxlib 0.12."""
    if not hasattr(_profiler, "export_to_xprof"):
        raise RuntimeError(
            "export_profile_data: expected jaxlib 0.12 or later, or a ProfileSession without "
            "session_id"
        )
    _profiler.export_to_xprof(data, directory, session_id=session_id or "")
