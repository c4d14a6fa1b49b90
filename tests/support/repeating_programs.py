"""Random programs whose bodies repeat, as layers and steps do."""

import numpy as np

import weft
from weft import lax, numpy as jnp
from weft.tree_util import tree_map

N = 6

LAYERS = [
    lambda h, p, x: h + jnp.tanh(h @ p["w"] + p["b"]) * 0.3,
    lambda h, p, x: jnp.sin(h) @ p["w"] / 3 + x,
    lambda h, p, x: (h - h.mean(0)) / jnp.sqrt(0.5 + h.var(0)) * p["b"],
    lambda h, p, x: weft.nn.softmax(h @ p["w"], -1) + 0.1 * h.T,
    lambda h, p, x: jnp.where(h > 0, h, 0.1 * h) * p["b"] + jnp.cumsum(h, 0) / 9,
    lambda h, p, x: lax.fori_loop(0, 2, lambda i, z: jnp.cos(z + p["b"]), h),
    lambda h, p, x: jnp.sort(h, 0)[::-1] * 0.5 + jnp.tril(h @ p["w"]) * 0.2,
    lambda h, p, x: jnp.concatenate([h[1:] * 0.7, jnp.sum(h[:1] * p["b"], 0, keepdims=True)], 0),
    lambda h, p, x: lax.scan(lambda c, r: (c * 0.5 + r, jnp.sin(c) + r), h[0], h)[1] * p["b"],
    lambda h, p, x: h + p["b"] * (jnp.argmax(h, 0) % 3) + (h > 0.1) * 0.25,
    lambda h, p, x: jnp.real(jnp.exp(1j * h) * (1 + 0.5j)) @ p["w"] + jnp.imag(h * 1j) / 4,
    lambda h, p, x: weft.vmap(lambda r: jnp.tanh(p["w"] @ r) + r.max())(h) * 0.5,
    lambda h, p, x: lax.cond(h[0, 0] > 0, jnp.sin, jnp.cos, h) + lax.stop_gradient(h.mean()),
    lambda h, p, x: weft.checkpoint(lambda h, w: jnp.tanh(h @ w) - h * h / 5)(h, p["w"]),
]
# How a program is transformed, chosen by its seed.
KINDS = ("value", "grad", "step", "vmap")


def program(seed):
    """A function whose body repeats, with the derivative of a part of the seeds, and arguments."""
    rng = np.random.default_rng(seed)
    kinds = [LAYERS[i] for i in rng.choice(len(LAYERS), rng.integers(1, 4))]
    count = int(rng.integers(4, 9))
    shared, collects, skips = rng.random(3) < 0.3
    make = lambda *shape: jnp.asarray(rng.standard_normal(shape), "float32") * 0.4
    params = [{"w": make(N, N), "b": make(N) + 1} for _ in range(count)]
    x = make(N, N)

    def f(params, x):
        h, kept = jnp.cos(x), []
        for i in range(count):
            p = params[0] if shared and i % 2 else params[i]
            for layer in kinds:
                h = layer(h, p, x)
            if collects:
                kept.append(h.sum())
            if skips and i == count // 2:
                h = h + x
        return jnp.mean(h * h) + sum(kept, 0.0)

    kind = KINDS[seed % len(KINDS)]
    if kind == "value":
        return f, (params, x)
    if kind == "grad":
        return weft.grad(f, argnums=(0, 1)), (params, x)
    if kind == "vmap":
        return weft.vmap(weft.grad(f), (None, 0)), (params, jnp.stack([x, x[::-1] * 0.9]))

    def step(params, x):
        value, g = weft.value_and_grad(f)(params, x)
        return value, tree_map(lambda p, d: p - 0.1 * d / jnp.sqrt(1e-3 + d * d), params, g)

    return step, (params, x)
