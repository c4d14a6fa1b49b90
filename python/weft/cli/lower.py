"""`weft lower`: what a function becomes: its graph, StableHLO text, or HLO text."""

import argparse
from pathlib import Path
from typing import Any

import weft
from weft import compiler
from weft.cli.arguments import add_arguments, jitted, read_arguments
from weft.cli.load import load_function
from weft.cli.report import CliError

FORMS = ("graph", "stablehlo", "hlo")


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "lower",
        help="print the program that a function becomes",
        description="Traces a function on arguments given by type and prints the program.",
    )
    add_arguments(parser)
    parser.add_argument("--emit", choices=FORMS, default="graph", help="default: graph")
    parser.add_argument(
        "--passes",
        metavar="A,B,C",
        help="run these passes ('' for none) instead of those that jit would run; the graph is "
        "printed as it was traced unless this is given ('default': what jit runs)",
    )
    parser.add_argument("--locations", action="store_true", help="print source lines of ops too")
    parser.add_argument("-o", dest="output", metavar="OUT", help="write to a file")
    parser.set_defaults(run=main)


def main(options: argparse.Namespace) -> None:
    if options.x64:
        weft.config.update("weft_enable_x64", True)
    function = load_function(options.target)
    args, kwargs = read_arguments(options, function, need_values=False)
    text = lower(jitted(function, options.static), args, kwargs, options)
    if options.output:
        write(Path(options.output), text)
    else:
        print(text)


def lower(function: Any, args: tuple, kwargs: dict, options: argparse.Namespace) -> str:
    passes = options.passes
    if options.emit == "graph" and passes is None:
        passes = ""
    graph = function.trace(*args, **kwargs).graph
    if passes is None or passes == "default":
        graph = compiler.optimize(graph)
    elif passes:
        graph = compiler.optimize(graph, passes=[p.strip() for p in passes.split(",")])
    if options.emit == "graph":
        return graph.to_text(locations=options.locations)
    name = getattr(function, "__name__", "f")
    text = compiler.emit_stablehlo(graph, name=name, locations=options.locations)
    return compiler.to_hlo(text) if options.emit == "hlo" else text


def write(path: Path, text: str) -> None:
    try:
        path.write_text(text + "\n")
    except OSError as error:
        raise CliError(f"cannot write {path}: {error.strerror}") from None
