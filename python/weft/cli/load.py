"""Finds what `FILE.py:NAME` and `package.module:NAME` name."""

import importlib
import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from weft.cli.failures import CliError, did_you_mean
from weft.cli.program import is_program, load_program

MODULE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")


def load(target: str) -> Any:
    """The object that FILE.py:NAME or package.module:NAME names. NAME may be dotted."""
    place, colon, name = target.rpartition(":")
    if not colon or not name or not place:
        raise CliError(f"expected FILE.py:NAME; got {target!r} (package.module:NAME works too)")
    found: Any = load_place(place)
    for i, part in enumerate(parts := name.split(".")):
        if not hasattr(found, part):
            where = ".".join([place, *parts[:i]])
            raise CliError(f"{where} has no {part!r}{suggestion(found, part)}")
        found = getattr(found, part)
    return found


def load_function(target: str) -> Any:
    if is_program(target):
        return load_program(target)
    found = load(target)
    if not callable(found):
        raise CliError(f"{target} is no function; it is of type {type(found).__name__}")
    return found


def load_place(place: str) -> ModuleType:
    try:
        if MODULE.fullmatch(place) and not place.endswith(".py") and not Path(place).is_file():
            return load_module(place)
        return load_file(place)
    except SystemExit as stop:
        raise CliError(
            f"{place} ended the process when it was imported (sys.exit({stop.code!r})); let it do "
            'so under `if __name__ == "__main__":` only'
        ) from None


def load_module(name: str) -> ModuleType:
    # As for `python -m`: modules of the current directory come first.
    here = str(Path.cwd())
    sys.path.insert(0, here)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        # Its own absence, or that of a package it is in; not of what it imports.
        if error.name and (name == error.name or name.startswith(error.name + ".")):
            hint = f"; to name a file, write {name}.py" if Path(f"{name}.py").exists() else ""
            raise CliError(f"no module named {error.name!r} (searched from {here}){hint}") from None
        raise
    finally:
        if here in sys.path:
            sys.path.remove(here)


def load_file(filename: str) -> ModuleType:
    path = Path(filename)
    if not path.is_file():
        near = [str(f) for f in path.parent.glob("*.py")] if path.parent.is_dir() else []
        raise CliError(f"no such file: {filename}{did_you_mean(filename, near)}")
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
    except BaseException as error:
        del sys.modules[name]
        if isinstance(error, ImportError) and "no known parent package" in str(error):
            error.add_note(
                "(a file of a package is named by its module: package.module:NAME, from the "
                "directory that holds the package)"
            )
        raise
    finally:
        if str(path.parent) in sys.path:
            sys.path.remove(str(path.parent))
    return module


def suggestion(owner: Any, name: str) -> str:
    public = [n for n in vars(owner) if not n.startswith("_")] if hasattr(owner, "__dict__") else []
    close = did_you_mean(name, public)
    if close:
        return close
    functions = [n for n in public if callable(getattr(owner, n))]
    return f"; it has {', '.join(functions[:8])}" if functions else ""
