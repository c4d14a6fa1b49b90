"""The PJRT clients behind devices."""

from weft import _core
from weft._surface import public as _public
from weft.runtime import devices as _devices

__all__ = ["backend_xla_version", "backends", "get_backend", "get_default_device"]
__getattr__, __dir__ = _public(__name__, __all__)


def backends():
    """The clients by platform ("cpu", "cuda"), those that are wanted most first."""
    return _devices.clients()


def get_backend(platform=None):
    """The client of a platform; that of the default one for None, and a client as it is.

    Raises RuntimeError for a platform that is not there.
    """
    if platform is not None and not isinstance(platform, str):
        return platform
    return _devices.devices(platform)[0].client


def get_default_device():
    """The device on which arrays are made where nothing says another one."""
    return _devices.device_at(_core.current_device())


def backend_xla_version(platform=None):
    """The version of XLA that the client of `platform` says to run: an int, or None.

    Without `platform` it is the client of the default one.
    """
    return getattr(get_backend(platform), "xla_version", None)
