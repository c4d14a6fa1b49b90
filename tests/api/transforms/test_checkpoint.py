"""checkpoint: the derivatives stay, what is kept for them changes."""

import re

import numpy as np
import programs_oracle
import pytest
from oracle import needs_jax

import weft
import weft.numpy as wnp
from weft import errors
from weft.ad_checkpoint import checkpoint_name
from weft.test_util import check_grads

policies = weft.checkpoint_policies
RNG = np.random.default_rng(0)
W = RNG.standard_normal((4, 4)).astype("f")
X = RNG.standard_normal((3, 4)).astype("f")


def layer(x, w=W):
    return wnp.sin(wnp.sin(x @ w) @ w)


POLICIES = {
    "none": None,
    "everything": policies.everything_saveable,
    "nothing": policies.nothing_saveable,
    "dots": policies.dots_saveable,
    "dots_no_batch": policies.dots_with_no_batch_dims_saveable,
    "names": policies.save_only_these_names("a"),
    "other_names": policies.save_any_names_but_these("a"),
    "all_but_names": policies.save_anything_except_these_names("a"),
    "both": policies.save_from_both_policies(
        policies.dots_saveable, policies.save_only_these_names("a")
    ),
    "own": lambda primitive, *types, **params: primitive.name == "sin",
}


def named(x, w):
    y = checkpoint_name(wnp.sin(x @ w), "a")
    z = checkpoint_name(wnp.cos(y @ w), "b")
    return (weft.jit(lambda z: wnp.sin(z) * z)(z), wnp.sum(y))


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("prevent_cse", (True, False))
def test_derivatives_are_the_same(policy, prevent_cse):
    f = weft.checkpoint(named, policy=POLICIES[policy], prevent_cse=prevent_cse)
    value, pull = weft.vjp(named, X, W)
    other, other_pull = weft.vjp(f, X, W)
    close(value, other)
    close(pull(value), other_pull(value))
    close(weft.jvp(named, (X, W), (X, W)), weft.jvp(f, (X, W), (X, W)))
    loss = lambda g: lambda x: sum(wnp.sum(y**2) for y in weft.tree.leaves(g(x, W)))
    close(weft.grad(loss(named))(X), weft.jit(weft.grad(loss(f)))(X))
    close(weft.hessian(loss(named))(X), weft.hessian(loss(f))(X), rtol=1e-3)
    stacked = np.stack([X, X + 1])
    close(weft.vmap(weft.grad(loss(named)))(stacked), weft.vmap(weft.grad(loss(f)))(stacked))
    close(
        weft.grad(lambda x: loss(lambda x, w: weft.vmap(named, (0, None))(x, w))(x))(stacked),
        weft.grad(lambda x: loss(lambda x, w: weft.vmap(f, (0, None))(x, w))(x))(stacked),
    )


def close(a, b, rtol=2e-4):
    for x, y in zip(weft.tree.leaves(a), weft.tree.leaves(b), strict=True):
        np.testing.assert_allclose(x, y, rtol=rtol, atol=1e-4)


def test_second_order_against_differences():
    with weft.enable_x64(True):
        f = weft.checkpoint(lambda x: layer(x, W.astype("d")).sum())
        check_grads(f, (X.astype("d"),), order=2)


def kept(f, *args):
    """Shapes of what the linear half takes beside tangents and arguments, by the core's word."""
    rec = weft._core.trace_body(lambda xs: [f(*xs)], list(args), "f", None, "")[0]
    forward, _, _, residuals = weft._core.linearize_graph(rec, [True] * len(rec.in_types))
    return [forward.out_types[index][0] for kind, index in residuals if kind == "output"]


@pytest.mark.parametrize(
    ("policy", "count"),
    [
        ("none", 0),
        ("nothing", 0),
        ("dots", 2),
        ("names", 1),
        ("other_names", 1),
        ("both", 3),
        ("own", 2),
    ],
)
def test_what_is_kept(policy, count):
    def f(x):
        y = checkpoint_name(wnp.sin(x @ W), "a")
        z = checkpoint_name(wnp.cos(y @ W), "b")
        return wnp.sum(z * z)

    assert len(kept(weft.checkpoint(f, policy=POLICIES[policy]), X)) == count


def test_policies_look_into_calls():
    inner = weft.jit(lambda x: wnp.sin(x @ W))
    f = weft.checkpoint(lambda x: wnp.sum(inner(inner(x))), policy=policies.dots_saveable)
    assert len(kept(f, X)) == 2


def test_batched_products():
    f = lambda x: wnp.sum(wnp.sin(weft.lax.batch_matmul(x, x)))
    x = np.ones((2, 3, 3), "f")
    assert len(kept(weft.checkpoint(f, policy=policies.dots_saveable), x)) == 1
    no_batch = policies.dots_with_no_batch_dims_saveable
    assert len(kept(weft.checkpoint(f, policy=no_batch), x)) == 0


def test_values_are_computed_again_after_a_barrier():
    f = weft.checkpoint(lambda x: wnp.sum(wnp.sin(wnp.sin(x))))

    def loss(x):
        return f(x) * 2

    text = weft.jit(weft.value_and_grad(loss)).lower(X).as_text()
    assert "optimization_barrier" in text
    assert len(re.findall("stablehlo.sine", text)) == 3
    free = weft.checkpoint(lambda x: wnp.sum(wnp.sin(wnp.sin(x))), prevent_cse=False)
    text = weft.jit(weft.value_and_grad(lambda x: free(x) * 2)).lower(X).as_text()
    assert "optimization_barrier" not in text


def test_less_memory_is_kept():
    def block(x):
        for _ in range(6):
            x = wnp.sin(x @ W)
        return x

    def deep(x, wrap):
        for _ in range(8):
            x = wrap(block)(x)
        return wnp.sum(x)

    x = np.ones((1 << 12, 4), "f")

    def temporaries(wrap):
        compiled = weft.jit(weft.grad(lambda x: deep(x, wrap))).lower(x).compile()
        return compiled.memory_analysis().temp_size_in_bytes

    assert temporaries(weft.checkpoint) < temporaries(lambda f: f) / 3


def test_closures_statics_and_keywords():
    scale = 3.0

    def f(x, mode, *, shift=0.0):
        return wnp.sum(wnp.sin(x) if mode == "sin" else x) * scale + shift

    g = weft.checkpoint(f, static_argnums=(1,))
    close(weft.grad(g)(X, "sin"), 3 * np.cos(X))
    close(weft.grad(lambda x: g(x, "id", shift=wnp.sum(x)))(X), np.full_like(X, 4))
    close(weft.grad(lambda s: weft.checkpoint(lambda x: x * s)(s * 2.0))(3.0), 12.0)
    wrapped = weft.remat(prevent_cse=False)(f)
    assert wrapped.__name__ == "f"


def test_python_control_flow_in_a_checkpoint():
    f = weft.checkpoint(lambda x: wnp.sin(x) if x > 0 else x * 5)
    assert weft.grad(f)(-1.0) == 5
    close(weft.grad(f)(1.0), np.cos(1.0))


def test_names_change_nothing():
    f = lambda x: checkpoint_name({"a": wnp.sin(x)}, "n")["a"]
    close(f(X), np.sin(X))
    assert "name[name=n]" in str(weft.make_jaxpr(f)(X))
    assert "name" not in weft.jit(f).lower(X).as_text().split("main", 1)[1]
    close(weft.grad(lambda x: weft.vmap(f)(x).sum())(X), np.cos(X))


def test_policies_can_be_asked():
    assert policies.dots_saveable("sin") is False
    own = lambda p, *_, **params: policies.save_only_these_names("a")(p, **params)
    f = weft.checkpoint(lambda x: wnp.sum(checkpoint_name(wnp.sin(x), "a") ** 2), policy=own)
    assert len(kept(f, X)) == 1
    assert "save_only_these_names('a',)" in repr(policies.save_only_these_names("a"))


def test_mistakes():
    with pytest.raises(TypeError, match="checkpoint expected a function"):
        weft.checkpoint(3)
    with pytest.raises(TypeError, match="policy to be a function"):
        weft.checkpoint(layer, policy="dots")
    with pytest.raises(errors.ArgumentTypeError, match=r"argument x\['a'\].*'f'"):

        def f(x):
            return x["b"]

        weft.grad(lambda y: weft.checkpoint(f)({"a": "text", "b": y}))(1.0)
    with pytest.raises(errors.AttributeValueError, match="static_argnums=4"):
        weft.checkpoint(layer, static_argnums=4)(1.0)
    with pytest.raises(TypeError, match="checkpoint_name expected a string"):
        checkpoint_name(1.0, 3)
    with pytest.raises(TypeError, match="from the policy"):

        def refuses(*args, **params):
            raise TypeError("from the policy")

        weft.grad(weft.checkpoint(lambda x: wnp.sin(wnp.sin(x)), policy=refuses))(1.0)


PROGRAMS = {
    "nested": """
h = fw.checkpoint(lambda x: fw.checkpoint(lambda y: np.sin(np.exp(y)))(np.cos(x)))
result = fw.grad(h)(0.3), fw.grad(fw.grad(h))(0.3), fw.jit(fw.grad(h))(0.3)
""",
    "scalars_and_trees": """
h = fw.checkpoint(lambda p: {"r": np.sin(p["a"]) * p["b"]})
result = fw.grad(lambda p: h(p)["r"])({"a": 2.0, "b": 3.0})
""",
    "linearize": """
y, lin = fw.linearize(fw.checkpoint(lambda x: np.sin(np.sin(x))), 0.5)
result = y, lin(2.0)
""",
    "integer_argument": """
h = fw.checkpoint(lambda x, n: np.sin(x) * n)
result = fw.grad(h)(1.0, 3), fw.grad(lambda x: h(x, np.arange(3)).sum())(1.0)
""",
}


@needs_jax
@pytest.mark.oracle
@pytest.mark.parametrize("name", PROGRAMS)
def test_as_jax(name):
    programs_oracle.check(PROGRAMS, name)


def compiles(f):
    before = weft._core.cache_stats()["compiles"]
    f()
    return weft._core.cache_stats()["compiles"] - before


# Policies that are made anew at each call.
FRESH = {
    "names": lambda: policies.save_only_these_names("a"),
    "any_but": lambda: policies.save_any_names_but_these("a", "b"),
    "own": lambda: lambda primitive, *types, **params: primitive.name == "sin",
}


@pytest.mark.parametrize("policy", FRESH.values(), ids=FRESH)
@pytest.mark.parametrize("wrap", [lambda f: f, weft.grad], ids=["plain", "grad"])
def test_fresh_policies_compile_nothing_anew(policy, wrap):
    def run():
        def loss(x):
            return weft.checkpoint(lambda x: wnp.sin(checkpoint_name(x @ W, "a")).sum(),
                                   policy=policy())(x)  # fmt: skip

        return weft.jit(wrap(loss))(X)

    first = run()
    assert compiles(lambda: np.testing.assert_array_equal(run(), first)) == 0


def test_policies_are_compared_by_content():
    def graph(policy):
        return weft.jit(weft.checkpoint(layer, policy=policy)).trace(X).graph

    one, two = (graph(policies.save_only_these_names("a", "b")) for _ in range(2))
    assert one == two and hash(one) == hash(two)
    assert one != graph(policies.save_only_these_names("a"))
    assert one != graph(policies.save_any_names_but_these("a", "b"))
    assert "save_only_these_names(a, b)" in str(one)
