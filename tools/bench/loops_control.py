"""Small programs in loops: filters, controllers, robots, integrators and small networks. Same form
as those of compile_programs.py; `loop_programs.py` lists them.
"""

import functools

import numpy as np
from compile_programs import normal


def numbers(fw, *values):
    return fw.numpy.asarray(np.array(values, "f"))


# ---- Scalars, filters


CARRIED_STEPS = 600


def carried_scalars(fw, count=60):
    jnp, lax = fw.numpy, fw.lax

    def run(start):
        def step(carry, _):
            turned = carry[1:] + carry[:1]
            return [0.999 * x + 0.001 * jnp.sin(y) for x, y in zip(carry, turned, strict=True)], ()

        return sum(lax.scan(step, start, None, length=CARRIED_STEPS)[0])

    return run, ([jnp.asarray(np.float32(i / count)) for i in range(count)],)


def scalar_carries(fw):
    """A loop that carries sixty numbers, 600 steps."""
    return carried_scalars(fw)


def scalar_carries_grad(fw):
    """The gradient of the loop of sixty numbers."""
    f, args = carried_scalars(fw)
    return fw.grad(f), args


def kalman_moves(fw):
    return np.eye(4, dtype="f") + np.asarray(normal(fw, 4, 4, scale=0.01))


def kalman_filter(fw, steps=2000):
    jnp, lax = fw.numpy, fw.lax
    moves = kalman_moves(fw)

    def run(seen):
        sees, drift, noise = jnp.eye(2, 4), 0.01 * jnp.eye(4), 0.1 * jnp.eye(2)

        def step(state, y):
            mean, cov = state
            mean, cov = moves @ mean, moves @ cov @ moves.T + drift
            s = sees @ cov @ sees.T + noise
            det = s[0, 0] * s[1, 1] - s[0, 1] * s[1, 0]
            inverse = jnp.array([[s[1, 1], -s[0, 1]], [-s[1, 0], s[0, 0]]]) / det
            gain, miss = cov @ sees.T @ inverse, y - sees @ mean
            return (mean + gain @ miss, cov - gain @ sees @ cov), miss @ inverse @ miss

        return lax.scan(step, (jnp.zeros(4), jnp.eye(4)), seen)[1].sum()

    return run, (normal(fw, steps, 2, scale=1, seed=1),)


def kalman(fw):
    """A Kalman filter of four states and two observations, 2000 steps."""
    return kalman_filter(fw)


def kalman_grad(fw):
    """The gradient of the Kalman filter by its observations."""
    f, args = kalman_filter(fw)
    return fw.grad(f), args


def kalman_solve(fw, steps=500):
    """A Kalman filter of six states and three observations that calls solve and slogdet."""
    jnp, lax = fw.numpy, fw.lax
    moves = jnp.eye(6) * 0.95 + normal(fw, 6, 6, scale=0.02)
    sees = normal(fw, 3, 6, scale=1)

    def run(seen):
        def step(state, y):
            mean, cov = state
            mean, cov = moves @ mean, moves @ cov @ moves.T + 0.01 * jnp.eye(6)
            s, miss = sees @ cov @ sees.T + 0.1 * jnp.eye(3), y - sees @ mean
            gain = jnp.linalg.solve(s, sees @ cov).T
            cost = miss @ jnp.linalg.solve(s, miss) + jnp.linalg.slogdet(s)[1]
            return (mean + gain @ miss, cov - gain @ sees @ cov), cost

        return lax.scan(step, (jnp.zeros(6), jnp.eye(6)), seen)[1].sum()

    return run, (normal(fw, steps, 3, scale=1),)


def extended_kalman(fw, steps=300):
    """A filter of a turning vehicle that differentiates its models in each step."""
    jnp, lax = fw.numpy, fw.lax

    def move(s):
        x, y, heading, speed, turn = s
        moved = [x + 0.1 * speed * jnp.cos(heading), y + 0.1 * speed * jnp.sin(heading)]
        return jnp.stack([*moved, heading + 0.1 * turn, speed, turn])

    def see(s):
        return jnp.stack([jnp.sqrt(s[0] ** 2 + s[1] ** 2 + 1), jnp.arctan2(s[1], s[0] + 10)])

    def run(seen):
        def step(state, z):
            mean, cov = state
            f = fw.jacfwd(move)(mean)
            mean, cov = move(mean), f @ cov @ f.T + 0.01 * jnp.eye(5)
            h = fw.jacfwd(see)(mean)
            s = h @ cov @ h.T + 0.5 * jnp.eye(2)
            gain = jnp.linalg.solve(s, h @ cov).T
            mean, cov = mean + gain @ (z - see(mean)), cov - gain @ h @ cov
            return (mean, cov), mean

        return lax.scan(step, (jnp.ones(5), jnp.eye(5)), seen)[1]

    return run, (normal(fw, steps, 2, scale=0.1) + numbers(fw, 5, 0.3),)


def solved_pairs(fw, steps=500):
    """A recursion whose every step solves a system of two equations."""
    jnp, lax = fw.numpy, fw.lax

    def run(x, drives):
        def step(x, drive):
            matrix = jnp.array([[2.0, 0.5], [0.25, 3.0]]) + 0.1 * jnp.outer(x, drive)
            x = jnp.linalg.solve(matrix, jnp.tanh(x) + drive)
            return x, x.sum()

        return lax.scan(step, x, drives)

    return run, (normal(fw, 2, scale=1), normal(fw, steps, 2, scale=1))


# ---- Robots and what steers them


def plane_arm(fw):
    """Angles' accelerations of an arm of three links in a plane, from its points' Jacobian."""
    jnp = fw.numpy

    def points(q):
        a = jnp.cumsum(q)
        return jnp.stack([jnp.cumsum(jnp.cos(a)), jnp.cumsum(jnp.sin(a))])

    def acceleration(q, speed, torque):
        slope = fw.jacfwd(points)
        j = slope(q)
        change = fw.jvp(lambda q: slope(q) @ speed, (q,), (speed,))[1]
        mass = jnp.einsum("xpi,xpj->ij", j, j) + 0.1 * jnp.eye(3)
        pull = 9.8 * j[1].sum(0) + jnp.einsum("xpi,xp->i", j, change)
        return jnp.linalg.solve(mass, torque - pull - 0.5 * speed)

    return acceleration


def robot_arm(fw, steps=200):
    """Forward dynamics of an arm of three links: Jacobians and a solved system in each step."""
    jnp, lax = fw.numpy, fw.lax
    acceleration = plane_arm(fw)

    def run(q, torques):
        def step(state, torque):
            q, speed = state
            speed = speed + 0.005 * acceleration(q, speed, torque)
            return (q + 0.005 * speed, speed), q

        return lax.scan(step, (q, jnp.zeros(3)), torques)[1]

    return run, (normal(fw, 3, scale=0.1), normal(fw, steps, 3, scale=1))


def two_link_arm_grad(fw, steps=200):
    """The gradient by the torques of an arm of two links, whose equations are written out."""
    jnp, lax = fw.numpy, fw.lax

    def loss(torques):
        def step(state, torque):
            a, b, u, v = state
            c, s = jnp.cos(b), jnp.sin(b)
            m, n, o = 3 + 2 * c, 1 + c, 1.0
            first = torque[0] + s * v * (2 * u + v) - 0.2 * u
            second = torque[1] - s * u**2 - 0.2 * v
            det = m * o - n * n + 0.1
            u, v = (
                u + 0.01 * (o * first - n * second) / det,
                v + 0.01 * (m * second - n * first) / det,
            )
            state = a + 0.01 * u, b + 0.01 * v, u, v
            return state, (state[0] - 1) ** 2 + state[1] ** 2

        start = (jnp.float32(0.1), jnp.float32(0.5), jnp.float32(0), jnp.float32(0))
        return lax.scan(step, start, torques)[1].mean() + 1e-3 * (torques**2).sum()

    return fw.value_and_grad(loss), (normal(fw, steps, 2, scale=1),)


def rope(fw, links=16, steps=100):
    """A rope of links: positions that move on, then five rounds that restore the lengths."""
    jnp, lax = fw.numpy, fw.lax

    def run(start):
        def restore(_, x):
            gap = x[1:] - x[:-1]
            length = jnp.sqrt((gap**2).sum(1, keepdims=True) + 1e-9)
            move = 0.25 * gap * (1 - 0.1 / length)
            x = x.at[:-1].add(move).at[1:].add(-move)
            return x.at[0].set(start[0])

        def step(state, _):
            x, before = state
            moved = x + 0.99 * (x - before) + jnp.array([0.0, -9.8e-4])
            return (lax.fori_loop(0, 5, restore, moved), x), None

        return lax.scan(step, (start, start), None, length=steps)[0][0]

    at = np.stack([np.arange(links) * 0.1, np.zeros(links)], 1)
    return run, (fw.numpy.asarray(at.astype("f")),)


def hand_jacobian(fw, fingers=5, joints=3):
    """The forward-mode Jacobian of the finger tips of a hand by the joints' angles."""
    jnp = fw.numpy
    lengths = np.asarray(normal(fw, fingers, joints, scale=0.1)) + 1

    def turn(axis, angle):
        c, s = jnp.cos(angle), jnp.sin(angle)
        rows = [[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]]
        order = [(i - axis) % 3 for i in range(3)]
        return jnp.stack([jnp.stack([jnp.asarray(rows[i][j], "float32") for j in order])
                          for i in order])  # fmt: skip

    def tips(angles):
        wrist = turn(0, angles[0]) @ turn(1, angles[1])
        found = []
        for finger in range(fingers):
            pose, at = wrist, jnp.array([0.2 * finger, 0.0, 0.0])
            for joint in range(joints):
                pose = pose @ turn(joint % 2, angles[2 + finger * joints + joint])
                at = at + pose @ jnp.array([0.0, 0.0, 1.0]) * lengths[finger, joint]
            found.append(at)
        return jnp.stack(found)

    return fw.jacfwd(tips), (normal(fw, 2 + fingers * joints, scale=0.5),)


def riccati(fw, steps=100):
    """Model predictive control: the gains of a linear system backwards, then a rollout."""
    jnp, lax = fw.numpy, fw.lax
    a, b = jnp.eye(4) + normal(fw, 4, 4, scale=0.05), normal(fw, 4, 2, scale=0.3)

    def run(x):
        def back(p, _):
            k = jnp.linalg.solve(0.1 * jnp.eye(2) + b.T @ p @ b, b.T @ p @ a)
            return jnp.eye(4) + a.T @ p @ (a - b @ k), k

        def forward(x, k):
            u = -k @ x
            x = a @ x + b @ u
            return x, (x, u)

        gains = lax.scan(back, jnp.eye(4), None, length=steps)[1]
        return lax.scan(forward, x, gains, reverse=True)[1]

    return run, (normal(fw, 4, scale=1),)


def ilqr(fw, steps=50):
    """A step of iterative LQR for a pendulum: derivatives, gains, and a search for its length."""
    jnp, lax = fw.numpy, fw.lax

    def move(x, u):
        speed = x[1] + 0.05 * (9.8 * jnp.sin(x[0]) - 0.1 * x[1] + u[0])
        return jnp.stack([x[0] + 0.05 * speed, speed])

    def cost(x, u):
        return (1 - jnp.cos(x[0])) + 0.1 * x[1] ** 2 + 0.05 * u[0] ** 2

    def step(start, us):
        def roll(x, u):
            return move(x, u), (x, cost(x, u))

        xs, before = lax.scan(roll, start, us)[1]
        fx, fu = fw.vmap(fw.jacfwd(move, (0, 1)))(xs, us)
        cx, cu = fw.vmap(fw.grad(cost, (0, 1)))(xs, us)
        hessians = fw.vmap(fw.hessian(cost, (0, 1)))(xs, us)

        def back(value, slopes):
            v, vv = value
            fx, fu, cx, cu, ((cxx, _), (cux, cuu)) = slopes
            qx, qu = cx + fx.T @ v, cu + fu.T @ v
            qxx, qux = cxx + fx.T @ vv @ fx, cux + fu.T @ vv @ fx
            quu = cuu + fu.T @ vv @ fu + 0.1 * jnp.eye(1)
            k, kk = -jnp.linalg.solve(quu, qu), -jnp.linalg.solve(quu, qux)
            return (qx + kk.T @ qu, qxx + qux.T @ kk), (k, kk)

        end = jnp.zeros(2), jnp.eye(2)
        gains = lax.scan(back, end, (fx, fu, cx, cu, hessians), reverse=True)[1]

        def follow(length):
            def roll(x, row):
                old, u, (k, kk) = row
                u = u + length * k + kk @ (x - old)
                return move(x, u), (u, cost(x, u))

            return lax.scan(roll, start, (xs, us, gains))[1]

        tried, costs = fw.vmap(follow)(jnp.asarray(0.5 ** np.arange(6, dtype="f")))
        best = jnp.argmin(costs.sum(1))
        return tried[best], costs[best].sum() - before.sum()

    return step, (numbers(fw, 2.0, 0.0), normal(fw, steps, 1, scale=0.1))


def pid_tuning(fw, steps=400):
    """The gradient by its three gains of a controller that steers a tank's temperature."""
    jnp, lax = fw.numpy, fw.lax

    def loss(gains):
        def step(state, _):
            heat, summed, last = state
            miss = 1.0 - heat
            summed = jnp.clip(summed + 0.05 * miss, -2, 2)
            drive = gains[0] * miss + gains[1] * summed + gains[2] * (miss - last) / 0.05
            heat = heat + 0.05 * (jnp.tanh(drive) * 2 - heat)
            return (heat, summed, miss), miss**2 + 0.01 * drive**2

        start = (jnp.float32(0), jnp.float32(0), jnp.float32(1))
        return lax.scan(step, start, None, length=steps)[1].mean()

    return fw.value_and_grad(loss), (numbers(fw, 1.0, 0.5, 0.05),)


# ---- Tasks of control


def cartpole_batch(fw, carts=32, steps=400):
    """Carts with poles under a linear policy, and the gradient by it."""
    jnp, lax = fw.numpy, fw.lax

    def cost(policy, start):
        def step(state, _):
            x, speed, angle, turn = state
            force = jnp.clip(10 * jnp.tanh(policy @ jnp.stack(state)), -10, 10)
            s, c = jnp.sin(angle), jnp.cos(angle)
            push = (force + 0.05 * turn**2 * s) / 1.1
            bend = (9.8 * s - c * push) / (0.5 * (4 / 3 - 0.1 * c**2 / 1.1))
            go = push - 0.05 * bend * c / 1.1
            moved = x + 0.02 * speed, speed + 0.02 * go, angle + 0.02 * turn, turn + 0.02 * bend
            return moved, x**2 + angle**2

        return lax.scan(step, tuple(start), None, length=steps)[1].mean()

    def loss(policy, starts):
        return fw.vmap(lambda s: cost(policy, s))(starts).mean()

    return fw.grad(loss), (normal(fw, 4, scale=0.1), normal(fw, carts, 4, scale=0.05))


def pendulum_rollout(fw, steps=200):
    """A pendulum that a small network swings, with the gradient by the network."""
    jnp, lax = fw.numpy, fw.lax
    net = normal(fw, 3, 8), normal(fw, 8, 1)

    def loss(net):
        def step(state, _):
            angle, speed = state
            seen = jnp.stack([jnp.cos(angle), jnp.sin(angle), speed])
            push = 2 * jnp.tanh(jnp.tanh(seen @ net[0]) @ net[1])[0]
            speed = jnp.clip(speed + 0.05 * (15 * jnp.sin(angle) + 3 * push), -8, 8)
            angle = angle + 0.05 * speed
            return (angle, speed), angle**2 + 0.1 * speed**2 + 0.001 * push**2

        return lax.scan(step, (jnp.float32(0.1), jnp.float32(0)), None, length=steps)[1].mean()

    return fw.value_and_grad(loss), (net,)


def mountain_car(fw, cars=16, steps=300):
    """Cars in a valley, each until it is over the hill, in a batched loop with a condition."""
    jnp, lax = fw.numpy, fw.lax

    def drive(start):
        def go_on(state):
            place, _, count = state
            return (place < 0.5) & (count < steps)

        def step(state):
            place, speed, count = state
            push = jnp.where(speed < 0, -1, 1)
            speed = jnp.clip(speed + 0.001 * push - 0.0025 * jnp.cos(3 * place), -0.07, 0.07)
            place = jnp.clip(place + speed, -1.2, 0.6)
            return place, jnp.where(place <= -1.2, 0.0, speed), count + 1

        return lax.while_loop(go_on, step, (start, jnp.float32(0), jnp.int32(0)))

    starts = np.linspace(-0.6, -0.4, cars).astype("f")
    return fw.vmap(drive), (jnp.asarray(starts),)


def q_learning(fw, cells=16, steps=500):
    """Learning a table of values of a corridor, one update of the table in each step."""
    jnp, lax, random = fw.numpy, fw.lax, fw.random

    def run(key):
        def step(state, key):
            table, place = state
            explore, pick = random.split(key)
            greedy = jnp.argmax(table[place])
            action = jnp.where(
                random.uniform(explore) < 0.3, random.randint(pick, (), 0, 2), greedy
            )
            after = jnp.clip(place + 2 * action - 1, 0, cells - 1)
            reward = (after == cells - 1).astype("float32")
            target = reward + 0.9 * table[after].max() * (1 - reward)
            table = table.at[place, action].add(0.5 * (target - table[place, action]))
            return (table, jnp.where(reward > 0, 0, after)), reward

        start = jnp.ones((cells, 2)), jnp.int32(0)
        return lax.scan(step, start, random.split(key, steps))

    return run, (fw.random.PRNGKey(3),)


# ---- Small networks


def sgd_scan(fw, steps=500):
    """Steps of gradient descent of a network of three layers, in one loop."""
    jnp, lax = fw.numpy, fw.lax
    x, y = np.asarray(normal(fw, 8, 16, scale=1)), np.zeros((8, 4), "f")
    sizes = (16, 32), (32, 32), (32, 4)
    weights = [normal(fw, *size, scale=0.1, seed=i) for i, size in enumerate(sizes)]

    def loss(weights):
        h = x
        for w in weights:
            h = jnp.tanh(h @ w)
        return jnp.mean((h - y) ** 2)

    def run(weights):
        def step(weights, _):
            value, slopes = fw.value_and_grad(loss)(weights)
            return [w - 0.1 * d for w, d in zip(weights, slopes, strict=True)], value

        return lax.scan(step, weights, None, length=steps)

    return run, (weights,)


def recurrent_grad(fw, cell, weights, state, steps):
    """The gradient of the last state's size, by the weights of a cell."""
    lax = fw.lax

    def loss(weights, xs):
        last, seen = lax.scan(functools.partial(cell, weights), state, xs)
        return (seen**2).mean()

    return fw.value_and_grad(loss), (weights, normal(fw, steps, 4, scale=1))


def elman_grad(fw, width=8):
    """The gradient of a network with one recurrent layer."""
    jnp = fw.numpy

    def cell(weights, h, x):
        h = jnp.tanh(x @ weights[0] + h @ weights[1] + weights[2])
        return h, h

    weights = normal(fw, 4, width), normal(fw, width, width), jnp.zeros(width)
    return recurrent_grad(fw, cell, weights, jnp.zeros(width), 200)


def gru_grad(fw, width=8):
    """The gradient of a network of gated units."""
    jnp, nn = fw.numpy, fw.nn

    def cell(weights, h, x):
        a = x @ weights[0] + weights[2]
        b = h @ weights[1]
        z, r = nn.sigmoid(a[:width] + b[:width]), nn.sigmoid(a[width:-width] + b[width:-width])
        h = (1 - z) * jnp.tanh(a[-width:] + r * b[-width:]) + z * h
        return h, h

    weights = normal(fw, 4, 3 * width), normal(fw, width, 3 * width), jnp.zeros(3 * width)
    return recurrent_grad(fw, cell, weights, jnp.zeros(width), 100)


def lstm_grad(fw, width=12, batch=4):
    """The gradient of a network of long short-term memory, of a few sequences at once."""
    jnp, nn = fw.numpy, fw.nn

    def cell(weights, state, x):
        h, c = state
        a = x @ weights[0] + h @ weights[1] + weights[2]
        i, f, g, o = jnp.split(a, 4, axis=-1)
        c = nn.sigmoid(f) * c + nn.sigmoid(i) * jnp.tanh(g)
        h = nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    weights = normal(fw, 4, 4 * width), normal(fw, width, 4 * width), jnp.zeros(4 * width)
    start = jnp.zeros((batch, width)), jnp.zeros((batch, width))
    f, (weights, xs) = recurrent_grad(fw, cell, weights, start, 60)
    return f, (weights, jnp.stack([xs, 0.5 * xs, -xs, xs[::-1]], 1))


# ---- Integrators


def rk45(fw):
    """Dormand and Prince's integrator of a predator and its prey, with steps of its choice."""
    jnp, lax = fw.numpy, fw.lax
    stages = [
        [1 / 5],
        [3 / 40, 9 / 40],
        [44 / 45, -56 / 15, 32 / 9],
        [19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729],
        [9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656],
    ]
    fifth = [35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84]
    differs = [71 / 57600, 0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525]

    def slope(y):
        met = y[0] * y[1]
        return jnp.stack([1.1 * y[0] - 0.4 * met, 0.1 * met - 0.4 * y[1]])

    def run(y):
        def mixed(weights, ks):
            return sum(w * k for w, k in zip(weights, ks, strict=True))

        def step(state):
            t, y, h = state
            ks = [slope(y)]
            for row in stages:
                ks.append(slope(y + h * mixed(row, ks)))
            new = y + h * mixed(fifth, ks)
            error = jnp.max(jnp.abs(h * mixed(differs, ks)) / (1e-6 + 1e-5 * jnp.abs(new)))
            longer = h * jnp.clip(0.9 * (error + 1e-10) ** -0.2, 0.2, 5.0)
            good = error <= 1
            return jnp.where(good, t + h, t), jnp.where(good, new, y), longer

        start = jnp.float32(0), y, jnp.float32(0.01)
        return lax.while_loop(lambda s: s[0] < 100.0, step, start)[1]

    return run, (numbers(fw, 10, 5),)


def bouncing_ball(fw, bounces=20):
    """A ball with drag that bounces: steps of Heun's method, cut by bisection where it lands."""
    jnp, lax = fw.numpy, fw.lax

    def move(state, h):
        slope = lambda s: jnp.stack([s[1], -9.8 - 0.1 * s[1] * jnp.abs(s[1])])
        first = slope(state)
        return state + h / 2 * (first + slope(state + h * first))

    def fly(_, carry):
        t, state = carry
        inside = lambda c: move(c[1], 0.01)[0] > 0
        t, state = lax.while_loop(inside, lambda c: (c[0] + 0.01, move(c[1], 0.01)), (t, state))

        def halve(_, ends):
            low, high = ends
            middle = (low + high) / 2
            above = move(state, middle)[0] > 0
            return jnp.where(above, middle, low), jnp.where(above, high, middle)

        low, _ = lax.fori_loop(0, 15, halve, (jnp.float32(0), jnp.float32(0.01)))
        landed = move(state, low)
        return t + low, jnp.stack([jnp.float32(1e-4), -0.9 * landed[1]])

    def run(state):
        return lax.fori_loop(0, bounces, fly, (jnp.float32(0), state))

    return run, (numbers(fw, 2.0, 0.0),)


def lorenz_sensitivity(fw, steps=300):
    """Runge and Kutta's method for Lorenz's equations, and its derivative by their numbers."""
    jnp, lax = fw.numpy, fw.lax

    def last(params):
        def slope(s):
            x, y, z = s
            return jnp.stack([params[0] * (y - x), x * (params[1] - z) - y, x * y - params[2] * z])

        def step(s, _):
            a = slope(s)
            b = slope(s + 0.0025 * a)
            c = slope(s + 0.0025 * b)
            d = slope(s + 0.005 * c)
            return s + 0.005 / 6 * (a + 2 * b + 2 * c + d), None

        return lax.scan(step, jnp.ones(3), None, length=steps)[0]

    return fw.jacfwd(last), (numbers(fw, 10, 28, 8 / 3),)


def quaternions(fw, bodies=32, steps=200):
    """Turning bodies: unit quaternions that are integrated and normalised, as a batch."""
    jnp, lax = fw.numpy, fw.lax
    inertia = np.array([1.0, 2.0, 3.0], "f")

    def spin(q, turn):
        def step(state, _):
            q, turn = state
            turn = turn - 0.01 * jnp.cross(turn, inertia * turn) / inertia
            w, x, y, z = q
            a, b, c = turn
            change = jnp.stack([
                -x * a - y * b - z * c, w * a + y * c - z * b,
                w * b + z * a - x * c, w * c + x * b - y * a,
            ])  # fmt: skip
            q = q + 0.005 * change
            return (q / jnp.sqrt((q**2).sum()), turn), q[0]

        return lax.scan(step, (q, turn), None, length=steps)

    return fw.vmap(spin), (normal(fw, bodies, 4, scale=1), normal(fw, bodies, 3, scale=1))


PROGRAMS = {
    f.__name__: f
    for f in (
        scalar_carries,
        scalar_carries_grad,
        kalman,
        kalman_grad,
        kalman_solve,
        extended_kalman,
        solved_pairs,
        robot_arm,
        two_link_arm_grad,
        rope,
        hand_jacobian,
        riccati,
        ilqr,
        pid_tuning,
        cartpole_batch,
        pendulum_rollout,
        mountain_car,
        q_learning,
        sgd_scan,
        elman_grad,
        gru_grad,
        lstm_grad,
        rk45,
        bouncing_ball,
        lorenz_sensitivity,
        quaternions,
    )
}
