"""First calls, weft against jax: what compiling takes, stage by stage, and what it gives.

usage: compile.py [--dir FOLDER] [--rounds N] [--clock] [--stages] [--kernels] [--options JSON]
                  [PROGRAM ...]

Programs are those of compile_programs.py and of FOLDER/programs.py (default: ../shared/bench beside
the checkout). Every framework traces, lowers, compiles and calls each in a process of its own, in
turn. Tracing and compiling are counted in the processor's time, of all threads, or with `--clock`
by the clock, as calls are. The least of all rounds counts. `--stages` says where a compilation's
time goes, `--kernels` what a program ends as, kind by kind, and `--options` gives XLA options to
both. Peaks of memory are of the whole process. At the end stand geometric means of weft / jax, and
the programs that are above what is asked for.
"""

import argparse
import importlib
import json
import math
import os
import re
import resource
import statistics
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import compile_programs

os.environ["WEFT_ENABLE_COMPILATION_CACHE"] = "0"  # what is measured is compiling
ROOT = Path(__file__).resolve().parent.parent.parent
MODULES = ("numpy", "nn", "lax", "random", "tree_util")
# What the spans of a profile belong to; what is inside of a span is its own unless named too.
STAGES = {
    "PjRtCpuClient::Compile": "other",
    "HLO passes": "HLO passes",
    "ThunkEmitter::": "emission",
    "FusionCompiler::Compile": "kernels in MLIR",
    "TaskDispatcher::dispatch": "LLVM",
    "JitCompiler::Compile": "waiting",
}
NAMES = ("parse", "HLO passes", "emission", "kernels in MLIR", "LLVM", "other")
# What is no work of its own.
FREE = {"parameter", "constant", "tuple", "get-tuple-element", "bitcast"}
# weft / jax at most, of each program and of the geometric mean.
ASKED = {"first call": (0.9, 0.4), "compile": (1.0, 1.0), "call": (1.03, 0.9), "peak": (1.1, 1.1)}


COLUMNS = {"lower": 1e3, "compile": 1e3, "first call": 1e3, "call": 1e6, "faults": 1, "peak": 1}


def programs(folder):
    found = dict(compile_programs.PROGRAMS)
    if (folder / "programs.py").exists():
        sys.path.insert(0, str(folder))
        found = importlib.import_module("programs").PROGRAMS | found
    return found


def load(framework):
    for module in MODULES:
        importlib.import_module(f"{framework}.{module}")
    return importlib.import_module(framework)


def used():
    return resource.getrusage(resource.RUSAGE_SELF)


def timed(f):
    """What a function returns, and the seconds that it took: of the processor, and by the clock."""
    before, start = used().ru_utime, time.perf_counter()
    result = f()
    return result, (used().ru_utime - before, time.perf_counter() - start)


def call_time(call):
    """Seconds and page faults of a call: the least of nine repeats of about 50 ms."""
    number, spent = 1, 0.0
    while spent < 0.05:
        number *= 2
        start = time.perf_counter()
        for _ in range(number):
            call()
        spent = time.perf_counter() - start
    seconds, faults = [], []
    for _ in range(9):
        start, before = time.perf_counter(), used().ru_minflt
        for _ in range(number):
            call()
        seconds.append((time.perf_counter() - start) / number)
        faults.append((used().ru_minflt - before) / number)
    return min(seconds), min(faults)


def stages(compile_program):
    """Seconds of each stage of a compilation, from a profile: those of all threads together."""
    from jaxlib import _profile_data, _profiler

    session = _profiler.ProfilerSession()
    start = time.perf_counter()
    compile_program()
    whole = time.perf_counter() - start
    profile = _profile_data.ProfileData.from_serialized_xspace(session.stop())
    seconds = Counter()
    for line in (line for plane in profile.planes for line in plane.lines):
        open_spans = []  # (end, stage)
        for event in sorted(line.events, key=lambda e: (e.start_ns, -e.duration_ns)):
            stage = next((s for name, s in STAGES.items() if event.name.startswith(name)), None)
            while open_spans and open_spans[-1][0] <= event.start_ns:
                open_spans.pop()
            if stage is None:
                continue
            if open_spans:
                seconds[open_spans[-1][1]] -= event.duration_ns / 1e9
            seconds[stage] += event.duration_ns / 1e9
            open_spans.append((event.start_ns + event.duration_ns, stage))
            if event.name == "PjRtCpuClient::Compile":
                whole -= event.duration_ns / 1e9
    return {"parse": whole} | {name: seconds[name] for name in NAMES[1:]}


def kernels(hlo):
    """How many instructions of each kind the optimised program has outside of its fusions: kernels,
    calls of libraries, copies. Fusions and calls count by their kind or target as well."""
    found = Counter()
    is_fused = False
    for line in hlo.splitlines():
        if line.endswith("{") and " = " not in line:
            is_fused = line.lstrip().startswith(("%fused_", "fused_", "%wrapped_", "wrapped_"))
        instruction = re.search(r" = .*? ([\w-]+)\(", line)
        if is_fused or not instruction or instruction[1] in FREE:
            continue
        detail = re.search(r'custom_call_target="([^"]*)"|kind=k(\w+)', line)
        name = instruction[1] + (f" {detail[1] or detail[2]}" if detail else "")
        found[name] += 1
    return found


def measure(framework, name, folder, options):
    fw = load(framework)
    f, args = programs(folder)[name](fw)
    fw.jit(lambda x: x + 1).lower(1.0).compile()
    lowered, lowering = timed(lambda: fw.jit(f).lower(*args))
    compiled, compiling = timed(lambda: lowered.compile(options))
    seconds, faults = call_time(lambda: fw.block_until_ready(compiled(*args)))
    peak = used().ru_maxrss / 1024
    again = fw.jit(lambda *args: f(*args)).lower(*args)
    return {
        "lower": lowering,
        "compile": compiling,
        "call": seconds,
        "faults": faults,
        "peak": peak,
        "stages": stages(lambda: again.compile({"xla_cpu_enable_fast_math": False, **options})),
        "kernels": kernels(compiled.as_text()),
    }


def compare(name, options):
    runs = {"weft": [], "jax": []}
    for _ in range(options.rounds):
        for framework, results in runs.items():
            command = [sys.executable, __file__, "--measure", framework, name]
            command += ["--dir", str(options.dir), "--options", options.options]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                sys.exit(f"{name} failed on {framework}:\n{done.stderr}")
            results.append(json.loads(done.stdout))
    return runs


def value(run, key, by_clock):
    if key == "first call":
        return value(run, "lower", by_clock) + value(run, "compile", by_clock)
    return run[key][by_clock] if key in ("lower", "compile") else run[key]


def print_row(name, runs, options):
    cells, ratios = [name], {}
    for key, unit in COLUMNS.items():
        ours, theirs = (min(value(r, key, options.clock) for r in runs[fw]) for fw in runs)
        ratio = ratios[key] = ours / theirs if theirs else math.nan
        told = f" = {ratio:.2f}" if theirs else ""
        cells.append(f"{ours * unit:.4g} / {theirs * unit:.4g}{told}")
    if options.stages:
        for fw in ("weft", "jax"):
            run = min(runs[fw], key=lambda r: value(r, "compile", options.clock))["stages"]
            cells.append(", ".join(f"{run[s] * 1e3:.0f}" for s in NAMES))
    if options.kernels:
        ours, theirs = (runs[fw][0]["kernels"] for fw in ("weft", "jax"))
        kinds = sorted(ours | theirs, key=lambda k: -max(ours.get(k, 0), theirs.get(k, 0)))
        cells.append(", ".join(f"{k} {ours.get(k, 0)}/{theirs.get(k, 0)}" for k in kinds))
    print("| " + " | ".join(cells) + " |", flush=True)
    return ratios


def print_means(rows):
    """Geometric means of what is asked for, and the programs that are above it."""
    for key, (each, mean) in ASKED.items():
        ratios = {name: row[key] for name, row in rows.items()}
        middle = math.exp(statistics.fmean(math.log(r) for r in ratios.values()))
        above = [f"{name} {r:.2f}" for name, r in ratios.items() if r > each]
        print(f"{key}: {middle:.3f} (asked for {mean}); above {each}: {', '.join(above) or 'none'}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("programs", nargs="*")
    parser.add_argument("--dir", type=Path, default=ROOT.parent / "shared" / "bench")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--clock", action="store_true")
    parser.add_argument("--stages", action="store_true")
    parser.add_argument("--kernels", action="store_true")
    parser.add_argument("--options", default="{}", metavar="JSON")
    parser.add_argument("--measure", metavar="FRAMEWORK")
    options = parser.parse_args()
    if options.measure:
        (name,) = options.programs
        result = measure(options.measure, name, options.dir, json.loads(options.options))
        print(json.dumps(result))
        return
    head = ["program", "trace + lower, ms", "compile, ms", "first call, ms", "call, us"]
    head += ["page faults", "peak, MB"]
    if options.stages:
        head += [f"{fw}: {', '.join(NAMES)}, ms" for fw in ("weft", "jax")]
    head += ["instructions"] * options.kernels
    print("| " + " | ".join(head) + " |\n" + "|---" * len(head) + "|")
    names = options.programs or programs(options.dir)
    print_means({name: print_row(name, compare(name, options), options) for name in names})


if __name__ == "__main__":
    sys.exit(main())
