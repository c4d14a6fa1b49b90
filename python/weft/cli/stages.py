"""`--passes` and `--stats`: which passes run, what each did, and what every stage took."""

import argparse
import contextlib
import sys
import time
from collections.abc import Iterator
from typing import Any

from weft import compiler
from weft.cli.failures import CliError, did_you_mean


def add_passes(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--passes",
        metavar="A,B,C",
        help="run these passes ('' for none) instead of those that jit would run; the graph is "
        "taken as it was traced unless this is given ('default': what jit runs)",
    )


def add_stats(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--stats", action="store_true", help="on stderr: time by stage; ops and rewrites by pass"
    )


def pass_names(text: str | None, *, unless_given: str) -> list[str]:
    """The passes that --passes names: a list, `default` for those of jit, '' for none."""
    text = unless_given if text is None else text
    names = [name.strip() for name in text.split(",") if name.strip()]
    known = ["default", *compiler.passes()]
    for name in names:
        if name not in known:
            raise CliError(
                f"--passes: no pass is called {name!r}{did_you_mean(name, known)} "
                f"(passes: {', '.join(known)})"
            )
    return [n for name in names for n in (default() if name == "default" else [name])]


def default() -> list[str]:
    return compiler.default_pipeline()


class Stages:
    """Times of stages, and statistics of passes. Prints them where --stats asks for it."""

    def __init__(self, wanted: bool):
        self.wanted = wanted
        self.seconds: dict[str, float] = {}
        self.passes: list[dict[str, Any]] = []

    @contextlib.contextmanager
    def stage(self, name: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self.seconds[name] = time.perf_counter() - start

    def optimize(self, graph: compiler.Graph, names: list[str]) -> compiler.Graph:
        with self.stage("passes"):
            return compiler.optimize(graph, passes=names, stats=self.passes)

    def report(self) -> None:
        if not self.wanted:
            return
        lines = []
        for name, seconds in self.seconds.items():
            lines.append(f"{name:<20}{1e3 * seconds:>10.3f} ms")
            if name == "passes":
                lines += [line for stats in self.passes for line in describe(stats)]
        print("\n".join(lines), file=sys.stderr)


def describe(stats: dict[str, Any]) -> list[str]:
    head = (
        f"  {stats['pass']:<18}{1e3 * stats['seconds']:>10.3f} ms"
        f"  {stats['ops_before']} -> {stats['ops_after']} ops"
    )
    return [head, *(f"    {count:>4}  {name}" for name, count in stats["rewrites"].items())]
