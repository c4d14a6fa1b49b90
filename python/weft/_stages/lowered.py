"""A program as StableHLO, to be compiled."""

from typing import TYPE_CHECKING, Any

from weft import _html
from weft._analyses import Costs
from weft._core import Graph
from weft._stages.compiled import Compiled
from weft._stages.options import options_of_compiler
from weft._stages.stage import Stage
from weft._surface import public_methods
from weft._tracing.signature import result_paths

if TYPE_CHECKING:
    from concurrent.futures import Future


@public_methods
class Lowered(Stage):
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
        return core.stablehlo(self._places, locations, result_paths(core), self._platform)

    @property
    def graph(self) -> Graph:
        from weft import compiler  # circle: it takes stages for programs

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

    def compile(self, compiler_options: dict[str, Any] | None = None) -> Compiled:
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
        from weft._ahead import compile_async  # circle: it lowers functions

        return compile_async(self, compiler_options)

    def _compilation(self, compiler_options=None, executable=None):
        """`compile` as a function of no arguments, in which no code of the user's runs.

        executable: what XLA made of the module in another process, as bytes; None if that is not
          known.
        """
        program, places = self._program, self._places
        own = dict(program.options.compiler_options or ())
        options = options_of_compiler({**own, **(compiler_options or {})})
        return lambda: Compiled(program, program.core.compile(places, options, executable))

    def cost_analysis(self) -> dict[str, Any]:
        """Estimates made on the graph: flops, transcendentals, bytes accessed."""
        from weft import compiler  # circle: it takes stages for programs

        figures = compiler.analyze(self)
        return Costs(
            {
                "flops": float(figures.flops),
                "transcendentals": float(figures.transcendentals),
                "bytes accessed": float(figures.bytes),
            }
        )

    def _shown(self):
        return [_html.folded("StableHLO", _html.listing(self._stablehlo))]
