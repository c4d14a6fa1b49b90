"""`import weft.as_jax`: from then on `import jax` gives weft, for libraries written for JAX.

docs/libraries.md says which ones are known to run, and what they cannot expect. Modules of the name
jax.* show what weft.* has; besides, they have stand-ins for the few names of JAX's inside that
libraries take.
"""

import importlib
import importlib.abc
import importlib.machinery
import sys
import types
from typing import Any

import numpy as np

from weft import _as_jax_flat as flat, _core
from weft._types.avals import AbstractRef, AbstractValue, ShapedArray, typeof
from weft.dtypes import extended, float0, to_complex_dtype
from weft.errors import TypePromotionError
from weft.experimental import checkify
from weft.extend.core import Primitive, get_opaque_trace_state
from weft.flatten_util import ravel_pytree
from weft.numpy import _namespace
from weft.runtime.callback import effects_barrier

_VERSION = (0, 10, 2)  # the one whose names and behaviour weft has


def _inside_of_jax(*args, **kwargs):
    raise NotImplementedError("a part of the inside of JAX that weft has no counterpart of")


class _Unused:
    """A class that nothing of weft is an instance of."""


def _itself(function=None, **options):
    """A decorator that changes nothing, with and without options."""
    return (lambda f: f) if function is None else function


_VERSIONS = {"__version__": ".".join(map(str, _VERSION)), "__version_info__": _VERSION}
_STAND_INS: dict[str, dict[str, Any]] = {
    "jax": _VERSIONS,
    "jax.version": _VERSIONS,
    "jax.lib": {},
    "jax.api_util": {
        "debug_info": flat.debug_info,
        "flatten_fun": flat.flatten_fun,
        "flatten_fun_nokwargs": flat.flatten_fun_nokwargs,
        "safe_map": lambda f, *rows: list(map(f, *rows)),
        "shaped_abstractify": typeof,
    },
    "jax.core": {
        "get_opaque_trace_state": get_opaque_trace_state,
        "pytype_aval_mappings": {np.ndarray: _itself},
        "Trace": flat.Named,
    },
    "jax.experimental": {"cur_qdd": _inside_of_jax},
    "jax.experimental.hijax": {
        "AbstractValue": AbstractValue,
        "AvalMutableQDD": flat.Named,
        "AvalQDD": flat.Named,
        "HiPrimitive": flat.Named,
        "MutableHiType": flat.Named,
        "Zero": _Unused,
        "aval_method": _itself,
        "aval_property": _itself,
        "control_flow_allowed_effects": flat.Effects(),
        "instantiate_zeros": _itself,
        "is_undefined_primal": lambda x: False,
        "register_hitype": lambda cls, to_type: None,
    },
    "jax.experimental.sparse": {"BCOO": _Unused, "sparsify": _inside_of_jax},
    "jax.extend.core": {
        "DropVar": _Unused,
        "Effect": flat.Named,
        "TraceTag": _inside_of_jax,
        "find_top_trace": lambda xs: flat.Trace,
        "set_current_trace": _inside_of_jax,
        "take_current_trace": _inside_of_jax,
    },
    "jax.extend.core.primitives": {"call_p": _Unused, "closed_call_p": _Unused},
    "jax.extend.linear_util": {
        "WrappedFun": flat.WrappedFun,
        "transformation": _itself,
        "transformation_with_aux": _itself,
        "wrap_init": flat.wrap_init,
    },
    "jax.extend.source_info_util": {"register_exclusion": lambda path: None},
    "jax.interpreters.ad": {"JVPTracer": _core.Tracer},
    "jax.interpreters.mlir": {"emit_python_callback": _inside_of_jax},
    "jax.interpreters.partial_eval": {
        "PartialVal": flat.PartialVal,
        "trace_to_jaxpr_nounits": flat.trace_to_jaxpr_nounits,
    },
    "jax.interpreters.xla": {"canonicalize_dtype_handlers": {np.ndarray: _itself}},
    "jax._src": {},
    "jax._src.ad_util": {"stop_gradient_p": Primitive("stop_gradient")},
    "jax._src.api_util": {"infer_argnums_and_argnames": flat.infer_argnums_and_argnames},
    "jax._src.checkify": {name: getattr(checkify, name) for name in checkify.__all__},
    "jax._src.compiler": {},
    "jax._src.core": {
        "ShapedArray": ShapedArray,
        "trace_state_clean": lambda: not _core.in_trace(),
    },
    "jax._src.dispatch": {"wait_for_tokens": effects_barrier},
    "jax._src.dtypes": {
        "DType": _Unused,
        "ExtendedDType": _Unused,
        "TypePromotionError": TypePromotionError,
        "extended": extended,
        "float0": float0,
        "to_complex_dtype": to_complex_dtype,
    },
    "jax._src.earray": {},
    "jax._src.flatten_util": {"ravel_pytree": ravel_pytree},
    "jax._src.interpreters": {},
    "jax._src.interpreters.pxla": {},
    "jax._src.state": {},
    "jax._src.state.types": {"AbstractRef": AbstractRef},
    "jax._src.traceback_util": {
        "api_boundary": _itself,
        "include_frame": lambda frame: True,
        "register_exclusion": lambda path: None,
    },
    "jax._src.tree_util": {"_registry": flat.NodeClasses()},
    "jax._src.xla_bridge": {"_backends": {}},
}


# Of the names with underscores around them, those that are for users.
_OPEN = ("__all__", "__array_api_version__", "__array_namespace_info__")


class _Renamed(types.ModuleType):
    """A module of weft under the name that it has in JAX; or stand-ins alone."""

    def __init__(self, name, own, stand_ins):
        super().__init__(name, getattr(own, "__doc__", None))
        self.__path__ = []
        self._own = own
        if hasattr(own, "__all__"):
            self.__all__ = own.__all__
        vars(self).update(stand_ins)

    def __getattr__(self, name):
        if (full_name := f"{self.__name__}.{name}") in _STAND_INS:
            return importlib.import_module(full_name)
        is_machinery = name.startswith("__") and name not in _OPEN
        if is_machinery or self._own is None:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        found = getattr(self._own, name)
        if isinstance(found, types.ModuleType) and found.__name__.startswith("weft."):
            found = importlib.import_module("jax" + found.__name__.removeprefix("weft"))
        vars(self)[name] = found
        return found

    def __dir__(self):
        return sorted({*vars(self), *dir(self._own)})


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, fullname, path=None, target=None):
        if fullname.partition(".")[0] != "jax":
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec):
        try:
            own = importlib.import_module("weft" + spec.name.removeprefix("jax"))
        except ModuleNotFoundError:
            if spec.name not in _STAND_INS:
                raise
            own = None
        return _Renamed(spec.name, own, _STAND_INS.get(spec.name, {}))

    def exec_module(self, module):
        pass


def _install():
    present = sys.modules.get("jax")
    if present is not None and not isinstance(present, _Renamed):
        raise ImportError(
            "weft.as_jax expected that jax is not imported yet; got a process that has it\n"
            "  Import weft.as_jax first."
        )
    if present is None:
        tracer: Any = _core.Tracer
        tracer._trace = flat.Trace
        _namespace.module_name = "jax.numpy"
        sys.meta_path.insert(0, _Finder())
        importlib.import_module("jax")


_install()
