"""Tensor-parallel training: one axis of the mesh splits the batch, the other every layer.

Along "model" a device has some of the heads of the attention and some of the hidden units of each
layer, so that only the sums behind both products are sent. The specs of the parameters say so, and
constraints in the middle of the model say it of the values; XLA does the rest.

usage: tensor_parallel.py [--steps N] [--devices N] [--quick]
"""

import math

import transformer
from transformer import Params

import weft
from weft import Array, lax
from weft.sharding import PartitionSpec as P

LAYERS = {  # the first dimension counts layers
    "before_mix": P(),
    "heads": P(None, None, None, "model"),
    "mix": P(None, "model", None),
    "before_up": P(),
    "up": P(None, None, "model"),
    "down": P(None, "model", None),
}
VALUES = {
    "stream": P("data", None, None),
    "heads": P("data", None, "model", None),
    "hidden": P("data", None, "model"),
}


def place(name: str, x: Array) -> Array:
    return lax.with_sharding_constraint(x, VALUES[name])


def specs(params: Params) -> Params:
    return weft.tree.map(lambda _: P(), params) | {"layers": LAYERS}


def main() -> None:
    options = transformer.options(__doc__)
    model = math.gcd(options.devices, 4)  # devices that share a layer
    mesh = weft.make_mesh((options.devices // model, model), ("data", "model"))
    split = specs(transformer.initial_params(options.sizes))
    loss = transformer.make_loss(options.sizes, place)
    transformer.run(options, mesh, loss, params=split, batch=P("data"))


if __name__ == "__main__":
    main()
