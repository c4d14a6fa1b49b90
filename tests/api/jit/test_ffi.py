"""weft.ffi: kernels of C++ built here against jaxlib's headers, called through all transforms."""

import ctypes
import shutil
import subprocess

import numpy as np
import pytest

import weft
import weft.numpy as wnp
from weft import errors, ffi
from weft.extend.core import Primitive
from weft.interpreters import mlir

SOURCE = r"""
#include <cstdint>
#include <string_view>
#include "xla/ffi/api/ffi.h"
namespace ffi = xla::ffi;
using Floats = ffi::Buffer<ffi::F32>;

static int64_t calls = 0;
extern "C" int64_t num_calls() { return calls; }

// alpha * x + y over all elements, y's over and over where it is shorter.
static ffi::Error Axpy(float alpha, Floats x, Floats y, ffi::ResultBuffer<ffi::F32> out) {
  ++calls;
  if (y.element_count() == 0 && x.element_count() > 0)
    return ffi::Error::InvalidArgument("y is empty");
  for (size_t i = 0; i < x.element_count(); ++i)
    out->typed_data()[i] = alpha * x.typed_data()[i] + y.typed_data()[i % y.element_count()];
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(axpy, Axpy, ffi::Ffi::Bind()
    .Attr<float>("alpha").Arg<Floats>().Arg<Floats>().Ret<Floats>());

// The elements in the order of memory, and the attributes.
static ffi::Error Flat(Floats x, ffi::ResultBuffer<ffi::F32> out, ffi::ResultBuffer<ffi::F64> info,
                       int64_t n, double f, bool b, std::string_view s, ffi::Span<const int32_t> v,
                       int8_t small) {
  for (size_t i = 0; i < x.element_count(); ++i) out->typed_data()[i] = x.typed_data()[i];
  double all[] = {double(n), f, double(b), double(s.size()), double(v[1]), double(small)};
  for (int i = 0; i < 6; ++i) info->typed_data()[i] = all[i];
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(flat, Flat, ffi::Ffi::Bind().Arg<Floats>().Ret<Floats>()
    .Ret<ffi::Buffer<ffi::F64>>().Attr<int64_t>("n").Attr<double>("f").Attr<bool>("b")
    .Attr<std::string_view>("s").Attr<ffi::Span<const int32_t>>("v").Attr<int8_t>("small"));

static ffi::Error Bump(Floats x, ffi::ResultBuffer<ffi::F32> out) {
  ++calls;
  for (size_t i = 0; i < x.element_count(); ++i) out->typed_data()[i] = x.typed_data()[i] + 1;
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(bump, Bump, ffi::Ffi::Bind().Arg<Floats>().Ret<Floats>());
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    compiler = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("needs a C++ compiler")
    folder = tmp_path_factory.mktemp("ffi")
    (folder / "kernels.cc").write_text(SOURCE)
    target = folder / "kernels.so"
    flags = ["-std=c++17", "-shared", "-fPIC", "-w", f"-I{ffi.include_dir()}"]
    subprocess.run([compiler, *flags, folder / "kernels.cc", "-o", target], check=True)
    library = ctypes.CDLL(str(target))
    library.num_calls.restype = ctypes.c_int64
    for name in ("axpy", "flat", "bump"):
        ffi.register_ffi_target(f"test_{name}", ffi.pycapsule(getattr(library, name)))
    return library


def struct(*shape, dtype="float32"):
    return weft.ShapeDtypeStruct(shape, dtype)


def axpy(x, y, alpha=2.0, **options):
    out = struct(*np.shape(x))
    return ffi.ffi_call("test_axpy", out, **options)(x, y, alpha=np.float32(alpha))


X = np.arange(3, dtype=np.float32)
Y = np.float32([10, 20, 30])


@pytest.mark.parametrize("wrap", [weft.jit, lambda f: f], ids=["jit", "eager"])
def test_call(library, wrap):
    np.testing.assert_array_equal(wrap(axpy)(X, Y), 2 * X + Y)
    np.testing.assert_array_equal(wrap(lambda x: axpy(x, x, 0.5))(X), 1.5 * X)
    shared = wrap(lambda x: axpy(axpy(x, Y), axpy(x, Y)))
    np.testing.assert_array_equal(shared(X), 3 * (2 * X + Y))


def test_text_and_printing(library):
    lowered = weft.jit(axpy).lower(X, Y)
    weft.compiler.verify_stablehlo(lowered.as_text())
    assert 'call_target_name = "test_axpy"' in lowered.as_text()
    graph = weft.jit(axpy).trace(X, Y).graph
    assert str(weft._core.parse(str(graph))) == str(graph)


@pytest.mark.parametrize(
    "method", ["sequential", "sequential_unrolled", "expand_dims", "broadcast_all"]
)
def test_vmap(library, method):
    xs = np.arange(6, dtype=np.float32).reshape(2, 3)
    f = weft.vmap(lambda x: axpy(x, Y, vmap_method=method))
    np.testing.assert_array_equal(f(xs), 2 * xs + Y)
    before = library.num_calls()
    np.testing.assert_array_equal(weft.jit(f)(xs), 2 * xs + Y)
    assert library.num_calls() - before == (2 if method.startswith("sequential") else 1)
    np.testing.assert_array_equal(weft.vmap(f)(xs[None]), (2 * xs + Y)[None])


def test_attributes_layouts_and_several_results(library):
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    attributes = {"n": 2**40, "f": 2.5, "b": True, "s": 'a"\n'}
    attributes |= {"v": np.int32([3, -4]), "small": np.int8(-5)}
    with weft.enable_x64(True):
        call = ffi.ffi_call(
            "test_flat",
            (struct(6), struct(6, dtype="float64")),
            input_layouts=[(1, 0)],
            vmap_method="sequential",
        )
        for f in (call, weft.jit(lambda x: call(x, **attributes))):
            out = f(x, **attributes) if f is call else f(x)
            assert isinstance(out, list)
            np.testing.assert_array_equal(out[0], x.T.ravel())
            np.testing.assert_array_equal(out[1], [2**40, 2.5, 1, 3, -4, -5])
        flat, _ = weft.vmap(lambda x: call(x, **attributes))(x[None])
        np.testing.assert_array_equal(flat[0], x.T.ravel())
    with pytest.raises(errors.ArgumentTypeError, match="attribute 'n' to be a number(.|\n)*list"):
        call(x, n=[1])
    text = weft.jit(lambda x: ffi.ffi_call("t", struct(3))(x, d={"k": (1, 2.5)}, t=np.dtype("i4")))
    assert "{d = {k = [1 : i64, 2.5" in text.lower(X).as_text()


def test_aliases_and_effects(library):
    bump = ffi.ffi_call("test_bump", struct(3), input_output_aliases={0: 0}, has_side_effect=True)
    x = wnp.asarray(X)
    np.testing.assert_array_equal(weft.jit(lambda x: bump(x) + x)(x), 2 * X + 1)
    np.testing.assert_array_equal(x, X)
    before = library.num_calls()
    weft.jit(lambda x: (bump(x), x)[1])(x)
    weft.jit(lambda x: (ffi.ffi_call("test_bump", struct(3))(x), x)[1])(x)
    assert library.num_calls() - before == 1
    assert weft.vmap(
        lambda x: ffi.ffi_call(
            "test_bump", struct(3), input_output_aliases={0: 0}, vmap_method="expand_dims"
        )(x)
    )(x[None]).tolist() == [[1, 2, 3]]


def test_derivatives(library):
    with pytest.raises(errors.NotImplementedRuleError, match="test_axpy(.|\n)*custom_jvp") as e:
        weft.grad(lambda x: axpy(x, Y).sum())(X)
    assert __file__ in str(e.value)

    @weft.custom_jvp
    def f(x):
        return axpy(x, Y)

    f.defjvp(lambda xs, ts: (f(xs[0]), 2 * ts[0]))
    np.testing.assert_array_equal(weft.jit(weft.grad(lambda x: f(x).sum()))(X), [2, 2, 2])


def test_lowering_of_a_primitive(library):
    prim = Primitive("test_axpy_p")
    prim.def_abstract_eval(lambda x, y, *, alpha: x)
    mlir.register_lowering(prim, ffi.ffi_lowering("test_axpy"))
    f = weft.jit(lambda x, y: prim.bind(x, y, alpha=np.float32(3)))
    np.testing.assert_array_equal(f(X, Y), 3 * X + Y)
    unknown = Primitive("test_unknown_p")
    unknown.def_abstract_eval(lambda x: x)
    mlir.register_lowering(unknown, ffi.ffi_lowering("test_unknown"))
    with pytest.raises(errors.AttributeValueError, match="got 'test_unknown'"):
        unknown.bind(X)


WRONG = {
    "target": (lambda x: ffi.ffi_call("nobody", struct(3))(x), "for platform cpu(.|\n)*'nobody'"),
    "empty": (lambda x: ffi.ffi_call("", struct(3))(x), "name of a target"),
    "method": (lambda x: axpy(x, x, vmap_method="each"), "vmap_method to be one of"),
    "no method": (lambda x: weft.vmap(lambda x: axpy(x, x))(x[None]), "vmap_method to be given"),
    "layouts": (lambda x: axpy(x, x, input_layouts=[(0,)]), "as many input_layouts as arrays"),
    "layout": (lambda x: axpy(x, x, input_layouts=[(0,), (1,)]), r"layouts\[1\] to order the 1"),
    "output": (lambda x: axpy(x, x, output_layouts=(0, 1)), r"output_layouts\[0\] to order"),
    "alias": (lambda x: axpy(x, x, input_output_aliases={2: 0}), r"of 2 operands(.|\n)*got \(2"),
    "alias type": (lambda x: ffi.ffi_call("t", struct(4), input_output_aliases={0: 0})(x),
                   r"arrays of one type; got operand 0: f32\[3\]"),
    "config": (lambda x: axpy(x, x, legacy_backend_config="a"), "custom_call_api_version below 4"),
    "version": (lambda x: axpy(x, x, custom_call_api_version=7), "custom_call_api_version"),
    "argument": (lambda x: axpy(x, "y"), "argument 1 of 'test_axpy'"),
    "result": (lambda x: ffi.ffi_call("t", 3)(x), "ShapeDtypeStructs; got 3"),
    "name": (lambda x: ffi.ffi_call(3, struct(3))(x), "name of a target; got 3"),
}  # fmt: skip


@pytest.mark.parametrize("kind", WRONG)
def test_mistakes(library, kind):
    call, message = WRONG[kind]
    for f in (call, weft.jit(call)):
        with pytest.raises(errors.WeftError, match=message) as e:
            f(wnp.asarray(X))
        assert __file__ in str(e.value)


def test_errors_of_kernels(library):
    f = weft.jit(lambda x, y: ffi.ffi_call("test_axpy", struct(3))(x, y, alpha=np.float32(1)))
    with pytest.raises(RuntimeError, match="y is empty"):
        f(X, X[:0]).block_until_ready()
    with pytest.raises(RuntimeError, match="(?i)attribute|operand|argument"):
        weft.jit(lambda x: ffi.ffi_call("test_axpy", struct(3))(x))(X).block_until_ready()


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda: ffi.register_ffi_target("test_none", len), errors.AttributeValueError, "target"),
        (lambda: ffi.register_ffi_target(type, len), errors.OperandError, "a name"),
        (lambda: ffi.register_ffi_type("test_none", 3.0), errors.WeftError, "type"),
        (lambda: ffi.pycapsule(len), TypeError, "expected a function that ctypes has loaded"),
    ],
)
def test_registration_of_what_is_no_function(call, error, words):
    with pytest.raises(error, match=words):
        call()
