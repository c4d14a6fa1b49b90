"""pjit, the former name of jit."""

import functools
from typing import Any

from weft import _core, _jit
from weft._surface import open_to_users as _open_to_users, public as _public
from weft.errors import DeviceMismatchError as _DeviceMismatchError
from weft.sharding import PartitionSpec as _PartitionSpec, entered_mesh as _entered_mesh
from weft.tree_util import tree_leaves as _tree_leaves, tree_map as _tree_map

__all__ = ["pjit"]
__getattr__, __dir__ = _public(__name__, __all__)


class _NotGiven:
    """In place of None, which is a sharding under `with mesh:`."""

    def __repr__(self):
        return "<not given>"


_NOT_GIVEN = _NotGiven()


def pjit(
    fun,
    in_shardings=_NOT_GIVEN,
    out_shardings=_NOT_GIVEN,
    static_argnums=None,
    static_argnames=None,
    donate_argnums=None,
    donate_argnames=None,
    keep_unused=False,
    device=None,
    backend=None,
    inline=False,
    compiler_options=None,
):
    """`weft.jit` with the options by position as well, for which `with mesh:` counts; deprecated.

    Under `with mesh:` calls run as under `weft.set_mesh(mesh)`: specs are over that mesh, and
    arrays that are not committed go to it. There, None in in_shardings and out_shardings means
    `PartitionSpec()`.

    Raises what `weft.jit` does, and ValueError under `with mesh:` for an array that is committed to
    other devices than those of the mesh.

    Examples:
      >>> from weft.experimental.pjit import pjit
      >>> pjit(lambda x: x + 1)(2)
      Array(3, dtype=int32, weak_type=True)
    """
    make: Any = functools.partial(
        _jit.jit,
        fun,
        static_argnums=static_argnums,
        static_argnames=static_argnames,
        donate_argnums=donate_argnums,
        donate_argnames=donate_argnames,
        keep_unused=keep_unused,
        device=device,
        backend=backend,
        inline=inline,
        compiler_options=compiler_options,
    )
    places = {"in_shardings": in_shardings, "out_shardings": out_shardings}
    given = {name: place for name, place in places.items() if place is not _NOT_GIVEN}
    return _OfMesh(make(**given), make(**{name: _specs(place) for name, place in given.items()}))


def _specs(places):
    """The tree with PartitionSpec() in place of None."""
    return _tree_map(
        lambda place: _PartitionSpec() if place is None else place,
        places,
        is_leaf=lambda x: x is None or isinstance(x, _PartitionSpec),
    )


def _check_devices(mesh, arguments):
    devices = set(mesh.devices.flat)
    for leaf in _tree_leaves(arguments):
        if isinstance(leaf, _core.Array) and leaf.committed and leaf.devices() != devices:
            raise _DeviceMismatchError(
                f"pjit expected arrays on the devices of {mesh}, as it is called under "
                f"`with mesh:`; got one committed to {leaf.sharding}\n  weft.device_put moves it."
            )


class _OfMesh:
    """A jit function, or under `with mesh:` another one; called as that is."""

    def __init__(self, jitted, on_mesh):
        functools.update_wrapper(self, jitted)
        self._jitted, self._on_mesh = jitted, on_mesh

    def _call(self, method, args, kwargs):
        with _entered_mesh() as mesh:
            if mesh.empty:
                return getattr(self._jitted, method)(*args, **kwargs)
            _check_devices(mesh, (args, kwargs))
            return getattr(self._on_mesh, method)(*args, **kwargs)

    def __call__(self, *args, **kwargs):
        return self._call("__call__", args, kwargs)

    def trace(self, *args, **kwargs):
        """As `weft.jit(f).trace`."""
        return self._call("trace", args, kwargs)

    def lower(self, *args, **kwargs):
        """As `weft.jit(f).lower`."""
        return self._call("lower", args, kwargs)

    def eval_shape(self, *args, **kwargs):
        """As `weft.jit(f).eval_shape`."""
        return self._call("eval_shape", args, kwargs)

    def __get__(self, instance, owner=None):
        return self if instance is None else functools.partial(self, instance)


_open_to_users(__name__)
