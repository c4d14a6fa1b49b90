"""A function traced for one signature."""

from typing import Any

from weft import _core, _html
from weft._core import ClosedJaxpr, Graph
from weft._figures import count
from weft._stages.listing import program_listing
from weft._stages.lowered import Lowered
from weft._stages.stage import Stage
from weft._surface import public_methods
from weft._tree_mismatch import explain_difference
from weft.errors import TreeStructureError
from weft.runtime.pytree import registry


@public_methods
class Traced(Stage):
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
        return _core.ClosedJaxpr(self.graph, self.consts, *self._weak())

    def _weak(self):
        """Of results and arguments, whether their types are weak."""
        avals = self._program.core.out_avals, self._program.core.in_avals
        return [[weak for _, _, weak in each] for each in avals]

    @property
    def effects(self) -> set[str]:
        """What a call does beside giving results, as its jaxpr says."""
        return self.jaxpr.effects

    def closure_convert(self) -> tuple[list[Any], Any]:
        """The arrays that the function closed over, and a function that takes them first.

        Returns `(consts, fun)`: `fun(consts, *args, **kwargs)` gives what the traced function does,
        for other arrays of the same types in the place of `consts` as well.

        Examples:
          >>> y = wnp.array([1.0, 2.0])
          >>> consts, f = weft.jit(lambda x: x * y).trace(3.0).closure_convert()
          >>> f([y + 1], 3.0)
          Array([6., 9.], dtype=float32)
        """
        consts = list(self.consts)

        def fun(consts, *args, **kwargs):
            return self._called(consts, args, kwargs)

        return consts, fun

    def with_consts_as_arg(self) -> tuple[list[Any], "Traced"]:
        """The arrays that the function closed over, and the Traced that takes a list of them first.

        Examples:
          >>> y = wnp.array([1.0, 2.0])
          >>> consts, traced = weft.jit(lambda x: x * y).trace(3.0).with_consts_as_arg()
          >>> traced.lower().compile()([y + 1], 3.0)
          Array([6., 9.], dtype=float32)
        """
        from weft._jit import jit  # circle: it makes these

        consts, fun = self.closure_convert()
        fun.__name__ = self.fun_name
        args, kwargs = self.args_info
        return consts, jit(fun).trace(consts, *args, **kwargs)

    def lower(self, *, lowering_platforms: Any = None) -> Lowered:
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
        return self._called(self.consts, args, kwargs)

    def _called(self, consts, args, kwargs):
        leaves, tree = registry.flatten((args, kwargs))
        if tree != self.in_tree:
            raise TreeStructureError(
                f"'{self.fun_name}' was traced for other arguments: for "
                f"{explain_difference(self.in_tree, tree)}"
            )
        from weft.compiler._jaxprs import jaxpr_as_fun  # circle: as `compiler`

        closed = _core.ClosedJaxpr(self.graph, tuple(consts), *self._weak())
        return self.out_tree.unflatten(jaxpr_as_fun(closed)(*leaves))

    def _facts(self):
        return [count(self.graph.num_ops, "operation")]

    def _shown(self):
        return [_html.folded("program", program_listing(self.graph))]
