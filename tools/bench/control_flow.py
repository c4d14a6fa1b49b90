"""Costs of loops: associative_scan against jax, and the memory that checkpointing spares.

usage: control_flow.py [--rounds N] [--json OUT]     compares; prints a table of medians and ratios
       control_flow.py --measure FRAMEWORK           one round in this process; prints JSON
       control_flow.py --memory [CHECKPOINT]         the gradient through 10,000 steps, for one
                                                     setting in this process, or for several

The loops of lstm_scan and nbody are in acceptance.py. `--memory` prints, per setting of
scan(..., checkpoint=): the temporary memory that XLA reports for the gradient, by how much calling
it raises the peak of the process (on Linux), and the time of a call.
"""

import importlib
import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import sitting

ROWS = {
    "compile": ("associative_scan of 4096 complex 2x2 matrices, compile", "ms", 1e3, 1 / 3),
    "call": ("the same, call", "us", 1e6, None),
    "grad_compile": ("its gradient, compile", "ms", 1e3, 1 / 3),
}
STEPS = 10_000
SETTINGS = (None, 100, 50, 20)


def elapsed(run):
    start = time.perf_counter()
    result = run()
    return time.perf_counter() - start, result


def measure(name):
    fw = importlib.import_module(name)
    lax = fw.lax
    parts = (np.random.default_rng(0).standard_normal((2, 4096, 2, 2)) / 4).astype("f")
    xs = (parts[0] + 1j * parts[1]).astype("complex64")

    def products(xs):
        return lax.associative_scan(lambda a, b: a @ b, xs)

    def loss(parts):
        ys = products(parts[0] + 1j * parts[1])
        return fw.numpy.sum(ys.real**2 + ys.imag**2)

    compile_time, program = elapsed(fw.jit(products).lower(xs).compile)
    grad_time, _ = elapsed(fw.jit(fw.grad(loss)).lower(parts).compile)
    program(xs).block_until_ready()
    calls = [elapsed(lambda: program(xs).block_until_ready())[0] for _ in range(50)]
    return {"compile": compile_time, "grad_compile": grad_time, "call": sorted(calls)[25]}


def memory(checkpoint):
    import weft
    import weft.numpy as wnp

    w = np.random.default_rng(0).standard_normal((256, 256)).astype("f") / 16
    c = np.ones((32, 256), "f")
    xs = np.zeros((STEPS, 1), "f")

    def loss(c):
        def step(c, x):
            return wnp.tanh(c @ w + x), None

        return weft.lax.scan(step, c, xs, checkpoint=checkpoint)[0].sum()

    compiled = weft.jit(weft.grad(loss)).lower(c).compile()
    temporary = compiled.memory_analysis().temp_size_in_bytes / 1e6
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak that compiling made
    before = status("VmRSS")
    calls = [elapsed(lambda: compiled(c).block_until_ready())[0] for _ in range(5)]
    return {"temporary": temporary, "process": status("VmHWM") - before, "time": min(calls)}


def status(key):
    """A figure in MB of what Linux knows of this process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith(key))) / 1e3


def compare_memory():
    print("| checkpoint | temporary MB | process MB | time of a call |")
    print("|---|---|---|---|")
    for setting in SETTINGS:
        command = [sys.executable, __file__, "--memory", str(setting)]
        got = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
        cells = f"{got['temporary']:.1f} | {got['process']:.0f} | {got['time'] * 1e3:.0f} ms"
        print(f"| {setting} | {cells} |")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--memory"]:
        if len(sys.argv) == 2:
            compare_memory()
        else:
            print(json.dumps(memory(None if sys.argv[2] == "None" else int(sys.argv[2]))))
    else:
        sitting.run(__doc__, __file__, ROWS, measure, rounds=3)
