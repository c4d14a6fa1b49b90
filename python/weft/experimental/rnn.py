"""LSTM networks of several layers, in one or two directions, with cuDNN's packed weights.

They run as scans, on every platform. Layers of two directions count twice, the one in reverse after
the one forward. A vector of weights has, for all layers, W_ih then W_hh, and after those b_ih then
b_hh; in each the rows of the gates: input, forget, cell, output.
"""

import math as _math

import numpy as _np

from weft import _core, numpy as _wnp, random as _random
from weft._jit import composite as _composite
from weft._surface import open_to_users as _open_to_users, public as _public
from weft.errors import (
    NotImplementedRuleError as _NotImplementedRuleError,
    ShapeError as _ShapeError,
)
from weft.lax import _control
from weft.nn import sigmoid
from weft.numpy import tanh

__all__ = [
    "get_num_params_in_lstm",
    "init_lstm_weight",
    "lstm",
    "lstm_ref",
    "sigmoid",
    "swap_lstm_gates",
    "tanh",
    "unpack_lstm_weights",
]
__getattr__, __dir__ = _public(__name__, __all__)

_GATES = 4


def _shapes(input_size, hidden_size, num_layers, bidirectional):
    """The shapes of the weights in the order in which they are packed."""
    directions = 2 if bidirectional else 1
    rows = _GATES * hidden_size
    weights = []
    for layer in range(num_layers * directions):
        first = layer < directions
        width = input_size if first else hidden_size * directions
        weights += [(rows, width), (rows, hidden_size)]
    return weights + [(rows,)] * len(weights)


def get_num_params_in_lstm(input_size, hidden_size, num_layers, bidirectional):
    """How many weights a network has, an int.

    Examples:
      >>> from weft.experimental import rnn
      >>> rnn.get_num_params_in_lstm(3, 5, 1, bidirectional=False)
      200
    """
    shapes = _shapes(input_size, hidden_size, num_layers, bidirectional)
    return sum(_math.prod(shape) for shape in shapes)


def init_lstm_weight(rng, input_size, hidden_size, num_layers, bidirectional):
    """Packed weights, drawn evenly between -k and k, k = sqrt(1 / hidden_size).

    rng: a key. Returns a vector, float32.

    Examples:
      >>> from weft.experimental import rnn
      >>> rnn.init_lstm_weight(weft.random.key(0), 3, 5, 1, bidirectional=False).shape
      (200,)
    """
    count = get_num_params_in_lstm(input_size, hidden_size, num_layers, bidirectional)
    k = _np.sqrt(1.0 / hidden_size)
    return _random.uniform(rng, (count,), _np.float32, -k, k)


def _unpacked(weights, *sizes):
    shapes = _shapes(*sizes)
    count = sum(map(_math.prod, shapes))
    if _core.typeof(weights)[0] != (count,):
        raise _ShapeError(
            f"expected weights of shape ({count},), as get_num_params_in_lstm tells; got "
            f"{_core.typeof(weights)[0]}"
        )
    parts, at = [], 0
    for shape in shapes:
        parts.append(weights[at : at + _math.prod(shape)].reshape(shape))
        at += _math.prod(shape)
    return parts


def unpack_lstm_weights(weights, input_size, hidden_size, num_layers, bidirectional):
    """(W_ih, W_hh, b_ih, b_hh) of packed weights: dicts from the number of a layer to an array.

    Raises ShapeError for another number of weights.

    Examples:
      >>> from weft.experimental import rnn
      >>> weights = rnn.init_lstm_weight(weft.random.key(0), 3, 5, 1, bidirectional=False)
      >>> rnn.unpack_lstm_weights(weights, 3, 5, 1, bidirectional=False)[0][0].shape
      (20, 3)
    """
    parts = _unpacked(
        _core.asarray(weights), input_size, hidden_size, num_layers, bool(bidirectional)
    )
    half = len(parts) // 2
    kinds = (parts[0:half:2], parts[1:half:2], parts[half::2], parts[half + 1 :: 2])
    return tuple(dict(enumerate(kind)) for kind in kinds)


def swap_lstm_gates(weights, input_size, hidden_size, num_layers, bidirectional):
    """Packed weights in which the rows of the cell gate and of the output gate change places, as
    other libraries order them.

    Raises ShapeError for another number of weights.
    """
    parts = _unpacked(
        _core.asarray(weights), input_size, hidden_size, num_layers, bool(bidirectional)
    )
    swapped = []
    for part in parts:
        i, f, g, o = _wnp.split(part, _GATES)
        swapped.append(_wnp.concatenate([i, f, o, g]).reshape(-1))
    return _wnp.concatenate(swapped)


def lstm(
    x,
    h_0,
    c_0,
    weights,
    seq_lengths,
    input_size,
    hidden_size,
    num_layers,
    dropout,
    bidirectional,
    precision=None,
):
    """A network of LSTM layers run over a batch of sequences.

    Args:
      x: the sequences, of shape (batch, time, input_size).
      h_0, c_0: the states at the start, (layers * directions, batch, hidden_size).
      weights: packed, as `init_lstm_weight` makes them.
      seq_lengths: how many steps of each sequence count, int32 of shape (batch,).
      input_size, hidden_size, num_layers: ints.
      dropout: 0; NotImplementedError for others.
      bidirectional: whether there is a second direction.
      precision: that of the products.

    Returns:
      (y, h_n, c_n): the results of the last layer, (batch, time, hidden_size * directions), zero
      after the end of a sequence, and the states there, like `h_0`.
    """
    sizes = (input_size, hidden_size, num_layers, bool(bidirectional))
    layers = unpack_lstm_weights(weights, *sizes)
    return _run(x, h_0, c_0, layers, seq_lengths, num_layers, dropout, bidirectional, precision)


def lstm_ref(
    x,
    h_0,
    c_0,
    W_ih,
    W_hh,
    b_ih,
    b_hh,
    seq_lengths,
    input_size,
    hidden_size,
    num_layers,
    dropout,
    bidirectional,
):
    """`lstm` for weights that are unpacked, as `unpack_lstm_weights` returns them.

    `input_size` and `hidden_size` have no effect: the weights' shapes tell them.
    """
    layers = (W_ih, W_hh, b_ih, b_hh)
    return _run(x, h_0, c_0, layers, seq_lengths, num_layers, dropout, bidirectional, None)


def _run(x, h_0, c_0, layers, seq_lengths, num_layers, dropout, bidirectional, precision):
    if dropout:
        raise _NotImplementedRuleError(f"lstm expected no dropout; got {dropout!r}")
    if _core.typeof(seq_lengths)[1] != _np.int32:
        raise _NotImplementedRuleError(
            f"lstm expected seq_lengths of int32; got {_core.typeof(seq_lengths)[1]}"
        )
    options = {"num_layers": num_layers, "bidirectional": bool(bidirectional)}
    return _network(x, h_0, c_0, layers, seq_lengths, precision=precision, **options)


@_composite(static_argnames=("num_layers", "bidirectional", "precision"))
def _network(x, h_0, c_0, layers, seq_lengths, num_layers, bidirectional, precision):
    steps = _wnp.arange(x.shape[1])
    counts = steps[:, None] < seq_lengths  # (time, batch)
    backwards = _wnp.where(counts, seq_lengths - 1 - steps[:, None], steps[:, None])
    lanes = _wnp.arange(x.shape[0])
    y, last_h, last_c = _wnp.swapaxes(x, 0, 1), [], []
    for _ in range(num_layers):
        given, results = y, []
        for direction in range(2 if bidirectional else 1):
            number = len(last_h)
            w_ih, w_hh, b_ih, b_hh = (kind[number] for kind in layers)

            def step(state, row, w_hh=w_hh, b_hh=b_hh):
                (h, c), (gates, counts_now) = state, row
                gates = gates + _wnp.dot(h, w_hh.T, precision=precision) + b_hh
                i, f, g, o = _wnp.split(gates, _GATES, axis=1)
                new_c = sigmoid(f) * c + sigmoid(i) * tanh(g)
                new_h = sigmoid(o) * tanh(new_c)
                keep = counts_now[:, None]
                h, c = _wnp.where(keep, new_h, h), _wnp.where(keep, new_c, c)
                return (h, c), _wnp.where(keep, h, 0)

            inputs = given[backwards, lanes] if direction else given
            gates = _wnp.dot(inputs, w_ih.T, precision=precision) + b_ih
            (h, c), out = _control.scan(step, (h_0[number], c_0[number]), (gates, counts))
            results.append(out[backwards, lanes] if direction else out)
            last_h.append(h)
            last_c.append(c)
        y = _wnp.concatenate(results, axis=-1)
    return _wnp.swapaxes(y, 0, 1), _wnp.stack(last_h), _wnp.stack(last_c)


_open_to_users(__name__)
