"""Measures weft against jax in one sitting, for the benchmarks beside it.

Each round runs every framework in a process of its own, in turn, so that a slow minute of the
machine hits both. Only the ratios mean something: of the medians over rounds, and of the least,
which tell more where the machine does other work.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

# No round is served by what another one compiled.
os.environ["WEFT_ENABLE_COMPILATION_CACHE"] = "0"


def call_time(f, number=None, repeats=7, pick=statistics.median):
    """Seconds of a call, picked from repeats of so many calls; by default of about 20 ms."""
    f()
    if number is None:
        start = time.perf_counter()
        f()
        number = max(1, int(0.02 / (time.perf_counter() - start)))
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        for _ in range(number):
            f()
        times.append((time.perf_counter() - start) / number)
    return pick(times)


def compare(script, rows, rounds):
    """All rounds: {row: {framework: [seconds, ...]}}."""
    runs = {"weft": [], "jax": []}
    for i in range(rounds):
        for name, results in runs.items():
            command = [sys.executable, script, "--measure", name]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                sys.exit(f"{name} failed:\n{done.stderr}")
            results.append(json.loads(done.stdout))
        print(f"round {i + 1} of {rounds}", file=sys.stderr)
    return {
        key: {name: [r[key] for r in results] for name, results in runs.items()} for key in rows
    }


def print_table(rows, times):
    print("| measured | weft | jax | weft / jax | of the least | asked for | reached |")
    print("|---|---|---|---|---|---|---|")
    for key, (label, unit, factor, target) in rows.items():
        runs = times[key]
        ours, theirs = statistics.median(runs["weft"]), statistics.median(runs["jax"])
        ratio = ours / theirs
        cells = [label, f"{ours * factor:.3g} {unit}", f"{theirs * factor:.3g} {unit}"]
        cells += [f"{ratio:.4f}", f"{min(runs['weft']) / min(runs['jax']):.4f}"]
        if target is not None:
            cells += [f"{target:.3f}", "yes" if ratio <= target else "NO"]
        print("| " + " | ".join(cells) + " |")


def run(doc, script, rows, measure, rounds):
    """The command line of a benchmark.

    Args:
      doc: its docstring.
      script: its file.
      rows: {key: (what it is, unit, factor from seconds, the ratio asked for or None)}.
      measure: function of a framework's name, which returns {key: seconds}.
      rounds: how many by default.
    """
    parser = argparse.ArgumentParser(description=doc.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--measure", metavar="FRAMEWORK")
    parser.add_argument("--json", type=Path, metavar="OUT")
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(options.measure)))
        return
    times = compare(script, rows, options.rounds)
    print_table(rows, times)
    if options.json:
        options.json.write_text(json.dumps(times, indent=1))
