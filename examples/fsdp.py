"""Fully sharded data parallelism: parameters and moments are split over the devices of the batch.

A device fetches the parameters of a layer when it comes to it, forwards and again backwards, and
forgets them after. That all_gather is written in the loss, which is a shard_map; its transpose
hands each device its part of the summed gradient, and the optimizer works on parts alone.

usage: fsdp.py [--steps N] [--devices N] [--quick]
"""

from typing import Any

import transformer
from transformer import Loss, Params, Sizes

import weft
from weft import Array, lax
from weft.sharding import PartitionSpec as P


def specs(params: Params) -> Params:
    """Layers, which their first dimension counts, are fetched one at a time: each is split."""
    layers = weft.tree.map(lambda _: P(None, "data"), params["layers"])
    return weft.tree.map(lambda _: P("data"), params) | {"layers": layers}


def fetched(parts: Any) -> Any:
    return lax.all_gather(parts, "data", axis=0, tiled=True)


def make_loss(sizes: Sizes, split: Params) -> Loss:
    @weft.shard_map(in_specs=(split, P("data")), out_specs=P())
    def loss(params: Params, batch: Any) -> Array:
        others = fetched({name: part for name, part in params.items() if name != "layers"})

        @weft.checkpoint  # the derivative fetches again what it needs
        def body(x: Array, parts: Params) -> tuple[Array, None]:
            return transformer.layer(fetched(parts), x, sizes.heads), None

        x, _ = lax.scan(body, transformer.embed(others, batch), params["layers"])
        return lax.pmean(transformer.cross_entropy(others, x, batch), "data")

    return loss


def main() -> None:
    options = transformer.options(__doc__)
    mesh = weft.make_mesh((options.devices,), ("data",))
    split = specs(transformer.initial_params(options.sizes))
    loss = make_loss(options.sizes, split)
    transformer.run(options, mesh, loss, params=split, batch=P("data"))


if __name__ == "__main__":
    main()
