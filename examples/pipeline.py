"""Pipeline-parallel training: every device has some of the layers, and feeds the next device.

A batch is cut into microbatches. At each tick every stage works on another one, then all hand on
what they have by a ppermute; with m microbatches and s stages that takes m + s - 1 ticks, of which
a stage idles for s - 1. The gradient runs through the same loop backwards.

usage: pipeline.py [--steps N] [--devices N] [--quick]
"""

from typing import Any

import transformer
from transformer import Loss, Params, Sizes

import weft
import weft.numpy as wnp
from weft import Array, lax
from weft.sharding import PartitionSpec as P

MICROBATCHES = 8


def specs(params: Params) -> Params:
    """Layers are split by their number; what comes before and after them is everywhere."""
    layers = weft.tree.map(lambda _: P("stage"), params["layers"])
    return weft.tree.map(lambda _: P(), params) | {"layers": layers}


def make_loss(sizes: Sizes, split: Params) -> Loss:
    @weft.shard_map(in_specs=(split, P()), out_specs=P())
    def loss(params: Params, batch: Any) -> Array:
        stage, stages = lax.axis_index("stage"), lax.axis_size("stage")
        onwards = [(i, i + 1) for i in range(stages - 1)]
        batch = batch.reshape(MICROBATCHES, -1, batch.shape[-1])
        # Cast here, and not where they are used, their gradients are summed over the stages once.
        others = {
            name: lax.pcast(p, "stage", to="varying")
            for name, p in params.items()
            if name != "layers"
        }
        entering = transformer.embed(others, batch)
        nothing = lax.pcast(wnp.zeros(entering.shape[1:]), "stage", to="varying")

        def tick(arrived: Array, t: Array) -> tuple[Array, Array]:
            first = entering[wnp.minimum(t, MICROBATCHES - 1)]
            x = wnp.where(stage == 0, first, arrived)
            x = transformer.all_layers(params["layers"], x, sizes.heads)
            return lax.ppermute(x, "stage", onwards), x

        _, left = lax.scan(tick, nothing, wnp.arange(MICROBATCHES + stages - 1))
        value = transformer.cross_entropy(others, left[stages - 1 :], batch)
        return lax.psum(wnp.where(stage == stages - 1, value, 0.0), "stage")

    return loss


def main() -> None:
    options = transformer.options(__doc__)
    mesh = weft.make_mesh((options.devices,), ("stage",))
    split = specs(transformer.initial_params(options.sizes))
    loss = make_loss(options.sizes, split)
    transformer.run(options, mesh, loss, params=split, batch=P())


if __name__ == "__main__":
    main()
