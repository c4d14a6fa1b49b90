"""Where XLA is to compute parts of programs: hints without effect."""

from weft._surface import open_to_users as _open_to_users, public as _public
from weft.experimental import _hints

__all__ = ["compute_on", "compute_on2"]
__getattr__, __dir__ = _public(__name__, __all__)


def compute_on(compute_type):
    """A context manager, and decorator, for what is to run elsewhere; has no effect.

    All of a program runs on its devices. Values are the same.

    compute_type: "device", "device_host", "tpu_sparsecore" or "gpu_stream:..."; ValueError for
    others.

    Examples:
      >>> from weft.experimental.compute_on import compute_on
      >>> with compute_on("device_host"):
      ...     y = wnp.add(1, 2)
    """
    _hints.compute_type_known("compute_on", compute_type)
    return _hints.region()


def compute_on2(f=None, *, compute_type, out_memory_spaces, compiler_options=None):
    """The function `f` itself, or a decorator: `compute_on` for a function; has no effect.

    `out_memory_spaces` and `compiler_options` are ignored: results are where those of other
    operations are.

    Examples:
      >>> from weft.experimental.compute_on import compute_on2
      >>> on_host = {"compute_type": "device_host", "out_memory_spaces": weft.memory.Space.Host}
      >>> compute_on2(wnp.add, **on_host)(1, 2)
      Array(3, dtype=int32, weak_type=True)
    """
    _hints.compute_type_known("compute_on2", compute_type)
    return _hints.decorator(f)


_open_to_users(__name__)
