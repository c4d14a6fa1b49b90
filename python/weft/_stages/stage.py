"""What all stages of a function tell: of its arguments, and of its results."""

from itertools import zip_longest
from typing import Any

from weft import _core, _html
from weft._stages.listing import signature_text
from weft._tracing.signature import describe_argument, result_paths
from weft._types.avals import ShapedArray, ShapeDtypeStruct, split_seen
from weft.runtime.pytree import PyTreeDef, registry


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


class Stage:
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

    def _signature(self):
        core = self._program.core
        return f"{self._program.name}{signature_text(core.in_avals, core.out_avals)}"

    def _facts(self):
        """What one line of text says of it."""
        return []

    def _shown(self):
        """What a notebook shows of it besides, pieces of HTML."""
        return []

    def __repr__(self):
        facts = ", ".join(self._facts())
        return f"<{type(self).__name__} {self._signature()}{facts and ': '}{facts}>"

    def _repr_html_(self):
        core = self._program.core
        names = [*map(self._argument_name, range(len(core.in_avals))), *result_paths(core)]
        types = map(str, map(_aval, (*core.in_avals, *core.out_avals)))
        splits = [*map(_split_text, (*self._argument_places, *self._result_places))]
        columns = {"": names, "type": types} | ({"split": splits} if any(splits) else {})
        rows = zip(*columns.values(), strict=False)  # refs are results without a type
        table = _html.table([*columns], rows, left=(0, 1, 2))
        title = f"{type(self).__name__} {self._program.name}"
        return _html.card(title, self._facts(), table, *self._shown())

    def _argument_name(self, i):
        options = self._program.options
        function = self._program.function.__wrapped__
        name = describe_argument(function, self.in_tree, options.static_argnums or (), i)
        return name.rpartition(" of ")[0]

    _argument_places = property(lambda self: [None] * len(self._program.core.in_avals))
    _result_places = property(lambda self: self._program.core.out_shardings)

    _keeps_weak = False  # whether `out_info` tells weak types, which programs do not have

    def _result_types(self, kind, given=()):
        rows = zip_longest(self._program.core.out_avals, self._program.core.out_splits, given)
        tells = kind is ShapedArray or self._keeps_weak
        return [
            kind(
                shape,
                dtype,
                sharding=place or split_seen(split, len(shape)),
                weak_type=weak and tells,
            )
            for (shape, dtype, weak), split, place in rows
        ]


def _split_text(place):
    from weft._placement import sharding_of

    return str(getattr(sharding_of(place), "spec", "")) if place else ""


def _aval(described):
    shape, dtype, weak = described
    return ShapedArray(shape, dtype, weak_type=weak)
