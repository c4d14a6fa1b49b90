"""`weft.aot`: functions whose traces are kept in files beside their sources, for later processes.

A file is found by the function's name, the types of the arguments and the settings, and used if all
that the function reads is by its content what it was (`weft._fingerprint`). What cannot be told
means a trace, and `explain()` says what it was.
"""

import contextlib
import os
import pickle
import time
from typing import Any

import numpy as np

from weft import _core
from weft._fingerprint import Fingerprint, of_installation
from weft._jit import NOT_GIVEN, jit
from weft.runtime import devices, disk_cache, processes
from weft.runtime.disk_cache import blake2b

_FOLDER = "__weftcache__"
_SMALL = 1 << 20  # bytes of arrays that a trace made and a file may hold


def aot(fun=NOT_GIVEN, /, *, path=None, **options):
    """A function under `jit` whose traces are kept for later processes, which do not run it again.

    At its first call with arguments of some types a process looks for the trace in a file; if there
    is none, or anything that the function reads has changed, it is traced as `jit` does, and the
    trace is written. What counts as read: the bytecode of the function and of those that it calls,
    closures, globals and their absence, defaults, attributes and annotations, classes, modules,
    static values, arrays that it closes over, settings, and the versions of Python, NumPy, jaxlib
    and weft. All are compared by content, and a function of which something cannot be told (files,
    clocks, random numbers of Python's, objects of classes in C, refs, callbacks, meshes) is traced
    in every process; `explain()` says what it was. What the function does besides computing, as
    printing, happens when it is traced only.

    Args:
      fun: the function, or what `jit` made of one; without it, a decorator is returned.
      path: the directory of the files; by default WEFT_AOT_DIR of the environment, else
        `__weftcache__` beside the source. Files and directories that others own or can write are
        not read. It can be deleted at any time.
      options: those of `jit`.

    Returns what `jit` does. Raises TypeError for options beside a function that is jitted.

    Examples:
      >>> import tempfile
      >>> with tempfile.TemporaryDirectory() as folder:
      ...     double = weft.aot(lambda x: 2 * x, path=folder)
      ...     print(double(3.0))
      6.0
    """
    if fun is NOT_GIVEN:
        return lambda f: aot(f, path=path, **options)
    if isinstance(fun, _core.JitFunction):
        if options:
            raise TypeError("aot: expected the options of a jitted function to be given to jit")
        jitted: Any = fun
    else:
        jitted = jit(fun, **options)
    jitted._keep_in(_Traces(jitted.__wrapped__, jitted._options, path))
    return jitted


class _Traces:
    """The store of one function; what the core asks for traces."""

    def __init__(self, function, options, path):
        self._function = function
        self._options = options
        self._path = path
        self._looked = {}  # by call, what was read before the trace
        # Of the last of these: what was read, and the jitted functions that were met.
        self._last = None, ()

    def load(self, described):
        """(graph, captured arrays, structure of the result or None, a result with numbers for its
        leaves, weak types, whether it has no rules of derivatives), or why there is none."""
        before, jitted = self._last
        read = self._read(described, jitted)
        if read.known and before is not None and before != read.parts:
            read = self._read(described)  # what was traced since was something else
        if read.known:
            self._last = read.parts, read.jitted
        self._looked[self._key(described)] = read.parts
        if not read.known:
            return f"not looked for: {read.why}"
        place = self._store()
        if place is None:
            return "not looked for: there is no source file, and no path"
        try:
            data = place.get(_preimage(self._key(described), read.parts))
        except (OSError, disk_cache.Unusable) as error:
            return f"not looked for: {error}"
        if data is None:
            return self._why_none(place, described, read.parts)
        try:
            return _unpacked(data, read.arrays)
        except Exception as error:  # classes of the result that are no more
            return f"not used: {type(error).__name__}: {error}"

    def save(self, described, graph, captures, out_tree, weak, runs_only):
        """None, or why the trace is not kept."""
        read = self._read(described, self._last[1])
        place = self._store()
        if not read.known or place is None:
            return None  # it was not looked for, and that was told
        key = self._key(described)
        if self._looked.pop(key, None) != read.parts:
            return "not stored: the trace has changed what the function reads"
        try:
            data = _packed(graph, captures, (out_tree, weak, runs_only), read.arrays)
        except Exception as error:
            return f"not stored: {error}"
        about = {
            "name": self._name(),
            "created": time.time(),
            "call": blake2b(key).hexdigest(),
            "parts": read.parts,
        }
        try:
            for stale in self._others(place, about["call"]):
                place.clear({stale})
            place.put(about, _preimage(key, read.parts), data)
        except (OSError, disk_cache.Unusable) as error:
            return f"not stored: {error}"
        return None

    # ---- What is read, and where it is kept

    def _read(self, described, traced_since=()):
        _, structure, statics, _ = described
        values = [self._function, *statics]
        if structure is not None:
            values += _classes(structure[0])
        return Fingerprint(values, traced_since)

    def _name(self):
        function = self._function
        return f"{function.__module__}.{getattr(function, '__qualname__', type(function).__name__)}"

    def _key(self, described):
        leaves, structure, _, settings = described
        nested = None if structure is None else (str(structure[0]), structure[1])
        of_devices = [(d.platform, d.device_kind) for d in devices.devices()]
        if processes.joined() is not None:
            of_devices = [os.urandom(16)]  # what several processes agree on is not in the file
        told = (self._name(), leaves, nested, settings, repr(self._options), of_devices)
        return repr((*told, of_installation())).encode()

    def _store(self):
        path = self._path or os.environ.get("WEFT_AOT_DIR")
        if not path:
            code = getattr(self._function, "__code__", None)
            if code is None or not os.path.isfile(code.co_filename):
                return None
            path = os.path.join(os.path.dirname(os.path.abspath(code.co_filename)), _FOLDER)
        return disk_cache.Store(os.path.abspath(path))

    def _others(self, place, call):
        """The names of files of the same call, of earlier states of the function."""
        return [name for name, _, about, _ in place.entries() if about.get("call") == call]

    def _why_none(self, place, described, parts):
        call = blake2b(self._key(described)).hexdigest()
        with contextlib.suppress(OSError, disk_cache.Unusable):
            for _, _, about, _ in place.entries():
                if about.get("call") == call:
                    before = about.get("parts", {})
                    changed = [n for n in {**parts, **before} if parts.get(n) != before.get(n)]
                    return f"changed since a trace was stored: {', '.join(changed[:4])}"
        return "no trace was stored"


def _preimage(key, parts):
    return key + repr(sorted(parts.items())).encode()


def _classes(tree):
    """The classes of a structure that are no containers of Python's, and what they hold of it."""
    found = []
    data = tree.node_data()
    if data is not None and data[0] not in (tuple, list, dict, type(None)):
        found += data
    for child in tree.children():
        found += _classes(child)
    return found


def _packed(graph, captures, rest, arrays):
    text = str(graph)
    if _core.parse(text).structural_hash != graph.structural_hash:
        raise ValueError("the program has no exact text")
    held, size = [], 0
    for array in captures:
        where = next((i for i, known in enumerate(arrays) if known is array), None)
        if where is None:
            value = np.asarray(array)
            size += value.nbytes
            if size > _SMALL:
                raise ValueError(f"it makes arrays of more than {_SMALL >> 20} MiB while traced")
            where = (value, array.weak_type)
        held.append(where)
    return pickle.dumps((text, held, *rest))


def _unpacked(data, arrays):
    text, held, out_tree, weak, runs_only = pickle.loads(data)
    captures = [arrays[x] if isinstance(x, int) else _made(*x) for x in held]
    result = None if out_tree is None else out_tree.unflatten(range(out_tree.num_leaves))
    return _core.parse(text), captures, out_tree, result, weak, runs_only


def _made(value, weak):
    return _core.put(value, weak, _core.current_placement(), False)
