"""Libraries that are written for JAX run on weft, by `import weft.as_jax` (docs/libraries.md).

Each row is a program of such a library and what it gives with JAX. They run in one process of their
own, in which `import jax` gives weft.
"""

import importlib.util
import json
import os
import subprocess
import sys
import textwrap

import pytest

PROGRAMS = {
    "optax": """
        import optax
        params, best = {"w": jnp.zeros((3, 2)), "b": jnp.zeros(2)}, 1e9
        x = jax.random.normal(jax.random.key(0), (16, 3))
        y = x @ jnp.arange(6.0).reshape(3, 2) - 1
        schedule = optax.warmup_cosine_decay_schedule(0.0, 0.5, 5, 40)
        clip, adam = optax.clip_by_global_norm(5.0), optax.adamw(schedule, weight_decay=0)
        optimizer = optax.chain(clip, adam)
        state = optimizer.init(params)

        @jax.jit
        def step(params, state):
            loss = lambda p: jnp.mean((x @ p["w"] + p["b"] - y) ** 2)
            value, gradient = jax.value_and_grad(loss)(params)
            updates, state = optimizer.update(gradient, state, params)
            return optax.apply_updates(params, updates), state, value

        for _ in range(40):
            params, state, value = step(params, state)
        result = [round(float(value), 4), int(state[1][0].count)]
    """,
    "optax_lbfgs": """
        import optax
        f = lambda x: jnp.sum((x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)
        optimizer = optax.lbfgs()
        x = jnp.zeros(3)
        state, value_and_grad = optimizer.init(x), optax.value_and_grad_from_state(f)

        @jax.jit
        def step(x, state):
            value, g = value_and_grad(x, state=state)
            updates, state = optimizer.update(g, state, x, value=value, grad=g, value_fn=f)
            return optax.apply_updates(x, updates), state

        for _ in range(20):
            x, state = step(x, state)
        result = [round(float(v), 2) for v in x]
    """,
    "equinox": """
        import equinox as eqx
        model = eqx.nn.MLP(2, 1, 8, 2, key=jax.random.key(0))
        x = jax.random.normal(jax.random.key(1), (32, 2))

        @eqx.filter_jit
        def step(model):
            loss = lambda m: jnp.mean((jax.vmap(m)(x)[:, 0] - x[:, 0] * x[:, 1]) ** 2)
            value, gradient = eqx.filter_value_and_grad(loss)(model)
            return eqx.apply_updates(model, jax.tree.map(lambda g: -0.1 * g, gradient)), value

        first = step(model)[1]
        for _ in range(20):
            model, value = step(model)
        guarded = eqx.filter_jit(lambda x: eqx.error_if(x, x < 0, "negative"))
        try:
            guarded(jnp.float32(-1)).block_until_ready()
        except Exception as error:
            caught = type(error) is eqx.EquinoxRuntimeError and "negative" in str(error)
        result = [bool(value < first), float(guarded(jnp.float32(2))), caught]
    """,
    "equinox_filter_jvp": """
        import equinox as eqx

        def f(x):
            value, slope = eqx.filter_jvp(lambda y: (y ** 3, "text"), (x,), (1.0,))
            return value[0], slope[0], value[1] == "text" and slope[1] is None

        result = [float(v) for v in f(2.0)]
        result += jax.vmap(jax.grad(lambda x: f(x)[1]))(jnp.arange(3.0)).tolist()
    """,
    "lineax": """
        import lineax as lx

        def solve(a, b):
            return lx.linear_solve(lx.MatrixLinearOperator(a), b, lx.LU()).value

        a = jnp.array([[[2.0, 0.0], [0.0, 4.0]], [[0.0, 1.0], [1.0, 0.0]]])
        result = jax.vmap(solve, in_axes=(0, None))(a, jnp.array([2.0, 4.0])).tolist()
        slopes = jax.vmap(jax.grad(lambda b: solve(a[0], b).sum()))
        result += jax.jit(slopes)(jnp.ones((1, 2))).tolist()
    """,
    "diffrax": """
        import diffrax
        term = diffrax.ODETerm(lambda t, y, rate: -rate * y)
        control = diffrax.PIDController(1e-5, 1e-5)

        def end(rate):
            solution = diffrax.diffeqsolve(
                term, diffrax.Tsit5(), 0.0, 1.0, 0.1, jnp.array([1.0, 2.0]), args=rate,
                stepsize_controller=control)
            return solution.ys.sum()

        value, slope = jax.jit(jax.value_and_grad(end))(0.5)
        result = [round(float(value), 3), round(float(slope), 3)]
    """,
}
EXPECTED = {
    "optax": [0.3506, 40],
    "optax_lbfgs": [1.0, 1.0, 1.0],
    "equinox": [True, 2.0, True],
    "equinox_filter_jvp": [8.0, 12.0, 1.0, 0.0, 6.0, 12.0],
    "lineax": [[1.0, 1.0], [4.0, 2.0], [0.5, 0.25]],
    "diffrax": [1.82, -1.82],  # 3 exp(-0.5), and its derivative
}


@pytest.fixture(scope="module")
def results():
    lines = ["import json, warnings", "warnings.simplefilter('ignore')", "import weft.as_jax"]
    lines += ["import jax, jax.numpy as jnp", "assert jax.jit.__module__.startswith('weft')"]
    lines += ["results = {}"]
    for name, program in PROGRAMS.items():
        body = textwrap.indent(textwrap.dedent(program), "    ")
        lines += ["try:", body, f"    results[{name!r}] = result"]
        lines += ["except Exception as error:", f"    results[{name!r}] = repr(error)"]
    lines += ["print(json.dumps(results))"]
    run = subprocess.run(
        [sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, timeout=300
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout.splitlines()[-1])


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(results, name):
    assert results[name] == EXPECTED[name]


def test_refused_where_jax_is_there():
    code = "import sys, types; sys.modules['jax'] = types.ModuleType('jax'); import weft.as_jax"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert run.returncode == 1
    assert "ImportError: weft.as_jax expected that jax is not imported yet" in run.stderr


def test_arrays_on_several_devices():
    code = """
import weft.as_jax, jax, numpy as np
from jax.sharding import *
jax.config.update("weft_num_cpu_devices", 4)
split = NamedSharding(jax.make_mesh((4,), ("x",)), PartitionSpec("x"))
x = jax.device_put(np.arange(8.0), split)
assert (np.asarray(x) == np.arange(8)).all() and len(x.addressable_shards) == 4
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stderr


def test_what_weft_lacks_is_told():
    code = "import weft.as_jax, jax; jax.lax.no_such_name"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert run.returncode == 1
    assert "AttributeError" in run.stderr and "no_such_name" in run.stderr


def test_what_is_known_of_results():
    import weft
    import weft.numpy as wnp
    from weft._as_jax import flat

    inner = weft.jit(lambda a, b: (a * 2, b + 1))

    def body(tree, key):
        doubled, _ = inner(tree["known"], tree["unknown"])
        return {"a": doubled, "b": tree["unknown"].sum(), "c": weft.random.normal(KEY, (2,))}

    KEY = weft.random.key(0)
    leaves, tree = weft.tree.flatten((({"known": wnp.arange(3.0), "unknown": 0}, 0), {}))
    fun, out_tree = flat.flatten_fun(flat.wrap_init(body), tree)
    unknown = flat.PartialVal.unknown(weft.typeof(wnp.ones((2, 2))))
    known = [flat.PartialVal.known(leaf) for leaf in leaves]

    def evaluated(x):
        known[0] = flat.PartialVal.known(x)
        _, out, _ = flat.trace_to_jaxpr_nounits(fun, [known[0], unknown, known[2]])
        assert str(out[1].pval) == "float32[]" and out[0].pval is None is out[2].pval
        assert out_tree() == weft.tree.structure({"a": 0, "b": 0, "c": 0})
        return out[0].const, out[2].const

    wanted = [[0, 2, 4], weft.random.normal(KEY, (2,)).tolist()]
    for each in (evaluated, weft.jit(evaluated)):
        assert [value.tolist() for value in each(leaves[0])] == wanted
    positional, _ = flat.flatten_fun_nokwargs(flat.WrappedFun(lambda x: [x, x]), tree.children()[0])
    with pytest.raises(TypeError):
        positional.call_wrapped(*leaves)
    assert dict in flat.NodeClasses() and type(None) in flat.NodeClasses()
    assert int not in flat.NodeClasses()


def test_functions_with_static_arguments():
    import weft
    from weft._as_jax import flat

    fun = flat.wrap_init(lambda x, n, y=0: x * n + y)
    partial, dynamic = flat.argnums_partial(fun, (0,), [3, 2])
    assert dynamic == (3,) and partial.call_wrapped(5, y=1) == 11
    partial, dynamic = flat.argnums_partial(fun, -1, [3, 2])
    assert dynamic == (2,) and partial.call_wrapped(4) == 12
    with pytest.raises(ValueError, match="hashed; got"):
        flat.argnums_partial(fun, 0, [3, [2]])
    # What jax 0.10.2 gives for these.
    tree = weft.tree.structure({"a": [1, 2], "b": 3})
    assert flat.flatten_axes("f", tree, {"a": 0, "b": None}) == [0, 0, None]
    tree = weft.tree.structure((({"a": [1, 2], "b": 3},), {"k": 1}))
    assert flat.flatten_axes("f", tree, (1,), kws=True) == [1, 1, 1, 0]
    with pytest.raises(ValueError, match="f expected a tree that begins as"):
        flat.flatten_axes("f", tree, {"a": 0})
    tree = weft.tree.structure((({"a": 1, "b": 2}, 3), {"k": 1, "l": 2}))
    assert flat.donation_vector((0,), ("l",), tree) == (True, True, False, False, True)
    assert flat.rebase_donate_argnums((2, 3), (0, 1)) == (0, 1)


def test_functions_around_functions():
    from weft._as_jax import flat

    @flat.transformation
    def doubled(n, x):
        result = yield (x + n,), {}
        yield 2 * result

    @flat.transformation_with_aux
    def counted(*xs):
        result = yield xs, {"y": 1}
        yield result, len(xs)

    fun, count = counted(flat.wrap_init(lambda x, y=0: x + y))
    with pytest.raises(flat.StoreException, match="no value"):
        count()
    assert doubled(fun, 10).call_wrapped(5) == 32 and count() == 1
    assert flat.merge_linear_aux(count, None) == (True, 1)
    with pytest.raises(flat.StoreException, match="has a value"):
        fun.call_wrapped(5)
    tripled = flat.transformation2(lambda f, *xs: 3 * f(*xs))
    assert tripled(flat.wrap_init(lambda x: x)).call_wrapped(2) == 6


def test_nodes_taken_apart():
    from weft._as_jax import flat

    classes = flat.NodeClasses()
    children, rest = classes[dict].to_iter({"a": 1, "b": None})
    assert children == [1, None] and classes[dict].from_iter(rest, [2, 3]) == {"a": 2, "b": 3}
    assert flat.one_level((1, [2])) == ([1, [2]], None)
    for ask in (lambda: flat.one_level(3), lambda: classes[int]):
        with pytest.raises((ValueError, KeyError)):
            ask()


def test_names_of_the_inside_of_jax():
    code = """
import functools, importlib
import weft.as_jax, jax, weft
from weft._as_jax.names import HOMES, NOT_THERE, VALUES

def raised(f):
    try:
        f()
    except Exception as error:
        return f"{type(error).__name__}: {error}"

for path in sorted({*HOMES, *VALUES, *NOT_THERE}):
    module = importlib.import_module(f"jax.{path}".rstrip("."))
    for name in NOT_THERE.get(path, ()):
        found = getattr(module, name)
        assert hasattr(found, "__weft_stand_in__"), f"{path}.{name} is in weft by now"
        functools.wraps(found)(lambda: 0)
        derived = type("Derived", (found,), {})
        assert isinstance(derived(), found) and not isinstance(weft.numpy.ones(2), found)
        told = raised(found)
        assert "counterpart of" in told or "is not in weft: " in told, told
from jax._src.core import Primitive, Tracer, jaxpr_as_fun
from jax._src.lax.control_flow import scan, while_p
from jax._src.pjit import jit_p
from jax._src.tree_util import tree_leaves
from jax._src.numpy.util import promote_dtypes_complex
from jax.extend.backend import backends, get_backend, get_default_device
from jax.interpreters import xla
assert scan is jax.lax.scan and tree_leaves is jax.tree.leaves
assert [str(x.dtype) for x in promote_dtypes_complex(1, jax.numpy.arange(2))] == ["complex64"] * 2
assert backends()["cpu"] is get_backend("cpu") and get_backend(get_backend()) is get_backend()
assert get_default_device() == jax.devices()[0]
assert xla.apply_primitive(jax.lax.add_p, 1.0, 2.0) == 3
assert "Unknown backend" in raised(lambda: get_backend("tpu"))
for statement in ("import jax._src.nothing", "from jax._src.core import nothing"):
    told = raised(lambda: exec(statement))
    assert "nothing is not in weft: it is part of the inside of JAX" in told, told
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr


ORBAX = """
import sys, warnings
warnings.simplefilter("ignore")
if sys.argv[1] == "weft":
    import weft.as_jax
import jax, jax.numpy as jnp, numpy as np
import optax, orbax.checkpoint as ocp
params = {"w": jax.random.normal(jax.random.key(0), (4, 3)), "b": jnp.ones(3, jnp.bfloat16)}
place = jax.sharding.NamedSharding(jax.make_mesh((2,), ("x",)), jax.P("x"))
state = {"params": params, "adam": optax.adam(0.1).init(params), "step": 3}
state["key"] = jax.random.key(7)
state["split"] = jax.device_put(jnp.arange(8.0), place)
managed = ocp.CheckpointManagerOptions(max_to_keep=2)
if sys.argv[2] == "write":
    with ocp.StandardCheckpointer() as writer:
        writer.save(sys.argv[3] + "/one", state)
    with ocp.CheckpointManager(sys.argv[3] + "/more", options=managed) as manager:
        for step in range(3):
            manager.save(step, args=ocp.args.StandardSave(state))
wanted = jax.tree.map(ocp.utils.to_shape_dtype_struct, state)
with ocp.CheckpointManager(sys.argv[3] + "/more", options=managed) as manager:
    assert manager.all_steps() == [1, 2]
    managed = manager.restore(2, args=ocp.args.StandardRestore(wanted))
for read in (ocp.StandardCheckpointer().restore(sys.argv[3] + "/one", wanted), managed):
    assert jax.tree.structure(read) == jax.tree.structure(state)
    assert read["split"].sharding == place and read["step"] == 3
    for x, y in zip(jax.tree.leaves(read), jax.tree.leaves(state)):
        assert type(x) is type(y) and getattr(x, "dtype", None) == getattr(y, "dtype", None)
        if isinstance(x, jax.Array) and jnp.issubdtype(x.dtype, jax.dtypes.prng_key):
            x, y = jax.random.key_data(x), jax.random.key_data(y)
        np.testing.assert_array_equal(np.asarray(x), np.asarray(y))
"""


@pytest.mark.parametrize(("first", "then"), [("weft", "jax"), ("jax", "weft")])
def test_orbax_reads_what_it_wrote(first, then, tmp_path):
    for needed in ("jax", "orbax", "optax"):
        if importlib.util.find_spec(needed) is None:
            pytest.skip(f"needs {needed}")
    flags = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=2"
    environment = {**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}
    for which, what in ((first, "write"), (then, "read")):
        run = subprocess.run(
            [sys.executable, "-c", ORBAX, which, what, str(tmp_path)],
            capture_output=True,
            text=True,
            timeout=300,
            env=environment,
        )
        assert run.returncode == 0, run.stderr


def test_the_state_of_traces():
    import weft
    from weft.extend.core import get_opaque_trace_state as state

    outside, inside = state(convention="nnx"), []
    weft.jit(lambda x: inside.append(state()))(1.0)
    weft.grad(lambda x: (inside.append(state()), x)[1])(1.0)
    assert outside == state() and outside not in inside


def test_the_namespace_of_arrays_is_the_one_that_libraries_know():
    code = """
import weft.as_jax, jax, jax.numpy as jnp
x = jnp.ones(3)
assert x.__array_namespace__() is jnp and jnp.__name__ == "jax.numpy"
assert jax.jit(lambda x: x.__array_namespace__().sin(x))(x).shape == (3,)
assert jnp.__array_namespace_info__().capabilities()["boolean indexing"]
assert jnp.__array_api_version__ == "2025.12" and not hasattr(jnp, "__file__")
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stderr
