"""Wheel and sdist: their contents; a C++ program that embeds weft builds against the wheel."""

import contextlib
import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest
from conftest import EVERYTHING, ROOT
from plugins import LIBRARIES, plugin_paths

import weft

EMBED = ROOT / "tests" / "embed"
# Those that are installed.
HEADERS = [
    path for folder in ("src", "run", "capi") for path in (ROOT / folder).glob("include/weft/*.h")
]
# Object files of the wheel; what `pip install .` of tools/test leaves behind is used again.
PACKAGE_BUILD = Path(os.environ.get("WEFT_BUILD_DIR", ROOT / "build" / "package"))

pytestmark = [
    pytest.mark.skipif(shutil.which("cmake") is None, reason="needs CMake"),
    pytest.mark.skipif(shutil.which("ninja") is None, reason="needs ninja"),
]


def run(*command: str | Path, cwd: Path | None = None, **environment: str) -> str:
    done = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, cwd=cwd,
        env={**os.environ, **environment},
    )  # fmt: skip
    assert done.returncode == 0, f"{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done.stdout


@contextlib.contextmanager
def locked(path: Path):
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    pytest.importorskip("scikit_build_core")
    pytest.importorskip("nanobind")
    folder = tmp_path_factory.mktemp("wheel")
    # Workers of one run share the build tree.
    with locked(PACKAGE_BUILD.with_name("package.lock")):
        run(sys.executable, "-m", "pip", "wheel", "--no-build-isolation", "--no-deps", "-C",
            f"build-dir={PACKAGE_BUILD}", "-w", folder, ROOT)  # fmt: skip
    (found,) = folder.glob("weft-*.whl")
    return found


@pytest.fixture(scope="module")
def site(wheel, tmp_path_factory):
    """Where the wheel is installed: a folder of its own, never the environment of the tests."""
    target = tmp_path_factory.mktemp("site")
    run(
        sys.executable, "-m", "pip", "install", "--no-deps", "--no-index", "--target", target, wheel
    )
    return target


def installed(site: Path, *arguments: str) -> str:
    return run(sys.executable, "-m", "weft", *arguments, cwd=site, PYTHONPATH=str(site))


@pytest.fixture(scope="module")
def output(site, tmp_path_factory):
    build = tmp_path_factory.mktemp("embedding")
    package = installed(site, "--cmake-dir").strip()
    run("cmake", "-S", EMBED, "-B", build, "-G", "Ninja", f"-Dweft_DIR={package}")
    run("cmake", "--build", build)
    return run(build / "embedding")


@pytest.mark.parametrize(
    ("file", "pattern"),
    [
        ("pyproject.toml", r'^version = "(.*)"$'),
        ("CMakeLists.txt", r"^project\(weft VERSION (\S+) "),
        ("CITATION.cff", r"^version: (.*)$"),
        ("CHANGELOG.md", r"^## ([\d.]+)"),  # the newest stands first
    ],
)
def test_every_file_has_the_same_version(file, pattern):
    found = re.search(pattern, (ROOT / file).read_text(), re.MULTILINE)
    assert found[1] == weft.__version__


def test_contents_of_the_wheel(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    version = f"weft-{weft.__version__}"
    for name in (
        "weft/__init__.py",
        "weft/__main__.py",
        "weft/cli/__init__.py",
        "weft/jax_names.txt",
        "weft/_cpp/include/weft/weft.h",
        "weft/_cpp/lib/libweft.a",
        "weft/_cpp/lib/libweft-run.a",
        "weft/_cpp/lib/libweft.so",
        "weft/_cpp/lib/cmake/weft/weft-config.cmake",
        "weft/_cpp/lib/cmake/weft/weft-config-version.cmake",
        f"{version}.data/scripts/weft-opt",
        f"{version}.dist-info/entry_points.txt",
        f"{version}.dist-info/licenses/LICENSE",
    ):
        assert name in names
    (extension,) = (n for n in names if re.fullmatch(r"weft/_core\..*\.so", n))
    assert b".symtab" not in zipfile.ZipFile(wheel).read(extension)  # stripped
    headers = {path.name for path in HEADERS}
    assert {n.rpartition("/")[2] for n in names if n.startswith("weft/_cpp/include/")} == headers
    assert len([n for n in names if n.startswith("weft/_core") and not n.endswith(".pyi")]) == 1
    folders = {n.partition("/")[0] for n in names}
    assert folders == {"weft", f"{version}.dist-info", f"{version}.data"}


def test_contents_of_the_sdist(tmp_path):
    pytest.importorskip("scikit_build_core")
    build = "import sys; from scikit_build_core.build import build_sdist; build_sdist(sys.argv[1])"
    run(sys.executable, "-c", build, tmp_path, cwd=ROOT)
    (archive,) = tmp_path.glob("weft-*.tar.gz")
    with tarfile.open(archive) as tar:
        names = {name.partition("/")[2] for name in tar.getnames()}
    sources = {
        str(path.relative_to(ROOT))
        for folder in ("src", "csrc", "run", "capi", "python")
        for path in (ROOT / folder).rglob("*")
        if path.suffix in (".h", ".cpp", ".py", ".txt")
    }
    assert sources <= names
    folders = ("src/", "csrc/", "run/", "capi/", "python/")
    others = {name for name in names if not name.startswith(folders)}
    assert others == {
        "CHANGELOG.md", "CITATION.cff", "CMakeLists.txt", "CMakePresets.json", "CONTRIBUTING.md",
        "LICENSE", "PKG-INFO", "README.md", "SECURITY.md", "cmake/requirements.cmake",
        "pyproject.toml", "tools/weft_opt.cpp",
    }  # fmt: skip
    assert not [name for name in names if name.endswith((".so", ".pyc", ".o"))]


def test_headers_name_the_licence():
    """They are installed beside those of other packages, away from LICENSE."""
    for header in HEADERS:
        assert header.read_text().startswith("// SPDX-License-Identifier: Apache-2.0\n"), header


def test_package_holds_no_absolute_paths(site):
    folder = Path(installed(site, "--cmake-dir").strip())
    assert folder.is_relative_to(site)
    for path in folder.iterdir():
        assert str(ROOT) not in path.read_text() and str(site) not in path.read_text()
    assert (Path(installed(site, "--include-dir").strip()) / "weft" / "weft.h").is_file()


def test_installed_by_cmake_alone(site, tmp_path):
    build, prefix = tmp_path / "build", tmp_path / "prefix"
    run("cmake", "-S", ROOT, "-B", build, "-G", "Ninja")
    # The same files would be built; where they go is what counts.
    for library in (site / "weft" / "_cpp" / "lib").glob("libweft*"):
        shutil.copy(library, build)
    shutil.copy(site / "bin" / "weft-opt", build)
    run("cmake", "--install", build, "--prefix", prefix, "--component", "dev")
    assert (prefix / "include" / "weft" / "weft.h").is_file()
    assert (prefix / "bin" / "weft-opt").is_file() and list(prefix.glob("lib*/libweft.a"))
    run("cmake", "-S", EMBED, "-B", tmp_path / "embed", f"-DCMAKE_PREFIX_PATH={prefix}")
    found = (tmp_path / "embed" / "CMakeCache.txt").read_text()
    assert f"weft_DIR:PATH={prefix}" in found


@pytest.fixture(scope="module")
def c_program(site, tmp_path_factory):
    """Builds a program of examples/c_api, and runs it."""
    include, library = (
        installed(site, option).strip() for option in ("--include-dir", "--lib-dir")
    )
    folder = tmp_path_factory.mktemp("c_api")
    compilers = {
        ".c": ("cc", "-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror"),
        ".cpp": ("c++", "-std=c++17", "-Wall", "-Wextra", "-Werror"),
        ".rs": ("rustc", "-Dwarnings", "-Clink-arg=-Wl,-rpath," + library),
    }

    def build_and_run(name: str, *arguments: str | Path) -> subprocess.CompletedProcess:
        source = ROOT / "examples" / "c_api" / name
        compiler, *flags = compilers[source.suffix]
        if shutil.which(compiler) is None:
            pytest.skip(f"needs {compiler}")
        program = folder / source.stem
        paths = [] if compiler == "rustc" else [f"-I{include}", f"-Wl,-rpath,{library}"]
        run(compiler, *flags, source, *paths, f"-L{library}", "-lweft", "-o", program)
        return subprocess.run([program, *arguments], capture_output=True, text=True)

    return build_and_run


def test_c_program_differentiates_and_emits(c_program):
    done = c_program("grad.c")
    assert done.returncode == 0 and not done.stderr
    program, module, figures = re.fullmatch(
        r"(\{ lambda .*\})\n(module .*)\n(\d+ operations, .*)\n", done.stdout, re.DOTALL
    ).groups()
    w = np.linspace(-1, 1, 128, dtype=np.float32)
    x = w + 1
    loss, gradient = weft.compiler.parse(program)(w, x)
    np.testing.assert_allclose(loss, np.tanh(w * x).sum(), rtol=1e-5)
    np.testing.assert_allclose(gradient, x * (1 - np.tanh(w * x) ** 2), rtol=1e-4, atol=1e-6)
    weft.compiler.verify_stablehlo(module)
    assert re.fullmatch(r"\d+ operations, \d+ flops, at most \d+ bytes", figures)


def test_cpp_program_reports_and_says_where(c_program, tmp_path):
    program = tmp_path / "program.ir"
    program.write_text("{ lambda ; a:f32[3]. let b:f32[3] = sin a in (b,) }")
    assert "sin" in c_program("report.cpp", program).stdout
    program.write_text("{ lambda ; a:f32[3]. let\n b:f32[3] = sinn a in (b,) }")
    failed = c_program("report.cpp", program)
    assert failed.returncode == 1 and failed.stderr.startswith(f"{program}: line 2, column 13: ")


def test_rust_program_maps(c_program):
    (mapped,) = weft.compiler.parse(c_program("vmap.rs").stdout)(
        np.ones((8, 3), "f"), np.float32(2)
    )
    assert (mapped == 2).all() and mapped.shape == (8, 3)


def write_arrays(path: Path, arrays: dict[str, np.ndarray]) -> None:
    """A file of safetensors."""
    names = {"float32": "F32", "int32": "I32"}
    header, end = {"__metadata__": {"of": "a test"}}, 0
    for name, x in arrays.items():
        header[name] = {"dtype": names[x.dtype.name], "shape": x.shape}
        header[name]["data_offsets"] = [end, end := end + x.nbytes]
    text = json.dumps(header).encode()
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for x in arrays.values():
            file.write(x.tobytes())


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    content = path.read_bytes()
    start = 8 + int.from_bytes(content[:8], "little")
    assert start % 8 == 0
    arrays = {}
    for name, entry in json.loads(content[8:start]).items():
        begin, end = entry["data_offsets"]
        assert entry["dtype"] == "F32"
        array = np.frombuffer(content[start + begin : start + end], "<f4")
        arrays[name] = array.reshape(entry["shape"])
    return arrays


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    """Pictures of digits in random order, and weights to start from: the file and the arrays."""
    datasets = pytest.importorskip("sklearn.datasets")
    images, labels = datasets.load_digits(return_X_y=True)
    rng = np.random.default_rng(0)
    order = rng.permutation(len(images))
    arrays = {
        "images": (images[order] / 16).astype(np.float32),
        "labels": labels[order].astype(np.int32),
        "w1": (rng.normal(size=(64, 32)) / 8).astype(np.float32),
        "b1": np.zeros(32, np.float32),
        "w2": (rng.normal(size=(32, 10)) / 6).astype(np.float32),
        "b2": np.zeros(10, np.float32),
    }
    path = tmp_path_factory.mktemp("digits") / "digits.safetensors"
    write_arrays(path, arrays)
    return path, arrays


def check_digits(done: subprocess.CompletedProcess, digits, learnt: Path) -> None:
    assert done.returncode == 0, done.stderr
    losses = [float(x) for x in re.findall(r"loss ([\d.]+)", done.stdout)]
    accuracy = float(re.search(r"accuracy ([\d.]+) on cpu", done.stdout)[1])
    assert len(losses) == 4 and losses[-1] < losses[0] < 1 and accuracy > 0.95
    _, arrays = digits
    w = read_arrays(learnt)
    hidden = np.tanh(arrays["images"][1500:] @ w["w1"] + w["b1"])
    guess = (hidden @ w["w2"] + w["b2"]).argmax(1)
    assert abs((guess == arrays["labels"][1500:]).mean() - accuracy) < 0.005


@pytest.fixture(params=LIBRARIES)
def plugin(request):
    found = [path for path in plugin_paths() if path.endswith(LIBRARIES[request.param])]
    if not found:
        pytest.skip(f"needs the package {request.param} of the extra test")
    return found[0]


def test_c_program_learns_digits(c_program, digits, plugin, tmp_path):
    learnt = tmp_path / "learnt.safetensors"
    check_digits(c_program("digits.c", plugin, digits[0], learnt), digits, learnt)
    done = c_program("digits.c", plugin, tmp_path / "none", learnt)
    assert done.returncode == 1 and "expected a file of arrays; cannot read" in done.stderr
    short = tmp_path / "short.safetensors"
    write_arrays(short, {"images": np.zeros((3, 64), np.float32)})
    done = c_program("digits.c", plugin, short, learnt)
    assert done.returncode == 1 and "expected one of images; got w1" in done.stderr


def test_cpp_program_learns_digits(site, digits, plugin, tmp_path):
    package = installed(site, "--cmake-dir").strip()
    build = tmp_path / "build"
    run(
        "cmake",
        "-S",
        ROOT / "examples" / "cpp",
        "-B",
        build,
        "-G",
        "Ninja",
        f"-Dweft_DIR={package}",
    )
    run("cmake", "--build", build)
    learnt = tmp_path / "learnt.safetensors"
    done = subprocess.run(
        [build / "digits", plugin, digits[0], learnt], capture_output=True, text=True
    )
    check_digits(done, digits, learnt)


def test_the_c_library_shows_its_functions_alone(site):
    library = site / "weft" / "_cpp" / "lib" / "libweft.so"
    shown = set(re.findall(r" T (\S+)", run("nm", "-D", "--defined-only", library)))
    folder = ROOT / "capi" / "include" / "weft"
    headers = (folder / "c_api.h").read_text() + (folder / "run.h").read_text()
    assert shown == set(re.findall(r"^WEFT_C_API [^;(]*?(\w+)\(", headers, re.MULTILINE))
    needed = set(re.findall(r"NEEDED.*\[(.*)\]", run("readelf", "-d", library)))
    allowed = ("libstdc++.", "libm.", "libgcc_s.", "libc.", "libdl.", "ld-linux")
    assert all(name.startswith(allowed) for name in needed)
    assert library.stat().st_size < 8e6


def test_weft_opt_is_installed(site, tmp_path):
    program = tmp_path / "program.ir"
    program.write_text("{ lambda ; a:f32[3]. let b:f32[3] = neg a c:f32[3] = neg b in (c,) }\n")
    out = run(site / "bin" / "weft-opt", "--default", program)
    assert out == "{ lambda ; a:f32[3]. let  in (a,) }\n"


PROGRAM = """\
{ lambda ; a:f32[3]. let
    b:f32[3] = exp a
    c:f32[3] = log b
    d:f32[3] = neg c
  in (d,) }
"""


def weft_opt(site: Path, *options: str | Path, program: str = PROGRAM):
    command = list(map(str, [site / "bin" / "weft-opt", *options]))
    return subprocess.run(command, input=program, capture_output=True, text=True)


def test_weft_opt_tells_of_each_pass(site):
    program = PROGRAM.replace("in (d,)", "  e:f32[3] = neg d\n  in (e,)")
    done = weft_opt(site, "--passes=dce,simplify,dce", "--print-after-all", program=program)
    # The first dce changes nothing.
    simplified, pruned = done.stderr.removeprefix("// after simplify\n").split("// after dce\n")
    assert simplified != pruned == done.stdout
    done = weft_opt(site, "--passes=dce,simplify,dce", "--pass-timing", program=program)
    lines = [line.split() for line in done.stderr.splitlines()]
    assert {line[0] for line in lines} == {"dce", "simplify", "total"} and lines[-1][0] == "total"
    *passes, total = (float(line[1]) for line in lines)
    assert passes == sorted(passes, reverse=True)
    assert abs(sum(passes) - total) < 0.01


def test_weft_opt_reduces_with_a_command(site, tmp_path):
    script(tmp_path / "test", f'cat "$1" >>{tmp_path}/seen; grep -q "= log" "$1"')
    done = weft_opt(site, f"--reduce={tmp_path / 'test'}")
    assert done.stdout == "{ lambda ; a:f32[3]. let b:f32[3] = log a in (b,) }\n"
    runs = int(re.fullmatch(r"3 ops, 1 after (\d+) runs of the command\n", done.stderr)[1])
    assert (tmp_path / "seen").read_text().count("lambda") == runs
    assert (tmp_path / "seen").read_text().startswith(PROGRAM)
    module = weft_opt(site, "--emit=stablehlo").stdout
    command = ["--emit=stablehlo", '--reduce=grep -q "stablehlo.log "']
    done = weft_opt(site, *command, program=module)
    assert "stablehlo.log " in done.stdout and "exponential" not in done.stdout
    for command, words in [
        ("true; false", "expected a program of which the test holds"),
        ("/nowhere/command", "expected a command that can be run; got /nowhere/command"),
    ]:
        done = weft_opt(site, f"--reduce={command}")
        assert done.returncode == 2 and words in done.stderr


def test_weft_opt_loads_passes(site, tmp_path):
    include = installed(site, "--include-dir").strip()
    source = ROOT / "examples" / "extension" / "log_of_exp.cpp"
    build = ["c++", "-std=c++20", "-shared", "-fPIC", "-Wall", "-Werror"]
    library = tmp_path / "log_of_exp.so"
    run(*build, source, f"-I{include}", "-o", library)
    done = weft_opt(site, f"--load={library}", "--passes=log_of_exp,dce", "--stats")
    assert done.stdout == "{ lambda ; a:f32[3]. let b:f32[3] = neg a in (b,) }\n"
    assert "1  log_of_exp" in done.stderr
    assert weft_opt(site, f"--load={library}", f"--load={library}").stdout == PROGRAM
    listed = weft_opt(site, f"--load={library}", "--list-passes").stdout
    assert "log_of_exp  log(exp(x)) -> x.\n" in listed

    headers = tmp_path / "older"
    shutil.copytree(include, headers)
    header = headers / "weft" / "extension.h"
    text, changes = re.subn(r"\b1(,  *// goes up)", r"0\1", header.read_text())
    assert changes == 1
    header.write_text(text)
    other = tmp_path / "other.so"
    run(*build, source, f"-I{headers}", "-o", other)
    for path, words in [
        (other, "other.so was compiled with others"),
        ("libm.so.6", "libm.so.6 has no WEFT_EXTENSION()"),
        ("/nowhere.so", "cannot open /nowhere.so"),
    ]:
        done = weft_opt(site, f"--load={path}")
        assert done.returncode == 2 and words in done.stderr


def test_the_installed_package_runs(site):
    assert installed(site, "ops", "sin").startswith("sin: ")
    code = "import weft; print(weft.__file__); print(weft.jit(lambda x: x + 1)(1.0))"
    assert run(sys.executable, "-c", code, cwd=site, PYTHONPATH=str(site)).split() == [
        str(site / "weft" / "__init__.py"),
        "2.0",
    ]


@pytest.mark.slow
@pytest.mark.skipif(not EVERYTHING, reason="installs jaxlib into an environment of its own")
def test_first_result_without_a_compiler(wheel):
    out = run(sys.executable, ROOT / "tools" / "wheels", "--try", wheel)
    print(out)
    assert "y = 2.000 x + 0.999" in out and "from wheel to first result" in out


# What a build says that cannot begin: one sentence, with the way out.


def configured(tmp_path, *options: str, **environment: str) -> str:
    done = subprocess.run(
        ["cmake", "-S", str(ROOT), "-B", str(tmp_path / "build"), "-G", "Ninja", *options],
        capture_output=True, text=True, env={**os.environ, **environment},
    )  # fmt: skip
    assert done.returncode != 0
    return " ".join(done.stderr.split())


def script(path: Path, text: str) -> str:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def test_build_without_a_compiler(tmp_path):
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("cmake", "ninja"):
        (tools / name).symlink_to(shutil.which(name))
    said = configured(tmp_path, PATH=str(tools), CXX="", CXXFLAGS="")
    assert "weft needs a C++20 compiler such as GCC 11, and there is no C++ compiler here" in said
    assert (
        "apt install g++" in said and "or install a wheel of weft, which needs no compiler" in said
    )


def test_build_with_an_old_compiler(tmp_path):
    old = script(
        tmp_path / "old-c++",
        f'case "$*" in *-std=c++20*|*-std=gnu++20*) echo no C++20 >&2; exit 1;; esac\n'
        f'exec {shutil.which("c++")} "$@"',
    )
    for _ in range(2):  # also where the build tree is there already
        said = configured(tmp_path, CXX=old)
        assert f"weft needs a C++20 compiler such as GCC 11, and {old} (" in said
        assert "does not compile a program in C++20: install one" in said


def test_build_with_little_memory(tmp_path):
    said = configured(tmp_path, "-DWEFT_JOB_MEMORY=100000000")
    assert "weft needs 100000000 MB of free memory to be compiled, and there are" in said
    assert "or install a wheel of weft, which is not compiled" in said


def test_program_with_own_op(output):
    before, after = output.partition("gradient\n")[0].split("optimized\n")
    assert "= softsign" in before and "= exp" in before
    assert "= softsign" in after and "exp" not in after and "mul" not in after


def test_gradients_and_reports(output):
    gradient, rest = output.split("gradient\n")[1].split("gradients\n")
    assert "a:f32[3] b:f32[3]. let" in gradient and "= softsign" in gradient
    assert gradient.count("reduce_sum") == 1 and "abs" in gradient
    assert "a:f32[8,3] b:f32[8,3]. let" in rest and "reduce_sum" not in rest.split("report")[0]
    assert "critical path" in rest and "by op" in rest


def test_own_op_is_lowered(output):
    assert "module @embedded" in output
    for op in ("stablehlo.abs", "stablehlo.add", "stablehlo.divide", "stablehlo.reduce"):
        assert op in output
    assert "softsign" not in output[output.index("module @embedded") : output.index("round trip")]


def test_round_trip_and_errors(output):
    assert "round trip: equal" in output
    assert "error: " in output and "[softsign] expected a float; got i32[]" in output
    assert "error: [grad] expected one output, a float scalar; got f32[2]" in output
