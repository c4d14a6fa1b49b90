"""Reading StableHLO: lines a second, and the time that jaxlib's MLIR takes to parse the same text.

usage: read.py [MODULE.mlir ...]

Without files the text is one that weft emits: a network of many layers, and its gradients.
"""

import argparse
import time
from pathlib import Path

import numpy as np

import weft
import weft.numpy as wnp
from weft import compiler
from weft.runtime.mlir import parse_module

LAYERS = 400


def loss(weights, x):
    for w in weights:
        x = wnp.tanh(x @ w) * 0.5 + wnp.where(x > 0, x, wnp.sin(x))
    return wnp.sum(x * x)


def emitted():
    weights = [np.ones((8, 8), np.float32)] * LAYERS
    graph = weft.jit(weft.grad(loss)).trace(weights, np.ones((4, 8), np.float32)).graph
    return compiler.emit_stablehlo(graph, locations=True)


def best(run, times=5):
    seconds = []
    for _ in range(times):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", metavar="MODULE.mlir")
    files = parser.parse_args().files
    texts = {name: Path(name).read_text() for name in files} or {"emitted": emitted()}
    for name, text in texts.items():
        lines = text.count("\n")
        read, parse = best(lambda t=text: compiler.read(t)), best(lambda t=text: parse_module(t))
        print(
            f"{name}: {lines} lines; read {read * 1e3:.1f} ms, {lines / read:,.0f} lines a second; "
            f"MLIR {parse * 1e3:.1f} ms, {parse / read:.1f} times as long"
        )


if __name__ == "__main__":
    main()
