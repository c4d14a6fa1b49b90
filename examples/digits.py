"""Learns to read handwritten digits: a small network, trained by gradient, compiled by weft.

One step of training (loss, gradient, update with momentum) is one compiled program. Shows what
`predict` compiles to, the accuracy on digits that the training has not seen, and the time of a step
against the same step by hand in NumPy; saves the curve of the loss.

usage: digits.py [--epochs N] [--out FOLDER]     digits_loss.png goes to FOLDER (default: here)
"""

# matplotlib and tqdm leave some of their types out.
# pyright: reportUnknownMemberType=false

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import load_digits
from tqdm import tqdm

import weft
import weft.numpy as wnp
from weft import Array
from weft.typing import ArrayLike

Params = list[dict[str, Any]]  # of each layer: weights "w" and offsets "b"
Floats = np.ndarray[Any, np.dtype[np.float32]]
Ints = np.ndarray[Any, np.dtype[np.int32]]
Data = tuple[Floats, Ints]

HIDDEN = 128
BATCH = 128
RATE = 0.05
MOMENTUM = 0.9
SEED = 0
WANTED_ACCURACY = 0.95


def initial_params(rng: np.random.Generator) -> Params:
    def layer(m: int, n: int) -> dict[str, Floats]:
        w = rng.standard_normal((m, n)) / np.sqrt(m)
        return {"w": w.astype(np.float32), "b": np.zeros(n, np.float32)}

    return [layer(64, HIDDEN), layer(HIDDEN, 10)]


def scores(params: Params, x: ArrayLike) -> Array:
    *hidden, last = params
    for layer in hidden:
        x = wnp.tanh(x @ layer["w"] + layer["b"])
    return x @ last["w"] + last["b"]


@weft.jit
def predict(params: Params, x: ArrayLike) -> Array:
    """The most likely digit of each row of pixels."""
    return wnp.argmax(scores(params, x), axis=1)


def loss(params: Params, x: ArrayLike, y: ArrayLike) -> Array:
    """Mean cross-entropy of the true digits."""
    log_p = weft.nn.log_softmax(scores(params, x))
    return -wnp.mean(wnp.take_along_axis(log_p, wnp.expand_dims(y, 1), axis=1))


@weft.jit
def step(
    params: Params, velocity: Params, x: ArrayLike, y: ArrayLike
) -> tuple[Params, Params, Array]:
    value, gradient = weft.value_and_grad(loss)(params, x, y)
    velocity = weft.tree.map(lambda v, g: MOMENTUM * v - RATE * g, velocity, gradient)
    params = weft.tree.map(lambda p, v: p + v, params, velocity)
    return params, velocity, value


def numpy_step(
    params: Params, velocity: Params, x: Floats, y: Ints
) -> tuple[Params, Params, float]:
    """The same step, its derivative written by hand."""
    first, last = params
    h = np.tanh(x @ first["w"] + first["b"])
    z = h @ last["w"] + last["b"]
    z -= z.max(axis=1, keepdims=True)
    log_p = z - np.log(np.exp(z).sum(axis=1, keepdims=True))
    rows = np.arange(len(y))
    value = -log_p[rows, y].mean()
    dz = np.exp(log_p)
    dz[rows, y] -= 1
    dz /= len(y)
    dh = (dz @ last["w"].T) * (1 - h * h)
    gradient = [{"w": x.T @ dh, "b": dh.sum(axis=0)}, {"w": h.T @ dz, "b": dz.sum(axis=0)}]
    velocity = weft.tree.map(lambda v, g: MOMENTUM * v - RATE * g, velocity, gradient)
    params = weft.tree.map(lambda p, v: p + v, params, velocity)
    return params, velocity, value


def data(rng: np.random.Generator) -> tuple[Data, Data]:
    digits: Any = load_digits()
    order = rng.permutation(len(digits.target))
    x = (digits.data[order] / 16.0).astype(np.float32)
    y = digits.target[order].astype(np.int32)
    cut = len(y) * 3 // 4
    return (x[:cut], y[:cut]), (x[cut:], y[cut:])


def train(
    params: Params, x: Floats, y: Ints, epochs: int, rng: np.random.Generator
) -> tuple[Params, Floats]:
    """Trained parameters, and the loss of every step."""
    velocity = weft.tree.map(np.zeros_like, params)
    losses: list[Array] = []
    with tqdm(range(epochs), desc="training", unit="epoch") as progress:
        for _ in progress:
            order = rng.permutation(len(y))
            for i in range(0, len(y) - BATCH + 1, BATCH):
                batch = order[i : i + BATCH]
                params, velocity, value = step(params, velocity, x[batch], y[batch])
                losses.append(value)
            progress.set_postfix(loss=f"{float(losses[-1]):.4f}")
    return params, np.array([float(value) for value in losses])


def save_curve(losses: Floats, path: Path) -> None:
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    axes.semilogy(losses)
    axes.set(title="digits: training", xlabel="step", ylabel="loss")
    figure.savefig(path, dpi=120)


def time_of(
    run: Callable[..., Any], params: Params, x: Floats, y: Ints, repeats: int = 200
) -> float:
    """Milliseconds of a step: the median, each waited for."""
    state = params, weft.tree.map(np.zeros_like, params)
    times: list[float] = []
    for _ in range(repeats):
        start = time.perf_counter()
        *state, value = run(*state, x, y)
        float(value)
        times.append(time.perf_counter() - start)
    return float(np.median(times)) * 1e3


def main() -> None:
    parser = argparse.ArgumentParser(description="Learns to read handwritten digits.")
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--out", type=Path, default=Path())
    options = parser.parse_args()
    rng = np.random.default_rng(SEED)
    (x, y), (x_test, y_test) = data(rng)
    start = initial_params(rng)

    print("predict as a graph")
    print(predict.trace(start, x_test).graph)
    print("\npredict as StableHLO")
    print(predict.lower(start, x_test).as_text())
    operations = step.trace(start, start, x[:BATCH], y[:BATCH]).graph.num_ops
    print(f"\na step of training is a graph of {operations} operations")

    clock = time.perf_counter()
    params, losses = train(start, x, y, options.epochs, rng)
    seconds = time.perf_counter() - clock
    accuracy = float(wnp.mean(predict(params, x_test) == y_test))
    print(f"{len(losses)} steps on {len(y)} digits in {seconds:.2f} s, compilation included")
    print(f"loss {losses[0]:.3f} -> {losses[-1]:.4f}")
    print(f"accuracy on {len(y_test)} held-out digits: {accuracy:.4f}")

    options.out.mkdir(parents=True, exist_ok=True)
    picture = options.out / "digits_loss.png"
    save_curve(losses, picture)
    print(f"loss curve: {picture.resolve()}")

    batch = x[:BATCH], y[:BATCH]
    ours, by_hand = time_of(step, start, *batch), time_of(numpy_step, start, *batch)
    print(f"time of a step: weft {ours:.3f} ms, by hand in NumPy {by_hand:.3f} ms")
    if accuracy <= WANTED_ACCURACY:
        raise SystemExit(f"the accuracy is not above {WANTED_ACCURACY}")


if __name__ == "__main__":
    main()
