"""What a function is, by content: the same in another process exactly if a trace would be.

`Reads` follows all that a function may depend on; here each thing that it comes by leaves a digest,
by name. What cannot be told by its content (objects of unknown classes, files, clocks, large
arrays) makes the function unknown, and `why` says what it was.
"""

import dataclasses
import enum
import functools
import os
import reprlib
import sys
import types

import numpy as np

from weft import _core, _dependencies
from weft._dependencies import Reads, _Unknown
from weft.runtime.disk_cache import blake2b

_LIMIT_BYTES = 1 << 26  # of all arrays that are closed over
# Names with which code gets at what changes from process to process; the modules behind them are
# of those that are not followed.
_OF_THE_PROCESS = frozenset(
    ("id", "hash", "config", "load", "loadtxt", "genfromtxt", "fromfile", "memmap", "breakpoint")
)
# The __repr__ of a dataclass asks for identities, to end where objects hold each other.
_GENERATES_REPR = (dataclasses.__file__, reprlib.__file__)
_PLAIN = (type(None), bool, int, float, complex, str, bytes, type(Ellipsis), range, slice)


class Fingerprint(Reads):
    """Of functions and values. Attributes: known, why (what is unknown, a text), parts (a dict of
    digests by name), arrays (those of weft that were met, in an order that depends on nothing
    else)."""

    def __init__(self, values):
        self.why = None
        self.arrays = []
        self._parts_found = {}
        self._bytes = 0
        self._where = "an argument"
        super().__init__(values)
        self.parts = {name: digest.hexdigest() for name, digest in self._parts_found.items()}

    def _note(self, where, *content):
        digest = self._parts_found.setdefault(where, blake2b())
        digest.update(repr(content).encode(errors="surrogatepass"))

    def _unknown(self, why):
        if self.why is None:
            self.why = why
        raise _Unknown

    def _value(self, value):
        try:
            if isinstance(value, _dependencies._CONSTANTS) or type(value) is _core.Array:
                self._constant(value)
                return
            number = len(self._seen)
            known = self._seen.get(id(value))
            if known is not None:
                self._note(self._where, "again", type(value).__name__)
                return
            self._note(self._where, number, type(value).__module__, type(value).__qualname__)
            self._describe(value)
            super()._value(value)
        except _Unknown:
            self._unknown(f"{self._where} is a {type(value).__qualname__}")

    def _constant(self, value):
        kind = type(value)
        if kind is types.CodeType:
            self._note(self._where, _code(value))
        elif kind in _PLAIN:
            self._note(self._where, kind.__name__, value)
        elif kind is _core.Array:
            self._array(value)
        elif isinstance(value, np.dtype):
            self._note(self._where, str(value), value.descr)
        elif isinstance(value, np.generic):
            self._note(self._where, str(value.dtype), value.tobytes())
        elif isinstance(value, np.ufunc) and getattr(np, value.__name__, None) is value:
            self._note(self._where, value.__name__)
        elif isinstance(value, enum.Enum):
            self._note(self._where, kind.__module__, kind.__qualname__, value.name)
            for cls in _dependencies._own_classes(kind):
                for key, member in vars(cls).items():
                    if type(member) is types.FunctionType:
                        self._note(self._where, key)
                        super()._value(member)
            self._value(value.value)
        else:
            self._unknown(f"{self._where} is a {kind.__qualname__}")

    def _array(self, array):
        self._bytes += array.nbytes
        if self._bytes > _LIMIT_BYTES:
            self._unknown(f"{self._where}: arrays of more than {_LIMIT_BYTES >> 20} MiB")
        try:
            content = np.asarray(array)
        except Exception:
            self._unknown(f"{self._where} is an array whose values are elsewhere")
        digest = blake2b(np.ascontiguousarray(content).tobytes()).hexdigest()
        self._note(self._where, array.shape, str(array.dtype), array.weak_type, digest)
        self.arrays.append(array)

    def _describe(self, value):
        """What of a value `Reads` does not come by."""
        kind = type(value)
        if kind in (tuple, list):
            self._note(self._where, len(value))
        elif kind is dict:
            if not all(type(key) in _PLAIN for key in value):
                self._unknown(f"{self._where} is a dict with keys that are no constants")
            self._note(self._where, list(value))
        elif kind is frozenset:
            if not all(type(x) in _PLAIN for x in value):
                self._unknown(f"{self._where} is a frozenset")
            self._note(self._where, sorted(map(repr, value)))
        elif kind is np.ndarray and value.dtype.kind != "O":
            self._note(self._where, value.shape, str(value.dtype), value.tobytes())
        elif kind is _core.JitFunction and not _dependencies._is_pure(value.__module__):
            self._note(self._where, vars(value).get("_made_with"))
        elif isinstance(value, type) and not _dependencies._is_pure(type(value).__module__):
            self._unknown(f"{self._where} is a class of a metaclass")
        elif kind in (types.BuiltinFunctionType, types.MethodWrapperType):
            self._note(self._where, value.__qualname__)

    def _function(self, function):
        name = f"{function.__module__}.{function.__qualname__}"
        if function.__code__.co_filename in _GENERATES_REPR:
            self._note(name, "of fields")
            return
        before, self._where = self._where, name
        if _dependencies._is_pure(function.__module__):
            self._note(name, "of a library")
        else:
            names = _dependencies._names(function.__code__)
            if impure := names & _OF_THE_PROCESS:
                self._unknown(f"{name} uses {min(impure)}")
            if impure := names & _dependencies._IMPURE:
                self._unknown(f"{name} uses {min(impure)}")
            self._note(name, _code(function.__code__))
        super()._function(function)
        self._where = before

    def _read(self, mapping, key, names=frozenset()):
        before = self._where
        self._where = f"{before.partition(': ')[0]}: {key}"
        self._note(self._where, "read")
        super()._read(mapping, key, names)
        self._where = before

    def _class(self, cls):
        self._note(self._where, [f"{c.__module__}.{c.__qualname__}" for c in cls.__mro__])
        super()._class(cls)


@functools.lru_cache(1024)
def _code(code):
    """What of code decides about what it does: no lines, no files."""
    return repr(
        (
            *(code.co_code, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars),
            *(code.co_flags, code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount),
            *(code.co_exceptiontable, code.co_qualname),
            tuple(map(_constant_text, code.co_consts)),
        )
    )


def _constant_text(value):
    if type(value) is types.CodeType:
        return _code(value)
    if type(value) is tuple:
        return f"({', '.join(map(_constant_text, value))})"
    if type(value) is frozenset:
        return f"frozenset({sorted(map(_constant_text, value))})"
    return f"{type(value).__name__}:{value!r}"


@functools.cache
def of_installation():
    """Of Python, NumPy, jaxlib and the files of weft, which functions use without being followed.

    Of weft's files, times and sizes count, so that its sources may be edited.
    """
    from weft.runtime.compile import _machine

    found = []
    top = os.path.dirname(os.path.abspath(__file__))
    for folder, folders, files in os.walk(top):
        folders[:] = sorted(name for name in folders if not name.startswith("__"))
        for name in sorted(files):
            if name.endswith((".py", ".so")):
                status = os.stat(os.path.join(folder, name))
                found.append((name, status.st_size, status.st_mtime_ns))
    versions = (sys.version, np.__version__, _machine())
    return blake2b(repr((versions, found)).encode()).hexdigest()
