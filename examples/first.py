"""A first program: fits a line to five points by gradient descent. It needs weft alone."""

import numpy as np

import weft
import weft.numpy as wnp


def loss(line: weft.Array, x: weft.Array, y: weft.Array) -> weft.Array:
    slope, start = line
    return wnp.mean((slope * x + start - y) ** 2)


@weft.jit
def step(line: weft.Array, x: weft.Array, y: weft.Array) -> tuple[weft.Array, weft.Array]:
    value, gradient = weft.value_and_grad(loss)(line, x, y)
    return line - 0.1 * gradient, value


def main() -> None:
    x = wnp.array([0.0, 1.0, 2.0, 3.0, 4.0])
    y = 2 * x + 1
    line = wnp.zeros(2)
    for i in range(100):
        line, value = step(line, x, y)
        if i % 20 == 0:
            print(f"step {i:2}  loss {value:.6f}")
    print(f"y = {line[0]:.3f} x + {line[1]:.3f}")
    assert np.allclose(line, [2.0, 1.0], atol=1e-2)


if __name__ == "__main__":
    main()
