"""Which elements of an operation's results depend on which elements of its operands.

A rule takes the sets of the operands (arrays of numbers, see `sets.py`; None where nothing is
depended on) and returns those of the results. Operations without a rule: every element of a result
depends on every element of the operands.
"""

import numpy as np

from weft import lax
from weft.extend.core import Literal


class Operands:
    """What a rule is given: the equation, its operands' sets, and their values where known."""

    def __init__(self, eqn, sets, ids, values):
        self.eqn, self.sets, self.ids, self._values = eqn, sets, ids, values
        self.params = eqn.params
        self.out_shapes = [v.aval.shape for v in eqn.outvars]

    def __len__(self):
        return len(self.ids)

    def shape(self, i):
        return self.eqn.invars[i].aval.shape

    def value(self, i):
        """The value of an operand as a NumPy array; None if it is not known."""
        v = self.eqn.invars[i]
        return np.asarray(v.val) if isinstance(v, Literal) else self._values(v)

    def filled(self, i):
        """The sets of an operand, as an array also where they are all empty."""
        return np.zeros(self.shape(i), np.int64) if self.ids[i] is None else self.ids[i]

    def only(self, *numbers):
        """Whether all operands that are depended on are among these."""
        return all(x is None for i, x in enumerate(self.ids) if i not in numbers)


def everything(o):
    """Every element of the results depends on all that the operands depend on."""
    found = [np.unique(x) for x in o.ids if x is not None]
    whole = o.sets.union_of_all(np.concatenate(found)) if found else 0
    return [np.full(shape, whole, np.int64) for shape in o.out_shapes]


def elementwise(o):
    shape = o.out_shapes[0]
    operands = [np.broadcast_to(x, shape) for x in o.ids if x is not None]
    return [o.sets.joined(operands)]


def _moved_by_numpy(function):
    return lambda o: [function(o.ids[0], o)]


def _slice(ids, o):
    strides = o.params["strides"] or [1] * ids.ndim
    parts = zip(o.params["start_indices"], o.params["limit_indices"], strides, strict=True)
    return ids[tuple(slice(*part) for part in parts)]


def _broadcast_in_dim(ids, o):
    shape, dims = o.out_shapes[0], o.params["broadcast_dimensions"]
    expanded = [1] * len(shape)
    for size, dim in zip(ids.shape, dims, strict=True):
        expanded[dim] = size
    return np.broadcast_to(ids.reshape(expanded), shape)


def _reshape(ids, o):
    if o.params.get("dimensions") is not None:
        ids = ids.transpose(o.params["dimensions"])
    return ids.reshape(o.out_shapes[0])


def _concatenate(o):
    parts = [o.filled(i) for i in range(len(o))]
    return [np.concatenate(parts, o.params["dimension"])]


def _select_n(o):
    which = o.value(0) if o.shape(0) else None
    if which is None:
        return elementwise(o)
    shape = o.out_shapes[0]
    cases = np.stack([np.broadcast_to(o.filled(i), shape) for i in range(1, len(o))])
    return [np.take_along_axis(cases, np.asarray(which, int)[None], 0)[0]]


def _moved_by_operation(*positions):
    """The rule of an operation that moves elements of the operands at `positions`, as the values of
    the others say: the operation itself is run on the sets' numbers."""

    def rule(o):
        others = {i: o.value(i) for i in range(len(o)) if i not in positions}
        if not o.only(*positions) or any(x is None for x in others.values()):
            return everything(o)
        params = dict(o.params)
        if "fill_value" in params:
            params["fill_value"] = 0
        operands = [
            lax.convert_element_type(o.filled(i), "int32") if i in positions else others[i]
            for i in range(len(o))
        ]
        return [np.asarray(o.eqn.primitive.bind(*operands, **params), np.int64)]

    return rule


def _reduced(o):
    if len(o.ids) > 1 and o.ids[1] is not None:
        return everything(o)
    return [o.sets.along(o.ids[0], list(o.params["axes"]))]


def _along_axis(name):
    """Of operations that mix the elements along one axis."""

    def rule(o):
        axis = o.params[name]
        joined = o.sets.joined([x for x in o.ids if x is not None])
        mixed = np.expand_dims(o.sets.along(joined, [axis % joined.ndim]), axis)
        return [np.broadcast_to(mixed, shape) for shape in o.out_shapes]

    return rule


def _dot_general(o):
    (contract, batch) = o.params["dimension_numbers"]
    parts = [
        _side_of_product(o, side, contract, batch) for side in (0, 1) if o.ids[side] is not None
    ]
    return [o.sets.joined(parts)]


def _side_of_product(o, side, contract, batch):
    """What the product depends on by way of one of its sides."""
    own, other = side, 1 - side
    ids = o.ids[own]
    free = [
        [i for i in range(len(o.shape(s))) if i not in contract[s] and i not in batch[s]]
        for s in (0, 1)
    ]
    shape = o.out_shapes[0]
    # (batch, free, contracted)
    ids = ids.transpose([*batch[own], *free[own], *contract[own]])
    n_batch, n_own = len(batch[0]), len(free[own])
    sizes = [int(np.prod(x)) for x in (shape[:n_batch], ids.shape[n_batch : n_batch + n_own])]
    ids = ids.reshape(*sizes, -1)
    weights = None if o.ids[other] is not None else o.value(other)
    if weights is None:
        out = o.sets.along(ids, [2])[:, :, None]
    else:
        weights = weights.transpose([*batch[other], *contract[other], *free[other]])
        weights = weights.reshape(sizes[0], ids.shape[2], -1)
        b, k, j = np.nonzero(weights)
        rows = ids[b, :, k]  # (products, own free)
        group = (b[:, None] * sizes[1] + np.arange(sizes[1])) * weights.shape[2] + j[:, None]
        count = sizes[0] * sizes[1] * weights.shape[2]
        out = o.sets.unions(group.reshape(-1), rows.reshape(-1), count)
        out = out.reshape(sizes[0], sizes[1], weights.shape[2])
    # The result's axes: batch, free of lhs, free of rhs.
    out = np.broadcast_to(out, (*sizes, int(np.prod([o.shape(other)[i] for i in free[other]]))))
    return (out if own == 0 else out.transpose(0, 2, 1)).reshape(shape)


def _scatter(adds):
    def rule(o):
        indices = o.value(1)
        if indices is None:
            return everything(o)
        shape, updates = o.shape(0), o.filled(2)
        target = _targets(o, indices, shape, updates.shape)
        kept = target >= 0
        ids = o.filled(0).reshape(-1)
        place = np.arange(len(ids))
        if not adds:
            hit = np.zeros(len(ids), bool)
            hit[target[kept]] = True
            ids = np.where(hit, 0, ids)
        group = np.concatenate([place, target[kept]])
        numbers = np.concatenate([ids, updates.reshape(-1)[kept]])
        return [o.sets.unions(group, numbers, len(ids)).reshape(shape)]

    return rule


def _targets(o, indices, shape, update_shape):
    """Where each update is written, as a number of an element; -1 if nowhere."""
    p = o.params
    batching = tuple(p.get("operand_batching_dims", ()))
    inserted = tuple(p["inserted_window_dims"])
    windows = iter([update_shape[i] for i in p["update_window_dims"]])
    sizes = [1 if i in inserted or i in batching else next(windows) for i in range(len(shape))]
    numbers = lax.GatherDimensionNumbers(
        offset_dims=tuple(p["update_window_dims"]),
        collapsed_slice_dims=inserted,
        start_index_map=tuple(p["scatter_dims_to_operand_dims"]),
        operand_batching_dims=batching,
        start_indices_batching_dims=tuple(p.get("scatter_indices_batching_dims", ())),
    )
    places = np.arange(int(np.prod(shape)), dtype=np.int32).reshape(shape)
    mode = p["mode"]
    found = lax.gather(places, indices, numbers, sizes, mode=mode, fill_value=-1)
    return np.asarray(found).reshape(-1)


_REDUCTIONS = "reduce_sum reduce_max reduce_min reduce_prod"

RULES = {
    "reshape": _moved_by_numpy(_reshape),
    "transpose": _moved_by_numpy(lambda ids, o: ids.transpose(o.params["permutation"])),
    "broadcast_in_dim": _moved_by_numpy(_broadcast_in_dim),
    "squeeze": _moved_by_numpy(lambda ids, o: ids.reshape(o.out_shapes[0])),
    "rev": _moved_by_numpy(lambda ids, o: np.flip(ids, o.params["dimensions"])),
    "slice": _moved_by_numpy(_slice),
    "concatenate": _concatenate,
    "select_n": _select_n,
    "pad": _moved_by_operation(0, 1),
    "gather": _moved_by_operation(0),
    "dynamic_slice": _moved_by_operation(0),
    "dynamic_update_slice": _moved_by_operation(0, 1),
    **dict.fromkeys(_REDUCTIONS.split(), _reduced),
    **{name: _along_axis("axis") for name in ("cumsum", "cumprod", "cummax", "cummin")},
    "cumlogsumexp": _along_axis("axis"),
    "sort": _along_axis("dimension"),
    "dot_general": _dot_general,
    "scatter-add": _scatter(True),
    "scatter": _scatter(False),
}
