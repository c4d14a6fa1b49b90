"""Programs whose compilation users wait for: functions of a framework's top package (the modules
`weft` and `jax` have the same names) that return a function and its arguments.
"""

import functools

import numpy as np


def normal(fw, *shape, scale=None, seed=0):
    values = np.random.default_rng(seed).standard_normal(shape)
    scale = 1 / np.sqrt(shape[0]) if scale is None else scale
    return fw.numpy.asarray((values * scale).astype("f"))


def gpt_step(fw, layers=4, width=64, heads=4, length=32):
    """Loss and gradient of a language model of a few layers, with dropout by random keys."""
    jnp, nn, tree = fw.numpy, fw.nn, fw.tree_util
    ones, zeros = jnp.asarray(np.ones(width, "f")), jnp.asarray(np.zeros(width, "f"))
    layer = {
        "norms": ((ones, zeros), (ones, zeros)),
        "qkv": normal(fw, width, 3 * width),
        "out": normal(fw, width, width),
        "up": normal(fw, width, 4 * width),
        "down": normal(fw, 4 * width, width),
    }
    params = {"embed": normal(fw, 128, width), "layers": [dict(layer) for _ in range(layers)]}
    tokens = jnp.asarray(np.random.default_rng(0).integers(0, 128, (4, length + 1)).astype("i4"))
    mask = np.tril(np.ones((length, length), bool))

    def norm(p, x):
        centred = x - x.mean(-1, keepdims=True)
        return centred / jnp.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * p[0] + p[1]

    def dropout(key, x):
        return jnp.where(fw.random.bernoulli(key, 0.9, x.shape), x / 0.9, 0)

    def attend(p, x):
        split = x.shape[:2] + (3, heads, width // heads)
        q, k, v = jnp.moveaxis((x @ p["qkv"]).reshape(split), 2, 0)
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / np.float32(np.sqrt(width // heads))
        weights = nn.softmax(jnp.where(mask, scores, -1e9))
        return jnp.einsum("bhqk,bkhd->bqhd", weights, v).reshape(x.shape) @ p["out"]

    def loss(params, key, tokens):
        x = params["embed"][tokens[:, :-1]]
        for p in params["layers"]:
            key, first, second = fw.random.split(key, 3)
            x = x + dropout(first, attend(p, norm(p["norms"][0], x)))
            hidden = nn.gelu(norm(p["norms"][1], x) @ p["up"])
            x = x + dropout(second, hidden @ p["down"])
        scores = nn.log_softmax(x @ params["embed"].T)
        return -jnp.take_along_axis(scores, tokens[:, 1:, None], -1).mean()

    def step(params, key, tokens):
        value, slopes = fw.value_and_grad(loss)(params, key, tokens)
        return tree.tree_map(lambda p, d: p - 0.01 * d, params, slopes), value

    return step, (params, fw.random.PRNGKey(0), tokens)


def rotary_transformer(fw, layers=24, width=64, heads=4, length=32):
    """The forward pass of layers that rotate by the angles of a table, which they close over."""
    jnp, nn = fw.numpy, fw.nn
    half = width // heads // 2
    angles = jnp.asarray(np.outer(np.arange(length), 10000.0 ** -(np.arange(half) / half)), "f")
    params = [
        (
            normal(fw, width, 3 * width, seed=i),
            normal(fw, width, 2 * width),
            normal(fw, 2 * width, width),
        )
        for i in range(layers)
    ]

    def rotate(x):
        a, b = x[..., :half], x[..., half:]
        c, s = jnp.cos(angles)[:, None], jnp.sin(angles)[:, None]
        return jnp.concatenate([a * c - b * s, a * s + b * c], -1)

    def model(params, x):
        for qkv, up, down in params:
            z = x / jnp.sqrt((x**2).mean(-1, keepdims=True) + 1e-5)
            q, k, v = jnp.split((z @ qkv).reshape(*x.shape[:2], 3, heads, 2 * half), 3, 2)
            q, k, v = rotate(q[:, :, 0]), rotate(k[:, :, 0]), v[:, :, 0]
            weights = nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", q, k) / np.float32(2 * half) ** 0.5)
            x = x + jnp.einsum("bhqk,bkhd->bqhd", weights, v).reshape(x.shape)
            x = x + nn.silu(x @ up) @ down
        return x

    return model, (params, normal(fw, 4, length, width))


def deep_mlp(fw, layers=60):
    """The gradient of sixty dense layers written as a loop of Python."""
    jnp = fw.numpy
    params = [(normal(fw, 64, 64, seed=i), normal(fw, 64, seed=i)) for i in range(layers)]

    def loss(params, x):
        for w, b in params:
            x = x + jnp.tanh(x @ w + b)
        return (x**2).mean()

    return fw.value_and_grad(loss), (params, normal(fw, 32, 64))


def transform(fw, turn, shift):
    """A 4x4 matrix of a turn about the z axis and a shift."""
    jnp = fw.numpy
    c, s = jnp.cos(turn), jnp.sin(turn)
    zero, one = jnp.zeros_like(turn), jnp.ones_like(turn)
    rows = [
        [c, -s, zero, shift],
        [s, c, zero, zero],
        [zero, zero, one, zero],
        [zero, zero, zero, one],
    ]
    return jnp.stack([jnp.stack(row) for row in rows])


def transform_chain(fw, links=100):
    """Hundreds of small matrices, each multiplied with what came before, and the gradient."""
    jnp = fw.numpy

    def reach(turns, shifts):
        pose = jnp.eye(4)
        for i in range(links):
            pose = pose @ transform(fw, turns[i], shifts[i])
        return (pose[:3, 3] ** 2).sum()

    return fw.grad(reach, argnums=(0, 1)), (normal(fw, links, scale=1), normal(fw, links, scale=1))


def robot_arm_jacobian(fw, joints=24):
    """The forward-mode Jacobian of the pose of an arm, of a batch of positions."""
    jnp = fw.numpy

    def pose(turns):
        at = jnp.eye(4)
        for i in range(joints):
            at = at @ transform(fw, turns[i], jnp.float32(0.1 * (i + 1)))
        return at[:3, 3]

    return fw.vmap(fw.jacfwd(pose)), (normal(fw, 16, joints, scale=1),)


def scalar_carries(fw, count=60):
    """The gradient of a loop that carries sixty numbers."""
    jnp, lax = fw.numpy, fw.lax

    def run(start):
        def body(carry, t):
            moved = [
                0.9 * x + 0.1 * jnp.sin(y * t)
                for x, y in zip(carry, carry[1:] + carry[:1], strict=True)
            ]
            return moved, moved[0] * moved[1]

        last, out = lax.scan(
            body, [start[i] for i in range(count)], jnp.arange(50, dtype="float32")
        )
        return out.sum() + sum(last)

    return fw.grad(run), (normal(fw, count, scale=1),)


def ode_gradient(fw):
    """The gradient through twenty steps of Runge and Kutta's method, in a loop of Python."""
    jnp = fw.numpy
    first, second = normal(fw, 8, 32), normal(fw, 32, 8)

    def loss(params, x):
        slope = lambda x: jnp.tanh(x @ params[0]) @ params[1]
        for _ in range(20):
            a = slope(x)
            b = slope(x + 0.05 * a)
            c = slope(x + 0.05 * b)
            d = slope(x + 0.1 * c)
            x = x + 0.1 / 6 * (a + 2 * b + 2 * c + d)
        return (x**2).sum()

    return fw.grad(loss), ((first, second), normal(fw, 16, 8))


def newton(fw, steps=12):
    """Steps of Newton's method, each with the Hessian and a solved system, in a loop of Python."""
    jnp = fw.numpy

    def objective(x):
        return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()

    def run(x):
        for _ in range(steps):
            x = x - jnp.linalg.solve(fw.hessian(objective)(x), fw.grad(objective)(x))
        return x

    return run, (normal(fw, 8, scale=0.1),)


def where_chain(fw, cases=200):
    """A table of cases, written as one `where` in another."""
    jnp = fw.numpy

    def look_up(x):
        y = jnp.zeros_like(x)
        for i in range(cases):
            y = jnp.where((x > 0.01 * i) & (x <= 0.01 * (i + 1)), jnp.sin(x * i) + y, y)
        return y

    return fw.vmap(fw.grad(lambda x: look_up(x).sum())), (normal(fw, 64, 32, scale=1),)


def bundle_adjustment(fw, cameras=10, points=100, seen=400):
    """Residuals of points seen by cameras, and their derivatives by both, for each observation."""
    jnp = fw.numpy
    rng = np.random.default_rng(0)
    by = rng.integers(0, cameras, seen).astype("i4"), rng.integers(0, points, seen).astype("i4")

    def rotate(axis, x):
        angle = jnp.sqrt((axis**2).sum() + 1e-8)
        k = axis / angle
        c, s = jnp.cos(angle), jnp.sin(angle)
        return x * c + jnp.cross(k, x) * s + k * (k @ x) * (1 - c)

    def residual(camera, point, feature):
        at = rotate(camera[:3], point) + camera[3:6]
        flat = at[:2] / at[2]
        r = (flat**2).sum()
        return flat * (1 + camera[7] * r + camera[8] * r**2) * camera[6] - feature

    def both(camera_table, point_table, features):
        each = camera_table[by[0]], point_table[by[1]], features
        slopes = fw.vmap(fw.jacrev(residual, argnums=(0, 1)))(*each)
        return fw.vmap(residual)(*each), slopes

    tables = normal(fw, cameras, 9, scale=0.1), normal(fw, points, 3, scale=1)
    return both, (*tables, normal(fw, seen, 2, scale=1))


def per_example_hessians(fw):
    """The Hessian by the weights of a small network, for each example."""
    jnp = fw.numpy
    weights = normal(fw, 6, 8), normal(fw, 8, 8), normal(fw, 8, 1)

    def loss(weights, x):
        for w in weights[:-1]:
            x = jnp.tanh(x @ w)
        return ((x @ weights[-1]) ** 2).sum()

    return fw.vmap(fw.hessian(loss), in_axes=(None, 0)), (weights, normal(fw, 16, 6, scale=1))


def triangular_mixture(fw, n=500, d=8, k=16):
    """The gradient of a mixture of Gaussians by factors that are filled in by index."""
    jnp, nn = fw.numpy, fw.nn
    rows, columns = np.tril_indices(d, -1)
    x = normal(fw, n, d, scale=1)

    def loss(logits, means, diagonals, lower):
        factors = jnp.zeros((k, d, d)).at[:, rows, columns].set(lower)
        factors = factors.at[:, np.arange(d), np.arange(d)].set(jnp.exp(diagonals))
        z = jnp.einsum("kij,nkj->nki", jnp.tril(factors), x[:, None] - means)
        each = nn.log_softmax(logits) + diagonals.sum(-1) - 0.5 * (z**2).sum(-1)
        return -nn.logsumexp(each, axis=1).mean()

    sizes = (k,), (k, d), (k, d), (k, d * (d - 1) // 2)
    params = [normal(fw, *size, scale=0.1, seed=i) for i, size in enumerate(sizes)]
    return fw.value_and_grad(loss, argnums=(0, 1, 2, 3)), tuple(params)


# Programs that close over arrays: what depends on these alone is no work for every call.


def graph_network(fw, nodes=2000, edges=10000, width=16):
    """The gradient of three rounds of messages along edges that the function closes over."""
    jnp = fw.numpy
    rng = np.random.default_rng(0)
    senders, receivers = (jnp.asarray(rng.integers(0, nodes, edges).astype("i4")) for _ in range(2))

    def loss(weights, x):
        for w in weights:
            sent = jnp.tanh(jnp.take(x, senders, axis=0) @ w)
            x = x + jnp.zeros_like(x).at[receivers].add(sent)
        return (x**2).mean()

    weights = [normal(fw, width, width, seed=i) for i in range(3)]
    return fw.value_and_grad(loss), (weights, normal(fw, nodes, width))


def masked_attention(fw, length=256, width=64):
    """Four steps of attention with a mask and a bias that the function closes over."""
    jnp, nn = fw.numpy, fw.nn
    mask = jnp.asarray(np.tril(np.ones((length, length), bool)))
    distance = normal(fw, length, length, scale=1)

    def attend(q, k):
        for _ in range(4):
            scores = jnp.where(mask, q @ k.T / np.float32(width**0.5), -1e9)
            q = nn.softmax(scores + jnp.exp(-(distance**2))) @ q
        return q

    return attend, (normal(fw, length, width), normal(fw, length, width, seed=1))


def fixed_noise(fw, rows=500, columns=200):
    """Random numbers of a fixed key, by a table of cosines: the same at every call."""
    jnp = fw.numpy

    def add(x):
        waves = jnp.cos(jnp.arange(float(rows))[:, None] * jnp.arange(float(columns)))
        return x + waves * fw.random.normal(fw.random.PRNGKey(0), x.shape)

    return add, (normal(fw, rows, columns),)


def gru_unrolled(fw, layers=4, d=64, t=20):
    """Loss and gradient of layers of gated units: scans over time, one after the other."""
    jnp, nn, lax = fw.numpy, fw.nn, fw.lax
    params = [
        {
            "w": normal(fw, d, 3 * d, seed=i),
            "u": normal(fw, d, 3 * d, seed=i + 9),
            "b": jnp.zeros(3 * d),
        }
        for i in range(layers)
    ]
    xs = normal(fw, t, 8, d, scale=1.0)

    def cell(p, h, x):
        a = x @ p["w"] + p["b"]
        az, ar, an = jnp.split(a, 3, axis=-1)
        uz, ur, un = jnp.split(p["u"], 3, axis=-1)
        z = nn.sigmoid(az + h @ uz)
        r = nn.sigmoid(ar + h @ ur)
        n = jnp.tanh(an + (r * h) @ un)
        h = (1 - z) * n + z * h
        return h, h

    def loss(params, xs):
        for p in params:
            _, xs = lax.scan(functools.partial(cell, p), jnp.zeros((8, d)), xs)
        return jnp.mean(xs**2)

    return fw.value_and_grad(loss), (params, xs)


def mixture_of_experts(fw, layers=3, d=64, experts=8, n=128):
    """Loss and gradient of layers that send each token to two of their experts."""
    jnp, nn, lax = fw.numpy, fw.nn, fw.lax
    params = [
        {
            "gate": normal(fw, d, experts, seed=i),
            "up": normal(fw, experts, d, 2 * d, scale=0.1, seed=i + 10),
            "down": normal(fw, experts, 2 * d, d, scale=0.1, seed=i + 20),
        }
        for i in range(layers)
    ]
    x = normal(fw, n, d, scale=1.0)
    cap = 2 * n // experts

    def moe(p, x):
        probs = nn.softmax(x @ p["gate"])
        w, idx = lax.top_k(probs, 2)
        w = w / w.sum(-1, keepdims=True)
        onehot = nn.one_hot(idx, experts)
        pos = jnp.cumsum(onehot.reshape(-1, experts), axis=0).reshape(n, 2, experts) - 1
        keep = (pos < cap) * onehot
        slot = nn.one_hot((pos * onehot).sum(-1).astype("int32"), cap)
        dispatch = jnp.einsum("nke,nkc->nec", keep, slot)
        combine = jnp.einsum("nke,nkc,nk->nec", keep, slot, w)
        h = jnp.einsum("nec,nd->ecd", dispatch, x)
        h = nn.gelu(jnp.einsum("ecd,edf->ecf", h, p["up"]))
        h = jnp.einsum("ecf,efd->ecd", h, p["down"])
        balance = experts * jnp.sum(probs.mean(0) * onehot[:, 0].mean(0))
        return x + jnp.einsum("nec,ecd->nd", combine, h), balance

    def loss(params, x):
        aux = 0.0
        for p in params:
            x, b = moe(p, x)
            aux = aux + b
        return jnp.mean(x**2) + 0.01 * aux

    return fw.value_and_grad(loss), (params, x)


def attention_dropout(fw, layers=3, d=64, h=4, t=48, b=4):
    """Loss and gradient of attention over sequences of several lengths, with dropout."""
    jnp, nn, lax = fw.numpy, fw.nn, fw.lax
    params = [
        {
            "q": normal(fw, d, d, seed=i),
            "k": normal(fw, d, d, seed=i + 10),
            "v": normal(fw, d, d, seed=i + 20),
            "o": normal(fw, d, d, seed=i + 30),
            "g": jnp.ones(d),
        }
        for i in range(layers)
    ]
    x = normal(fw, b, t, d, scale=1.0)
    lengths = jnp.asarray(np.array([10, 48, 33, 20], np.int32))
    key = fw.random.PRNGKey(0)

    def drop(key, x, p=0.1):
        return jnp.where(fw.random.bernoulli(key, 1 - p, x.shape), x / (1 - p), 0)

    def loss(params, x, lengths, key):
        mask = jnp.arange(t)[None] < lengths[:, None]
        causal = jnp.tril(jnp.ones((t, t), bool))
        m = mask[:, None, None, :] & causal
        for p in params:
            key, k1, k2 = fw.random.split(key, 3)
            y = x * lax.rsqrt(jnp.mean(x**2, -1, keepdims=True) + 1e-6) * p["g"]
            q, k, v = ((y @ p[n]).reshape(b, t, h, d // h) for n in "qkv")
            s = jnp.einsum("bthd,bshd->bhts", q, k) / np.float32((d // h) ** 0.5)
            s = jnp.where(m, s, jnp.finfo("float32").min)
            a = drop(k1, nn.softmax(s))
            o = jnp.einsum("bhts,bshd->bthd", a, v).reshape(b, t, d)
            x = x + drop(k2, o @ p["o"])
        return jnp.sum(jnp.where(mask[..., None], x**2, 0)) / mask.sum()

    return fw.value_and_grad(loss), (params, x, lengths, key)


def cumsums(fw, n=64, t=256):
    """Loss and gradient of running sums, products, maxima and logsumexps of each other."""
    jnp, lax = fw.numpy, fw.lax

    def loss(x, w):
        y = jnp.cumsum(x, 1)
        y = y - jnp.cumsum(y * w, 0) / n
        z = lax.cummax(y, axis=1)
        y = jnp.cumsum(jnp.tanh(y - z), 1) / t
        p = jnp.cumprod(1 - 0.01 * jnp.tanh(y), 1)
        y = jnp.cumsum(y[:, ::-1] * p, 1)
        return jnp.mean(lax.cumlogsumexp(y, axis=1))

    return fw.value_and_grad(loss), (
        normal(fw, n, t, scale=1.0),
        normal(fw, n, t, scale=1.0, seed=1),
    )


PROGRAMS = {
    f.__name__: f
    for f in (
        gpt_step,
        rotary_transformer,
        deep_mlp,
        transform_chain,
        robot_arm_jacobian,
        scalar_carries,
        ode_gradient,
        newton,
        where_chain,
        bundle_adjustment,
        per_example_hessians,
        triangular_mixture,
        graph_network,
        masked_attention,
        fixed_noise,
        gru_unrolled,
        mixture_of_experts,
        attention_dropout,
        cumsums,
    )
}
