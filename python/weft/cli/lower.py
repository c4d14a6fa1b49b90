"""`weft lower`: what a function becomes: its graph, StableHLO as text or bytes, or HLO text."""

import argparse
import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from weft import compiler
from weft.cli.arguments import ARGUMENTS_HELP, Call, add_arguments
from weft.cli.failures import CliError
from weft.cli.stages import Stages, add_passes, add_stats, pass_names

FORMS = ("graph", "stablehlo", "portable", "iree", "hlo", "bytecode", "artifact")
EXAMPLES = """
examples:
  weft lower model.py:predict --arg 'f32[8,128]'
  weft lower package.model:loss --arg 'f32[3]' --grad --passes default
  weft lower model.py:predict --args model.py:example_args --emit stablehlo --locations
  weft lower model.py:predict --arg 'f32[8,128]' --emit artifact -o predict.mlirbc
"""


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "lower",
        help="print the program that a function becomes",
        description="Traces a function on arguments given by type and prints the program.",
        epilog=ARGUMENTS_HELP + EXAMPLES,
    )
    add_arguments(parser)
    parser.add_argument(
        "--emit", choices=FORMS, default="graph",
        help="default: graph. portable is StableHLO for other compilers than XLA, iree for IREE; "
        "bytecode is MLIR's form of StableHLO in bytes, artifact one that later and some earlier "
        "versions of StableHLO read as well",
    )  # fmt: skip
    add_passes(parser)
    add_stats(parser)
    parser.add_argument("--locations", action="store_true", help="print source lines of ops too")
    parser.add_argument("-o", dest="output", metavar="OUT", help="write to a file")
    parser.set_defaults(run=main)


def main(options: argparse.Namespace) -> None:
    stages = Stages(options.stats)
    with stages.stage("load"):
        call = Call(options, need_values=False)
    refuse_terminal(options)
    write(options.output, lower(call, options, stages))
    stages.report()


def lower(call: Call, options: argparse.Namespace, stages: Stages) -> str | bytes:
    with stages.stage("trace"):
        graph = call.trace().graph
    as_traced = options.emit == "graph"
    names = pass_names(options.passes, unless_given="" if as_traced else "default")
    graph = stages.optimize(graph, names)
    if as_traced:
        return graph.to_text(locations=options.locations)
    name = getattr(call.function, "__name__", "f")
    with stages.stage("emit"):
        target = options.emit if options.emit in ("portable", "iree") else None
        text = compiler.emit_stablehlo(graph, name=name, target=target, locations=options.locations)
        if target or options.emit == "stablehlo":
            return text
        if options.emit == "hlo":
            return compiler.to_hlo(text)
        return compiler.to_bytecode(text, artifact=options.emit == "artifact")


def refuse_terminal(options: argparse.Namespace) -> None:
    if options.emit in ("bytecode", "artifact") and not options.output and sys.stdout.isatty():
        raise CliError(
            f"--emit {options.emit} gives bytes, which are not for a terminal: write them to a "
            "file (-o OUT.mlirbc) or into a pipe"
        )


def write(output: str | None, program: str | bytes) -> None:
    """To a file, or to standard output."""
    with writing(output):
        if isinstance(program, str):
            if output:
                Path(output).write_text(f"{program}\n")
            else:
                print(program)
        elif output:
            Path(output).write_bytes(program)
        else:
            sys.stdout.flush()
            sys.stdout.buffer.write(program)


@contextlib.contextmanager
def writing(output: str | Path | None) -> Iterator[None]:
    """Reports a file that cannot be written."""
    try:
        yield
    except OSError as error:
        raise CliError(f"cannot write {output}: {error.strerror}") from None
