"""Rules of how an operation's dimensions are split together: objects, their notation, their text.

A rule names a factor for each dimension of operands and results. Dimensions of one factor are split
alike.
"""

import re

from weft._surface import public_methods
from weft.errors import AttributeValueError

BATCHING = "…"  # any number of dimensions in front; followed by a number, of a group of its own
_FACTOR = re.compile(r"[^\W\d_]\w*")
_BATCHING = re.compile(rf"{BATCHING}(\d*)")
_TOKEN = re.compile(rf"{BATCHING}\d*|\w+|\S")
_KINDS = ("reduction_factors", "need_replication_factors", "permutation_factors")


def _refuse(what, got):
    raise AttributeValueError(f"sharding rule: expected {what}; got {got!r}")


def _check_factor(factor):
    if not isinstance(factor, str) or not _FACTOR.fullmatch(factor):
        _refuse("names of factors, which begin with a letter", factor)


class CompoundFactor(tuple):
    """The factors of a dimension that is made of several, outermost first: two names or more.

    Raises ValueError for fewer, and for what is no name.
    """

    def __new__(cls, *factors):
        if len(factors) < 2:
            _refuse("two factors or more in a compound factor", factors)
        for factor in factors:
            _check_factor(factor)
        return super().__new__(cls, factors)


class ArrayMapping(tuple):
    """Per dimension of an operand or result a factor, a name, or a CompoundFactor; the first entry
    may be BATCHING.

    Raises ValueError for anything else.
    """

    def __new__(cls, *dim_mappings):
        for i, entry in enumerate(dim_mappings):
            if isinstance(entry, str) and _BATCHING.fullmatch(entry):
                if i:
                    _refuse("an ellipsis as the first entry", dim_mappings)
            elif not isinstance(entry, CompoundFactor):
                _check_factor(entry)
        return super().__new__(cls, dim_mappings)


@public_methods
class SdyShardingRule:
    """How the dimensions of operands and results are split together.

    Args:
      operand_mappings, result_mappings: tuples with an ArrayMapping per operand and per result.
      reduction_factors: a tuple of the factors over which results are sums.
      need_replication_factors: of those that must not be split.
      permutation_factors: of those whose parts are exchanged where they are split.
      factor_sizes: sizes of the factors that occur in compound factors alone.

    Raises ValueError for a factor without a size, with two of them, of two kinds, and for one that
    the mappings lack.
    """

    def __init__(
        self,
        operand_mappings,
        result_mappings,
        *,
        reduction_factors=(),
        need_replication_factors=(),
        permutation_factors=(),
        **factor_sizes,
    ):
        self.operand_mappings = operand_mappings
        self.result_mappings = result_mappings
        self.reduction_factors = reduction_factors
        self.need_replication_factors = need_replication_factors
        self.permutation_factors = permutation_factors
        self.factor_sizes = factor_sizes
        entries = [entry for mapping in self._mappings() for entry in mapping]
        whole = {e for e in entries if isinstance(e, str) and not _BATCHING.fullmatch(e)}
        parts = {f for entry in entries if not isinstance(entry, str) for f in entry}
        for factor in sorted(parts - whole - factor_sizes.keys()):
            _refuse("the size of each factor that is in compound factors alone", factor)
        for factor in factor_sizes:
            if factor not in parts - whole:
                _refuse("sizes of factors that are in compound factors alone", factor)
        seen = set()
        for kind in _KINDS:
            factors = getattr(self, kind)
            if not isinstance(factors, tuple):
                _refuse(f"a tuple of {kind}", factors)
            for factor in factors:
                if factor not in whole | parts or factor in seen:
                    _refuse(f"{kind} that the rule has, each of one kind and once", factor)
                seen.add(factor)

    def _mappings(self):
        return (*self.operand_mappings, *self.result_mappings)

    def __str__(self):
        kinds = "".join(f" {kind}={getattr(self, kind)}" for kind in _KINDS if getattr(self, kind))
        mappings = f"{self.operand_mappings}, {self.result_mappings}"
        return f"SdyShardingRule({mappings}, {self.factor_sizes}{kinds})"


def parsed(rule, **options):
    """The rule of a notation as that of einsum: "... i (j k), k -> ... i j", factors by name."""
    if not isinstance(rule, str):
        raise AttributeValueError(f"sharding rule: expected text; got {rule!r}")
    sides = rule.replace("...", BATCHING).split("->")
    if len(sides) != 2:
        _refuse("one '->'", rule)
    operands, results = (tuple(_mapping(value, rule) for value in s.split(",")) for s in sides)
    return SdyShardingRule(operands, results, **options)


def _mapping(text, rule):
    entries, group = [], None
    for token in _TOKEN.findall(text):
        if token == "(" and group is None:
            group = []
        elif token == ")" and group is not None:
            entries.append(CompoundFactor(*group))
            group = None
        elif token in "()":
            _refuse("parentheses in pairs, without others within", rule)
        else:
            (entries if group is None else group).append(token)
    if group is not None:
        _refuse("parentheses in pairs, without others within", rule)
    return ArrayMapping(*entries)


class _Text:
    """The text of a rule for values of given shapes."""

    def __init__(self, rule, in_shapes, out_shapes):
        self._rule = rule
        self._sizes = dict(rule.factor_sizes)
        self._numbers = {}
        self._groups = {}  # of ellipses: how many dimensions they are
        for side, mappings, shapes in (
            ("operand", rule.operand_mappings, in_shapes),
            ("result", rule.result_mappings, out_shapes),
        ):
            if len(mappings) != len(shapes):
                _refuse(f"a mapping for each of {len(shapes)} {side}s", mappings)
        mappings = [tuple(m) for m in (*rule.operand_mappings, *rule.result_mappings)]
        shapes = [*in_shapes, *out_shapes]
        self._dims = [self._expanded(*each) for each in zip(mappings, shapes, strict=True)]
        for dims, shape in zip(self._dims, shapes, strict=True):
            for entry, size in zip(dims, shape, strict=True):
                self._note(entry, size)
        for dims, shape in zip(self._dims, shapes, strict=True):
            for entry, size in zip(dims, shape, strict=True):
                product = 1
                for factor in entry if isinstance(entry, CompoundFactor) else ():
                    product *= self._sizes[factor]
                if isinstance(entry, CompoundFactor) and product != size:
                    _refuse(f"a dimension of the size {product} of {entry}", size)

    def _expanded(self, mapping, shape):
        found = _BATCHING.fullmatch(mapping[0]) if mapping and isinstance(mapping[0], str) else None
        if found is None:
            if len(mapping) != len(shape):
                _refuse(f"a factor for each dimension of the shape {shape}", mapping)
            return mapping
        group = found[1] or "0"
        count = self._groups.setdefault(group, len(shape) - len(mapping) + 1)
        if count < 0 or count != len(shape) - len(mapping) + 1:
            _refuse(f"an ellipsis for the same dimensions of all values, of {count}", shape)
        # Names that no user can give.
        return (*(f"{BATCHING}{group}_{i}" for i in range(count)), *mapping[1:])

    def _note(self, entry, size):
        if isinstance(entry, CompoundFactor):
            for factor in entry:
                self._numbers.setdefault(factor, len(self._numbers))
            return
        self._numbers.setdefault(entry, len(self._numbers))
        known = self._sizes.setdefault(entry, size)
        if entry.startswith(BATCHING) and known != size:
            _refuse(f"dimensions of an ellipsis of one size, {known}", size)
        self._sizes[entry] = min(known, size)

    def _symbol(self, factor):
        number = self._numbers[factor]
        return chr(ord("i") + number) if number < 18 else f"z_{number - 17}"

    def _value(self, dims):
        entries = (e if isinstance(e, CompoundFactor) else (e,) for e in dims)
        return f"[{', '.join(''.join(map(self._symbol, e)) for e in entries)}]"

    def __str__(self):
        split = len(self._rule.operand_mappings)
        values = [self._value(dims) for dims in self._dims]
        sizes = ", ".join(f"{self._symbol(f)}={self._sizes[f]}" for f in self._numbers)
        kinds = "".join(
            f" {kind.removesuffix('_factors')}={{{', '.join(map(self._symbol, factors))}}}"
            for kind in _KINDS
            if (factors := self._ordered(getattr(self._rule, kind)))
        )
        sides = f"({', '.join(values[:split])})->({', '.join(values[split:])})"
        sizes = sizes and f" {{{sizes}}}"
        return f"#sdy.op_sharding_rule<{sides}{sizes}{kinds}, custom>"

    def _ordered(self, factors):
        return sorted(factors, key=self._numbers.__getitem__)  # as Shardy wants them


def text(rule, in_shapes, out_shapes):
    """A rule as Shardy's attribute writes it.

    Raises ValueError for another number of values or dimensions than the rule has, and for sizes
    that do not fit.
    """
    return str(_Text(rule, in_shapes, out_shapes))
