"""The stages of a function on its way to the device: traced, lowered, compiled; abstract values."""

import abc
import functools
import types
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from weft import _core
from weft._core import ClosedJaxpr, Graph
from weft._surface import public_methods
from weft._tree_mismatch import explain_difference
from weft.dtypes import as_dtype, canonicalize_dtype
from weft.errors import (
    ArgumentTypeError,
    AttributeValueError,
    ShardingError,
    TreeStructureError,
)
from weft.memory import Space
from weft.runtime.pytree import PyTreeDef, leaf_paths, registry
from weft.tree_util import keystr

if TYPE_CHECKING:
    from concurrent.futures import Future

    from weft._communication import Communication


def _own_dtype(dtype):
    _core.canonical_dtype(dtype)  # raises for what names none
    return as_dtype(dtype)


class ShapeDtypeStruct:
    """Shape and dtype of an array without its values; stands for one where only these matter.

    Attributes: shape (tuple of ints), dtype (NumPy dtype, as given: traces take a 64-bit one as the
    narrow one while 64-bit types are off), weak_type (bool), sharding (None, or
    where the array lies for which it stands: `jit(f).lower` makes a program for arrays there),
    format (the weft.experimental.layout.Format of that), is_ref (whether it
    stands for a ref that holds such an array: `jit(f).lower` gives `f` a ref then),
    manual_axis_type (None, or a weft.sharding.ManualAxisType: what is known of the manual axes of a
    shard_map).

    Examples:
      >>> weft.eval_shape(wnp.sum, weft.ShapeDtypeStruct((1000, 1000), "float32"))
      ShapeDtypeStruct(shape=(), dtype=float32)
    """

    __slots__ = ("_manual", "_place", "dtype", "is_ref", "shape", "weak_type")
    _dtype = staticmethod(_own_dtype)

    def __init__(
        self, shape, dtype, *, sharding=None, weak_type=False, manual_axis_type=None, is_ref=False
    ):
        if dtype is None:
            raise ValueError("ShapeDtypeStruct expected a dtype; got None")
        if manual_axis_type is not None:
            from weft.sharding import ManualAxisType

            if not isinstance(manual_axis_type, ManualAxisType):
                raise TypeError(
                    "ShapeDtypeStruct expected a weft.sharding.ManualAxisType for "
                    f"manual_axis_type; got {manual_axis_type!r}"
                )
        if isinstance(sharding, (str, int, float)):
            raise ValueError(
                f"ShapeDtypeStruct expected a sharding or a PartitionSpec; got {sharding!r}"
            )
        self.shape = tuple(int(d) for d in shape)
        if sharding is not None:
            sharding = _checked_place(sharding, self.shape)
        self.dtype = self._dtype(dtype)
        self._place: Any = sharding
        self._manual = manual_axis_type
        self.weak_type = bool(weak_type)
        self.is_ref = bool(is_ref)

    # `_place` is a Format where that has a layout.
    sharding = property(lambda self: getattr(self._place, "sharding", self._place))
    manual_axis_type = property(lambda self: self._manual)
    # The axes over which it varies; None where that is not known.
    _varying = property(lambda self: self._manual and tuple(self._manual.varying))
    ndim = property(lambda self: len(self.shape))
    size = property(lambda self: int(np.prod(self.shape, dtype=np.int64)))

    def update(self, **changes):
        """The same with shape, dtype, weak_type or others replaced.

        Raises ValueError for a sharding without a layout in place of a Format with one.
        """
        place = changes.get("sharding")
        if self.format.layout and place is not None and not hasattr(place, "layout"):
            raise AttributeValueError(
                f"ShapeDtypeStruct.update expected a Format for sharding, as {self} has one; got "
                f"{place!r}"
            )
        own = {name: getattr(self, name) for name in ("shape", "dtype", "weak_type", "is_ref")}
        own |= {"sharding": self._place, "manual_axis_type": self._manual}
        return type(self)(**{**own, **changes})

    @classmethod
    def like(cls, x):
        """That of an array, number, ref or type."""
        described = isinstance(x, ShapeDtypeStruct)
        is_ref = x.is_ref if described else isinstance(x, (_core.Ref, AbstractRef))
        aval = x if described or isinstance(x, AbstractRef) else typeof(x)
        place = x._place if described else None
        return cls(
            aval.shape,
            aval.dtype,
            sharding=place,
            weak_type=aval.weak_type,
            manual_axis_type=aval._manual,
            is_ref=is_ref,
        )

    @property
    def format(self):
        from weft.experimental.layout import Format

        return Format(getattr(self._place, "layout", None), self.sharding)

    def __len__(self):
        if not self.shape:
            raise TypeError("len() of unsized object: a type of no axes")
        return self.shape[0]

    def __bool__(self):
        return True

    def __repr__(self):
        weak = ", weak_type=True" if self.weak_type else ""
        place = "" if self._place is None else f", sharding={self._place}"
        ref = ", is_ref=True" if self.is_ref else ""
        manual = f", manual_axis_type={self._manual}" if self._manual else ""
        text = f"shape={self.shape}, dtype={self.dtype.name}{place}{weak}{manual}{ref}"
        return f"ShapeDtypeStruct({text})"

    def __eq__(self, other):
        if not isinstance(other, ShapeDtypeStruct):
            return NotImplemented
        return self._key() == other._key()

    def __hash__(self):
        return hash(self._key())

    def _key(self):
        manual = None if self._manual is None or self._manual.empty else self._manual
        return (self.shape, self.dtype, self._place, self.weak_type, self.is_ref, manual)


def _checked_place(sharding, shape):
    """The sharding, or the Format if that has a layout.

    Raises for a layout that a compiler chooses, a spec where no mesh is set, and more axes than a
    shape has.
    """
    from weft.experimental.layout import Format, Layout
    from weft.sharding import PartitionSpec, get_abstract_mesh

    if isinstance(sharding, Format):
        if sharding.layout is Layout.AUTO:
            raise ArgumentTypeError(
                f"ShapeDtypeStruct expected a layout other than Layout.AUTO; got {sharding}"
            )
        inner = None if sharding.sharding is None else _checked_place(sharding.sharding, shape)
        return inner if sharding.layout is None else sharding
    spec = sharding if isinstance(sharding, PartitionSpec) else getattr(sharding, "spec", ())
    if spec is sharding and get_abstract_mesh().empty:
        raise TypeError(
            f"ShapeDtypeStruct expected a mesh for {spec}: use a NamedSharding, or set a mesh with "
            "weft.set_mesh"
        )
    if len(spec) > len(shape):
        raise ShardingError(
            f"ShapeDtypeStruct expected at least {len(spec)} dimensions for {sharding}; got {shape}"
        )
    return sharding


class AbstractValue(abc.ABC):  # noqa: B024
    """The class of the types of values: what `typeof` gives."""


@AbstractValue.register
class ShapedArray(ShapeDtypeStruct):
    """The type of a value, as `typeof` tells it; prints as `float32[3,4]` (`~` when weak).

    `memory_space` is a `weft.memory.Space`: that of the host for values in the memory
    "pinned_host", which prints as `float32<host>[3,4]`, else that of devices.

    `sharding` says how the value is split over the explicit axes of a mesh, and is printed as
    `float32[8@x,16@(y,z)]`; where no mesh has such axes, it is a NamedSharding on a mesh of none.

    `manual_axis_type` says, within a shard_map with check_vma, over which of its axes the value
    varies, and is printed as `float32[8]{V:x}`; `mat` is another name of it.
    """

    __slots__ = ("memory_space",)
    _dtype = staticmethod(as_dtype)  # a value made with 64-bit dtypes enabled keeps its own

    def __init__(self, shape, dtype, *, sharding=None, memory_space=Space.Device, **options):
        self.memory_space = memory_space
        mesh = getattr(sharding, "mesh", None)
        split = None if mesh is not None and mesh.empty else sharding
        super().__init__(shape, dtype, sharding=split, **options)

    @property
    def sharding(self):
        return _unsplit(self.ndim) if self._place is None else self._place

    @property
    def manual_axis_type(self):
        if self._manual is not None:
            return self._manual
        from weft.sharding import ManualAxisType

        return ManualAxisType()

    mat = property(lambda self: self.manual_axis_type)
    itemsize = property(lambda self: self.dtype.itemsize)
    nbytes = property(lambda self: self.size * self.dtype.itemsize)

    def update(self, **changes):
        """The same with shape, dtype, weak_type, sharding, manual_axis_type or memory_space
        replaced."""
        return super().update(**{"memory_space": self.memory_space, **changes})

    def _key(self):
        elsewhere = () if self.memory_space is Space.Device else (self.memory_space,)
        return (*super()._key(), *elsewhere)

    def strip_weak_type(self):
        """The same, not weak."""
        return self.update(weak_type=False)

    def to_tangent_aval(self):
        """The type of tangents: the same for floats and complex numbers, float0 for others."""
        from weft.extend.core import primal_dtype_to_tangent_dtype

        return self.update(dtype=primal_dtype_to_tangent_dtype(self.dtype))

    to_ct_aval = at_least_vspace = to_tangent_aval

    def __str__(self):
        return f"{'~' if self.weak_type else ''}{self.str_short()}"

    def __repr__(self):
        weak = ", weak_type=True" if self.weak_type else ""
        return f"ShapedArray({self.str_short()}{weak})"

    def str_short(self, short_dtypes=False):
        """The shape and dtype as `float32[3,4]`, or as `f32[3,4]` with `short_dtypes`."""
        name = self._dtype_name()
        if short_dtypes and name != "float0":
            for long in ("float", "uint", "int", "complex"):
                name = name.replace(long, long[0])
        return f"{name}{self._space()}[{self._dims()}]{self._axes()}"

    def _dtype_name(self):
        return self.dtype.name.replace("void", "float0")  # NumPy's name of float0

    def _space(self):
        return "" if self.memory_space is Space.Device else f"<{self.memory_space.name.lower()}>"

    def _axes(self):
        """Over which axes of meshes it varies, and sums are yet to be made: "{V:x, U:y}"."""
        unreduced = frozenset() if self._place is None else self._place.spec.unreduced
        if not unreduced:
            return "" if self._manual is None else self._manual._short()
        from weft.sharding import ManualAxisType

        return (self._manual or ManualAxisType()).update(unreduced=unreduced)._short()

    def _dims(self):
        if self._place is None:
            return ",".join(map(str, self.shape))
        texts = []
        for size, axes in zip_longest(self.shape, self._place.spec):
            names = f"({','.join(axes)})" if isinstance(axes, tuple) else axes
            texts.append(f"{size}@{names}" if names else str(size))
        return ",".join(texts)


@functools.cache
def _unsplit(ndim):
    from weft.sharding import AbstractMesh, NamedSharding, PartitionSpec

    return NamedSharding(AbstractMesh((), ()), PartitionSpec(*[None] * ndim))


class SourceInfo(NamedTuple):
    """Where in the user's program an operation was made; file and function None if unknown."""

    file: str | None
    line: int
    function: str | None

    def __str__(self):
        return f"{self.file}:{self.line} ({self.function})" if self.file else "<unknown>"


_core.install(shaped_array=ShapedArray, source_info=SourceInfo)


@AbstractValue.register
class AbstractRef(NamedTuple):
    """The type of a ref, as `typeof` tells it; prints as `Ref{float32[3,4]}`.

    Attributes: inner_aval (ShapedArray, the type of what it holds), shape, dtype, weak_type.
    """

    inner_aval: ShapedArray

    shape = property(lambda self: self.inner_aval.shape)
    sharding = property(lambda self: self.inner_aval.sharding)
    _place = property(lambda self: self.inner_aval._place)
    manual_axis_type = property(lambda self: self.inner_aval.manual_axis_type)
    _manual = property(lambda self: self.inner_aval._manual)
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

    Examples:
      >>> weft.typeof(wnp.ones((2, 3)))
      ShapedArray(float32[2,3])
    """
    if isinstance(x, _core.Ref):
        split = _split(x, len(x.shape))
        return AbstractRef(ShapedArray(x.shape, x.dtype, sharding=split, weak_type=x.weak_type))
    if isinstance(x, ShapeDtypeStruct):
        dtype = canonicalize_dtype(x.dtype, allow_extended_dtype=True)
        return ShapedArray(x.shape, dtype, weak_type=x.weak_type, manual_axis_type=x._manual)
    shape, dtype, weak = _core.typeof(x)
    space = Space.Host if _core.is_on_host(x) else Space.Device
    return ShapedArray(
        shape,
        dtype,
        sharding=_split(x, len(shape)),
        weak_type=weak,
        memory_space=space,
        manual_axis_type=_manual(_core.varying_of(x)),
    )


def typed(x):
    """An argument of which only the type matters: a ShapeDtypeStruct for an object of another
    library that has `shape` and `dtype` and is no array, anything else as it is."""
    known = (_core.Array, _core.Tracer, _core.Ref, ShapeDtypeStruct, np.ndarray, np.generic)
    if isinstance(x, known) or hasattr(x, "__jax_array__"):
        return x
    has_type = hasattr(x, "shape") and hasattr(x, "dtype")
    return ShapeDtypeStruct(x.shape, x.dtype) if has_type else x


def _manual(names):
    if names is None:
        return None
    from weft.sharding import ManualAxisType

    return ManualAxisType(varying=frozenset(names))


def _split(x, ndim):
    return _seen(_core.split_of(x), ndim)


def _seen(split, ndim):
    if split is None:
        return None
    from weft._placement import split_seen

    return split_seen(split, ndim)


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
        fun = fun.implementation
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
    name = getattr(fun, "__name__", None)
    return f"'{name if name and isinstance(name, str) else type(fun).__name__}'"


def describe_argument(fun, in_tree, static_argnums, leaf):
    """Names the leaf-th array argument of a call, for messages: "argument x['w'] of 'f'"."""
    if in_tree is None:
        return f"argument {_positional_name(fun, leaf)} of {_function_name(fun)}"
    path = leaf_paths(in_tree)[leaf]
    if path[0].idx == 1:  # keyword arguments
        return f"argument {path[1].key}{keystr(path[2:])} of {_function_name(fun)}"
    dynamic = path[1].idx
    count = len(in_tree.children()[0].children()) + len(static_argnums)
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
        path = keystr(leaf_paths(out_tree)[leaf])
    return f"result{path} of {_function_name(fun)}"


def _result_paths(core):
    refs = ["ref"] * (len(core.written) + len(core.written_arguments))
    if core.out_tree is None:
        return ["result", *refs]
    return ["result" + keystr(path) for path in leaf_paths(core.out_tree)] + refs


class ArgInfo:
    """What is known of an argument's leaf before the call.

    Attributes: shape, dtype, donated (whether the results may reuse its buffer).
    """

    __slots__ = ("_aval", "donated")

    def __init__(self, _aval, donated):
        self._aval = _aval
        self.donated = donated

    def __eq__(self, other):
        if not isinstance(other, ArgInfo):
            return NotImplemented
        return (self._aval, self.donated) == (other._aval, other.donated)

    def __hash__(self):
        return hash((self._aval, self.donated))

    def __repr__(self):
        return f"ArgInfo({self._aval}, donated={self.donated})"

    shape = property(lambda self: self._aval.shape)
    dtype = property(lambda self: self._aval.dtype)


CompilerOptions = dict[str, str | bool]


class _OfJit(type):
    def __instancecheck__(cls, instance):
        jitted = getattr(instance, "_jitted", instance)  # what pjit returns holds one
        return isinstance(jitted, _core.JitFunction)


class Wrapped(metaclass=_OfJit):
    """The type of what `weft.jit` returns, for `isinstance` and annotations."""

    def __new__(cls, *args, **kwargs):
        raise TypeError("weft.stages.Wrapped cannot be called; use weft.jit")


class Program:
    """A function traced for one signature: what its stages share.

    Attributes: core (the core's Traced), function (the jitted function), name (the function's),
    options (its JitOptions).
    """

    __slots__ = ("core", "function")

    def __init__(self, core, function):
        self.core: Any = core
        self.function = function

    name = property(lambda self: self.core.name)
    options = property(lambda self: self.core.options)


class _Stage:
    """What all stages tell of arguments and results: trees like ((arguments...), {by keyword}),
    without static arguments, and like the result."""

    def __init__(self, program):
        self._program: Program = program

    @property
    def in_tree(self) -> PyTreeDef:
        """The structure of (arguments, keyword arguments), without static ones."""
        core = self._program.core
        if core.in_tree is not None:
            return core.in_tree
        return registry.flatten(((0,) * len(core.in_avals), {}))[1]

    @property
    def out_tree(self) -> PyTreeDef:
        """The structure of the result."""
        tree = self._program.core.out_tree
        return registry.flatten(0)[1] if tree is None else tree

    def _like_arguments(self, leaves):
        return self.in_tree.unflatten(list(leaves))

    @property
    def in_avals(self) -> Any:
        """A tree of ShapedArray like the arguments."""
        return self._like_arguments(map(_aval, self._program.core.in_avals))

    @property
    def args_info(self) -> Any:
        """A tree of ArgInfo like the arguments."""
        core = self._program.core
        count = len(core.in_avals)
        donated = core.donated[-count:] if core.donated and count else [False] * count
        pairs = zip(map(_aval, core.in_avals), donated, strict=True)
        return self._like_arguments(ArgInfo(*pair) for pair in pairs)

    @property
    def donate_argnums(self) -> tuple[int, ...]:
        """Which of the leaves of the arguments are donated, a tuple of ints."""
        leaves = registry.flatten(self.args_info)[0]
        return tuple(i for i, info in enumerate(leaves) if info.donated)

    @property
    def out_avals(self) -> Any:
        """A tree of ShapedArray like the result."""
        return self.out_tree.unflatten(self._result_types(ShapedArray))

    @property
    def out_info(self) -> Any:
        """A tree of ShapeDtypeStruct like the result, with the shardings that jit was given, or
        those of explicit axes; of a compiled program with those that results have."""
        from weft._placement import sharding_of

        given = [None if p is None else sharding_of(p) for p in self._result_places]
        return self.out_tree.unflatten(self._result_types(ShapeDtypeStruct, given))

    _result_places = property(lambda self: self._program.core.out_shardings)

    _keeps_weak = False  # whether `out_info` tells weak types, which programs do not have

    def _result_types(self, kind, given=()):
        rows = zip_longest(self._program.core.out_avals, self._program.core.out_splits, given)
        tells = kind is ShapedArray or self._keeps_weak
        return [
            kind(shape, dtype, sharding=place or _seen(split, len(shape)), weak_type=weak and tells)
            for (shape, dtype, weak), split, place in rows
        ]


def _aval(described):
    shape, dtype, weak = described
    return ShapedArray(shape, dtype, weak_type=weak)


@public_methods
class Traced(_Stage):
    """A function traced for one signature.

    Attributes: graph (weft.compiler.Graph; its first `graph.num_consts` inputs are the arrays that
    the function closed over), jaxpr, fun_name, consts (those arrays), args_info, in_avals, in_tree,
    donate_argnums, out_avals, out_tree, out_info (a tree of ShapeDtypeStruct).
    """

    _keeps_weak = True

    @property
    def graph(self) -> Graph:
        return self._program.core.graph

    consts = property(lambda self: self._program.core.consts)
    fun_name = property(lambda self: self._program.name)

    @property
    def jaxpr(self) -> ClosedJaxpr:
        weak = [w for _, _, w in self._program.core.out_avals]
        in_weak = [w for _, _, w in self._program.core.in_avals]
        return _core.ClosedJaxpr(self._program.core.graph, self._program.core.consts, weak, in_weak)

    def lower(self, *, lowering_platforms: Any = None) -> "Lowered":
        """The StableHLO module of the optimised graph.

        lowering_platforms: None, or a tuple with the name of a platform that the text is for
          ("cpu", "cuda", "tpu"); what is compiled is for the platform that the arguments are on.

        Raises NotImplementedError for several platforms.
        """
        names = () if lowering_platforms is None else tuple(lowering_platforms)
        if len(names) > 1:
            raise NotImplementedError(
                f"lower: expected lowering_platforms of one platform; got {lowering_platforms!r}"
            )
        return Lowered(self._program, "".join(names))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The function's result, also for traced arguments: of the types that it was traced for,
        without static ones."""
        leaves, tree = registry.flatten((args, kwargs))
        if tree != self.in_tree:
            raise TreeStructureError(
                f"'{self.fun_name}' was traced for other arguments: for "
                f"{explain_difference(self.in_tree, tree)}"
            )
        from weft.extend._jaxpr import jaxpr_as_fun  # which stands on this module

        return self.out_tree.unflatten(jaxpr_as_fun(self.jaxpr)(*leaves))

    def __repr__(self):
        return f"<Traced {self.fun_name}>"


@public_methods
class Lowered(_Stage):
    """A program lowered to StableHLO.

    Attributes: graph (weft.compiler.Graph, the optimised one), args_info, in_avals, in_tree,
    donate_argnums, out_avals, out_tree, out_info.
    """

    def __init__(self, program, platform=""):
        super().__init__(program)
        self._platform = {"gpu": "cuda"}.get(platform, platform)  # "": that of the places
        self._places = program.core.places()
        self._stablehlo = self._emit(locations=False)

    def _emit(self, locations):
        core = self._program.core
        return core.stablehlo(self._places, locations, _result_paths(core), self._platform)

    @property
    def graph(self) -> Graph:
        from weft import compiler

        return compiler.optimize(self._program.core.graph)

    def as_text(self, dialect: str | None = None, *, debug_info: bool = False) -> str:
        """The program as text.

        Args:
          dialect: "stablehlo" (as None), or "hlo" for XLA's form of it.
          debug_info: include source locations (StableHLO only).
        """
        text = self._emit(locations=True) if debug_info else self._stablehlo
        if dialect in (None, "stablehlo"):
            return text
        if dialect == "hlo":
            from weft.runtime.compile import unoptimized_hlo

            return unoptimized_hlo(text)
        raise ValueError(f"dialect: expected 'stablehlo' or 'hlo'; got {dialect!r}")

    def compiler_ir(self, dialect: str | None = None) -> Any:
        """The program as an object of jaxlib's: an MLIR module for "stablehlo" (as None), an
        XlaComputation for "hlo"."""
        if dialect in (None, "stablehlo"):
            from weft.runtime.mlir import parse_module

            return parse_module(self._stablehlo)
        if dialect == "hlo":
            from weft.runtime.compile import hlo_computation

            return hlo_computation(self._stablehlo)
        raise ValueError(f"dialect: expected 'stablehlo' or 'hlo'; got {dialect!r}")

    def compile(self, compiler_options: dict[str, Any] | None = None) -> "Compiled":
        """The program compiled for the devices that it was lowered for.

        compiler_options: a dict of options of XLA's, by name, besides those given to `jit`.
        """
        return self._compilation(compiler_options)()

    def compile_async(self, compiler_options: dict[str, Any] | None = None) -> "Future[Compiled]":
        """The same in a thread of a pool: a concurrent.futures.Future of what `compile` returns.

        `result()` waits for it, or raises what `compile` would; `done()`, `exception()` and
        `add_done_callback(f)` are there as well, and `asyncio.wrap_future` awaits it. `cancel()`
        works while no thread has begun. At the end of the process what has begun is waited for, and
        the rest cancelled. Calls of the function that need the program meanwhile wait for it.

        compiler_options: as for `compile`.
        """
        from weft._ahead import compile_async  # threads, for those who ask for them

        return compile_async(self, compiler_options)

    def _compilation(self, compiler_options=None, executable=None):
        """`compile` as a function of no arguments, in which no code of the user's runs.

        executable: what XLA made of the module in another process, as bytes; None if that is not
          known.
        """
        from weft._jit import options_of_compiler

        program, places = self._program, self._places
        own = dict(program.options.compiler_options or ())
        options = options_of_compiler({**own, **(compiler_options or {})})
        return lambda: Compiled(program, program.core.compile(places, options, executable))

    def cost_analysis(self) -> dict[str, Any]:
        """Estimates made on the graph: flops, transcendentals, bytes accessed."""
        from weft import compiler

        figures = compiler.analyze(self)
        return {
            "flops": float(figures.flops),
            "transcendentals": float(figures.transcendentals),
            "bytes accessed": float(figures.bytes),
        }

    def __repr__(self):
        return f"<Lowered {self._program.name}>"


class Block(NamedTuple):
    """A piece of a program: its graph, how often it runs, jaxlib's executable, why it is cut."""

    graph: Graph
    times: int
    executable: Any
    why: str


def _why_cut(ops, times, total):
    if times > 1:
        return f"{times} pieces of {ops} operations are alike, of {total} in all"
    return f"{ops} operations that lie between what repeats"


class Loop(NamedTuple):
    """A loop that stands for what repeats: how many operations it stands for, how often it runs,
    and how many of its iterations follow each other in its body."""

    num_ops: int
    length: int
    unroll: int


class Kernel(NamedTuple):
    """A part of a program that XLA emits as one function.

    Attributes: num_ops (how many operations it has, those of its loops counted once), seconds (of a
    call that it saves, by estimate), apart (seconds that its operations take one by one, by
    estimate), line (the user's, of the operation that takes most of them, "file.py:12 (f)", or
    None).
    """

    num_ops: int
    seconds: float
    apart: float
    line: str | None


class Prologue(NamedTuple):
    """What a program computes once for its constants, as a program of its own.

    Attributes: graph, of what is computed; constants, the arrays it is computed from, as numbers of
    inputs of `Compiled.graph`; bytes, of the results; seconds, that each call is spared, by
    estimate; kept, whether the results are there now; executable, jaxlib's.
    """

    graph: Graph
    constants: list[int]
    bytes: int
    seconds: float
    kept: bool
    executable: Any


@public_methods
class Compiled(_Stage):
    """A compiled program; call it with arguments of the signature it was made for.

    Attributes: graph (the optimised one that was compiled), args_info, in_avals, in_tree,
    donate_argnums, out_avals, out_tree, out_info, input_shardings, output_shardings.
    """

    def __init__(self, program, made):
        super().__init__(program)
        self._made = made
        self._function = made.function  # what calls need

    @property
    def graph(self) -> Graph:
        return self._made.graph

    @property
    def input_shardings(self) -> Any:
        """A tree of shardings like the arguments."""
        from weft._placement import sharding_of

        count = len(self._program.core.in_avals)
        placed = self._made.input_shardings
        return self._like_arguments(map(sharding_of, placed[len(placed) - count :]))

    _result_places = property(
        lambda self: self._made.output_shardings[: len(self._program.core.out_avals)]
    )

    @property
    def output_shardings(self) -> Any:
        """A tree of shardings like the result."""
        from weft._placement import sharding_of

        return self.out_tree.unflatten(list(map(sharding_of, self._result_places)))

    def _formats(self, avals, placed):
        from weft._placement import sharding_of
        from weft.experimental.layout import Format, Layout

        return [
            Format(Layout._of_arrays(len(aval[0])), sharding_of(place))
            for aval, place in zip(avals, placed, strict=True)
        ]

    @property
    def input_formats(self):
        """A tree of weft.experimental.layout.Format like the arguments."""
        placed = self._made.input_shardings
        avals = self._program.core.in_avals
        return self._like_arguments(self._formats(avals, placed[len(placed) - len(avals) :]))

    @property
    def output_formats(self):
        """A tree of weft.experimental.layout.Format like the result."""
        avals = self._program.core.out_avals
        return self.out_tree.unflatten(self._formats(avals, self._result_places))

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """The same as calling the object itself."""
        return self(*args, **kwargs)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return self._function(*args, **kwargs)
        except (ArgumentTypeError, TreeStructureError):
            self._check_arguments(args, kwargs)
            raise

    def _check_arguments(self, args, kwargs):
        """Raises for arguments that are not nested as compiled, and for the first leaf that is of
        another type, by the name of the argument."""
        leaves, tree = registry.flatten((args, kwargs))
        if tree != self.in_tree:
            raise TreeStructureError(
                f"'{self._program.name}' was compiled for other arguments: for "
                f"{explain_difference(self.in_tree, tree)}"
            ) from None
        fun, graph = self._program.function.__wrapped__, self._program.core.graph
        types = graph.in_types[graph.num_consts :]
        for i, (leaf, (shape, dtype)) in enumerate(zip(leaves, types, strict=True)):
            if isinstance(leaf, _core.Tracer):
                raise ArgumentTypeError(
                    f"expected arrays for '{self._program.name}', as it is compiled and cannot be "
                    "transformed; got a traced one\n  Use the jitted function that it was made of."
                )
            got = typeof(leaf)
            if (got.shape, got.dtype) != (tuple(shape), dtype):
                name = describe_argument(fun, self.in_tree, (), i)
                raise ArgumentTypeError(
                    f"expected {ShapedArray(tuple(shape), dtype)} for {name}, as compiled; "
                    f"got {ShapedArray(got.shape, got.dtype)}"
                )

    def runtime_executable(self) -> Any:
        """jaxlib's loaded executable; None when nothing is left to compute, and of a program that
        runs in steps: it has several, those of its `blocks`."""
        return self._made.loaded

    @property
    def blocks(self) -> list[Block]:
        """The pieces that were compiled once each, of a program that runs in steps; see `jit`."""
        total = self.graph.num_ops
        return [
            Block(graph, times, loaded, _why_cut(graph.num_ops, times, total))
            for graph, times, loaded in self._made.blocks
        ]

    @property
    def loops(self) -> list[Loop]:
        """The loops of XLA's that stand for what repeats in the program; see `jit`."""
        return [Loop(*loop) for loop in self._made.loops]

    @property
    def kernels(self) -> list[Kernel]:
        """The parts that run as one function each; see `jit`."""
        return [Kernel(*kernel) for kernel in self._made.kernels]

    @property
    def prologue(self) -> Prologue | None:
        """What is computed once for the arrays that the function closes over, or None."""
        made = self._made.prologue
        return None if made is None else Prologue(*made)

    @property
    def _modules(self):
        loaded = self._made.loaded
        return [loaded] if loaded else [block.executable for block in self.blocks]

    def as_text(self) -> str:
        """The program after XLA's optimisations, as HLO text: a module, or one per block."""
        from weft.runtime.compile import optimized_hlo

        return "\n\n".join(map(optimized_hlo, self._modules))

    def cost_analysis(self) -> dict[str, Any]:
        """XLA's estimates: a dict with `flops`, `bytes accessed` and others; of a program in blocks
        their sums over its steps, but for what is told of single operands."""
        from weft.runtime.compile import cost_analysis, cost_of_steps

        if self._made.loaded:
            return cost_analysis(self._made.loaded)
        return cost_of_steps([(block.executable, block.times) for block in self.blocks])

    def communication(self) -> "Communication":
        """What the devices of the program send each other in a run: a table of its collectives."""
        from weft._communication import communication

        return communication(self.as_text())

    def memory_analysis(self) -> Any:
        """Sizes in bytes of arguments, results, temporaries and code. Of a program in blocks, what
        one step leaves for another counts among the temporaries."""
        from weft.runtime.compile import memory_analysis, memory_of_steps

        if self._made.loaded:
            return memory_analysis(self._made.loaded)
        made, blocks = self._made, [block.executable for block in self.blocks]
        return memory_of_steps(blocks, made.steps, made.sizes) if blocks else None

    def __repr__(self):
        return f"<Compiled {self._program.name}>"
