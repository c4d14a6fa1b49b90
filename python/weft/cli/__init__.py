"""The `weft` command: one module per subcommand, each with add_parser() and a run function.

Everything that can go wrong with a user's file, names, specs or code is reported in a few lines
that name the user's own line, with exit status 2; `--traceback` shows the whole traceback.
"""

import argparse
import os
import sys
from collections.abc import Sequence

from weft.cli import lower, ops, run
from weft.cli.report import describe

COMMANDS = (lower, run, ops)


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="weft", description="Look at, and run, the programs that Python functions become."
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for module in COMMANDS:
        module.add_parser(commands)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    options = build_parser().parse_args(argv)
    try:
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
