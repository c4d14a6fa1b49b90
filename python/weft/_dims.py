"""Symbolic dimensions: sizes that depend on variables, as Python sees them.

The core has the expressions; an object here is the handle of one (src/include/weft/dims.h).
"""

import operator
import re
from typing import Any

import numpy as np

from weft import _core
from weft.errors import AttributeValueError, InconclusiveDimensionOperation, ShapeError

_scopes: dict = {}  # by their numbers


class SymbolicScope:
    """The variables of symbolic dimensions, and what is known of them.

    Dimensions of two scopes do not mix. Variables are integers of at least 1.

    Args:
      constraints_str: texts "e1 >= e2", "e1 <= e2" or "e1 == e2" of expressions. The left side of
        an equality is one term; wherever it occurs, the right side takes its place.

    Raises ValueError for other texts.

    Examples:
      >>> scope = weft.export.SymbolicScope(["b >= 8"])
      >>> (b,) = weft.export.symbolic_shape("b", scope=scope)
      >>> b > 7
      True
    """

    def __init__(self, constraints_str=()):
        if isinstance(constraints_str, str):
            raise AttributeValueError(
                f"SymbolicScope expected a sequence of constraints; got {constraints_str!r}"
            )
        self._constraints = tuple(constraints_str)
        self._number = _core.dim_scope(list(self._constraints))
        _scopes[self._number] = self
        # Read where nothing is known, since here they all hold.
        apart = _core.dim_scope([]) if self._constraints else 0
        self._sides = [_sides(text, apart) for text in self._constraints]

    def __repr__(self):
        held = f" with constraints: {', '.join(self._constraints)}" if self._constraints else ""
        return f"SymbolicScope {self._number}{held}"

    def violated(self, sizes):
        """The constraints that do not hold for these sizes of the variables, a list of texts."""
        out = []
        for text, (greater, comparison, less) in zip(self._constraints, self._sides, strict=True):
            a, b = _core.dim_evaluate(greater, sizes), _core.dim_evaluate(less, sizes)
            if not (a == b if comparison == "==" else _core.dim_at_least(a, b)):
                out.append(text)
        return out


def _sides(text, scope):
    """The handles of both sides, the greater one first, and the comparison between them."""
    left, comparison, right = re.split("(==|>=|<=)", text, maxsplit=1)
    sides = [_core.dim_parse(side, scope) for side in (left, right)]
    greater, less = reversed(sides) if comparison == "<=" else sides
    return greater, comparison, less


def _is_size(x):
    return isinstance(x, (SymbolicDim, int, np.integer))


def _handle(x):
    return x._handle if isinstance(x, SymbolicDim) else operator.index(x)


def _size(handle):
    """The size of a number or a handle: an int, or a SymbolicDim."""
    return SymbolicDim(handle) if _core.dim_is_symbolic(handle) else handle


def _arithmetic(name, of_sizes, of_arrays):
    """The methods of an operator and of its reflection."""

    def forward(self, other):
        if _is_size(other) and of_sizes:
            return _size(of_sizes(self._handle, _handle(other)))
        return of_arrays(self.__jax_array__(), other)

    def backward(self, other):
        if _is_size(other) and of_sizes:
            return _size(of_sizes(_handle(other), self._handle))
        return of_arrays(other, self.__jax_array__())

    forward.__name__, backward.__name__ = f"__{name}__", f"__r{name}__"
    return forward, backward


def _dividing(f):
    def divide(a, b):
        if b == 0:
            raise ZeroDivisionError("division of a symbolic dimension by zero")
        return f(a, b)

    return divide


def _order(of_sizes, of_arrays):
    def compare(self, other):
        if _is_size(other):
            return of_sizes(self._handle, _handle(other))
        return of_arrays(self.__jax_array__(), other)

    return compare


class SymbolicDim:
    """A size that depends on variables, such as `2*n + 1`.

    It takes part in arithmetic with ints and others of its scope. Beside floats and arrays it is an
    integer scalar of the program.
    """

    __slots__ = ("_handle",)
    __array_ufunc__ = None  # so that NumPy leaves operators to this class

    def __init__(self, handle):
        self._handle = handle

    __add__, __radd__ = _arithmetic("add", _core.dim_add, operator.add)
    __sub__, __rsub__ = _arithmetic("sub", _core.dim_sub, operator.sub)
    __mul__, __rmul__ = _arithmetic("mul", _core.dim_mul, operator.mul)
    __floordiv__, __rfloordiv__ = _arithmetic(
        "floordiv", _dividing(_core.dim_floordiv), operator.floordiv
    )
    __mod__, __rmod__ = _arithmetic("mod", _dividing(_core.dim_mod), operator.mod)
    __truediv__, __rtruediv__ = _arithmetic("truediv", None, operator.truediv)

    __ge__ = _order(_core.dim_at_least, operator.ge)
    __le__ = _order(lambda a, b: _core.dim_at_least(b, a), operator.le)
    __gt__ = _order(lambda a, b: _core.dim_at_least(a, _core.dim_add(b, 1)), operator.gt)
    __lt__ = _order(lambda a, b: _core.dim_at_least(b, _core.dim_add(a, 1)), operator.lt)

    def __eq__(self, other):
        # Sizes that are equal for some values of the variables only are not equal.
        return self._handle == _handle(other) if _is_size(other) else NotImplemented

    def __hash__(self):
        return hash(self._handle)

    def __pow__(self, other):
        if isinstance(other, (int, np.integer)) and other >= 0:
            power = 1
            for _ in range(other):
                power = power * self
            return power
        return self.__jax_array__() ** other

    def __rpow__(self, other):
        return other ** self.__jax_array__()

    def __neg__(self):
        return 0 - self

    def __pos__(self):
        return self

    def __divmod__(self, other):
        return self // other, self % other

    def __rdivmod__(self, other):
        return other // self, other % self

    def __bool__(self):
        low, high = _core.dim_bounds(self._handle)
        if (low is None or low <= 0) and (high is None or high >= 0):
            raise InconclusiveDimensionOperation(
                f"Symbolic dimension '{self}' used as a condition: it may be zero\n"
                "  Compare it with a number."
            )
        return True

    def __int__(self):
        raise InconclusiveDimensionOperation(
            f"Symbolic dimension '{self}' used in a context that requires a constant"
        )

    def __jax_array__(self):
        dtype = _core.canonical_dtype(np.dtype(np.int64))
        return _core.astype(_core.bind("dim_as_value", dim=self, dtype=dtype), dtype, True)

    def __repr__(self):
        return _core.dim_text(self._handle)

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    @property
    def scope(self):
        """The SymbolicScope of its variables."""
        return _scopes[_core.dim_scope_of(self._handle)]


_core.install(dim_class=SymbolicDim)


def is_symbolic_dim(p):
    """Whether a size is a symbolic dimension, and not a number.

    Examples:
      >>> b, two = weft.export.symbolic_shape("b, 2")
      >>> weft.export.is_symbolic_dim(b), weft.export.is_symbolic_dim(two)
      (True, False)
    """
    return isinstance(p, SymbolicDim)


def to_size(x) -> Any:
    """A size as an int or a symbolic dimension; raises TypeError for others."""
    return x if isinstance(x, SymbolicDim) else operator.index(x)


def max_dim(d1, d2) -> Any:
    """The greater of two sizes of axes: integers or symbolic dimensions."""
    if not (is_symbolic_dim(d1) or is_symbolic_dim(d2)):
        return max(d1, d2)
    return _size(_core.dim_max(_handle(d1), _handle(d2)))


def min_dim(d1, d2) -> Any:
    """The smaller of two sizes of axes: integers or symbolic dimensions."""
    if not (is_symbolic_dim(d1) or is_symbolic_dim(d2)):
        return min(d1, d2)
    return _size(_core.dim_min(_handle(d1), _handle(d2)))


def slice_extent(index, size):
    """The first position that a slice of an axis takes, how many it takes, and their distance."""
    if not any(isinstance(x, SymbolicDim) for x in (size, index.start, index.stop)):
        start, stop, step = index.indices(size)
        return start, len(range(start, stop, step)), step
    return _core.slice_extent(index, size)


def scope_of(shapes):
    """The scope of the first symbolic dimension in some shapes; None if there is none."""
    dims = (d for shape in shapes for d in shape if isinstance(d, SymbolicDim))
    return next((d.scope for d in dims), None)


def solve(expected, given, describe):
    """The sizes of the variables, a dict, for which shapes are those given.

    Args:
      expected: shapes with symbolic dimensions.
      given: as many shapes, whose sizes may be symbolic dimensions of other scopes.
      describe: number of a shape -> what messages call it.

    Raises ShapeError where there are none, and AttributeValueError for variables that do not follow
    and for constraints that do not hold.
    """
    sizes: dict = {}
    pairs = [
        (i, want, got)
        for i, (shape, own) in enumerate(zip(expected, given, strict=True))
        for want, got in zip(shape, own, strict=True)
        if is_symbolic_dim(want)
    ]
    names = {name for _, want, _ in pairs for name in _core.dim_variables(want._handle)}
    while len(sizes) < len(names):
        found = next(filter(None, (_solved(want, got, sizes) for _, want, got in pairs)), None)
        if found is None:
            raise AttributeValueError(
                f"Cannot solve for the dimension variables {sorted(names - set(sizes))} of the "
                f"shapes {list(expected)}: expected each in a dimension that is linear in it"
            )
        sizes |= found
    known = ", ".join(f"{name} = {size}" for name, size in sorted(sizes.items()))
    for i, want, got in pairs:
        size = _size(_core.dim_evaluate(want._handle, sizes))
        if size != got:
            raise ShapeError(
                f"Shape mismatch for {describe(i)}: expected {expected[i]}; got {given[i]}, where "
                f"{want} is {size} for {known}"
            )
    for name, size in sizes.items():
        if not size >= 1:
            raise ShapeError(
                f"expected dimension variables of at least 1 in the shapes {list(expected)}; got "
                f"{name} = {size} for {list(given)}"
            )
    scope = scope_of(expected)
    violated = scope.violated(sizes) if scope else []
    if violated:
        raise AttributeValueError(
            f"expected sizes for which the constraint {violated[0]} holds, in the shapes "
            f"{list(expected)}; got {known} for {list(given)}"
        )
    return sizes


def _solved(want, got, sizes):
    """{variable: size} for a size that is linear in one variable that is not known; else None."""
    unknown = [name for name in _core.dim_variables(want._handle) if name not in sizes]
    if len(unknown) != 1 or "(" in str(want):
        return None
    (name,) = unknown
    at = [_size(_core.dim_evaluate(want._handle, {**sizes, name: x})) for x in (1, 2, 3)]
    slope = at[1] - at[0]
    if slope != at[2] - at[1]:
        return None
    return {name: (got - at[0]) // slope + 1}


def _split_spec(text):
    """The parts between commas that are in no parentheses."""
    text = text.strip()
    if text.startswith("(") and text.endswith(")") and _closes_last(text):
        text = text[1:-1]
    parts, depth, begin = [], 0, 0
    for i, c in enumerate(text):
        depth += (c == "(") - (c == ")")
        if c == "," and depth == 0:
            parts.append(text[begin:i])
            begin = i + 1
    parts.append(text[begin:])
    if not parts[-1].strip():
        parts.pop()
    return [part.strip() for part in parts]


def _closes_last(text):
    depth = 0
    for i, c in enumerate(text):
        depth += (c == "(") - (c == ")")
        if depth == 0:
            return i == len(text) - 1
    return False


def symbolic_shape(shape_spec, *, constraints=(), scope=None, like: Any = None):
    """A shape with symbolic dimensions, from a text such as "b, 2*n, floordiv(b, 3)".

    Args:
      shape_spec: sizes separated by commas, maybe in parentheses: integers, and expressions of
        variables with `+`, `-`, `*`, `^`, floordiv, mod, max and min. `_` is the size that `like`
        has there, `...` the remaining ones; None is "...".
      constraints: what is known of the variables, as for SymbolicScope.
      scope: the SymbolicScope of the variables; a new one by default.
      like: a shape.

    Returns:
      a tuple of ints and symbolic dimensions.

    Raises ValueError for other texts, for `scope` beside `constraints`, and for placeholders that
    `like` does not fill.

    Examples:
      >>> weft.export.symbolic_shape("b, 2*n, 3", constraints=["b >= 8"])
      (b, 2*n, 3)
    """
    if scope is not None and constraints:
        raise AttributeValueError("Cannot specify both a `scope` and `constraints`.")
    scope = scope or SymbolicScope(constraints)
    spec = "..." if shape_spec is None else shape_spec
    if not isinstance(spec, str):
        raise AttributeValueError(
            f"symbolic_shape expected a text such as 'b, 2*n' for shape_spec; got {shape_spec!r}"
        )
    parts = _split_spec(spec)
    if "..." in parts:
        at = parts.index("...")
        if like is None or len(like) < len(parts) - 1:
            raise _unfilled(spec, "...", like)
        parts[at : at + 1] = ["_"] * (len(like) - len(parts) + 1)
    if like is not None and len(like) != len(parts):
        raise AttributeValueError(
            f"symbolic_shape expected as many dimensions in '{spec}' as in like={tuple(like)}"
        )
    return tuple(_dimension(i, part, spec, scope, like) for i, part in enumerate(parts))


def _dimension(i, part, spec, scope, like: Any):
    own: Any = None if like is None else like[i]
    if part == "_":
        if own is None:
            raise _unfilled(spec, "_", like)
        return own
    try:
        size = _size(_core.dim_parse(part, scope._number))
    except ValueError as error:
        raise AttributeValueError(f"{error} in dimension {i} of '{spec}'") from None
    if like is not None and not is_symbolic_dim(size) and size != own:
        raise AttributeValueError(
            f"symbolic_shape '{spec}' expected size {own} of like={tuple(like)} for dimension {i}; "
            f"got {size}"
        )
    return size


def _unfilled(spec, placeholder, like):
    return AttributeValueError(
        f"symbolic shape '{spec}' has a placeholder '{placeholder}' that like={like} does not fill"
    )
