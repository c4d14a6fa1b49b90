"""What the trace of a Python function may have depended on besides its arguments.

Rules of un-jitted derivatives are traced once and used again while what they read is as it was:
closures, globals, defaults, attributes, and the functions that they call. A `Reads` notes all that
can be seen to be read and tells later whether it is the same; where that cannot be told, the rule
is traced at every call.
"""

import builtins
import dis
import enum
import functools
import operator
import sys
import types
from typing import Any

import numpy as np

from weft import _core

_LIMIT = 400  # of values looked at
_SMALL = 4096  # bytes of NumPy arrays, which anyone may write to
# Modules whose functions give equal results for equal arguments, but for what _IMPURE names.
_PURE_MODULES = {
    *("weft", "numpy", "math", "cmath", "operator", "functools", "itertools", "builtins"),
    *("typing", "dataclasses", "collections", "abc", "enum", "fractions", "numbers", "string"),
    *("jaxlib", "ml_dtypes", "contextlib", "warnings", "types"),
}
# Names with which code gets at what cannot be followed.
_IMPURE = {
    *(
        "getattr",
        "setattr",
        "delattr",
        "vars",
        "globals",
        "locals",
        "eval",
        "exec",
        "open",
        "input",
    ),
    *("__dict__", "__import__", "import_module", "attrgetter", "next", "iter", "__getattribute__"),
    *("random", "count", "cycle"),
}
_CONSTANTS = (
    *(type(None), bool, int, float, complex, str, bytes, type(Ellipsis), slice, range),
    *(np.dtype, np.generic, np.ufunc, enum.Enum, types.CodeType),
)
_MISSING = object()


class _Unknown(Exception):
    """What a function depends on cannot be told."""


@functools.lru_cache(1024)
def _names(code):
    """The names that code and the functions in it use."""
    names = set(code.co_names)
    for constant in code.co_consts:
        if type(constant) is types.CodeType:
            names |= _names(constant)
    return frozenset(names)


@functools.lru_cache(1024)
def _imports(code):
    """The modules that code and the functions in it import."""
    found = {i.argval for i in dis.get_instructions(code) if i.opname == "IMPORT_NAME"}
    for constant in code.co_consts:
        if type(constant) is types.CodeType:
            found |= _imports(constant)
    return frozenset(found)


def _is_pure(module_name):
    return bool(module_name) and module_name.partition(".")[0] in _PURE_MODULES


def _own_classes(cls):
    return [c for c in cls.__mro__ if not _is_pure(c.__module__)]


class Reads:
    """What some functions read, as it is now; `same()` tells whether it still is.

    `known` is False where that cannot be told.
    """

    def __init__(self, functions):
        self._items = []  # (mapping, key, value)
        self._cells = []  # (cell, value)
        self._lists = []  # (list, or dict for its keys, a copy)
        self._arrays = []  # (NumPy array, its content)
        self._parts = []  # (function, what can be replaced in it)
        self._seen: Any = {}
        try:
            for function in functions:
                self._value(function)
            self.known = True
        except _Unknown:
            self.known = False
        self._seen = None

    def same(self):
        """Whether all that was read is what it was."""
        for mapping, key, value in self._items:
            if mapping.get(key, _MISSING) is not value:
                return False
        for cell, value in self._cells:
            if _contents(cell) is not value:
                return False
        for values, copy in self._lists:
            if len(values) != len(copy) or not all(map(operator.is_, values, copy)):
                return False
        return self._same_contents()

    def _same_contents(self):
        return all(_content(array) == content for array, content in self._arrays) and all(
            all(map(operator.is_, _parts(function), parts)) for function, parts in self._parts
        )

    def settle(self):
        """After a trace: takes note of what it changed itself.

        Counters and lists that have grown do not make a trace worth repeating; after any other
        change `known` is False.
        """
        if self.known and not self.same():
            self.known = self._settle()

    def _settle(self):
        for i, (mapping, key, value) in enumerate(self._items):
            now = mapping.get(key, _MISSING)
            if not _has_counted(value, now):
                return False
            self._items[i] = (mapping, key, now)
        for i, (cell, value) in enumerate(self._cells):
            now = _contents(cell)
            if not _has_counted(value, now):
                return False
            self._cells[i] = (cell, now)
        for i, (values, copy) in enumerate(self._lists):
            if len(values) < len(copy) or not all(map(operator.is_, values, copy)):
                return False
            self._lists[i] = (values, list(values))
        return self._same_contents()

    # ---- Following what is read

    def _value(self, value):
        if isinstance(value, _CONSTANTS) or type(value) is _core.Array:
            return
        if id(value) in self._seen:
            return
        self._seen[id(value)] = value
        if len(self._seen) > _LIMIT:
            raise _Unknown
        kind = type(value)
        if kind is types.FunctionType:
            self._function(value)
        elif kind in (tuple, frozenset):
            for x in value:
                self._value(x)
        elif kind is list:
            self._lists.append((value, list(value)))
            for x in value:
                self._value(x)
        elif kind is dict:
            self._lists.append((value, list(value)))
            self._read_all(value)
        elif kind is functools.partial:
            self._value(value.func)
            self._value(value.args)
            self._value(value.keywords)
        elif kind is types.MethodType:
            self._value(value.__func__)
            self._value(value.__self__)
        elif kind in (staticmethod, classmethod):
            self._value(value.__func__)
        elif kind is property:
            self._value((value.fget, value.fset, value.fdel))
        elif kind is np.ndarray and value.nbytes <= _SMALL and value.dtype.kind != "O":
            self._arrays.append((value, _content(value)))
        elif kind is _core.JitFunction:
            self._value(value.__wrapped__)
        elif kind is _core.PublicFunction:
            self._value(value.implementation)
        elif isinstance(value, type):
            self._class(value)
        elif kind in (types.BuiltinFunctionType, types.MethodWrapperType):
            owner = value.__self__
            if isinstance(owner, types.ModuleType) or owner is None:
                if not _is_pure(
                    getattr(value, "__module__", None) or getattr(owner, "__name__", "")
                ):
                    raise _Unknown
            else:
                self._value(owner)
        elif kind is types.ModuleType:
            raise _Unknown  # as a value that is passed around
        elif (parts := getattr(kind, "_traced_parts", None)) is not None:
            for part in parts:
                self._read(vars(value), part)
        else:
            self._instance(value)

    def _function(self, function):
        if _is_pure(function.__module__) and _is_pure(function.__globals__.get("__name__")):
            # A function of a library depends on what was given to it.
            for cell in function.__closure__ or ():
                self._cell(cell)
            return
        names = _names(function.__code__)
        if names & _IMPURE or any(name not in sys.modules for name in _imports(function.__code__)):
            raise _Unknown
        self._parts.append((function, _parts(function)))
        for cell in function.__closure__ or ():
            self._cell(cell, names)
        for name in sorted(names):
            if name in function.__globals__:
                self._read(function.__globals__, name, names)
            elif name in sys.modules and not hasattr(builtins, name):
                self._module(sys.modules[name], names)  # imported in the function
        self._value(function.__defaults__)
        self._value(function.__kwdefaults__)
        for name in sorted(names & function.__dict__.keys()):
            self._read(function.__dict__, name)

    def _cell(self, cell, names=frozenset()):
        value = _contents(cell)
        self._cells.append((cell, value))
        if value is not _MISSING:
            self._named(value, names)

    def _read(self, mapping, key, names=frozenset()):
        value = mapping[key]
        self._items.append((mapping, key, value))
        self._named(value, names)

    def _read_all(self, mapping):
        for key in list(mapping):
            self._read(mapping, key)

    def _named(self, value, names):
        """A value that code with these names refers to."""
        if type(value) is types.ModuleType:
            self._module(value, names)
        else:
            self._value(value)

    def _module(self, module, names):
        if _is_pure(module.__name__):
            return
        if id(module) in self._seen:
            return
        for name in sorted(names):
            if name in vars(module):
                self._read(vars(module), name, names)

    def _class(self, cls):
        for c in _own_classes(cls):
            self._lists.append((vars(c), list(vars(c))))
            for key in list(vars(c)):
                if not (key.startswith("__") and type(vars(c)[key]) is not types.FunctionType):
                    self._read(vars(c), key)

    def _instance(self, value):
        cls = type(value)
        own = _own_classes(cls)
        plain = all(c.__dictoffset__ and not c.__dict__.get("__slots__") for c in own)
        if not own or not plain or hasattr(cls, "__getattr__"):
            raise _Unknown
        bases = [c for c in cls.__mro__ if c not in own and c is not object]
        if bases:
            raise _Unknown  # state that attributes do not show
        self._class(cls)
        self._lists.append((value.__dict__, list(value.__dict__)))
        self._read_all(value.__dict__)


def _contents(cell):
    try:
        return cell.cell_contents
    except ValueError:
        return _MISSING


def _parts(function):
    return function.__code__, function.__defaults__, function.__kwdefaults__


def _content(array):
    return array.shape, array.dtype, array.tobytes()


def _has_counted(before, now):
    return before is now or (type(before) is int and type(now) is int and now > before)
