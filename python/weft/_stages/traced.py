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
        weak = [w for _, _, w in self._program.core.out_avals]
        in_weak = [w for _, _, w in self._program.core.in_avals]
        return _core.ClosedJaxpr(self._program.core.graph, self._program.core.consts, weak, in_weak)

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
        leaves, tree = registry.flatten((args, kwargs))
        if tree != self.in_tree:
            raise TreeStructureError(
                f"'{self.fun_name}' was traced for other arguments: for "
                f"{explain_difference(self.in_tree, tree)}"
            )
        from weft.compiler._jaxprs import jaxpr_as_fun  # circle: as `compiler`

        return self.out_tree.unflatten(jaxpr_as_fun(self.jaxpr)(*leaves))

    def _facts(self):
        return [count(self.graph.num_ops, "operation")]

    def _shown(self):
        return [_html.folded("program", program_listing(self.graph))]
