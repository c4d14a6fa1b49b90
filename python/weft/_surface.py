"""What a public module shows, and what it says of a name that it does not have."""

import sys


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


def install():
    """Lets imports of modules that weft lacks say so."""
    if _AbsentModules not in sys.meta_path:
        sys.meta_path.append(_AbsentModules)
