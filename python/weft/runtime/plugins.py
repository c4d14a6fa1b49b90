"""PJRT plugins besides CUDA's, those that an environment variable or packages name.

What is known of them is the interface alone. So programs for their devices are written in plain
StableHLO (`target="portable"`): they call no functions that a plugin may lack, such as LAPACK's.
"""

import importlib.util
import os
from pathlib import Path

# The platform that programs for the devices of plugins are written for.
EMITTED_FOR = "portable"

_VARIABLE = "PJRT_NAMES_AND_LIBRARY_PATHS"
_GROUPS = ("jax_plugins", "xla_plugins")  # of the entry points of packages that are plugins
_OWN = ("cpu", "cuda", "gpu")


def named():
    """The paths of the plugins that the environment names, by platform: "name:path,name:path"."""
    found = {}
    for entry in filter(None, os.environ.get(_VARIABLE, "").split(",")):
        name, colon, path = entry.strip().partition(":")
        if not colon or not name or not path:
            raise ValueError(f"{_VARIABLE}: expected 'name:path,name:path'; got {entry!r}")
        if name in _OWN or name in found:
            raise ValueError(f"{_VARIABLE}: expected names that are not taken; got {name!r}")
        found[name] = path
    return found


def _defines_api(path):
    import mmap

    if path.stat().st_size == 0:  # which mmap refuses
        return False
    with (
        path.open("rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content,
    ):
        return content.find(b"GetPjrtApi") >= 0


def packaged():
    """The names of the plugins that packages offer, each with the module that says so."""
    from importlib import metadata  # slow, and of use for plugins of packages only

    offered = {}
    for group in _GROUPS:
        for point in metadata.entry_points(group=group):
            if point.name not in _OWN:
                offered.setdefault(point.name, point.module)
    return offered


def _library_of(module):
    """The library in the package of a module. The module itself is for jax: it is not imported."""
    spec = importlib.util.find_spec(module)
    for folder in (spec and spec.submodule_search_locations) or ():
        for path in sorted(Path(folder).rglob("*.so*")):
            if path.is_file() and _defines_api(path):
                return str(path)
    raise RuntimeError(f"the package {module!r} has no library with GetPjrtApi")


def exists(name):
    """Whether there is a plugin for a platform."""
    return name in named() or name in packaged()


def make_client(name):
    """A client of the plugin for a platform.

    Raises RuntimeError, with what the loader or the plugin says, where it cannot be opened.
    """
    from jaxlib import xla_client

    path = named().get(name) or _library_of(packaged()[name])
    if not os.path.isfile(path):
        raise RuntimeError(f"expected a library that is there; got {path!r}")
    if not xla_client.pjrt_plugin_loaded(name):
        xla_client.load_pjrt_plugin_dynamically(name, path)
    if not xla_client.pjrt_plugin_initialized(name):
        xla_client.initialize_pjrt_plugin(name)
    return xla_client.make_c_api_client(name, {})
