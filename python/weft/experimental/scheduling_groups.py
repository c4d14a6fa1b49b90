"""Groups of operations for XLA's schedulers: accepted without effect."""

from weft._surface import open_to_users as _open_to_users, public as _public
from weft.experimental.xla_metadata import xla_metadata_call

__all__ = ["scheduling_group", "xla_metadata_call"]
__getattr__, __dir__ = _public(__name__, __all__)


def scheduling_group(name):
    """A decorator for functions whose operations are to run together; `name` has no effect.

    Examples:
      >>> from weft.experimental.scheduling_groups import scheduling_group
      >>> scheduling_group("first")(wnp.add)(1, 2)
      Array(3, dtype=int32, weak_type=True)
    """
    return xla_metadata_call(scheduling_group=name)


_open_to_users(__name__)
