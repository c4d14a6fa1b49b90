"""Control flow for weft's own functions, which users do not see.

The functions are the public ones, but for axes of a shard_map: see `unites_axes`.
"""

from weft import _core
from weft.lax._branches import cond_with, switch_with
from weft.lax._loops import fori_loop_with, while_loop_with
from weft.lax._scan import map_with, scan_with


def _own(function):
    def own(*args, **options):
        return function(True, *args, **options)

    # A user's settings of promotion hold for users' calls, and what this one runs is not a user's.
    _core.mark_public(own)
    return own


cond = _own(cond_with)
fori_loop = _own(fori_loop_with)
map = _own(map_with)
scan = _own(scan_with)
switch = _own(switch_with)
while_loop = _own(while_loop_with)
