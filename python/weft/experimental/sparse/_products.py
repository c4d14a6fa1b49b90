"""Products of BCOO arrays: with dense arrays, with each other, and of dense arrays at places."""

import math
import operator

from weft import _core, lax, numpy as wnp
from weft._jit import composite
from weft.errors import AttributeValueError, NotImplementedRuleError, OperandError, ShapeError
from weft.experimental.sparse import _entries
from weft.experimental.sparse._base import is_sparse
from weft.experimental.sparse._layout import (
    bcoo_sum_duplicates,
    bcoo_update_layout,
    sparse_shape,
)
from weft.experimental.sparse._shape import bcoo_transpose


def _numbers(dimension_numbers, lhs_shape, rhs_shape, name):
    """((lhs_contract, rhs_contract), (lhs_batch, rhs_batch)) as tuples of ints, checked."""
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = dimension_numbers
    numbers = [
        tuple(map(operator.index, x)) for x in (lhs_contract, rhs_contract, lhs_batch, rhs_batch)
    ]
    for left, right in (numbers[:2], numbers[2:]):
        sizes = [
            [shape[i] for i in axes] for shape, axes in ((lhs_shape, left), (rhs_shape, right))
        ]
        if sizes[0] != sizes[1]:
            raise ShapeError(
                f"[{name}] expected axes {left} of lhs and {right} of rhs to have the same sizes; "
                f"got shapes {tuple(lhs_shape)} and {tuple(rhs_shape)}"
            )
    return (numbers[0], numbers[1]), (numbers[2], numbers[3])


def bcoo_dot_general(
    lhs, rhs, *, dimension_numbers, precision=None, preferred_element_type=None, out_sharding=None
):
    """Product of two arrays of which at least one is BCOO, as lax.dot_general has it.

    Args:
      lhs, rhs: BCOO or array.
      dimension_numbers: ((lhs_contract, rhs_contract), (lhs_batch, rhs_batch)); any axes.
      precision: no effect.
      preferred_element_type: the dtype of the result; None for that of the promoted operands.
      out_sharding: None.

    Returns an array, or BCOO if both operands are. Places that are not stored are skipped, also
    beside infinities and NaN. Under `jit`, the product of two BCOO arrays stores as many entries as
    it could have at most.

    Raises AttributeValueError or OperandError for arguments that do not fit.
    """
    del precision
    if out_sharding is not None:
        raise AttributeValueError("[bcoo_dot_general] expected out_sharding=None")
    lhs, rhs = (x if is_sparse(x) else _core.asarray(x) for x in (lhs, rhs))
    numbers = _numbers(dimension_numbers, lhs.shape, rhs.shape, "bcoo_dot_general")
    dtype = preferred_element_type and _core.canonical_dtype(preferred_element_type)
    lhs, rhs = promoted(lhs, rhs, wider=dtype)
    if is_sparse(lhs) and is_sparse(rhs):
        result = _sparse_product(lhs, rhs, numbers)
    elif is_sparse(lhs):
        result = _product(lhs, rhs, numbers=numbers)
    elif is_sparse(rhs):
        result = _swapped_product(lhs, rhs, numbers=numbers)
    else:
        raise OperandError("[bcoo_dot_general] expected a BCOO array among the operands")
    return result if dtype is None else with_dtype(result, dtype)


def promoted(*operands, wider=None):
    """The operands with values of one dtype, which holds those of `wider` too."""
    beside = [] if wider is None else [wnp.zeros((), wider)]
    values = _core.promote_dtypes(*map(_values, operands), *beside)
    return [
        x._like(y, x.indices, x.shape, x.indices_sorted, x.unique_indices) if is_sparse(x) else y
        for x, y in zip(operands, values, strict=False)
    ]


def _values(x):
    return x.data if is_sparse(x) else x


def with_dtype(x, dtype):
    """An array or BCOO with values of another dtype."""
    if not is_sparse(x):
        return wnp.asarray(x, dtype)
    data = x.data.astype(dtype)
    return x._like(data, x.indices, x.shape, x.indices_sorted, x.unique_indices)


def _free(ndim, contract, batch):
    return [i for i in range(ndim) if i not in contract and i not in batch]


@composite(static_argnames="numbers")
def _swapped_product(lhs, rhs, *, numbers):
    """dense * BCOO, as BCOO * dense with its axes in the other order."""
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = numbers
    out = _product(rhs, lhs, numbers=((rhs_contract, lhs_contract), (rhs_batch, lhs_batch)))
    n, of_rhs = len(lhs_batch), rhs.ndim - len(rhs_contract) - len(rhs_batch)
    order = [*range(n), *range(n + of_rhs, out.ndim), *range(n, n + of_rhs)]
    return out.transpose(order)


def _with_batch(mat, axes):
    """(mat with these of its batch axes in front as its only ones, which axis each now was)."""
    others = [i for i in range(mat.ndim) if i not in axes]
    order = (*axes, *others)
    moved = bcoo_transpose(mat, permutation=order)
    return bcoo_update_layout(moved, n_batch=len(axes), on_inefficient=None), order


@composite(static_argnames="numbers")
def _product(mat, dense, *, numbers):
    """BCOO * dense."""
    (contract, dense_contract), (batch, dense_batch) = numbers
    beside = dict(zip((*batch, *contract), (*dense_batch, *dense_contract), strict=True))
    mat, order = _with_batch(mat, [i for i in batch if i < mat.n_batch])
    n, m = mat.n_batch, mat.n_batch + mat.n_sparse
    sparse, own_dense = order[n:m], order[m:]
    # Entries are looked up in `dense` by their columns, and added up by their rows.
    columns = [i for i in sparse if i in beside]
    rows = [i for i in sparse if i not in contract]
    in_step = [i for i in own_dense if i in batch]
    summed = [i for i in own_dense if i in contract]
    alone = [i for i in own_dense if i not in beside]
    dense_free = _free(dense.ndim, dense_contract, dense_batch)
    dense = dense.transpose(
        [*(beside[i] for i in (*order[:n], *columns, *in_step, *summed)), *dense_free]
    )
    row_sizes = tuple(mat.shape[order.index(i)] for i in rows)

    def one(data, indices, dense):
        if not own_dense and data.dtype != bool:
            return _by_matrix(data, indices, (sparse, rows, columns), dense, row_sizes)
        inside = _entries.are_inside(indices, sparse_shape(mat))
        to = _entries.moved(_columns(indices, sparse, rows), inside, row_sizes)
        values = _entries.taken(dense, _columns(indices, sparse, columns))
        data = data.transpose([0, *(1 + own_dense.index(i) for i in (*in_step, *summed, *alone))])
        k, c = len(in_step), len(summed)
        over, step = list(range(k + 1, k + c + 1)), list(range(k + 1))
        products = lax.dot_general(data, values, ((over, over), (step, step)))
        return _entries.put(products, to, row_sizes)

    out = _entries.over_batch(one, n)(mat.data, mat.indices, dense)
    made = [*order[:n], *rows, *in_step, *alone]
    wanted = [*batch, *_free(len(order), contract, batch)]
    return out.transpose([*map(made.index, wanted), *range(len(made), out.ndim)])


def _by_matrix(data, indices, labels, dense, row_sizes):
    """Products of values with rows of `dense`, added up where they belong: a matrix product."""
    sparse, rows, columns = labels
    sizes, free = dense.shape[: len(columns)], dense.shape[len(columns) :]
    transposed = (*sparse,) == (*columns, *rows) and len(rows) == len(columns) == 1
    if not transposed and ((*sparse,) != (*rows, *columns) or len(rows) != 1 or len(columns) != 1):
        to = _entries.flat_index(_columns(indices, sparse, rows), row_sizes)
        at = _entries.flat_index(_columns(indices, sparse, columns), sizes)
        indices = wnp.stack([to, at], 1)
    out = _core.bind(
        "sparse_dot",
        data,
        indices,
        dense.reshape(math.prod(sizes), math.prod(free)),
        num_rows=math.prod(row_sizes),
        transposed=transposed,
    )
    return out.reshape(*row_sizes, *free)


def _columns(indices, labels, wanted):
    """The columns of an array of index vectors that have these labels, in this order."""
    return wnp.stack([indices[:, labels.index(i)] for i in wanted], 1) if wanted else indices[:, :0]


def _sparse_product(lhs, rhs, numbers):
    """BCOO * BCOO."""
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = numbers
    lhs, rhs = (bcoo_update_layout(x, n_dense=0, on_inefficient=None) for x in (lhs, rhs))
    n = 0
    while n < len(lhs_batch) and lhs_batch[n] < lhs.n_batch and rhs_batch[n] < rhs.n_batch:
        n += 1
    lhs, lhs_order = _with_batch(lhs, lhs_batch[:n])
    rhs, rhs_order = _with_batch(rhs, rhs_batch[:n])
    lhs_sparse, rhs_sparse = lhs_order[n:], rhs_order[n:]
    found = (*lhs_batch[n:], *lhs_contract), (*rhs_batch[n:], *rhs_contract)
    kept = (
        (*lhs_batch[n:], *(i for i in sorted(lhs_sparse) if i not in found[0])),
        tuple(i for i in sorted(rhs_sparse) if i not in found[1]),
    )
    labels = tuple(
        tuple(tuple(order.index(i) for i in axes) for axes in (own, left))
        for order, own, left in zip((lhs_sparse, rhs_sparse), found, kept, strict=True)
    )
    matches, total = _matched(lhs, rhs, labels=labels)
    pairs = _entries.known(total)
    nse = None
    if pairs is None:
        pairs = _most_pairs(lhs, rhs, labels)
        nse = min(
            pairs,
            math.prod(sparse_shape(lhs)[i] for i in labels[0][1])
            * math.prod(sparse_shape(rhs)[i] for i in labels[1][1]),
        )
    return bcoo_sum_duplicates(_paired(lhs, rhs, matches, labels=labels, pairs=pairs), nse)


def _most_pairs(lhs, rhs, labels):
    """How many pairs of entries can have the same columns, at most."""
    of_lhs, of_rhs = (
        min(x.nse, math.prod(sparse_shape(x)[i] for i in range(x.n_sparse) if i not in own))
        if x.unique_indices
        else x.nse
        for x, (own, _) in ((lhs, labels[0]), (rhs, labels[1]))
    )
    return min(lhs.nse * of_rhs, rhs.nse * of_lhs)


@composite(static_argnames="labels")
def _matched(lhs, rhs, *, labels):
    """For each entry of lhs which entries of rhs have the same columns.

    Returns ((where these stand in an order of rhs, how many they are, that order), the number of
    all pairs).
    """

    def one(lhs_indices, rhs_indices):
        sizes = [sparse_shape(lhs)[i] for i in labels[0][0]]
        parts = []
        for mat, indices, (own, _) in (
            (lhs, lhs_indices, labels[0]),
            (rhs, rhs_indices, labels[1]),
        ):
            inside = _entries.are_inside(indices, sparse_shape(mat))
            parts.append((inside, indices[:, list(own)]))
        number, _ = _entries.grouped(wnp.concatenate([x for _, x in parts]), sizes)
        n_lhs, n = lhs.nse, lhs.nse + rhs.nse
        of_lhs = wnp.where(parts[0][0], number[:n_lhs], n)
        of_rhs = wnp.where(parts[1][0], number[n_lhs:], n)
        counts = wnp.zeros(n, number.dtype).at[of_rhs].add(1, mode="drop")
        starts = wnp.cumsum(counts, dtype=number.dtype) - counts
        at = {"mode": "fill", "fill_value": 0}
        return (
            starts.at[of_lhs].get(**at),
            counts.at[of_lhs].get(**at),
            wnp.argsort(of_rhs, stable=True).astype(number.dtype),
        )

    matches = _entries.over_batch(one, lhs.n_batch)(lhs.indices, rhs.indices)
    return matches, matches[1].sum(-1).max(initial=0)


@composite(static_argnames=("labels", "pairs"))
def _paired(lhs, rhs, matches, *, labels, pairs):
    sizes = tuple(
        sparse_shape(x)[i] for x, (_, kept) in ((lhs, labels[0]), (rhs, labels[1])) for i in kept
    )

    def one(lhs_data, lhs_indices, rhs_data, rhs_indices, starts, counts, order):
        ends = wnp.cumsum(counts, dtype=counts.dtype)
        pair = wnp.arange(pairs, dtype=counts.dtype)
        left = wnp.searchsorted(ends, pair, side="right").astype(counts.dtype)
        inside = left < lhs.nse
        left = wnp.minimum(left, max(lhs.nse - 1, 0))
        right = order[starts[left] + pair - (ends - counts)[left]] if rhs.nse and lhs.nse else left
        indices = wnp.concatenate(
            [lhs_indices[left][:, list(labels[0][1])], rhs_indices[right][:, list(labels[1][1])]], 1
        )
        data = lhs_data[left] * rhs_data[right]
        return _entries.masked(data, inside), _entries.moved(indices, inside, sizes)

    f = _entries.over_batch(one, lhs.n_batch)
    data, indices = f(lhs.data, lhs.indices, rhs.data, rhs.indices, *matches)
    return lhs._like(data, indices, (*lhs.shape[: lhs.n_batch], *sizes), False, False)


def bcoo_dot_general_sampled(A, B, indices, *, dimension_numbers):
    """Elements of the product of two arrays: those at some places, without computing the others.

    Args:
      A, B: arrays.
      indices: integer array (*batch, nse, n_sparse). `batch` are leading batch axes of the product.
      dimension_numbers: as of lax.dot_general.

    Returns an array (*batch, nse, ...), whose further axes are those of the product that `indices`
    has no column for. The values of padding are 0.

    Raises ShapeError for arguments that do not fit.
    """
    A, B = _core.promote_dtypes(A, B)
    numbers = _numbers(dimension_numbers, A.shape, B.shape, "bcoo_dot_general_sampled")
    ndim = A.ndim + B.ndim - 2 * len(numbers[0][0]) - len(numbers[1][0])
    n_batch, n_sparse = indices.ndim - 2, indices.shape[-1]
    if not 0 <= n_batch <= len(numbers[1][0]) or n_batch + n_sparse > ndim:
        raise ShapeError(
            "[bcoo_dot_general_sampled] expected indices of shape (*batch, nse, n_sparse) for a "
            f"product with {ndim} axes, {len(numbers[1][0])} of them batch axes; got shape "
            f"{indices.shape}"
        )
    return _sampled(A, B, indices, numbers=numbers)


@composite(static_argnames="numbers")
def _sampled(A, B, indices, *, numbers):
    (a_contract, b_contract), (a_batch, b_batch) = numbers
    a_free = _free(A.ndim, a_contract, a_batch)
    b_free = _free(B.ndim, b_contract, b_batch)
    A = A.transpose([*a_batch, *a_free, *a_contract])
    B = B.transpose([*b_batch, *b_free, *b_contract])
    n_batch, n_sparse = indices.ndim - 2, indices.shape[-1]
    k, c = len(a_batch) - n_batch, len(a_contract)
    # The product's axes are k batch ones, then those of A, then those of B.
    of_a = min(k + len(a_free), n_sparse)
    step = min(k, n_sparse)
    of_b = [*range(step), *range(k + len(a_free), n_sparse)]

    def one(A, B, indices):
        left = _entries.taken(A, indices[:, :of_a])
        right = _entries.taken(B, indices[:, of_b])
        in_step = list(range(1 + k - step))
        over = [list(range(x.ndim - c, x.ndim)) for x in (left, right)]
        return lax.dot_general(left, right, (over, (in_step, in_step)))

    return _entries.over_batch(one, n_batch)(A, B, indices)


def bcoo_conv_general_dilated(
    lhs,
    rhs,
    *,
    window_strides,
    padding,
    lhs_dilation=None,
    rhs_dilation=None,
    dimension_numbers=None,
    feature_group_count=1,
    batch_group_count=1,
    precision=None,
    preferred_element_type=None,
    out_sharding=None,
):
    """The convolution of two BCOO arrays along one axis, as lax.conv_general_dilated has it.

    Args:
      lhs, rhs: BCOO arrays of shape (1, 1, n): one batch element, one feature.
      window_strides, lhs_dilation, rhs_dilation: 1s.
      padding: "SAME", "VALID", or a pair of ints in a list.
      dimension_numbers, feature_group_count, batch_group_count: the defaults.
      precision, preferred_element_type, out_sharding: no effect.

    Returns a BCOO array with an entry for each pair of entries. Raises NotImplementedRuleError for
    other convolutions.
    """
    del precision, preferred_element_type, out_sharding
    ones = ((1,), [1], None)
    if (
        lhs.shape[:-1] != (1, 1)
        or rhs.shape[:-1] != (1, 1)
        or any(x not in ones for x in (window_strides, lhs_dilation, rhs_dilation))
        or dimension_numbers is not None
        or feature_group_count != 1
        or batch_group_count != 1
    ):
        raise NotImplementedRuleError(
            "[bcoo_conv_general_dilated] expected arrays of shape (1, 1, n), strides and dilations "
            "of 1, and the default dimension_numbers and groups"
        )
    if isinstance(padding, str):
        padding = lax.padtype_to_pads(lhs.shape[2:], rhs.shape[2:], (1,), padding)
    low, high = padding[0]
    size = lhs.shape[2] + low + high - rhs.shape[2] + 1
    lhs, rhs = promoted(lhs, rhs)
    lhs, rhs = (
        bcoo_update_layout(x, n_batch=0, n_dense=0, on_inefficient=None) for x in (lhs, rhs)
    )
    return _convolved(lhs, rhs, low=low, size=max(size, 0))


@composite(static_argnames=("low", "size"))
def _convolved(lhs, rhs, *, low, size):
    at = lhs.indices[:, None, 2] - rhs.indices[None, :, 2] + low
    inside = _entries.are_inside(lhs.indices, lhs.shape)[:, None]
    inside = inside & _entries.are_inside(rhs.indices, rhs.shape)
    data, column = (lhs.data[:, None] * rhs.data).reshape(-1), at.reshape(-1, 1)
    inside = inside.reshape(-1) & _entries.are_inside(column, (size,))
    zeros = wnp.zeros((len(data), 2), column.dtype)
    indices = _entries.moved(wnp.concatenate([zeros, column], 1), inside, (1, 1, size))
    return lhs._like(data, indices, (1, 1, size), False, False)
