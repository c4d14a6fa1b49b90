"""Data-parallel training by several processes, with checkpoints: run it by distributed_run.py.

Each process has its part of every batch; the gradients of all are averaged before the parameters
move, so that they are the same everywhere. A checkpoint is written every few steps while training
goes on; a run that is started again goes on from the last one, and nothing is lost: its losses are
those of a run that was never interrupted. The number of processes may change in between.

usage: distributed_training.py [--steps N] [--out FOLDER] [--fail-at STEP]
"""

import argparse
import os
import signal
from typing import Any

import numpy as np

import weft
import weft.numpy as wnp
from weft.experimental import multihost_utils

BATCH = 60
WIDTH = 32
RATE = 0.1
EVERY = 5  # steps between checkpoints
SEED = 0

Params = dict[str, weft.Array]


def loss(params: Params, x: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> weft.Array:
    hidden = wnp.tanh(x @ params["in"])
    return wnp.mean((hidden @ params["out"] - y) ** 2)


value_and_grad = weft.jit(weft.value_and_grad(loss))


def batch_of(step: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """The batch of a step: the same in every process."""
    x = np.random.default_rng([SEED, step]).standard_normal((BATCH, 8)).astype(np.float32)
    return x, np.sin(x.sum(axis=1, keepdims=True))


def initial_params() -> Params:
    rng = np.random.default_rng(SEED)
    shapes = {"in": (8, WIDTH), "out": (WIDTH, 1)}
    return {
        name: wnp.asarray(rng.standard_normal(shape) / np.sqrt(shape[0]), wnp.float32)
        for name, shape in shapes.items()
    }


def train_step(params: Params, step: int) -> tuple[Params, float]:
    x, y = batch_of(step)
    rows = slice(weft.process_index(), None, weft.process_count())
    found = value_and_grad(params, x[rows], y[rows])
    value, grads = weft.tree.map(lambda g: g.mean(0), multihost_utils.process_allgather(found))
    return weft.tree.map(lambda p, g: p - RATE * g, params, grads), float(value)


def main() -> None:
    parser = argparse.ArgumentParser(description="Data-parallel training by several processes.")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--out", default="distributed_run", help="where checkpoints go")
    parser.add_argument("--fail-at", type=int, help="the last process kills itself at this step")
    options = parser.parse_args()
    weft.distributed.initialize(heartbeat_timeout_seconds=5)
    state: dict[str, Any] = {"params": initial_params(), "step": 0}
    if weft.checkpoints.latest_step(options.out) is not None:
        state = weft.checkpoints.restore(options.out, state)
    params = state["params"]
    saving = None
    for step in range(state["step"], options.steps):
        params, value = train_step(params, step)
        if weft.process_index() == 0:
            print(f"step {step} loss {value:.6f}", flush=True)
        if (step + 1) % EVERY == 0:
            state = {"params": params, "step": step + 1}
            saving = weft.checkpoints.save(options.out, state, step + 1, keep=2, asynchronous=True)
        if step == options.fail_at and weft.process_index() == weft.process_count() - 1:
            os.kill(os.getpid(), signal.SIGKILL)
    if saving is not None:
        saving.wait()


if __name__ == "__main__":
    main()
