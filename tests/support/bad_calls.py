"""Calls every public function and method with arguments that it should not get.

usage: bad_calls.py [--seed N] [--calls N] [--first N] [--jobs N] [--batch N] [--show] [--of NAME]
       bad_calls.py --only INDEX     makes one call of the seed in this process, with its traceback

Call number i of a seed is always the same call. Calls are made in batches, each in a process of
its own with a bound on its memory and on the time of a call. A batch that dies or hangs is made
again until the one call, or the shortest run of calls, that brings it down is known. What a call
may do is return, or raise an error that says whose mistake it is (`FINE`); everything else is
printed, and the exit status is 1. `--of` keeps to the functions whose names begin so, and makes
other calls than without it.
"""

import argparse
import concurrent.futures
import decimal  # noqa: F401 (the pools' expressions use it)
import faulthandler
import fractions  # noqa: F401 (likewise)
import gc
import importlib
import inspect
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import traceback
import types
import warnings
from collections import namedtuple

import numpy as np

import weft
import weft.core
import weft.extend.core
import weft.ffi
import weft.interpreters.ad
import weft.interpreters.batching
import weft.interpreters.mlir
import weft.lax.linalg
import weft.numpy as wnp
import weft.test_util

SECONDS = 40  # of one call, on a busy machine
HEADROOM = 1536 << 20  # bytes above what the process has mapped when it begins
REFRESH = 100  # calls that share their arguments

MODULES = (
    *("weft", "weft.numpy", "weft.lax", "weft.random", "weft.nn", "weft.tree_util", "weft.tree"),
    *("weft.extend", "weft.extend.core", "weft.core", "weft.debug", "weft.compiler"),
    *("weft.dtypes", "weft.test_util", "weft.custom_derivatives", "weft.ad_checkpoint"),
    *("weft.interpreters.ad", "weft.interpreters.batching", "weft.interpreters.mlir"),
    *("weft.experimental", "weft.config", "weft.errors", "weft.ffi", "weft.lax.linalg"),
    *("weft.numpy.fft", "weft.numpy.linalg"),
)
PREFIXES = [""]  # of the names that are called

# They may run as long as their arguments say, so here they are only traced.
UNBOUNDED = {"fori_loop", "while_loop", "scan", "map", "associative_scan"}


class Foreign(Exception):
    """Raised by the objects below; passing it on is right."""


FINE = (
    *(Foreign, weft.errors.WeftError, TypeError, ValueError, LookupError, AttributeError),
    *(ArithmeticError, NotImplementedError, RecursionError, MemoryError, AssertionError),
    *(BufferError, StopIteration),
)


# Objects that lie about what they are.


class LyingArray:
    shape = (2, -1)
    dtype = "f4"
    ndim = 2**70
    size = -1
    weak_type = None

    def __array__(self, dtype=None, copy=None):
        return "no array"

    def __len__(self):
        return 3

    def __getitem__(self, i):
        raise IndexError(i)


class WeftArrayOf:
    def __init__(self, value):
        self.value = value

    def __jax_array__(self):
        return self.value


class Index:
    def __init__(self, value):
        self.value = value

    def __index__(self):
        return self.value


class Raises:
    def _no(self, *args, **kwargs):
        raise Foreign("as it was told to")

    __array__ = __jax_array__ = __len__ = __index__ = __float__ = __int__ = __bool__ = _no
    __eq__ = __hash__ = __iter__ = __getitem__ = __call__ = __str__ = _no


class Clears:
    """Empties the caches whenever it is compared."""

    def __eq__(self, other):
        weft.clear_caches()
        return True

    def __hash__(self):
        weft.clear_caches()
        return 7


class LongLength:
    def __len__(self):
        return sys.maxsize

    def __getitem__(self, i):
        raise Foreign(i)

    def __iter__(self):
        return iter((1.0, 2.0))


class NegativeLength(LongLength):
    def __len__(self):
        return -1  # noqa: PLE0303


class Interface:
    """Offers memory that is not there."""

    __array_interface__ = types.MappingProxyType(
        {"shape": (-3,), "typestr": "<f4", "data": (0, False), "version": 3}
    )


class Exports:
    def __dlpack__(self, **kwargs):
        return object()

    def __dlpack_device__(self):
        return (99, -1)


class IntChild(int):
    def __index__(self):
        return -(2**70)


class FloatChild(float):
    def __float__(self):
        raise Foreign("a float that is none")


class TupleChild(tuple):
    def __len__(self):
        return 10**9


class DictChild(dict):
    def keys(self):
        return [3, "a", None]


@weft.tree_util.register_pytree_node_class
class ChangingNode:
    """Flattens to other leaves each time."""

    count = 0

    def tree_flatten(self):
        ChangingNode.count += 1
        return [1.0] * (ChangingNode.count % 3), ChangingNode.count % 2

    @classmethod
    def tree_unflatten(cls, aux, children):
        return cls()


@weft.tree_util.register_pytree_node_class
class WrongNode(ChangingNode):
    def tree_flatten(self):
        return 5


@weft.tree_util.register_pytree_node_class
class RecursiveNode(ChangingNode):
    def tree_flatten(self):
        return [self], None


Pair = namedtuple("Pair", "left right")


def _dead_tracer(transform):
    kept = []
    transform(lambda x: kept.append(x) or x.sum())(wnp.ones((2, 3)))
    return kept[0]


def _deleted(x):
    x.delete()
    return x


def _donated():
    x = wnp.ones((2, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        weft.jit(lambda x: x + 1, donate_argnums=0)(x)
    return x


def _recursive(kind):
    if kind is list:
        out = []
        out.append(out)
        return out
    out = {}
    out["a"] = out
    return out


def _deep(levels):
    out = 1.0
    for i in range(levels):
        out = [out] if i % 2 else (out,)
    return out


def _reads(text):
    """A pool whose entries are named by the expressions that make them."""
    return {line.strip(): None for line in text.strip().splitlines()}


# Pools by what a parameter wants; `ANY` holds what no parameter wants.
POOLS = {
    "array": _reads("""
        wnp.ones((2, 3))
        wnp.arange(4.0)
        wnp.eye(3)
        wnp.asarray(2.0)
        wnp.asarray([3, 1, 2])
        wnp.asarray([[True, False], [False, True]])
        wnp.ones((2, 2), np.complex64)
        wnp.ones((2, 3, 4), weft.dtypes.bfloat16)
        np.ones((2, 3), np.float32)
        wnp.zeros((0, 3))
        1.5
        2
        [1.0, 2.0, 3.0]
    """),
    "function": _reads("""
        lambda *a: a[0]
        lambda *a: wnp.sum(a[-1])
        lambda *a: a
        lambda x: wnp.sin(x)
        lambda x, y: x + y
        lambda x, y: (x, y)
        lambda x: x > 0
        weft.jit(lambda x: x * 2)
        lambda: 3
        lambda *a: None
        lambda *a: [a, _recursive(list)]
        lambda *a: Raises()
        lambda *a: a[0].delete()
        Raises()._no
        wnp.add
        np.sin
        int
    """),
    "axis": _reads("""
        0
        -1
        1
        None
        (0,)
        (0, 1)
        (0, 0)
        2**31
        -2**31 - 1
        2**63
        -2**63
        2**200
        (0, 2**64)
        "i"
        1.0
        True
        float("nan")
        [0, 1]
        (-1, 1, 0)
        Index(0)
        Index(2**63)
        range(10**9)
    """),
    "size": _reads("""
        3
        (2, 3)
        0
        ()
        1
        -1
        (-1,)
        (-1, -1)
        (2, -2)
        2**31
        2**31 - 1
        2**40
        2**62
        2**63 - 1
        2**63
        2**64
        -2**63
        -2**200
        2**200
        (2**32, 2**32)
        (2**31, 2**31, 2**31, 0)
        (0, 2**63 - 1)
        (0, 2**63)
        (3,) * 40
        (1,) * 70
        (1,) * 5000
        (2, 3.0)
        float("nan")
        float("inf")
        -0.0
        (None,)
        ((2,), (3,))
        wnp.asarray([2, 3])
        wnp.asarray(3)
        np.array([2, 3])
        np.int8(-3)
        np.uint64(2**64 - 1)
        Index(3)
        Index(2**63)
        True
    """),
    "dtype": _reads("""
        np.float32
        "int8"
        np.complex64
        bool
        int
        weft.dtypes.bfloat16
        "float64"
        np.dtype("int4") if "int4" in np.sctypeDict else "int4"
        "uint2"
        "float8_e4m3fn"
        "float4_e2m1fn"
        weft.dtypes.float0
        np.dtype("M8[s]")
        np.dtype("S3")
        np.dtype("O")
        np.dtype([("a", "f4")])
        np.dtype(">f4")
        np.dtype("f2")
        np.longdouble
        "no dtype"
        ""
        object
        str
        3
        weft.dtypes.SUPPORTED
    """),
    "key": _reads("""
        weft.random.key(0)
        weft.random.PRNGKey(3)
        weft.random.split(weft.random.key(1), 3)
        np.array([1, 2], np.uint32)
        wnp.asarray([1, 2, 3], np.uint32)
        0
        -1
    """),
    "text": _reads("""
        ""
        "add"
        "i,i->"
        "ij,jk->ik"
        "...,...->..."
        "i" * 1000
        "\\udcff"
        "a\\x00b"
        "high"
        "constant"
        "{ lambda ; a:f32[2]. let b:f32[2] = sin a in (b,) }"
        "{ lambda ; a:f32[99999999999999999999]. let in () }"
        "{" * 100_000
        "raise"
        "clip"
        "cpu"
        b"bytes"
    """),
    "graph": _reads("""
        weft.make_jaxpr(lambda x: wnp.sin(x) * 2)(1.0)
        weft.make_jaxpr(lambda x: wnp.sin(x) * 2)(1.0).jaxpr
        weft.jit(lambda x: x * 2 + 1).trace(np.ones(3, np.float32)).graph
        weft.jit(lambda x: x * 2 + 1).lower(np.ones(3, np.float32))
        weft.tree_util.tree_structure({"a": (1, [2, None])})
        weft.tree_util.tree_structure(3)
        weft.tree_util.Partial(wnp.add, 1.0)
        weft.core.ShapedArray((2,), np.dtype("float32"))
        weft.extend.core.Primitive("bad_calls")
        weft.devices()[0]
        weft.ShapeDtypeStruct((2, 3), np.float32)
    """),
    "any": _reads("""
        None
        True
        Ellipsis
        NotImplemented
        slice(2**200, -2**200, 0)
        slice(None)
        object()
        type
        int
        np
        weft
        3j
        float("nan")
        float("-inf")
        -0.0
        1e400
        2**31
        2**63
        2**64
        -2**63 - 1
        2**20000
        -1
        fractions.Fraction(1, 3)
        decimal.Decimal("NaN")
        []
        ()
        {}
        set()
        {1.0, 2.0}
        [None]
        [[1.0], [1.0, 2.0]]
        [[], [[]]]
        ["a", 1]
        {"a": 1.0, "b": [2.0, None]}
        {1: 1.0, "b": 2.0}
        Pair(1.0, (2.0,))
        _recursive(list)
        _recursive(dict)
        _deep(50)
        _deep(5_000)
        _deep(200_000)
        range(3)
        range(2**62)
        iter([1.0])
        (x for x in (1.0, 2.0))
        memoryview(b"abcd")
        bytearray(8)
        LyingArray()
        LyingArray
        WeftArrayOf(wnp.ones((2, 3)))
        WeftArrayOf("no array")
        WeftArrayOf(_recursive(list))
        Index(1)
        Index(2**63)
        Index("no number")
        Raises()
        Raises
        Clears()
        LongLength()
        NegativeLength()
        Interface()
        Exports()
        IntChild(1)
        FloatChild(1.0)
        TupleChild((1.0, 2.0))
        DictChild(a=1.0)
        ChangingNode()
        WrongNode()
        RecursiveNode()
        _dead_tracer(weft.jit)
        _dead_tracer(weft.grad)
        _dead_tracer(weft.vmap)
        _dead_tracer(weft.make_jaxpr)
        _deleted(wnp.ones((2, 3)))
        _donated()
        [_deleted(wnp.ones((2, 3))), _dead_tracer(weft.jit)]
        np.array("s")
        np.array(None)
        np.array([wnp.ones(2), None], object)
        np.array([1, 2], "M8[s]")
        np.ones(3, ">f4")
        np.ones(3, np.longdouble)
        np.zeros((2,), [("a", "f4")])
        np.broadcast_to(np.float32(1), (2**40,))
        np.broadcast_to(np.int8(1), (2**31, 2**31))
        np.zeros((0, 2**40), np.int8)
        np.ones((1,) * 30)
        np.lib.stride_tricks.as_strided(np.ones(4), (2, 2), (-8, 8), writeable=False) * 1
        np.ma.masked_array([1.0, 2.0], [True, False])
        np.float64(1e308)
        np.uint64(2**64 - 1)
        np.datetime64("NaT")
        wnp.asarray([1, -2], "int4")
        wnp.asarray([1, 0], "uint2")
        wnp.asarray([1.0], "float8_e4m3fn")
        wnp.asarray([float("nan"), float("inf")])
        wnp.zeros((0, 2**33))
        wnp.ones((1,) * 40)
        weft.ShapeDtypeStruct((2**40, 2**22), np.float32)
        weft.ShapeDtypeStruct((2**62,), np.int8)
        weft.Array
        wnp.ones((2, 3)).at
        weft.jit
    """),
}

# The pool of a parameter, by how its name begins.
HINTS = {
    "array": ("a", "x", "y", "operand", "lhs", "rhs", "m", "v", "arrays", "indices", "init"),
    "axis": ("axis", "axes", "dim", "source", "destination", "argnums", "permutation", "in_axes"),
    "size": ("shape", "size", "length", "num", "n", "k", "sizes", "limit", "start", "stride"),
    "function": ("f", "fun", "func", "body", "cond", "init_fun", "computation"),
    "dtype": ("dtype", "new_dtype", "preferred", "index_dtype", "element_type", "type"),
    "key": ("key", "seed"),
    "text": ("name", "mode", "method", "side", "subscripts", "text", "backend", "precision"),
    "graph": ("graph", "jaxpr", "treedef", "closed_jaxpr", "primitive", "program"),
}


def _hint(name):
    fits = [(len(p), pool) for pool, names in HINTS.items() for p in names if name.startswith(p)]
    return max(fits)[1] if fits else "array"


def _methods(owner):
    """Names of the class's methods and operators that a user may call."""
    left_out = {"__class__", "__new__", "__init_subclass__", "__subclasshook__", "__getattribute__"}
    left_out |= {"__setattr__", "__delattr__", "__dir__", "__del__", "__class_getitem__"}
    left_out |= {"parse_flags_with_absl"}  # reads the command line, with a package of its own
    return sorted(n for n in dir(owner) if n not in left_out and callable(getattr(owner, n, None)))


def targets():
    """(name, callable, pools of its parameters, names of those that go by name), all by name."""
    found = {}
    for module in map(importlib.import_module, MODULES):
        for name in sorted(n for n in dir(module) if not n.startswith("__")):
            value = getattr(module, name)
            if isinstance(value, types.ModuleType):
                continue
            if callable(value):
                found.setdefault(id(value), (f"{module.__name__}.{name}", value))
            ours = isinstance(value, type) and not issubclass(value, (BaseException, np.generic))
            if ours:
                for method in _methods(value):
                    f = getattr(value, method)
                    found.setdefault(id(f), (f"{module.__name__}.{name}.{method}", f))
    out = [(*entry, *_parameters(entry[1])) for entry in found.values()]
    for method in _methods(type(wnp.ones(1).at[0])):
        if not method.startswith("__"):

            def update(x, index, *args, _method=method, **kwargs):
                return getattr(x.at[index], _method)(*args, **kwargs)

            out.append((f"weft.Array.at.{method}", update, ["array", "axis", "array"], {}))
    out = [entry for entry in out if entry[0].startswith(tuple(PREFIXES))]
    return sorted(out, key=lambda entry: entry[0])


def _parameters(function):
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return ["array"] * 2, {}
    places, names = [], {}
    for p in parameters:
        if p.kind is p.VAR_POSITIONAL:
            places.append("array")
        elif p.kind is p.KEYWORD_ONLY or (p.kind is not p.VAR_KEYWORD and p.default is not p.empty):
            names[p.name] = _hint(p.name)
        elif p.kind is not p.VAR_KEYWORD:
            places.append("array" if p.name == "self" else _hint(p.name))
    return places, names


def plan(rng, every):
    """One call: the target, the way it is called, and (pool, expression) of each argument."""
    name, function, places, names = rng.choice(every)

    def draw(pool):
        fate = rng.random()
        pool = pool if fate < 0.8 else "any" if fate < 0.95 else rng.choice(list(POOLS))
        entries = list(POOLS[pool])
        most = 2 if pool != "any" else 1  # the entries that a parameter may well get come first
        return entries[int(len(entries) * rng.random() ** most)]

    places = list(places)
    if rng.random() < 0.1:
        places = places[:-1] if rng.random() < 0.5 else [*places, "any"]
    args = [draw(pool) for pool in places]
    chosen = [n for n in names if rng.random() < 0.35]
    kwargs = {n: draw(names[n]) for n in chosen}
    if rng.random() < 0.02:
        kwargs["no_such_parameter"] = draw("any")
    way = rng.choice(("plain", "plain", "plain", "plain", "jit", "grad", "vmap", "make_jaxpr"))
    if name.rpartition(".")[2] in UNBOUNDED:
        way = "make_jaxpr"
    return name, function, way, args, kwargs


def shown(name, way, args, kwargs):
    words = [*args, *(f"{n}={text}" for n, text in kwargs.items())]
    return f"{name}({', '.join(words)})" + ("" if way == "plain" else f" under {way}")


def perform(function, way, args, kwargs):
    if way == "plain":
        return function(*args, **kwargs)
    traced = [i for i, a in enumerate(args) if isinstance(a, (float, np.ndarray, weft.Array))]

    def call(*values):
        full = list(args)
        for i, value in zip(traced, values, strict=True):
            full[i] = value
        out = function(*full, **kwargs)
        if way != "grad":
            return out
        leaves = [x for x in weft.tree_util.tree_leaves(out) if hasattr(x, "sum")]
        return sum((x.sum() for x in leaves), 0.0)

    return getattr(weft, way)(call)(*(args[i] for i in traced))


def make(pool_cache, text):
    if text not in pool_cache:
        pool_cache[text] = eval(text, globals())
    return pool_cache[text]


def judged(error):
    """None where the error is one that a call may raise, else what is wrong with it."""
    if isinstance(error, weft.errors.InternalError):
        return "InternalError"
    if isinstance(error, FINE):
        return None
    said = ("RESOURCE_EXHAUSTED", "ut of memory", "Unknown backend")
    if isinstance(error, RuntimeError) and any(words in str(error) for words in said):
        return None
    return type(error).__name__


def call_number(seed, index, every, cache):
    name, function, way, args, kwargs = plan(random.Random(seed * 1_000_003 + index), every)
    args = [make(cache, text) for text in args]
    kwargs = {n: make(cache, text) for n, text in kwargs.items()}
    return perform(function, way, args, kwargs)


def described(seed, index, every):
    name, _, way, args, kwargs = plan(random.Random(seed * 1_000_003 + index), every)
    return shown(name, way, args, kwargs)


def bound_memory():
    with open("/proc/self/statm") as f:
        mapped = int(f.read().split()[0]) * resource.getpagesize()
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (mapped + HEADROOM, hard))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def run_batch(seed, first, last):
    """Makes the calls; writes "at INDEX" and the findings to the descriptor that was stdout."""
    report = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    warnings.simplefilter("ignore")
    wnp.ones(3).sum().block_until_ready()  # starts the runtime's threads
    every, cache = targets(), {}
    bound_memory()
    returned = 0
    for index in range(first, last):
        if index % REFRESH == 0:
            cache = {}
            gc.collect()
        report.write(f"at {index}\n")
        faulthandler.dump_traceback_later(SECONDS, exit=True)
        try:
            call_number(seed, index, every, cache)
            returned += 1
        except MemoryError:
            bound_memory()  # CPython loses the items of a tuple that it fails to enlarge
        except Exception as e:
            try:
                wrong, text = judged(e), str(e)
            except Exception:
                wrong, text = None, ""  # the message holds an object that refuses to be printed
            if wrong:
                report.write("found " + json.dumps([index, wrong, text[:400]]) + "\n")
        except BaseException as e:
            report.write("found " + json.dumps([index, type(e).__name__, "no Exception"]) + "\n")
    faulthandler.cancel_dump_traceback_later()
    report.write(f"done {returned}\n")
    report.close()
    os._exit(0)  # what is left at the end of a process is another test's subject


def run_range(seed, first, last):
    """(index of the call that ended the process or None, its last words, findings, returned)"""
    command = [sys.executable, "-X", "faulthandler", __file__, "--seed", str(seed)]
    command += ["--batch-of", str(first), str(last), *(f"--of={name}" for name in PREFIXES)]
    with tempfile.TemporaryFile("w+", errors="replace") as words:
        # Each thread may have an arena of 64 MiB of the addresses that `bound_memory` bounds.
        environment = {**os.environ, "MALLOC_ARENA_MAX": "2"}
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=words, text=True, check=False, env=environment
        )
        words.seek(0)
        tail = words.read()[-6000:]
    at, findings, returned = None, [], None
    for line in done.stdout.splitlines():
        kind, _, rest = line.partition(" ")
        if kind == "at":
            at = int(rest)
        elif kind == "found":
            findings.append(json.loads(rest))
        elif kind == "done":
            returned = int(rest)
    if at is None:
        raise RuntimeError(f"the batch {first}..{last} did not begin:\n{tail}")
    how = "hangs" if "Timeout (" in tail else f"dies ({done.returncode})"
    if returned is None:
        return at, f"{how}\n{tail}", findings, 0
    if done.returncode != 0:  # in a thread of the runtime, behind the last call
        findings.append([at, "process", f"{how} behind the last call of its batch\n{tail}"])
    return None, "", findings, returned


def shortest(seed, first, index):
    """The largest start from which the calls up to `index` still bring the process down."""
    if run_range(seed, index, index + 1)[0] is not None:
        return index
    low, high = first, index  # dies from low, lives from high
    while high - low > 1:
        middle = (low + high) // 2
        if run_range(seed, middle, index + 1)[0] == index:
            low = middle
        else:
            high = middle
    return low


def whole_batch(seed, first, last):
    """Findings of the calls, going on behind each that ends the process; calls that returned."""
    findings, returned = [], 0
    while first < last:
        at, words, found, fine = run_range(seed, first, last)
        findings += found
        returned += fine
        if at is None:
            break
        start = shortest(seed, first, at)
        how = "" if start == at else f" after the calls from {start}: "
        findings.append([at, "process", f"{how}{words}"])
        first = at + 1
    return findings, returned


def run(seed, first, calls, jobs, batch, tell=lambda text: None):
    """Makes the calls; gives the findings as text and how many calls returned."""
    every = targets()
    out, total = [], 0
    ranges = [(i, min(i + batch, first + calls)) for i in range(first, first + calls, batch)]
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for findings, returned in pool.map(lambda r: whole_batch(seed, *r), ranges):
            total += returned
            for index, wrong, text in findings:
                call = described(seed, index, every)
                out.append(f"call {index}: {wrong}: {call}\n    {text}")
                tell(out[-1])
    return out, total


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--calls", type=int, default=100_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--batch", type=int, default=500)
    parser.add_argument("--only", type=int)
    parser.add_argument("--show", action="store_true", help="print the calls, make none")
    parser.add_argument("--of", action="append", default=[], help="may be given again")
    parser.add_argument("--batch-of", type=int, nargs=2, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    PREFIXES[:] = chosen.of or [""]
    if chosen.batch_of:
        return run_batch(chosen.seed, *chosen.batch_of)
    if chosen.show:
        every = targets()
        for i in range(chosen.first, chosen.first + chosen.calls):
            print(i, described(chosen.seed, i, every))
        return 0
    if chosen.only is not None:
        every = targets()
        print(described(chosen.seed, chosen.only, every), flush=True)
        bound_memory()
        weft.config.update("weft_traceback_filtering", "off")
        try:
            result = call_number(chosen.seed, chosen.only, every, {})
            print("returned", type(result).__name__)
        except BaseException:
            traceback.print_exc()
        return 0
    findings, returned = run(
        *(chosen.seed, chosen.first, chosen.calls, chosen.jobs, chosen.batch),
        tell=lambda text: print(text, flush=True),
    )
    print(f"{chosen.calls} calls of {len(targets())} functions, {returned} returned a value,")
    print(f"{len(findings)} did what no call may do")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
