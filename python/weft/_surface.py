"""What users see of weft: the names of its modules, and functions whose errors are for them."""

import functools
import importlib
import sys
import types

from weft import _core

_METHODS = ("__call__", "__getitem__", "__init__")


def public(module, names, otherwise=None, later=None):
    """`(__getattr__, __dir__)` for a public module, whose public names are `names`.

    `otherwise(name)` may find names that are made when they are asked for; None if it has none.
    `later` has the modules that are loaded when a name of theirs is first asked for, each with
    those of its names that are public here; a module that is itself a public name has none:

        later={"weft.numpy._cumulative": ("cumprod", "cumsum"), "weft.numpy.linalg": ()}
    """
    homes = {}
    for home, held in (later or {}).items():
        homes |= dict.fromkeys(held or (home.rpartition(".")[2],), home)
        for name in held:
            _core.mark_public(f"{home}.{name}")

    def __getattr__(name):
        if name in homes:
            return _loaded(module, name, homes[name])
        found = None if otherwise is None else otherwise(name)
        if found is not None:
            return found
        if name.startswith("__"):  # asked for by Python itself
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        from weft._absent import absent_name  # reads a table: nothing that import should do

        raise absent_name(module, name, sys._getframe(1))

    def __dir__():
        return sorted(names)

    return __getattr__, __dir__


def _loaded(module, name, home):
    """A name from a module that is loaded for it; from then on an attribute like any other."""
    found = importlib.import_module(home)
    value = found if home == f"{module}.{name}" else _opened(getattr(found, name))
    setattr(sys.modules[module], name, value)
    return value


class _AbsentModules:
    """Says of `import weft.scipy` what the attribute would say; the last of `sys.meta_path`."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.startswith("weft."):
            from weft._absent import absent_module

            error = absent_module(name)
            if error is not None:
                raise error
        return


# What a function insists on of its attributes.
_KINDS = {"__name__": str, "__qualname__": str, "__annotations__": dict, "__type_params__": tuple}


def named_after(fun):
    """`functools.wraps` for callables of users, whose attributes may be of other kinds than those
    of functions."""
    assigned = [
        name
        for name in functools.WRAPPER_ASSIGNMENTS
        if isinstance(getattr(fun, name, None), _KINDS.get(name, object))
    ]
    return functools.wraps(fun, assigned=assigned)


def example_section(call, result, indent=""):
    """The last section of a docstring that a table makes: a call, as source, and its result."""
    lines = "Examples:", f"  >>> {call}", *(f"  {line}" for line in result.split("\n"))
    return f"\n{indent}".join(lines)


_ENTRY = "__weft_entry__"


def eager_entry(operands, *statics):
    """Decorator for functions whose calls on concrete arrays are programs of their own.

    Where such a function is public, it runs without Python if no trace wants the call: what it does
    is recorded once for the types of its operands and the values of its other arguments. It must
    depend on nothing else, and have one array as its result.

    Args:
      operands: how many of its first parameters are arrays, given by position.
      statics: names of parameters that may be bools, ints, tuples of ints and text. Calls that
        give others a value but None run as they do without the decorator.
    """

    def mark(function):
        setattr(function, _ENTRY, (operands, statics))
        return function

    return mark


def public_function(value):
    """A Python function as a public one; anything else as it is."""
    if type(value) is not types.FunctionType:
        return value
    return _core.PublicFunction(value, *vars(value).get(_ENTRY, ()))


def public_methods(cls):
    """Makes the methods of a class public functions; a decorator."""
    for name, value in list(vars(cls).items()):
        public = name in _METHODS or not name.startswith("_")
        if public and type(value) is types.FunctionType:
            _core.mark_public(value)
            setattr(cls, name, public_function(value))
    return cls


def _leave(error, function):
    from weft._tracebacks import leave  # circle: it reads settings

    leave(error, function)


def _is_own_class(value):
    return (
        isinstance(value, type)
        and value.__module__.startswith("weft.")
        and not issubclass(value, BaseException)
    )


_made = {}  # public functions by what they call, so that two names of one function stay one


def _opened(value):
    """A function as a public one, a class of weft with public methods, anything else as it is."""
    if type(value) is types.FunctionType:
        if value not in _made:
            _core.mark_public(value)
            _made[value] = public_function(value)
        return _made[value]
    if type(value) is _core.JitFunction:
        _core.mark_public(value.__wrapped__)
    if _is_own_class(value) and value not in _made:
        _made[value] = public_methods(value)
    return value


def open_to_users(name):
    """Makes the functions of a public module, and methods of its classes, public.

    So are those of the public modules in it. Modules that are loaded later do this for themselves,
    as the last thing they do. Private modules keep calling each other's functions as they are.
    """
    modules = [sys.modules[name]]
    for module in modules:
        present = vars(module)
        for each in module.__all__:
            if isinstance(present.get(each), types.ModuleType):
                modules.append(present[each])
            elif each in present:
                present[each] = _opened(present[each])


_core.install(leave=_leave)
sys.meta_path.append(_AbsentModules)
