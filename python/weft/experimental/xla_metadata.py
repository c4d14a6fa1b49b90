"""Names and values for XLA's passes at operations: accepted without effect."""

from collections.abc import Mapping as _Mapping

from weft._surface import open_to_users as _open_to_users, public as _public
from weft.errors import ArgumentTypeError
from weft.experimental import _hints

__all__ = [
    "fuse_limit",
    "must_fuse_call",
    "set_xla_metadata",
    "xla_metadata_call",
    "xla_metadata_call2",
]
__getattr__, __dir__ = _public(__name__, __all__)


def set_xla_metadata(x=None, **kwargs):
    """`x`, an array, a tree or a function, as it is; without it a context manager.

    `kwargs` are names and values for XLA's passes at what is computed; they have no effect.

    Examples:
      >>> from weft.experimental.xla_metadata import set_xla_metadata
      >>> with set_xla_metadata(note="here"):
      ...     y = wnp.sin(0.0)
    """
    return _hints.region() if x is None else x


def xla_metadata_call(f=None, /, **meta):
    """The function `f` itself, or a decorator; `meta`, names and values for XLA, have no effect.

    Raises TypeError for a value that is no text, bool or number.

    Examples:
      >>> from weft.experimental.xla_metadata import xla_metadata_call
      >>> xla_metadata_call(wnp.add, note="here")(1, 2)
      Array(3, dtype=int32, weak_type=True)
    """
    return xla_metadata_call2(f, meta)


def xla_metadata_call2(f=None, /, metadata=None, *, ad_metadata="same"):
    """As `xla_metadata_call`, of the dict `metadata`, which may also be the only argument.

    `ad_metadata` says what is noted at derivatives: "same", "drop" or another dict. Neither has an
    effect. Raises TypeError for other arguments.

    Examples:
      >>> from weft.experimental.xla_metadata import xla_metadata_call2
      >>> xla_metadata_call2({"note": "here"})(wnp.add)(1, 2)
      Array(3, dtype=int32, weak_type=True)
    """
    if isinstance(f, _Mapping) and metadata is None:
        f, metadata = None, f
    if f is not None and not callable(f):
        raise ArgumentTypeError(f"xla_metadata_call expected a function; got {f!r}")
    _check_metadata("metadata to be", {} if metadata is None else metadata)
    if ad_metadata not in ("same", "drop"):
        _check_metadata('ad_metadata to be "same", "drop" or', ad_metadata)
    return _hints.decorator(f)


def _check_metadata(what, given):
    if not isinstance(given, _Mapping):
        raise ArgumentTypeError(f"xla_metadata_call expected {what} a dict; got {given!r}")
    for name, value in given.items():
        if not isinstance(value, (str, bool, int, float)):
            raise ArgumentTypeError(
                f"xla_metadata_call expected text, a bool or a number for {name!r}; got {value!r}"
            )


def fuse_limit():
    """A context manager: operations within it are not to be fused by XLA with others. No effect.

    Examples:
      >>> from weft.experimental.xla_metadata import fuse_limit
      >>> with fuse_limit():
      ...     y = wnp.sin(0.0)
    """
    return _hints.region()


def must_fuse_call(identifier):
    """A decorator: XLA is to make one kernel of a function. `identifier`, a text or a number, names
    the kernel. No effect.

    Examples:
      >>> from weft.experimental.xla_metadata import must_fuse_call
      >>> must_fuse_call("1")(wnp.add)(1, 2)
      Array(3, dtype=int32, weak_type=True)
    """
    return xla_metadata_call(MUST_FUSE=identifier)


_open_to_users(__name__)
