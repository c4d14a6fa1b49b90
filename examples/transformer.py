"""A small transformer over bytes, and its training: what the examples of parallel training share.

It learns to write its own source: a batch is some pieces of this file, and the loss is how badly
each byte of a piece is foretold from those before it. The model knows nothing of devices; each of
data_parallel.py, tensor_parallel.py, fsdp.py and pipeline.py says by its mesh, its specs and its
loss where things are. `run` trains, and checks that the losses are those of one device. Run by
distributed_run.py, the devices are those of several processes.
"""

import argparse
import dataclasses
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import weft
import weft.numpy as wnp
from weft import Array, lax
from weft.sharding import Mesh, PartitionSpec as P

Params = dict[str, Any]
State = dict[str, Any]  # "params", their Adam moments "mean" and "square", and the "step"
Ints = np.ndarray[Any, np.dtype[np.int32]]
Place = Callable[[str, Array], Array]
Loss = Callable[[Params, Any], Array]
Step = Callable[[State, Any], tuple[State, Array]]

BYTES = 128  # the text is ASCII
RATE = 3e-3
SEED = 0
TOLERANCE = 1e-3  # sums over devices are rounded otherwise than those of one


@dataclasses.dataclass(frozen=True)
class Sizes:
    layers: int = 8
    width: int = 32
    heads: int = 8  # as many as devices: see docs/parallel.md, what XLA gets wrong
    length: int = 32  # bytes of a piece
    batch: int = 32  # pieces


QUICK = Sizes(length=8, batch=16)


def initial_params(sizes: Sizes) -> Params:
    """Parameters on the host. Those of all layers are stacked along their first dimension."""
    rng = np.random.default_rng(SEED)
    n, d = sizes.layers, sizes.width

    def normal(scale: float, *shape: int) -> Any:
        return (scale * rng.standard_normal(shape)).astype(np.float32)

    layers = {
        "before_mix": np.ones((n, d), np.float32),
        "heads": normal(d**-0.5, n, d, 3, d),  # to queries, keys and values
        "mix": normal(d**-0.5, n, d, d),
        "before_up": np.ones((n, d), np.float32),
        "up": normal(d**-0.5, n, d, 4 * d),
        "down": normal((4 * d) ** -0.5, n, 4 * d, d),
    }
    return {
        "embed": normal(0.1, BYTES, d),
        "position": normal(0.1, sizes.length, d),
        "layers": layers,
        "last": np.ones(d, np.float32),
        "head": normal(0.5 * d**-0.5, d, BYTES),
    }


def anywhere(name: str, x: Array) -> Array:
    del name
    return x


def norm(x: Array, scale: Array) -> Array:
    return x * lax.rsqrt(wnp.mean(x * x, axis=-1, keepdims=True) + 1e-6) * scale


def layer(p: Params, x: Array, heads: int, place: Place = anywhere) -> Array:
    """One layer on x, [batch, length, width].

    `place` is handed the values that may be split: "stream" [batch, length, width], "heads"
    [batch, length, heads, width of one] and "hidden" [batch, length, 4 * width].
    """
    by_head = wnp.einsum("bld,dce->cble", norm(x, p["before_mix"]), p["heads"])
    by_head = by_head.reshape(3, *x.shape[:2], heads, -1)
    query, key, value = (place("heads", part) for part in by_head)
    mixed = weft.nn.dot_product_attention(query, key, value, is_causal=True)
    x = place("stream", x + mixed.reshape(x.shape) @ p["mix"])
    hidden = place("hidden", weft.nn.gelu(norm(x, p["before_up"]) @ p["up"]))
    return place("stream", x + hidden @ p["down"])


def all_layers(layers: Params, x: Array, heads: int, place: Place = anywhere) -> Array:
    def body(x: Array, p: Params) -> tuple[Array, None]:
        return layer(p, x, heads, place), None

    return lax.scan(body, x, layers)[0]


def embed(params: Params, batch: Any) -> Array:
    return params["embed"][batch[..., :-1]] + params["position"]


def cross_entropy(params: Params, x: Array, batch: Any) -> Array:
    """How badly the bytes of a batch are foretold by x, what the last layer gave."""
    log_p = weft.nn.log_softmax(norm(x, params["last"]) @ params["head"])
    return -wnp.mean(wnp.take_along_axis(log_p, batch[..., 1:, None], axis=-1))


def make_loss(sizes: Sizes, place: Place = anywhere) -> Loss:
    def loss(params: Params, batch: Any) -> Array:
        x = place("stream", embed(params, batch))
        x = all_layers(params["layers"], x, sizes.heads, place)
        return cross_entropy(params, x, batch)

    return loss


def initial_state(sizes: Sizes) -> State:
    params = initial_params(sizes)
    zeros = weft.tree.map(np.zeros_like, params)
    return {"params": params, "mean": zeros, "square": zeros, "step": np.float32(0)}


def make_step(loss: Loss) -> Step:
    """A step of training by Adam."""

    def step(state: State, batch: Any) -> tuple[State, Array]:
        value, grads = weft.value_and_grad(loss)(state["params"], batch)
        count = state["step"] + 1
        mean = weft.tree.map(lambda m, g: 0.9 * m + 0.1 * g, state["mean"], grads)
        square = weft.tree.map(lambda s, g: 0.99 * s + 0.01 * g * g, state["square"], grads)
        rate = RATE * wnp.sqrt(1 - 0.99**count) / (1 - 0.9**count)

        def moved(p: Array, m: Array, s: Array) -> Array:
            return p - rate * m / (wnp.sqrt(s) + 1e-6)

        params = weft.tree.map(moved, state["params"], mean, square)
        return {"params": params, "mean": mean, "square": square, "step": count}, value

    return step


def batches(sizes: Sizes, steps: int) -> list[Ints]:
    """A batch per step, [batch, length + 1]: pieces of this file."""
    text = np.frombuffer(Path(__file__).read_bytes(), np.uint8).astype(np.int32)
    pieces = np.lib.stride_tricks.sliding_window_view(text, sizes.length + 1)
    rng = np.random.default_rng(SEED)
    return [pieces[rng.integers(len(pieces), size=sizes.batch)] for _ in range(steps)]


def progress(values: list[Ints]) -> Any:
    """The batches, shown as they are taken: by tqdm's bar if it is there, else as a line."""
    if weft.process_index() != 0:
        return values
    try:
        from tqdm import tqdm
    except ImportError:
        print(f"training: {len(values)} steps")
        return values
    return tqdm(values, desc="training", unit="step")


def train(step: Any, state: State, values: Any) -> tuple[State, list[float]]:
    """The last state, and the loss of every step."""
    losses: list[float] = []
    for batch in values:
        state, value = step(state, batch)
        losses.append(float(value))
        if hasattr(values, "set_postfix"):
            values.set_postfix(loss=f"{losses[-1]:.3f}")
    return state, losses


def options(description: str | None) -> argparse.Namespace:
    """The options of an example; makes as many devices of the CPUs as they say."""
    parser = argparse.ArgumentParser(description=(description or "").split("\n")[0])
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--devices", type=int, default=8, help="of all processes")
    parser.add_argument("--quick", action="store_true", help="a smaller model")
    found = parser.parse_args()
    found.sizes = QUICK if found.quick else Sizes()
    processes = int(os.environ.get("WEFT_NUM_PROCESSES", 1))
    weft.config.update("weft_num_cpu_devices", found.devices // processes)
    if processes > 1:
        weft.distributed.initialize()
    return found


def run(options: argparse.Namespace, mesh: Mesh, loss: Loss, params: Any, batch: Any) -> None:
    """Trains on the mesh and on one device, and shows what it found in the first process.

    `params` and `batch` say how parameters and batches are split: a spec, or a tree of them.
    """
    state, values = initial_state(options.sizes), batches(options.sizes, options.steps)
    _, expected = train(weft.jit(make_step(make_loss(options.sizes))), state, values)

    where = {"params": params, "mean": params, "square": params, "step": P()}
    with weft.set_mesh(mesh):
        step = weft.jit(
            make_step(loss),
            in_shardings=(where, batch),
            out_shardings=(where, P()),
            donate_argnums=0,
        )
        state = weft.device_put(state, where)
        sent = step.lower(state, values[0]).compile().communication()
        start = time.perf_counter()
        state, losses = train(step, state, progress(values))
    seconds = time.perf_counter() - start

    leaves = weft.tree.leaves(state)
    held = sum(leaf.addressable_shards[0].data.nbytes for leaf in leaves)
    share = held / sum(leaf.nbytes for leaf in leaves)
    apart = max(abs(a - b) for a, b in zip(losses, expected, strict=True))
    if weft.process_index() == 0:
        print(f"loss {losses[0]:.4f} -> {losses[-1]:.4f} in {seconds:.1f} s")
        print(f"a device holds {share:.1%} of parameters and moments")
        print(f"what the devices send each other in a step:\n{sent}")
        print(f"losses on one device differ by at most {apart:.1e}")
    if not apart <= TOLERANCE:
        raise SystemExit(f"the losses are not those of one device: {losses} and {expected}")
