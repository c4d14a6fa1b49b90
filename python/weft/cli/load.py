"""Finds what `FILE.py:NAME` names."""

import difflib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from weft.cli.report import CliError


def load(target: str) -> Any:
    """The object that FILE.py:NAME names. NAME may be dotted; the file is imported once."""
    filename, colon, name = target.rpartition(":")
    if not colon or not name:
        raise CliError(f"expected FILE.py:NAME; got {target!r}")
    found: Any = load_file(filename)
    for i, part in enumerate(parts := name.split(".")):
        if not hasattr(found, part):
            where = ".".join([filename, *parts[:i]])
            raise CliError(f"{where} has no {part!r}{suggestion(found, part)}")
        found = getattr(found, part)
    return found


def load_function(target: str) -> Any:
    found = load(target)
    if not callable(found):
        raise CliError(f"{target} is no function; it is of type {type(found).__name__}")
    return found


def load_file(filename: str) -> ModuleType:
    path = Path(filename)
    if not path.is_file():
        raise CliError(f"no such file: {filename}")
    if path.suffix != ".py":
        raise CliError(f"{filename} is no Python file (.py)")
    path = path.resolve()
    loaded = sys.modules.get(path.stem)
    if loaded is not None and getattr(loaded, "__file__", None) == str(path):
        return loaded
    # A file named like a module in use (numpy.py) must not take its place.
    name = path.stem if loaded is None else f"{path.stem} ({path})"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    # As for `python FILE.py`: the file can import its neighbours.
    sys.path.insert(0, str(path.parent))
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    finally:
        sys.path.remove(str(path.parent))
    return module


def suggestion(owner: Any, name: str) -> str:
    public = [n for n in vars(owner) if not n.startswith("_")] if hasattr(owner, "__dict__") else []
    close = difflib.get_close_matches(name, public, n=3)
    if close:
        return "; did you mean " + " or ".join(map(repr, close)) + "?"
    functions = [n for n in public if callable(getattr(owner, n))]
    return f"; it has {', '.join(functions[:8])}" if functions else ""
