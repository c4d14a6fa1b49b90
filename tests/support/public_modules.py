"""The public modules of weft by name, as they lie in the package."""

import importlib
import pkgutil

import weft

INTERNAL = ("weft.runtime", "weft.cli", "weft.as_jax")  # the last is for its effect


def public_modules(package=weft):
    yield package
    for info in pkgutil.iter_modules(getattr(package, "__path__", ()), package.__name__ + "."):
        if not info.name.startswith(INTERNAL) and not info.name.split(".")[-1].startswith("_"):
            yield from public_modules(importlib.import_module(info.name))


MODULES = {module.__name__: module for module in public_modules()}
