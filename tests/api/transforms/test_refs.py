"""Refs: against plain Python over random programs, under transforms; cases; mistakes."""

import copy
import gc
import pickle
import random
import threading

import numpy as np
import pytest
from conftest import EVERYTHING

import weft
import weft.numpy as wnp
from weft import lax
from weft.errors import RefError, ShapeError, UnexpectedTracerError

# ---- Random programs: a tree of statements over three arrays, run in NumPy with dual numbers and
# in weft with refs.

SHAPES = {"a": (4,), "b": (), "c": (2, 3)}
INDICES = {
    "a": [0, -1, "i", slice(1, 3), slice(None, None, 2), np.array([0, 2, 2]), ...],
    "b": [...],
    "c": [0, (1, 2), ("i2", slice(1, None)), (slice(None), 1), (0, np.array([1, 1])), ...],
}


def _expression(rng, depth=0):
    kinds = ["x", "const", "i", "read", "read", "sum", "product"]
    kind = rng.choice(kinds[: 5 if depth > 1 else 7])
    if kind == "const":
        return kind, rng.choice([0.5, -0.75, 1.0])
    if kind == "read":
        name = rng.choice(list(SHAPES))
        return kind, name, rng.choice(INDICES[name])
    if kind in ("sum", "product"):
        return kind, _expression(rng, depth + 1), _expression(rng, depth + 1)
    return (kind,)


def _block(rng, depth=0):
    return [_statement(rng, depth) for _ in range(rng.randint(1, 3))]


def _statement(rng, depth):
    kind = rng.choice(["set", "add", "scale", "for", "for", "if", "call"][: 3 if depth > 1 else 7])
    if kind == "for":
        how = rng.choice(["scan", "fori", "while"])
        return kind, how, rng.randint(0, 3), _block(rng, depth + 1)
    if kind == "if":
        return kind, rng.choice(["x", "i"]), _block(rng, depth + 1), _block(rng, depth + 1)
    if kind == "call":
        return kind, rng.choice(["jit", "checkpoint"]), _block(rng, depth + 1)
    name = rng.choice(list(SHAPES))
    return kind, name, rng.choice(INDICES[name]), _expression(rng)


def _index(index, i):
    if isinstance(index, tuple):
        return tuple(_index(x, i) for x in index)
    return {"i": i % 4, "i2": i % 2}.get(index, index) if isinstance(index, str) else index


class Plain:
    """Runs a program on NumPy arrays: values and their tangents along x."""

    def __init__(self, x, arrays):
        self.x = np.array([x, 1.0])
        self.arrays = {k: np.stack([v, 0 * v]).astype(float) for k, v in arrays.items()}

    def value(self, e, i):
        kind = e[0]
        if kind == "x":
            return self.x
        if kind == "const":
            return np.array([e[1], 0])
        if kind == "i":
            return np.array([i, 0.0])
        if kind == "read":
            return np.array([part[_index(e[2], i)].sum() for part in self.arrays[e[1]]])
        x, y = self.value(e[1], i), self.value(e[2], i)
        if kind == "sum":
            return x + y
        return np.array([x[0] * y[0], x[1] * y[0] + x[0] * y[1]]) * 0.25

    def run(self, block, i=0):
        for s in block:
            if s[0] == "for":
                for j in range(s[2]):
                    self.run(s[3], j)
            elif s[0] == "if":
                holds = self.x[0] > 0 if s[1] == "x" else i % 2 == 0
                self.run(s[2] if holds else s[3], i)
            elif s[0] == "call":
                self.run(s[2], i)
            else:
                kind, name, index, e = s
                index = _index(index, i)
                for k, v in enumerate(self.value(e, i)):
                    part = self.arrays[name][k, ...]
                    if kind == "add":
                        np.add.at(part, index, v)
                    else:
                        part[index] = v + (part[index] * 0.5 if kind == "scale" else 0)


class WithRefs:
    """Runs it on refs."""

    def __init__(self, x, refs):
        self.x, self.refs = x, refs

    def value(self, e, i):
        kind = e[0]
        if kind == "x":
            return self.x
        if kind == "const":
            return wnp.float32(e[1])
        if kind == "i":
            return wnp.asarray(i).astype(wnp.float32)
        if kind == "read":
            return self.refs[e[1]][_index(e[2], i)].sum()
        x, y = self.value(e[1], i), self.value(e[2], i)
        return x + y if kind == "sum" else x * y * 0.25

    def run(self, block, i=0):
        for s in block:
            if s[0] == "for":
                self.loop(*s[1:])
            elif s[0] == "if":
                holds = self.x > 0 if s[1] == "x" else i % 2 == 0
                lax.cond(holds, lambda s=s: self.run(s[2], i), lambda s=s: self.run(s[3], i))
            elif s[0] == "call":
                wrapped = weft.jit if s[1] == "jit" else weft.checkpoint
                wrapped(lambda i, s=s: self.run(s[2], i))(i)
            else:
                kind, name, index, e = s
                ref, index, v = self.refs[name], _index(index, i), self.value(e, i)
                if kind == "add":
                    weft.ref.addupdate(ref, index, v)
                elif kind == "scale":
                    ref[index] = ref[index] * 0.5 + v
                else:
                    ref[index] = v

    def loop(self, how, count, body):
        if how == "scan":
            lax.scan(lambda c, j: (c, self.run(body, j)), None, wnp.arange(count))
        elif how == "fori":
            lax.fori_loop(0, count, lambda j, _: self.run(body, j), None)
        else:

            def step(j):
                self.run(body, j)
                return j + 1

            lax.while_loop(lambda j: j < count, step, 0)


def _program(seed):
    rng = random.Random(seed)
    block = _block(rng)
    numbers = np.random.default_rng(seed)
    arrays = {k: numbers.normal(size=s).astype(np.float32) for k, s in SHAPES.items()}
    return block, arrays


def _pure(block):
    """The program as a function of values that uses refs inside."""

    def run(x, arrays):
        refs = {k: weft.new_ref(v) for k, v in arrays.items()}
        WithRefs(x, refs).run(block)
        return {k: weft.freeze(ref) for k, ref in refs.items()}

    return run


def _uses_while(block):
    inner = [part for s in block for part in s if isinstance(part, list)]
    return any(s[0] == "for" and s[1] == "while" for s in block) or any(map(_uses_while, inner))


def _close(got, expected):
    np.testing.assert_allclose(np.asarray(got), expected, rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("seed", range(100 if EVERYTHING else 6))
def test_random_programs_do_what_plain_python_does(seed):
    block, arrays = _program(seed)
    x = np.float32(0.7 if seed % 2 else -0.4)
    plain = Plain(x, arrays)
    plain.run(block)
    run = weft.jit(_pure(block))
    value, tangent = weft.jvp(lambda x: run(x, arrays), (x,), (np.float32(1),))
    for k, (expected, slope) in plain.arrays.items():
        _close(value[k], expected)
        _close(tangent[k], slope)
    if not _uses_while(block):
        total = weft.grad(lambda x: sum(v.sum() for v in run(x, arrays).values()))(x)
        _close(total, sum(slope.sum() for _, slope in plain.arrays.values()))


@pytest.mark.parametrize("seed", range(100, 160 if EVERYTHING else 104))
def test_random_programs_on_refs_of_outside(seed):
    block, arrays = _program(seed)
    plain = Plain(0.5, arrays)
    closed = {k: weft.new_ref(v) for k, v in arrays.items()}
    given = {k: weft.new_ref(v) for k, v in arrays.items()}
    close = weft.jit(lambda x: WithRefs(x, closed).run(block))
    give = weft.jit(lambda x, refs: WithRefs(x, refs).run(block))
    for _ in range(2):
        plain.run(block)
        close(np.float32(0.5))
        give(np.float32(0.5), given)
        for k, (expected, _) in plain.arrays.items():
            _close(closed[k][...], expected)
            _close(given[k][...], expected)
    assert close._cache_size() == give._cache_size() == 1


@pytest.mark.parametrize("seed", range(200, 240 if EVERYTHING else 202))
def test_random_programs_under_vmap(seed):
    block, arrays = _program(seed)
    xs = np.array([-0.3, 0.6, 0.1], np.float32)
    got = weft.vmap(_pure(block), in_axes=(0, None))(xs, arrays)
    given = {k: weft.new_ref(np.stack([v] * 3, axis=-1)) for k, v in arrays.items()}
    weft.vmap(lambda x, refs: WithRefs(x, refs).run(block), in_axes=(0, -1))(xs, given)
    for lane, x in enumerate(xs):
        plain = Plain(x, arrays)
        plain.run(block)
        for k, (expected, _) in plain.arrays.items():
            _close(got[k][lane], expected)
            _close(given[k][..., lane], expected)


# ---- Cases


def ref3():
    return weft.new_ref(wnp.arange(3.0))


def values(ref):
    return np.asarray(ref[...]).tolist()


def test_a_ref_tells_what_it_is():
    ref = weft.new_ref(np.zeros((2, 3), np.float32))
    assert isinstance(ref, weft.Ref) and not isinstance(ref, weft.Array)
    assert (ref.shape, ref.dtype, ref.ndim, ref.size, len(ref)) == ((2, 3), np.float32, 2, 6, 2)
    assert str(weft.typeof(ref)) == str(ref.aval) == "Ref{float32[2,3]}"
    assert repr(weft.new_ref(np.arange(2, dtype=np.int32))) == "Ref([0, 1], dtype=int32)"
    assert weft.new_ref(1.0).weak_type and weft.new_ref(1.0)[...].weak_type
    assert weft.tree_util.tree_leaves({"r": ref}) == [ref]
    assert ref == ref and hash(ref) == hash(ref) and ref != weft.new_ref(ref[...])
    empty = weft.empty_ref(weft.ShapeDtypeStruct((2,), np.int32))
    assert (empty.shape, empty.dtype) == ((2,), np.int32)
    held = ref[...]
    assert (ref.sharding, ref.format) == (held.sharding, held.format)
    assert ref.committed == held.committed
    assert ref.unsafe_buffer_pointer() == held.unsafe_buffer_pointer()


def test_copies_and_pickles_are_refs_of_their_own():
    ref = ref3()
    for other in (copy.copy(ref), copy.deepcopy(ref), pickle.loads(pickle.dumps(ref))):
        other[0] = 9.0
        assert values(other) == [9, 1, 2]
    assert values(ref) == [0, 1, 2]


def test_a_ref_is_apart_from_the_array_it_was_made_of():
    x = wnp.arange(3.0)
    ref = weft.new_ref(x)
    ref[1] += 5.0
    assert x.tolist() == [0, 1, 2] and values(ref) == [0, 6, 2]
    x.delete()
    assert values(ref) == [0, 6, 2]


def test_donating_what_a_ref_holds_gives_away_a_copy():
    step = weft.jit(lambda x: x + 1, donate_argnums=0)
    ref = ref3()
    state = step(ref[...])
    ref[...] = state
    assert step(state).tolist() == [2, 3, 4] and step(ref[...]).tolist() == [2, 3, 4]
    step(weft.jit(lambda: ref[...])())
    assert values(ref) == [1, 2, 3]


def test_functions_of_the_module_ref():
    ref = ref3()
    assert float(weft.ref.swap(ref, 1, 7.0)) == 1 and values(ref) == [0, 7, 2]
    weft.ref.set(ref, None, 1.0)
    weft.ref.addupdate(ref, np.array([0, 0]), 2.0)
    ref.addupdate(1.0, 2)
    assert weft.ref.get(ref).tolist() == [5, 1, 2]
    assert weft.ref.get(ref, slice(1)).tolist() == [5]


def test_python_numbers_take_the_dtype_of_the_ref():
    ref = weft.new_ref(wnp.zeros(2, wnp.bfloat16))
    ref[0] = 1
    ref[1] = 2.5
    ref[...] += 1
    assert ref.dtype == wnp.bfloat16 and values(ref) == [2, 3.5]


def test_indices_out_of_bounds_are_those_of_arrays():
    ref = ref3()
    ref[7] = 5.0
    ref[np.array([1, 9])] = 5.0
    assert values(ref) == [0, 5, 2] and float(ref[7]) == 2


def test_a_jitted_function_reads_what_a_ref_holds_at_the_call():
    ref = ref3()
    f = weft.jit(lambda x: x + ref[0])
    assert float(f(1.0)) == 1
    ref[0] = 10.0
    assert float(f(1.0)) == 11 and f._cache_size() == 1


def test_one_trace_serves_refs_of_one_type():
    @weft.jit
    def f(ref, x):
        ref[0] += x
        return ref.shape

    refs = [ref3(), ref3()]
    for ref in (*refs, refs[0]):
        f(ref, 2.0)
    assert [values(r)[0] for r in refs] == [4, 2] and f._cache_size() == 1
    f(weft.new_ref(np.zeros(2, np.float32)), 2.0)
    assert f._cache_size() == 2


def test_refs_go_through_trees_keywords_and_static_arguments():
    @weft.jit
    def f(tree, *, other):
        tree["r"][0] = other[1]
        return tree["x"] + other[0]

    r, other = ref3(), ref3()
    assert float(f({"r": r, "x": 1.0}, other=other)) == 1 and values(r) == [1, 1, 2]
    g = weft.jit(lambda n, r: r.addupdate(1.0, n), static_argnums=0, donate_argnums=1)
    g(2, r)
    assert values(r) == [1, 1, 3]


def test_lowered_and_compiled_programs():
    ref, closed = ref3(), ref3()

    def f(r, x):
        r[0] = x
        closed[1] += r[0]
        return r[2]

    lowered = weft.jit(f).lower(ref, 5.0)
    assert lowered.out_info.shape == () and "jax.result_info" in lowered.as_text()
    assert weft.eval_shape(f, ref, 1.0).shape == ()
    assert "f32[3]" in str(weft.make_jaxpr(f)(ref, 1.0))
    assert values(ref) == [0, 1, 2]
    compiled = lowered.compile()
    assert float(compiled(ref, 5.0)) == 2
    assert values(ref) == [5, 1, 2] and values(closed) == [0, 6, 2]
    # A ref that is closed over has its value of each call, not of the trace.
    closed[1] = 10
    compiled(ref, 1.0)
    assert values(ref) == [1, 1, 2] and values(closed) == [0, 11, 2]
    with pytest.raises(ValueError, match="every ref once.*ref 0 of the arguments.*'f' closes over"):
        compiled(closed, 1.0)


def test_types_that_stand_for_refs():
    def f(to, x):
        to[...] += x["ref"][...]
        return to[0]

    kind = weft.ShapeDtypeStruct((3,), np.float32, is_ref=True)
    assert weft.eval_shape(f, kind, {"ref": kind}).shape == ()
    compiled = weft.jit(f).lower(kind, {"ref": kind}).compile()
    to, ref = ref3(), ref3()
    assert float(compiled(to, {"ref": ref})) == 0
    assert values(to) == [0, 2, 4] and values(ref) == [0, 1, 2]
    weft.jit(lambda x: x.__setitem__(0, 5.0)).lower(kind).compile()(ref)
    assert values(ref) == [5, 1, 2]
    with pytest.raises(RefError, match="every ref once"):
        compiled(to, {"ref": to})


def test_nested_functions_write_through():
    ref = ref3()

    @weft.jit
    def inner(r, x):
        r[0] += x
        ref_outer[1] += x

    ref_outer = ref3()

    @weft.jit
    def outer(x):
        lax.fori_loop(0, 3, lambda i, _: inner(ref, x), None)
        local = weft.new_ref(x)
        inner_local = weft.jit(lambda: local.addupdate(1.0))
        inner_local()
        return local[...]

    assert float(outer(2.0)) == 3
    assert values(ref) == [6, 1, 2] and values(ref_outer) == [0, 7, 2]


def test_a_condition_reads_what_the_body_writes():
    ref = ref3()

    def body(n):
        ref[0] += 1.5
        return n + 1

    assert int(lax.while_loop(lambda n: ref[0] < 4, body, 0)) == 3
    assert values(ref)[0] == 4.5


def test_loops_without_iterations_and_untaken_branches():
    ref = ref3()
    lax.scan(lambda c, _: (c, ref.addupdate(1.0)), None, length=0)
    lax.while_loop(lambda n: n < 0, lambda n: (ref.addupdate(1.0), n)[1], 0)
    lax.cond(False, lambda: ref.addupdate(1.0), lambda: None)
    assert values(ref) == [0, 1, 2]
    lax.switch(2, [lambda r: None, lambda r: None, lambda r: r.addupdate(1.0, 0)], ref)
    assert values(ref) == [1, 1, 2]


@pytest.mark.parametrize("disable", [False, True])
def test_scan_over_slices_of_a_ref(disable):
    rows, other = weft.new_ref(np.zeros((4, 2), np.float32)), weft.new_ref(wnp.arange(4.0))

    def body(total, x):
        row, number, read = x
        row[1] = number + total
        return total + number, row[...] + read[...]

    with weft.disable_jit(disable):
        total, ys = lax.scan(body, 0.0, (rows, wnp.arange(4.0), other), reverse=True)
    assert float(total) == 6 and values(rows) == [[0, 6], [0, 6], [0, 5], [0, 3]]
    assert ys.tolist() == [[0, 6], [1, 7], [2, 7], [3, 6]]


def test_vmap_over_refs_nested():
    out = weft.new_ref(np.zeros((3, 3), np.float32))
    vectors = np.arange(12, dtype=np.float32).reshape(3, 4)

    def distance(x, y, to):
        assert to.ndim == 0
        to[...] = ((x - y) ** 2).sum()

    weft.vmap(weft.vmap(distance, (0, None, 0)), (None, 0, 0))(vectors, vectors, out)
    np.testing.assert_allclose(out[...], ((vectors[:, None] - vectors) ** 2).sum(-1))


def test_vmap_reads_refs_of_outside():
    ref = ref3()
    assert weft.vmap(lambda i: ref[i] + ref[0])(np.array([2, 1])).tolist() == [2, 1]
    assert weft.vmap(lambda r, x: r[...] + x, (None, 0))(ref, np.zeros(2)).shape == (2, 3)


def test_derivatives_of_functions_with_refs_inside():
    def f(x):
        ref = weft.new_ref(wnp.zeros(3))
        ref[0] = x * x
        ref[1] = ref[0] * x
        return ref[1]

    assert float(weft.grad(f)(2.0)) == float(weft.jit(weft.grad(f))(2.0)) == 12
    assert float(weft.grad(weft.grad(f))(2.0)) == 12
    assert [float(v) for v in weft.jvp(f, (2.0,), (1.0,))] == [8, 12]
    assert float(weft.linearize(f, 2.0)[1](1.0)) == float(weft.vjp(f, 2.0)[1](1.0)[0]) == 12
    assert weft.vmap(weft.grad(f))(np.array([1.0, 2.0])).tolist() == [3, 12]


@pytest.mark.parametrize("how", ["grad", "value_and_grad", "jvp", "vjp", "linearize", "jit"])
def test_refs_of_outside_take_what_no_derivative_goes_through(how):
    ref = ref3()

    def f(x, r=ref):
        r[0] += lax.stop_gradient(x)
        r[1] = 7.0
        return x * r[1]

    if how == "jvp":
        weft.jvp(f, (2.0,), (1.0,))
    elif how in ("vjp", "linearize"):
        value, linear = getattr(weft, how)(f, 2.0)
        assert float(value) == 14
        linear(1.0), linear(1.0)
    elif how == "jit":
        assert float(weft.jit(weft.grad(f))(2.0)) == 7
    else:
        getattr(weft, how)(f)(2.0)
    assert values(ref) == [2, 7, 2]


def test_gradients_by_other_arguments_hand_refs_on():
    def f(ref, x):
        ref[0] = lax.stop_gradient(x)
        return x * x + ref[1]

    ref = ref3()
    assert float(weft.grad(f, argnums=1)(ref, 3.0)) == 6 and values(ref) == [3, 1, 2]
    assert float(weft.jit(weft.grad(f, argnums=1))(ref, 4.0)) == 8 and values(ref) == [4, 1, 2]


@pytest.mark.parametrize("wrap", [lambda f: f, weft.jit])
def test_a_pullback_adds_cotangents_to_refs(wrap):
    def f(x, y, total):
        pull = weft.vjp(lambda x, y: wnp.sum(x * y["a"]) * y["b"], x, y)[1]
        return pull.with_refs(True, {"a": total, "b": 0})(2.0)

    total = weft.new_ref(np.float32([1, 2]))
    by_x, by_y = wrap(f)(np.float32([3, 4]), {"a": np.float32([5, 6]), "b": 7.0}, total)
    assert by_x.tolist() == [70, 84] and by_y == {"a": None, "b": 78}
    assert values(total) == [43, 58]


def _noting():
    """A function that returns x; its backward rule notes the cotangent in the ref."""
    note = weft.custom_vjp(lambda ref, x: x)

    def backward(ref, g):
        ref[...] = ref[...] * 10 + g
        return None, g

    note.defvjp(lambda ref, x: (x, ref), backward)
    return note


def _noted(ref, x):
    note = _noting()
    return note(ref, 2.0 * note(ref, 3.0 * x))


@pytest.mark.parametrize("wrap", [lambda f: f, weft.jit, weft.checkpoint])
@pytest.mark.parametrize("how", ["argument", "closed over", "vjp", "in jit"])
def test_backward_rules_write_refs_in_reverse(how, wrap):
    ref = weft.new_ref(np.float32(4))
    given, closed = wrap(_noted), wrap(lambda x: _noted(ref, x))
    if how == "argument":
        assert float(weft.grad(given, argnums=1)(ref, 1.0)) == 6
    elif how == "closed over":
        assert float(weft.grad(closed)(1.0)) == 6
    elif how == "vjp":
        pull = weft.vjp(closed, 1.0)[1]
        assert values(ref) == 4  # until the function is called
        assert float(pull(1.0)[0]) == 6
    else:
        assert float(weft.jit(weft.grad(given, argnums=1))(ref, 1.0)) == 6
    assert values(ref) == (4 * 10 + 1) * 10 + 2
    closed(1.0)
    assert values(ref) == 412  # without a derivative the rule does not run


@pytest.mark.parametrize("wrap", [lambda f: f, weft.jit])
def test_backward_rules_write_refs_in_loops_and_branches(wrap):
    ref, other = weft.new_ref(np.float32(0)), weft.new_ref(np.float32(0))
    note = _noting()

    def body(x, k):
        x = note(ref, 2.0 * x)
        x = lax.cond(k == 1, lambda: note(other, x), lambda: x)
        return x, None

    def f(x):
        return lax.scan(body, x, wnp.arange(3))[0]

    assert float(weft.grad(wrap(f))(1.0)) == 8
    assert values(ref) == 124 and values(other) == 2
    # Each call of a pullback is a backward pass of its own, also within a loop.
    pull = weft.vjp(wrap(f), 1.0)[1]
    ref[...] = other[...] = 0.0
    lax.fori_loop(0, 2, lambda i, _: (pull(1.0), None)[1], None)
    assert values(ref) == 124124 and values(other) == 22


def test_backward_rules_get_what_the_function_left():
    ref = ref3()
    note = weft.custom_vjp(lambda x, r: x)
    seen = weft.new_ref(wnp.zeros(3))

    def backward(refs, g):
        refs["to"][...] = refs["from"][...]
        return g * refs["from"][1], None

    note.defvjp(lambda x, r: (x, {"from": r[0], "to": r[1]}), backward)

    def f(x):
        y = note(x, (ref, seen))
        ref[1] = 7.0
        return y

    assert float(weft.grad(f)(1.0)) == 7
    assert values(seen) == values(ref) == [0, 7, 2]


def test_functions_with_rules_write_refs_that_they_get():
    ref = ref3()

    def count(x, r):
        r[0] += 1.0
        return x * r[1]

    f = weft.custom_vjp(count)
    f.defvjp(lambda x, r: (count(x, r), None), lambda _, g: (5 * g, None))
    assert float(f(2.0, ref)) == 2 and values(ref)[0] == 1
    assert float(weft.jit(f)(2.0, ref)) == 2 and values(ref)[0] == 2
    assert float(weft.grad(f)(2.0, ref)) == 5 and values(ref)[0] == 3
    g = weft.custom_jvp(count)
    g.defjvp(lambda primals, tangents: (count(*primals), 4 * tangents[0]))
    assert float(weft.grad(g)(2.0, ref)) == 4 and values(ref)[0] == 4
    assert [float(v) for v in weft.jvp(lambda x: g(x, ref), (2.0,), (1.0,))] == [2, 4]


def test_cotangents_of_refs_made_inside():
    f = weft.custom_vjp(lambda r: r[...] * 2)
    f.defvjp(lambda r: (f(r), None), lambda _, g: (3 * g,))
    assert float(weft.grad(lambda x: f(weft.new_ref(x * x)))(2.0)) == 12


def test_vjp_by_refs():
    def f(x, r):
        r["a"][0] = wnp.sin(r["a"][0]) * x
        return r["a"][0] ** 2 + r["a"][1]

    ref, total, by_x = ref3(), weft.new_ref(wnp.ones(3)), weft.new_ref(0.0)
    ref[0] = 0.5
    value, pull = weft.vjp(f, 2.0, {"a": ref})
    s = 2 * np.sin(0.5)
    np.testing.assert_allclose([value, ref[0]], [s * s + 1, s], rtol=1e-6)
    pull.with_refs(by_x, {"a": total})(1.0)
    np.testing.assert_allclose(total[...], [1 + 4 * s * np.cos(0.5), 2, 1], rtol=1e-5)
    np.testing.assert_allclose(by_x[...], 2 * s * np.sin(0.5), rtol=1e-5)
    leaves, tree = weft.tree_util.tree_flatten(pull)
    assert weft.tree_util.tree_unflatten(tree, leaves).with_refs(0, {"a": total})(1.0)[1] == {
        "a": None
    }
    _, pull, aux = weft.vjp(lambda r: (r[0], r[2]), ref, has_aux=True)
    assert float(aux) == 2
    for call in (
        lambda: pull(1.0),
        lambda: pull.with_refs(True)(1.0),
        lambda: weft.vjp(lambda a, b: a[0], ref, ref),
    ):
        with pytest.raises(RefError):
            call()


def test_refs_that_no_derivative_goes_through():
    ref = weft.new_ref(wnp.ones(2), kind="no_grad_no_remat")

    def f(x, r):
        r[0] = x * x
        return x * r[0]

    for g in (f, weft.jit(f), weft.checkpoint(f)):
        assert float(weft.grad(g)(3.0, ref)) == 9 and values(ref) == [9, 1]
        assert float(weft.jvp(lambda x, g=g: g(x, ref), (2.0,), (1.0,))[1]) == 4
    own = weft.grad(lambda x: weft.new_ref(x, kind="no_grad_no_remat")[...] * x)
    assert float(own(3.0)) == 3
    with pytest.raises(RefError, match="stop_gradient"):
        weft.grad(weft.jit(f))(3.0, ref3())  # has a trace of its own


def test_parts_of_refs():
    ref = weft.new_ref(np.arange(12, dtype=np.float32).reshape(3, 4))
    part = ref.at[1:]
    assert (part.shape, part.ndim, part.size, len(part)) == ((2, 4), 2, 8, 2)
    assert part.dtype == np.float32 and "RefView" in repr(part)
    part[0, 1] = 50.0
    part.at[1].at[wnp.array([0, 0])].addupdate(1.0)
    part.at[1][2:] = 0.0
    assert values(ref) == [[0, 1, 2, 3], [4, 50, 6, 7], [10, 9, 0, 0]]

    @weft.jit
    def f(r):
        row = r.at[0]
        row[...] = 7.0
        row.addupdate(1.0)
        return row[...].sum()

    assert float(f(ref)) == 32
    assert float(weft.grad(lambda x: _through_part(x))(3.0)) == 6


def _through_part(x):
    ref = weft.new_ref(wnp.zeros((2, 2)))
    ref.at[0].at[1][...] = x
    return ref.at[0][1] ** 2


def test_gradients_follow_the_value_that_a_ref_has_now():
    ref = ref3()
    gradient = weft.grad(lambda x: x * ref[2])
    assert float(gradient(1.0)) == 2
    ref[2] = 5.0
    assert float(gradient(1.0)) == 5


def test_rules_of_users_read_the_value_that_a_ref_has_now():
    ref = ref3()

    @weft.custom_jvp
    def f(x):
        return x * ref[2]

    f.defjvp(lambda primals, tangents: (f(*primals), tangents[0] * ref[1]))
    assert float(weft.grad(f)(1.0)) == 1
    ref[1] = 5.0
    assert float(weft.grad(f)(1.0)) == 5


def test_checkpoint_writes_once():
    ref = ref3()

    @weft.checkpoint
    def f(x, r):
        r[0] += 1.0
        ref[2] += 1.0
        return wnp.sin(x * ref[1])

    other = ref3()
    np.testing.assert_allclose(weft.grad(f)(2.0, other), np.cos(2.0), rtol=1e-5)
    assert values(other) == [1, 1, 2] and values(ref) == [0, 1, 3]


def test_bounded_while_loop_and_scan_in_segments():
    ref = ref3()

    def step(x):
        ref[0] += 1.0
        return x * 2

    def f(x):
        x = lax.while_loop(lambda x: x < 10, step, x, max_steps=9)
        return lax.scan(lambda x, _: (step(x), None), x, length=5, checkpoint=2)[0]

    assert float(weft.grad(f)(1.0)) == 512 and values(ref)[0] == 9


def test_errors_leave_refs_as_they_were():
    ref = ref3()

    def f(x):
        ref[0] = x
        lax.fori_loop(0, 2, lambda i, _: ref.addupdate(1.0), None)
        raise ZeroDivisionError

    for call in (weft.jit(f), weft.grad(f), lambda x: weft.jvp(f, (x,), (x,))):
        with pytest.raises(ZeroDivisionError):
            call(5.0)
    assert values(ref) == [0, 1, 2]


def test_freeze_ends_a_ref():
    ref = ref3()
    last = weft.freeze(ref)
    assert last.tolist() == [0, 1, 2] and "frozen" in repr(ref)
    for use in (lambda: ref[0], lambda: weft.freeze(ref), lambda: weft.jit(lambda r: None)(ref)):
        with pytest.raises(RefError, match="frozen at"):
            use()
    with pytest.raises(RefError, match="frozen at"):
        ref[0] = 1.0
    other = ref3()
    assert weft.free_ref(other) is None
    with pytest.raises(RefError):
        other[...]


def test_refs_die_with_what_holds_them():
    def live():
        gc.collect()
        return len(weft.live_arrays())

    before = live()
    for _ in range(3):
        ref = ref3()
        f = weft.jit(lambda x, ref=ref: ref.addupdate(x))
        f(1.0)
        with pytest.raises(ZeroDivisionError):
            weft.jit(lambda ref=ref: (ref.addupdate(1.0), 1 // 0))()
    del ref, f
    assert live() <= before + 3  # constants in caches


def test_threads_have_their_own_traces():
    ref = weft.new_ref(np.zeros(8, np.float32))
    errors = []

    def work(i):
        try:
            f = weft.jit(lambda x: ref[i] + x)
            assert [float(f(float(k))) for k in range(20)] == list(range(20))
            own = weft.new_ref(0.0)
            for _ in range(20):
                weft.jit(lambda: own.addupdate(1.0))()
            assert float(own[...]) == 20
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors


# ---- Mistakes


def _assign(ref, index, value):
    ref[index] = value


def _leak():
    kept = []
    weft.jit(lambda x: kept.append(weft.new_ref(x)))(1.0)
    return kept[0]


def _counted(x, ref):
    f = weft.custom_vjp(lambda x, ref: x)
    f.defvjp(lambda x, ref: (x, ref), lambda ref, g: (g, ref.addupdate(1)))
    return f(x, ref)


def _with_rule(fun, forward):
    f = weft.custom_vjp(fun)
    f.defvjp(forward, lambda kept, g: (g, None))
    return f


_two = np.zeros(2, np.float32)
MISTAKES = {
    "dtype of an array": (lambda r: _assign(r, 0, np.int32(1)), "dtype float32"),
    "float into int": (lambda r: _assign(weft.new_ref(1), ..., 1.5), "dtype int32"),
    "complex": (lambda r: _assign(r, 0, 1j), "dtype float32"),
    "added dtype": (lambda r: weft.ref.addupdate(r, 0, np.int32(1)), "dtype float32"),
    "a list": (lambda r: _assign(r, ..., [1.0] * 3), "got list"),
    "shape": (lambda r: _assign(r, ..., _two), "broadcasts to shape"),
    "shape of a part": (lambda r: _assign(r, slice(1), _two), "broadcast to"),
    "a ref in a ref": (lambda r: weft.new_ref(r), "Refs hold no refs"),
    "a ref written": (lambda r: _assign(r, ..., r), "Refs hold no refs"),
    "arithmetic": (lambda r: r + 1, "unsupported operand"),
    "a function of arrays": (lambda r: wnp.sin(r), r"ref\[\.\.\.\]"),
    "a NumPy array": (lambda r: np.asarray(r), r"ref\[\.\.\.\]"),
    "a reduction": (lambda r: wnp.sum(r), r"ref\[\.\.\.\]"),
    "deletion": (lambda r: r.__delitem__(0), "deleted"),
    "iteration": (lambda r: list(r), "not iterable"),
    "no ref": (lambda r: weft.freeze(r[...]), "expected a ref"),
    "get of an array": (lambda r: weft.ref.get(r[...], 0), "expected a ref"),
    "kind": (lambda r: weft.new_ref(1.0, kind="x"), "no_grad_no_remat"),
    "memory space": (lambda r: weft.new_ref(1.0, memory_space="x"), "memory_space"),
    "passed twice": (lambda r: weft.jit(lambda a, b: None)(r, r), "argument b"),
    "passed and closed over": (lambda r: weft.jit(lambda a: a[0] + r[0])(r), "closes over"),
    "passed twice to vmap": (lambda r: weft.vmap(lambda a, b: 0)(r, r), "argument b"),
    "passed twice to cond": (
        lambda r: lax.cond(True, lambda a, b: 0, lambda a, b: 0, r, r),
        "every ref once",
    ),
    "passed twice to scan": (lambda r: lax.scan(lambda c, x: (c, 0), 0, (r, r)), "every ref once"),
    "returned": (lambda r: weft.jit(lambda a: a)(r), "cannot be returned"),
    "returned in a tree": (lambda r: weft.jit(lambda: {"x": r})(), "cannot be returned"),
    "returned by a branch": (lambda r: lax.cond(True, lambda: r, lambda: r), "cannot be returned"),
    "returned by vmap": (lambda r: weft.vmap(lambda a: a)(r), "cannot be returned"),
    "returned by scan": (lambda r: lax.scan(lambda c, _: (c, r), 0, length=1), "cannot be ret"),
    "carried by scan": (lambda r: lax.scan(lambda c, _: (c, 0), r, length=1), "init of scan"),
    "carried by while": (lambda r: lax.while_loop(lambda c: True, lambda c: c, r), "init_val"),
    "carried by fori": (lambda r: lax.fori_loop(0, 2, lambda i, c: c, r), "init"),
    "written in a condition": (
        lambda r: lax.while_loop(lambda c: (r.addupdate(1.0), c < 1)[1], lambda c: c + 1, 0),
        "given to while_loop",
    ),
    "written under vmap": (
        lambda r: weft.vmap(lambda x: _assign(r, 0, x))(_two),
        "pass the ref as an argument",
    ),
    "written under vmap, in a loop": (
        lambda r: weft.vmap(
            lambda x: lax.fori_loop(0, 2, lambda i, _: r.addupdate(1.0), None),
        )(_two),
        "pass the ref as an argument",
    ),
    "an unmapped argument of vmap": (
        lambda r: weft.vmap(lambda a, x: _assign(a, 0, x), (None, 0))(r, _two),
        "pass the ref as an argument",
    ),
    "differentiated by": (lambda r: weft.grad(lambda a: a[0])(r), "argument a"),
    "a derivative through it": (
        lambda r: weft.grad(lambda x: (_assign(r, 0, x * x), x)[1])(2.0),
        "stop_gradient",
    ),
    "a tangent through it": (
        lambda r: weft.jvp(lambda x: _assign(r, 0, x), (2.0,), (1.0,)),
        "stop_gradient",
    ),
    "a cotangent of another shape": (
        lambda r: weft.vjp(wnp.sin, 1.0)[1].with_refs(r)(1.0),
        r"a ref of type float32\[\], as the cotangent",
    ),
    "a rule that returns its ref": (
        lambda r: _with_rule(lambda x, r: r, lambda x, r: (r, None))(1.0, r),
        r"ref\[\.\.\.\]",
    ),
    "a residual that is another ref": (
        lambda r: weft.grad(_with_rule(lambda x, r: x, lambda x, r: (x, weft.new_ref(x))))(1.0, r),
        "residuals to be arguments",
    ),
    "a rule that writes what the function does not": (
        lambda r: weft.grad(_with_rule(lambda x, r: x, lambda x, r: (r.addupdate(x), x)[::-1]))(
            1.0, r
        ),
        "itself writes",
    ),
    "a backward rule that writes integers": (
        lambda r: weft.grad(_counted)(1.0, weft.new_ref(0)),
        "refs of floats",
    ),
    "passed twice to a function with a rule": (lambda r: _noting()(r, r), "argument x"),
    "refs of another structure": (
        lambda r: weft.vjp(wnp.sin, 1.0)[1].with_refs(r, r),
        "with_refs: expected refs of structure",
    ),
    "a linear function that writes": (
        lambda r: weft.linear_transpose(lambda x: (_assign(r, 0, 1.0), x)[1], 2.0),
        "linear_transpose",
    ),
    "frozen in a function": (lambda r: weft.jit(lambda: weft.freeze(r))(), "in the same function"),
    "frozen as an argument": (lambda r: weft.jit(lambda a: weft.freeze(a))(r), "the same function"),
    "frozen in a branch": (
        lambda r: lax.cond(True, lambda: weft.freeze(r), lambda: r[...]),
        "in the same function",
    ),
    "read after its trace": (lambda r: _leak()[...], "that has ended"),
    "written after its trace": (lambda r: _assign(_leak(), ..., 1.0), "that has ended"),
    "read in another trace": (lambda r: weft.jit(lambda: _leak()[...])(), "that has ended"),
}


@pytest.mark.parametrize("what", MISTAKES)
def test_mistakes_are_told(what):
    mistake, words = MISTAKES[what]
    ref = ref3()
    with pytest.raises((TypeError, ValueError, NotImplementedError, UnexpectedTracerError)) as told:
        mistake(ref)
    told.match(words)
    if isinstance(told.value, (RefError, ShapeError, UnexpectedTracerError)):
        assert "test_refs.py" in str(told.value)
    assert values(ref) == [0, 1, 2]
