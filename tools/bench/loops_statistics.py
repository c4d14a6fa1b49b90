"""Small programs in loops: sampling, chains of hidden states, fits, paths in graphs. Same form as
those of compile_programs.py; `loop_programs.py` lists them.
"""

import numpy as np
from compile_programs import normal

# ---- Chains of hidden states, and other tables filled row by row


def hmm_forward(fw, states=8, steps=1000):
    """The forward algorithm of a hidden Markov model, and the gradient by its transitions."""
    jnp, lax, nn = fw.numpy, fw.lax, fw.nn
    seen = normal(fw, steps, states, scale=1, seed=1)

    def loss(scores):
        moves = scores - nn.logsumexp(scores, axis=1, keepdims=True)

        def step(alpha, row):
            return nn.logsumexp(alpha[:, None] + moves, axis=0) + row, None

        return nn.logsumexp(lax.scan(step, jnp.zeros(states), seen)[0])

    return fw.value_and_grad(loss), (normal(fw, states, states, scale=1),)


def viterbi(fw, states=8, steps=300):
    """The most likely path through a hidden Markov model: forwards, then back along pointers."""
    jnp, lax = fw.numpy, fw.lax

    def run(moves, seen):
        def forward(best, row):
            ways = best[:, None] + moves
            return ways.max(0) + row, ways.argmax(0)

        def back(state, pointers):
            return pointers[state], state

        best, pointers = lax.scan(forward, jnp.zeros(states), seen)
        return lax.scan(back, jnp.argmax(best), pointers, reverse=True)[1]

    return run, (normal(fw, states, states, scale=1), normal(fw, steps, states, scale=1, seed=1))


def chain_marginals(fw, states=6, length=200):
    """Belief propagation on a chain: messages both ways, and what each place is likely to be."""
    jnp, lax = fw.numpy, fw.lax

    def run(single, pair):
        def pass_on(message, own):
            message = pair @ (message * own)
            message = message / message.sum()
            return message, message

        start = jnp.full(states, 1 / states)
        right = lax.scan(pass_on, start, single)[1]
        left = lax.scan(pass_on, start, single, reverse=True)[1]
        both = single[1:-1] * right[:-2] * left[2:]
        return both / both.sum(1, keepdims=True)

    return run, (
        fw.numpy.exp(normal(fw, length, states, scale=1)),
        fw.numpy.exp(normal(fw, states, states, scale=0.5)),
    )


def edit_distance(fw, length=48):
    """The edits from one text to another: a loop over cells within a loop over rows."""
    jnp, lax = fw.numpy, fw.lax

    def run(a, b):
        def row(above, letter):
            def cell(left, column):
                over, corner, other = column
                best = jnp.minimum(jnp.minimum(left, over) + 1, corner + (letter != other))
                return best, best

            first = above[0] + 1
            rest = lax.scan(cell, first, (above[1:], above[:-1], b))[1]
            return jnp.concatenate([first[None], rest]), None

        return lax.scan(row, jnp.arange(length + 1, dtype="int32"), a)[0][-1]

    texts = np.random.default_rng(0).integers(0, 4, (2, length)).astype("i4")
    return run, tuple(map(jnp.asarray, texts))


def ctc_grad(fw, labels=12, steps=60, letters=8):
    """The loss of connectionist temporal classification, and its gradient by the scores."""
    jnp, lax, nn = fw.numpy, fw.lax, fw.nn
    path = np.zeros(2 * labels + 1, int)
    path[1::2] = 1 + np.random.default_rng(0).integers(0, letters - 1, labels)
    skips = np.concatenate([[False, False], (path[2:] != path[:-2]) & (path[2:] != 0)])

    def loss(scores):
        rows = nn.log_softmax(scores)[:, path]

        def step(alpha, row):
            padded = jnp.concatenate([jnp.full(2, -1e9), alpha])
            skip = jnp.where(skips, padded[:-2], -1e9)
            alpha = jnp.logaddexp(jnp.logaddexp(alpha, padded[1:-1]), skip) + row
            return alpha, None

        first = jnp.where(np.arange(path.size) < 2, rows[0], -1e9)
        alpha = lax.scan(step, first, rows[1:])[0]
        return -jnp.logaddexp(alpha[-1], alpha[-2])

    return fw.value_and_grad(loss), (normal(fw, steps, letters, scale=1),)


def alignment_grad(fw, length=24):
    """A soft alignment of two series (a smooth minimum over ways), and its gradient."""
    jnp, lax, nn = fw.numpy, fw.lax, fw.nn

    def loss(x, y):
        cost = (x[:, None] - y[None]) ** 2

        def row(above, costs):
            def cell(left, column):
                over, corner, own = column
                best = own - nn.logsumexp(-jnp.stack([left, over, corner]))
                return best, best

            far = jnp.float32(1e6)
            rest = lax.scan(cell, far, (above[1:], above[:-1], costs))[1]
            return jnp.concatenate([far[None], rest]), None

        first = jnp.full(length + 1, 1e6).at[0].set(0.0)
        return lax.scan(row, first, cost)[0][-1]

    return fw.value_and_grad(loss), (
        normal(fw, length, scale=1),
        normal(fw, length, scale=1, seed=1),
    )


def knapsack(fw, items=40, room=100):
    """The best value that fits: one row of a table for each item, in whole numbers."""
    jnp, lax = fw.numpy, fw.lax

    def run(sizes, values):
        def take(best, item):
            size, value = item
            at = jnp.arange(room + 1)
            with_it = jnp.where(at >= size, best[jnp.maximum(at - size, 0)] + value, 0)
            return jnp.maximum(best, with_it), None

        return lax.scan(take, jnp.zeros(room + 1, "int32"), (sizes, values))[0][-1]

    numbers = np.random.default_rng(0).integers(1, 20, (2, items)).astype("i4")
    return run, tuple(map(jnp.asarray, numbers))


# ---- Sampling


def particle_filter(fw, particles=64, steps=100):
    """A bootstrap filter: particles that move, are weighed and are drawn again in each step."""
    jnp, lax, nn, random = fw.numpy, fw.lax, fw.nn, fw.random

    def run(key, seen):
        def step(x, row):
            key, y = row
            first, second = random.split(key)
            x = 0.9 * x + jnp.sin(x) + random.normal(first, (particles,))
            scores = -0.5 * (y - x) ** 2
            places = (jnp.arange(particles) + random.uniform(second)) / particles
            chosen = jnp.searchsorted(jnp.cumsum(nn.softmax(scores)), places)
            return x[jnp.clip(chosen, 0, particles - 1)], nn.logsumexp(scores)

        return lax.scan(step, jnp.zeros(particles), (random.split(key, steps), seen))[1]

    return run, (fw.random.PRNGKey(0), normal(fw, steps, scale=1))


def banana(fw):
    return lambda x: -0.5 * (x[0] ** 2 + (x[1:] - x[:-1] ** 2) @ (x[1:] - x[:-1] ** 2))


def hmc(fw, size=4, samples=50, leaps=10):
    """Hamiltonian Monte Carlo: leapfrog steps in a loop, and whether their end is accepted."""
    jnp, lax, random = fw.numpy, fw.lax, fw.random
    density = banana(fw)
    slope = fw.grad(density)

    def run(key, x):
        def leap(_, state):
            x, v = state
            v = v + 0.05 * slope(x)
            x = x + 0.1 * v
            return x, v + 0.05 * slope(x)

        def step(x, key):
            first, second = random.split(key)
            v = random.normal(first, (size,))
            new, end = lax.fori_loop(0, leaps, leap, (x, v))
            gain = density(new) - 0.5 * end @ end - density(x) + 0.5 * v @ v
            x = jnp.where(jnp.log(random.uniform(second)) < gain, new, x)
            return x, x

        return lax.scan(step, x, random.split(key, samples))[1]

    return run, (fw.random.PRNGKey(1), normal(fw, size, scale=0.1))


def u_turns(fw, size=4, samples=30):
    """Steps like those of the No-U-Turn sampler: leaps until the path turns back, then a choice."""
    jnp, lax, random = fw.numpy, fw.lax, fw.random
    density = banana(fw)
    slope = fw.grad(density)

    def run(key, start):
        def step(x, key):
            first, key = random.split(key)
            v = random.normal(first, (size,))
            energy = density(x) - 0.5 * v @ v

            def go_on(state):
                at, speed, *_, count = state
                return ((at - x) @ speed >= 0) & (count < 32)

            def leap(state):
                at, speed, kept, total, key, count = state
                speed = speed + 0.05 * slope(at)
                at = at + 0.1 * speed
                speed = speed + 0.05 * slope(at)
                weight = density(at) - 0.5 * speed @ speed - energy
                total = jnp.logaddexp(total, weight)
                key, own = random.split(key)
                take = jnp.log(random.uniform(own)) < weight - total
                return at, speed, jnp.where(take, at, kept), total, key, count + 1

            state = x, v, x, jnp.float32(0), key, jnp.int32(0)
            _, _, kept, _, _, count = lax.while_loop(go_on, leap, state)
            return kept, (kept, count)

        return lax.scan(step, start, random.split(key, samples))[1]

    return run, (fw.random.PRNGKey(2), normal(fw, size, scale=0.1))


def metropolis(fw, steps=1000):
    """A random walk that is accepted or not, of two numbers, with random numbers in the loop."""
    jnp, lax, random = fw.numpy, fw.lax, fw.random
    density = banana(fw)

    def run(key, x):
        def step(state, _):
            key, x, score = state
            key, first, second = random.split(key, 3)
            new = x + 0.5 * random.normal(first, (2,))
            there = density(new)
            take = jnp.log(random.uniform(second)) < there - score
            x, score = jnp.where(take, new, x), jnp.where(take, there, score)
            return (key, x, score), take

        (_, x, _), taken = lax.scan(step, (key, x, density(x)), None, length=steps)
        return x, taken.sum()

    return run, (fw.random.PRNGKey(4), normal(fw, 2, scale=0.1))


def ising(fw, side=16, steps=100):
    """Spins on a board, each colour of which is drawn anew in turn."""
    jnp, lax, random = fw.numpy, fw.lax, fw.random
    black = np.indices((side, side)).sum(0) % 2 == 0

    def run(key, spins):
        def step(spins, key):
            for colour, own in zip((black, ~black), random.split(key), strict=True):
                field = sum(jnp.roll(spins, by, axis) for axis in (0, 1) for by in (1, -1))
                up = random.uniform(own, (side, side)) < 1 / (1 + jnp.exp(-0.8 * field))
                spins = jnp.where(colour, jnp.where(up, 1.0, -1.0), spins)
            return spins, spins.mean()

        return lax.scan(step, spins, random.split(key, steps))

    return run, (fw.random.PRNGKey(5), fw.numpy.ones((side, side)))


def random_walk(fw, steps=1000):
    """A walk on a grid, whose key is split in each step."""
    jnp, lax, random = fw.numpy, fw.lax, fw.random

    def run(key):
        def step(state, _):
            key, at = state
            key, own = random.split(key)
            way = random.randint(own, (), 0, 4)
            at = at + jnp.array([[1, 0], [-1, 0], [0, 1], [0, -1]])[way]
            return (key, at), (at**2).sum()

        start = key, jnp.zeros(2, "int32")
        return lax.scan(step, start, None, length=steps)[1]

    return run, (fw.random.PRNGKey(6),)


def bandit(fw, arms=8, steps=500):
    """Choices among arms by upper bounds of what they give, with counts that are updated."""
    jnp, lax, random = fw.numpy, fw.lax, fw.random

    def run(key, gives):
        def step(state, row):
            counts, sums = state
            key, t = row
            bounds = sums / counts + jnp.sqrt(2 * jnp.log(t + 1) / counts)
            arm = jnp.argmax(bounds)
            won = (random.uniform(key) < gives[arm]).astype("float32")
            return (counts.at[arm].add(1.0), sums.at[arm].add(won)), won

        rows = random.split(key, steps), jnp.arange(steps, dtype="float32")
        return lax.scan(step, (jnp.ones(arms), jnp.full(arms, 0.5)), rows)

    return run, (fw.random.PRNGKey(7), jnp.asarray(np.linspace(0.2, 0.7, arms).astype("f")))


# ---- Fits


def gauss_newton(fw, steps=20):
    """A curve of three numbers fitted to points, with Jacobians and solved systems."""
    jnp, lax = fw.numpy, fw.lax
    t = np.linspace(0, 2, 20).astype("f")

    def run(params, y):
        def residual(p):
            return p[0] * jnp.exp(-p[1] * t) + p[2] - y

        def step(p, _):
            r, j = residual(p), fw.jacfwd(residual)(p)
            return p - jnp.linalg.solve(j.T @ j + 1e-3 * jnp.eye(3), j.T @ r), (r**2).sum()

        return lax.scan(step, params, None, length=steps)

    y = 2 * np.exp(-1.3 * t) + 0.5 + 0.01 * np.asarray(normal(fw, 20, scale=1))
    return run, (fw.numpy.ones(3), fw.numpy.asarray(y.astype("f")))


def kepler(fw, orbits=64):
    """Kepler's equation by Newton's method, in a batched loop until each is solved."""
    jnp, lax = fw.numpy, fw.lax

    def solve(mean, stretch):
        miss = lambda x: x - stretch * jnp.sin(x) - mean

        def step(state):
            x, count = state
            return x - miss(x) / fw.grad(miss)(x), count + 1

        go_on = lambda state: (jnp.abs(miss(state[0])) > 1e-5) & (state[1] < 30)
        return lax.while_loop(go_on, step, (mean, jnp.int32(0)))[0]

    means = np.linspace(0.1, 3.0, orbits).astype("f")
    return fw.vmap(solve), (jnp.asarray(means), jnp.asarray(np.linspace(0, 0.8, orbits), "f"))


def newton_while(fw):
    """Newton's method with a Hessian of eight variables, until the gradient is small."""
    jnp, lax = fw.numpy, fw.lax

    def objective(x):
        return (jnp.cosh(x) + 0.5 * (x - jnp.roll(x, 1) - 1) ** 2).sum()

    def run(x):
        def step(state):
            x, count = state
            move = jnp.linalg.solve(fw.hessian(objective)(x), fw.grad(objective)(x))
            return x - 0.5 * move, count + 1

        def go_on(state):
            return (jnp.abs(fw.grad(objective)(state[0])).max() > 1e-3) & (state[1] < 50)

        return lax.while_loop(go_on, step, (x, jnp.int32(0)))[0]

    return run, (normal(fw, 8, scale=1),)


def kmeans(fw, points=100, groups=4, steps=30):
    """Points that choose the nearest of some centres, which move to their means."""
    lax, nn = fw.lax, fw.nn

    def run(x, centres):
        def step(centres, _):
            far = ((x[:, None] - centres) ** 2).sum(-1)
            mine = nn.one_hot(far.argmin(1), groups)
            return (mine.T @ x + centres) / (mine.sum(0)[:, None] + 1), far.min(1).sum()

        return lax.scan(step, centres, None, length=steps)

    x = normal(fw, points, 2, scale=1)
    return run, (x, x[:groups] * 2)


def mixture_em(fw, points=100, groups=3, steps=30):
    """Expectation and maximisation for a mixture of normal distributions of one number."""
    jnp, lax, nn = fw.numpy, fw.lax, fw.nn

    def run(x, means):
        def step(state, _):
            shares, means, spreads = state
            scores = (
                jnp.log(shares) - jnp.log(spreads) - 0.5 * ((x[:, None] - means) / spreads) ** 2
            )
            mine = nn.softmax(scores, axis=1)
            count = mine.sum(0)
            means = (mine * x[:, None]).sum(0) / count
            spreads = jnp.sqrt((mine * (x[:, None] - means) ** 2).sum(0) / count + 1e-4)
            return (count / points, means, spreads), nn.logsumexp(scores, axis=1).mean()

        start = jnp.full(groups, 1 / groups), means, jnp.ones(groups)
        return lax.scan(step, start, None, length=steps)

    x = normal(fw, points, scale=1) + np.repeat(np.array([-2, 0, 3], "f"), points)[::3]
    return run, (x, jnp.asarray(np.array([-1, 0.5, 1], "f")))


def lasso(fw, points=32, features=12, steps=300):
    """Proximal gradient steps with momentum for sparse regression."""
    jnp, lax = fw.numpy, fw.lax

    def run(a, b):
        rate = 1 / (a**2).sum()

        def step(state, _):
            w, ahead, t = state
            moved = ahead - rate * a.T @ (a @ ahead - b)
            new = jnp.sign(moved) * jnp.maximum(jnp.abs(moved) - 0.5 * rate, 0)
            after = 0.5 * (1 + jnp.sqrt(1 + 4 * t**2))
            return (new, new + (t - 1) / after * (new - w), after), None

        start = jnp.zeros(features), jnp.zeros(features), jnp.float32(1)
        return lax.scan(step, start, None, length=steps)[0][0]

    return run, (normal(fw, points, features, scale=1), normal(fw, points, scale=1, seed=1))


def admm(fw, points=32, features=12, steps=100):
    """The same by the method of multipliers, with a factor that every step solves with."""
    jnp, lax = fw.numpy, fw.lax

    def run(a, b):
        inverse = jnp.linalg.inv(a.T @ a + jnp.eye(features))
        right = a.T @ b

        def step(state, _):
            z, u = state
            w = inverse @ (right + z - u)
            z = jnp.sign(w + u) * jnp.maximum(jnp.abs(w + u) - 0.5, 0)
            return (z, u + w - z), ((w - z) ** 2).sum()

        start = jnp.zeros(features), jnp.zeros(features)
        return lax.scan(step, start, None, length=steps)

    return run, (normal(fw, points, features, scale=1), normal(fw, points, scale=1, seed=1))


def sinkhorn_grad(fw, size=16, steps=100):
    """The cost of moving one set of points to another, with entropy, and its gradient."""
    jnp, lax, nn = fw.numpy, fw.lax, fw.nn

    def loss(x, y):
        cost = ((x[:, None] - y[None]) ** 2).sum(-1)
        kernel = -cost / 0.5

        def step(state, _):
            _, g = state
            f = -nn.logsumexp(kernel + g[None], axis=1)
            return (f, -nn.logsumexp(kernel + f[:, None], axis=0)), None

        f, g = lax.scan(step, (jnp.zeros(size), jnp.zeros(size)), None, length=steps)[0]
        return (jnp.exp(kernel + f[:, None] + g[None]) * cost).sum() / size

    return fw.value_and_grad(loss), (
        normal(fw, size, 2, scale=1),
        normal(fw, size, 2, scale=1, seed=1),
    )


def conjugate_gradients(fw, size=12):
    """Conjugate gradients until the residual is small."""
    jnp, lax = fw.numpy, fw.lax

    def run(a, b):
        a = a @ a.T + jnp.eye(size)

        def step(state):
            x, r, p, rr, count = state
            ap = a @ p
            length = rr / (p @ ap)
            x, r = x + length * p, r - length * ap
            new = r @ r
            return x, r, r + new / rr * p, new, count + 1

        start = jnp.zeros(size), b, b, b @ b, jnp.int32(0)
        return lax.while_loop(lambda s: (s[3] > 1e-8) & (s[4] < 40), step, start)[0]

    return run, (normal(fw, size, size, scale=1), normal(fw, size, scale=1, seed=1))


def power_iteration(fw, size=8, steps=300):
    """The largest eigenvalue of a small matrix and its vector."""
    jnp, lax = fw.numpy, fw.lax

    def run(a, x):
        def step(x, _):
            y = a @ x
            return y / jnp.sqrt(y @ y), x @ y

        return lax.scan(step, x, None, length=steps)

    a = normal(fw, size, size, scale=1)
    return run, (a @ a.T, normal(fw, size, scale=1, seed=1))


def adam_rosenbrock(fw, size=6, steps=1000):
    """Adam's steps on Rosenbrock's function."""
    jnp, lax = fw.numpy, fw.lax

    def objective(x):
        return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()

    def run(x):
        def step(state, t):
            x, m, v = state
            value, slope = fw.value_and_grad(objective)(x)
            m, v = 0.9 * m + 0.1 * slope, 0.999 * v + 0.001 * slope**2
            move = m / (1 - 0.9**t) / (jnp.sqrt(v / (1 - 0.999**t)) + 1e-8)
            return (x - 0.01 * move, m, v), value

        times = jnp.arange(1, steps + 1, dtype="float32")
        return lax.scan(step, (x, jnp.zeros(size), jnp.zeros(size)), times)

    return run, (normal(fw, size, scale=0.3),)


# ---- Graphs


def shortest_paths(fw, nodes=16):
    """Floyd and Warshall's lengths of the shortest ways between all nodes."""
    jnp, lax = fw.numpy, fw.lax

    def run(far):
        def through(k, far):
            return jnp.minimum(far, far[:, k, None] + far[None, k])

        return lax.fori_loop(0, nodes, through, far)

    lengths = np.random.default_rng(0).uniform(0, 1, (nodes, nodes)).astype("f")
    return run, (jnp.asarray(np.where(lengths < 0.3, lengths, np.inf).astype("f")),)


def spanning_tree(fw, nodes=24):
    """Prim's tree of the least length: the nearest node joins in each step."""
    jnp, lax = fw.numpy, fw.lax

    def run(far):
        def join(state, _):
            near, came, inside = state
            node = jnp.argmin(jnp.where(inside, jnp.inf, near))
            closer = far[node] < near
            state = jnp.minimum(near, far[node]), jnp.where(closer, node, came)
            return (*state, inside.at[node].set(True)), (node, came[node], near[node])

        start = far[0], jnp.zeros(nodes, "int32"), jnp.arange(nodes) == 0
        return lax.scan(join, start, None, length=nodes - 1)[1]

    at = np.random.default_rng(0).uniform(0, 1, (nodes, 2))
    return run, (jnp.asarray(np.linalg.norm(at[:, None] - at, axis=-1).astype("f")),)


def page_rank(fw, nodes=24):
    """Ranks of nodes that share theirs along edges, until they change little."""
    jnp, lax = fw.numpy, fw.lax
    rng = np.random.default_rng(0)
    sources = np.concatenate([np.arange(nodes), rng.integers(0, nodes, 3 * nodes)])
    targets = rng.integers(0, nodes, 4 * nodes)

    def run(ranks):
        count = jnp.zeros(nodes).at[sources].add(1.0)

        def step(state):
            ranks, _, steps = state
            new = jnp.full(nodes, 0.15 / nodes).at[targets].add(0.85 * (ranks / count)[sources])
            return new, jnp.abs(new - ranks).sum(), steps + 1

        start = ranks, jnp.float32(1), jnp.int32(0)
        return lax.while_loop(lambda s: (s[1] > 1e-6) & (s[2] < 100), step, start)[0]

    return run, (fw.numpy.full(nodes, 1 / nodes),)


PROGRAMS = {
    f.__name__: f
    for f in (
        hmm_forward,
        viterbi,
        chain_marginals,
        edit_distance,
        ctc_grad,
        alignment_grad,
        knapsack,
        particle_filter,
        hmc,
        u_turns,
        metropolis,
        ising,
        random_walk,
        bandit,
        gauss_newton,
        kepler,
        newton_while,
        kmeans,
        mixture_em,
        lasso,
        admm,
        sinkhorn_grad,
        conjugate_gradients,
        power_iteration,
        adam_rosenbrock,
        shortest_paths,
        spanning_tree,
        page_rank,
    )
}
