"""weft.export: what is exported is called again, here and in a process that has none of its code,
and transformed; what cannot leave, and bytes that are not what was written."""

import collections
import contextlib
import json
import os
import subprocess
import sys
import textwrap
import zlib

import numpy as np
import pytest
from exported_by_jax import kept_bytes, loss_of
from read_programs import kept_programs, programs

import weft
import weft.numpy as wnp
from weft import _export_form, export, lax
from weft.extend.core import Primitive

X = np.array([[2.0, 1.0], [0.5, 3.0]], np.float32)
OFFSET = wnp.arange(2.0)
KEY = weft.random.key(7)
OF_JAX = kept_bytes()
PROGRAMS = kept_programs()


def assert_close(got, expected, tolerance):
    for x, y in zip(got, expected, strict=True):
        assert (np.shape(x), np.asarray(x).dtype) == (y.shape, y.dtype)
        size = max(1, np.abs(y).max(initial=0)) if y.dtype.kind in "fc" else 0
        np.testing.assert_allclose(np.asarray(x), y, rtol=tolerance, atol=tolerance * size)


@weft.custom_jvp
def doubled(x):
    return 2 * x


doubled.defjvp(lambda primals, tangents: (doubled(*primals), 3 * tangents[0]))


@weft.jit
def function(x, count, *, scale):
    noise = weft.random.normal(KEY, (2,))
    looped = lax.fori_loop(0, 3, lambda i, c: wnp.tanh(c) + doubled(c), x)
    return {"value": looped * scale + OFFSET + noise, "count": count + 1}, wnp.linalg.inv(x)


def args(scale=2.0):
    return (X, np.int32(3)), {"scale": scale}


def assert_same(got, wanted):
    assert weft.tree.structure(got) == weft.tree.structure(wanted)
    for a, b in zip(weft.tree.leaves(got), weft.tree.leaves(wanted), strict=True):
        assert a.dtype == b.dtype and a.weak_type == b.weak_type
        np.testing.assert_allclose(a, b, rtol=1e-6)


@pytest.fixture(scope="module")
def exported():
    given, named = args()
    return export.export(function)(*given, **named)


@pytest.fixture(scope="module")
def blob(exported):
    return exported.serialize(vjp_order=2)


def test_what_it_tells(exported, blob):
    for each in (exported, export.deserialize(blob)):
        assert each.fun_name == "function"
        assert each.platforms == (export.default_export_platform(),)
        assert [str(a) for a in each.in_avals] == ["float32[2,2]", "int32[]", "~float32[]"]
        assert [str(a) for a in each.out_avals] == ["int32[]", "float32[2,2]", "float32[2,2]"]
        given, named = args()
        assert each.in_tree == weft.tree.structure((given, named))
        assert each.out_tree.num_leaves == 3
        taken, made = "(float32[2,2], int32[], ~float32[])", "(int32[], float32[2,2], float32[2,2])"
        assert repr(each) == f"<Exported function{taken} -> {made} for {each.platforms[0]}>"
        assert (each.nr_devices, each.module_kept_var_idx) == (1, (0, 1, 2))
        assert each.in_shardings_hlo == (None,) * 3 == each.in_shardings_jax(None)
        assert each.out_shardings_hlo == (None,) * 3
        assert not each.ordered_effects and not each.unordered_effects
        version = each.calling_convention_version
        assert export.minimum_supported_calling_convention_version <= version
        assert version <= export.maximum_supported_calling_convention_version
        assert each.has_vjp() and each.vjp().has_vjp()
        assert "@jit_function" in each.mlir_module()
        assert isinstance(each.mlir_module_serialized, bytes)
    derivative = exported.vjp()
    assert [str(a) for a in derivative.in_avals[3:]] == ["float0[]", "float32[2,2]", "float32[2,2]"]
    assert [str(a) for a in derivative.out_avals] == ["float32[2,2]", "float0[]", "~float32[]"]


def test_calls(exported, blob):
    given, named = args(np.float32(1.5))
    wanted = function(*given, **named)
    for each in (exported, export.deserialize(blob), export.deserialize(memoryview(blob))):
        assert_same(each.call(*given, **named), wanted)
        assert_same(weft.jit(each.call)(*given, **named), wanted)
    many = weft.vmap(lambda x: each.call(x, 3, scale=1.5)[1])(wnp.stack([X, 2 * X]))
    np.testing.assert_allclose(many, np.linalg.inv(np.stack([X, 2 * X])), rtol=1e-5)


def test_derivatives(exported, blob):
    def total(f):
        return lambda x, s: (lambda r: (r[0]["value"] ** 2).sum() + r[1].sum())(f(x, 3, scale=s))

    both = (0, 1)
    wanted = weft.grad(total(function), both)(X, 0.1)
    for each in (exported, export.deserialize(blob)):
        assert_same(weft.grad(total(each.call), both)(X, 0.1), wanted)

    def twice(f):
        return weft.jit(weft.grad(lambda x: weft.grad(total(f))(x, 0.1).sum()))(X)

    np.testing.assert_allclose(twice(each.call), twice(function), rtol=1e-4)
    with pytest.raises(TypeError, match="reverse mode for 'function'"):
        weft.jvp(lambda x: each.call(x, 3, scale=1.0), (X,), (X,))
    bare = export.deserialize(exported.serialize())
    assert not bare.has_vjp()
    with pytest.raises(ValueError, match="No VJP"):
        weft.grad(total(bare.call))(X, 0.1)
    with pytest.raises(ValueError, match="none that high"):
        bare.serialize(vjp_order=1)


def test_keys_narrow_dtypes_and_functions_of_weft():
    @weft.jit
    def f(key, x):
        narrow = x.astype("bfloat16") + wnp.ones(3, "bfloat16"), x.astype("int4")
        return weft.random.split(key), narrow, wnp.array([True, False]), None

    each = export.deserialize(export.export(f)(KEY, 1.0).serialize())
    assert str(each.in_avals[0]) == "key<fry>[]"
    got, wanted = each.call(KEY, 2.0), f(KEY, 2.0)
    np.testing.assert_array_equal(*map(weft.random.key_data, (got[0], wanted[0])))
    assert_same(got[1:], wanted[1:])
    for own in (wnp.sin, wnp.add, wnp.sum):
        operands = (X,) * (2 if own is wnp.add else 1)
        assert_same(export.export(own)(*operands).call(*operands), own(*operands))


def test_wide_types():
    with weft.enable_x64(True):
        each = export.export(weft.jit(lambda x: x * np.float64(2)))(np.ones(2))
        np.testing.assert_array_equal(each.call(np.ones(2)), [2.0, 2.0])
    with pytest.raises(ValueError, match="Dtype mismatch"):
        each.call(np.ones(2))


def test_several_platforms():
    choose = weft.jit(
        lambda x, unused: lax.platform_dependent(x, cpu=lambda x: 2 * x, default=lambda x: 3 * x)
    )
    each = export.export(choose, platforms=["cuda", "cpu"])(1.0, 1)
    assert each.uses_global_constants
    text = each.mlir_module()
    assert "_platform_index" in text and "stablehlo.case" in text
    assert float(export.deserialize(each.serialize()).call(3.0, 1)) == 6
    for f in (weft.jit(lambda: wnp.arange(3)), weft.jit(lambda *x: None)):
        alike = export.export(f, platforms=["cpu", "cuda"])()
        assert "_platform_index" in alike.mlir_module()
    elsewhere = export.export(choose, platforms="cuda")(1.0, 1)
    assert "3.0" in elsewhere.mlir_module()
    with pytest.raises(ValueError, match="exported for platforms"):
        elsewhere.call(1.0, 1)
    check = export.DisabledSafetyCheck.platform()
    unchecked = export.export(choose, platforms="cuda", disabled_checks=[check])(1.0, 1)
    assert float(unchecked.call(1.0, 1)) == 2


def test_calls_that_do_not_fit(exported):
    with pytest.raises(ValueError, match=r"kwargs\['scale'\] of 'function': expected float32"):
        exported.call(X, 3, scale=2)
    with pytest.raises(ValueError, match=r"args\[0\] of 'function': expected \(2, 2\)"):
        exported.call(X[0], 3, scale=2.0)
    with pytest.raises(ValueError, match="same pytree structure"):
        exported.call(X, 3)


def test_primitives_leave_as_what_they_are_lowered_to():
    own = Primitive("op_of_this_process")
    own.def_abstract_eval(lambda x: x)
    own.def_lowering(lambda x: 2 * x)
    left = export.deserialize(export.export(weft.jit(own.bind))(1.0).serialize())
    assert float(left.call(2.0)) == 4


def test_what_cannot_leave():
    own = Primitive("op_of_this_process")
    own.def_abstract_eval(lambda x: x)
    own.def_lowering(lambda x: x, platform="cpu")
    here = export.export(weft.jit(own.bind))(1.0)
    assert float(here.call(2.0)) == 2
    with pytest.raises(ValueError, match="other processes can read"):
        here.serialize()
    for host in (
        lambda x: weft.pure_callback(np.sin, x, x),
        lambda x: weft.debug.print("{}", x),
    ):
        with pytest.raises(NotImplementedError, match="host_callbacks"):
            export.export(weft.jit(host))(1.0)
    ref = weft.new_ref(wnp.ones(()))
    with pytest.raises(NotImplementedError, match="refs"):
        export.export(weft.jit(lambda x: ref.__setitem__(..., x)))(1.0)
    with pytest.raises(ValueError, match="result of `jit`"):
        export.export(lambda x: x)
    with pytest.raises(TypeError, match="platforms that are text"):
        export.export(weft.jit(wnp.sin), platforms=(3,))
    with pytest.raises(NotImplementedError, match="rules of lowering"):
        export.export(function, _override_lowering_rules=[])
    call = weft.jit(lambda x: weft.ffi.ffi_call("foo", weft.ShapeDtypeStruct((2,), "float32"))(x))
    with pytest.raises(ValueError, match="custom calls.*foo"):
        export.export(call)(1.0)
    check = export.DisabledSafetyCheck.custom_call("foo")
    assert export.export(call, disabled_checks=[check])(1.0).serialize()
    assert check == export.DisabledSafetyCheck.custom_call("foo") and len({check, check}) == 1
    assert (str(check), check.is_custom_call()) == ("custom_call:foo", "foo")


Pair = collections.namedtuple("Pair", "a b")
Triple = collections.namedtuple("Triple", "a b c")


class Box:
    def __init__(self, inside, label):
        self.inside, self.label = inside, label


def test_structures():
    box = {"serialized_name": "box", "serialize_auxdata": str.encode}
    box["deserialize_auxdata"] = lambda data: bytes(data).decode()
    with pytest.raises(ValueError, match="expected a class that is a node"):
        export.register_pytree_node_serialization(Box, **box)
    weft.tree_util.register_pytree_node(
        Box, lambda b: ((b.inside,), b.label), lambda label, c: Box(*c, label)
    )
    f = weft.jit(lambda tree: Pair(tree, [Box(tree["p"].a, "out")]))
    ordered = collections.OrderedDict(z=1, a=Box(2.0, "in"))
    tree = {"p": Pair(1.0, None), "o": ordered, "n": ((), [])}
    each = export.export(f)(tree)
    for match in ("Box", "Pair"):
        with pytest.raises(ValueError, match=f"unregistered type.*{match}"):
            each.serialize()
        if match == "Box":
            assert export.register_pytree_node_serialization(Box, **box) is Box
    assert export.register_namedtuple_serialization(Pair, serialized_name="p") is Pair
    again = export.deserialize(each.serialize())
    assert (again.in_tree, again.out_tree) == (each.in_tree, each.out_tree)
    assert again.call(tree).b[0].label == "out"
    with pytest.raises(ValueError, match="Duplicate.*box"):
        export.register_pytree_node_serialization(Box, **box)
    with pytest.raises(ValueError, match="Duplicate.*'p'"):
        export.register_namedtuple_serialization(Triple, serialized_name="p")
    with pytest.raises(ValueError, match="named tuples"):
        export.register_namedtuple_serialization(Box, serialized_name="q")
    numbers = export.export(weft.jit(lambda d: d))({1: 1.0, -2: 2.0})
    assert export.deserialize(numbers.serialize()).in_tree == numbers.in_tree
    with pytest.raises(ValueError, match="keys that are text"):
        export.export(weft.jit(lambda d: d))({(): 1.0}).serialize()


def rewritten(blob, change):
    """The bytes with what they tell changed, and a checksum that fits."""
    magic, start = _export_form._MAGIC, len(_export_form._MAGIC) + _export_form._DIGEST
    body, lengths = zlib.decompress(blob[start:]), _export_form._LENGTHS
    sizes = list(lengths.unpack_from(body))
    told = json.loads(body[lengths.size :][: sizes[0]])
    change(told)
    text = json.dumps(told).encode()
    rest = body[lengths.size + sizes[0] :]
    stream = zlib.compress(lengths.pack(len(text), *sizes[1:]) + text + rest)
    digest = _export_form.blake2b(stream, digest_size=_export_form._DIGEST).digest()
    return magic + digest + stream


def test_bytes_that_are_something_else(blob):
    random = np.random.default_rng(0)
    data = bytes(blob)
    damaged = [b"", b"abc", data[:20], data[:-1], data + b"x", b"weft export 02\n" + data[15:]]
    for at in random.integers(0, len(data), 40):
        damaged.append(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
    damaged += [rewritten(blob, lambda told, k=k: told.pop(k)) for k in ("program", "in_tree")]
    damaged += [
        rewritten(blob, lambda told: told.update(program="{ lambda ; a:f32[]. let in (b,) }")),
        rewritten(blob, lambda told: told.update(in_tree={"class": "nobody's", "children": []})),
        rewritten(blob, lambda told: told.update(in_weak=[True])),
        rewritten(blob, lambda told: told.update(in_tree="*")),
    ]
    for each in damaged:
        with pytest.raises(ValueError, match="deserialize"):
            export.deserialize(each)
    assert export.deserialize(rewritten(blob, lambda told: None)).fun_name == "function"
    with pytest.raises(TypeError, match="expected bytes"):
        export.deserialize("text")


OTHER_PROCESS = """
    import os, sys
    os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"
    import numpy as np
    import weft
    import weft.numpy as wnp
    from weft import export
    from weft.sharding import AxisType, NamedSharding, PartitionSpec as P

    with open(sys.argv[1], "rb") as file:
        each = export.deserialize(file.read())
    X = np.array([[2.0, 1.0], [0.5, 3.0]], np.float32)
    value = each.call(X, np.int32(3), scale=1.5)[0]["value"]
    slope = weft.grad(lambda x: each.call(x, np.int32(3), scale=1.5)[0]["value"].sum())(X)
    print(repr(np.stack([value, slope]).tolist()))

    mesh = weft.make_mesh((4,), ("a",), axis_types=(AxisType.Auto,))
    split, offset = NamedSharding(mesh, P("a")), wnp.arange(8.0)

    @weft.jit(in_shardings=split, out_shardings=split)
    def f(x):
        return weft.lax.with_sharding_constraint(2 * x, split) + offset

    x = np.arange(8, dtype=np.float32)
    here = export.export(f)(x)
    assert here.nr_devices == 4 and 'sdy.mesh @mesh = <["a"=4]>' in here.mlir_module()
    assert here.in_shardings_jax(mesh) == (split,) == here.out_shardings_jax(mesh)
    again = export.deserialize(here.serialize(1))
    others = weft.make_mesh((4,), ("z",), devices=weft.devices()[::-1])
    moved = weft.device_put(x, NamedSharding(others, P("z")))
    for g in (here, again):
        for y in (x, moved):
            got = g.call(y)
            assert got.sharding.spec == P("a") and np.array_equal(got, 3 * x)
        assert [s.device.id for s in got.addressable_shards] == [3, 2, 1, 0]
        assert np.array_equal(weft.grad(lambda x: (g.call(x) ** 2).sum())(x), 12 * x)
        with weft.set_mesh(others):
            assert np.array_equal(weft.jit(g.call)(moved), 3 * x)
    two = weft.make_mesh((2,), ("z",), devices=weft.devices()[:2])
    try:
        again.call(weft.device_put(x, NamedSharding(two, P("z"))))
    except ValueError as error:
        assert "expected 4 devices" in str(error), error
    else:
        raise AssertionError("two devices for four")
    try:
        export.export(f, platforms=["cuda"])(x)
    except NotImplementedError as error:
        assert "several devices" in str(error), error
"""


def test_in_a_process_that_has_no_code_of_it(blob, tmp_path):
    file = tmp_path / "function.weft"
    file.write_bytes(blob)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(OTHER_PROCESS), str(file)],
        env={**os.environ},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    value, slope = json.loads(done.stdout)
    np.testing.assert_allclose(value, function(X, 3, scale=1.5)[0]["value"], rtol=1e-5)
    wanted = weft.grad(lambda x: function(x, 3, scale=1.5)[0]["value"].sum())(X)
    np.testing.assert_allclose(slope, wanted, rtol=1e-5)


# ---- jax.export's bytes


@pytest.mark.parametrize("name", OF_JAX)
def test_bytes_of_jax(name):
    program, exported = PROGRAMS[name], export.deserialize(OF_JAX[name])
    args = program["args"]
    assert exported.in_tree == weft.tree_util.tree_structure((tuple(args), {}))
    assert_close(weft.tree_util.tree_leaves(exported.call(*args)), program["results"], 3e-5)
    # Also where no derivative was kept.
    loss, floats = loss_of(exported.call, args, program["results"], weft)
    by = tuple(range(len(floats)))
    grads = weft.jit(weft.grad(loss, by))(*[args[i] for i in floats])
    assert_close(grads, program["grads"], 3e-4)
    # What weft writes of it, either way, is the same function.
    for form in ("weft", "jax"):
        again = export.deserialize(exported.serialize(vjp_order=1, form=form))
        assert_close(weft.tree_util.tree_leaves(again.call(*args)), program["results"], 3e-5)
        assert again.has_vjp()
    batched = weft.vmap(exported.call)(*[np.stack([x, x]) for x in args])
    for y, expected in zip(weft.tree_util.tree_leaves(batched), program["results"], strict=True):
        assert_close([np.asarray(y)[1]], [expected], 3e-5)


@pytest.mark.parametrize("name", OF_JAX)
def test_bytes_for_jax(name):
    pytest.importorskip("flatbuffers")
    jax = pytest.importorskip("jax")
    from jax import export as export_of_jax

    fn, args = programs(weft)[name]
    program, exported = PROGRAMS[name], export.export(weft.jit(fn))(*args)
    read = export_of_jax.deserialize(exported.serialize(vjp_order=1, form="jax"))
    assert_close(jax.tree.leaves(read.call(*args)), program["results"], 3e-5)
    loss, floats = loss_of(read.call, args, program["results"], jax)
    grads = jax.grad(loss, tuple(range(len(floats))))(*[args[i] for i in floats])
    assert_close(grads, program["grads"], 3e-4)


@pytest.mark.parametrize("data", [b"", b"\x08\0\0\0" * 4, b"\xff" * 64, b"ML\xefR", bytes(100)])
def test_neither_form(data):
    message = r"weft or of jax\.export returned, .*b'weft export '.*versions 1 to 3; got bytes of"
    with pytest.raises(ValueError, match=message):
        export.deserialize(data)


def test_damaged_bytes_of_jax():
    """Damage is an error, or does not matter; it is nothing else."""
    data = next(iter(OF_JAX.values()))
    rng = np.random.default_rng(0)
    for length in (10, 100, len(data) - 9):
        with pytest.raises(ValueError, match="deserialize expected"):
            export.deserialize(data[:length])
    for at in rng.integers(0, 300, 40):
        broken = bytearray(data)
        broken[at] ^= 0xFF
        with contextlib.suppress(ValueError, NotImplementedError):
            export.deserialize(broken)


def test_what_jax_has_no_form_for():
    exported = export.export(weft.jit(lambda d: d[1]))({1: 2.0})
    with pytest.raises(ValueError, match="keys that are text, for form='jax'; got 1"):
        exported.serialize(form="jax")
    with pytest.raises(ValueError, match="expected form 'weft' or 'jax'; got 'onnx'"):
        exported.serialize(form="onnx")


def test_keys_and_named_tuples_for_jax():
    exported = export.export(weft.jit(lambda k, n: (weft.random.split(k), n)))(KEY, 3)
    again = export.deserialize(exported.serialize(vjp_order=1, form="jax"))
    assert again.in_avals[0].dtype == KEY.dtype
    keys, n = again.call(KEY, np.int32(3))
    np.testing.assert_array_equal(
        weft.random.key_data(keys), weft.random.key_data(weft.random.split(KEY))
    )
    assert n == 3
