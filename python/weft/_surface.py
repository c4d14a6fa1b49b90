"""What users see of weft: the names of its modules, and functions whose errors are for them."""

import sys
import types

from weft import _core

_METHODS = ("__call__", "__getitem__", "__init__")


def public(module, names, otherwise=None):
    """`(__getattr__, __dir__)` for a public module, whose public names are `names`.

    `otherwise(name)` may find names that are made when they are asked for; None if it has none.
    """

    def __getattr__(name):
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


def public_function(value):
    """A Python function as a public one; anything else as it is."""
    return _core.PublicFunction(value) if type(value) is types.FunctionType else value


def public_methods(cls):
    """Makes the methods of a class public functions; a decorator."""
    for name, value in list(vars(cls).items()):
        public = name in _METHODS or not name.startswith("_")
        if public and type(value) is types.FunctionType:
            setattr(cls, name, public_function(value))
    return cls


def _leave(error, function):
    from weft._tracebacks import leave  # nothing that a program without errors should load

    leave(error, function)


def _is_own_class(value):
    return (
        isinstance(value, type)
        and value.__module__.startswith("weft.")
        and not issubclass(value, BaseException)
    )


def open_to_users(package):
    """Makes the functions of the package's public modules, and methods of their classes, public.

    Modules keep calling each other's functions as they are.
    """
    _core.install(leave=_leave)
    made = {}  # so that two names of one function stay one function
    modules = [package]
    for module in modules:
        for name in module.__all__:
            value = getattr(module, name)
            if isinstance(value, types.ModuleType):
                modules.append(value)
            elif type(value) is types.FunctionType:
                if value not in made:
                    made[value] = public_function(value)
                setattr(module, name, made[value])
            elif _is_own_class(value) and value not in made:
                made[value] = public_methods(value)
    if _AbsentModules not in sys.meta_path:
        sys.meta_path.append(_AbsentModules)
