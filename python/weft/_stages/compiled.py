"""A compiled program, and what it is made of."""

from typing import TYPE_CHECKING, Any, NamedTuple

from weft import _core, _html
from weft._core import Graph
from weft._figures import count, size
from weft._stages.listing import bytes_of, program_listing
from weft._stages.stage import Stage
from weft._surface import public_methods
from weft._tree_mismatch import explain_difference
from weft._types.avals import ShapedArray, typeof
from weft.errors import ArgumentTypeError, TreeStructureError
from weft.runtime.pytree import registry

if TYPE_CHECKING:
    from weft._communication import Communication


class Block(NamedTuple):
    """A piece of a program: its graph, how often it runs, jaxlib's executable, why it is cut."""

    graph: Graph
    times: int
    executable: Any
    why: str


def why_cut(ops, times, total):
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
class Compiled(Stage):
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

        return self._like_arguments(map(sharding_of, self._argument_places))

    @property
    def _argument_places(self):
        placed = self._made.input_shardings
        return placed[len(placed) - len(self._program.core.in_avals) :]

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
        from weft._sharding.layout import Format, Layout

        return [
            Format(Layout._of_arrays(len(aval[0])), sharding_of(place))
            for aval, place in zip(avals, placed, strict=True)
        ]

    @property
    def input_formats(self):
        """A tree of weft.experimental.layout.Format like the arguments."""
        avals = self._program.core.in_avals
        return self._like_arguments(self._formats(avals, self._argument_places))

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
        graph = self._program.core.graph
        types = graph.in_types[graph.num_consts :]
        for i, (leaf, (shape, dtype)) in enumerate(zip(leaves, types, strict=True)):
            if isinstance(leaf, _core.Tracer):
                raise ArgumentTypeError(
                    f"expected arrays for '{self._program.name}', as it is compiled and cannot be "
                    "transformed; got a traced one\n  Use the jitted function that it was made of."
                )
            got = typeof(leaf)
            if (got.shape, got.dtype) != (tuple(shape), dtype):
                raise ArgumentTypeError(
                    f"expected {ShapedArray(tuple(shape), dtype)} for {self._argument_name(i)} of "
                    f"'{self._program.name}', as compiled; got {ShapedArray(got.shape, got.dtype)}"
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
            Block(graph, times, loaded, why_cut(graph.num_ops, times, total))
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
        """Sizes in bytes of arguments, results, temporaries and code, which print as a table. Of a
        program in blocks, what one step leaves for another counts among the temporaries. None where
        nothing is left to compute."""
        from weft.runtime.compile import memory_analysis, memory_of_steps

        if self._made.loaded:
            return memory_analysis(self._made.loaded)
        made, blocks = self._made, [block.executable for block in self.blocks]
        return memory_of_steps(blocks, made.steps, made.sizes) if blocks else None

    def _facts(self):
        core = self._program.core
        parts = (self.blocks, "block"), (self.loops, "loop"), (self.kernels, "kernel")
        return [
            count(self.graph.num_ops, "operation"),
            *(count(len(found), what) for found, what in parts if found),
            f"{size(bytes_of(core.in_avals))} in, {size(bytes_of(core.out_avals))} out",
        ]

    def _shown(self):
        memory: Any = self.memory_analysis()
        costs: Any = self.cost_analysis()
        return [
            _html.folded("program", program_listing(self.graph)),
            _html.folded("memory", memory._table()) if memory else "",
            _html.folded("costs", costs._table()) if costs else "",
        ]
