"""Devices of PJRT plugins that the environment or packages name, each in a process of its own."""

import json
import os
import shutil
import subprocess
import sys
import textwrap

import pytest
from plugins import LIBRARIES, plugin_paths

PATHS = plugin_paths()
PACKAGED = "xla_plugins"  # the one of LIBRARIES with an entry point, of the name `xla_cpu_pjrt`


def run(code: str, **environment: str) -> subprocess.CompletedProcess:
    environment = {"WEFT_PLATFORMS": "", "PJRT_NAMES_AND_LIBRARY_PATHS": "", **environment}
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True, text=True, env={**os.environ, **environment},
    )  # fmt: skip


def printed(code: str, **environment: str):
    done = run(code, **environment)
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout)


@pytest.fixture(params=LIBRARIES)
def plugin(request):
    found = [path for path in PATHS if path.endswith(LIBRARIES[request.param])]
    if not found:
        pytest.skip(f"needs the package {request.param} of the extra test")
    return found[0]


# What the functions give on the devices of a plugin, each beside NumPy's answer.
VALUES = """
import json
import numpy as np
import weft
import weft.numpy as wnp

a = np.arange(400, dtype=np.float32).reshape(20, 20) % 7 + 20 * np.eye(20, dtype=np.float32)
s = a + a.T
b = np.linspace(-1, 1, 20, dtype=np.float32)
small = (a[:3, :3] + 1j * a[3:6, :3]).astype(np.complex64)
pairs = [
    (wnp.tanh(b) @ a, np.tanh(b) @ a),
    (wnp.sort(b)[::-1], np.sort(b)[::-1]),
    (weft.jit(weft.grad(lambda x: (wnp.tanh(x) ** 2).sum()))(b), 2 * np.tanh(b) / np.cosh(b) ** 2),
    (weft.vmap(wnp.dot)(a, a), (a * a).sum(1)),
    (weft.lax.scan(lambda c, x: (c + x, c), 0.0, b)[1], np.cumsum(b) - b),
    (wnp.linalg.cholesky(s), np.linalg.cholesky(s)),
    (wnp.linalg.eigh(s)[0], np.linalg.eigh(s)[0]),
    (wnp.linalg.svd(small)[1], np.linalg.svd(small)[1]),
    (wnp.linalg.solve(a, b), np.linalg.solve(a, b)),
    (wnp.linalg.qr(a)[0] @ wnp.linalg.qr(a)[1], a),
    (weft.grad(lambda a: wnp.linalg.slogdet(a)[1])(a), np.linalg.inv(a).T),
    (wnp.ones(3, wnp.bfloat16) * 2, np.full(3, 2)),
]
errors = [
    float(np.abs(np.asarray(x, np.complex64) - y).max() / np.abs(y).max()) for x, y in pairs
]
made = weft.device_put(b, weft.devices()[-1])
key_on_cpu = weft.device_put(weft.random.key(7), weft.devices("cpu")[0])
print(json.dumps({
    "backend": weft.default_backend(),
    "client": made.device.client is weft.devices("mine")[0].client,
    "last": (made + 1).device == weft.devices()[-1],
    "exported": weft.export.export(weft.jit(wnp.sin))(b).platforms,
    "called": float(abs(weft.export.export(weft.jit(wnp.sin))(b).call(b) - np.sin(b)).max()),
    "several": len(weft.devices()) > 1,
    "back": np.asarray(weft.device_put(made * 2, weft.devices("cpu")[0]) - 2 * b).tolist(),
    "bits": np.asarray(weft.random.bits(weft.random.key(7), (3,))).tolist(),
    "bits_on_cpu": np.asarray(weft.random.bits(key_on_cpu, (3,))).tolist(),
    "errors": errors,
}))
"""


def test_programs_run_on_the_devices_of_a_plugin(plugin):
    got = printed(VALUES, PJRT_NAMES_AND_LIBRARY_PATHS=f"mine:{plugin}")
    assert got["backend"] == "mine" and got["client"] and got["last"] and got["several"]
    assert got["exported"] == ["cpu"] and got["called"] < 1e-6
    assert got["back"] == [0] * 20 and got["bits"] == got["bits_on_cpu"]
    assert max(got["errors"]) < 1e-5, got["errors"]


# Each with the words of the error.
MISSING = """
import json
import weft
import weft.numpy as wnp

def told(f, *args):
    try:
        f(*args)
    except Exception as error:
        return f"{type(error).__name__}: {error}"

x = wnp.ones((3, 3))
mesh = weft.make_mesh((2,), ("x",))
rows = weft.sharding.NamedSharding(mesh, weft.sharding.PartitionSpec("x"))
print(json.dumps([
    told(wnp.linalg.eig, x),
    told(weft.jit(lambda x: weft.pure_callback(lambda y: y, x, x)), x),
    told(weft.ffi.ffi_call("nobody_has_it", x), x),
    told(lambda: weft.device_put(wnp.ones((4, 4)), rows) + 1),
]))
"""


def test_errors_name_what_a_plugin_lacks(plugin):
    told = printed(MISSING, PJRT_NAMES_AND_LIBRARY_PATHS=f"mine:{plugin}")
    assert all(text.startswith("NotImplemented") for text in told), told
    for text, words in zip(
        told, ("[eig]", "[pure_callback]", "nobody_has_it", "one device"), strict=True
    ):
        assert words in text and "portable" in text, text


DEVICES = "import json, weft; print(json.dumps([weft.default_backend(), len(weft.devices())]))"


def test_plugins_of_packages_are_asked_for_by_name():
    if not any(path.endswith(LIBRARIES[PACKAGED]) for path in PATHS):
        pytest.skip(f"needs the package {PACKAGED} of the extra test")
    name, count = printed(DEVICES, WEFT_PLATFORMS="xla_cpu_pjrt,cpu")
    assert name == "xla_cpu_pjrt" and count > 1
    assert printed(DEVICES)[0] == "cpu"  # nobody has asked for it


@pytest.mark.parametrize(
    ("paths", "words"),
    [
        ("mine", "PJRT_NAMES_AND_LIBRARY_PATHS: expected 'name:path,name:path'; got 'mine'"),
        ("a:/nowhere/a.so,:b", "expected 'name:path,name:path'; got ':b'"),
        ("cpu:/nowhere/a.so", "expected names that are not taken; got 'cpu'"),
        ("a:/nowhere/a.so,a:/nowhere/b.so", "expected names that are not taken; got 'a'"),
        ("a:/nowhere/a.so", "could not start platform 'a': expected a library that is there"),
        ("a:libm.so", "expected a library that is there; got 'libm.so'"),
    ],
)
def test_what_the_environment_names_wrongly(paths, words):
    done = run(DEVICES, PJRT_NAMES_AND_LIBRARY_PATHS=paths)
    assert done.returncode == 1 and words in done.stderr


def test_a_library_that_is_no_plugin(tmp_path):
    (tmp_path / "empty.so").write_bytes(b"")
    done = run(DEVICES, PJRT_NAMES_AND_LIBRARY_PATHS=f"a:{tmp_path / 'empty.so'}")
    assert done.returncode == 1 and "could not start platform 'a': " in done.stderr
    assert "empty.so" in done.stderr


def test_a_platform_that_nobody_offers():
    done = run(DEVICES, WEFT_PLATFORMS="nothing")
    assert done.returncode == 1 and "weft_platforms: expected ['cpu', 'cuda'" in done.stderr


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_the_library_that_a_plugin_lacks_is_named(tmp_path):
    code = tmp_path / "code.c"
    code.write_text("int needed(void);\nint GetPjrtApi(void) { return needed(); }\n")
    (tmp_path / "needed.c").write_text("int needed(void) { return 0; }\n")
    needed, plugin = tmp_path / "libneeded.so", tmp_path / "plugin.so"
    for source, library, others in [("needed.c", needed, []), ("code.c", plugin, [needed])]:
        subprocess.run(
            ["cc", "-shared", "-fPIC", tmp_path / source, *others, "-o", library], check=True
        )
    needed.unlink()
    done = run(DEVICES, PJRT_NAMES_AND_LIBRARY_PATHS=f"a:{plugin}")
    assert done.returncode == 1 and "could not start platform 'a': " in done.stderr
    assert "libneeded.so: cannot open shared object file" in done.stderr
