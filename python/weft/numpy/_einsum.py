"""`einsum`: sums of products given by index letters.

The formula is parsed to one label per axis. Two operands at a time are then multiplied, in an order
that keeps the intermediate results small.
"""

import collections
import functools
import re
import string

import numpy as np

from weft import _core
from weft._arguments import shape_of
from weft._array import Array
from weft._dims import is_symbolic_dim
from weft._jit import composite
from weft.dtypes import requested_dtype
from weft.errors import AttributeValueError, OperandError, ShapeError
from weft.lax import _shape as lax_shape
from weft.lax._dot import precision_name
from weft.lax._sharding import split_as
from weft.numpy._matrices import diagonal
from weft.numpy._products import contract, ordered, sum_out
from weft.numpy._reductions import reject_out

# The names that opt_einsum has for ways to search for an order.
_SEARCHES = re.compile(
    "auto(-hq)?|optimal|dp|dynamic-programming|branch-(all|1|2)|greedy|eager|opportunistic"
    "|random-greedy(-128)?"
)


# The size that a symbolic dimension counts as in the search for an order.
_STAND_IN = 8


def einsum(
    subscripts,
    /,
    *operands,
    out=None,
    optimize="auto",
    precision=None,
    preferred_element_type=None,
    _dot_general=None,
    out_sharding=None,
):
    """Sum of products of arrays, as a formula says.

    Args:
      subscripts: the formula: for each operand a letter for each axis, separated by commas, then
        `->` and the letters of the result. Axes with the same letter are multiplied element by
        element; letters that the result lacks are summed over. `...` stands for leading axes that
        broadcast together. Without `->` the result has the letters that occur once, in alphabetical
        order. Or leave the formula out and give after each operand a list of integers in place of
        its letters, and at the end the list for the result.
      operands: the arrays.
      out: not supported, must be None.
      optimize: the order of multiplications: True, False for from left to right, a path as
        `einsum_path` gives it, or a name. "greedy" is quick to find, "optimal" needs the fewest
        multiplications; "auto" is one of these, by the number of operands. opt_einsum's names for
        its searches are taken as well, for the nearest of these.
      precision: see `weft.lax.Precision`.
      preferred_element_type: dtype in which to sum up, and of the result.
      _dot_general: in place of `weft.lax.dot_general`, what multiplies two arrays, called alike.
      out_sharding: None, or how the result is split, a PartitionSpec or NamedSharding.

    Examples:
      einsum("ij,jk->ik", a, b)      the matrix product
      einsum("...ii->...", a)        traces
      einsum("i,j->ij", a, b)        the outer product

    Examples:
      >>> a = wnp.array([[1, 2], [3, 4]])
      >>> wnp.einsum("ij,j->i", a, wnp.array([10, 1]))
      Array([12, 34], dtype=int32)
      >>> wnp.einsum("ii", a)
      Array(5, dtype=int32)
    """
    if out_sharding is not None:
        return split_as(
            out_sharding,
            "einsum",
            lambda: einsum(
                subscripts,
                *operands,
                out=out,
                optimize=optimize,
                precision=precision,
                preferred_element_type=preferred_element_type,
                _dot_general=_dot_general,
            ),
        )
    reject_out("einsum", out)
    operands, terms, output, shapes = _parse(subscripts, operands)
    if preferred_element_type is not None:
        preferred_element_type = requested_dtype(preferred_element_type, "einsum")
    if isinstance(optimize, (list, tuple)):
        path = tuple(tuple(step) for step in optimize if not isinstance(step, str))
    else:
        path = _path(terms, output, shapes, optimize)
    return _einsum(
        operands,
        terms=terms,
        output=output,
        path=path,
        precision=precision if _dot_general else precision_name(precision),
        dtype=preferred_element_type,
        dot=_dot_general,
    )


def einsum_path(subscripts, /, *operands, optimize="auto"):
    """The order in which `einsum` would multiply, a list of tuples of positions that its `optimize`
    takes, and a description of it, text.

    Examples:
      >>> order, _ = wnp.einsum_path("ij,jk,k", *map(np.ones, [(2, 50), (50, 60), (60,)]))
      >>> order
      [(1, 2), (0, 1)]
    """
    _, terms, output, shapes = _parse(subscripts, operands)
    formula, stand_ins = _for_numpy(terms, output, shapes)
    if optimize is False:  # for which NumPy has all operands at once
        chosen = ["einsum_path", *_path(terms, output, shapes, False)]
    elif isinstance(optimize, (list, tuple)):
        chosen = optimize
    else:
        chosen = _search(optimize, len(terms))
    path, description = np.einsum_path(formula, *stand_ins, optimize=chosen)
    return path[1:], description


def _parse(subscripts, operands):
    """The operands, the labels of each, those of the result, and the shapes."""
    if isinstance(subscripts, str):
        shapes = tuple(shape_of(x) for x in operands)
        return operands, *_parse_formula(subscripts, shapes), shapes
    given = (subscripts, *operands)
    if len(given) < 2 or any(isinstance(labels, Array) for labels in given[1::2]):
        raise OperandError(
            "[einsum] expected a formula, or a list of integers after each array\n"
            "  Write einsum('ij,jk->ik', a, b), or einsum(a, [0, 1], b, [1, 2], [0, 2])."
        )
    pairs = len(given) // 2
    operands = given[0 : 2 * pairs : 2]
    terms = [list(labels) for labels in given[1 : 2 * pairs : 2]]
    output = list(given[-1]) if len(given) % 2 else None
    shapes = tuple(shape_of(x) for x in operands)
    return operands, *_complete(terms, output, shapes), shapes


@functools.lru_cache(1024)
def _parse_formula(subscripts, shapes):
    inputs, arrow, output = subscripts.replace(" ", "").partition("->")
    terms = [_letters(term) for term in inputs.split(",")]
    if len(terms) != len(shapes):
        raise AttributeValueError(
            f"[einsum] expected an operand for each of the {len(terms)} terms of {subscripts!r}; "
            f"got {len(shapes)}"
        )
    return _complete(terms, _letters(output) if arrow else None, shapes)


def _complete(terms, output, shapes):
    """Checked labels of the operands and of the result, without `...`."""
    terms = [_expanded(term, len(shape)) for term, shape in zip(terms, shapes, strict=True)]
    if output is None:
        output = _implicit_output(terms)
    else:
        # The leading axes of the result are those of the operand with most of them.
        # They are summed over if it has no `...`.
        leading = {label for term in terms for label in term if isinstance(label, _Leading)}
        leading = leading if Ellipsis in output else ()
        output = _expanded(output, len(leading) + len([x for x in output if x is not Ellipsis]))
    _check(terms, output, shapes)
    return tuple(map(tuple, terms)), tuple(output)


class _Leading(int):
    """Label of an axis that `...` stands for, numbered from the last one."""

    def __eq__(self, other):
        return isinstance(other, _Leading) and int(self) == int(other)

    def __hash__(self):
        return hash(("...", int(self)))


def _letters(term):
    before, dots, after = term.partition("...")
    labels = [*before, *([Ellipsis] if dots else []), *after]
    for label in labels:
        if label in (".", "-", ">"):
            raise AttributeValueError(
                f"[einsum] expected labels, commas, '...' and '->'; got {label!r} in {term!r}"
            )
    return labels


def _expanded(labels, ndim):
    """The labels with `...` replaced by one for each axis that it stands for."""
    if Ellipsis not in labels:
        if len(labels) != ndim:
            raise ShapeError(
                f"[einsum] expected an index for each axis; got {len(labels)}, {labels}, for an "
                f"operand of {ndim} axes"
            )
        return labels
    at = labels.index(Ellipsis)
    count = ndim - (len(labels) - 1)
    if count < 0:
        raise ShapeError(f"[einsum] expected at most {ndim} indices; got {labels}")
    return [*labels[:at], *map(_Leading, range(count - 1, -1, -1)), *labels[at + 1 :]]


def _implicit_output(terms):
    counts = collections.Counter(label for term in terms for label in term)
    leading = sorted((x for x in counts if isinstance(x, _Leading)), reverse=True)
    named = sorted(x for x in counts if not isinstance(x, _Leading) and counts[x] == 1)
    return [*leading, *named]


def _check(terms, output, shapes):
    sizes = {}
    for term, shape in zip(terms, shapes, strict=True):
        for label, size in zip(term, shape, strict=True):
            if sizes.setdefault(label, size) == 1:
                sizes[label] = size
            elif size not in (1, sizes[label]):
                raise ShapeError(
                    f"[einsum] expected one size for index {label!r}; got {sizes[label]} and "
                    f"{size} in operands of shapes {', '.join(map(str, shapes))}"
                )
    for label in output:
        if label not in sizes or output.count(label) > 1:
            raise AttributeValueError(
                f"[einsum] expected each index of the result once, and in an operand; "
                f"got {label!r} in {output}"
            )


def _for_numpy(terms, output, shapes):
    """The formula in letters only, those of the user where they are, and arrays of the shapes that
    take no memory."""
    labels = dict.fromkeys(label for term in terms for label in term)
    others = (letter for letter in string.ascii_letters if letter not in labels)
    is_letter = lambda x: isinstance(x, str) and x in string.ascii_letters
    letters = {x: x if is_letter(x) else next(others) for x in labels}
    formula = ",".join("".join(letters[x] for x in term) for term in terms)
    stand_ins = [
        np.broadcast_to(np.float32(0), [_STAND_IN if is_symbolic_dim(n) else n for n in shape])
        for shape in shapes
    ]
    return f"{formula}->{''.join(letters[x] for x in output)}", stand_ins


@functools.lru_cache(1024)
def _path(terms, output, shapes, optimize):
    """Positions of the operands to take out for each step; the result is put at the end."""
    count = len(terms)
    if count <= 2:
        return (tuple(range(count)),)
    if optimize is False:
        return ((0, 1), *((0, rest) for rest in range(count - 2, 0, -1)))
    formula, stand_ins = _for_numpy(terms, output, shapes)
    steps = np.einsum_path(formula, *stand_ins, optimize=_search(optimize, count))[0][1:]
    return tuple(map(tuple, steps))


def _search(optimize, count):
    """NumPy's search for the order of `count` operands that is nearest to what was asked for."""
    if optimize is True:
        optimize = "auto"
    if not isinstance(optimize, str) or not _SEARCHES.fullmatch(optimize):
        raise AttributeValueError(
            "[einsum] expected optimize to be True, False, a path, or auto, auto-hq, optimal, dp, "
            "branch-all, branch-1, branch-2, greedy, eager, opportunistic, random-greedy or "
            f"random-greedy-128; got {optimize!r}"
        )
    if optimize in ("greedy", "eager", "opportunistic") or optimize.startswith("random"):
        return "greedy"
    # The others look for the best order, which takes too long to find among many.
    return "optimal" if optimize == "optimal" or count <= 4 else "greedy"


@composite(static_argnames=("terms", "output", "path", "precision", "dtype", "dot"))
def _einsum(operands, *, terms, output, path, precision, dtype, dot):
    operands = _core.promote_dtypes(*operands)
    pending = [_without_repeats(x, term) for x, term in zip(operands, terms, strict=True)]
    for step in path:
        chosen = [pending.pop(position) for position in sorted(step, reverse=True)][::-1]
        result = chosen[0]
        for index, other in enumerate(chosen[1:], 2):
            needed = {*output}.union(*(labels for _, labels in (*pending, *chosen[index:])))
            # Labels of the result in the order wanted at the end, as far as it is known.
            labels = (*result[1], *other[1])
            wanted = [x for x in output if x in labels]
            wanted += [x for x in dict.fromkeys(labels) if x in needed and x not in output]
            result = contract(*result, *other, tuple(wanted), precision, dtype, dot)
        pending.append(result)
    ((x, labels),) = pending
    x, labels = sum_out(x, labels, output, dtype)
    x = ordered(x, labels, output)
    return x if dtype is None else _core.astype(x, dtype)


def _without_repeats(x, labels):
    """Takes the diagonal where a label stands twice."""
    labels = list(labels)
    for label in dict.fromkeys(labels):
        while labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            if shape_of(x)[first] != shape_of(x)[second]:
                x = _broadcast_pair(x, first, second)
            x = diagonal(x, 0, first, second)
            labels = [y for i, y in enumerate(labels) if i not in (first, second)] + [label]
    return x, tuple(labels)


def _broadcast_pair(x, first, second):
    shape = list(shape_of(x))
    shape[first] = shape[second] = max(shape[first], shape[second])
    return lax_shape.broadcast_in_dim(x, shape, range(len(shape)))
