"""The `weft` command: one module per subcommand, each with add_parser() and a run function.

Everything that can go wrong with a user's file, names, specs or code is reported in a few lines
that name the user's own line, with exit status 2; `--traceback` shows the whole traceback.
"""

import argparse
import contextlib
import os
import sys
from collections.abc import Iterator, Sequence

from weft.cli import cache, completion, lower, ops, report, run, view
from weft.cli.about import add_paths
from weft.cli.arguments import with_default_values
from weft.cli.failures import describe
from weft.cli.parser import Parser
from weft.config import config
from weft.runtime.about import versions

COMMANDS = (lower, run, report, view, ops, cache, completion)
EXAMPLES = """\
examples:
  weft lower model.py:predict --arg 'f32[8,128]'
  weft run model.py:predict --arg 'f32[8,128]=normal'
  weft report package.model:loss --arg 'f32[8,128]' --grad
  weft view model.py:predict --arg 'f32[8,128]' -o predict.html
  weft ops dot_general
  weft cache list

exit status: 0; 2 where something is wrong with the command line or the function; 130 after Ctrl-C
`weft COMMAND --help` tells more."""


class _Version(argparse.Action):
    def __call__(self, parser, namespace, values, option_string=None):
        print(versions())
        parser.exit()


def build_parser() -> Parser:
    parser = Parser(
        prog="weft",
        description="Shows, and runs, the programs that Python functions become.",
        epilog=EXAMPLES,
    )
    parser.add_argument(
        "--version", action=_Version, nargs=0, help="versions of weft and of what it runs on"
    )
    add_paths(parser)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for module in COMMANDS:
        module.add_parser(commands)
    for command in (parser, *commands.choices.values()):
        command.set_defaults(parser=command, root=parser)
    return parser


@contextlib.contextmanager
def settings() -> Iterator[None]:
    """The settings of a command, until it ends: the frames of errors are sorted out here."""
    names = ("weft_enable_x64", "weft_traceback_filtering")
    before = {name: getattr(config, name) for name in names}
    config.update("weft_traceback_filtering", "off")
    try:
        yield
    finally:
        for name, value in before.items():
            config.update(name, value)


def main(argv: Sequence[str] | None = None) -> int:
    argv = sys.argv[1:] if argv is None else list(argv)
    parser = build_parser()
    options, rest = parser.parse_known_args(with_default_values(argv))
    if rest:
        options.parser.refuse(rest)
    if options.command is None:
        parser.print_help(sys.stderr)
        return 2
    try:
        with settings():
            options.run(options)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader of our output is gone (`weft lower ... | head`). Python would complain once
        # more when it flushes stdout at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        if options.traceback:
            raise
        sys.stdout.flush()
        print(describe(f"weft {options.command}", error), file=sys.stderr)
        return 2
    return 0
