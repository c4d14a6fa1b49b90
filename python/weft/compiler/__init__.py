"""The compiler as a library: graphs, passes, StableHLO text.

graph = weft.jit(f).trace(x).graph
print(weft.compiler.optimize(graph, passes=["simplify", "cse", "dce"]))
"""

from weft import _core
from weft._surface import public as _public

__all__ = [
    "Graph",
    "cache_stats",
    "cost",
    "default_pipeline",
    "emit_stablehlo",
    "fusion_report",
    "optimize",
    "parse",
    "passes",
    "registry",
    "rewrites",
    "to_hlo",
    "verify_stablehlo",
]
__getattr__, __dir__ = _public(__name__, __all__)


Graph = _core.Graph


def parse(text):
    """The graph of a program in jaxpr notation: the inverse of `str(graph)`.

    Raises ParseError with line and column.
    """
    return _core.parse(text)


def default_pipeline():
    """Names of the passes that run before a program is lowered, in order."""
    return _core.default_pipeline()


def passes():
    """All passes: a dict from name to what it does."""
    return dict(_core.passes())


def rewrites():
    """The algebraic rewrites of `simplify`: a list of (op, name, identity)."""
    return _core.rewrites()


def optimize(graph, passes=None, *, disable=(), only=(), verify=False, dump=None, stats=None):
    """Runs passes on a graph and returns the new one.

    Args:
      graph: a Graph.
      passes: names, in the order to run them; by default `default_pipeline()`.
      disable: names of rewrites not to apply.
      only: if not empty, the only rewrites to apply.
      verify: check the graph after every pass.
      dump: called after every pass with its name and the program's text before and after it.
      stats: a list that receives a dict for every pass: ops before and after, seconds, rewrites.

    Raises AttributeValueError for an unknown pass or rewrite.
    """
    names = default_pipeline() if passes is None else list(passes)
    result, report = _core.run_passes(graph, names, list(disable), list(only), verify, dump)
    if stats is not None:
        stats.extend(report)
    return result


def emit_stablehlo(graph, name="main", *, platform="cpu", locations=False):
    """StableHLO text of a graph as it stands; `optimize` it first for what `jit` would compile."""
    return _core.emit_stablehlo(graph, name, platform, locations)


def to_hlo(stablehlo_text):
    """HLO text of a StableHLO module."""
    from weft.runtime.compile import unoptimized_hlo

    return unoptimized_hlo(stablehlo_text)


def verify_stablehlo(text):
    """Parses and verifies a module with MLIR; ValueError with its diagnostics if it is wrong."""
    from weft.runtime.mlir import verify_module

    return verify_module(text)


def cost(graph):
    """Estimates for a graph: a dict with `flops`, `transcendentals` and `bytes accessed`."""
    return graph.cost()


def fusion_report(graph):
    """The `fusion` ops that the pass `fuse` made: a list of dicts with flops and bytes."""
    return _core.fusion_report(graph)


def registry():
    """The ops, sorted by name: a list of dicts.

    Keys: name, doc, attrs (names), num_operands (-1: any number), elementwise, multiple_results,
    jvp_kind ("none", "zero", "linear", "args", "custom") and missing (names of rules it lacks).
    """
    return [_core.op_info(name) for name in _core.op_names()]


def cache_stats():
    """Counters of the caches of compiled programs since the process started.

    `compiles`, `hits`, `size`: programs by structure. `eager_hits`, `eager_misses`, `eager_size`:
    operations run without `jit`.
    """
    return _core.cache_stats()
