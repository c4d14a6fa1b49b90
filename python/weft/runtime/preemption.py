"""jaxlib's manager of preemptions: SIGTERM in one process becomes a step at which all stop."""

_managers = {}  # by the client of the processes


def reached_sync_point(client, step):
    """Whether all processes are to stop at this step. The first call begins to heed SIGTERM."""
    from jaxlib import _jax

    if client not in _managers:
        _managers.clear()
        manager = _jax.create_preemption_sync_manager()
        manager.initialize(client)
        _managers[client] = manager
    return _managers[client].reached_sync_point(step)
