"""Runs the acceptance benchmark that lies outside this repository, on weft and on jax, in turn.

usage: acceptance.py [--dir FOLDER] [--rounds N] [PROGRAM ...]

FOLDER (default: ../shared/bench beside the checkout) holds phases.py and eager.py, which take the
name of a framework and print JSON lines. Programs that weft cannot run yet are reported as such.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

os.environ["WEFT_ENABLE_COMPILATION_CACHE"] = "0"  # what is measured is compiling
ROOT = Path(__file__).resolve().parent.parent.parent
FRAMEWORKS = ("weft", "jax")
PHASES = ("trace_lower_ms", "compile_ms", "call_us")


def run(script, *args):
    """The JSON lines a script printed, and its last line of complaint if it failed."""
    done = subprocess.run(
        [sys.executable, str(script), *args], capture_output=True, text=True, cwd=script.parent
    )
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    complaint = (done.stderr.strip().split("\n") or [""])[-1] if done.returncode else ""
    return lines, complaint


def program_names(folder):
    code = "import programs; print(*programs.PROGRAMS)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=folder)
    return done.stdout.split()


def phases(folder, programs, rounds):
    measured = defaultdict(list)
    complaints = {}
    for _ in range(rounds):
        for program in programs:
            for name in FRAMEWORKS:
                lines, complaint = run(folder / "phases.py", name, program)
                if complaint:
                    complaints[name, program] = complaint
                for line in lines:
                    if "program" in line:
                        measured[program, name].append(line)
    print("| program | " + " | ".join(f"{p} weft | jax | ratio" for p in PHASES) + " |")
    print("|---" * (1 + 3 * len(PHASES)) + "|")
    for program in programs:
        ours, theirs = (measured[program, name] for name in FRAMEWORKS)
        if not ours or not theirs:
            why = complaints.get(("weft", program)) or complaints.get(("jax", program))
            print(f"| {program} | does not run: {why} |")
            continue
        cells = []
        for phase in PHASES:
            a, b = (statistics.median(r[phase] for r in runs) for runs in (ours, theirs))
            cells.append(f"{a:.4g} | {b:.4g} | {a / b:.3f}")
        print(f"| {program} | " + " | ".join(cells) + " |")


def eager(folder, rounds):
    measured = defaultdict(list)
    for _ in range(rounds):
        for name in FRAMEWORKS:
            lines, complaint = run(folder / "eager.py", name)
            if not lines:
                print(f"\neager.py does not run on {name}: {complaint}")
                return
            measured[name].append(lines[0])
    print("\n| eager | weft | jax | ratio |\n|---|---|---|---|")
    for key in measured["weft"][0]:
        a, b = (statistics.median(r[key] for r in measured[name]) for name in FRAMEWORKS)
        print(f"| {key} | {a:.4g} | {b:.4g} | {a / b:.3f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("programs", nargs="*")
    parser.add_argument("--dir", type=Path, default=ROOT.parent / "shared" / "bench")
    parser.add_argument("--rounds", type=int, default=1)
    options = parser.parse_args()
    if not (options.dir / "phases.py").exists():
        sys.exit(f"no phases.py in {options.dir}; give its folder with --dir")
    phases(options.dir, options.programs or program_names(options.dir), options.rounds)
    eager(options.dir, options.rounds)


if __name__ == "__main__":
    main()
