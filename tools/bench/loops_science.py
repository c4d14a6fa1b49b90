"""Small programs in loops: neurons, mechanics, equations on grids, automata, prices. Same form as
those of compile_programs.py; `loop_programs.py` lists them.
"""

import numpy as np
from compile_programs import normal

# ---- Neurons, epidemics


def hodgkin_huxley_grad(fw, steps=1000):
    """A neuron of Hodgkin and Huxley, and the gradient of its voltage by the conductances."""
    jnp, lax = fw.numpy, fw.lax

    def linear(x):
        """x / (1 - exp(-x)), which is 1 at 0."""
        near = jnp.abs(x) < 1e-4
        safe = jnp.where(near, 1.0, x)
        return jnp.where(near, 1 + x / 2, safe / (1 - jnp.exp(-safe)))

    def loss(g):
        def step(state, _):
            v, m, h, n = state
            opens = (
                linear((v + 40) / 10),
                0.07 * jnp.exp(-(v + 65) / 20),
                0.1 * linear((v + 55) / 10),
            )
            shuts = (
                4 * jnp.exp(-(v + 65) / 18),
                1 / (1 + jnp.exp(-(v + 35) / 10)),
                0.125 * jnp.exp(-(v + 65) / 80),
            )
            m, h, n = (
                x + 0.01 * (a * (1 - x) - b * x)
                for x, a, b in zip((m, h, n), opens, shuts, strict=True)
            )
            flow = g[0] * m**3 * h * (v - 50) + g[1] * n**4 * (v + 77) + g[2] * (v + 54.4)
            v = v + 0.01 * (10 - flow)
            return (v, m, h, n), v

        start = tuple(map(jnp.float32, (-65.0, 0.053, 0.6, 0.318)))
        return (lax.scan(step, start, None, length=steps)[1] / 100).mean()

    return fw.value_and_grad(loss), (jnp.asarray(np.array([120, 36, 0.3], "f")),)


def neuron_ring_grad(fw, cells=32, steps=300):
    """A ring of neurons of FitzHugh and Nagumo, and the gradient by how they are coupled."""
    jnp, lax = fw.numpy, fw.lax

    def loss(coupling, v):
        def step(state, _):
            v, w = state
            beside = jnp.roll(v, 1) + jnp.roll(v, -1) - 2 * v
            dv = v - v**3 / 3 - w + 0.5 + coupling * beside
            return (v + 0.05 * dv, w + 0.004 * (v + 0.7 - 0.8 * w)), v.mean()

        return (lax.scan(step, (v, jnp.zeros(cells)), None, length=steps)[1] ** 2).mean()

    return fw.value_and_grad(loss), (normal(fw, cells, scale=0.1), normal(fw, cells, scale=1))


def spiking_network(fw, cells=24, steps=300):
    """Leaky neurons that fire over a threshold and reset, with a delay in whole steps."""
    jnp, lax = fw.numpy, fw.lax
    weights = normal(fw, cells, cells, scale=0.3)

    def run(drive):
        def step(state, _):
            v, rest = state
            fires = (v > 1.0) & (rest == 0)
            v = jnp.where(fires, 0.0, 0.95 * v + 0.06 * drive + 0.1 * weights @ fires.astype("f4"))
            return (v, jnp.where(fires, 3, jnp.maximum(rest - 1, 0))), fires.sum()

        return lax.scan(step, (jnp.zeros(cells), jnp.zeros(cells, "int32")), None, length=steps)

    return run, (1 + normal(fw, cells, scale=0.2),)


def epidemic_fit(fw, groups=4, days=150):
    """The gradient of an epidemic in groups of people by rates and by who meets whom."""
    jnp, lax = fw.numpy, fw.lax

    def loss(rates, meets):
        def step(state, _):
            s, i, r = state
            caught = s * (jnp.exp(meets) @ i) * rates[0] * 0.25
            healed = rates[1] * i
            return (s - caught, i + caught - healed, r + healed), i.sum()

        start = jnp.full(groups, 0.99), jnp.full(groups, 0.01), jnp.zeros(groups)
        return jnp.log(lax.scan(step, start, None, length=days)[1]).sum()

    rates = jnp.asarray(np.array([0.3, 0.1], "f"))
    return fw.value_and_grad(loss, argnums=(0, 1)), (rates, normal(fw, groups, groups, scale=0.1))


# ---- Mechanics


def nbody_grad(fw, bodies=5, steps=200):
    """Five bodies that attract each other, and the gradient by where they start."""
    lax = fw.lax

    def pull(x):
        gap = x[None] - x[:, None]
        return (gap / ((gap**2).sum(-1, keepdims=True) + 0.1) ** 1.5).sum(1)

    def loss(x, v):
        def step(state, _):
            x, v = state
            v = v + 0.005 * pull(x)
            x = x + 0.01 * v
            return (x, v + 0.005 * pull(x)), None

        x, _ = lax.scan(step, (x, v), None, length=steps)[0]
        return (x**2).sum()

    return fw.value_and_grad(loss, (0, 1)), (
        normal(fw, bodies, 3, scale=1),
        normal(fw, bodies, 3, scale=0.3, seed=1),
    )


def spring_grid_grad(fw, side=8, steps=100):
    """Masses on a grid with springs between neighbours, and the gradient by their stiffness."""
    jnp, lax = fw.numpy, fw.lax

    def force(x, stiffness):
        total = jnp.zeros_like(x)
        for axis in (0, 1):
            gap = jnp.diff(x, axis=axis)
            length = jnp.sqrt((gap**2).sum(-1, keepdims=True))
            pull = stiffness[axis] * gap * (1 - 1 / length)
            before, after = [(0, 0)] * 3, [(0, 0)] * 3
            before[axis], after[axis] = (0, 1), (1, 0)
            total = total + jnp.pad(pull, before) - jnp.pad(pull, after)
        return total

    def loss(stiffness, x):
        def step(state, _):
            x, v = state
            v = 0.99 * v + 0.05 * (force(x, stiffness) + jnp.array([0.0, 0.0, -0.1]))
            v = v.at[0].set(0.0)
            return (x + 0.05 * v, v), None

        x, _ = lax.scan(step, (x, jnp.zeros_like(x)), None, length=steps)[0]
        return x[..., 2].mean()

    places = np.moveaxis(np.mgrid[:side, :side], 0, -1) * 1.05
    places = np.concatenate([places, np.zeros((side, side, 1))], -1).astype("f")
    return fw.value_and_grad(loss), (jnp.asarray(np.array([5, 5], "f")), jnp.asarray(places))


def double_pendulum(fw, steps=500):
    """Runge and Kutta's method for two pendulums in a chain; each state a number of its own."""
    jnp, lax = fw.numpy, fw.lax

    def slope(a, b, u, v):
        c, s = jnp.cos(a - b), jnp.sin(a - b)
        down = 2 - c**2
        du = (-(u**2) * s * c - v**2 * s + 9.8 * (jnp.sin(b) * c - 2 * jnp.sin(a))) / down
        dv = (2 * u**2 * s + v**2 * s * c + 19.6 * (jnp.sin(a) * c - jnp.sin(b))) / down
        return u, v, du, dv

    def run(start):
        def step(s, _):
            add = lambda h, k: [x + h * d for x, d in zip(s, k, strict=True)]
            k = slope(*s)
            k2 = slope(*add(0.0025, k))
            k3 = slope(*add(0.0025, k2))
            k4 = slope(*add(0.005, k3))
            rows = zip(s, k, k2, k3, k4, strict=True)
            return tuple(x + 0.005 / 6 * (p + 2 * q + 2 * r + t) for x, p, q, r, t in rows), s[1]

        return lax.scan(step, tuple(start), None, length=steps)[1]

    return run, (jnp.asarray(np.array([0.5, 0.3, 0, 0], "f")),)


# ---- Equations on grids


def heat_1d(fw, cells=128, steps=1000):
    """Heat in a rod whose ends are kept cold."""
    lax = fw.lax

    def run(u):
        def step(u, _):
            return u.at[1:-1].add(0.4 * (u[2:] - 2 * u[1:-1] + u[:-2])), None

        return lax.scan(step, u, None, length=steps)[0]

    return run, (normal(fw, cells, scale=1).at[0].set(0.0),)


def burgers_grad(fw, cells=64, steps=300):
    """Burgers' equation on a ring by upwind differences, and the gradient by its start."""
    jnp, lax = fw.numpy, fw.lax

    def loss(u):
        def step(u, _):
            left, right = jnp.roll(u, 1), jnp.roll(u, -1)
            slope = jnp.where(u > 0, u - left, right - u)
            return u - 0.05 * u * slope + 0.05 * (left - 2 * u + right), None

        return (lax.scan(step, u, None, length=steps)[0] ** 2).sum()

    return fw.value_and_grad(loss), (normal(fw, cells, scale=1),)


def wave_2d(fw, side=32, steps=200):
    """Waves on a square whose edges meet, by rolled arrays."""
    jnp, lax = fw.numpy, fw.lax

    def run(u):
        def step(state, _):
            u, before = state
            beside = sum(jnp.roll(u, by, axis) for axis in (0, 1) for by in (1, -1))
            return (1.998 * u - 0.999 * before + 0.2 * (beside - 4 * u), u), u[0, 0]

        return lax.scan(step, (u, u), None, length=steps)

    return run, (normal(fw, side, side, scale=1),)


def reaction_diffusion(fw, side=24, steps=150):
    """Gray and Scott's two substances on a square whose edges meet."""
    jnp, lax = fw.numpy, fw.lax

    def around(u):
        return sum(jnp.roll(u, by, axis) for axis in (0, 1) for by in (1, -1)) - 4 * u

    def run(u, v):
        def step(state, _):
            u, v = state
            eaten = u * v**2
            u = u + 0.16 * around(u) - eaten + 0.035 * (1 - u)
            return (u, v + 0.08 * around(v) + eaten - 0.1 * v), None

        return lax.scan(step, (u, v), None, length=steps)[0]

    spot = np.zeros((side, side), "f")
    spot[8:14, 9:15] = 0.5
    return run, (jnp.asarray(1 - spot), jnp.asarray(spot / 2))


def lattice_boltzmann(fw, side=16, steps=100):
    """A flow around a block, by nine directions of particles on a grid."""
    jnp, lax = fw.numpy, fw.lax
    ways = np.array([(0, 0), (1, 0), (0, 1), (-1, 0), (0, -1), (1, 1), (-1, 1), (-1, -1), (1, -1)])
    shares = np.array([4 / 9] + [1 / 9] * 4 + [1 / 36] * 4, "f")
    back = np.array([0, 3, 4, 1, 2, 7, 8, 5, 6])
    wall = np.zeros((side, side), bool)
    wall[6:9, 6:9] = True

    def run(f):
        def step(f, _):
            density = f.sum(0)
            speed = jnp.einsum("qd,qxy->dxy", ways.astype("f"), f) / density
            speed = speed + jnp.array([1e-3, 0.0])[:, None, None]
            along = jnp.einsum("qd,dxy->qxy", ways.astype("f"), speed)
            even = 1 + 3 * along + 4.5 * along**2 - 1.5 * (speed**2).sum(0)
            moved = f - 0.8 * (f - density * shares[:, None, None] * even)
            moved = jnp.where(wall, f[back], moved)
            moved = jnp.stack(
                [jnp.roll(g, tuple(way), (0, 1)) for g, way in zip(moved, ways, strict=True)]
            )
            return moved, speed[0].mean()

        return lax.scan(step, f, None, length=steps)

    start = shares[:, None, None] * (1 + 0.01 * np.asarray(normal(fw, 9, side, side, scale=1)))
    return run, (jnp.asarray(start),)


def shallow_water(fw, cells=100, steps=300):
    """Depth and flow of water in a channel by Lax and Friedrichs' method."""
    jnp, lax = fw.numpy, fw.lax

    def run(h):
        def step(state, _):
            flux = jnp.stack([state[1], state[1] ** 2 / state[0] + 4.9 * state[0] ** 2])
            left, right = jnp.roll(state, 1, 1), jnp.roll(state, -1, 1)
            change = jnp.roll(flux, -1, 1) - jnp.roll(flux, 1, 1)
            return 0.5 * (left + right) - 0.05 * change, None

        return lax.scan(step, jnp.stack([h, jnp.zeros(cells)]), None, length=steps)[0]

    bump = 1 + 0.3 * np.exp(-((np.arange(cells) - 50) ** 2) / 50)
    return run, (jnp.asarray(bump.astype("f")),)


def thomas(fw, unknowns=64, times=20):
    """Implicit steps of heat: systems with three diagonals, eliminated forwards and back."""
    jnp, lax = fw.numpy, fw.lax

    def solve(lower, middle, upper, right):
        def eliminate(before, row):
            a, b, c, d = row
            down = b - a * before[0]
            now = c / down, (d - a * before[1]) / down
            return now, now

        def back(x, row):
            x = row[1] - row[0] * x
            return x, x

        zero = jnp.zeros(())
        rows = lax.scan(eliminate, (zero, zero), (lower, middle, upper, right))[1]
        return lax.scan(back, zero, rows, reverse=True)[1]

    def run(u):
        side = jnp.full(unknowns, -0.5)
        middle = jnp.full(unknowns, 2.0)
        return lax.fori_loop(0, times, lambda _, u: solve(side, middle, side, u), u)

    return run, (normal(fw, unknowns, scale=1),)


# ---- Automata and whole numbers


def game_of_life(fw, side=32, steps=100):
    """Conway's game of life, on a square of whole numbers whose edges meet."""
    jnp, lax = fw.numpy, fw.lax

    def run(cells):
        def step(cells, _):
            near = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0)]
            count = sum(jnp.roll(cells, by, (0, 1)) for by in near)
            cells = ((count == 3) | ((count == 2) & (cells == 1))).astype("int32")
            return cells, cells.sum()

        return lax.scan(step, cells, None, length=steps)

    cells = np.random.default_rng(0).integers(0, 2, (side, side))
    return run, (jnp.asarray(cells.astype("i4")),)


def rule_110(fw, cells=128, steps=500):
    """An automaton in one dimension, of truth values, which keeps each step."""
    jnp, lax = fw.numpy, fw.lax

    def run(cells):
        def step(cells, _):
            left, right = jnp.roll(cells, 1), jnp.roll(cells, -1)
            return (cells | right) & ~(left & cells & right), cells.sum()

        return lax.scan(step, cells, None, length=steps)

    return run, (jnp.asarray(np.random.default_rng(0).random(cells) < 0.5),)


def rolled_integers(fw, cells=256, steps=400):
    """A stencil of rolled whole numbers that wrap around."""
    jnp, lax = fw.numpy, fw.lax

    def run(x):
        def step(x, _):
            y = 5 * x + 3 * jnp.roll(x, 1) - jnp.roll(x, -2)
            return (y ^ (y >> 7)) & 0xFFFFF, y[0]

        return lax.scan(step, x, None, length=steps)

    cells = np.random.default_rng(0).integers(0, 1 << 20, cells)
    return run, (jnp.asarray(cells.astype("i4")),)


def lcg(fw, steps=2000):
    """A linear congruential generator and what is drawn with it: throws that hit a circle."""
    jnp, lax = fw.numpy, fw.lax

    def run(seed):
        def step(state, _):
            seed, hits = state
            seed = seed * jnp.uint32(1664525) + jnp.uint32(1013904223)
            x = (seed >> 16).astype("float32") / 65536
            seed = seed * jnp.uint32(1664525) + jnp.uint32(1013904223)
            y = (seed >> 16).astype("float32") / 65536
            return (seed, hits + (x * x + y * y < 1).astype("int32")), None

        return lax.scan(step, (seed, jnp.int32(0)), None, length=steps)[0]

    return run, (jnp.uint32(12345),)


def crc32(fw, length=256):
    """A checksum of bytes, bit by bit in a loop within a loop."""
    jnp, lax = fw.numpy, fw.lax

    def run(data):
        def bit(_, crc):
            return jnp.where(crc & 1, (crc >> 1) ^ jnp.uint32(0xEDB88320), crc >> 1)

        def byte(crc, value):
            return lax.fori_loop(0, 8, bit, crc ^ value.astype("uint32")), None

        return ~lax.scan(byte, jnp.uint32(0xFFFFFFFF), data)[0]

    data = np.random.default_rng(0).integers(0, 256, length)
    return run, (jnp.asarray(data.astype("u1")),)


def mandelbrot(fw, side=16, steps=60):
    """How long each point of a square stays near, in a batched loop with a condition."""
    jnp, lax = fw.numpy, fw.lax

    def count(x, y):
        def go_on(state):
            a, b, n = state
            return (a * a + b * b < 4) & (n < steps)

        def step(state):
            a, b, n = state
            return a * a - b * b + x, 2 * a * b + y, n + 1

        return lax.while_loop(go_on, step, (x, y, jnp.int32(0)))[2]

    x, y = np.meshgrid(np.linspace(-2, 0.5, side), np.linspace(-1.2, 1.2, side))
    return fw.vmap(fw.vmap(count)), (jnp.asarray(x.astype("f")), jnp.asarray(y.astype("f")))


# ---- Prices


def binomial_tree(fw, steps=200):
    """An American put on a tree of prices, and the derivative by the price."""
    jnp, lax = fw.numpy, fw.lax

    def price(spot, spread):
        up = jnp.exp(spread * np.float32(np.sqrt(1 / steps)))
        rate = np.float32(np.exp(0.05 / steps))
        p = (rate - 1 / up) / (up - 1 / up)
        at = jnp.arange(steps + 1, dtype="float32")

        def back(values, i):
            held = (p * jnp.roll(values, -1) + (1 - p) * values) / rate
            spots = spot * up ** (2 * at - (steps - 1 - i))
            return jnp.maximum(held, 100 - spots), None

        last = jnp.maximum(100 - spot * up ** (2 * at - steps), 0)
        values = lax.scan(back, last, jnp.arange(steps, dtype="float32"))[0]
        return values[0]

    return fw.value_and_grad(price), (jnp.float32(95), jnp.float32(0.2))


def option_paths(fw, paths=32, steps=100):
    """Paths of prices with random changes of their spread, and the derivatives of an option."""
    jnp, lax, random = fw.numpy, fw.lax, fw.random

    def price(params, key):
        def step(state, key):
            s, v, total = state
            first, second = random.normal(key, (2, paths))
            root = jnp.sqrt(v * 0.01)
            v = jnp.maximum(v + params[1] * (0.04 - v) * 0.01 + params[2] * root * second, 1e-4)
            s = s * jnp.exp(-0.5 * root**2 + root * first)
            return (s, v, total + s), None

        start = jnp.full(paths, params[0]), jnp.full(paths, 0.04), jnp.zeros(paths)
        _, _, total = lax.scan(step, start, random.split(key, steps))[0]
        return jnp.maximum(total / steps - 100, 0).mean()

    params = jnp.asarray(np.array([101.0, 1.5, 0.2], "f"))
    return fw.value_and_grad(price), (params, fw.random.PRNGKey(0))


def black_scholes(fw, steps=30):
    """The spread that a price implies, by Newton's method with the derivative of the formula."""
    jnp, lax = fw.numpy, fw.lax

    def call(spot, spread):
        d = (jnp.log(spot / 100) + 0.5 * spread**2) / spread
        cdf = lambda x: 0.5 * (1 + lax.erf(x * np.float32(np.sqrt(0.5))))
        return spot * cdf(d) - 100 * cdf(d - spread)

    def implied(spot, price):
        def step(_, spread):
            value, slope = fw.value_and_grad(call, 1)(spot, spread)
            return jnp.clip(spread - (value - price) / (slope + 1e-3), 0.01, 3)

        return lax.fori_loop(0, steps, step, jnp.float32(0.5))

    spots = np.linspace(90, 110, 16).astype("f")
    return fw.vmap(implied), (jnp.asarray(spots), jnp.asarray(np.maximum(spots - 100, 0) + 12))


PROGRAMS = {
    f.__name__: f
    for f in (
        hodgkin_huxley_grad,
        neuron_ring_grad,
        spiking_network,
        epidemic_fit,
        nbody_grad,
        spring_grid_grad,
        double_pendulum,
        heat_1d,
        burgers_grad,
        wave_2d,
        reaction_diffusion,
        lattice_boltzmann,
        shallow_water,
        thomas,
        game_of_life,
        rule_110,
        rolled_integers,
        lcg,
        crc32,
        mandelbrot,
        binomial_tree,
        option_paths,
        black_scholes,
    )
}
