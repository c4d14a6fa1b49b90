"""Calls of jitted functions: which calls share a trace, nested arguments, threads, reentry."""

import collections
import copy
import dataclasses
import decimal
import enum
import fractions
import functools
import gc
import inspect
import pickle
import threading
import time
import traceback
import typing
import weakref

import numpy as np
import pytest
from in_threads import in_threads

import weft
import weft.numpy as wnp


class Traces:
    """Counts how often functions are traced; `call` in them."""

    def __init__(self):
        self.count = 0

    def call(self):
        self.count += 1


# ---- one trace for all stages


def test_stages_share_one_trace():
    traces = Traces()

    @weft.jit
    def f(x, *, k=1.0):
        traces.call()
        return x * k

    x = np.ones(3, np.float32)
    f.lower(x, k=2.0)
    f.trace(x, k=3.0)
    f.eval_shape(x, k=3.0)
    weft.eval_shape(f, x, k=3.0)
    f.lower(weft.ShapeDtypeStruct((3,), np.float32), k=1.0).compile()
    np.testing.assert_array_equal(f(x, k=4.0), [4, 4, 4])
    weft.make_jaxpr(f)(x, k=1.0)
    assert traces.count == 1


def test_jit_made_anew_finds_the_trace():
    traces = Traces()

    def f(x, n):
        traces.call()
        return x * n

    for n in (2, 3, 2, 3):
        assert float(weft.jit(f, static_argnums=1)(1.5, n)) == 1.5 * n
    assert traces.count == 2
    weft.jit(f, static_argnames="n")(1.5, 2)  # the same arguments, named otherwise
    assert traces.count == 2
    weft.jit(f)(1.5, 2)  # other options
    weft.jit(f)(1.5, 2)
    assert traces.count == 3
    part = functools.partial(f, n=5)
    assert [float(weft.jit(part)(1.0)) for _ in range(3)] == [5, 5, 5]
    assert traces.count == 4
    weft.clear_caches()
    weft.jit(f)(1.5, 2)
    assert traces.count == 5


def test_copies_and_wrappers_of_a_function_have_traces_of_their_own():
    def f(x):
        return x + 1

    weft.jit(f)(1.0)

    @functools.wraps(f)
    def g(x):
        return x + 2

    assert float(weft.jit(g)(1.0)) == 3.0
    assert float(weft.jit(f)(1.0)) == 2.0
    h = copy.copy(weft.jit(f).__wrapped__)
    assert float(weft.jit(h)(1.0)) == 2.0
    assert not hasattr(weft.jit(f), "__weft_traces__")
    pickle.loads(pickle.dumps(functools.partial(_module_level, n=2)))
    part = functools.partial(_module_level, n=2)
    weft.jit(part)(1.0)
    assert float(weft.jit(pickle.loads(pickle.dumps(part)))(1.0)) == 2.0
    assert float(weft.jit(copy.deepcopy(part))(1.0)) == 2.0


def _module_level(x, n):
    return x * n


def test_callables_of_all_kinds():
    class Scale:
        __slots__ = ("n",)
        __hash__ = None

        def __init__(self, n):
            self.n = n

        def __call__(self, x):
            return x * self.n

        def method(self, x):
            return x * self.n

    for n in (2, 3):
        scale = Scale(n)
        assert float(weft.jit(scale)(2.0)) == float(weft.jit(scale.method)(2.0)) == 2 * n


def test_functions_and_what_they_traced_are_collected():
    @weft.tree_util.register_pytree_node_class
    class Node:
        def __init__(self, x, own):
            self.x, self.own = x, own

        def tree_flatten(self):
            return (self.x,), self.own

        @classmethod
        def tree_unflatten(cls, own, children):
            return cls(*children, own)

    def watch():
        class Model:
            def __init__(self):
                self.run = weft.jit(self.forward)
                self.w = wnp.ones(3)

            def forward(self, x):
                return x * self.w

            @functools.partial(weft.jit, static_argnums=0)
            def static(self, x):
                return self.w * x

        model = Model()
        model.run(wnp.ones(3))
        model.static(wnp.ones(3))
        model.static(wnp.ones(3))

        class Own:
            pass

        own = Own()

        def f(node):
            return node.x + 1

        own.f = weft.jit(f)
        for _ in range(3):
            own.f(Node(wnp.ones(2), own))

        def g(x):
            return x + own.x

        own.x = wnp.ones(2)
        own.g = weft.jit(g)
        own.g(1.0)
        return [weakref.ref(o) for o in (model, own, f, g)]

    refs = watch()
    gc.collect()
    assert [r() for r in refs] == [None] * 4


# ---- signatures


class Color(enum.IntEnum):
    RED = 1


class Pair(typing.NamedTuple):
    a: object
    b: object


@dataclasses.dataclass(frozen=True)
class Frozen:
    value: object


DIFFERENT = [
    (1, True, 1.0, np.float32(1), Color.RED, fractions.Fraction(1), decimal.Decimal(1)),
    (0.0, -0.0, 0),
    (fractions.Fraction(1, 2), decimal.Decimal("0.5"), 0.5, decimal.Decimal("0.50")),
    (np.float32(0.0), np.float32(-0.0)),
    (complex(0.0, 0.0), complex(-0.0, 0.0), complex(0.0, -0.0)),
]


@dataclasses.dataclass(frozen=True)
class ByName:
    """Equal as users say, whatever the fields hold."""

    name: str
    made_for: object

    def __eq__(self, other):
        return isinstance(other, ByName) and self.name == other.name

    def __hash__(self):
        return hash(self.name)


def test_dataclasses_with_an_equality_of_their_own_share_a_trace():
    traced = []
    f = weft.jit(lambda static, x: traced.append(static) or x, static_argnums=0)
    for name in "aab":
        f(ByName(name, object()), 1.0)
    assert [static.name for static in traced] == ["a", "b"]


@pytest.mark.parametrize("option", ["static_argnames", "donate_argnames"])
@pytest.mark.parametrize("names", [("a", "c"), ("args", "c")])
def test_names_of_parameters_that_have_positions_only(option, names):
    def f(a, /, b, c, *args, **kw):
        return b

    with pytest.raises(ValueError, match=rf"no parameter '{names[0]}'(.|\n)*there are b, c"):
        weft.jit(f, **{option: names})
    assert weft.jit(f, **{option: ("c", "d")})(1, 2, 3) == 2


def test_static_arguments_that_are_named_both_ways_are_as_they_are_passed():
    f = weft.jit(lambda a, b: b, static_argnums=0, static_argnames="b")
    assert f(1, [2.0]) == [2.0]
    assert f(1, b=2) == 2
    assert weft.jit(lambda a, b: b, static_argnames="b")(1, (2,)) == (2,)


HOLDERS = [
    lambda v: v,
    lambda v: (v,),
    lambda v: (1, ("a", v)),
    lambda v: frozenset([v]),
    lambda v: Pair(v, 2),
    lambda v: Frozen(v),
    lambda v: Frozen((Frozen([v]).value[0],)),
]
EQUAL = [(1, 2), "text", (1.5, (2.5, frozenset("ab"))), Pair(1, (2, 3)), Frozen((1, "a"))]


@pytest.mark.parametrize("holder", range(len(HOLDERS)))
@pytest.mark.parametrize("values", DIFFERENT)
def test_static_values_that_differ(holder, values):
    traces = Traces()

    @functools.partial(weft.jit, static_argnums=1)
    def f(x, s):
        traces.call()
        return x

    for v in (*values, *values):
        f(1.0, HOLDERS[holder](v))
    assert traces.count == len(values)


@pytest.mark.parametrize("value", EQUAL)
def test_static_values_that_are_equal(value):
    traces = Traces()

    @functools.partial(weft.jit, static_argnames="s")
    def f(x, s):
        traces.call()
        return x

    for v in (value, copy.deepcopy(value), pickle.loads(pickle.dumps(value))):
        f(1.0, s=v)
    assert traces.count == 1


@pytest.mark.parametrize("values", DIFFERENT)
def test_callbacks_with_static_values_that_differ(values):
    seen = []

    def note(x, s):
        seen.append((type(s), repr(s)))

    class Static:  # no array, so a static part of the callback's arguments
        def __init__(self, value):
            self.value = value

        __hash__ = lambda self: hash(self.value)
        __eq__ = lambda self, other: weft._core.same_value(self.value, other.value)
        __repr__ = lambda self: repr(self.value)

    for v in values:
        is_array = not isinstance(v, (fractions.Fraction, decimal.Decimal))
        static = Static(v) if is_array else v
        weft.jit(lambda x, s=static: weft.debug.callback(note, x, s), static_argnums=1)(1.0, static)
    weft.effects_barrier()
    assert [r for _, r in seen] == [repr(v) for v in values]


@pytest.mark.parametrize("number", [int, float, complex])
def test_registered_subclasses_of_numbers(number):
    own = weft.tree_util.register_static(type("Own", (number,), {}))
    traces = Traces()

    def f(x, s):
        traces.call()
        return x + number(s)

    f = weft.jit(f)
    assert [f(1, own(2)), f(1, own(3)), f(1, own(2)), f(1, s=own(2))] == [3, 4, 3, 3]
    assert traces.count == 3 and f.lower(1, own(2)).out_info.shape == ()


def test_trees_whose_data_differ():
    @weft.tree_util.register_pytree_node_class
    class Box:
        def __init__(self, x, data):
            self.x, self.data = x, data

        def tree_flatten(self):
            return (self.x,), self.data

        @classmethod
        def tree_unflatten(cls, data, children):
            return cls(*children, data)

    seen = []
    f = weft.jit(lambda t: seen.append(repr(t["k"].data)) or t["k"].x + 1)
    values = [1, True, 1.0, (1,), (True,), 0.0, -0.0]
    for _ in range(2):
        for v in values:
            f({"k": Box(2.0, v)})
    assert seen == [repr(v) for v in values]
    seen.clear()
    g = weft.jit(lambda t: seen.append(repr(next(iter(t)))) or t[1])
    for key in (1, True, 1.0, 1, True):
        g({key: 2.0})
    assert seen == ["1", "True", "1.0"]


# ---- arguments of every nesting


@weft.tree_util.register_dataclass
@dataclasses.dataclass
class State:
    params: object
    step: object
    name: str = dataclasses.field(default="s", metadata={"static": True})


def nested(x):
    """Arguments nested in every way, with leaves that tell their places."""
    return {
        "z": [x, (x + 1, None, {"b": x + 2, "a": x + 3})],
        "pair": Pair(x + 4, [Pair(x + 5, x + 6)]),
        "state": State({"w": x + 7}, x + 8),
        "ordered": collections.OrderedDict(q=x + 9, c=x + 10),
        "default": collections.defaultdict(list, {"y": x + 11, "d": x + 12}),
        "empty": ((), [], {}, None),
    }


@pytest.mark.parametrize("how", ["positional", "named", "static", "mixed"])
def test_nested_arguments(how):
    traces = Traces()

    def same(t):
        traces.call()
        return weft.tree_util.tree_map(lambda v: v * 2, t)

    if how == "positional":
        f = weft.jit(same)
        call = lambda t, i: f(t)
    elif how == "named":
        f = weft.jit(lambda *, zz, a, mm: (a, same(zz), mm)[1])
        call = lambda t, i: f(zz=t, mm=1.0, a=i * 1.0) if i % 2 else f(a=i * 1.0, zz=t, mm=1.0)
    elif how == "static":
        f = weft.jit(
            lambda n, t, m: same(t) if n + m > 0 else t, static_argnums=0, static_argnames="m"
        )
        call = lambda t, i: f(1, t, m=2) if i % 2 else f(1, m=2, t=t)
    else:
        f = weft.jit(lambda x, t, *rest, k: (same(t), rest, k)[0], static_argnames="k")
        call = lambda t, i: f(i * 1.0, t, [1.0, t["z"]], 3.0, k="key")
    for i in range(6):
        tree = nested(np.full(2, i, np.float32))
        out = call(tree, i)
        expected = weft.tree_util.tree_map(lambda v: v * 2, tree)
        assert weft.tree_util.tree_structure(out) == weft.tree_util.tree_structure(expected)
        for a, b in zip(*map(weft.tree_util.tree_leaves, (out, expected)), strict=True):
            np.testing.assert_array_equal(a, b)
    assert traces.count <= 2  # of these arguments, by the two ways to call


def test_nested_results():
    def nest(x):
        return {
            "z": [x, (x + 1, None, {"b": x + 2, "a": [x + 3, {}]})],
            "a": ((), [], x, x),
            "2": {"d": 1.0, "c": None},
        }

    numbered = lambda x: {1: x, 0: x + 1}
    for function in (nest, numbered, lambda x: Pair(x, nest(x)), lambda x: [nest(x)] * 2):
        f = weft.jit(function)
        for i in range(2):
            x = np.full(2, i, np.float32)
            out, expected = f(x), function(x)
            assert weft.tree_util.tree_structure(out) == weft.tree_util.tree_structure(expected)
            for a, b in zip(*map(weft.tree_util.tree_leaves, (out, expected)), strict=True):
                np.testing.assert_array_equal(a, b)
    first = weft.jit(nest)(1.0)
    first["z"].clear()
    first["2"].clear()
    assert list(weft.jit(nest)(1.0)) == ["2", "a", "z"]
    assert len(weft.jit(nest)(1.0)["z"]) == len(weft.jit(nest)(1.0)["2"]) == 2
    with pytest.raises(weft.errors.UnexpectedTracerError):
        leaked = []
        weft.jit(lambda x: leaked.append(weft.jit(nest)(x)))(1.0)
        leaked[0]["z"][0] + 1.0


def test_arrays_that_differ_in_weakness_only_are_independent():
    donate = weft.jit(lambda x: x + 1, donate_argnums=0)
    made = [wnp.full((3,), 2.0) for _ in range(3)]
    made[0].delete()
    donate(made[1])
    assert made[2].weak_type and made[1].is_deleted()
    np.testing.assert_array_equal(made[2], np.full(3, 2.0))
    strong = wnp.ones(3)
    weak = weft.jit(lambda x: weft._core.astype(x, x.dtype, True))(strong)
    donate(strong)
    np.testing.assert_array_equal(weak, np.ones(3))
    held = (wnp.asarray(1.0),)  # nothing but the tuple holds it
    strong = weft.jit(lambda x: wnp.asarray(x, x.dtype))(*held)
    held[0].delete()
    assert float(strong) == 1 and not strong.weak_type
    keys = [weft.random.key(5), weft.random.key(5)]
    weft.jit(lambda k: weft.random.fold_in(k, 1), donate_argnums=0)(keys[0])
    assert (weft.random.key_data(keys[1]) == np.array([0, 5])).all()


def test_arguments_that_look_alike():
    traces = Traces()

    @weft.jit
    def f(t):
        traces.call()
        return t

    One = collections.namedtuple("One", "x")
    Two = collections.namedtuple("Two", "x")

    class SubList(list):
        pass

    trees = [
        [1.0], (1.0,), One(1.0), Two(1.0), {"x": 1.0}, collections.OrderedDict(x=1.0),
        collections.defaultdict(int, x=1.0), collections.defaultdict(float, x=1.0), {"y": 1.0},
        [[1.0]], [None, 1.0], [1.0, None], {"x": [1.0]}, State(1.0, 2.0), State(1.0, 2.0, "other"),
        {"x": 1.0, "y": 2.0},
    ]  # fmt: skip
    for _ in range(3):
        for tree in trees:
            out = f(tree)
            assert type(out) is type(tree)
            assert weft.tree_util.tree_structure(out) == weft.tree_util.tree_structure(tree)
    assert traces.count == len(trees)
    assert f({"y": 2.0, "x": 1.0})["x"] == 1.0 and traces.count == len(trees)
    with pytest.raises(weft.errors.ArgumentTypeError, match=r"t\[1\]"):
        f([1.0, SubList([1.0])])


@pytest.mark.parametrize("lower", [False, True])
def test_calls_compare_structures_as_often_whatever_was_lowered_before(lower):
    compared = []

    class Named:
        def __init__(self, name):
            self.name = name

        def __hash__(self):
            return hash(self.name)

        def __eq__(self, other):
            compared.append(self.name)
            return type(other) is Named and self.name == other.name

    @weft.tree_util.register_pytree_node_class
    class Node:
        def __init__(self, x):
            self.x = x

        def tree_flatten(self):
            return (self.x,), Named("node")

        @classmethod
        def tree_unflatten(cls, _, children):
            return cls(*children)

    f = weft.jit(lambda node: node.x * 2)
    if lower:
        f.lower(Node(weft.ShapeDtypeStruct((), "float32"))).compile()
        f.lower(Node(np.float32(1))).compile()
    x = wnp.float32(1)
    for _ in range(2):
        f(Node(x))
    compared.clear()
    assert f(Node(x)) == 2
    # With that of the call before; with those of signatures they are one object.
    assert compared == ["node"]


def test_nodes_that_change_while_they_are_flattened():
    @weft.tree_util.register_pytree_node_class
    class Changing:
        def __init__(self, x, others):
            self.x, self.others = x, others

        def tree_flatten(self):
            if self.others is not None:
                self.others.clear()
                gc.collect()
            return (self.x,), None

        @classmethod
        def tree_unflatten(cls, data, children):
            return cls(*children, None)

    f = weft.jit(lambda t: t)
    for holder in (list, dict):
        f([Changing(1.0, None), np.ones(3), np.ones(4)])
        for _ in range(3):
            others = []
            tree = [Changing(1.0, others), np.ones(3), np.ones(4)]
            others.extend(tree)
            inner = {"a": Changing(1.0, None), "b": np.ones(2)}
            inner["a"].others = inner if holder is dict else tree
            try:
                f(tree)
                f([inner, tree])
            except (ValueError, TypeError, KeyError, RuntimeError, weft.errors.WeftError):
                pass


def test_unhashable_static_arguments_name_the_argument():
    f = weft.jit(lambda x, n: x, static_argnums=1)
    f(1.0, 2)
    for _ in range(3):
        with pytest.raises(weft.errors.NonHashableStaticArgumentError, match="argument n"):
            f(1.0, [2])
        with pytest.raises(weft.errors.NonHashableStaticArgumentError, match="argument n"):
            f(1.0, n=[2])


def test_comparisons_that_run_python():
    class Value:
        def __init__(self, v):
            self.v = v

        def __hash__(self):
            return 1

        def __eq__(self, other):
            weft.clear_caches()
            f.clear_cache()
            if 13 in (self.v, other.v):
                raise ValueError("no luck")
            return self.v == other.v

    f = weft.jit(lambda x, s: x + s.v, static_argnums=1)
    for i in (1, 2, 1, 2, 3):
        assert float(f(1.0, Value(i))) == 1 + i
    f = weft.jit(lambda x, s: x + s.v, static_argnums=1)
    f(1.0, Value(13))
    with pytest.raises(ValueError, match="no luck"):
        f(1.0, Value(12))


# ---- threads


def test_concurrent_first_calls_trace_once():
    for options in ({}, {"static_argnames": "n"}):
        traces = Traces()

        @functools.partial(weft.jit, **options)
        def f(x, n=2.0, traces=traces):
            traces.call()
            time.sleep(0.05)
            return x * n

        f = weft.jit(lambda x, n=2.0, f=f: f(x, n))
        before = weft.compiler.cache_stats()["compiles"]
        results = in_threads(lambda i, f=f: float(f(1.0 + i)))
        assert results == [2.0 + 2 * i for i in range(8)]
        assert traces.count == 1
        assert weft.compiler.cache_stats()["compiles"] - before <= 1


def test_a_trace_that_fails_lets_the_next_thread_try():
    attempts = Traces()

    @weft.jit
    def f(x):
        attempts.call()
        time.sleep(0.01)
        if attempts.count <= 3:
            raise ValueError(attempts.count)
        return x + 1

    def work(i):
        try:
            return float(f(1.0))
        except ValueError as error:
            return error.args[0]

    results = in_threads(work)
    assert sorted(results)[:3] == [1, 2, 2.0] or sorted(map(str, results))[:3] == ["1", "2", "2.0"]
    assert attempts.count == 4 and results.count(2.0) >= 5


def test_traces_that_wait_for_each_other():
    @weft.jit
    def f(x):
        started.wait()
        return g(x) + 1 if not inside.is_set() else x

    @weft.jit
    def g(x):
        started.wait()
        inside.set()
        return f(x) * 2

    started, inside = threading.Barrier(2), threading.Event()
    started_once = started.wait
    started.wait = lambda: started_once(1) if started.n_waiting < 2 and not started.broken else None
    results = []

    def run(h):
        try:
            results.append(float(h(1.0)))
        except (RecursionError, threading.BrokenBarrierError) as error:
            results.append(error)

    threads = [threading.Thread(target=run, args=(h,), daemon=True) for h in (f, g)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(30)
        assert not t.is_alive()


def test_a_trace_that_waits_for_a_thread_that_waits_for_it():
    @weft.jit
    def f(x):
        if threading.current_thread() is threading.main_thread():
            other = threading.Thread(target=lambda: results.append(float(f(3.0))))
            other.start()
            other.join()
        return x + 1

    results = []
    assert float(f(2.0)) == 3.0 and results == [4.0]


# ---- reentry


def test_functions_that_clear_caches_while_they_are_traced():
    @weft.jit
    def inner(x):
        weft.clear_caches()
        return x * 2

    @weft.jit
    def f(x, t):
        weft.clear_caches()
        y = inner(x) + t["a"]
        gc.collect()
        f.clear_cache()
        return y

    for i in range(3):
        assert float(f(float(i), {"a": 1.0})) == 2 * i + 1
    assert float(weft.grad(lambda x: f(x, {"a": 1.0}))(3.0)) == 2.0


def test_functions_that_drop_themselves_while_they_are_traced():
    functions = {}

    def make():
        def f(x):
            functions.clear()
            gc.collect()
            return x + 1

        functions["f"] = weft.jit(f)

    make()
    assert float(functions.pop("f")(1.0)) == 2.0


def test_recursion_in_traces():
    @functools.partial(weft.jit, static_argnums=1)
    def power(x, n):
        return wnp.ones_like(x) if n == 0 else x * power(x, n - 1)

    assert float(power(2.0, 10)) == 1024.0

    @weft.jit
    def endless(x):
        return weft.jit(endless)(x) + endless(x)

    with pytest.raises(RecursionError):
        endless(1.0)
    assert float(power(2.0, 3)) == 8.0


def test_generators_and_traces():
    def steps(x):
        for i in range(3):
            yield weft.jit(lambda v, i=i: v + i)(x)

    @weft.jit
    def f(x):
        return sum(steps(x)) + next(steps(x))

    assert float(f(1.0)) == 7.0


def test_tracebacks_of_traces_are_the_users():
    class Custom(Exception):
        pass

    error = Custom("mine")

    def raises(x):
        raise error

    f = weft.jit(lambda t: raises(t["a"]))
    for call in (
        lambda: f({"a": 1.0}),
        lambda: f.lower({"a": 1.0}),
        lambda: weft.grad(f)({"a": 1.0}),
    ):
        with pytest.raises(Custom) as info:
            call()
        assert info.value is error
        names = [frame.name for frame in traceback.extract_tb(info.tb)]
        assert names[-1] == "raises" and "<lambda>" in names
    assert error.__cause__ is None and error.__context__ is None


def test_free_threaded_builds_are_refused(run_python):
    code = "import sys; sys.abiflags = 't'; import weft"
    with pytest.raises(Exception, match="free-threaded builds of Python.*interpreter lock"):
        run_python(code)


def test_the_signature_is_that_of_the_function():
    def f(x, /, n: int = 2, *, k): ...

    for jitted in (weft.jit(f), weft.jit(f, static_argnames="n")):
        assert inspect.signature(jitted, follow_wrapped=False) == inspect.signature(f)
