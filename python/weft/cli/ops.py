"""`weft ops`: the registry of ops, and which rules each of them lacks."""

import argparse
import difflib
from typing import Any

from weft import compiler
from weft.cli.report import CliError


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "ops",
        help="list the ops and which rules each lacks",
        description="Lists the ops of the registry, or describes those named.",
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="describe these ops")
    parser.add_argument("--missing", action="store_true", help="only ops that lack a rule")
    parser.add_argument("--traceback", action="store_true", help="show tracebacks of errors")
    parser.set_defaults(run=main)


def main(options: argparse.Namespace) -> None:
    ops = {op["name"]: op for op in compiler.registry()}
    if options.names:
        for name in options.names:
            if name not in ops:
                raise CliError(f"no such op: {name}{close_names(name, list(ops))}")
            print(describe(ops[name]))
        return
    shown = [op for op in ops.values() if op["missing"] or not options.missing]
    width = max((len(op["name"]) for op in shown), default=0)
    for op in shown:
        lacks = f"lacks {', '.join(op['missing'])}" if op["missing"] else ""
        print(f"{op['name']:{width}}  {lacks}".rstrip())
    print(f"{len(shown)} ops")


def describe(op: dict[str, Any]) -> str:
    lines = [f"{op['name']}: {op['doc']}"]
    if op["attrs"]:
        lines.append(f"  attributes: {', '.join(op['attrs'])}")
    lines.append(f"  lacks: {', '.join(op['missing']) or 'nothing'}")
    return "\n".join(lines)


def close_names(name: str, known: list[str]) -> str:
    close = difflib.get_close_matches(name, known, n=3)
    return f"; did you mean {' or '.join(close)}?" if close else ""
