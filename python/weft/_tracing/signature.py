"""The parameters of functions, and names of arguments and results for messages."""

import types
from typing import NamedTuple

from weft import _core
from weft.runtime.pytree import leaf_paths
from weft.tree_util import keystr


class Signature(NamedTuple):
    """The parameters of a function, by kind."""

    positional: tuple  # names, positional-only ones first
    positional_only: int  # how many of these cannot be given by name
    keyword_only: tuple
    rest: str | None  # name of *args
    keywords: bool  # whether there is **kwargs


def signature_of(fun):
    """The Signature of a function; None when it cannot be told."""
    if type(fun) is _core.PublicFunction:
        fun = fun.implementation
    if type(fun) is not types.FunctionType or "__wrapped__" in fun.__dict__:
        return _inspected_signature(fun)
    # The library's own functions go this way at import, where loading `inspect` would cost 10 ms.
    code = fun.__code__
    names, n, k = code.co_varnames, code.co_argcount, code.co_kwonlyargcount
    rest = names[n + k] if code.co_flags & 0x04 else None
    return Signature(
        names[:n], code.co_posonlyargcount, names[n : n + k], rest, bool(code.co_flags & 0x08)
    )


def _inspected_signature(fun):
    import inspect

    try:
        parameters = inspect.signature(fun).parameters.values()
    except (TypeError, ValueError):
        return None

    def names(*kinds):
        return tuple(p.name for p in parameters if p.kind in kinds)

    kind = inspect.Parameter
    rest = names(kind.VAR_POSITIONAL)
    return Signature(
        names(kind.POSITIONAL_ONLY, kind.POSITIONAL_OR_KEYWORD),
        len(names(kind.POSITIONAL_ONLY)),
        names(kind.KEYWORD_ONLY),
        rest[0] if rest else None,
        bool(names(kind.VAR_KEYWORD)),
    )


def _positional_name(fun, position):
    signature = signature_of(fun)
    if signature and position < len(signature.positional):
        return signature.positional[position]
    if signature and signature.rest:
        return f"{signature.rest}[{position - len(signature.positional)}]"
    return f"number {position}"


def quoted_name(fun):
    name = getattr(fun, "__name__", None)
    return f"'{name if name and isinstance(name, str) else type(fun).__name__}'"


def describe_argument(fun, in_tree, static_argnums, leaf):
    """Names the leaf-th array argument of a call, for messages: "argument x['w'] of 'f'"."""
    if in_tree is None:
        return f"argument {_positional_name(fun, leaf)} of {quoted_name(fun)}"
    path = leaf_paths(in_tree)[leaf]
    if path[0].idx == 1:  # keyword arguments
        return f"argument {path[1].key}{keystr(path[2:])} of {quoted_name(fun)}"
    dynamic = path[1].idx
    count = len(in_tree.children()[0].children()) + len(static_argnums)
    static = {n % count for n in static_argnums}
    position = [i for i in range(count) if i not in static][dynamic]
    name = _positional_name(fun, position)
    return f"argument {name}{keystr(path[2:])} of {quoted_name(fun)}"


def describe_position(fun, key):
    """Names the argument at a position (int) or of a name (str): "argument n of 'f'"."""
    name = key if isinstance(key, str) else _positional_name(fun, key)
    return f"argument {name} of {quoted_name(fun)}"


def describe_output(fun, out_tree, leaf):
    """Names the leaf-th result of a function, for messages."""
    path = ""
    if out_tree is not None:
        path = keystr(leaf_paths(out_tree)[leaf])
    return f"result{path} of {quoted_name(fun)}"


def result_paths(core):
    refs = ["ref"] * (len(core.written) + len(core.written_arguments))
    if core.out_tree is None:
        return ["result", *refs]
    return ["result" + keystr(path) for path in leaf_paths(core.out_tree)] + refs
