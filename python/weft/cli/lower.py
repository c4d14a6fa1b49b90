"""`weft lower`: what a function becomes: its graph, StableHLO text, or HLO text."""

import argparse
import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from weft import compiler
from weft.cli.arguments import ARGUMENTS_HELP, Call, add_arguments
from weft.cli.failures import CliError
from weft.cli.stages import Stages, add_passes, add_stats, pass_names

FORMS = ("graph", "stablehlo", "hlo")
EXAMPLES = """
examples:
  weft lower model.py:predict --arg 'f32[8,128]'
  weft lower package.model:loss --arg 'f32[3]' --grad --passes default
  weft lower model.py:predict --args model.py:example_args --emit stablehlo --locations
"""


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "lower",
        help="print the program that a function becomes",
        description="Traces a function on arguments given by type and prints the program.",
        epilog=ARGUMENTS_HELP + EXAMPLES,
    )
    add_arguments(parser)
    parser.add_argument("--emit", choices=FORMS, default="graph", help="default: graph")
    add_passes(parser)
    add_stats(parser)
    parser.add_argument("--locations", action="store_true", help="print source lines of ops too")
    parser.add_argument("-o", dest="output", metavar="OUT", help="write to a file")
    parser.set_defaults(run=main)


def main(options: argparse.Namespace) -> None:
    stages = Stages(options.stats)
    with stages.stage("load"):
        call = Call(options, need_values=False)
    text = lower(call, options, stages)
    if options.output:
        write(Path(options.output), text)
    else:
        print(text)
    stages.report()


def lower(call: Call, options: argparse.Namespace, stages: Stages) -> str:
    with stages.stage("trace"):
        graph = call.trace().graph
    as_traced = options.emit == "graph"
    names = pass_names(options.passes, unless_given="" if as_traced else "default")
    graph = stages.optimize(graph, names)
    if as_traced:
        return graph.to_text(locations=options.locations)
    name = getattr(call.function, "__name__", "f")
    with stages.stage("emit"):
        text = compiler.emit_stablehlo(graph, name=name, locations=options.locations)
        return compiler.to_hlo(text) if options.emit == "hlo" else text


def write(path: Path, text: str) -> None:
    with writing(path):
        path.write_text(text + "\n")


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Reports a file that cannot be written."""
    try:
        yield
    except OSError as error:
        raise CliError(f"cannot write {path}: {error.strerror}") from None
