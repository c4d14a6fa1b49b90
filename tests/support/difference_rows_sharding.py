"""Programs on arrays that are split over eight devices, with parts of unequal sizes in between."""

import numpy as np
from differences import Difference

_X = (np.arange(64, dtype=np.float32).reshape(8, 8) * 5) % 11 - 5
_Y = (np.arange(64, dtype=np.float32).reshape(8, 8) * 3) % 7 - 3
_ROWS = np.array([1, 1, 6])
_WEIGHTS = (np.arange(64, dtype=np.float32).reshape(8, 8) * 7) % 5


def _place(m, sizes, axes, spec):
    mesh = m.sharding.Mesh(np.array(m.devices()).reshape(sizes), axes)
    return m.sharding.NamedSharding(mesh, m.sharding.PartitionSpec(*spec))


def _split(f, x_spec, y_spec):
    """`run` of a row: f(m, jnp, x, y) of arrays over 4 devices along an axis a and 2 along b."""

    def run(m, jnp):
        x, y = (
            m.device_put(v, _place(m, (4, 2), ("a", "b"), spec))
            for v, spec in ((_X, x_spec), (_Y, y_spec))
        )
        return m.jit(lambda x, y: f(m, jnp, x, y))(x, y)

    return run


def _convolved(m, x, window):
    return m.lax.conv_general_dilated(x[None, None], window[None, None], (1, 1), "SAME")[0, 0]


def _gradient_by_window(m, jnp, x, y):
    return m.grad(lambda w: (_convolved(m, x, w) * _WEIGHTS).sum())(y[:3, 2:5])


def _gradient_of_top_k(m, jnp, x, y):
    return m.grad(lambda x: (m.lax.top_k(x, 3)[0] @ y[:3]).sum())(x)


def _spread(m, jnp):
    """Elements of an array that every device has are spread out, and the result is split."""
    place = _place(m, (8,), ("a",), ("a",))
    f = m.jit(lambda x: m.lax.pad(x, np.float32(0), ((1, 0, 1),)), out_shardings=place)
    return f(m.device_put(_X[0], _place(m, (8,), ("a",), ())))


def _shifted(m, jnp, x, y):
    whole = m.lax.with_sharding_constraint(x * 2, _place(m, (4, 2), ("a", "b"), ()))
    return m.lax.pad(whole, np.float32(1), ((1, -1, 0), (0, 0, 0))) + x


def _gradient_of_pool(m, jnp, x, y):
    def loss(x):
        pooled = m.lax.reduce_window(x, -np.inf, m.lax.max, (3, 3), (1, 1), "SAME")
        return (pooled * _WEIGHTS).sum()

    return m.grad(loss)(x)


def _slice_and_whole(m, jnp, x, y):
    """A slice whose parts are as large as those of what it is cut from, and that, both whole."""
    place = _place(m, (4, 2), ("a", "b"), ())
    whole = m.lax.with_sharding_constraint
    return whole(x[:7], place).sum(0) + whole(x, place).sum(0)


def _clamped(m, jnp, x, y):
    rows = m.lax.dynamic_slice(x, ((x[0, 0] < 9) * 5, 0), (4, 8))
    return m.lax.with_sharding_constraint(rows, _place(m, (4, 2), ("a", "b"), ("a",)))


def _of_rows(way):
    right = _X.copy()
    getattr(np, way).at(right, _ROWS, _Y[:3])
    return right


def _of_images(x, window):
    """The products of a window with what is around each element of an image, zeros outside."""
    around = np.lib.stride_tricks.sliding_window_view(np.pad(x, 1), (3, 3))
    return np.einsum("ijkl,kl->ij", around, window)


def _segments():
    right = np.zeros((3, 8), np.float32)
    np.add.at(right, [0, 1, 0, 2, 1], _X[:5])
    return right


def _top_k():
    # Integers may be equal: the first of them counts.
    right = np.zeros((8, 8), np.float32)
    order = np.argsort(-_X, axis=1, kind="stable")[:, :3]
    np.put_along_axis(right, order, np.broadcast_to(_Y[:3].sum(1), (8, 3)), 1)
    return right


def _down_a_row(x):
    return np.concatenate([np.ones((1, 8), np.float32), x[:-1]])


def _pool():
    # The first of equal elements counts.
    right, padded = np.zeros((10, 10), np.float32), np.pad(_X, 1, constant_values=-np.inf)
    for i in range(8):
        for j in range(8):
            k, n = np.unravel_index(padded[i : i + 3, j : j + 3].argmax(), (3, 3))
            right[i + k, j + n] += _WEIGHTS[i, j]
    return right[1:9, 1:9]


def _split_image(m, jnp):
    """An image that is split along its places, and a window that is split along features."""
    put = lambda x, *spec: m.device_put(x, _place(m, (2, 4), ("a", "b"), spec))
    numbers = ("NWC", "WIO", "NWC")
    convolve = lambda x, w: m.lax.conv_general_dilated(x, w, (1,), "SAME", None, None, numbers)
    window = put(np.ones((2, 8, 4), np.float32), None, None, "b")
    return m.jit(convolve)(put(_X[None], None, "a"), window)


def _one_update(m, jnp):
    place = _place(m, (8,), ("a",), ("a",))
    whole = _place(m, (8,), ("a",), ())
    f = lambda u, i: jnp.pad(u, (1, 7)).at[i].add(1)
    return m.jit(f, in_shardings=(whole, whole), out_shardings=place)(_X[0], np.array([9]))


_SPREAD = np.zeros(16, np.float32)
_SPREAD[1::2] = _X[0]


def _row(name, says, jax, run, right):
    return Difference(
        name=name,
        subject="Arrays on several devices",
        says=says,
        jax=jax,
        run=run,
        right=right,
        devices=8,
    )


ROWS = [
    _row(
        "rows_of_a_split_array_in_scatter",
        "`x.at[rows].add(y[:3])` is right where `x` and `y` are split over the devices of a mesh",
        "other numbers: what fills up the unequal parts of `y[:3]` is added as well",
        _split(lambda m, jnp, x, y: x.at[_ROWS].add(y[:3]), ("a",), ("b",)),
        _of_rows("add"),
    ),
    _row(
        "rows_of_a_split_array_in_maximum",
        "so is `x.at[rows].max(y[:3])`",
        "other numbers",
        _split(lambda m, jnp, x, y: x.at[_ROWS].max(y[:3]), ("a",), ("a",)),
        _of_rows("maximum"),
    ),
    _row(
        "segments_of_a_split_array",
        "`segment_sum(x[:5], ...)` is right where `x` is split",
        "other numbers",
        _split(
            lambda m, jnp, x, y: m.ops.segment_sum(x[:5], jnp.array([0, 1, 0, 2, 1]), 3),
            ("a",),
            ("a",),
        ),
        _segments(),
    ),
    _row(
        "window_of_a_split_array",
        "a convolution with a window that is cut out of a split array is right",
        "other numbers",
        _split(lambda m, jnp, x, y: _convolved(m, x, y[:3, :3]), (None, "b"), (None, "b")),
        _of_images(_X, _Y[:3, :3]),
    ),
    _row(
        "gradient_by_the_window_of_a_split_image",
        "so is the gradient of a convolution of a split image by its window",
        "other numbers",
        _split(_gradient_by_window, ("a",), ("a",)),
        np.array(
            [
                [(np.pad(_X, 1)[i : i + 8, j : j + 8] * _WEIGHTS).sum() for j in range(3)]
                for i in range(3)
            ]
        ),
    ),  # fmt: skip
    _row(
        "convolve_of_split_arrays",
        "`numpy.convolve` of rows of split arrays is right",
        "other numbers",
        _split(lambda m, jnp, x, y: jnp.convolve(x[0], y[0, :3], "same"), (None, "b"), (None, "b")),
        np.convolve(_X[0], _Y[0, :3], "same"),
    ),
    _row(
        "gradient_of_top_k_of_a_split_array",
        "the gradient of `top_k(x, 3)[0] @ y[:3]` is right where `y` is split",
        "other numbers",
        _split(_gradient_of_top_k, (), ("b", "a")),
        _top_k(),
    ),
    _row(
        "shift_of_a_whole_array",
        "a `pad` that shifts an array, which every device has whole, is right beside a split one",
        "the array without the shift",
        _split(_shifted, ("a",), ("a",)),
        _down_a_row(_X * 2) + _X,
    ),
    _row(
        "gradient_of_pools_of_a_split_image",
        "the gradient of a maximum over windows of a split image is right",
        "other numbers, wherever windows reach into another part",
        _split(_gradient_of_pool, ("a",), ("a",)),
        _pool(),
    ),
    _row(
        "slice_beside_what_it_is_cut_from",
        "`x[:7]` and `x` keep their own rows where both are gathered from several devices",
        "XLA refuses the program, or gives other numbers",
        _split(_slice_and_whole, ("a",), ("a",)),
        _X[:7].sum(0) + _X.sum(0),
    ),
    _row(
        "clamped_start_along_a_split_axis",
        "`dynamic_slice` of a split array clamps a start that lies too far behind",
        "rows from elsewhere, where the result is split as well",
        _split(_clamped, ("a",), ("a",)),
        _X[4:],
    ),
    _row(
        "spread_of_a_whole_array",
        "`pad` with gaps is right where every device has the operand and the result is split",
        "XLA refuses the program",
        _spread,
        _SPREAD,
    ),
    _row(
        "convolution_of_a_split_image",
        "a convolution is right where places of the image and features of the window are split",
        "a multiple: sums are added up over more devices than those that have parts of them",
        _split_image,
        (_X + np.pad(_X, ((0, 1), (0, 0)))[1:]).sum(1)[None, :, None] * np.ones(4),
    ),
    _row(
        "one_update_of_a_split_array",
        "`pad(u, (1, 7)).at[i].add(1)` is right for one index where the result is split",
        "each part that does not hold the index has another element of `u` in the place of its own",
        _one_update,
        np.pad(_X[0], (1, 7)) + (np.arange(16) == 9),
    ),
]
