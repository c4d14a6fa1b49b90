"""The stages of a function on its way to the device: traced, lowered, compiled; abstract values."""

import types
from typing import NamedTuple

import numpy as np

from weft import _core
from weft._surface import public_methods
from weft._tree_mismatch import explain_difference
from weft.dtypes import as_dtype
from weft.errors import ArgumentTypeError, TreeStructureError
from weft.runtime.pytree import registry
from weft.tree_util import keystr, tree_flatten_with_path


class ShapeDtypeStruct:
    """Shape and dtype of an array without its values; stands for one where only these matter.

    Attributes: shape (tuple of ints), dtype (NumPy dtype), weak_type (bool).
    """

    __slots__ = ("dtype", "shape", "weak_type")
    _dtype = staticmethod(_core.canonical_dtype)

    def __init__(self, shape, dtype, *, weak_type=False):
        if dtype is None:
            raise ValueError("ShapeDtypeStruct expected a dtype; got None")
        self.shape = tuple(int(d) for d in shape)
        self.dtype = self._dtype(dtype)
        self.weak_type = bool(weak_type)

    ndim = property(lambda self: len(self.shape))
    size = property(lambda self: int(np.prod(self.shape, dtype=np.int64)))

    def update(self, **changes):
        """The same with shape, dtype or weak_type replaced."""
        own = {"shape": self.shape, "dtype": self.dtype, "weak_type": self.weak_type}
        return type(self)(**{**own, **changes})

    def __repr__(self):
        weak = ", weak_type=True" if self.weak_type else ""
        return f"ShapeDtypeStruct(shape={self.shape}, dtype={self.dtype.name}{weak})"

    def __eq__(self, other):
        if not isinstance(other, ShapeDtypeStruct):
            return NotImplemented
        return self._key() == other._key()

    def __hash__(self):
        return hash(self._key())

    def _key(self):
        return (self.shape, self.dtype, self.weak_type)


class ShapedArray(ShapeDtypeStruct):
    """The type of a value, as `typeof` tells it; prints as `float32[3,4]` (`~` when weak)."""

    __slots__ = ()
    _dtype = staticmethod(as_dtype)  # a value made with 64-bit dtypes enabled keeps its own

    def __str__(self):
        dims = ",".join(map(str, self.shape))
        return f"{'~' if self.weak_type else ''}{self.dtype.name}[{dims}]"

    def __repr__(self):
        dims = ",".join(map(str, self.shape))
        weak = ", weak_type=True" if self.weak_type else ""
        return f"ShapedArray({self.dtype.name}[{dims}]{weak})"


class SourceInfo(NamedTuple):
    """Where in the user's program an operation was made; file and function None if unknown."""

    file: str | None
    line: int
    function: str | None

    def __str__(self):
        return f"{self.file}:{self.line} ({self.function})" if self.file else "<unknown>"


_core.install(shaped_array=ShapedArray, source_info=SourceInfo)


class AbstractRef(NamedTuple):
    """The type of a ref, as `typeof` tells it; prints as `Ref{float32[3,4]}`.

    Attributes: inner_aval (ShapedArray, the type of what it holds), shape, dtype, weak_type.
    """

    inner_aval: ShapedArray

    shape = property(lambda self: self.inner_aval.shape)
    dtype = property(lambda self: self.inner_aval.dtype)
    weak_type = property(lambda self: self.inner_aval.weak_type)
    ndim = property(lambda self: self.inner_aval.ndim)
    size = property(lambda self: self.inner_aval.size)

    def __str__(self):
        return f"Ref{{{self.inner_aval}}}"

    __repr__ = __str__


def typeof(x):
    """The shape, dtype and weak type of an array, number or ShapeDtypeStruct: a ShapedArray.

    Of a ref it is an AbstractRef.
    """
    if isinstance(x, _core.Ref):
        return AbstractRef(ShapedArray(x.shape, x.dtype, weak_type=x.weak_type))
    if isinstance(x, ShapeDtypeStruct):
        return ShapedArray(x.shape, x.dtype, weak_type=x.weak_type)
    shape, dtype, weak = _core.typeof(x)
    return ShapedArray(shape, dtype, weak_type=weak)


class Signature(NamedTuple):
    """The parameters of a function, by kind."""

    positional: tuple  # names, positional-only ones first
    positional_only: int  # how many of these cannot be given by name
    keyword_only: tuple
    rest: str | None  # name of *args
    keywords: bool  # whether there is **kwargs


def signature_of(fun):
    """The Signature of a function; None when it cannot be told."""
    if type(fun) is _core.PublicFunction:
        fun = fun.__wrapped__
    if type(fun) is not types.FunctionType or "__wrapped__" in fun.__dict__:
        return _inspected_signature(fun)
    # The library's own functions go this way at import, where loading `inspect` would cost 10 ms.
    code = fun.__code__
    names, n, k = code.co_varnames, code.co_argcount, code.co_kwonlyargcount
    rest = names[n + k] if code.co_flags & 0x04 else None
    return Signature(
        names[:n], code.co_posonlyargcount, names[n : n + k], rest, bool(code.co_flags & 0x08)
    )


def _inspected_signature(fun):
    import inspect

    try:
        parameters = inspect.signature(fun).parameters.values()
    except (TypeError, ValueError):
        return None

    def names(*kinds):
        return tuple(p.name for p in parameters if p.kind in kinds)

    kind = inspect.Parameter
    rest = names(kind.VAR_POSITIONAL)
    return Signature(
        names(kind.POSITIONAL_ONLY, kind.POSITIONAL_OR_KEYWORD),
        len(names(kind.POSITIONAL_ONLY)),
        names(kind.KEYWORD_ONLY),
        rest[0] if rest else None,
        bool(names(kind.VAR_KEYWORD)),
    )


def _positional_name(fun, position):
    signature = signature_of(fun)
    if signature and position < len(signature.positional):
        return signature.positional[position]
    if signature and signature.rest:
        return f"{signature.rest}[{position - len(signature.positional)}]"
    return f"number {position}"


def _function_name(fun):
    return f"'{getattr(fun, '__name__', None) or type(fun).__name__}'"


def describe_argument(fun, in_tree, static_argnums, leaf):
    """Names the leaf-th array argument of a call, for messages: "argument x['w'] of 'f'"."""
    if in_tree is None:
        return f"argument {_positional_name(fun, leaf)} of {_function_name(fun)}"
    numbered = in_tree.unflatten(range(in_tree.num_leaves))
    path = tree_flatten_with_path(numbered)[0][leaf][0]
    if path[0].idx == 1:  # keyword arguments
        return f"argument {path[1].key}{keystr(path[2:])} of {_function_name(fun)}"
    dynamic = path[1].idx
    count = len(numbered[0]) + len(static_argnums)
    static = {n % count for n in static_argnums}
    position = [i for i in range(count) if i not in static][dynamic]
    name = _positional_name(fun, position)
    return f"argument {name}{keystr(path[2:])} of {_function_name(fun)}"


def describe_position(fun, key):
    """Names the argument at a position (int) or of a name (str): "argument n of 'f'"."""
    name = key if isinstance(key, str) else _positional_name(fun, key)
    return f"argument {name} of {_function_name(fun)}"


def describe_output(fun, out_tree, leaf):
    """Names the leaf-th result of a function, for messages."""
    path = ""
    if out_tree is not None:
        numbered = out_tree.unflatten(range(out_tree.num_leaves))
        path = keystr(tree_flatten_with_path(numbered)[0][leaf][0])
    return f"result{path} of {_function_name(fun)}"


def _result_paths(core):
    refs = ["ref"] * (len(core.written) + len(core.written_arguments))
    if core.out_tree is None:
        return ["result", *refs]
    numbered = core.out_tree.unflatten(range(core.out_tree.num_leaves))
    return ["result" + keystr(path) for path, _ in tree_flatten_with_path(numbered)[0]] + refs


@public_methods
class Traced:
    """A function traced for one signature.

    Attributes: graph (weft.compiler.Graph; its first `graph.num_consts` inputs are the arrays that
    the function closed over), consts (those arrays), in_tree, out_tree, out_info (a tree of
    ShapeDtypeStruct).
    """

    def __init__(self, core, function):
        self._core = core
        self._function = function

    graph = property(lambda self: self._core.graph)
    consts = property(lambda self: self._core.consts)
    in_tree = property(lambda self: self._core.in_tree)
    out_tree = property(lambda self: self._core.out_tree)
    fun_name = property(lambda self: self._core.name)

    @property
    def jaxpr(self):
        weak = [w for _, _, w in self._core.out_avals]
        return _core.ClosedJaxpr(self._core.graph, self._core.consts, weak)

    @property
    def out_info(self):
        leaves = [ShapeDtypeStruct(s, d, weak_type=w) for s, d, w in self._core.out_avals]
        return leaves[0] if self.out_tree is None else self.out_tree.unflatten(leaves)

    def lower(self):
        """The StableHLO module of the optimised graph."""
        return Lowered(self)

    def __repr__(self):
        return f"<Traced {self.fun_name}>"


@public_methods
class Lowered:
    """A program lowered to StableHLO.

    Attributes: graph (weft.compiler.Graph, the optimised one), in_tree, out_tree, out_info.
    """

    def __init__(self, traced):
        self._traced = traced
        self._device = _core.current_device()
        self._stablehlo = self._emit(locations=False)

    def _emit(self, locations):
        core = self._traced._core
        keep_unused = self._traced._function._keep_unused
        return core.stablehlo(self._device, keep_unused, locations, _result_paths(core))

    in_tree = property(lambda self: self._traced.in_tree)
    out_tree = property(lambda self: self._traced.out_tree)
    out_info = property(lambda self: self._traced.out_info)

    @property
    def graph(self):
        from weft import compiler

        return compiler.optimize(self._traced.graph)

    def as_text(self, dialect="stablehlo", *, debug_info=False):
        """The program as text.

        Args:
          dialect: "stablehlo", or "hlo" for XLA's form of it.
          debug_info: include source locations (StableHLO only).
        """
        text = self._emit(locations=True) if debug_info else self._stablehlo
        if dialect == "stablehlo":
            return text
        if dialect == "hlo":
            from weft.runtime.compile import unoptimized_hlo

            return unoptimized_hlo(text)
        raise ValueError(f"dialect: expected 'stablehlo' or 'hlo'; got {dialect!r}")

    def compile(self):
        """The program compiled for the device that is current now."""
        core = self._traced._core
        return Compiled(self, core.compile(self._device, self._traced._function._keep_unused))

    def cost_analysis(self):
        """Estimates made on the graph: flops, transcendentals, bytes accessed."""
        from weft import compiler

        figures = compiler.analyze(self)
        return {
            "flops": figures.flops,
            "transcendentals": figures.transcendentals,
            "bytes accessed": figures.bytes,
        }

    def __repr__(self):
        return f"<Lowered {self._traced.fun_name}>"


@public_methods
class Compiled:
    """A compiled program; call it with arguments of the signature it was made for.

    Attributes: graph (the optimised one that was compiled), in_tree, out_tree, out_info.
    """

    def __init__(self, lowered, program):
        self._lowered = lowered
        self._program = program
        traced = lowered._traced
        graph = traced.graph
        self._types = [(tuple(shape), dtype) for shape, dtype in graph.in_types[graph.num_consts :]]

    graph = property(lambda self: self._program.graph)
    in_tree = property(lambda self: self._lowered.in_tree)
    out_tree = property(lambda self: self._lowered.out_tree)
    out_info = property(lambda self: self._lowered.out_info)

    def __call__(self, *args, **kwargs):
        traced = self._lowered._traced
        leaves, tree = registry.flatten((args, kwargs))
        expected = self.in_tree
        if expected is not None and tree != expected or len(leaves) != len(self._types):
            one = registry.flatten(((0,), {}))[1]  # what no tree stands for
            raise TreeStructureError(
                f"'{traced.fun_name}' was compiled for other arguments: for "
                f"{explain_difference(expected or one, tree)}"
            )
        fun = traced._function.__wrapped__
        for i, (leaf, wanted) in enumerate(zip(leaves, self._types, strict=True)):
            got = typeof(leaf)
            if (got.shape, got.dtype) != wanted:
                name = describe_argument(fun, expected, (), i)
                raise ArgumentTypeError(
                    f"expected {ShapedArray(*wanted)} for {name}, as compiled; "
                    f"got {ShapedArray(got.shape, got.dtype)}"
                )
        core = traced._core
        values = [x[...] if isinstance(x, _core.Ref) else x for x in leaves]
        outputs = self._program.run([*traced.consts, *values])
        refs = [*core.written, *(leaves[i] for i in core.written_arguments)]
        count = len(outputs) - len(refs)
        _core.set_refs(refs, outputs[count:])
        return outputs[0] if self.out_tree is None else self.out_tree.unflatten(outputs[:count])

    def runtime_executable(self):
        """jaxlib's loaded executable; None when nothing is left to compute."""
        return self._program.loaded

    def as_text(self):
        """The program after XLA's optimisations, as HLO text."""
        from weft.runtime.compile import optimized_hlo

        return optimized_hlo(self._program.loaded) if self._program.loaded else ""

    def cost_analysis(self):
        """XLA's estimates: a dict with `flops`, `bytes accessed` and others."""
        from weft.runtime.compile import cost_analysis

        return cost_analysis(self._program.loaded) if self._program.loaded else {}

    def memory_analysis(self):
        """Sizes in bytes of arguments, results, temporaries and code."""
        from weft.runtime.compile import memory_analysis

        return memory_analysis(self._program.loaded) if self._program.loaded else None

    def __repr__(self):
        return f"<Compiled {self._lowered._traced.fun_name}>"
