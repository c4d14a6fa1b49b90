"""What the C library does with memory that programs on CPUs give back."""

import ctypes
import os

from weft import _core

# Parameters of glibc's mallopt.
_M_MXFAST = 1
_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3


def _function(name):
    """A function of the C library; None where it has none of this name."""
    return getattr(ctypes.CDLL(None), name, None)


def keep(num_bytes):
    """Makes the C library keep up to so many bytes of freed memory for what comes next.

    Results and temporaries of some MB are otherwise mapped, faulted in and unmapped at every call.
    Blocks that are larger than this still are. Of small ones, which a call frees by the dozen, as
    many sizes as glibc has lists for are kept as they are, not joined with their neighbours: an
    operation on small arrays takes 3 % less. Nothing changes where the environment has settings
    of the allocator, or without glibc. It holds for the whole process, and for its life.
    """
    chosen = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_")
    if any(name in os.environ for name in chosen) or "malloc" in os.environ.get(
        "GLIBC_TUNABLES", ""
    ):
        return
    mallopt = _function("mallopt")
    if num_bytes and mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, num_bytes)
        mallopt(_M_TRIM_THRESHOLD, num_bytes)
        mallopt(_M_MXFAST, 20 * ctypes.sizeof(ctypes.c_void_p))  # the most that glibc takes


def give_back():
    """Gives freed memory back to the system."""
    trim = _function("malloc_trim")
    if trim is not None:
        trim(0)


def clear_caches():
    """Forgets every compiled program and what functions under `jit` have traced.

    Memory of the host that is not in use goes back to the system.

    Examples:
      >>> double = weft.jit(lambda x: 2 * x)
      >>> double(1.0).item()
      2.0
      >>> weft.clear_caches()
      >>> double(1.0).item()
      2.0
    """
    _core.clear_caches()
    give_back()
