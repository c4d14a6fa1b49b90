"""What traced arrays have, what both kinds have, and what is not there.

`install` sets these and what `_array` has on the C++ types.
"""

import operator

from weft import _array as arrays, _core
from weft._array import Array, Tracer
from weft._surface import example_section, public_function
from weft._tensor_hints import OF_TENSORS, no_tensor
from weft.errors import (
    ConcretizationTypeError,
    ShapeError,
    TracerArrayConversionError,
    TracerBoolConversionError,
    TracerIntegerConversionError,
)

# ---- Tracer


def _tracer_repr(self):
    dims = ",".join(map(str, self.shape))
    return f"Tracer({'~' if self.weak_type else ''}{self.dtype.name}[{dims}])"


def _on_demand(error, wanted, hint, convert):
    """A conversion that works where the tracer has one value: under un-jitted derivatives."""
    refuse = _refuse(error, wanted, hint)

    def conversion(self, *args, **kwargs):
        value = _core.concrete_value(self)
        return refuse(self) if value is None else convert(value, *args, **kwargs)

    return conversion


def _if_constant(error, wanted, hint, convert):
    """The same, for what would silently lose the derivative that goes through the tracer."""
    converted = _on_demand(error, wanted, hint, convert)

    def conversion(self, *args, **kwargs):
        if _core.carries_derivative(self):
            raise error(
                f"expected a value that no derivative goes through to make {wanted}; got "
                f"{self._origin}, which is being differentiated\n"
                f"  {hint} If it is meant to be a constant, take weft.lax.stop_gradient of it."
            )
        return converted(self, *args, **kwargs)

    return conversion


def _format_traced(self, spec):
    if not spec:
        return _tracer_repr(self)
    value = _core.concrete_value(self)
    if value is not None:
        return arrays.formatted(value, spec)
    try:
        return format(_tracer_repr(self), spec)  # only an alignment
    except ValueError:
        return _refuse(ConcretizationTypeError, f"text of format {spec!r}", _TEXT)(self)


def _refuse(error, wanted, hint):
    def conversion(self, *_, **__):
        from weft._construct import construct  # parses Python: nothing that import should load

        asked_by = construct() if hint in (_BRANCH, _INDEX) else None
        way_out = _CONSTRUCTS.get(asked_by or "", hint)
        raise error(
            f"expected a concrete value to make {wanted}; got {self._origin}, which stands for "
            f"any value while the function is traced\n  {way_out}"
        )

    return conversion


_BRANCH = (
    "Use weft.numpy.where or weft.lax.cond instead of `if`, weft.lax.while_loop instead of "
    "`while`, or make the argument static (static_argnums)."
)
_STATIC = ", or make the argument static (static_argnums)."
_CONSTRUCTS = {
    "if": "Use weft.lax.cond instead of this `if`, or weft.numpy.where to select" + _STATIC,
    "if expression": "Use weft.numpy.where instead of this `if ... else`, or weft.lax.cond"
    + _STATIC,
    "while": "Use weft.lax.while_loop instead of this `while`" + _STATIC,
    "for": "Use weft.lax.fori_loop or weft.lax.scan instead of this `for`" + _STATIC,
    "assert": "This `assert` would check once, while the function is traced. To look at values as "
    "the program runs, use weft.debug.callback.",
    "and": "Use `&` (weft.numpy.logical_and) instead of this `and`" + _STATIC,
    "or": "Use `|` (weft.numpy.logical_or) instead of this `or`" + _STATIC,
    "not": "Use `~` (weft.numpy.logical_not) instead of this `not`" + _STATIC,
}
_NUMBER = "Keep it an array (.astype converts dtypes), or make the argument static."
_INDEX = (
    "Shapes, axes and slice bounds must be known while tracing: make the argument static "
    "(static_argnums), or use weft.lax.dynamic_slice for a start that varies. In place of a list, "
    "index weft.numpy.array(list); in place of `range`, use weft.lax.fori_loop."
)
_TEXT = (
    "To print values as the program runs, use weft.debug.print('{x}', x=x); to format a result, "
    "return it."
)
_NUMPY = (
    "NumPy functions need values; use the function of the same name in weft.numpy, or move the "
    "call out of the traced function."
)

_one_traced_bool = _on_demand(TracerBoolConversionError, "a bool", _BRANCH, bool)
_refuse_many = _refuse(ShapeError, "one bool of many elements (any() and all() make one)", _BRANCH)


def _traced_bool(self):
    # Arrays of several elements have no truth value, traced or not.
    if self.size != 1 and _core.concrete_value(self) is None:
        return _refuse_many(self)
    return _one_traced_bool(self)


_TRACER = {
    "__repr__": _tracer_repr,
    "__str__": _tracer_repr,
    "__format__": _format_traced,
    "__bool__": _traced_bool,
    "__int__": _on_demand(ConcretizationTypeError, "an int", _NUMBER, int),
    "__float__": _if_constant(ConcretizationTypeError, "a float", _NUMBER, float),
    "__complex__": _if_constant(ConcretizationTypeError, "a complex number", _NUMBER, complex),
    "__index__": _on_demand(TracerIntegerConversionError, "an int", _INDEX, operator.index),
    "__array__": _if_constant(TracerArrayConversionError, "a NumPy array", _NUMPY, arrays.to_numpy),
    "__reduce__": _refuse(ConcretizationTypeError, "a pickle", _NUMBER),
    "tolist": _if_constant(
        ConcretizationTypeError, "a list", _NUMBER, lambda value: value.tolist()
    ),
    "item": _on_demand(ConcretizationTypeError, "a number", _NUMBER, arrays.item),
    "__copy__": lambda self: self,
    "__deepcopy__": lambda self, memo: self,
    "copy": lambda self: _core.bind("copy", self),
    "block_until_ready": lambda self: self,
}


def _transposed(self):
    return _core.bind("transpose", self, permutation=tuple(reversed(range(self.ndim))))


def _matrix_transposed(self):
    if self.ndim < 2:
        raise ValueError(f"mT expected at least 2 axes; got shape {self.shape}")
    axes = tuple(range(self.ndim - 2))
    return _core.bind("transpose", self, permutation=(*axes, self.ndim - 1, self.ndim - 2))


_BOTH = {
    "T": property(_transposed, doc="The array with its axes in reverse order."),
    "mT": property(_matrix_transposed, doc="The array with its last two axes exchanged."),
    "itemsize": property(lambda self: self.dtype.itemsize, doc="Bytes of an element."),
    "aval": property(arrays.aval, doc="The type of the array; see `weft.typeof`."),
    "byteswap": arrays.byteswap,
    "flat": property(arrays.no_flat, doc=arrays.no_flat.__doc__),
    "__contains__": arrays.contains,
    "nbytes": property(lambda self: self.size * self.dtype.itemsize, doc="Bytes of all elements."),
    # NumPy's operators leave the operation to ours.
    "__array_priority__": 100,
    "__dir__": lambda self: _dir(self),
}


# ---- what is not there


class _Absent:
    """In the place of an attribute that is not there: says why, or what to write."""

    def __init__(self, name, text):
        self._name, self._text = name, text

    def __get__(self, instance, owner):
        # Without the object, so that Python adds no guess of its own.
        raise AttributeError(self._text, name=self._name)


def _dir(self):
    kind = type(self)
    return [n for n in object.__dir__(self) if not isinstance(vars(kind).get(n), _Absent)]


def _no_device(name):
    return (
        f"a traced array has no {name!r}: it stands for any value, which is on a device only when "
        "the program runs"
    )


# A value has these only where it is, on a device. Code asks for the first ones to tell arrays that
# are there from others.
_CONCRETE_ONLY = ("copy_to_host_async", "device", "is_ready", "sharding")
_ON_DEVICE = (
    "It is on a device only when the program runs: look at the arguments or results of the traced "
    "function, or at weft.typeof(x)."
)


def _on_device(name):
    return _refuse(ConcretizationTypeError, f"its {name}", _ON_DEVICE)


_TRACER |= {
    name: _on_device(name)
    for name in (
        "__dlpack__",
        "addressable_data",
        "delete",
        "devices",
        "is_deleted",
        "on_device_size_in_bytes",
        "tobytes",
        "unsafe_buffer_pointer",
    )
}
_TRACER |= {
    name: property(_on_device(name))
    for name in (
        "addressable_shards",
        "committed",
        "format",
        "global_shards",
        "is_fully_addressable",
        "is_fully_replicated",
    )
}


# By name of a method: what it does, and an example.
_DOCS = {
    "devices": (
        "The set of devices that have parts of the array.",
        *("wnp.arange(3).devices() == {weft.devices()[0]}", "True"),
    ),
    "is_ready": (
        "Whether its value has been computed.",
        *("wnp.arange(3).block_until_ready().is_ready()", "True"),
    ),
    "on_device_size_in_bytes": (
        "Bytes of its memory on the device.",
        *("wnp.zeros(256).on_device_size_in_bytes()", "1024"),
    ),
    "tobytes": (
        "The bytes of its elements, in row-major order by default.",
        *('wnp.array([1, 2], "uint8").tobytes()', "b'\\x01\\x02'"),
    ),
    "tolist": (
        "Its elements as Python numbers, in nested lists.",
        *("wnp.array([[1, 2], [3, 4]]).tolist()", "[[1, 2], [3, 4]]"),
    ),
}


def install():
    """Sets the methods on the types."""
    for name, (text, call, result) in _DOCS.items():
        arrays.METHODS[name].__doc__ = f"{text}\n\n{example_section(call, result)}"
    absent = {name: _Absent(name, _no_device(name)) for name in _CONCRETE_ONLY}
    tensors = {name: _Absent(name, no_tensor(name, text)) for name, text in OF_TENSORS.items()}
    kinds = (
        (_core.Array, tensors, _BOTH, arrays.METHODS),
        (Tracer, tensors, absent, _BOTH, _TRACER),
    )
    for kind, *tables in kinds:
        for table in tables:
            for name, method in table.items():
                setattr(kind, name, public_function(method))


def show_members():
    """Gives weft.Array the attributes that arrays have, when all of them are there."""
    for name, value in vars(_core.Array).items():
        is_special = name.startswith("__") and name.endswith("__")
        if isinstance(value, _Absent) or name in ("__doc__", "__module__"):
            continue
        if is_special or not name.startswith("_"):
            setattr(Array, name, _member(name, value))


def _member(name, value):
    """An attribute of arrays as one of weft.Array, which stands for traced values too."""
    is_shared = vars(Tracer).get(name) is value
    if is_shared or not hasattr(value, "__get__"):
        return value

    def of(self):
        if not isinstance(self, Array):
            raise TypeError(f"weft.Array.{name} expected an array; got {type(self).__name__}")
        return getattr(self, name)

    if not callable(value):
        return property(of, doc=value.__doc__)

    def method(self, *args, **kwargs):
        return of(self)(*args, **kwargs)

    method.__name__, method.__qualname__ = name, f"Array.{name}"
    method.__doc__ = value.__doc__
    return public_function(method)
