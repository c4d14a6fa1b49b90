"""Which objects belong to libraries, as they were installed: known by name, and not followed.

An object counts only if it is the very one that its library has under its name and, for a function,
if its code lies among the library's files. What was put in the place of a library's own is that of
a user. `changes()` finds such replacements also where only the library's own code would meet them.
"""

import functools
import operator
import os
import sys
import types

import numpy as np

from weft import _core

# Of Python's own, those whose functions give equal results for equal arguments.
_STANDARD = frozenset(
    (
        *("abc", "builtins", "cmath", "collections", "contextlib", "copy", "dataclasses", "enum"),
        *("fractions", "functools", "itertools", "math", "numbers", "operator", "string", "types"),
        *("typing", "warnings", "_collections", "_collections_abc", "_functools", "_operator"),
        *("_typing", "reprlib"),
    )
)
_INSTALLED = frozenset(("weft", "numpy", "jaxlib", "ml_dtypes"))
# Parts of them whose results depend on more than their arguments.
_STATEFUL = frozenset(
    (
        *("numpy.random", "numpy.ctypeslib", "numpy.testing", "numpy.f2py", "numpy.lib.format"),
        *("numpy.lib.npyio", "numpy.lib._npyio_impl", "numpy._core.memmap", "numpy.core.memmap"),
        *("weft._breakpoint", "weft._callback", "weft._saving", "weft._settings", "weft.cli"),
        *("weft.checkpoints", "weft.compiler", "weft.config", "weft.debug", "weft.distributed"),
        *("weft.ffi", "weft.memory", "weft.monitoring", "weft.numpy._files", "weft.profiler"),
        *("weft.runtime", "weft.test_util"),
    )
)
_PURE_IN_STATEFUL = frozenset(("weft.runtime.listing", "weft.runtime.pytree"))
# Of these modules, what is asked for by name: files, memory that holds anything, addresses, texts
# that are run, and what tells where it is called from.
_STATEFUL_NAMES = {
    "builtins": frozenset(
        (
            *("__import__", "breakpoint", "compile", "eval", "exec", "globals", "hash", "help"),
            *("id", "input", "open"),
        )
    ),
    "numpy": frozenset(
        (
            *("DataSource", "fromfile", "genfromtxt", "get_printoptions", "geterr"),
            *("geterrcall", "getbufsize", "load", "loadtxt", "memmap", "show_config"),
            "show_runtime",
        )
    ),
    "typing": frozenset(("get_type_hints",)),
    "weft.runtime.listing": frozenset(("live_arrays",)),
    "weft": frozenset(("clear_caches", "live_arrays", "print_environment_info")),
}
_HEAP_TYPE = 1 << 9
# What libraries have in the place of functions, by module and name of the type.
_CALLED_BY_NAME = frozenset(
    (
        *(("numpy", "ufunc"), ("numpy", "_ArrayFunctionDispatcher"), ("weft", "JitFunction")),
        *(("weft", "ElementwiseFunction"), ("weft.numpy", "ufunc")),
    )
)


@functools.cache
def _folder(top):
    """Where the files of a library are; None for one that is part of the interpreter."""
    if top in _INSTALLED:
        file = getattr(sys.modules.get(top), "__file__", None)
        return file and os.path.dirname(file) + os.sep
    return os.path.dirname(os.__file__) + os.sep


@functools.lru_cache(4096)
def _is_of(top, file):
    """Whether a file is one of the library's."""
    if file.startswith("<frozen "):
        return top in _STANDARD
    folder = _folder(top)
    return (
        bool(folder) and file.startswith(folder) and (top in _INSTALLED or "-packages" not in file)
    )


@functools.lru_cache(4096)
def is_stateful(module, name):
    """Whether what a module of a library has under a name depends on more than is followed."""
    if name.partition(".")[0] in _STATEFUL_NAMES.get(module, ()):
        return True
    if module in _PURE_IN_STATEFUL:
        return False
    return module in _STATEFUL or any(module.startswith(f"{known}.") for known in _STATEFUL)


def is_installed(name):
    """Whether a module's name is that of a library that was installed beside Python."""
    return name.partition(".")[0] in _INSTALLED


def _top(name):
    """The library that a module's name says it is of, or None."""
    top = name.partition(".")[0] if type(name) is str else None
    return top if top in _STANDARD or top in _INSTALLED else None


def is_library(module):
    """Whether a module is one of a library's, under its own name."""
    known = vars(module)
    name = known.get("__name__")
    top = _top(name)
    if top is None or sys.modules.get(name) is not module:
        return False
    file = known.get("__file__")
    if type(file) is str:
        return _is_of(top, file)
    return getattr(known.get("__spec__"), "origin", None) in ("built-in", "frozen")


class Stateful(Exception):
    """An object of a library whose results depend on more than arguments."""


def _found(module_name, path):
    module = sys.modules.get(module_name)
    if type(module) is not types.ModuleType or not is_library(module):
        return None
    found = module
    for name in path.split("."):
        try:
            found = vars(found).get(name)
        except TypeError:
            return None
    return found


def can_change(cls):
    """Whether attributes of a class can be set."""
    return bool(type.__getattribute__(cls, "__flags__") & _HEAP_TYPE)


def name_of(value):
    """The name of an object that a library has; None for any other. Raises Stateful."""
    kind = type(value)
    if kind is types.FunctionType:
        module, path = value.__module__, value.__qualname__
        top = _top(module)
        if top is None or not _is_of(top, value.__code__.co_filename):
            return None
    elif isinstance(value, type):
        module, path = type.__getattribute__(value, "__module__"), value.__qualname__
        if _top(module) is None:
            return None
        if not can_change(value):
            return _checked(module, path)
    elif kind is types.BuiltinFunctionType:
        owner = value.__self__
        if not (owner is None or isinstance(owner, types.ModuleType)):
            return None
        module = value.__module__ or getattr(owner, "__name__", None)
        path = value.__qualname__
    elif kind is _core.PublicFunction:
        return name_of(value.implementation)
    elif (kind.__module__, kind.__qualname__) in _CALLED_BY_NAME:
        module = "numpy" if kind is np.ufunc else getattr(value, "__module__", None)
        path = getattr(value, "__name__", None)
    else:
        return None
    if type(path) is not str or _top(module) is None:
        return None
    return _checked(module, path) if _found(module, path) is value else None


def _checked(module, path):
    if is_stateful(module, path):
        raise Stateful(f"{module}.{path}")
    return f"{module}.{path}"


def code_of(function):
    """What tells a function of a library that has no name of its own from others; None for one
    that is not of a library. Raises Stateful."""
    known = function.__globals__
    module = known.get("__name__")  # wrappers bear the names of what they wrap
    top, code = _top(module), function.__code__
    if top is None:
        return None
    if code.co_filename == "<string>":  # as the methods that dataclasses get
        owner = sys.modules.get(module)
        if owner is None or vars(owner) is not known or not is_library(owner):
            return None
    elif not _is_of(top, code.co_filename):
        return None
    _checked(module, code.co_qualname)
    return f"{module}.{code.co_qualname}:{code.co_firstlineno}"


# ---- Replacements

# Modules whose names change as the process goes on: their own, and those of two that others put
# functions into (test runners, and a package with newer functions for typing).
_CHANGING = ("weft.runtime", "weft._pool", "weft._saving", "typing", "warnings")
_remembered = []  # (name, the names of a module or class, a copy, whether it is a class)


def remember():
    """Takes note of the libraries as they are when weft has been imported."""
    for name, module in list(sys.modules.items()):
        is_module = isinstance(module, types.ModuleType)
        if not is_module or _top(name) is None or name.startswith(_CHANGING):
            continue
        known = vars(module)
        _remembered.append((name, known, known.copy(), False))
        if name.partition(".")[0] != "weft":
            continue
        for value in known.values():
            if isinstance(value, type) and (
                name == "weft._core" or vars(value).get("__module__") == name
            ):
                of_class = vars(value)
                _remembered.append((f"{name}.{value.__name__}", of_class, of_class.copy(), True))


def changes():
    """(name, value) of all that was put in the place of what libraries had, and into classes of
    weft's."""
    found = []
    for name, now, before, is_class in _remembered:
        if len(now) == len(before) and all(map(operator.is_, now.values(), before.values())):
            continue
        names = {**before, **now} if is_class else before
        for key in names:
            value = now.get(key, _GONE)
            if before.get(key, _GONE) is not value and not key.startswith("__"):
                found.append((f"{name}.{key}", value))
    return found


class _Gone:
    """Stands for a name that was deleted."""


_GONE = _Gone


def additions(cls):
    """(name, value) of the functions and constants of a library's class that may be a user's."""
    for name, value in vars(cls).items():
        function = value.fget if type(value) is property else getattr(value, "__func__", value)
        if type(function) is types.FunctionType:
            if code_of(function) is None:
                yield name, value
        elif type(value) in (int, float, complex, bool):
            yield name, value
