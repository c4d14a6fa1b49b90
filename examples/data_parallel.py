"""Data-parallel training: every device has all parameters, and its part of every batch.

The step is written for one device. Where its arguments are is all that is said; XLA finds that the
gradients have to be summed over the devices, and does so.

usage: data_parallel.py [--steps N] [--devices N] [--quick]
"""

import transformer

import weft
from weft.sharding import PartitionSpec as P


def main() -> None:
    options = transformer.options(__doc__)
    mesh = weft.make_mesh((options.devices,), ("data",))
    loss = transformer.make_loss(options.sizes)
    transformer.run(options, mesh, loss, params=P(), batch=P("data"))


if __name__ == "__main__":
    main()
