"""Mistakes of users: each is a typed error that names the argument, the op and the user's line."""

import pickle
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import weft
import weft.numpy as wnp
from weft import errors, lax

HERE = Path(__file__).name
F = np.ones((3, 4), np.float32)
G = np.ones((5, 6), np.float32)
I = np.ones((3, 4), np.int32)


def line_of(mark: str) -> int:
    """The number of the only line of this file that ends with the comment `# mark`."""
    lines = Path(__file__).read_text().split("\n")
    (number,) = (n for n, line in enumerate(lines, 1) if line.endswith(f"# {mark}"))
    return number


def check(info, *parts: str, mark: str | None = None) -> None:
    text = str(info.value)
    for part in parts:
        assert part in text, f"{part!r} is not in:\n{text}"
    if mark:
        assert f"{HERE}:{line_of(mark)}" in text, text


def both_ways(fn, *args):
    """The same mistake under jit and op by op."""
    return [lambda: weft.jit(fn)(*args), lambda: fn(*map(weft.device_put, args))]


# Shapes and dtypes.


def shapes(x, y):
    return x + y  # line of shapes


@pytest.mark.parametrize("call", both_ways(shapes, F, G), ids=["jit", "eager"])
def test_shapes_that_do_not_broadcast(call):
    with pytest.raises(errors.ShapeError) as info:
        call()
    check(info, "add", mark="line of shapes")
    assert re.search(r"3, ?4", str(info.value)) and re.search(r"5, ?6", str(info.value))


def lax_shapes(x, y):
    return lax.mul(x, y)  # line of lax_shapes


@pytest.mark.parametrize("call", both_ways(lax_shapes, F, F.T), ids=["jit", "eager"])
def test_lax_does_not_broadcast(call):
    with pytest.raises(errors.ShapeError) as info:
        call()
    check(info, "[mul]", "f32[3,4]", "f32[4,3]", mark="line of lax_shapes")


def lax_dtypes(x, y):
    return lax.mul(x, y)  # line of lax_dtypes


@pytest.mark.parametrize("call", both_ways(lax_dtypes, F, I), ids=["jit", "eager"])
def test_lax_does_not_promote(call):
    with pytest.raises(errors.DTypeError) as info:
        call()
    check(info, "[mul]", "f32", "i32", mark="line of lax_dtypes")


def contraction(x, y):
    return x @ y  # line of contraction


@pytest.mark.parametrize("call", both_ways(contraction, F, G), ids=["jit", "eager"])
def test_matmul_of_unequal_sizes(call):
    with pytest.raises(errors.ShapeError) as info:
        call()
    check(info, "matmul", mark="line of contraction")


def bits_of_float(x):
    return x & x  # line of bits_of_float


@pytest.mark.parametrize("call", both_ways(bits_of_float, F), ids=["jit", "eager"])
def test_dtype_an_op_does_not_take(call):
    with pytest.raises((errors.DTypeError, errors.TypePromotionError)) as info:
        call()
    check(info, "and", "f32", mark="line of bits_of_float")


def bad_axis(x):
    return wnp.sum(x, axis=2)  # line of bad_axis


@pytest.mark.parametrize("call", both_ways(bad_axis, F), ids=["jit", "eager"])
def test_axis_out_of_range(call):
    with pytest.raises((errors.WeftError, ValueError)) as info:
        call()
    check(info, "axis 2")


def bad_reshape(x):
    return x.reshape(5, 5)  # line of bad_reshape


@pytest.mark.parametrize("call", both_ways(bad_reshape, F), ids=["jit", "eager"])
def test_reshape_to_another_size(call):
    with pytest.raises(errors.ShapeError) as info:
        call()
    check(info, "reshape", "(5, 5)")


def test_too_many_indices():
    with pytest.raises(IndexError):
        wnp.ones((2, 3))[0, 0, 0]


# Concrete values asked of tracers.


def asks_bool(x):
    if x > 0:  # line of asks_bool
        return x
    return -x


def test_tracer_in_if():
    with pytest.raises(errors.TracerBoolConversionError) as info:
        weft.jit(asks_bool)(1.0)
    check(info, "asks_bool", "bool[]", "weft.lax.cond", mark="line of asks_bool")


def asks_while(x):
    while x < 3:  # line of asks_while
        x = x + 1
    return x


def asks_for(n):
    total = 0
    for i in range(n):  # line of asks_for
        total += i
    return total


def asks_in_a_comprehension(n):
    return [2 * i for i in range(n)]  # line of asks_in_a_comprehension


def asks_expression(x):
    return (
        x
        if x > 0  # line of asks_expression
        else -x
    )


def asks_assert(x):
    assert x > 0  # line of asks_assert
    return x


def asks_and(x):
    if x > 0 and x < 3:  # line of asks_and
        return x
    return -x


def asks_not(x):
    return not x  # line of asks_not


def asks_elsewhere(x):
    return [1.0, 2.0][x]  # line of asks_elsewhere


CONSTRUCTS = {
    asks_bool: "weft.lax.cond instead of this `if`",
    asks_while: "weft.lax.while_loop instead of this `while`",
    asks_for: "weft.lax.fori_loop or weft.lax.scan instead of this `for`",
    asks_in_a_comprehension: "weft.lax.fori_loop or weft.lax.scan instead of this `for`",
    asks_expression: "weft.numpy.where instead of this `if ... else`",
    asks_assert: "This `assert` would check once",
    asks_and: "Use `&` (weft.numpy.logical_and) instead of this `and`",
    asks_not: "Use `~` (weft.numpy.logical_not) instead of this `not`",
    asks_elsewhere: "Shapes, axes and slice bounds must be known while tracing",
}


@pytest.mark.parametrize("f", CONSTRUCTS, ids=lambda f: f.__name__)
def test_constructs_are_named(f):
    with pytest.raises(errors.ConcretizationTypeError) as info:
        weft.jit(f)(1)
    check(info, f.__name__, CONSTRUCTS[f], mark=f"line of {f.__name__}")


def test_constructs_without_source():
    names = {}
    exec("def f(x):\n    while x < 3:\n        x = x + 1\n    return x", names)
    with pytest.raises(errors.TracerBoolConversionError, match="weft.lax.while_loop instead of `w"):
        weft.jit(names["f"])(1)


def asks_float(x):
    return float(x) + 1.0  # line of asks_float


def test_tracer_as_float():
    with pytest.raises(errors.ConcretizationTypeError) as info:
        weft.jit(asks_float)(1.0)
    check(info, "asks_float", mark="line of asks_float")


def asks_index(x, n):
    return x[: [0, 1, 2][n]]  # line of asks_index


def test_tracer_as_list_index():
    with pytest.raises(errors.TracerIntegerConversionError) as info:
        weft.jit(asks_index)(F, 1)
    check(info, "asks_index", mark="line of asks_index")


def calls_numpy(x):
    return np.sin(x)  # line of calls_numpy


def test_numpy_function_on_a_tracer():
    with pytest.raises(errors.TracerArrayConversionError) as info:
        weft.jit(calls_numpy)(F)
    check(info, "calls_numpy", "f32[3,4]", "weft.numpy", mark="line of calls_numpy")


def boolean_mask(x):
    return x[x > 0]  # line of boolean_mask


def test_boolean_mask_of_a_tracer():
    with pytest.raises((errors.NonConcreteBooleanIndexError, NotImplementedError, IndexError)):
        weft.jit(boolean_mask)(F)


# Leaked tracers.

kept = []


def leaks(x):
    y = x * 2  # line of leaks
    kept.append(y)
    return y


def test_leaked_tracer_used_eagerly():
    kept.clear()
    weft.jit(leaks)(1.0)
    with pytest.raises(errors.UnexpectedTracerError) as info:
        kept[0] + 1
    check(info, "leaks", mark="line of leaks")


def test_leaked_tracer_used_in_another_trace():
    kept.clear()
    weft.jit(leaks)(1.0)
    with pytest.raises(errors.UnexpectedTracerError):
        weft.jit(lambda x: x + kept[0])(1.0)
    with pytest.raises(errors.UnexpectedTracerError):
        weft.jit(lambda x: kept[0])(1.0)


def test_leaked_tracer_as_argument():
    kept.clear()
    weft.jit(leaks)(1.0)
    with pytest.raises(errors.UnexpectedTracerError):
        weft.jit(lambda x: x)(kept[0])


def _leak_of(run):
    """What `run`, given a function, keeps of the function's argument."""
    leaked = []

    def keeps(*args):
        leaked.append(weft.tree.leaves(args)[0])
        return args[0]

    run(keeps)
    return leaked[0]


def _leak_of_rule(run):
    """What a rule of a custom_jvp function keeps."""

    def with_rule(keeps):
        f = weft.custom_jvp(lambda x: x * 2)
        f.defjvp(lambda p, t: (f(*p), keeps(t[0])))
        run(f)

    return _leak_of(with_rule)


def _leak_of_backward_rule():
    def run(keeps):
        f = weft.custom_vjp(lambda x: x * 2)
        f.defvjp(lambda x: (x, None), lambda _, ct: (keeps(ct),))
        weft.jit(weft.grad(f))(1.0)

    return _leak_of(run)


LEAKS = {
    "jit": lambda: _leak_of(lambda f: weft.jit(f)(1.0)),
    "vector": lambda: _leak_of(lambda f: weft.jit(f)(np.ones(3))),
    "int": lambda: _leak_of(lambda f: weft.jit(f)(1)),
    "bool": lambda: _leak_of(lambda f: weft.jit(f)(True)),
    "grad": lambda: _leak_of(lambda f: weft.grad(f)(1.0)),
    "jit of grad": lambda: _leak_of(lambda f: weft.jit(weft.grad(f))(1.0)),
    "hessian": lambda: _leak_of(lambda f: weft.hessian(f)(1.0)),
    "vjp": lambda: _leak_of(lambda f: weft.vjp(f, np.ones(3))),
    "jvp": lambda: _leak_of(lambda f: weft.jvp(f, (1.0,), (1.0,))),
    "linearize": lambda: _leak_of(lambda f: weft.linearize(f, 1.0)),
    "linear_transpose": lambda: _leak_of(lambda f: weft.linear_transpose(f, 1.0)),
    "vmap": lambda: _leak_of(lambda f: weft.vmap(f)(np.ones(3))),
    "vmap of grad": lambda: _leak_of(lambda f: weft.vmap(weft.grad(f))(np.ones(3))),
    "scan": lambda: _leak_of(lambda f: lax.scan(lambda c, x: (f(c), x), 1.0, np.ones(3))),
    "fori_loop": lambda: _leak_of(lambda f: lax.fori_loop(0, 3, lambda i, c: f(c), 1.0)),
    "while_loop": lambda: _leak_of(
        lambda f: lax.while_loop(lambda c: c < 3, lambda c: f(c) + 1, 1)
    ),
    "condition": lambda: _leak_of(lambda f: lax.while_loop(lambda c: f(c) < 3, lambda c: c + 1, 1)),
    "cond": lambda: _leak_of(lambda f: lax.cond(True, f, lambda x: x, 1.0)),
    "checkpoint": lambda: _leak_of(lambda f: weft.checkpoint(f)(1.0)),
    "make_jaxpr": lambda: _leak_of(lambda f: weft.make_jaxpr(f)(1.0)),
    "eval_shape": lambda: _leak_of(lambda f: weft.eval_shape(f, 1.0)),
    "custom_vjp": lambda: _leak_of(
        lambda f: weft.jit(weft.custom_gradient(lambda x: (f(x), None)))(1.0)
    ),
    "jvp rule": lambda: _leak_of_rule(lambda f: weft.grad(f)(1.0)),
    "jvp rule under jit": lambda: _leak_of_rule(lambda f: weft.jit(weft.grad(f))(1.0)),
    "backward rule": _leak_of_backward_rule,
}
ASKS = {
    "asarray": np.asarray,
    "asarray of dtype": lambda x: np.asarray(x, np.float64),
    "array": lambda x: np.array([x]),
    "numpy function": np.sin,
    "numpy operator": lambda x: np.ones(3) * x,
    "float": float,
    "int": int,
    "complex": complex,
    "bool": bool,
    "index": lambda x: [1, 2][x],
    "range": range,
    "item": lambda x: x.item(),
    "tolist": lambda x: x.tolist(),
    "format": lambda x: f"{x:.3f}",
    "iter": list,
    "in": lambda x: 1 in x,
    "getitem": lambda x: x[0],
    "getitem of all": lambda x: x[...],
    "as an index": lambda x: wnp.ones(3)[x],
    "as a numpy index": lambda x: np.ones(3)[x],
    "add": lambda x: x + 1,
    "radd": lambda x: 1 + x,
    "neg": lambda x: -x,
    "eq": lambda x: x == 1,
    "matmul": lambda x: x @ x,
    "divmod": lambda x: divmod(x, 2),
    "round": round,
    "pow": lambda x: x**2,
    "at": lambda x: x.at[0].set(1),
    "method": lambda x: x.sum(),
    "astype": lambda x: x.astype(np.int32),
    "T": lambda x: x.T,
    "real": lambda x: x.real,
    "copy": lambda x: x.copy(),
    "pickle": pickle.dumps,
    "array_equal": lambda x: np.array_equal(x, 1.0),
    "device_put": weft.device_put,
    "block": lambda x: weft.block_until_ready(x),
    "get": weft.device_get,
    "concatenate": lambda x: wnp.stack([x, x]),
    "jit of it": lambda x: weft.jit(lambda: x + 1)(),
    "jit argument": lambda x: weft.jit(lambda y: y)(x),
    "jit result": lambda x: weft.jit(lambda: x)(),
    "vmap of it": lambda x: weft.vmap(lambda y: y + x)(np.ones(3)),
    "vmap argument": lambda x: weft.vmap(lambda y: y, in_axes=None, axis_size=2)(x),
    "vmap result": lambda x: weft.vmap(lambda y: x)(np.ones(3)),
    "grad of it": lambda x: weft.grad(lambda y: (y * x).sum())(1.0),
    "grad argument": lambda x: weft.grad(lambda y: y.sum())(x * 1.0),
    "grad result": lambda x: weft.grad(lambda y: x)(1.0),
    "jvp tangent": lambda x: weft.jvp(lambda y: y, (np.ones(x.shape, x.dtype),), (x,)),
    "vjp cotangent": lambda x: weft.vjp(lambda y: y, np.ones(x.shape, x.dtype))[1](x),
    "linear_transpose": lambda x: weft.linear_transpose(lambda y: y * x, 1.0)(1.0),
    "scan carry": lambda x: lax.scan(lambda c, _: (c, None), x, None, length=2),
    "scan body": lambda x: lax.scan(lambda c, _: (c + x, None), x * 0, None, length=2),
    "loop bound": lambda x: lax.fori_loop(0, x, lambda i, c: c, 1.0),
    "predicate": lambda x: lax.cond(x, lambda: 1, lambda: 2),
    "branch": lambda x: lax.cond(True, lambda: x, lambda: x),
    "where": lambda x: wnp.where(x, 1, 2),
    "checkpoint": lambda x: weft.checkpoint(lambda: x * 2)(),
    "custom_jvp": lambda x: weft.custom_jvp(lambda y: y + x)(1.0),
    "closure_convert": lambda x: weft.closure_convert(lambda y: y + x, 1.0),
    "make_jaxpr": lambda x: weft.make_jaxpr(lambda y: y + x)(1.0),
    "eval_shape": lambda x: weft.eval_shape(lambda y: y + x, 1.0),
    "shape": lambda x: wnp.ones(x),
    "axis": lambda x: wnp.sum(wnp.ones((2, 2)), axis=x),
    "callback": lambda x: weft.debug.callback(print, x),
    "pure_callback": lambda x: weft.pure_callback(lambda y: y, x, x),
    "new_ref": weft.new_ref,
    "key": weft.random.key,
    "static": lambda x: weft.jit(lambda n: 1, static_argnums=0)(x),
}


# These look at the type first, or hand the tracer on as it is.
NEED_NO_VALUE = {
    *("iter", "in", "getitem", "as an index", "matmul", "at", "real", "pickle", "array_equal"),
    *("device_put", "block", "get", "loop bound", "shape", "axis", "new_ref", "key", "static"),
    *("jvp tangent", "vjp cotangent", "predicate", "round", "custom_jvp"),
}


@pytest.mark.parametrize("leak", LEAKS)
def test_leaked_tracers_say_that_they_were_kept(leak):
    x = LEAKS[leak]()
    assert "Tracer" in repr(x) and x.shape is not None and x.dtype is not None
    for name, ask in ASKS.items():
        try:
            ask(x)
        except (errors.WeftError, TypeError, ValueError, AttributeError) as error:
            assert not isinstance(error, errors.InternalError), f"{name}: {error!r}"
            text = str(error)
        else:
            text = ""
        assert name in NEED_NO_VALUE or "which was kept after that trace ended" in text, name


# Arguments of jit.


def takes_two(x, y):
    return x


@pytest.mark.parametrize("bad", ["text", object(), {1, 2}, np.array(["a"]), np.array([None])])
def test_argument_that_is_no_array(bad):
    with pytest.raises(errors.ArgumentTypeError) as info:
        weft.jit(takes_two)(1.0, bad)
    check(info, "argument y of 'takes_two'", type(bad).__name__)


def test_bad_leaf_of_a_tree_argument():
    with pytest.raises(errors.ArgumentTypeError) as info:
        weft.jit(takes_two)(1.0, {"w": [1.0, "text"]})
    check(info, "argument y['w'][1] of 'takes_two'", "str")


def test_bad_keyword_argument():
    with pytest.raises(errors.ArgumentTypeError) as info:
        weft.jit(takes_two)(1.0, y="text")
    check(info, "argument y of 'takes_two'")


def returns_text(x):
    return {"a": x, "b": "text"}


def test_result_that_is_no_array():
    with pytest.raises(errors.ArgumentTypeError) as info:
        weft.jit(returns_text)(1.0)
    check(info, "returns_text", "['b']", "str")


def test_unhashable_static_argument():
    f = weft.jit(takes_two, static_argnums=1)
    with pytest.raises(errors.NonHashableStaticArgumentError) as info:
        f(1.0, [1, 2])
    check(info, "takes_two", "y", "list")


def test_static_argument_that_does_not_exist():
    with pytest.raises(ValueError, match="takes_two"):
        weft.jit(takes_two, static_argnums=5)
    with pytest.raises(ValueError, match="'z'"):
        weft.jit(takes_two, static_argnames="z")


def test_wrong_number_of_arguments():
    with pytest.raises(TypeError, match=r"takes_two\(\) missing 1 required positional argument"):
        weft.jit(takes_two)(1.0)


def test_error_of_the_users_function_passes_through():
    def fails(x):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        weft.jit(fails)(1.0)
    # The failed trace leaves nothing behind.
    assert float(wnp.ones(()) + 1) == 2.0


def test_jit_of_something_that_is_no_function():
    with pytest.raises(TypeError, match="function"):
        weft.jit(3)


# Deleted and donated arrays.


def use(x):
    return x + 1


@pytest.mark.parametrize(
    "reader",
    [np.asarray, float, lambda x: x + 1, weft.jit(use), lambda x: x.block_until_ready(),
     lambda x: np.from_dlpack(x), lambda x: memoryview(x), lambda x: x.tolist()],
)  # fmt: skip
def test_deleted_array(reader):
    x = weft.device_put(np.float32(3))
    x.delete()
    assert x.is_deleted()
    assert x.shape == () and x.dtype == np.float32
    with pytest.raises(errors.DeletedArrayError, match="deleted"):
        reader(x)
    assert "deleted" in repr(x)


def test_deleting_a_scalar_leaves_others_of_its_value_alone():
    x, y = (weft.device_put(np.float32(3.5)) for _ in range(2))
    x.delete()
    weft.block_until_ready(weft.jit(use, donate_argnums=0)(y))
    assert float(weft.device_put(np.float32(3.5))) == 3.5
    assert (wnp.zeros(2) + 3.5).tolist() == [3.5, 3.5]


def test_donated_array():
    x = weft.device_put(np.arange(1024, dtype=np.float32))
    y = weft.jit(use, donate_argnums=0)(x)
    assert x.is_deleted()
    np.testing.assert_array_equal(y, np.arange(1, 1025))
    with pytest.raises(errors.DeletedArrayError) as info:
        x + 1
    check(info, "donated")


def test_array_donated_twice_in_one_call():
    x = weft.device_put(np.ones(1024, np.float32))
    f = weft.jit(lambda a, b: (a + 1, b + 2), donate_argnums=(0, 1))
    with pytest.raises((errors.WeftError, ValueError, RuntimeError), match="donate"):
        weft.block_until_ready(f(x, x))


def test_mixed_devices(run_python):
    out = run_python(
        """
        import numpy as np, weft
        from weft import errors
        a, b = weft.devices()[:2]
        x, y = weft.device_put(np.ones(3), a), weft.device_put(np.ones(3), b)
        for f in (lambda x, y: x + y, weft.jit(lambda x, y: x + y)):
            try:
                f(x, y)
            except errors.DeviceMismatchError as e:
                assert str(a.id) in str(e) and str(b.id) in str(e), e
                print("refused")
        # An array that is committed nowhere goes along.
        print((y + np.ones(3)).devices() == {b}, weft.jit(lambda y: y + 1)(y).devices() == {b})
        """,
        WEFT_NUM_CPU_DEVICES="2",
    )
    assert out.split() == ["refused", "refused", "True", "True"]


# Immutability and conversions.


def test_assignment_points_to_at():
    x = wnp.zeros(3)
    with pytest.raises(TypeError, match=r"\.at\[.*\]\.set\("):
        x[0] = 1
    with pytest.raises(TypeError):
        del x[0]


def test_assignment_to_a_tracer():
    def assigns(x):
        x[0] = 1
        return x

    with pytest.raises(TypeError, match=r"\.at\["):
        weft.jit(assigns)(F)


@pytest.mark.parametrize("convert", [bool, int, float, complex])
def test_only_arrays_of_one_element_become_scalars(convert):
    with pytest.raises((TypeError, ValueError)):
        convert(wnp.ones(3))


def test_index_needs_an_integer():
    with pytest.raises(TypeError):
        [1, 2][wnp.ones(())]
    assert [1, 2][wnp.asarray(1)] == 2


def test_iteration_over_a_scalar():
    with pytest.raises(TypeError, match="iteration over"):
        iter(wnp.ones(()))
    with pytest.raises(TypeError):
        len(wnp.ones(()))


def test_unknown_attribute():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = wnp.ones(3).nothing


def test_arrays_are_not_hashable():
    with pytest.raises(TypeError, match="unhashable"):
        hash(wnp.ones(3))


# Compiler functions.


def test_parse_errors_have_a_place():
    with pytest.raises(errors.ParseError, match=r"line 1"):
        weft.compiler.parse("{ lambda ; a:f32[]. let b:f32[] = sinn a in (b,) }")
    with pytest.raises(errors.ParseError):
        weft.compiler.parse("{ lambda ; a:f32[]")


def test_unknown_pass_lists_the_known_ones():
    graph = weft.jit(lambda x: x).trace(1.0).graph
    with pytest.raises(errors.AttributeValueError, match="dce"):
        weft.compiler.optimize(graph, passes=["none_such"])


@pytest.mark.parametrize(
    "name", [n for n, c in vars(errors).items() if isinstance(c, type) and n != "WeftError"]
)
def test_every_error_class_explains_itself(name):
    cls = getattr(errors, name)
    if issubclass(cls, errors.WeftError):
        assert cls.__doc__ and len(cls.__doc__.split()) > 8


# Numbers out of any range.


@pytest.mark.parametrize("bits", [2**32, 2**31, 0, -1])
def test_reduce_precision_bits(bits):
    with pytest.raises(errors.AttributeValueError) as info:
        weft.make_jaxpr(lambda x: lax.reduce_precision(x, bits, 3))(F)  # precision
    check(info, "between 1 and 2147483647", f"exponent_bits={bits}", mark="precision")


@pytest.mark.parametrize("stride", [10, 2**31, 2**62, sys.maxsize])
def test_slice_with_a_stride_past_the_end(stride):
    x = np.arange(10, dtype=np.float32)

    def first(x):
        return lax.slice(x, (3,), (10,), (stride,))

    for got in (first(weft.device_put(x)), weft.jit(first)(x)):
        np.testing.assert_array_equal(got, [3])
    grad = weft.jit(weft.grad(lambda x: first(x)[0]))(x)
    np.testing.assert_array_equal(grad, x == 3)


def test_functions_nested_too_deeply():
    def chain(n):
        f = wnp.sin
        for _ in range(n):
            f = weft.jit(lambda x, f=f: f(x) * 2)  # nested
            f.trace(F)

    with pytest.raises(errors.NestingError) as info:
        chain(300)
    assert isinstance(info.value, RecursionError)
    check(info, "[jit] expected at most 256 graphs in each other", mark="nested")


# Bytes of a file's name that are no text, halves of a pair, what is special in programs.
_NAMES = ["\udcff", "\ud800\udfff", "a\x00b\n\"'\\", "%0 = @main", "\u2028", "", "x" * 5000]


def _named(name, function, file="names.py"):
    code = function.__code__.replace(co_name=name, co_filename=file)
    function.__code__ = code.replace(co_qualname=name)
    function.__name__ = function.__qualname__ = name
    return function


@pytest.mark.parametrize("name", _NAMES, ids=ascii)
def test_functions_whose_names_are_no_text(name):
    x, f = wnp.ones(3), _named(name, lambda x: wnp.sin(x) * 2, file=f"{name}.py")
    np.testing.assert_allclose(weft.jit(f)(x), 2 * np.sin(1), rtol=1e-6)
    for stage in (weft.jit(f).lower(x), weft.jit(lambda x: weft.jit(f)(x) + f(x)).lower(x)):
        stage.compile()  # the text parses
        stage.as_text(debug_info=True).encode()
    for transformed in (weft.vmap(f), weft.grad(lambda x: weft.checkpoint(f)(x).sum())):
        transformed(x)
    str(weft.make_jaxpr(f)(x)).encode()
    assert lax.scan(_named(name, lambda c, x: (c, x)), 1.0, x)[0] == 1
    lax.cond(True, _named(name, lambda x: x), _named(name, lambda x: x + 1), x)
    with pytest.raises(weft.errors.ShapeError) as info:
        _named(name, lambda x: lax.add(x, wnp.ones(4)), file=f"{name}.py")(x)
    str(info.value).encode()
    with pytest.raises(weft.errors.TracerBoolConversionError):
        weft.jit(_named(name, lambda x: bool(x), file=f"{name}.py"))(1.0)
    leaked = []
    weft.jit(_named(name, lambda x: leaked.append(x)))(1.0)
    with pytest.raises(weft.errors.UnexpectedTracerError):
        leaked[0] + 1


@pytest.mark.parametrize("name", _NAMES, ids=ascii)
def test_names_given_to_parts_of_programs_that_are_no_text(name):
    x = wnp.ones(3)
    if name:
        scoped = weft.jit(weft.named_scope(name)(lambda x: wnp.sin(x) * 2)).lower(x)
        scoped.as_text(debug_info=True).encode()
        scoped.compile()

    def loss(x):
        return wnp.sin(weft.ad_checkpoint.checkpoint_name(wnp.sin(x), name)).sum()

    policy = weft.checkpoint_policies.save_only_these_names(name)
    saved = weft.grad(weft.checkpoint(loss, policy=policy))
    np.testing.assert_allclose(saved(x), np.cos(np.sin(1)) * np.cos(1), rtol=1e-6)
    last = weft.make_jaxpr(saved)(x).jaxpr.eqns[-1]  # the second half
    assert str(last.params["jaxpr"]).count("sin ") == 0  # takes sin(x), which was saved

    doubled = weft.custom_jvp(_named(name, lambda x: x * 2))
    doubled.defjvp(_named(name, lambda p, t: (p[0] * 2, t[0] * 2)))
    scaled = weft.custom_vjp(_named(name, lambda x: x * 2))
    scaled.defvjp(lambda x: (x * 2, None), _named(name, lambda _, ct: (ct * 2,)))
    for f in (doubled, scaled):
        assert weft.grad(lambda x, f=f: f(x).sum())(x)[0] == 2
        str(weft.make_jaxpr(f)(x)).encode()

    shape = weft.ShapeDtypeStruct((3,), np.float32)
    weft.jit(lambda x: weft.pure_callback(_named(name, lambda x: x), shape, x))(x)
    primitive = weft.extend.core.Primitive(name)
    primitive.def_impl(lambda x: x)
    primitive.def_abstract_eval(lambda x: x)
    assert (primitive.bind(x) == 1).all()
    weft.jit(lambda **named: {name: named[name] + 1}).lower(**{name: x}).compile()
    with pytest.raises(weft.errors.ArgumentTypeError):
        weft.jit(lambda **named: 1)(**{name: object()})
    with pytest.raises(TypeError):
        wnp.zeros(3, name or "no dtype")


def test_names_that_are_no_text():
    """Bytes of a file's name that are no text are shown escaped."""
    name = b"/tmp/bad\xff.py".decode("utf-8", "surrogateescape")
    source = "def f(x):\n    return lax.add(x, np.ones(5, np.float32))\n"
    space = {"lax": lax, "np": np}
    exec(compile(source, name, "exec"), space)
    assert (space["f"](np.ones(5, np.float32)) == 2).all()
    assert (weft.jit(space["f"])(np.ones(5, np.float32)) == 2).all()
    with pytest.raises(weft.errors.ShapeError, match=r"bad\\udcff\.py:2"):
        space["f"](np.ones(4, np.float32))


@pytest.mark.parametrize("size", [0, 1, 2])
def test_a_traced_condition_is_a_value_error_where_no_value_could_be_one(size):
    with pytest.raises((errors.TracerBoolConversionError, ValueError)) as info:
        weft.jit(lambda x: 1 if x else 2)(np.ones(size))
    assert isinstance(info.value, ValueError) == (size != 1)
