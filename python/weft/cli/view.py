"""`weft view`: a page to look at a function with: its graph, source, passes, memory, cost."""

import argparse
from pathlib import Path
from typing import Any

from weft import compiler
from weft.cli.arguments import ARGUMENTS_HELP, Call, add_arguments
from weft.cli.lower import writing

EXAMPLES = """
examples:
  weft view model.py:predict --arg 'f32[8,128]'
  weft view model.py:loss --args model.py:example_args --grad -o loss.html
"""


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "view",
        help="write a page to look at the program with that a function becomes",
        description="Traces a function on arguments given by type and writes one HTML file, which "
        "needs nothing but a browser: graph, source, passes, what is compiled, memory, cost.",
        epilog=ARGUMENTS_HELP + EXAMPLES,
    )
    add_arguments(parser)
    parser.add_argument("-o", dest="output", metavar="PAGE", help="default: FUNCTION.html")
    parser.set_defaults(run=main)


def main(options: argparse.Namespace) -> None:
    call = Call(options, need_values=False)
    traced = call.trace()
    path = Path(options.output or f"{traced.fun_name.rpartition('.')[2].strip('<>')}.html")
    with writing(path):
        compiler.show(traced, path=path)
    print(path)
