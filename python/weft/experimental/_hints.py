"""Hints to compilers: they are checked, and have no effect."""

import contextlib

from weft.errors import ArgumentTypeError, AttributeValueError

COMPUTE_TYPES = ("device", "device_host", "tpu_sparsecore", "gpu_stream")


def compute_type_known(where, compute_type):
    """Raises ValueError unless a text names a kind of computation."""
    if not isinstance(compute_type, str):
        raise ArgumentTypeError(
            f"{where} expected text for compute_type; got {type(compute_type).__name__}"
        )
    if compute_type.partition(":")[0] not in COMPUTE_TYPES:
        raise AttributeValueError(
            f"{where} expected compute_type to be one of {COMPUTE_TYPES}; got {compute_type!r}"
        )


@contextlib.contextmanager
def region():
    """A context manager and decorator that changes nothing."""
    yield


def decorator(function):
    """A function, or a decorator if there is none yet, that changes nothing."""
    return (lambda f: f) if function is None else function
