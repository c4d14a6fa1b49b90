"""Deep models in one module and in the steps that `compile="auto"` makes of them, and under jax.

usage: steps.py [--dir FOLDER] [--rounds N] [--seconds S] [--ways WAY,WAY] [PROGRAM ...]

Programs are those of `MODELS` here, of compile_programs.py and of FOLDER/programs.py (default:
../shared/bench beside the checkout); without names, those of `MODELS`. Every way (whole, auto,
blocks, jax) has processes of its own, in turn, without a cache on disk. Of the first call and of
calls afterwards (S seconds of them) it counts the processor's time of all threads, which other
processes disturb less than the clock, and the clock; of each, the median of all rounds. Peaks of
memory are of the whole process.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

import compile
import numpy as np
from compile_programs import normal

WAYS = ("whole", "auto", "jax")
COLUMNS = ("first", "call", "clock", "peak")


def mlp(width, layers=24, batch=128, kind="step"):
    """Residual layers with a norm: a step of descent, or a product with the Hessian."""

    def make(fw):
        jnp, tree = fw.numpy, fw.tree_util
        params = [
            {"up": normal(fw, width, width, seed=i), "b": normal(fw, width), "g": normal(fw, width)}
            for i in range(layers)
        ]

        def loss(params, x):
            for p in params:
                z = (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5)
                x = x + jnp.tanh((z * p["g"]) @ p["up"] + p["b"])
            return (x**2).mean()

        def step(params, x):
            return tree.tree_map(lambda p, d: p - 0.01 * d, params, fw.grad(loss)(params, x))

        def product(params, x):
            return fw.jvp(lambda p: fw.grad(loss)(p, x), (params,), (params,))[1]

        f = {"step": step, "forward": loss, "hvp": product}[kind]
        return f, (params, normal(fw, batch, width))

    return make


def convolutions(channels, layers=24, size=16):
    def make(fw):
        jnp, nn = fw.numpy, fw.nn
        params = [
            tuple(normal(fw, 3, 3, channels, channels, scale=0.1, seed=i + k) for k in (0, 1))
            for i in range(layers)
        ]
        gains = [normal(fw, channels, seed=i) for i in range(layers)]

        def convolve(x, w):
            numbers = ("NHWC", "HWIO", "NHWC")
            return fw.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=numbers)

        def loss(params, gains, x):
            for (a, b), g in zip(params, gains, strict=True):
                z = (x - x.mean((0, 1, 2))) / jnp.sqrt(x.var((0, 1, 2)) + 1e-5) * g
                x = x + convolve(nn.silu(convolve(nn.relu(z), a)), b)
            return (x**2).mean()

        return fw.grad(loss, (0, 1)), (params, gains, normal(fw, 4, size, size, channels))

    return make


def transformer(layers):
    def make(fw):
        import programs

        return programs.transformer_step(fw, layers=layers)

    return make


MODELS = {
    "mlp_256": mlp(256, 64),
    "mlp_512": mlp(512, 64),
    "mlp_1024": mlp(1024, 64),
    "mlp_512_forward": mlp(512, 96, kind="forward"),
    "hvp_512": mlp(512, kind="hvp"),
    "convolutions_32": convolutions(32, 48),
    "convolutions_64": convolutions(64, 48),
    "transformer_4": transformer(4),
    "transformer_12": transformer(12),
    "transformer_48": transformer(48),
}


def spent():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return np.array([used.ru_utime + used.ru_stime, time.perf_counter()])


def measure(name, way, options):
    fw = compile.load("jax" if way == "jax" else "weft")
    f, args = ({**compile.programs(options.dir), **MODELS})[name](fw)
    fw.block_until_ready(args)
    fw.block_until_ready(fw.jit(lambda x: x + 1)(1.0))
    f = fw.jit(f) if way == "jax" else fw.jit(f, compile=way)
    start = spent()
    fw.block_until_ready(f(*args))
    first = spent() - start
    for _ in range(2):
        fw.block_until_ready(f(*args))
    calls, start = [], time.perf_counter()
    while time.perf_counter() - start < options.seconds or len(calls) < 5:
        before = spent()
        fw.block_until_ready(f(*args))
        calls.append(spent() - before)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    steps = 0
    if way != "jax":
        steps = sum(block.times for block in f.lower(*args).compile().blocks)
    # The processor's time has a resolution of its own: many calls together.
    call = np.mean(calls, 0)[0], np.min(calls, 0)[1]
    return {"first": first[0], "call": call[0], "clock": call[1], "peak": peak, "steps": steps}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("programs", nargs="*")
    parser.add_argument("--dir", type=Path, default=compile.ROOT.parent / "shared" / "bench")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--measure", nargs=2, metavar=("WAY", "PROGRAM"))
    options = parser.parse_args()
    compile.programs(options.dir)  # puts the folder on the path
    if options.measure:
        way, name = options.measure
        print(json.dumps(measure(name, way, options)))
        return
    ways = options.ways.split(",")
    print("| program | steps | " + " | ".join(f"{c}: {', '.join(ways)}" for c in COLUMNS) + " |")
    print("|---" * (2 + len(COLUMNS)) + "|")
    for name in options.programs or MODELS:
        runs = {way: [] for way in ways}
        for _ in range(options.rounds):
            for way, results in runs.items():
                command = [sys.executable, __file__, "--dir", str(options.dir)]
                command += ["--seconds", str(options.seconds), "--measure", way, name]
                done = subprocess.run(command, capture_output=True, text=True)
                if done.returncode:
                    sys.exit(f"{name} failed, {way}:\n{done.stderr}")
                results.append(json.loads(done.stdout))
        cells = [name, str(max(r["steps"] for results in runs.values() for r in results))]
        for column in COLUMNS:
            least = [min(r[column] for r in runs[way]) for way in ways]
            middle = [statistics.median(r[column] for r in runs[way]) for way in ways]
            unit = 1 if column == "peak" else 1e3
            told = ", ".join(f"{m * unit:.4g}" for m in middle)
            ratios = " ".join(
                f"{middle[i] / middle[0]:.3f}" + f" (least {least[i] / least[0]:.3f})"
                for i in range(1, len(ways))
            )
            cells.append(f"{told}: {ratios}")
        print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    os.environ["WEFT_ENABLE_COMPILATION_CACHE"] = "0"
    sys.exit(main())
