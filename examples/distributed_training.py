"""Training on sharded arrays by several processes, with checkpoints: run it by distributed_run.py.

One program runs on the devices of all processes: batches are split over them, each process making
its own rows; the first weights are split too, and XLA adds what has to be exchanged. A checkpoint
is written every few steps while training goes on; a run that is started again goes on from the last
one, and nothing is lost: its losses are those of a run that was never interrupted. The number of
processes may change in between.

usage: distributed_training.py [--steps N] [--out FOLDER] [--fail-at STEP]
"""

import argparse
import os
import signal
import threading
from typing import Any

import numpy as np

import weft
import weft.numpy as wnp
from weft.sharding import Mesh, NamedSharding, PartitionSpec as P

BATCH = 60
WIDTH = 48
RATE = 0.1
EVERY = 5  # steps between checkpoints
SEED = 0

Params = dict[str, weft.Array]


def loss(params: Params, x: weft.Array, y: weft.Array) -> weft.Array:
    hidden = wnp.tanh(x @ params["in"])
    return wnp.mean((hidden @ params["out"] - y) ** 2)


def train_step(params: Params, x: weft.Array, y: weft.Array) -> tuple[Params, weft.Array]:
    value, grads = weft.value_and_grad(loss)(params, x, y)
    return weft.tree.map(lambda p, g: p - RATE * g, params, grads), value


def batch_of(step: int, split: NamedSharding) -> tuple[weft.Array, weft.Array]:
    """The batch of a step, of which each process makes the rows that its devices hold."""
    x = np.random.default_rng([SEED, step]).standard_normal((BATCH, 8)).astype(np.float32)
    y = np.sin(x.sum(axis=1, keepdims=True))

    def place(values: np.ndarray[Any, Any]) -> weft.Array:
        return weft.make_array_from_callback(values.shape, split, values.__getitem__)

    return place(x), place(y)


def initial_params(places: dict[str, NamedSharding]) -> Params:
    rng = np.random.default_rng(SEED)
    shapes = {"in": (8, WIDTH), "out": (WIDTH, 1)}
    values = {
        name: (rng.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32)
        for name, shape in shapes.items()
    }
    return weft.device_put(values, places)


def main() -> None:
    parser = argparse.ArgumentParser(description="Training by several processes.")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--out", default="distributed_run", help="where checkpoints go")
    parser.add_argument("--fail-at", type=int, help="the last process kills itself at this step")
    options = parser.parse_args()
    weft.distributed.initialize(heartbeat_timeout_seconds=5)
    mesh = Mesh(np.array(weft.devices()), "devices")
    rows = NamedSharding(mesh, P("devices"))
    places = {"in": NamedSharding(mesh, P(None, "devices")), "out": NamedSharding(mesh, P())}
    run_step = weft.jit(train_step, out_shardings=(places, None))
    state: dict[str, Any] = {"params": initial_params(places), "step": 0}
    if weft.checkpoints.latest_step(options.out) is not None:
        state = weft.checkpoints.restore(options.out, state)
    params = state["params"]
    saving = None
    for step in range(state["step"], options.steps):
        params, value = run_step(params, *batch_of(step, rows))
        shown = float(value)  # in every process: the value is, like the program, of all of them
        if weft.process_index() == 0:
            print(f"step {step} loss {shown:.6f}", flush=True)
        if (step + 1) % EVERY == 0:
            state = {"params": params, "step": step + 1}
            saving = weft.checkpoints.save(options.out, state, step + 1, keep=2, asynchronous=True)
        if step == options.fail_at and weft.process_index() == weft.process_count() - 1:
            # In the middle of the next step.
            threading.Timer(0.0, os.kill, (os.getpid(), signal.SIGKILL)).start()
    if saving is not None:
        saving.wait()


if __name__ == "__main__":
    main()
