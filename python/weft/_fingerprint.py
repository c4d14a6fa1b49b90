"""What a function is, by content: the same in another process exactly if a trace would be.

All that code can get at is followed: what it names (`weft._code_reads`), and of each object all
that can be read of it. An object gets a label where it is first met, and where it is met again that
label stands for it: so a digest tells also which of several equal things it is. What libraries have
is known by name (`weft._libraries`). All kinds of objects that are understood are listed here; any
other (files, clocks, iterators, objects of classes in C, modules that are passed on) makes the
function unknown, and `why` says what it was.
"""

import abc
import collections
import contextlib
import dataclasses
import functools
import importlib
import importlib.util
import os
import reprlib
import sys
import types
from typing import Any

import numpy as np

from weft import _core, _libraries
from weft._code_reads import code_reads
from weft._jit import _TRACES
from weft.runtime.disk_cache import blake2b
from weft.runtime.pytree import PyTreeDef, registry

_LIMIT_BYTES = 1 << 26  # of all arrays that are closed over
_LIMIT = 100_000  # of objects
_PLAIN = (type(None), bool, int, float, complex, str, bytes, type(Ellipsis), type(NotImplemented))
_NUMBERS = (bool, int, float)
# Names that lead to things a digest cannot hold: lines, frames, addresses, whole modules.
_DENIED = frozenset(
    (
        *("__builtins__", "__closure__", "__code__", "__globals__", "__subclasses__"),
        *("__firstlineno__", "__static_attributes__", "co_filename", "co_firstlineno", "co_lines"),
        *("co_positions", "f_back", "f_builtins", "f_code", "f_globals", "f_lineno", "f_locals"),
        *("gi_frame", "cr_frame", "ag_frame", "tb_frame", "tb_lineno", "__traceback__"),
        *("__array_interface__", "__cuda_array_interface__", "ctypes", "unsafe_buffer_pointer"),
        *("_getframe", "_abc_impl"),
    )
)
# Names that lead to annotations, which are followed where code has one of them.
_OF_ANNOTATIONS = frozenset(
    (
        *("__annotations__", "__annotate__", "__annotate_func__", "__orig_bases__", "dataclass"),
        *("__dataclass_fields__", "__parameters__", "__type_params__", "fields", "make_dataclass"),
        *("get_annotations", "get_args", "get_origin", "get_original_bases", "get_type_hints"),
        *("getfullargspec", "register", "signature", "Signature", "singledispatch"),
    )
)
_ANNOTATIONS = frozenset(
    (
        *("__annotations__", "__annotations_cache__", "__annotate__", "__annotate_func__"),
        *("__orig_bases__", "__parameters__", "__type_params__"),
    )
)
# Of a class, what says where it stands, or what other attributes show.
_NOT_READ = frozenset(
    ("__dict__", "__weakref__", "__firstlineno__", "__static_attributes__", "_abc_impl")
)
# The __repr__ of a dataclass asks for identities, to end where objects hold each other.
_GENERATES_REPR = (dataclasses.__file__, reprlib.__file__)
_DESCRIPTORS = (
    *(types.MemberDescriptorType, types.GetSetDescriptorType, types.MethodDescriptorType),
    *(types.WrapperDescriptorType, types.ClassMethodDescriptorType),
)
_HEAP_TYPE = 1 << 9
_subclasses: Any = sys.modules["_abc"]  # which classes were registered with abstract ones
# Attributes with which weft keeps traces at functions.
_OF_WEFT = frozenset((_TRACES,))
_ABSENT = object()


class _Unknown(Exception):
    """What a function depends on cannot be told."""


class Fingerprint:
    """Of functions and values. Attributes: known, why (what is unknown, a text), parts (a dict of
    digests by name), arrays (those of weft that were met, in an order that depends on nothing
    else), jitted (functions that were met).

    `traced_since`: jitted functions whose traces are of what is read now. Others that have traces
    may have read something else, so nothing is known of them.
    """

    def __init__(self, values, traced_since=()):
        self.known, self.why = True, None
        self.arrays = []
        self.jitted = []
        self._traced_since = traced_since
        self._found: dict[str, list[str]] = {}  # what was found, by part
        self._labels: Any = {}  # by identity: the object, which so stays
        self._counts: dict[str, int] = {}  # of labels, by part
        self._pending: Any = collections.deque()  # (object, part, label)
        self._annotations: Any = []  # (part, function that notes them)
        self._are_annotations_read = False
        self._bytes = 0
        self._part = "an argument"
        try:
            for value in values:
                self._note(self._token(value))
            self._follow()
        except _libraries.Stateful as error:
            self.known, self.why = False, f"{self._part} reads {error}"
        except _Unknown as error:
            self.known, self.why = False, str(error)
        except Exception as error:  # of a user's metaclass or descriptor
            self.known, self.why = False, f"{self._part} raises {type(error).__name__}: {error}"
        self.parts = {
            name: blake2b(repr(found).encode(errors="surrogatepass")).hexdigest()
            for name, found in self._found.items()
        }
        self._labels = self._pending = self._annotations = None

    def _follow(self):
        for name, value in _libraries.changes():
            self._part = name
            self._note("replaced", self._token(value))
        while self._pending or (self._are_annotations_read and self._annotations):
            if not self._pending:
                self._part, note = self._annotations.pop(0)
                note()
                continue
            value, self._part, label = self._pending.popleft()
            self._note(label, type.__getattribute__(type(value), "__qualname__"))
            self._describe(value)

    # ---- Notes

    def _note(self, *tokens):
        self._found.setdefault(self._part, []).extend(tokens)

    def _unknown(self, why):
        raise _Unknown(why)

    def _words(self, words):
        if denied := _DENIED & words:
            self._unknown(f"{self._part} uses {min(denied)}")
        if not self._are_annotations_read and _OF_ANNOTATIONS & words:
            self._are_annotations_read = True

    def _token(self, value):
        """What stands for a value where it is met; what it holds is described later."""
        kind = type(value)
        if kind in _PLAIN:
            return self._plain(kind, value)
        known = self._labels.get(id(value))
        if known is not None:
            return known[1]
        if len(self._labels) >= _LIMIT:
            self._unknown("it reads too much")
        label = self._library_label(value, kind)
        if label is None:
            number = self._counts[self._part] = self._counts.get(self._part, 0) + 1
            label = f"<{self._part} {number}>"
            self._pending.append((value, self._part, label))
        self._labels[id(value)] = value, label
        return label

    def _plain(self, kind, value):
        if kind is str and value in _DENIED:
            self._unknown(f"{self._part} holds the name {value}")
        if kind is str and value in _OF_ANNOTATIONS:
            self._are_annotations_read = True
        if kind is int:
            return f"{value:#x}"
        return f"{kind.__name__}:{value!r}"

    def _library_label(self, value, kind):
        if kind is types.ModuleType:
            self._unknown(f"{self._part} holds the module {value.__name__}")
        if value is registry:
            return "library registry"
        name = _libraries.name_of(value)
        if name is None:
            return None
        if isinstance(value, type):
            if value in registry.registered or _libraries.can_change(value):
                return None
        elif getattr(value, "__dict__", None):
            return None
        return f"library {name}"

    def _tokens(self, values):
        self._note(*map(self._token, values))

    # ---- Kinds of objects

    def _of_library(self, name, value):
        """What users may have added to an object of a library."""
        self._note("library", name)
        if isinstance(value, type):
            self._registered(value)
            if isinstance(value, abc.ABCMeta):
                self._abstract(value, is_library=True)
            for key, added in _libraries.additions(value):
                self._note(key, self._token(added))
        else:
            self._dict(vars(value))

    def _describe(self, value):
        kind = type(value)
        describe = _KINDS.get(kind)
        name = _libraries.name_of(value)
        if name is not None:
            self._of_library(name, value)
        elif describe is not None:
            describe(self, value)
        elif kind in _DESCRIPTORS:
            self._note(self._token(value.__objclass__), value.__name__)
        elif isinstance(value, type):
            self._class(value)
        elif isinstance(value, np.dtype):
            self._note(str(value), repr(value.descr if value.names else value.str))
            if value.metadata:
                self._unknown(f"{self._part} is a dtype with metadata")
        elif isinstance(value, np.generic) and kind.__module__ in ("numpy", "ml_dtypes"):
            self._note(str(value.dtype), repr(value.tobytes()))
            if value.dtype.kind == "O":
                self._unknown(f"{self._part} is an object of NumPy")
        else:
            self._instance(value)

    def _sequence(self, value):
        self._note(str(len(value)))
        self._tokens(value)

    def _mapping(self, value):
        self._note(str(len(value)))
        for key, x in value.items():
            self._note(self._token(key), self._token(x))

    def _set(self, value):
        members = set(map(type, value))
        if not members <= set(_PLAIN):
            self._unknown(f"{self._part} is a set of objects")
        tokens = list(map(self._token, value))
        # Texts come in an order that differs from process to process.
        if not members <= set(_NUMBERS) and sys.flags.hash_randomization:
            tokens.sort()
        self._note(str(len(tokens)), *tokens)

    def _bytearray(self, value):
        self._note(repr(bytes(value)))

    def _range(self, value):
        self._note(repr(value))

    def _slice(self, value):
        self._tokens((value.start, value.stop, value.step))

    def _partial(self, value):
        self._tokens((value.func, value.args, value.keywords, vars(value)))

    def _method(self, value):
        self._tokens((value.__func__, value.__self__))

    def _wrapper(self, value):
        self._tokens((value.__func__, vars(value)))

    def _property(self, value):
        self._tokens((value.fget, value.fset, value.fdel, value.__doc__))

    def _cached_property(self, value):
        self._tokens((value.func, value.attrname, value.__doc__))

    def _deque(self, value):
        self._note(repr(value.maxlen))
        self._sequence(value)

    def _namespace(self, value):
        self._dict(vars(value))

    def _generic(self, value):
        self._tokens((value.__origin__, value.__args__))

    def _union(self, value):
        self._note(self._token(value.__args__))

    def _builtin(self, value):
        owner = value.__self__
        self._note(value.__qualname__)
        if owner is None or isinstance(owner, types.ModuleType):
            self._unknown(f"{self._part} uses {value.__module__}.{value.__qualname__}")
        self._note(self._token(owner))

    def _bound_wrapper(self, value):
        self._note(value.__name__, self._token(value.__self__))

    def _tuple_getter(self, value):
        self._note(repr(value.__reduce__()[1]))

    def _tree(self, value):
        self._note(str(value))
        self._tokens((value.node_data(), value.children()))

    def _numpy_array(self, value):
        self._count(value)
        flags = value.flags
        self._note(repr(value.shape), repr(value.strides), self._token(value.dtype))
        self._note(repr((flags.writeable, flags.aligned)))
        if value.dtype.hasobject:
            self._tokens(value.ravel().tolist())
        else:
            self._note(blake2b(np.ascontiguousarray(value).tobytes()).hexdigest())

    def _array(self, array):
        self._count(array)
        try:
            content = np.asarray(array)
        except Exception:
            self._unknown(f"{self._part} is an array whose values are elsewhere")
        digest = blake2b(np.ascontiguousarray(content).tobytes()).hexdigest()
        self._note(repr(array.shape), str(array.dtype), repr(array.weak_type), digest)
        self._note(repr(array.committed), repr(array.sharding))
        self.arrays.append(array)

    def _count(self, array):
        self._bytes += array.nbytes
        if self._bytes > _LIMIT_BYTES:
            self._unknown(f"{self._part}: arrays of more than {_LIMIT_BYTES >> 20} MiB")

    def _cached_function(self, value):
        # What a user's function has cached may be of an earlier state.
        function = value.__wrapped__
        if type(function) is not types.FunctionType or _libraries.code_of(function) is None:
            self._unknown(f"{self._part} is a cached function")
        self._note(self._token(function))

    def _jit_function(self, value):
        self.jitted.append(value)
        if value._cache_info()[2] and not any(value is known for known in self._traced_since):
            self._unknown(f"{self._part} is a jitted function that was traced before")
        self._note("options", self._token(tuple(value._options)))
        self._dict(vars(value))

    def _public_function(self, value):
        self._tokens((value.implementation, vars(value)))

    def _dict(self, known):
        """Attributes, in their order."""
        for key, x in known.items():
            if key not in _OF_WEFT:
                self._note(self._token(key), self._token(x))

    # ---- Functions

    def _function(self, function):
        code = function.__code__
        if code.co_filename in _GENERATES_REPR:
            self._note("repr", self._token(getattr(function, "__wrapped__", None)))
            return
        library = _libraries.code_of(function)
        if library is not None:
            # What it reads of its module is a matter of the library.
            self._note(library, code_reads(code).text)
            self._tokens(map(_contents, function.__closure__ or ()))
        else:
            self._code(function)
        self._tokens((function.__defaults__, function.__kwdefaults__))
        self._note(*map(str, (function.__module__, function.__name__, function.__qualname__)))
        self._note(self._token(function.__doc__))
        if function.__dict__:
            self._dict(function.__dict__)
        if library is None:
            self._annotations.append((self._part, lambda: self._annotated(function)))

    def _annotated(self, function):
        if sys.version_info < (3, 14):
            self._dict(function.__annotations__)
        else:  # to ask for annotations runs code
            self._note(self._token(function.__annotate__))
        self._note(self._token(getattr(function, "__type_params__", ())))

    def _code(self, function):
        code = function.__code__
        own = f"{function.__module__}.{function.__qualname__}"
        label, self._part = self._labels[id(function)][1], own
        reads = code_reads(code)
        self._words(reads.words)
        self._note(label, reads.text)
        builtin = function.__builtins__
        for name, chains in sorted(reads.globals.items()):
            if name in function.__globals__:
                value = function.__globals__[name]
            elif name == "hash" and function.__name__ == "__hash__":
                continue  # for tables, which find what is equal
            else:
                value = builtin.get(name, _ABSENT)
            self._read(f"{own}: {name}", value, chains)
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            chains = reads.free.get(name, ())
            self._read(f"{own}: {name}", _contents(cell), chains)
        for key, chains in sorted(reads.imports.items(), key=repr):
            self._import(function, key, chains)
        self._part = own

    def _read(self, part, value, chains):
        self._part = part
        if value is _ABSENT:
            self._note("absent")
        elif type(value) is types.ModuleType:
            self._module(value, chains)
        else:
            self._note(self._token(value))

    def _module(self, module, chains):
        known = vars(module)
        name = known.get("__name__")
        is_library = _libraries.is_library(module)
        self._note("module", str(name))
        by_name = {}
        for chain in chains:
            if not chain:
                self._unknown(f"{self._part} is the module {name}, which is passed on")
            by_name.setdefault(chain[0], []).append(chain[1:])
        for attribute, rest in by_name.items():
            if not attribute:  # imported, and maybe not used
                continue
            part = f"{self._part.partition(': ')[0]}: {attribute}"
            if attribute == "__dict__":
                self._unknown(f"{self._part} is the module {name}, all of which is read")
            if is_library and _libraries.is_stateful(name, attribute):
                self._unknown(f"{self._part} reads {name}.{attribute}")
            value = known.get(attribute, _ABSENT)
            outer = self._part
            if value is _ABSENT and "__getattr__" in known:
                if is_library:  # which loads it now, or when it is traced
                    value = getattr(module, attribute, _ABSENT)
                else:
                    self._part = part
                    self._note("asked for", self._token(known["__getattr__"]))
            self._note(attribute)
            self._read(part, value, rest)
            self._part = outer

    def _import(self, function, key, chains):
        level, name, names = key
        known = function.__globals__
        self._part = f"{function.__module__}.{function.__qualname__}: {name or '.'}"
        self._note(self._token(function.__builtins__.get("__import__") is __import__))
        if level:
            package = known.get("__package__")
            if type(package) is not str:
                self._unknown(f"{self._part} is imported relative to an unknown package")
            self._note(package)
            try:
                name = importlib.util.resolve_name("." * level + name, package)
            except ImportError:
                self._unknown(f"{self._part} is imported from beyond its package")
        module = sys.modules.get(name)
        if module is None and _libraries.is_installed(name):
            with contextlib.suppress(ImportError):
                module = importlib.import_module(name)
        if type(module) is not types.ModuleType:
            self._unknown(f"{self._part} imports {name}, which is not loaded yet")
        if not names:  # `import a.b` gives a
            module = sys.modules.get(name.partition(".")[0])
            if type(module) is not types.ModuleType:
                self._unknown(f"{self._part} imports {name}, which is not loaded yet")
        elif "__path__" in vars(module):
            for chain in chains:
                if chain[0] not in vars(module) and not _libraries.is_library(module):
                    self._unknown(f"{self._part} imports {chain[0]}, which is not loaded yet")
        self._module(module, chains)

    # ---- Classes, and their instances

    def _class(self, cls):
        if not _is_of_python(cls):
            self._unknown(f"{self._part} is the class {cls.__module__}.{cls.__qualname__}, in C")
        self._registered(cls)
        self._note(cls.__qualname__, str(cls.__module__))
        self._tokens((*type.__getattribute__(cls, "__mro__")[1:], type(cls)))
        if isinstance(cls, abc.ABCMeta):
            self._abstract(cls)
        annotations = []
        for key, value in vars(cls).items():
            if key in _ANNOTATIONS:
                annotations.append((key, value))
            elif key not in _NOT_READ:
                self._note(key, self._token(value))
        if annotations:
            self._annotations.append((self._part, lambda: self._dict(dict(annotations))))

    def _registered(self, cls):
        """What takes apart the class as a node of trees, and puts it together."""
        functions = registry.registered.get(cls)
        if functions is not None:
            self._note("node", *map(self._token, functions))

    def _abstract(self, cls, is_library=False):
        """Classes that were registered as subclasses, also with classes that derive from this; of
        an abstract class of a library their names only."""
        classes, registered = [cls], {}
        while classes:
            one = classes.pop()
            if isinstance(one, abc.ABCMeta):
                for reference in _subclasses._get_dump(one)[0]:
                    if (c := reference()) is not None:
                        registered[f"{c.__module__}.{c.__qualname__}", id(c)] = c
            classes += type.__subclasses__(one)
        for (name, _), c in sorted(registered.items(), key=lambda item: item[0][0]):
            self._note("registered", name if is_library else self._token(c))

    def _instance(self, value):
        cls = type(value)
        mro = type.__getattribute__(cls, "__mro__")
        for c in mro:
            if c in _BASES:
                describe = _BASES[c]
                break
            if not _is_of_python(c):
                self._unknown(f"{self._part} is a {cls.__module__}.{cls.__qualname__}")
        else:
            self._unknown(f"{self._part} is a {cls.__module__}.{cls.__qualname__}")
        self._note(self._token(cls))
        describe(self, value)
        derived = getattr(cls, "_follows_from_others", ()) if _libraries.name_of(cls) else ()
        for c in mro:
            for name, member in vars(c).items():
                if type(member) is types.MemberDescriptorType and member.__objclass__ is c:
                    if c not in _BASES:
                        self._slot(c, name, member, value)
                elif name == "__dict__" and type(member) is types.GetSetDescriptorType:
                    known = member.__get__(value)
                    self._dict({k: x for k, x in known.items() if k not in derived})

    def _slot(self, cls, name, member, value):
        try:
            content = member.__get__(value)
        except AttributeError:
            content = _ABSENT
        if cls is dataclasses.Field and name == "type":
            self._annotations.append((self._part, lambda: self._note(self._token(content))))
        else:
            self._note(name, "absent" if content is _ABSENT else self._token(content))


def _contents(cell):
    try:
        return cell.cell_contents
    except ValueError:
        return _ABSENT


def _is_of_python(cls):
    """Whether a class statement made it: instances then hold what attributes show, and what they
    hold of a base."""
    if not type.__getattribute__(cls, "__flags__") & _HEAP_TYPE:
        return False
    slots = _slots(vars(cls).get("__slots__", ()))
    for name, member in vars(cls).items():
        kind = type(member)
        if kind in _DESCRIPTORS and member.__objclass__ is cls:
            if kind is types.MemberDescriptorType and name in slots:
                continue
            if kind is types.GetSetDescriptorType and name in ("__dict__", "__weakref__"):
                continue
            return False
        if kind is types.BuiltinFunctionType and member.__self__ is cls:
            return False
    return True


def _slots(names):
    return (names,) if isinstance(names, str) else tuple(names)


def _base(convert):
    def describe(fingerprint, value):
        fingerprint._note(fingerprint._token(convert(value)))

    return describe


# What instances of classes hold besides attributes, by the class of C that they derive from.
_BASES: dict[type, Any] = {
    object: lambda fingerprint, value: None,
    int: _base(int.__int__),
    float: _base(float.__float__),
    complex: _base(complex.__complex__),
    str: _base(str.__str__),
    bytes: _base(lambda value: bytes.__getitem__(value, slice(None))),
    tuple: _base(lambda value: tuple(tuple.__iter__(value))),
    list: _base(lambda value: list(list.__iter__(value))),
    dict: _base(lambda value: list(dict.items(value))),
    collections.OrderedDict: _base(lambda value: list(collections.OrderedDict.items(value))),
    collections.defaultdict: _base(lambda value: [value.default_factory, *dict.items(value)]),
    set: _base(lambda value: frozenset(set.__iter__(value))),
    functools.partial: _base(lambda value: (value.func, value.args, value.keywords)),
    frozenset: _base(lambda value: frozenset(frozenset.__iter__(value))),
}
_KINDS: Any = {
    tuple: Fingerprint._sequence,
    list: Fingerprint._sequence,
    dict: Fingerprint._mapping,
    types.MappingProxyType: Fingerprint._mapping,
    set: Fingerprint._set,
    frozenset: Fingerprint._set,
    bytearray: Fingerprint._bytearray,
    range: Fingerprint._range,
    slice: Fingerprint._slice,
    collections.deque: Fingerprint._deque,
    types.SimpleNamespace: Fingerprint._namespace,
    types.FunctionType: Fingerprint._function,
    functools.partial: Fingerprint._partial,
    types.MethodType: Fingerprint._method,
    staticmethod: Fingerprint._wrapper,
    classmethod: Fingerprint._wrapper,
    property: Fingerprint._property,
    functools.cached_property: Fingerprint._cached_property,
    types.GenericAlias: Fingerprint._generic,
    types.UnionType: Fingerprint._union,
    types.BuiltinFunctionType: Fingerprint._builtin,
    types.MethodWrapperType: Fingerprint._bound_wrapper,
    type(vars(collections.namedtuple("_", "x"))["x"]): Fingerprint._tuple_getter,
    PyTreeDef: Fingerprint._tree,
    functools._lru_cache_wrapper: Fingerprint._cached_function,
    np.ndarray: Fingerprint._numpy_array,
    _core.Array: Fingerprint._array,
    _core.JitFunction: Fingerprint._jit_function,
    _core.PublicFunction: Fingerprint._public_function,
}


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
