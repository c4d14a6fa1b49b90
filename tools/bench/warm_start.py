"""New processes with what earlier ones have left on disk, weft against jax.

usage: warm_start.py [--dir FOLDER] [--rounds N] [--profile]

From the start of the interpreter to the first result of transformer_step (FOLDER/programs.py,
default: ../shared/bench beside the checkout): with an empty cache, with that of the process before,
and after an edit of one layer of twelve; of weft as it is, in one module, and with its traces kept
(`weft.aot`). Each in a process of its own, in turn; medians by the clock, and of the processor's
time, whose ratios are printed. Python has the bytecode of all modules, as of what is installed.
`--profile` says where the time goes.
"""

import json
import os
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
CASES = ("weft cold", "weft warm", "weft edited", "weft aot cold", "weft aot warm")
CASES += ("weft whole cold", "weft whole warm", "jax cold", "jax warm", "jax edited")
RATIOS = (
    ("weft warm", "jax warm"),
    ("weft aot warm", "jax warm"),
    ("weft whole warm", "jax warm"),
    ("weft cold", "jax cold"),
    ("weft edited", "jax cold"),
    ("weft edited", "jax edited"),
    ("weft edited", "weft cold"),
    ("weft edited", "weft whole cold"),
)


class Instead:
    """A module, but for some of its names."""

    def __init__(self, module, **others):
        self.__dict__.update(others)
        self._module = module

    def __getattr__(self, name):
        return getattr(self._module, name)


def edited(program, framework):
    """The same program, of whose twelve layers the sixth computes something else."""
    count = 0

    def gelu(x):
        nonlocal count
        count += 1
        y = framework.nn.gelu(x)
        return y * 1.5 if count == 6 else y

    return program(Instead(framework, nn=Instead(framework.nn, gelu=gelu)))


def child(folder, framework, how, is_edited, traces, start):
    times = [("interpreter", time.time() - start)]
    fw = __import__(framework)
    for module in ("numpy", "nn", "lax", "random"):
        __import__(f"{framework}.{module}")
    times.append(("import", time.time() - start))
    sys.path.insert(0, folder)
    import programs

    make = programs.transformer_step
    f, args = edited(make, fw) if is_edited else make(fw)
    fw.block_until_ready(args)
    times.append(("arguments", time.time() - start))
    if how == "aot":
        call = fw.aot(f, path=traces)
    else:
        lowered = fw.jit(f, **({"compile": "whole"} if how == "whole" else {})).lower(*args)
        times.append(("trace", time.time() - start))
        call = lowered.compile()
        times.append(("load", time.time() - start))
    fw.block_until_ready(call(*args))
    times.append(("call", time.time() - start))
    steps = {n: t - before for (n, t), (_, before) in zip(times, [("", 0), *times], strict=False)}
    used = os.times()
    print(json.dumps({"steps": steps, "processor": used.user + used.system}))


def run(options, folder, case):
    import subprocess

    framework, *kind, state = case.split()
    how = kind[0] if kind else "auto"
    cache = str(Path(folder, framework + how))
    env = {
        **os.environ,
        "PYTHONPYCACHEPREFIX": options.bytecode,
        "WEFT_CACHE_DIR": cache,
        "WEFT_ENABLE_COMPILATION_CACHE": "1",
        "JAX_COMPILATION_CACHE_DIR": cache,
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
        "TF_CPP_MIN_LOG_LEVEL": "3",
    }
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    start = time.time()
    is_edited = "edited" if state == "edited" else ""
    of_child = (str(options.dir.resolve()), framework, how, is_edited, cache + "traces", str(start))
    command = [sys.executable, __file__, "--child", *of_child]
    done = subprocess.run(command, capture_output=True, text=True, env=env)
    seconds = time.time() - start
    if done.returncode:
        sys.exit(f"{case} failed:\n{done.stderr}")
    return {"seconds": seconds, **json.loads(done.stdout.splitlines()[-1])}


def main():
    if "--child" in sys.argv:
        *how, start = sys.argv[2:]
        return child(*how, float(start))
    # Nothing that the measured processes do not need.
    import argparse
    import statistics
    import tempfile

    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--dir", type=Path, default=ROOT.parent / "shared" / "bench")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--profile", action="store_true")
    options = parser.parse_args()
    runs = {case: [] for case in CASES}
    with tempfile.TemporaryDirectory() as options.bytecode:
        for i in range(options.rounds):
            with tempfile.TemporaryDirectory() as folder:
                for case in ("weft warm", "jax warm") if i == 0 else ():  # for the bytecode
                    run(options, str(Path(folder, "first")), case)
                for case in CASES:
                    runs[case].append(run(options, folder, case))
            print(f"round {i + 1} of {options.rounds}", file=sys.stderr)
    print("| | seconds | the processor's |\n|---|---|---|")
    used = {}
    for case, results in runs.items():
        seconds = statistics.median(r["seconds"] for r in results)
        used[case] = statistics.median(r["processor"] for r in results)
        print(f"| {case} | {seconds:.2f} | {used[case]:.2f} |")
    for a, b in RATIOS:
        print(f"{a} / {b}: {used[a] / used[b]:.3f}")
    if options.profile:
        for case in ("weft warm", "weft edited", "weft aot warm", "weft whole warm", "jax warm"):
            for step in runs[case][0]["steps"]:
                spent = statistics.median(r["steps"][step] for r in runs[case])
                print(f"{case}: {step} {spent * 1e3:.0f} ms")
    return None


if __name__ == "__main__":
    sys.exit(main())
