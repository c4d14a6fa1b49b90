"""`import weft.as_jax`: from then on `import jax` gives weft, for libraries written for JAX.

docs/libraries.md says which ones are known to run, and what they cannot expect. Modules of the name
jax.* show what weft.* has; besides, they have stand-ins for the few names of JAX's inside that
libraries take.
"""

import importlib
import importlib.abc
import importlib.machinery
import sys
import types
from typing import Any

from weft import _core
from weft._as_jax import flat
from weft._as_jax.names import HOMES, NOT_THERE, VALUES
from weft.numpy import _namespace
from weft.sharding import Sharding

# Of the names with underscores around them, those that are for users.
_OPEN = ("__all__", "__array_api_version__", "__array_namespace_info__")


# The paths below jax of modules that the tables name, and of those above them.
_NAMED = {
    path.rsplit(".", up)[0]
    for path in (*HOMES, *VALUES, *NOT_THERE)
    for up in range(path.count(".") + 1)
}


class _Renamed(types.ModuleType):
    """A module of jax: what the tables say, and what those modules have that stand behind it."""

    def __init__(self, name, behind):
        own = behind[0] if behind else None
        super().__init__(name, getattr(own, "__doc__", None))
        self.__path__ = []
        self._behind = behind
        self._path = name.partition(".")[2]
        if own is not None and hasattr(own, "__all__"):
            self.__all__ = own.__all__
        vars(self).update(VALUES.get(self._path, {}))

    def __getattr__(self, name):
        path = f"{self._path}.{name}".lstrip(".")
        if path in _NAMED:
            return importlib.import_module(f"jax.{path}")
        if name.startswith("__") and name not in _OPEN:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        found = self._found(name)
        if isinstance(found, types.ModuleType) and found.__name__.startswith("weft."):
            found = importlib.import_module("jax" + found.__name__.removeprefix("weft"))
        vars(self)[name] = found
        return found

    def _found(self, name):
        for module in self._behind:
            if hasattr(module, name):
                return getattr(module, name)
        if name in NOT_THERE.get(self._path, ()):
            return NOT_THERE[self._path][name]
        if self._behind and self._behind[0].__name__.startswith("weft"):
            return getattr(self._behind[0], name)  # which says why it has no such name
        raise AttributeError(_not_in_weft(f"{self.__name__}.{name}"))

    def __dir__(self):
        return sorted({*vars(self), *(name for module in self._behind for name in dir(module))})


def _not_in_weft(name):
    return f"{name} is not in weft: it is part of the inside of JAX"


def _behind(path):
    """The modules that stand behind the one of jax at a path; none where only the tables do.

    Raises ModuleNotFoundError, which says why, where there is nothing.
    """
    if path in HOMES:
        return [importlib.import_module(f"jax.{home}".rstrip(".")) for home in HOMES[path]]
    try:
        return [importlib.import_module(f"weft.{path.removeprefix('_src.')}".rstrip("."))]
    except ModuleNotFoundError:
        if path in _NAMED:
            return []
        if path.startswith("_src."):
            # Of this name, as Python would drop the text for an import of the name of a module.
            raise ModuleNotFoundError(_not_in_weft(f"jax.{path}"), name=f"weft.{path}") from None
        raise


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, fullname, path=None, target=None):
        if fullname.partition(".")[0] != "jax":
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec):
        return _Renamed(spec.name, _behind(spec.name.partition(".")[2]))

    def exec_module(self, module):
        pass


def _install():
    present = sys.modules.get("jax")
    if present is not None and not isinstance(present, _Renamed):
        raise ImportError(
            "weft.as_jax expected that jax is not imported yet; got a process that has it\n"
            "  Import weft.as_jax first."
        )
    if present is None:
        tracer: Any = _core.Tracer
        tracer._trace = flat.Trace
        sharding: Any = Sharding
        sharding._addressable_device_assignment = flat.addressable_devices
        _namespace.module_name = "jax.numpy"
        sys.meta_path.insert(0, _Finder())
        importlib.import_module("jax")


_install()
