"""What the C++ core calls of jaxlib, and what is to be done at the end of the process."""

import atexit

import numpy as np

from weft import _core


def _runtime_hooks():
    """Late-bound, so that importing weft does not load jaxlib's client."""
    from jaxlib import _jax

    from weft.runtime import buffers, callback, compile, devices, processes, progress

    return {
        "put": _jax.batched_device_put,
        "put_semantics": _jax.HostBufferSemantics.IMMUTABLE_ONLY_DURING_CALL,
        "make_aval": devices.Aval,
        "device_list": _jax.DeviceList,
        "make_sharding": devices.make_sharding,
        "make_handler": buffers.make_handler,
        "compilation": progress.compilation,
        "compile": compile.compile_module,
        "module_type": compile.Module,
        "output_tiles": compile.output_tiles,
        "to_numpy": buffers.to_numpy,
        "copy_to_device": buffers.copy_to_device,
        "start": devices.start,
        "first_start": processes.first_start,
        "check_same": processes.check_same,
        "keep_token": callback.keep_token,
        "call_error": callback.call_error,
        "host_call_targets": callback.HOST_CALL_TARGETS,
    }


def install():
    """Gives the core its hooks and NumPy's dtype objects."""
    import ml_dtypes

    dtypes = []
    for name in _core.dtype_names():
        if name == "float0":
            dtypes.append(np.dtype([("float0", np.void, 0)]))
        else:
            dtypes.append(np.dtype(getattr(ml_dtypes, name, None) or name))
    _core.install(numpy_dtypes=dtypes, **_runtime_hooks())
    atexit.register(_finish)


def _finish():
    """Waits for what still runs: XLA's threads would outlive the data of the process they use.

    An error of a host function that nobody has seen is raised, and printed by the interpreter.
    """
    from weft.runtime.callback import effects_barrier
    from weft.runtime.processes import leave_at_exit

    try:
        effects_barrier()
    finally:
        _wait_for_last_run()
        leave_at_exit()


def _wait_for_last_run():
    ran, result = _core.take_last_run()
    if not ran:
        return
    try:
        if result is None or result.is_deleted():
            # Runs of a thread end in order, so one that comes last is waited for instead.
            _core.bind("copy", 0.0)
            result = _core.take_last_run()[1]
        result.block_until_ready()
    except Exception:
        pass  # what a computation raised is no matter any more
