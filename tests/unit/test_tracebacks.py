"""Tracebacks: weft's own frames are folded, as the setting says; public functions are named."""

import copy
import functools
import inspect
import pickle
import subprocess
import sys
import traceback

import pytest

import weft
import weft.numpy as wnp
from weft import errors, lax
from weft._tracebacks import UnfilteredTraceback
from weft.config import config

HERE = __file__
X = wnp.ones((2, 3))


def files(error):
    """The files of the frames of an error and of those it replaces."""
    found = []
    while error is not None:
        found += [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
        error = error.__cause__ or error.__context__
    return found


def own_frames(error):
    return [f for f in files(error) if "/weft/" in f.replace("\\", "/") and f != HERE]


def raised(f, *args):
    with pytest.raises(Exception) as info:
        f(*args)
    return info.value


def fails(x):
    return wnp.concatenate([x, x], axis=5)


@weft.custom_vjp
def bad_rule(x):
    return x


bad_rule.defvjp(lambda x: (x, None), lambda res, ct: (fails(ct),))


@weft.custom_jvp
def bad_jvp(x):
    return x


bad_jvp.defjvp(lambda primals, tangents: (fails(primals[0]), tangents[0]))

CASES = {
    "a function of weft.numpy": lambda: fails(X),
    "a compiled one": lambda: wnp.sum(X, axis=7),
    "a method": lambda: X.reshape(7),
    "a conversion": lambda: bool(X),
    "an operator": lambda: X @ X,
    "an index": lambda: X[..., ...],
    "x.at": lambda: X.at["a"].set(1.0),
    "jit": lambda: weft.jit(fails)(X),
    "jit in jit": lambda: weft.jit(lambda x: weft.jit(fails)(x))(X),
    "jit without compiling": lambda: without_jit(),
    "lower": lambda: weft.jit(fails).lower(X),
    "eval_shape": lambda: weft.eval_shape(fails, X),
    "make_jaxpr": lambda: weft.make_jaxpr(fails)(X),
    "a traced condition": lambda: weft.jit(lambda x: 1 if x.sum() > 0 else 2)(X),
    "grad": lambda: weft.grad(fails)(X),
    "the check of grad": lambda: weft.grad(lambda x: x)(X),
    "vmap": lambda: weft.vmap(fails)(X),
    "vjp": lambda: weft.vjp(lambda x: x, X)[1](1.0, 2.0),
    "jvp": lambda: weft.jvp(fails, (X,), (X,)),
    "linearize": lambda: weft.linearize(lambda x: x, X)[1](1.0),
    "jacobian": lambda: weft.jacfwd(fails)(X),
    "checkpoint": lambda: weft.grad(lambda x: weft.checkpoint(fails)(x))(X),
    "scan": lambda: lax.scan(lambda c, y: (c, fails(y)), 0.0, X),
    "the check of scan": lambda: lax.scan(lambda c, y: ((c, c), y), 0.0, X),
    "while": lambda: lax.while_loop(lambda c: True, fails, X),
    "cond": lambda: lax.cond(True, fails, fails, X),
    "custom_vjp": lambda: weft.grad(lambda x: bad_rule(x).sum())(X),
    "custom_jvp": lambda: weft.jvp(bad_jvp, (X,), (X,)),
    "tree.map": lambda: weft.tree.map(lambda x: fails(x), {"a": X}),
    "trees that differ": lambda: weft.tree.map(lambda x, y: x, {"a": X}, {"b": X}),
    "random": lambda: weft.random.normal("key"),
}


def without_jit():
    with weft.disable_jit():
        weft.jit(fails)(X)


@pytest.mark.parametrize("case", CASES)
def test_only_frames_of_the_user_are_shown(case):
    error = raised(CASES[case])
    assert own_frames(error) == []
    assert files(error).count(HERE) >= 1
    assert any(
        "WEFT_TRACEBACK_FILTERING=off" in note for note in getattr(error, "__notes__", [])
    ) or (error.__cause__ is None)


def test_the_last_frame_is_the_line_at_fault():
    error = raised(weft.jit(lambda x: fails(x)), X)
    assert traceback.extract_tb(error.__traceback__)[-1].name == "fails"


@pytest.fixture
def mode(request):
    config.update("weft_traceback_filtering", request.param)
    yield request.param
    config.update("weft_traceback_filtering", "auto")


@pytest.mark.parametrize("mode", ["off"], indirect=True)
def test_off_shows_all_frames(mode):
    error = raised(weft.jit(fails), X)
    assert own_frames(error)
    assert not hasattr(error, "__notes__")


@pytest.mark.parametrize("mode", ["tracebackhide"], indirect=True)
def test_tracebackhide_marks_frames(mode):
    entry = raised(weft.jit(fails), X).__traceback__
    marked = []
    while entry is not None:
        own = "/weft/" in entry.tb_frame.f_code.co_filename and HERE != (
            entry.tb_frame.f_code.co_filename
        )
        assert entry.tb_frame.f_locals.get("__tracebackhide__", False) == own
        marked.append(own)
        entry = entry.tb_next
    assert any(marked)


@pytest.mark.parametrize("mode", ["remove_frames"], indirect=True)
@pytest.mark.parametrize("case", ["jit in jit", "grad", "scan", "tree.map"])
def test_remove_frames_keeps_the_whole_traceback_in_a_cause(mode, case):
    error = raised(CASES[case])
    assert not own_frames_of(error)
    assert isinstance(error.__cause__, UnfilteredTraceback)
    whole = [frame.name for frame in traceback.extract_tb(error.__cause__.__traceback__)]
    kept = [frame.name for frame in traceback.extract_tb(error.__traceback__)]
    assert own_frames_of(error.__cause__)
    # What the whole one holds of the user's code is in the order of the filtered one.
    assert [name for name in kept if name in whole][-1] == "fails"


def own_frames_of(error):
    found = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
    return [f for f in found if "/weft/" in f and f != HERE]


def test_wrong_settings():
    with pytest.raises(ValueError, match="remove_frames"):
        config.update("weft_traceback_filtering", "on")


@pytest.mark.parametrize("value", ["auto", "off"])
def test_a_program_that_fails(tmp_path, value):
    program = tmp_path / "program.py"
    program.write_text(
        "import weft, weft.numpy as wnp\n"
        "@weft.jit\n"
        "def model(x):\n"
        "    return wnp.reshape(x, (7,))\n"
        "weft.grad(lambda x: model(x).sum())(wnp.ones(3))\n"
    )
    done = subprocess.run(
        [sys.executable, str(program)],
        capture_output=True,
        text=True,
        check=False,
        env={**__import__("os").environ, "WEFT_TRACEBACK_FILTERING": value},
    )
    assert done.returncode == 1
    shown = [line for line in done.stderr.split("\n") if line.startswith("  File ")]
    own = [line for line in shown if "program.py" not in line]
    assert bool(own) == (value == "off")
    assert "[reshape] expected" in done.stderr


def test_causes_of_users_stay():
    def f(x):
        try:
            fails(x)
        except errors.WeftError as error:
            raise RuntimeError("mine") from error

    error = raised(weft.jit(f), X)
    assert str(error) == "mine"
    assert isinstance(error.__cause__, errors.AttributeValueError)
    assert own_frames(error) == []


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: wnp.mean("a"), "mean"),
        (lambda: X @ X, "matmul"),
        (lambda: wnp.true_divide(X, wnp.ones(4)), "divide"),
        (lambda: wnp.var(X, axis=3), "var"),
        (lambda: weft.nn.softmax(X, axis=3), "softmax"),
        (lambda: weft.jit(lambda x: wnp.std(x, axis=3))(X), "std"),
        (lambda: X.mean(axis=4), "mean"),
    ],
)
def test_messages_name_the_function_that_was_called(call, name):
    assert str(raised(call)).startswith(f"[{name}] ")


def test_messages_of_users_stay():
    def f(x):
        raise ValueError("[mine] message")

    for call in (weft.jit(f), weft.grad(f), weft.vmap(f), lambda x: weft.tree.map(f, x)):
        assert str(raised(call, X)) == "[mine] message"


# ---- what public functions are


def test_public_functions_look_like_functions():
    f = wnp.concatenate
    assert f.__name__ == f.__qualname__ == "concatenate"
    assert f.__module__.startswith("weft.numpy")
    assert "arrays" in f.__doc__ and "concatenate" in repr(f)
    assert "axis" in inspect.signature(f).parameters
    assert inspect.isroutine(f) and callable(f)
    assert inspect.getsource(f).startswith("def concatenate")
    assert pickle.loads(pickle.dumps(f))([X, X]).shape == (4, 3)
    assert copy.copy(f)([X, X]).shape == (4, 3)
    assert functools.partial(f, axis=1)([X, X]).shape == (2, 6)
    assert weft.tree.map is weft.tree_util.tree_map
    assert weft.jit(f)([X, X]).shape == (4, 3)


def test_wrapped_functions_keep_the_attributes_of_the_user():
    def model(x):
        """Doc."""
        return x

    model.tag = 3
    g = weft.grad(model)
    assert g.__name__ == "model" and g.__doc__ == "Doc." and g.tag == 3
    g.other = 4
    assert g.other == 4 and not hasattr(model, "other")


def test_a_public_function_as_a_method():
    class Layer:
        apply = wnp.tanh
        join = wnp.concatenate

    assert Layer.join([X, X]).shape == (4, 3)
    with pytest.raises(TypeError):
        Layer().join([X, X], 0, 1, 2)


def test_public_functions_are_made_of_functions():
    kind = type(wnp.concatenate)
    with pytest.raises(TypeError, match="expected a function"):
        kind(3)
    with pytest.raises(TypeError):
        kind()
    assert kind(wnp.concatenate) is wnp.concatenate
