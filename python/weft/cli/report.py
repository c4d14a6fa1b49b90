"""`weft report`: what one run of a function takes: flops, bytes, memory, chains of ops."""

import argparse
import json
from pathlib import Path
from typing import Any

from weft import compiler
from weft._view.model import analysis_data, page_data
from weft._view.page import write_page
from weft.cli.arguments import ARGUMENTS_HELP, Call, add_arguments
from weft.cli.lower import writing
from weft.cli.stages import Stages, add_passes, add_stats, pass_names

EXAMPLES = """
examples:
  weft report model.py:predict --arg 'f32[8,128]'
  weft report model.py:loss --arg 'f32[8,128]' --grad --passes default
  weft report model.py:predict --arg 'f32[8,128]' --passes default,fuse
  weft report model.py:predict --arg 'f32[8,128]' --json
  weft report model.py:predict --arg 'f32[8,128]' --html predict.html
"""


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "report",
        help="print what running a function takes",
        description="Traces a function on arguments given by type and prints what one run takes: "
        "flops, bytes, memory, the longest chain of ops; by op and by line.",
        epilog=ARGUMENTS_HELP + EXAMPLES,
    )
    add_arguments(parser)
    add_passes(parser)
    add_stats(parser)
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print the figures as JSON")
    form.add_argument(
        "--html", metavar="PAGE", help="write a page with the figures, as `weft view` does"
    )
    parser.set_defaults(run=main)


def main(options: argparse.Namespace) -> None:
    stages = Stages(options.stats)
    with stages.stage("load"):
        call = Call(options, need_values=False)
    with stages.stage("trace"):
        graph = call.trace().graph
    graph = stages.optimize(graph, pass_names(options.passes, unless_given=""))
    with stages.stage("analyze"):
        analysis = compiler.analyze(graph)
    if options.json:
        print(json.dumps(analysis_data(analysis), indent=2))
    elif options.html:
        with writing(Path(options.html)):
            print(write_page(page_data(graph, title=call.name, tab="cost"), options.html))
    else:
        print(analysis)
    stages.report()
