"""The compiler as a library: graphs, passes, StableHLO text.

print(weft.compiler.optimize(f, x, passes=["simplify", "cse", "dce"]))
print(weft.compiler.analyze(f, x))
graph = weft.compiler.parse("{ lambda ; a:f32[3]. let b:f32[3] = sin a in (b,) }")
(y,) = graph(x)
graph = weft.compiler.read(jax.jit(f).lower(x).as_text())

Where a program is asked for it may be a Graph, what `make_jaxpr` returns, or a stage of a jitted
function: `f.trace(x)`, `f.lower(x)` or that compiled.
"""

import re as _re
import warnings as _warnings

from weft import _core
from weft._surface import public as _public
from weft.compiler._programs import (
    call as _call,
    graph_of as _graph_of,
    program_of as _program_of,
)
from weft.errors import AttributeValueError, ParseError

__all__ = [
    "Analysis",
    "Graph",
    "analyze",
    "cache_stats",
    "default_pipeline",
    "emit_stablehlo",
    "fusion_report",
    "optimize",
    "parse",
    "passes",
    "read",
    "registry",
    "rewrites",
    "show",
    "to_bytecode",
    "to_hlo",
    "verify_stablehlo",
]
__getattr__, __dir__ = _public(__name__, __all__)


Analysis = _core.Analysis
Graph = _core.Graph
Graph.__call__ = _call


def parse(text):
    """The graph of a program in jaxpr notation: the inverse of `str(graph)`.

    Raises ParseError with line and column.

    Examples:
      >>> graph = weft.compiler.parse("{ lambda ; a:f32[2]. let b:f32[2] = neg a in (b,) }")
      >>> graph(wnp.array([1.0, 2.0], "float32"))
      (Array([-1., -2.], dtype=float32),)
    """
    if not isinstance(text, str):
        raise TypeError(f"parse expected a program as text; got {type(text).__name__}")
    return _core.parse(text)


def read(program, *, function: str = "", file: str = ""):
    """The graph of a module of StableHLO, as other programs write it.

    It is one like any other: called, it runs, also under `jit`, `grad` and `vmap`.

    Args:
      program: the module's text, pretty or generic; or bytes: text, MLIR bytecode or a portable
        artifact.
      function: the name of the function that is the program. Default: `main`, or the only public
        one.
      file: a name for the text in messages about ops that have no location of their own.

    Raises ParseError, with line, column and op, for what is malformed; NotImplementedRuleError for
    what has no counterpart in a graph; TypeError for what is neither text nor bytes.

    Examples:
      >>> text = weft.jit(lambda x: x * 2).lower(1.0).as_text()
      >>> weft.compiler.read(text)(3.0)
      (Array(6., dtype=float32),)
    """
    if isinstance(program, (bytes, bytearray, memoryview)):
        program = _text_of_module(bytes(program))
    if not isinstance(program, str):
        raise TypeError(f"read expected a module as text or bytes; got {type(program).__name__}")
    return _core.read_stablehlo(program, function=function, file=file)


def _text_of_module(data):
    from weft.runtime.mlir import BYTECODE, text_of_bytecode

    if data.startswith(BYTECODE):
        try:
            return text_of_bytecode(data)
        except ValueError as error:
            raise ParseError(f"read expected MLIR bytecode: {error}") from None
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise ParseError(
            "read expected the text of a module, MLIR bytecode or a portable artifact; "
            "got other bytes"
        ) from None


def default_pipeline():
    """Names of the passes that run before a program is lowered, in order.

    Examples:
      >>> "dce" in weft.compiler.default_pipeline()
      True
    """
    return _core.default_pipeline()


def passes():
    """All passes: a dict from name to what it does.

    Examples:
      >>> weft.compiler.passes()["dce"]
      'Drops ops, call results and call inputs that nothing needs.'
    """
    return dict(_core.passes())


def rewrites():
    """The algebraic rewrites of `simplify`: a list of (op, name, identity).

    Examples:
      >>> len(weft.compiler.rewrites()[0])
      3
    """
    return _core.rewrites()


def optimize(
    program,
    *args,
    passes=None,
    disable=(),
    only=(),
    verify=False,
    keep_derivatives=False,
    dump=None,
    stats=None,
    **kwargs,
):
    """Runs passes on a program and returns the graph that results.

    Args:
      program: a program (see above), as it was traced; or a function, which is traced.
      args, kwargs: the function's arguments; ShapeDtypeStructs will do.
      passes: names, in the order to run them; by default `default_pipeline()`.
      disable: names of rewrites not to apply.
      only: if not empty, the only rewrites to apply.
      verify: check the graph after every pass.
      keep_derivatives: derivatives are still to be taken of the result, so what could change them
        (`stop_gradient(x) -> x`, dropping derivatives that users wrote) does not run, and is an
        error where it is asked for by name.
      dump: called after every pass with its name and the program's text before and after it.
      stats: a list that receives a dict for every pass: ops before and after, seconds, rewrites.

    Raises AttributeValueError for an unknown pass or rewrite, ArgumentTypeError for what is no
    program.

    Examples:
      >>> print(weft.compiler.optimize(lambda x: -(-x) * 1, 2.0))
      { lambda ; a:f32[]. let  in (a,) }
    """
    graph = _graph_of("optimize", program, args, kwargs)
    keep = bool(keep_derivatives)
    names = _core.default_pipeline(keep) if passes is None else _names("passes", passes)
    result, report = _core.run_passes(
        graph, names, _names("disable", disable), _names("only", only), verify, keep, dump
    )
    if stats is not None:
        stats.extend(report)
    return result


def _names(what, names):
    # A string is a sequence of strings too.
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise TypeError(f"optimize: {what}: expected a list of names; got {names!r}")
    return list(names)


def analyze(program, *args, **kwargs):
    """What one run of a program takes: an Analysis, whose `str` is a report.

    Args:
      program: a program (see above), as it was traced (`optimize` it first for what `jit` would
        run); or a function, which is traced.
      args, kwargs: the function's arguments; ShapeDtypeStructs will do.

    Returns:
      An Analysis. Its attributes are ints:

      - ops: operations that run. Inputs and numbers in the program are none. A call counts as the
        operations of its function, a scan as those of its body as often as it is long, a while loop
        as its condition and its body once, a cond as the branch that has most.
      - flops, transcendentals, bytes: what these compute (sin, exp and the like are counted apart),
        and what they read and write.
      - critical_path: operations on the longest chain in which each needs a result of the one
        before.
      - levels: if every operation stands one level above the highest of those that it needs, how
        many there are (a loop spans the levels of its body once); width: operations on the level
        that has most.
      - peak_bytes: the most that values take at once when operations run in their order. An input
        lives to its last use, a result from its operation (its operands being there too) to its
        last use, an output to the end. input_bytes, output_bytes: of these alone.
      - by_op, by_line: dicts from an operation's name, or from "file.py:12", to `ops`; cost_by_op,
        cost_by_line: to a dict of flops, transcendentals and bytes.

    Examples:
      >>> figures = weft.compiler.analyze(lambda x: wnp.sum(x * x), wnp.ones(8))
      >>> figures.flops, figures.by_op
      (16, {'mul': 1, 'reduce_sum': 1})
    """
    return _core.analyze(_graph_of("analyze", program, args, kwargs))


def show(program, *args, path=None, **kwargs):
    """Writes a page to look at a program with: one HTML file that needs nothing but a browser.

    It has the graph with search and folding, the source beside it, the program after each pass,
    what becomes kernels, blocks and loops and why, memory over the order of operations, cost by
    line, the critical path, and how arrays are split.

    Args:
      program: a program (see above); or a function, which is traced.
      args, kwargs: the function's arguments; ShapeDtypeStructs will do.
      path: where to write it; by default a file named after the function in a new folder for
        temporary files.

    Returns:
      The path, a pathlib.Path.

    Raises ArgumentTypeError for what is no program, OSError where it cannot be written.

    Examples:
      >>> page = weft.compiler.show(wnp.sinc, wnp.ones(3))
      >>> page.name
      'sinc.html'
    """
    from weft._view.model import page_data
    from weft._view.page import write_page

    return write_page(page_data(_program_of("show", program, args, kwargs)), path)


_WIDE_FLOAT = _re.compile(r"\b(?:\d+x)*f64\b")


def emit_stablehlo(program, name="main", *, platform="cpu", target=None, locations=False):
    """StableHLO text of a program as it stands (`optimize` it for what `jit` would compile).

    Args:
      name: of the module.
      platform: "cpu", "cuda" or "tpu", for what XLA has on a platform alone.
      target: None for XLA on the platform; for other compilers "portable": ops of StableHLO 1.4
        alone, without custom calls, CHLO and attributes of XLA, or "iree": the same, without what
        IREE 3.13 gets wrong.
      locations: whether the text names source lines.

    Raises ValueError for other targets; NotImplementedError, which names the operation, for what a
    target has no form of.

    Examples:
      >>> text = weft.compiler.emit_stablehlo(weft.make_jaxpr(lambda x: x + 1)(2.0))
      >>> "stablehlo.add" in text
      True
    """
    graph = _graph_of("emit_stablehlo", program)
    if target not in (None, "portable", "iree"):
        raise AttributeValueError(
            f"emit_stablehlo expected target None, 'portable' or 'iree'; got {target!r}"
        )
    text = _core.emit_stablehlo(graph, name, target or platform, locations)
    if target == "iree" and _WIDE_FLOAT.search(text):
        _warnings.warn(
            "emit_stablehlo: iree-compile makes float64 float32 by itself\n  Run it with "
            "--iree-input-demote-f64-to-f32=false.",
            stacklevel=2,
        )
    return text


def to_hlo(stablehlo_text):
    """HLO text of a StableHLO module.

    Examples:
      >>> text = weft.jit(lambda x: x + 1).lower(2.0).as_text()
      >>> weft.compiler.to_hlo(text)[:9]
      'HloModule'
    """
    from weft.runtime.compile import unoptimized_hlo

    return unoptimized_hlo(stablehlo_text)


def to_bytecode(stablehlo_text, *, artifact=False):
    """A StableHLO module in bytes, for other tools.

    Args:
      stablehlo_text: the module's text.
      artifact: whether it is a form that later versions of StableHLO read, and versions of the
        four weeks before (StableHLO's "portable artifact"); otherwise MLIR's bytecode, for the same
        version.

    Raises ValueError with MLIR's diagnostics if the text is malformed.

    Examples:
      >>> text = weft.compiler.emit_stablehlo(weft.make_jaxpr(wnp.sin)(1.0))
      >>> weft.compiler.to_bytecode(text)[:4]
      b'ML\xefR'
    """
    from weft.runtime.mlir import artifact as made, bytecode

    return made([stablehlo_text], True)[0] if artifact else bytecode(stablehlo_text)


def verify_stablehlo(text):
    """Parses and verifies a module with MLIR; ValueError with its diagnostics if it is wrong.

    Examples:
      >>> text = weft.jit(lambda x: x + 1).lower(2.0).as_text()
      >>> weft.compiler.verify_stablehlo(text)[:6]
      'module'
    """
    from weft.runtime.mlir import verify_module

    return verify_module(text)


def fusion_report(program):
    """The `fusion` ops that the pass `fuse` made: a list of dicts with flops and bytes.

    Examples:
      >>> f = lambda x: wnp.sin(x) * x + 1
      >>> graph = weft.compiler.optimize(f, wnp.ones(8), passes=["fuse"])
      >>> len(weft.compiler.fusion_report(graph))
      1
    """
    return _core.fusion_report(_graph_of("fusion_report", program))


def registry():
    """The ops, sorted by name: a list of dicts.

    Keys: name; doc; attrs (names); attributes (dicts of name, type, required, default);
    num_operands (-1: any number); elementwise; multiple_results; effects ("none", "unordered",
    "ordered"); dtypes (pairs of what an element-wise op takes and gives); rules (jvp, transpose,
    batch, emit, fold, cost, prune, simplify); jvp_kind ("none", "zero", "linear", "args", "custom",
    "graph"); missing (names of rules it lacks).

    Examples:
      >>> ops = {op["name"]: op for op in weft.compiler.registry()}
      >>> ops["sin"]["elementwise"], ops["sort"]["elementwise"]
      (True, False)
    """
    return [_core.op_info(name) for name in _core.op_names()]


def cache_stats():
    """Counters of the caches of compiled programs since the process started.

    `compiles`, `hits`, `size`: programs by structure. `disk_hits`: programs that the cache on disk
    had, which are not among `compiles`. `eager_hits`, `eager_misses`, `eager_size`: operations run
    without `jit`.

    Examples:
      >>> before = weft.compiler.cache_stats()["hits"]
      >>> for _ in range(2):
      ...     y = weft.jit(lambda x: x + 0.125)(1.0)
      >>> weft.compiler.cache_stats()["hits"] > before
      True
    """
    return _core.cache_stats()
