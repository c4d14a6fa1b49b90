"""Steps of libraries that are written for JAX, under weft (`import weft.as_jax`) and under jax.

usage: libraries.py [--rounds N] [--json OUT] [PROGRAM ...]

Run it with a Python that has jaxlib, jax and the libraries: `pip install jax numpyro blackjax
diffrax optimistix gymnax` in an environment of its own, with weft installed or its checkout in
PYTHONPATH. turns.py says how programs are measured. What a library asks of jax while it is imported
counts for neither.
"""

import importlib
import sys

import numpy as np
import turns


def numpyro_nuts(jax):
    """Twenty steps of the No-U-Turn sampler for a regression of 50 points and 4 numbers."""
    import numpyro
    import numpyro.distributions as dist
    from numpyro.infer import NUTS

    jnp = jax.numpy
    rng = np.random.default_rng(0)
    x = rng.standard_normal((50, 3)).astype("f")
    y = (x @ np.array([1, -2, 0.5], "f") + 0.3 * rng.standard_normal(50)).astype("f")

    def model(x, y):
        weights = numpyro.sample("weights", dist.Normal(jnp.zeros(3), 1.0).to_event(1))
        spread = numpyro.sample("spread", dist.HalfNormal(1.0))
        numpyro.sample("y", dist.Normal(x @ weights, spread), obs=y)

    kernel = NUTS(model, step_size=0.1, adapt_step_size=False, max_tree_depth=5)
    state = kernel.init(jax.random.PRNGKey(0), 0, None, (x, y), {})

    def steps(state):
        def step(state, _):
            state = kernel.sample(state, (x, y), {})
            return state, state.z["weights"]

        return jax.lax.scan(step, state, None, length=20)[1]

    return steps, (state,)


def blackjax_hmc(jax):
    """Fifty steps of Hamiltonian Monte Carlo for a twisted density of two numbers."""
    import blackjax

    jnp = jax.numpy

    def density(x):
        return -0.5 * (x[0] ** 2 + (x[1] - x[0] ** 2) ** 2)

    sampler = blackjax.hmc(density, 0.1, jnp.ones(2), num_integration_steps=10)
    state = sampler.init(jnp.array([0.5, 0.2]))

    def steps(key, state):
        def step(state, key):
            state, _ = sampler.step(key, state)
            return state, state.position

        return jax.lax.scan(step, state, jax.random.split(key, 50))[1]

    return steps, (jax.random.PRNGKey(0), state)


def diffrax_tsit5(jax):
    """A solution of an oscillator by Tsitouras' method with chosen steps, and its gradient."""
    import diffrax

    jnp = jax.numpy

    def loss(params):
        def slope(t, y, params):
            return jnp.stack([y[1], params[0] * (1 - y[0] ** 2) * y[1] - params[1] * y[0]])

        solution = diffrax.diffeqsolve(
            diffrax.ODETerm(slope),
            diffrax.Tsit5(),
            0.0,
            5.0,
            0.1,
            jnp.array([1.0, 0.0]),
            params,
            stepsize_controller=diffrax.PIDController(1e-4, 1e-4),
            saveat=diffrax.SaveAt(ts=jnp.linspace(0, 5, 20)),
            max_steps=256,
        )
        return (solution.ys**2).sum()

    return jax.value_and_grad(loss), (jnp.array([1.0, 2.0]),)


def gymnax_rollout(jax):
    """Eight environments of CartPole for 200 steps, under a linear policy."""
    import gymnax

    jnp = jax.numpy
    env, params = gymnax.make("CartPole-v1")

    def rollout(key, policy):
        first, second = jax.random.split(key)
        seen, state = env.reset(first, params)

        def step(carry, key):
            seen, state = carry
            action = (seen @ policy > 0).astype("int32")
            seen, state, reward, *_ = env.step(key, state, action, params)
            return (seen, state), reward

        return jax.lax.scan(step, (seen, state), jax.random.split(second, 200))[1].sum()

    keys = jax.random.split(jax.random.PRNGKey(0), 8)
    return jax.vmap(rollout, (0, None)), (keys, jnp.array([0.1, 0.5, 1.0, 1.0]))


def optimistix_root(jax):
    """A root of five equations by Newton's method, for a batch of right sides."""
    import optimistix

    jnp = jax.numpy

    def equations(x, right):
        return x + 0.3 * jnp.sin(jnp.roll(x, 1)) - right

    def solve(right):
        solver = optimistix.Newton(rtol=1e-5, atol=1e-5)
        return optimistix.root_find(equations, solver, jnp.zeros(5), right, max_steps=30).value

    rights = np.random.default_rng(0).standard_normal((8, 5)).astype("f")
    return jax.vmap(solve), (jnp.asarray(rights),)


def optimistix_fit(jax):
    """A curve of two numbers fitted by Levenberg and Marquardt's method."""
    import optimistix

    jnp = jax.numpy
    t = jnp.linspace(0, 2, 30)

    def miss(params, y):
        return params[0] * jnp.exp(-params[1] * t) - y

    def fit(y):
        solver = optimistix.LevenbergMarquardt(rtol=1e-4, atol=1e-4)
        return optimistix.least_squares(miss, solver, jnp.ones(2), y, max_steps=50).value

    return fit, (2 * jnp.exp(-1.5 * t),)


PROGRAMS = {
    f.__name__: f
    for f in (
        numpyro_nuts,
        blackjax_hmc,
        diffrax_tsit5,
        gymnax_rollout,
        optimistix_root,
        optimistix_fit,
    )
}


def load(framework):
    if framework == "weft":
        importlib.import_module("weft.as_jax")
    jax = importlib.import_module("jax")
    importlib.import_module("jax.numpy")
    return jax


if __name__ == "__main__":
    sys.exit(turns.run(__doc__, __file__, PROGRAMS, load))
