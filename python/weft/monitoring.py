"""Events of a program, and listeners that are called for each.

Libraries record events by name; what collects figures registers listeners:

    weft.monitoring.register_event_duration_secs_listener(lambda event, secs, **tags: ...)
    weft.monitoring.record_event_duration_secs("/my/loading", 1.5, source="disk")
"""

from weft._surface import open_to_users as _open_to_users, public as _public

__all__ = [
    "clear_event_listeners",
    "record_event",
    "record_event_duration_secs",
    "record_event_time_span",
    "record_scalar",
    "register_event_duration_secs_listener",
    "register_event_listener",
    "register_event_time_span_listener",
    "register_scalar_listener",
    "unregister_event_duration_listener",
    "unregister_event_listener",
    "unregister_event_time_span_listener",
    "unregister_scalar_listener",
]
__getattr__, __dir__ = _public(__name__, __all__)

_listeners, _duration_listeners, _time_span_listeners, _scalar_listeners = [], [], [], []


def _tell(listeners, event, values, tags):
    for listener in tuple(listeners):
        listener(event, *values, **tags)


def _register(listeners, callback):
    if not callable(callback):
        raise TypeError(f"expected a listener to be a function; got {callback!r}")
    listeners.append(callback)


def _unregister(listeners, callback):
    if callback not in listeners:
        raise ValueError(f"expected a registered listener; got {callback!r}")
    listeners.remove(callback)


def record_event(event, **kwargs):
    """Calls listeners of events with `(event, **kwargs)`."""
    _tell(_listeners, event, (), kwargs)


def record_event_duration_secs(event, duration, **kwargs):
    """Calls listeners of durations with `(event, duration, **kwargs)`."""
    _tell(_duration_listeners, event, (duration,), kwargs)


def record_event_time_span(event, start_time, end_time, **kwargs):
    """Calls listeners of time spans with `(event, start_time, end_time, **kwargs)`."""
    _tell(_time_span_listeners, event, (start_time, end_time), kwargs)


def record_scalar(event, value, **kwargs):
    """Calls listeners of scalars with `(event, value, **kwargs)`."""
    _tell(_scalar_listeners, event, (value,), kwargs)


def register_event_listener(callback):
    """Has `callback(event, **kwargs)` called for each event."""
    _register(_listeners, callback)


def register_event_duration_secs_listener(callback):
    """Has `callback(event, duration, **kwargs)` called for each duration."""
    _register(_duration_listeners, callback)


def register_event_time_span_listener(callback):
    """Has `callback(event, start_time, end_time, **kwargs)` called for each time span."""
    _register(_time_span_listeners, callback)


def register_scalar_listener(callback):
    """Has `callback(event, value, **kwargs)` called for each scalar."""
    _register(_scalar_listeners, callback)


def unregister_event_listener(callback):
    """Ends `register_event_listener`; ValueError for a function that is not registered."""
    _unregister(_listeners, callback)


def unregister_event_duration_listener(callback):
    """Ends `register_event_duration_secs_listener`; ValueError for what is not registered."""
    _unregister(_duration_listeners, callback)


def unregister_event_time_span_listener(callback):
    """Ends `register_event_time_span_listener`; ValueError for what is not registered."""
    _unregister(_time_span_listeners, callback)


def unregister_scalar_listener(callback):
    """Ends `register_scalar_listener`; ValueError for a function that is not registered."""
    _unregister(_scalar_listeners, callback)


def clear_event_listeners():
    """Ends all registrations."""
    for listeners in (_listeners, _duration_listeners, _time_span_listeners, _scalar_listeners):
        listeners.clear()


_open_to_users(__name__)
