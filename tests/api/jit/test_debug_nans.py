"""debug_nans and debug_infs: which op, line, pass and operands the error names."""

import re

import numpy as np
import pytest

import weft
import weft.numpy as wnp
import weft.scipy.special
from weft import lax

MINUS = np.array([1.0, -1.0, 2.0], np.float32)
ZEROS = np.zeros(2, np.float32)


@pytest.fixture(autouse=True)
def on():
    with weft.debug_nans(True):
        yield


def message_of(f, *args):
    with pytest.raises(FloatingPointError) as caught:
        weft.block_until_ready(f(*args))
    return str(caught.value)


def logs(x):
    y = wnp.log(x)  # the line
    return y * 2


def line_of(text):
    with open(__file__) as file:
        return next(i for i, line in enumerate(file, 1) if line.rstrip().endswith(text))


def body_logs(c, x):
    return c + lax.log(x), c


def while_logs(x):
    return lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, lax.log(s[1] - 2)), (0, x))


@weft.custom_vjp
def bad_backward(x):
    return x


bad_backward.defvjp(lambda x: (x, x), lambda x, ct: (lax.log(x) * ct,))


WEIGHTS = {"in": np.ones((3, 4), np.float32), "out": np.ones((4, 2), np.float32)}


def network(weights, x):
    chances = weft.nn.softmax(weft.nn.relu(x @ weights["in"]) @ weights["out"])
    return -wnp.mean(wnp.log(chances - chances))


def test_names_op_line_pass_and_operands():
    message = message_of(weft.jit(logs), MINUS)
    assert message.startswith("invalid value (nan) encountered in log\n")
    place = re.escape(f"test_debug_nans.py:{line_of('# the line')} (logs)")
    assert re.search(rf"\n  at .*{place}, in the forward pass\n", message)
    assert "\n  operand 0: float32[3] = [ 1. -1. 2.]" in message
    assert "\n  result: float32[3] = [0. " in message and "nan" in message


def test_backward_pass():
    f = lambda x: wnp.sum(wnp.sqrt(x * x) * 0.0)  # its derivative
    message = message_of(weft.jit(weft.grad(f)), ZEROS)
    place = f"test_debug_nans.py:{line_of('# its derivative')}"
    assert "encountered in mul" in message
    assert f"{place} (<lambda>), in the backward pass, in the derivative of this line" in message
    message = message_of(weft.jit(lambda x: weft.jvp(lax.sqrt, (x,), (x,))[1]), ZEROS)
    assert "in the derivative of this line" in message


@pytest.mark.parametrize(
    ("f", "args", "op"),
    [
        (lambda x: lax.scan(body_logs, np.float32(0), x), (MINUS,), "log"),
        (while_logs, (np.float32(1),), "log"),
        (lambda p, x: lax.cond(p, lax.log, lax.neg, x), (True, -MINUS), "log"),
        (weft.vmap(logs), (MINUS,), "log"),
        (weft.nn.softmax, (MINUS * np.float32(np.inf),), "sub"),
        (lambda x: weft.jit(logs)(x) + 1, (MINUS,), "log"),
        (weft.checkpoint(logs), (MINUS,), "log"),
        (lambda x: lax.complex(x, x) / lax.complex(x, x), (ZEROS,), "div"),
        (lambda x: lax.div(x, x), (ZEROS.astype("bfloat16"),), "div"),
        (weft.grad(bad_backward), (np.float32(-1),), "log"),
        (lambda x: lax.switch(1, [lax.neg, logs], x), (-MINUS,), "log"),
        (lambda x: weft.grad(network)(WEIGHTS, x), (np.ones((5, 3), np.float32),), "add_any"),
        (weft.grad(lambda x: (x * wnp.log(x)).sum()), (ZEROS,), "mul"),
        (weft.grad(wnp.linalg.norm), (ZEROS,), "mul"),
        (weft.hessian(lambda x: wnp.sqrt(x).sum()), (ZEROS,), "mul"),
        (wnp.linalg.cholesky, (-np.eye(2, dtype=np.float32),), "cholesky"),
        (wnp.linalg.solve, (np.zeros((2, 2), np.float32), ZEROS), "custom_linear_solve"),
        (wnp.cumsum, (np.float32([np.inf, -np.inf]),), "cumsum"),
        (wnp.mean, (ZEROS[:0],), "div"),
        (weft.linearize(lambda x: x * 1, np.float32(1))[1], (np.float32(np.nan),), "a result"),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_everywhere(f, args, op):
    for wrap in (weft.jit, lambda f: f):
        assert f"encountered in {op}" in message_of(wrap(f), *args)


def test_first_iteration_that_fails():
    message = message_of(weft.jit(lambda x: lax.scan(body_logs, np.float32(0), x)), -MINUS)
    assert "operand 0: float32[] = -1." in message


def test_eager_and_unjitted_derivatives():
    assert "encountered in log" in message_of(lambda x: wnp.where(x > 0, wnp.log(x), 0), -MINUS)
    # The gradient is a number, what the function computes is not.
    assert "encountered in log" in message_of(weft.grad(wnp.log), np.float32(-1))


def test_no_error_where_no_result_is_bad():
    f = weft.jit(lambda x: wnp.where(x > 0, wnp.log(x), 0))
    np.testing.assert_allclose(f(MINUS), [0, 0, np.log(2)], rtol=1e-6)
    assert not weft.jit(lambda x: wnp.log(x) > 0)(np.float32(-1))
    assert weft.jit(lambda x: (wnp.log(x), x)[1])(np.float32(-1)) == -1
    slope = weft.grad(lambda x: wnp.where(x > 0, x * wnp.log(x), 0).sum())
    np.testing.assert_array_equal(weft.jit(slope)(ZEROS), ZEROS)
    np.testing.assert_array_equal(slope(ZEROS), ZEROS)
    with weft.debug_nans(False):
        assert np.isnan(weft.jit(logs)(MINUS)[1])


def test_nan_of_an_argument():
    message = message_of(weft.jit(lambda x: x + 1), np.float32(np.nan))
    assert "no operation made it" in message


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (lambda: wnp.array([1.0, np.nan]), "data of the host"),
        (lambda: wnp.asarray(np.float32([[np.nan]])), "data of the host"),
        (lambda: wnp.full(3, np.nan), ""),
        (lambda: wnp.float16(np.nan), "data of the host"),
        (lambda: wnp.array([1j * np.nan]), "data of the host"),
        (lambda: wnp.add(np.float32([1, np.nan]), 1), ""),
        (
            lambda: weft.pure_callback(lambda: np.float32("nan"), np.zeros((), np.float32)),
            "pure_callback of '<lambda>'",
        ),
    ],
)
def test_what_is_made_outside_of_programs(make, what):
    message = message_of(make)
    assert what in message and "test_debug_nans.py" in message and "nan" in message
    with weft.debug_nans(False):
        assert np.isnan(np.asarray(make(), complex)).any()


def test_numbers_of_the_host_are_let_through():
    np.testing.assert_array_equal(wnp.linspace(0.0, 3.0, 1), [0])
    assert wnp.array([1, 2]).sum() == 3
    assert np.isinf(wnp.float16(1e6))
    with weft.debug_infs(True), pytest.raises(FloatingPointError, match="inf"):
        wnp.float16(1e6)


def test_large_operands_are_summed_up():
    x = np.arange(64.0, dtype=np.float32).reshape(8, 8) - 3
    message = message_of(weft.jit(wnp.sqrt), x)
    assert "operand 0: float32[8,8], from -3 to 60" in message
    assert "nan at [0, 0] (3 of 64)" in message


def test_infs():
    with weft.debug_nans(False), weft.debug_infs(True):
        message = message_of(weft.jit(lambda x: 1 / x), np.float32(0))
        assert message.startswith("invalid value (inf) encountered in div")
        assert np.isnan(weft.jit(wnp.log)(np.float32(-1)))


def test_donated_arguments_and_callbacks():
    seen = []
    f = weft.jit(
        lambda x: (weft.debug.callback(lambda x: seen.append(1), x), wnp.log(x))[1],
        donate_argnums=0,
    )
    x = wnp.asarray(MINUS)
    assert "encountered in log" in message_of(f, x)
    weft.effects_barrier()
    assert len(seen) == 1 and x[0] == 1


GRADIENTS = {
    "softplus": weft.nn.softplus,
    "mish": weft.nn.mish,
    "log_sigmoid": weft.nn.log_sigmoid,
    "logaddexp": lambda x: wnp.logaddexp(x, 1.0),
    "expi": lambda x: weft.scipy.special.expi(x * x),
    "median": lambda x: wnp.broadcast_to(wnp.median(x), x.shape),
    "masked log": lambda x: wnp.where(x > 0, wnp.log(wnp.where(x > 0, x, 1)), 0),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_sound_derivatives_however_often_they_are_taken(name):
    f = GRADIENTS[name]
    slopes = weft.vmap(weft.grad(lambda x: f(x[None])[0])) if name != "median" else None
    for size in range(1, 6):  # from the fourth shape on such a place would run op by op
        x = np.linspace(-2, 1, size, dtype=np.float32) + np.float32(0.3)
        for made in (
            weft.grad(lambda x: f(x).sum())(x),
            weft.vjp(lambda x: f(x).sum(), x)[1](np.float32(1))[0],
            weft.jvp(f, (x,), (x,))[1],
            *([slopes(x)] if slopes else []),
        ):
            assert np.isfinite(made).all()


def test_what_a_program_discards_is_no_error_from_the_fourth_shape_on():
    for size in range(1, 6):
        x = np.full(size, -1, np.float32)
        y, t = weft.jvp(lambda x: wnp.where(x > 0, wnp.log(x) * 2, 1), (x,), (x,))
        assert y.tolist() == [1] * size and t.tolist() == [0] * size


def test_values_that_decide_where_the_program_goes():
    def f(x):
        y = wnp.nan_to_num(wnp.log(x))  # the NaN ends here
        return y * 2 if y > -1 else y

    assert weft.linearize(f, np.float32(-1))[0] == 0


@pytest.mark.parametrize(
    "f",
    [
        lambda: wnp.median(wnp.arange(5.0)),
        lambda: wnp.quantile(wnp.arange(5.0), 0.5),
        lambda: wnp.nanmedian(wnp.float32([1, 2, 3])),
        lambda: wnp.logaddexp(1.0, 2.0),
        lambda: weft.scipy.special.xlogy(0.0, 0.0),
        lambda: weft.nn.logsumexp(-wnp.arange(4.0)),
        lambda: weft.grad(lambda x: weft.nn.softplus(x).sum())(wnp.arange(4.0)),
    ],
)
def test_functions_of_the_library_stay_whole_under_disable_jit(f):
    want = f()
    with weft.disable_jit():
        np.testing.assert_array_equal(f(), want)


def test_config():
    before = weft.config.jax_debug_nans
    with weft.debug_nans(False):
        assert weft.config.weft_debug_nans is False
        assert before is True
    weft.config.update("jax_debug_infs", True)
    try:
        with pytest.raises(FloatingPointError):
            lax.exp(np.float32(1000))
    finally:
        weft.config.update("jax_debug_infs", False)
    with pytest.raises(TypeError, match="expected a bool"):
        weft.debug_nans("yes")
