"""Calls in programs that XLA asks how to split while it compiles them."""

import functools
import itertools
import threading
import uuid
import weakref

from weft.runtime.devices import hlo_sharding

TARGET = "weft_custom_partitioning"
_process = uuid.uuid4().hex  # what is compiled for one process must not be found by another
_numbers = itertools.count()
_partitions = weakref.WeakValueDictionary()  # by the text that a call has: what splits it
_lock = threading.Lock()


def key_of(partition):
    """The text by which a call names a function, which has to live until it is compiled.

    `partition(args, results)` is given (shape, tiles) of each operand and result, tiles as
    `runtime.compile.output_tiles` has them. It returns (bytes or text of the module that computes
    the results of one device, per operand and result its blocks, an order of devices).
    """
    with _lock:
        _register()
    key = f"{_process}-{next(_numbers)}"
    _partitions[key.encode()] = partition
    return key


@functools.cache
def _register():
    from jaxlib import xla_client

    xla_client.register_custom_call_partitioner(
        TARGET, lambda sharding, *_: sharding, _partition, lambda *_: None, True
    )


def _partition(arg_shapes, arg_shardings, result_shape, result_sharding, key):
    from jaxlib import _hlo

    from weft.runtime.compile import tiles_of

    many = result_shape.is_tuple()
    shapes = result_shape.tuple_shapes() if many else (result_shape,)
    shardings = result_sharding.tuple_elements() if many else (result_sharding,)

    def known(all_shapes, all_shardings):
        return [
            (tuple(shape.dimensions()), tiles_of(sharding))
            for shape, sharding in zip(all_shapes, all_shardings, strict=True)
        ]

    module, args, results = _partitions[key](
        known(arg_shapes, arg_shardings), known(shapes, shardings)
    )
    args, results = ([hlo_sharding(*each) for each in side] for side in (args, results))
    whole = _hlo.HloSharding.tuple_sharding(result_shape, results) if many else results[0]
    return module, args, whole
