"""Functions of other libraries that programs call by name: what is registered, and what for.

XLA looks a target up when it compiles, and says little where there is none; those of LAPACK crash
the process if they run before SciPy's functions were looked up. So `prepare` sees the names first.
"""

import contextlib
import ctypes
import functools
import os
import sys
import threading

import jaxlib
from jaxlib import _jax, xla_client

from weft import _core
from weft.errors import AttributeValueError
from weft.runtime import cuda

ExecutionStage = _jax.ffi.ExecutionStage
_PLATFORMS = {"cpu": "cpu", "cuda": "CUDA", "gpu": "CUDA"}
_lock = threading.Lock()
_loads = {}  # of libraries whose targets are registered: the future of what else they need
_registered = set()  # (platform, name) of what users have registered


def prepare(platform, targets):
    """Registers the targets of a program, (name, the user's line) each, for a compilation; what is
    returned waits until they can be called.

    Raises AttributeValueError for a name that nobody has registered.
    """
    loads = []
    for name, place in targets:
        library = _library_of(name, platform)
        if library is not None:
            loads.append(_load(library))
        elif not _is_registered(name, platform):
            where = f"\n  at {place}" if place else ""
            raise AttributeValueError(
                f"[ffi_call] expected the name of a target registered for platform {platform} "
                f"(weft.ffi.register_ffi_target); got '{name}'{where}"
            )
    return lambda: [load.result() for load in loads]


def is_ours(name, platform):
    """Whether a target is a kernel of jaxlib's or weft's, which means the same in every process."""
    return name in _own_kernels() or _library_of(name, platform) is not None


def _is_registered(name, platform):
    platform = _PLATFORMS.get(platform, platform)
    return (platform, name) in _registered or name in _jax.custom_call_targets(platform)


def _library_of(name, platform):
    """The part of jaxlib that a target of ours is in; None for those of others."""
    if platform == "cpu":
        is_lapack = name.startswith("lapack_") or name == "tridiagonal_solve_perturbed_ffi"
        return "lapack" if is_lapack else None
    known = name.startswith(("cusolver_", "cublas_", "cu_", "magma_", "cusparse_"))
    return "cuda" if known and platform == "cuda" else None


def _load(library):
    """Registers a library's targets; a future that is done when they can be called."""
    with _lock:
        known = _loads.get(library)
        if known is None or (known.done() and known.exception()):
            known = _loads[library] = {"lapack": _load_lapack, "cuda": _load_cuda}[library]()
    return known


def _load_lapack():
    from jaxlib import lapack

    register_all(lapack.registrations())

    def look_up():  # in two modules of SciPy, whose LAPACK it is
        with _without_package("scipy.linalg", ("cython_blas", "cython_lapack")):
            lapack._lapack.initialize()

    return _in_background(look_up)


@contextlib.contextmanager
def _without_package(package, names):
    """Within it, extension modules of a package can be imported that was not: importing the whole
    of scipy.linalg takes seven times as long. Afterwards they are as if nobody had imported them.
    """
    from importlib.machinery import PathFinder
    from importlib.util import find_spec, module_from_spec

    top, _, rest = package.partition(".")
    found = None if package in sys.modules else find_spec(top)
    made = []
    try:
        for folder in (found and found.submodule_search_locations) or ():
            path = [os.path.join(folder, *rest.split("."))]
            for name in names:
                spec = PathFinder.find_spec(f"{package}.{name}", path)
                if spec is None or spec.loader is None:
                    continue
                # What it needs besides may be missing: then the package says so, or has it.
                with contextlib.suppress(ImportError):
                    module = module_from_spec(spec)
                    spec.loader.exec_module(module)
                    if sys.modules.setdefault(spec.name, module) is module:
                        made.append(spec.name)
        yield
    finally:
        for name in made:
            sys.modules.pop(name, None)


def _load_cuda():
    from concurrent.futures import Future

    done = Future()
    cuda.register_kernels()
    done.set_result(None)
    return done


@functools.cache
def _own_kernels():
    return dict(_core.kernels())


def register_own_kernels():
    """Registers weft's own kernels with a client for CPUs that has started."""
    typed = 1
    register_all({"cpu": [(name, handler, typed) for name, handler in _own_kernels().items()]})


def _in_background(f):
    from concurrent.futures import Future  # not for those who need no library

    future = Future()

    def run():
        try:
            future.set_result(f())
        except BaseException as error:
            future.set_exception(error)

    try:
        threading.Thread(target=run, name="weft-load").start()
    except RuntimeError:  # the interpreter is about to end
        run()
    return future


def register_all(registrations):
    """Registers what a module of jaxlib offers: (name, capsule, version) by platform."""
    for platform, targets in registrations.items():
        for name, capsule, api_version in targets:
            xla_client.register_custom_call_target(
                name, capsule, platform=platform, api_version=api_version
            )


def register_target(name, function, platform, api_version, **options):
    """Registers a target with XLA, for good."""
    platform = _PLATFORMS.get(platform, platform)
    with _refusals("register_ffi_target"):
        xla_client.register_custom_call_target(
            name, function, platform=platform, api_version=api_version, **options
        )
    _registered.add((platform, name))


def make_partitionable(name):
    """Lets XLA run a target on parts of a batch."""
    xla_client.register_custom_call_as_batch_partitionable(name)


def register_type(name, registration, platform):
    with _refusals("register_ffi_type"):
        xla_client.register_custom_type(
            name, registration, platform=_PLATFORMS.get(platform, platform)
        )


@contextlib.contextmanager
def _refusals(function):
    """What XLA does not take is an error of the call.

    Without handlers, registrations would wait for the platform to start, and keep it from starting.
    """
    xla_client.register_custom_call_handler("cpu", _jax.register_custom_call_target)
    xla_client.register_custom_type_handler("cpu", _jax.register_custom_type)
    try:
        yield
    except _jax.JaxRuntimeError as error:
        raise AttributeValueError(f"[{function}] {error}") from None


def capsule(address):
    """A capsule that holds the address of a function."""
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = (
        ctypes.py_object,
        (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p),
    )
    return new(address, b"xla._CUSTOM_CALL_TARGET", None)


def include_dir():
    """The folder with the headers of XLA's typed FFI."""
    return os.path.join(os.path.dirname(jaxlib.__file__), "include")
