"""What type checkers know of weft: pyright checks this file, and a test runs it.

Each `assert_type` says what type a checker finds; test_types.py runs the same lines and checks the
values. Lines that pyright has to refuse say so.
"""

from typing import Any, assert_type

import numpy as np

import weft
import weft.numpy as wnp
from weft import Array, lax, nn, random
from weft.typing import ArrayLike

Params = dict[str, Array]


def arrays() -> None:
    x = wnp.arange(6.0).reshape(2, 3)
    assert_type(x, Array)
    assert_type(x + 1, Array)
    assert_type(1 - x, Array)
    assert_type(x < 2, Array)
    assert_type(x == 2, Array)
    assert_type(x @ x.T, Array)
    assert_type(x[0, ::2], Array)
    assert_type(x.at[0].set(1.0), Array)
    assert_type(x.sum(axis=0, keepdims=True), Array)
    assert_type(x.shape, tuple[int, ...])
    assert_type(x.ndim, int)
    assert_type(x.dtype, np.dtype[Any])
    assert_type(float(x[0, 0]), float)
    assert_type(len(x), int)
    assert_type([*x], list[Array])
    assert_type(x.weak_type, bool)
    assert_type(x.device, weft.Device | weft.sharding.Sharding)


def functions() -> None:
    x = wnp.ones((2, 3), wnp.float32)
    assert_type(wnp.sum(x, axis=(0, 1)), Array)
    assert_type(wnp.sin(2.0), Array)
    assert_type(wnp.add(x, 1), Array)
    assert_type(wnp.add.reduce(x), Array)
    assert_type(wnp.split(x, 2), list[Array])
    assert_type(wnp.where(x > 0, x, 0), Array)
    assert_type(wnp.where(x > 0), tuple[Array, ...])
    assert_type(wnp.shape(x), tuple[int, ...])
    assert_type(wnp.linspace(0, 1, 5), Array)
    assert_type(wnp.linspace(0, 1, 5, retstep=True), tuple[Array, Array])
    assert_type(wnp.linalg.norm(x), Array)
    assert_type(wnp.linalg.eigh(x @ x.T).eigenvalues, Array)
    assert_type(wnp.fft.fft(x), Array)
    assert_type(nn.relu(x), Array)
    assert_type(nn.one_hot(wnp.arange(3), 4), Array)
    assert_type(nn.initializers.he_normal()(random.key(0), (2, 3)), Array)
    assert_type(lax.exp(x), Array)
    assert_type(lax.top_k(x, 2), list[Array])


def keys() -> None:
    key = random.key(0)
    assert_type(key, Array)
    first, second = random.split(key)
    assert_type(first, Array)
    assert_type(random.normal(second, (2, 3)), Array)
    assert_type(random.uniform(second), Array)


def transforms() -> None:
    def loss(params: Params, x: Array, scale: float = 1.0) -> Array:
        return scale * wnp.mean((x @ params["w"]) ** 2)

    params = {"w": wnp.ones(3)}
    x = wnp.ones((2, 3))
    assert_type(weft.jit(loss)(params, x, scale=2.0), Array)
    assert_type(weft.grad(loss)(params, x), Params)
    assert_type(weft.value_and_grad(loss)(params, x), tuple[Array, Params])
    assert_type(weft.jit(weft.grad(loss))(params, x), Params)
    assert_type(weft.vmap(wnp.exp)(x), Array)
    assert_type(weft.checkpoint(loss)(params, x), Array)
    assert_type(weft.jvp(wnp.sin, (x,), (x,)), tuple[Array, Array])
    value, pull = weft.vjp(wnp.sin, x)
    assert_type(value, Array)
    pull(value)
    assert_type(weft.jit(loss).lower(params, x).as_text(), str)

    @weft.jit
    def step(params: Params, x: Array) -> tuple[Params, Array]:
        value, gradient = weft.value_and_grad(loss)(params, x)
        return {name: params[name] - 0.1 * gradient[name] for name in params}, value

    assert_type(step(params, x), tuple[Params, Array])

    @weft.jit(static_argnames="n")
    def power(x: ArrayLike, n: int) -> Array:
        return wnp.asarray(x) ** n

    assert_type(power(2.0, n=3), Array)

    def with_aux(x: Array) -> tuple[Array, Params]:
        return wnp.sum(x), {"squares": x * x}

    assert_type(weft.grad(with_aux, has_aux=True)(x), tuple[Array, Params])


def methods() -> None:
    class Model:
        def __init__(self) -> None:
            self.scale = 2.0

        @weft.jit(static_argnums=0)
        def __call__(self, x: Array) -> Array:
            return self.scale * x

    assert_type(Model()(wnp.ones(3)), Array)


def control_flow() -> None:
    x = wnp.arange(4.0)
    assert_type(lax.cond(x[0] > 0, wnp.sin, wnp.cos, x), Array)
    assert_type(lax.while_loop(lambda x: x[0] < 3, lambda x: x + 1, x), Array)

    def add(total: Array, each: Array) -> tuple[Array, Array]:
        return total + each, total

    assert_type(lax.scan(add, wnp.zeros(()), x), tuple[Array, Array])

    def more(i: int, x: Array) -> Array:
        return x + i

    assert_type(lax.fori_loop(0, 3, more, x), Array)


def mistakes() -> None:
    """Never called: what pyright has to refuse."""
    x = wnp.ones(3)
    wnp.sin([1.0, 2.0])  # pyright: ignore[reportArgumentType]
    wnp.sum(x, axes=0)  # pyright: ignore[reportCallIssue]
    random.normal(0)  # pyright: ignore[reportArgumentType]
    x[0] = 1.0  # pyright: ignore[reportIndexIssue]
    x.at[0] = 1.0  # pyright: ignore[reportIndexIssue]
    x.no_such_method()  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
    weft.jit(wnp.sin)(x, x)  # pyright: ignore[reportCallIssue]
    weft.grad(wnp.sum, argnum=1)  # pyright: ignore[reportCallIssue]


CHECKED = [arrays, functions, keys, transforms, methods, control_flow]
