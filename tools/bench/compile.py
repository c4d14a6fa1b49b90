"""First calls, weft against jax: what compiling takes, stage by stage, and what it gives.

usage: compile.py [--dir FOLDER] [--rounds N] [--stages] [--kernels] [--options JSON] [PROGRAM ...]

Programs are those of compile_programs.py and of FOLDER/programs.py (default: ../shared/bench beside
the checkout). Every framework traces, lowers, compiles and calls each in a process of its own, in
turn. Tracing and compiling are counted in the processor's time, of all threads; calls by the clock.
The least of all rounds counts. `--stages` says where a compilation's time goes and `--kernels` what
a program ends as, `--options` gives XLA options to both. Peaks of memory are of the whole process.
"""

import argparse
import importlib
import json
import os
import re
import resource
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
KINDS = ("fusion", "dot", "custom-call", "while", "copy", "transpose", "cosine", "concatenate")


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


def processor_time(f):
    """What a function returns, and the seconds of the processor that it took."""
    before = used().ru_utime
    result = f()
    return result, used().ru_utime - before


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
    """How many instructions of each kind the optimised program has."""
    found = Counter(re.findall(r" = \S+ ([\w-]+)\(", hlo))
    return {kind: found[kind] for kind in KINDS}


def measure(framework, name, folder, options):
    fw = load(framework)
    f, args = programs(folder)[name](fw)
    fw.jit(lambda x: x + 1).lower(1.0).compile()
    lowered, lowering = processor_time(lambda: fw.jit(f).lower(*args))
    compiled, compiling = processor_time(lambda: lowered.compile(options))
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


def print_row(name, runs, options):
    cells = [name]
    for key, unit in (("lower", 1e3), ("compile", 1e3), ("call", 1e6), ("faults", 1), ("peak", 1)):
        ours, theirs = (min(r[key] for r in runs[fw]) * unit for fw in ("weft", "jax"))
        ratio = f" = {ours / theirs:.2f}" if theirs else ""
        cells.append(f"{ours:.4g} / {theirs:.4g}{ratio}")
    if options.stages:
        for fw in ("weft", "jax"):
            run = min(runs[fw], key=lambda r: r["compile"])["stages"]
            cells.append(", ".join(f"{run[s] * 1e3:.0f}" for s in NAMES))
    if options.kernels:
        ours, theirs = (runs[fw][0]["kernels"] for fw in ("weft", "jax"))
        both = [
            f"{kind} {ours[kind]}/{theirs[kind]}" for kind in KINDS if ours[kind] + theirs[kind]
        ]
        cells.append(", ".join(both))
    print("| " + " | ".join(cells) + " |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("programs", nargs="*")
    parser.add_argument("--dir", type=Path, default=ROOT.parent / "shared" / "bench")
    parser.add_argument("--rounds", type=int, default=3)
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
    head = ["program", "trace + lower, ms", "compile, ms", "call, us", "page faults", "peak, MB"]
    if options.stages:
        head += [f"{fw}: {', '.join(NAMES)}, ms" for fw in ("weft", "jax")]
    head += ["instructions"] * options.kernels
    print("| " + " | ".join(head) + " |\n" + "|---" * len(head) + "|")
    for name in options.programs or programs(options.dir):
        print_row(name, compare(name, options), options)


if __name__ == "__main__":
    sys.exit(main())
