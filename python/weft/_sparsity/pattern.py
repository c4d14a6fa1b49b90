"""The pattern of a program's derivative: which result elements may depend on which inputs.

The program is one of tangents (or cotangents): it is linear in them, and what it depends on is what
the derivative depends on, whatever rules made it. All else counts as unknown, but for constants of
the program and what is computed of them: a pattern holds for all values of the arguments.
"""

import numpy as np

from weft import _core
from weft._sparsity.rules import RULES, Operands, elementwise, everything
from weft._sparsity.sets import Sets
from weft._tracing.known_values import ensure_compile_time_eval
from weft.dtypes import is_inexact
from weft.extend.core import ClosedJaxpr, Literal, subjaxprs

# Loops of at most so many steps are followed step by step.
_MAX_STEPS = 128


class Unknown(Exception):
    """A value is not known."""


def pattern_of(closed, linear):
    """(rows, columns) of the derivative of a program by some of its inputs, in row-major order.

    Args:
      closed: ClosedJaxpr.
      linear: for each input whether the program is linear in it, and the derivative is by it.

    Elements of all these inputs together are the columns, those of the results the rows.
    """
    avals = closed.in_avals
    sizes = [
        int(np.prod(aval.shape)) if of_it else 0 for aval, of_it in zip(avals, linear, strict=True)
    ]
    sets = Sets(sum(sizes))
    operands, first = [], 1
    for aval, of_it, size in zip(avals, linear, sizes, strict=True):
        own = first + np.arange(size).reshape(aval.shape) if of_it else None
        operands.append(own)
        first += size
    with ensure_compile_time_eval():
        results = _Program(closed, sets).results(operands, [None] * len(operands))
    rows, columns, before = [np.zeros(0, int)], [np.zeros(0, int)], 0
    for ids, aval in zip(results, closed.out_avals, strict=True):
        size = int(np.prod(aval.shape))
        if ids is not None:
            which, element = sets.members(np.ascontiguousarray(ids).reshape(-1))
            rows.append(which + before)
            columns.append(element.astype(int))
        before += size
    return np.concatenate(rows), np.concatenate(columns)


def operations_of(closed):
    """The names of the operations of a program and of those within them, a set."""
    names, rest = set(), [closed.jaxpr]
    while rest:
        jaxpr = rest.pop()
        names |= {eqn.primitive.name for eqn in jaxpr.eqns}
        rest += subjaxprs(jaxpr)
    return names


class _Program:
    """A program whose values get sets, and values where these are known."""

    def __init__(self, jaxpr, sets):
        self._sets = sets
        self._jaxpr, self._consts = _parts(jaxpr)
        self._known = {}
        self._makers = {}

    def results(self, ids, values):
        """The sets of the results, given those of the inputs and functions for their values."""
        jaxpr = self._jaxpr
        env = dict(zip(jaxpr.invars, ids, strict=True))
        self._known = {}
        self._makers = {}
        for v, x in zip(jaxpr.constvars, self._consts, strict=True):
            if not isinstance(x, _core.Tracer):
                self._makers[v] = lambda x=x: np.asarray(x)
        for v, value in zip(jaxpr.invars, values, strict=True):
            if value is not None:
                self._makers[v] = value
        for eqn in jaxpr.eqns:
            operands = [None if isinstance(v, Literal) else env.get(v) for v in eqn.invars]
            for i, v in enumerate(eqn.outvars):
                self._makers[v] = lambda eqn=eqn, i=i: self._computed(eqn, i)
            if all(x is None for x in operands):
                continue
            found = self._rule(eqn)(Operands(eqn, self._sets, operands, self.value))
            for v, x in zip(eqn.outvars, found, strict=True):
                if x is not None and is_inexact(v.aval.dtype) and np.any(x):
                    env[v] = x
        self._env = env
        return [None if isinstance(v, Literal) else env.get(v) for v in jaxpr.outvars]

    def result_values(self):
        """Functions for the values of the results, after `results`."""
        return [self._reader(v) for v in self._jaxpr.outvars]

    def _reader(self, v):
        return lambda: self._value_or_raise(v)

    def value(self, v):
        """The value of a variable as a NumPy array; None if it is not known."""
        try:
            return self._value_or_raise(v)
        except Unknown:
            return None

    def _value_or_raise(self, v):
        if isinstance(v, Literal):
            return np.asarray(v.val)
        if v not in self._known:
            if v not in self._makers:
                raise Unknown
            self._known[v] = np.asarray(self._makers[v]())
        return self._known[v]

    def _computed(self, eqn, i):
        if _core.op_info(eqn.primitive.name) is None or eqn.primitive.name.endswith("callback"):
            raise Unknown
        operands = [self._value_or_raise(v) for v in eqn.invars]
        results = eqn.primitive.bind(*operands, **eqn.params)
        results = results if isinstance(results, (list, tuple)) else [results]
        for v, x in zip(eqn.outvars, results, strict=True):
            self._known[v] = np.asarray(x)
        return self._known[eqn.outvars[i]]

    def _rule(self, eqn):
        name = eqn.primitive.name
        if name in RULES:
            return RULES[name]
        if name in ("jit", "custom_jvp_call", "custom_vjp_call", "checkpoint"):
            return self._call
        if name in ("cond", "while", "scan"):
            return getattr(self, f"_{name}")
        info = _core.op_info(name)
        return elementwise if info and info["elementwise"] else everything

    def _readers(self, o, numbers):
        return [self._reader(o.eqn.invars[i]) for i in numbers]

    def _call(self, o):
        p = o.params
        inner = _Program(p.get("jaxpr", p.get("call_jaxpr")), self._sets)
        return inner.results(o.ids, self._readers(o, range(len(o))))

    def _cond(self, o):
        readers = self._readers(o, range(1, len(o)))
        found = [_Program(b, self._sets).results(o.ids[1:], readers) for b in o.params["branches"]]
        return [self._united(x) for x in zip(*found, strict=True)]

    def _united(self, operands):
        operands = [x for x in operands if x is not None]
        return self._sets.joined(operands) if operands else None

    def _fixed_point(self, carry, step):
        """What a loop may carry after any number of steps."""
        while True:
            found = [self._united(pair) for pair in zip(carry, step(carry), strict=True)]
            same = all(
                x is None or (old is not None and (self._length(x) == self._length(old)).all())
                for x, old in zip(found, carry, strict=True)
            )
            if same:
                return carry
            carry = found

    def _length(self, ids):
        return self._sets.length(ids)

    def _while(self, o):
        p = o.params
        n, m = p["cond_nconsts"], p["cond_nconsts"] + p["body_nconsts"]
        body = _Program(p["body_jaxpr"], self._sets)
        readers = self._readers(o, range(n, m))

        def step(carry):
            return body.results([*o.ids[n:m], *carry], [*readers, *[None] * len(carry)])

        return self._fixed_point(list(o.ids[m:]), step)

    def _scan(self, o):
        p = o.params
        n, m, length = p["num_consts"], p["num_consts"] + p["num_carry"], p["length"]
        body = _Program(p["jaxpr"], self._sets)
        consts, readers = list(o.ids[:n]), self._readers(o, range(n))
        xs = o.ids[m:]
        if length > _MAX_STEPS:
            slices = [None if x is None else self._sets.along(x, [0]) for x in xs]
            unknown = [None] * (len(o) - n)

            def step(carry):
                return body.results([*consts, *carry, *slices], [*readers, *unknown])[: m - n]

            carry = self._fixed_point(list(o.ids[n:m]), step)
            ys = body.results([*consts, *carry, *slices], [*readers, *unknown])[m - n :]
            return [
                *carry,
                *(None if y is None else np.broadcast_to(y, (length, *y.shape)) for y in ys),
            ]
        carry, carried = list(o.ids[n:m]), self._readers(o, range(n, m))
        collected = []
        order = range(length)
        for i in reversed(order) if p["reverse"] else order:
            values = [lambda j=j, i=i: self._slice(o, j, i) for j in range(m, len(o))]
            slices = [None if x is None else x[i] for x in xs]
            found = body.results([*consts, *carry, *slices], [*readers, *carried, *values])
            carry, ys = found[: m - n], found[m - n :]
            carried = [_fixed(read) for read in body.result_values()[: m - n]]
            collected.append(ys)
        if p["reverse"]:
            collected.reverse()
        stacked = []
        for k, v in enumerate(o.eqn.outvars[m - n :]):
            parts = [ys[k] for ys in collected]
            if all(x is None for x in parts):
                stacked.append(None)
                continue
            empty = np.zeros(v.aval.shape[1:], np.int64)
            stacked.append(np.stack([empty if x is None else x for x in parts]))
        return [*carry, *stacked]

    def _slice(self, o, operand, i):
        return self._value_or_raise(o.eqn.invars[operand])[i]


def _fixed(read):
    """A function that gives, or raises, what `read` does now."""
    try:
        value = read()
    except Unknown:
        return None
    return lambda: value


def _parts(jaxpr):
    if isinstance(jaxpr, ClosedJaxpr):
        return jaxpr.jaxpr, jaxpr.consts
    return jaxpr, []
