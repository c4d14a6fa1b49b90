"""Measures programs under weft and under jax, in turn, for loops.py and libraries.py.

Each framework has a process of its own for each program, which stays for all rounds. The first call
(trace, compile, run once) is counted in the processor's time of all threads, once in each process;
calls by the clock, in turn, so many rounds, of which the median counts. What both give is compared.
"""

import argparse
import json
import math
import os
import pickle
import resource
import statistics
import subprocess
import sys
from pathlib import Path

import numpy as np
from sitting import call_time

# How far two results may be apart, of the largest number in each: sums in other orders add up.
NEAR = 1e-2


# ---- In the process of a framework


def used():
    """The processor's seconds that this process has taken, all threads."""
    now = resource.getrusage(resource.RUSAGE_SELF)
    return now.ru_utime + now.ru_stime


def serve(load, build, options):
    """Measures what it is asked for on its standard input, line by line: `first`, then `call`."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    fw = load()
    f, args = build(fw)
    fw.block_until_ready(fw.jit(lambda x: x + 1)(1.0))
    program = fw.jit(f, **options)

    def call():
        return fw.block_until_ready(program(*args))

    def answer(value):
        pickle.dump(value, answers)
        answers.flush()

    answer("ready")
    for line in sys.stdin:
        if line == "first\n":
            before = used()
            result = call()
            spent = used() - before
            answer((spent, [np.asarray(x) for x in fw.tree_util.tree_leaves(result)]))
        else:
            answer(call_time(call, repeats=3, pick=min))


# ---- In the process that asks


class Server:
    def __init__(self, script, framework, name, options=()):
        command = [sys.executable, script, "--measure", framework, name]
        self.what = f"{name} on {framework}"
        self.process = subprocess.Popen(
            [*command, *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self.answer()

    def answer(self):
        try:
            return pickle.load(self.process.stdout)
        except EOFError:
            sys.exit(f"{self.what} failed")

    def ask(self, what):
        self.process.stdin.write(f"{what}\n".encode())
        self.process.stdin.flush()
        return self.answer()

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def differs(ours, theirs):
    """What of two lists of arrays is not near; None if all is."""
    if [(x.shape, x.dtype) for x in ours] != [(x.shape, x.dtype) for x in theirs]:
        return "shapes or dtypes"
    for x, y in zip(ours, theirs, strict=True):
        x, y = x.astype("f8"), y.astype("f8")
        size = 1 + np.max(np.abs(y), initial=0, where=np.isfinite(y))
        if not np.allclose(x, y, 0, NEAR * size, equal_nan=True):
            return f"{np.nanmax(np.abs(x - y)) / size:.1e}"
    return None


def compare(script, name, rounds, options, native):
    """A row of the table: {what: {framework: [seconds, ...]}}, and what differs in results."""
    servers = {
        "weft": Server(script, "weft", name, ["--weft", json.dumps(options)]),
        "jax": Server(script, "jax", name),
    }
    firsts = {framework: server.ask("first") for framework, server in servers.items()}
    calls = {framework: [] for framework in servers}
    for _ in range(rounds):
        for framework, server in servers.items():
            calls[framework].append(server.ask("call"))
        if native:
            calls.setdefault("C++", []).append(call_time(native, repeats=3, pick=min))
    for server in servers.values():
        server.close()
    problem = differs(firsts["weft"][1], firsts["jax"][1])
    if native:
        problem = problem or differs([np.float32(native())], firsts["weft"][1])
    return {
        "first call": {fw: [spent] for fw, (spent, _) in firsts.items()},
        "call": calls,
    }, problem


def ratio(times):
    return statistics.median(times["weft"]) / statistics.median(times["jax"])


def print_row(name, row, problem, asked):
    cells = [name]
    for what, unit in (("first call", 1e3), ("call", 1e6)):
        middle = [f"{statistics.median(seconds) * unit:.4g}" for seconds in row[what].values()]
        cells.append(f"{' / '.join(middle)} = {ratio(row[what]):.3f}")
    if asked:
        cells[-1] += f" (asked for {asked:.3f})"
    if problem:
        cells[-1] += f"; results differ: {problem}"
    print("| " + " | ".join(cells) + " |", flush=True)


def print_means(rows):
    for what in ("first call", "call"):
        ratios = {name: ratio(row[what]) for name, row in rows.items()}
        middle = math.exp(statistics.fmean(math.log(r) for r in ratios.values()))
        slow = sorted((name for name in ratios if ratios[name] > 1), key=lambda n: -ratios[n])
        above = ", ".join(f"{name} {ratios[name]:.2f}" for name in slow)
        print(f"{what}: geometric mean {middle:.3f}; above 1: {above or 'none'}")


def run(doc, script, programs, load, asked=None, natives=None):
    """The command line of a benchmark.

    Args:
      doc: its docstring.
      script: its file.
      programs: {name: function of a framework that returns a function and its arguments}.
      load: function of "weft" or "jax" that returns the framework.
      asked: {name: the ratio of calls that is asked for}.
      natives: function that returns {name: the same program without a framework, as a function
        without arguments}, for `--native`; None if there are none.
    """
    parser = argparse.ArgumentParser(description=doc.split("\n")[0])
    parser.add_argument("programs", nargs="*", metavar="PROGRAM")
    parser.add_argument("--rounds", type=int, default=5)
    if natives:
        parser.add_argument("--native", action="store_true", help="C++ beside those that have it")
    parser.add_argument("--weft", type=json.loads, default={}, metavar="JSON", help="for weft.jit")
    parser.add_argument("--json", type=Path, metavar="OUT")
    parser.add_argument("--measure", metavar="FRAMEWORK", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        serve(lambda: load(options.measure), programs[options.programs[0]], options.weft)
        return
    print("| program | first call, ms: weft / jax | call, us: weft / jax (/ C++) |\n|---|---|---|")
    calls = natives() if natives and options.native else {}
    rows = {}
    for name in options.programs or programs:
        found = compare(script, name, options.rounds, options.weft, calls.get(name))
        rows[name], problem = found
        print_row(name, rows[name], problem, (asked or {}).get(name))
    print_means(rows)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))
