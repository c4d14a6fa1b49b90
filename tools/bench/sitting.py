"""Measures weft against jax in one sitting, for the benchmarks beside it.

Each round runs every framework in a process of its own, in turn, so that a slow minute of the
machine hits both. Only the ratios of the medians mean something.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path


def call_time(f, number=None, repeats=7):
    """Seconds of a call, the median over repeats of so many calls; by default of about 20 ms."""
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
    return statistics.median(times)


def compare(script, rows, rounds):
    """Medians over rounds: {row: {framework: seconds}}."""
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
        key: {name: statistics.median(r[key] for r in results) for name, results in runs.items()}
        for key in rows
    }


def print_table(rows, medians):
    print("| measured | weft | jax | weft / jax | asked for | reached |")
    print("|---|---|---|---|---|---|")
    for key, (label, unit, factor, target) in rows.items():
        ours, theirs = medians[key]["weft"], medians[key]["jax"]
        ratio = ours / theirs
        cells = [label, f"{ours * factor:.3g} {unit}", f"{theirs * factor:.3g} {unit}"]
        cells.append(f"{ratio:.4f}")
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
    medians = compare(script, rows, options.rounds)
    print_table(rows, medians)
    if options.json:
        options.json.write_text(json.dumps(medians, indent=1))
