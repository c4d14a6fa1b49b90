"""The entry points of weft._core: what they are given is checked before it is used."""

import subprocess
import sys
import weakref

import numpy as np
import pytest
from conftest import SUPPORT

import weft
import weft.numpy as wnp
from weft import _core
from weft._jit import JitOptions
from weft.errors import AttributeValueError


def test_install_names_the_slots_it_knows():
    with pytest.raises(AttributeValueError, match=r"expected one of .*getitem.*; got 'gettiem'"):
        _core.install(gettiem=len)


def test_install_checks_what_it_is_given():
    with pytest.raises(TypeError, match="install expected a callable as 'flatten'; got 3"):
        _core.install(flatten=3)
    with pytest.raises(TypeError, match="install expected a class as 'abstract_type'"):
        _core.install(abstract_type=len)


def test_dimensions_are_read_in_scopes_that_are_there():
    with pytest.raises(AttributeValueError, match="the number of a scope; got 4000000000"):
        _core.dim_parse("n", 4_000_000_000)


# Objects that are being destroyed are not handed out.


def test_live_arrays_of_a_finalizer_leave_the_dying_array_out():
    seen = []
    x = wnp.ones(5)
    before = len(weft.live_arrays())
    weakref.finalize(x, lambda: seen.append((weft.live_arrays(), weft.memory_stats())))
    del x
    assert len(seen[0][0]) == before - 1
    assert all(repr(a) for a in seen[0][0])


def test_a_dying_var_is_not_handed_out():
    jaxpr = weft.make_jaxpr(lambda x: x + 1)(1.0).jaxpr
    seen = []
    weakref.finalize(jaxpr.invars[0], lambda: seen.append(jaxpr.invars[0]))
    first = seen[0]
    assert first is jaxpr.invars[0]
    assert str(first) == "a"


# A crash takes the process along, so these calls are made in others.


@pytest.mark.parametrize("seed", [1, 2])
def test_no_call_of_the_module_kills_the_process(seed):
    script = SUPPORT / "core_calls.py"
    command = [sys.executable, str(script), str(seed), "3000"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    last = "\n".join(done.stderr.splitlines()[-40:])
    assert done.returncode == 0, last
    assert "SystemError" not in done.stdout


def test_what_is_asked_of_a_deleted_array():
    x = weft.numpy.ones(3)
    x.delete()
    assert not x.is_ready() and "<deleted>" in repr(x)
    for text in (str, format):
        with pytest.raises(weft.errors.DeletedArrayError):
            text(x)
    for method in ("unsafe_buffer_pointer", "on_device_size_in_bytes", "__dlpack__", "copy"):
        with pytest.raises(weft.errors.DeletedArrayError):
            getattr(x, method)()


@pytest.mark.parametrize("foreign", [np.ones(3), 3, None, weft.ShapeDtypeStruct((2,), np.float32)])
@pytest.mark.parametrize("method", ["copy", "__copy__", "__deepcopy__", "__dlpack__"])
def test_methods_of_arrays_refuse_other_objects(method, foreign):
    with pytest.raises((TypeError, AttributeError)):
        method = getattr(weft.Array, method)
        method(foreign, *([{}] if method is weft.Array.__deepcopy__ else []))


@pytest.mark.parametrize(
    "call",
    [
        lambda g, t: _core.call_graph(g, (1.0,), ()),
        lambda g, t: _core.call_graph(g, [1.0], None),
        lambda g, t: _core.call_graph(g, [1.0, 2.0], ()),
        lambda g, t: _core.call_graph(g, [np.ones((7, 7), np.float32)], ()),
        lambda g, t: _core.bind_graphs("cond", None, ()),
        lambda g, t: _core.bind_graphs("sin", [1.0], ()),
        lambda g, t: _core.bind_graphs("sin", [1.0], (False, False)),
        lambda g, t: _core.checkpoint(abs, "f", (1.0,), {}, (1,), str, None, True),
        lambda g, t: _core.checkpoint(abs, "f", (1.0,), {}, (0,), str, g, True),
        lambda g, t: _core.call_with_rule("custom_jvp_call", abs, "f", (1.0,), (1,), str, str),
        lambda g, t: _core.jacobian(abs, "f", (1.0,), {}, (1,), str, *[False] * 4),
        lambda g, t: _core.regions((g, [], None), []),
        lambda g, t: _core.regions([g], []),
        lambda g, t: _core.regions([(g, [1.0, 2.0, 3.0], None)], []),
        lambda g, t: _core.regions([(g,)], []),
        lambda g, t: _core.regions([(g, [], [1.0])], []),
        lambda g, t: _core.regions([(g, [], None)], [1.0]),
        lambda g, t: _core.freeze(t),
        lambda g, t: _core.set_refs([t], [1.0]),
        lambda g, t: _core.update_ref("set", 1.0, ..., 2.0),
        lambda g, t: _core.trace_body(lambda xs: xs, [None], "f", None, ""),
        lambda g, t: _core.check_leaves((1.0,), str),
        lambda g, t: _core.check_leaves([object()], None),
        lambda g, t: _core.gradient(abs, "f", (1.0,), {}, (1,), str, False, False, False),
        lambda g, t: _core.gradient(abs, "f", (1.0,), {}, ("x",), str, False, False, False),
        lambda g, t: _core.gradient(abs, "f", [1.0], {}, (0,), str, False, False, False),
        lambda g, t: _core.gradient(3, "f", (1.0,), {}, (0,), str, False, False, False),
        lambda g, t: _core.jvp(abs, "f", (1.0,), [1.0], str, False),
        lambda g, t: _core.jvp(abs, "f", (1.0,), (1.0, 2.0), str, False),
        lambda g, t: _core.linearize(abs, "f", 1.0, str, False, False),
        lambda g, t: _core.linearize(abs, "f", (object(),), None, False, False),
        lambda g, t: _core.linearize(abs, "f", (1.0,), str, False, False)[1].push([1.0]),
        lambda g, t: _core.linearize(abs, "f", (1.0,), str, False, True)[1].pull((1.0,)),
        lambda g, t: _core.linear_transpose(abs, "f", (1,), str),
        lambda g, t: _core.vmap(abs, "f", (1.0,), {}, 0, 0, None, str),
        lambda g, t: _core.vmap(abs, "f", (np.ones(3),), {}, 0, 2, None, str),
        lambda g, t: _core.vmap(abs, "f", (np.ones(3),), {}, 2**70, 0, None, str),
        lambda g, t: _core.astype(1.5, "float32", np.ones(2)),  # whose truth is ambiguous
        lambda g, t: _core.copy_array(np.ones(3)),
        lambda g, t: _core.commit(np.ones(3), _core.current_placement()),
        lambda g, t: _core.put(
            np.ones(3, np.float32), False, _core.make_mesh(("x",), (2,), (0,), ()), False
        ),
        lambda g, t: _core.wrap_buffer(
            object(), (3,), np.dtype("f4"), False, _core.current_placement(), False
        ),
        lambda g, t: _core.set_multiple_results(_core.primitive("add")._op, True),
        lambda g, t: t.compile(0, None, None),
        lambda g, t: _core.JitFunction(abs, "f", (), _core.Traces()),
        lambda g, t: _core.JitFunction(abs, "f", JitOptions(), 1),
        lambda g, t: _core.JitFunction(abs, "f", JitOptions(static_argnums=[0]), _core.Traces()),
        lambda g, t: _core.JitFunction(abs, "f", JitOptions(kernels=3), _core.Traces()),
        lambda g, t: _core.JitFunction(abs, "f", JitOptions(device=1 << 20), _core.Traces()),
    ],
)
def test_entry_points_check_what_they_are_given(call):
    traced = _core.trace(weft.jit(lambda x: x + 1), (1.0,), {})
    with pytest.raises((TypeError, ValueError, AttributeError)):
        call(traced.graph, traced)
