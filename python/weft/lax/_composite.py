"""Functions that compilers may know by a name."""

import functools

import numpy as np

from weft import _core
from weft._arguments import static_int
from weft._recording import check_callable, check_leaves, leaf_paths
from weft._surface import named_after
from weft.dtypes import is_bool, is_float, is_integer
from weft.errors import UnexpectedTracerError
from weft.lax._regions import Body, regions
from weft.runtime.pytree import registry


def composite(decomposition, name, version=0):
    """A function that is emitted as one operation with a name.

    A compiler that knows an operation by this name and version may use an implementation of its
    own; others compile the decomposition. Derivatives and vectorised forms are those of the
    decomposition, without the name.

    Args:
      decomposition: the function; what it does is what the operation means.
      name: name of the operation, "my.softmax".
      version: of the operation's meaning.

    Returns:
      A function of the same arguments. Those by position are trees of arrays. Those by keyword are
      static, and attributes of the operation: numbers, strings, bools, dtypes, NumPy arrays, and
      sequences and dicts of these; None leaves an attribute out.

    Raises:
      UnexpectedTracerError: for an attribute that is a traced array.
      TypeError: for an attribute of another type.

    Examples:
      >>> f = lax.composite(lambda x: x * x, name="my.square")
      >>> f(wnp.arange(3))
      Array([0, 1, 4], dtype=int32)
    """
    check_callable(decomposition, "composite")

    @named_after(decomposition)
    def function(*args, **attributes):
        leaves, tree = registry.flatten(args)
        check_leaves(leaves, lambda i: f"argument{leaf_paths(tree)[i]} of {name}")
        trees = [registry.flatten(x)[1] for x in args]
        names = [f"argument {i}" for i in range(len(args))]
        given = [
            f"{_key(key)} = {_attribute(value, key, name)}"
            for key, value in attributes.items()
            if value is not None
        ]
        fun = functools.partial(decomposition, **attributes) if attributes else decomposition
        body = Body(fun, trees, leaves, "composite", names)
        (graph,), captures = regions(body)
        results = _core.bind_graphs(
            "composite",
            [*captures, *leaves],
            tuple(body.weak),
            jaxpr=graph,
            name=str(name),
            version=static_int(version, "composite", "version"),
            attributes=", ".join(given),
        )
        return body.out_tree.unflatten(results)

    return function


def _key(key):
    return key if key.isascii() and key.isidentifier() else _quoted(key)


def _quoted(text):
    """A string as MLIR writes it."""
    plain = (chr(b) if 32 <= b < 127 and b not in b'"\\' else f"\\{b:02X}" for b in text.encode())
    return '"' + "".join(plain) + '"'


def _element_type(dtype):
    """A dtype as MLIR writes it."""
    if is_bool(dtype):
        return "i1"
    if is_integer(dtype):
        return dtype.name.replace("uint", "ui").replace("int", "i")
    if dtype.name.startswith("float8_"):
        return dtype.name.replace("float8_", "f8").upper().replace("F8", "f8")
    return dtype.name.replace("bfloat", "bf").replace("float", "f")


def _element(x):
    """A NumPy scalar as MLIR writes it: floats by their bits."""
    if is_bool(x.dtype):
        return "true" if x else "false"
    if is_integer(x.dtype):
        return str(int(x))
    return "0x" + x.tobytes()[::-1].hex().upper()


def _elements(x):
    return "[" + ", ".join(map(_elements, x)) + "]" if x.ndim else _element(x[()])


def _attribute(value, key, name) -> str:
    """An attribute as MLIR writes it."""
    if isinstance(value, (_core.Array, _core.Tracer)):
        raise UnexpectedTracerError(
            f"[composite] expected a static attribute {key!r} of {name!r}; got {value!r:.60}\n"
            "  Pass arrays by position; as attributes there are NumPy arrays."
        )
    if isinstance(value, dict):
        items = (f"{_key(str(k))} = {_attribute(v, key, name)}" for k, v in value.items())
        return "{" + ", ".join(items) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_attribute(v, key, name) for v in value) + "]"
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, np.dtype) and _is_real(value):
        return _element_type(value)
    if isinstance(value, (bool, np.bool_)):
        return _element(np.bool_(value))
    if isinstance(value, (int, float)):
        value = (np.int64 if isinstance(value, int) else np.float64)(value)
    if isinstance(value, np.generic) and _is_real(value.dtype):
        return f"{_element(value)} : {_element_type(value.dtype)}"
    if isinstance(value, np.ndarray) and _is_real(value.dtype):
        shape = "".join(f"{size}x" for size in value.shape)
        elements = _elements(value) if value.size else ""
        return f"dense<{elements}> : tensor<{shape}{_element_type(value.dtype)}>"
    raise TypeError(
        f"[composite] expected attribute {key!r} of {name!r} to be a number, string, bool, dtype "
        f"or NumPy array, or a sequence or dict of these; got {value!r:.60}"
    )


def _is_real(dtype):
    return is_bool(dtype) or is_integer(dtype) or is_float(dtype)
