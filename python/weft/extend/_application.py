"""A user's primitive applied to operands of given types: runs its rules and checks their results.

The slots of the op in the C++ core (csrc/transforms/primitive.cpp) call this. Messages name the
primitive, the rule and the user's line.
"""

from typing import Any

from weft import _core
from weft._types.avals import ShapedArray, ShapeDtypeStruct
from weft.dtypes import float0, is_inexact
from weft.errors import ArgumentTypeError, DTypeError, NotImplementedRuleError, ShapeError
from weft.extend._zeros import UndefinedPrimal, Zero, instantiate_zeros


def _name(i, n):
    return "the result" if n == 1 else f"result {i}"


class Application:
    """One application of a primitive.

    Attributes: primitive, params (dict), in_avals, out_avals (tuples of ShapedArray; None while
    they are being inferred), place (the user's line, or "").
    """

    def __init__(self, primitive, params, in_avals, out_avals, place):
        self.primitive = primitive
        self.params = params
        self.in_avals = in_avals
        self.out_avals = out_avals
        self.place = place

    # ---- Messages

    def _at(self):
        return f"\n  at {self.place}" if self.place else ""

    def _rule(self, slot, purpose):
        rule = self.primitive._rules.get(slot)
        if rule is None:
            raise NotImplementedRuleError(
                f"[{self.primitive.name}] has no rule for {purpose}; define one with "
                f"def_{slot}{self._at()}"
            )
        return rule

    def _wrong(self, slot, expected, got, error: Any = ArgumentTypeError):
        name = self.primitive.name
        return error(f"[{name}] def_{slot}: expected {expected}; got {got}{self._at()}")

    def _listed(self, slot, what, value):
        """What a rule returned for the results, as a list of one per result."""
        if not self.primitive.multiple_results:
            return [value]
        if not isinstance(value, (list, tuple)):
            raise self._wrong(slot, f"a list of {what} (multiple_results is set)", value)
        if self.out_avals is not None and len(value) != len(self.out_avals):
            raise self._wrong(slot, f"{len(self.out_avals)} {what}", len(value))
        return list(value)

    def _pair(self, slot, value, what):
        if not isinstance(value, (list, tuple)) or len(value) != 2:
            raise self._wrong(slot, f"a pair ({what})", f"{value!r:.100}")
        return value

    def _typed(self, slot, what, value, aval):
        """The value if it has the type; a number is converted to it."""
        try:
            shape, dtype, weak = _core.typeof(value)
        except TypeError:
            raise self._wrong(slot, f"{what} to be {aval}", f"{value!r:.60}") from None
        if shape == aval.shape and dtype == aval.dtype:
            return value
        if weak and shape == aval.shape and _core.result_type(value, aval.dtype)[0] == aval.dtype:
            return _core.astype(value, aval.dtype)
        error = DTypeError if shape == aval.shape else ShapeError
        raise self._wrong(slot, f"{what} to be {aval}", ShapedArray(shape, dtype), error)

    def _checked_results(self, slot, value):
        values = self._listed(slot, "results", value)
        n = len(values)
        return [
            self._typed(slot, _name(i, n), v, aval)
            for i, (v, aval) in enumerate(zip(values, self.out_avals, strict=True))
        ]

    # ---- Slots

    def infer(self):
        """The types of the results."""
        rule = self._rule("abstract_eval", "types of results")
        avals = self._listed("abstract_eval", "ShapedArrays", rule(*self.in_avals, **self.params))
        for i, aval in enumerate(avals):
            if not isinstance(aval, ShapeDtypeStruct):
                what = _name(i, len(avals))
                raise self._wrong("abstract_eval", f"a ShapedArray for {what}", f"{aval!r:.60}")
        return avals

    def jvp(self, has_tangent):
        """The jvp rule on (operands, tangents of those that have one)."""
        return _Jvp(self, has_tangent)

    def transpose(self, linear, has_cotangent):
        """The transpose rule on (operands that are not linear, cotangents there are)."""
        return _Transpose(self, linear, has_cotangent)

    def batch(self, size, dims):
        """The batching rule on the operands, mapped at `dims`."""
        return _Batch(self, size, dims)

    def lowering(self, platform) -> Any:
        """(kind, function) by which the op is emitted: "stablehlo", "lowering" or "impl"."""
        rules = self.primitive._rules
        lowerings = rules.get("lowerings", {})
        rule: Any
        kind, rule = lowerings.get(platform) or lowerings.get(None) or (None, None)
        if kind == "lowering":
            return kind, self._lowering_of(rule)
        if kind == "stablehlo":
            return kind, lambda ctx, *names: self._names(rule(ctx, *names, **self.params))
        if "impl" in rules and platform == "cpu":
            return "impl", self._host_function(rules["impl"])
        has = ", ".join(sorted(map(str, lowerings))) if lowerings else "none"
        if "impl" in rules:
            has += " (def_impl serves programs on cpu only)"
        raise NotImplementedRuleError(
            f"[{self.primitive.name}] has no lowering for platform '{platform}'; define one with "
            f"def_lowering or def_stablehlo. It has: {has}{self._at()}"
        )

    def lowering_everywhere(self):
        """The function that lowers the op on every platform, or None."""
        lowerings = self.primitive._rules.get("lowerings", {})
        if list(lowerings) != [None] or lowerings[None][0] != "lowering":
            return None
        return self._lowering_of(lowerings[None][1])

    def _lowering_of(self, rule):
        return lambda tracers: self._checked_results("lowering", rule(*tracers, **self.params))

    def _names(self, value):
        names = self._listed("stablehlo", "names of results", value)
        for name in names:
            if not isinstance(name, str) or not name.startswith("%"):
                raise self._wrong("stablehlo", "names of results such as '%3'", f"{name!r:.60}")
        return names

    def _host_function(self, impl):
        def call(*arrays):
            results = impl(*arrays, **self.params)
            return results if self.primitive.multiple_results else [results]

        call.__name__ = self.primitive.name
        return call


class _Jvp:
    def __init__(self, application, has_tangent):
        self.application = application
        self.has_tangent = has_tangent
        self.returned = None  # per result, whether it has a tangent

    def __call__(self, tracers):
        a = self.application
        rule, symbolic_zeros = a._rule("jvp", "differentiation")
        primals = tracers[: len(a.in_avals)]
        given = iter(tracers[len(a.in_avals) :])
        tangents = _or_zeros(a.in_avals, self.has_tangent, given, symbolic_zeros)
        pair = a._pair(
            "jvp", rule(tuple(primals), tuple(tangents), **a.params), "results, their tangents"
        )
        results = a._checked_results("jvp", pair[0])
        out = []
        self.returned = []
        for i, t in enumerate(a._listed("jvp", "tangents", pair[1])):
            aval = a.out_avals[i]
            present = is_inexact(aval.dtype) and not isinstance(t, Zero)
            self.returned.append(present)
            if present:
                out.append(a._typed("jvp", f"the tangent of {_name(i, len(results))}", t, aval))
        return results + out


class _Transpose:
    def __init__(self, application, linear, has_cotangent):
        self.application = application
        self.linear = linear
        self.has_cotangent = has_cotangent
        self.returned = None  # per operand, whether it got a cotangent

    def __call__(self, tracers):
        a = self.application
        rule, symbolic_zeros = a._rule("transpose", "reverse-mode differentiation")
        given = iter(tracers)
        args = [
            UndefinedPrimal(aval) if linear else next(given)
            for aval, linear in zip(a.in_avals, self.linear, strict=True)
        ]
        cts = _or_zeros(a.out_avals, self.has_cotangent, given, symbolic_zeros)
        value = rule(cts if a.primitive.multiple_results else cts[0], *args, **a.params)
        if not isinstance(value, (list, tuple)) or len(value) != len(args):
            expected = f"a list of {len(args)} cotangents, one per operand (None for zero)"
            raise a._wrong("transpose", expected, f"{value!r:.100}")
        out = []
        self.returned = []
        for i, (ct, aval, linear) in enumerate(zip(value, a.in_avals, self.linear, strict=True)):
            present = linear and ct is not None and not isinstance(ct, Zero)
            self.returned.append(present)
            if present:
                out.append(a._typed("transpose", f"the cotangent of operand {i}", ct, aval))
        return out


class _Batch:
    def __init__(self, application, size, dims):
        self.application = application
        self.size = size
        self.dims = dims
        self.returned = None  # per result, its mapped axis or None

    def __call__(self, tracers):
        a = self.application
        rule = a._rule("batching", "vmap")
        pair = a._pair(
            "batching", rule(tuple(tracers), self.dims, **a.params), "results, their dims"
        )
        results = a._listed("batching", "results", pair[0])
        self.returned = a._listed("batching", "dims", pair[1])
        out = []
        for i, (r, dim, aval) in enumerate(zip(results, self.returned, a.out_avals, strict=True)):
            if dim is not None and (not isinstance(dim, int) or not 0 <= dim <= len(aval.shape)):
                expected = f"the dim of {_name(i, len(results))} to be None or an axis"
                raise a._wrong("batching", f"{expected} up to {len(aval.shape)}", repr(dim))
            shape = aval.shape if dim is None else (*aval.shape[:dim], self.size, *aval.shape[dim:])
            what = f"{_name(i, len(results))}, mapped at {dim},"
            out.append(a._typed("batching", what, r, ShapedArray(shape, aval.dtype)))
        return out


def _or_zeros(avals, present, given, symbolic_zeros):
    """Tangents (or cotangents) of values: the next of `given` where present, else a zero."""
    out = []
    for aval, has in zip(avals, present, strict=True):
        zero = Zero(_tangent_aval(aval))
        out.append(next(given) if has else zero if symbolic_zeros else instantiate_zeros(zero))
    return out


def _tangent_aval(aval):
    if is_inexact(aval.dtype):
        return aval
    return ShapedArray(aval.shape, float0)
