"""Structures of arguments and results as JSON, and the classes in them that users register."""

import base64
import collections
import json
from typing import Any, NamedTuple

from weft.errors import AttributeValueError
from weft.runtime.pytree import PyTreeDef, registry

_Tree: Any = PyTreeDef
_KEYS = {"str": str, "int": int}


class _Form(NamedTuple):
    """How the nodes of a class are kept."""

    name: str
    to_bytes: Any
    from_bytes: Any
    from_children: Any  # None: by the class's own registration


_by_class: dict[type, _Form] = {}
_by_name: dict[str, type] = {}


def register_pytree_node_serialization(
    nodetype, *, serialized_name, serialize_auxdata, deserialize_auxdata, from_children=None
):
    """Lets functions be serialised whose arguments or results hold nodes of a class.

    Args:
      nodetype: the class, which `weft.tree_util.register_pytree_node` knows.
      serialized_name: text that stands for the class in the bytes, wherever they are read.
      serialize_auxdata: a function from the node's auxiliary data to bytes.
      deserialize_auxdata: its inverse.
      from_children: a function from auxiliary data and children to a node; by default the one that
        the class was registered with.

    Returns `nodetype`. Raises ValueError if the class or the name is registered here already, and
    if the class is no node and `from_children` is not given.

    Examples:
      >>> class Angle:
      ...     def __init__(self, value):
      ...         self.value = value
      >>> def rebuild(_, children):
      ...     return Angle(*children)
      >>> weft.tree_util.register_pytree_node(Angle, lambda a: ((a.value,), None), rebuild)
      >>> known = weft.export.register_pytree_node_serialization(
      ...     Angle,
      ...     serialized_name="docs.Angle",
      ...     serialize_auxdata=lambda aux: b"",
      ...     deserialize_auxdata=lambda data: None,
      ... )
      >>> exported = weft.export.export(weft.jit(lambda a: 2 * a.value))(Angle(1.5))
      >>> weft.export.deserialize(exported.serialize()).call(Angle(2.0)).item()
      4.0
    """
    if nodetype in _by_class:
        raise AttributeValueError(
            "register_pytree_node_serialization: Duplicate serialization registration for "
            f"{nodetype}: expected a class without one; it has that of name "
            f"{_by_class[nodetype].name!r}"
        )
    if serialized_name in _by_name:
        raise AttributeValueError(
            "register_pytree_node_serialization: Duplicate serialization registration: expected a "
            f"name without one; {serialized_name!r} is that of {_by_name[serialized_name]}"
        )
    if from_children is None and not _is_node(nodetype):
        raise AttributeValueError(
            f"register_pytree_node_serialization expected a class that is a node of trees; got "
            f"{nodetype}\n  Call weft.tree_util.register_pytree_node first, or give from_children."
        )
    _by_class[nodetype] = _Form(
        serialized_name, serialize_auxdata, deserialize_auxdata, from_children
    )
    _by_name[serialized_name] = nodetype
    return nodetype


def register_namedtuple_serialization(nodetype, *, serialized_name):
    """Lets functions be serialised whose arguments or results hold named tuples of a class.

    Args:
      nodetype: the class. Where the bytes are read it must have the same fields.
      serialized_name: text that stands for the class in the bytes.

    Returns `nodetype`. Raises ValueError for other classes, and if the class or the name is
    registered already.

    Examples:
      >>> import collections
      >>> Pair = collections.namedtuple("Pair", "a b")
      >>> known = weft.export.register_namedtuple_serialization(Pair, serialized_name="docs.Pair")
      >>> exported = weft.export.export(weft.jit(lambda p: Pair(p.b, p.a)))(Pair(1, 2))
      >>> weft.export.deserialize(exported.serialize()).call(Pair(1, 2)).a
      Array(2, dtype=int32, weak_type=True)
    """
    if not _is_namedtuple(nodetype):
        raise AttributeValueError(
            f"register_namedtuple_serialization expected a class of named tuples; got {nodetype!r}"
            "\n  Use weft.export.register_pytree_node_serialization for others."
        )

    def fields(data):
        return json.dumps(nodetype._fields).encode()

    def check(data):
        stored = tuple(json.loads(data))
        if stored != nodetype._fields:
            raise AttributeValueError(
                f"deserialize expected {nodetype} with the fields {stored}, as serialised; it has "
                f"{nodetype._fields}"
            )

    return register_pytree_node_serialization(
        nodetype,
        serialized_name=serialized_name,
        serialize_auxdata=fields,
        deserialize_auxdata=check,
        from_children=lambda data, children: nodetype(*children),
    )


def _is_namedtuple(cls):
    return isinstance(cls, type) and issubclass(cls, tuple) and hasattr(cls, "_fields")


def _is_node(cls):
    return _is_namedtuple(cls) or registry.is_node(cls)


def tree_to_json(tree):
    """A structure as what JSON can hold. Raises ValueError for classes that are not registered."""
    data = tree.node_data()
    if data is None:
        return "*"
    cls, aux = data
    if cls is type(None):
        return None
    children = [tree_to_json(child) for child in tree.children()]
    if cls in (tuple, list):
        return {cls.__name__: children}
    if cls is dict:
        for key in aux:
            if type(key).__name__ not in _KEYS:
                raise AttributeValueError(
                    "serialize expected dicts of arguments and results to have keys that are text "
                    f"or ints; got {key!r}"
                )
        return {"dict": children, "keys": [[type(key).__name__, key] for key in aux]}
    if cls not in _by_class:
        raise AttributeValueError(
            "serialize: Cannot serialize PyTreeDef containing an unregistered type: expected None, "
            f"tuples, lists, dicts and registered classes; got {cls}\n"
            "  Use weft.export.register_pytree_node_serialization or "
            "weft.export.register_namedtuple_serialization."
        )
    form = _by_class[cls]
    told = form.to_bytes(aux)
    if not isinstance(told, (bytes, bytearray)):
        raise AttributeValueError(
            f"serialize expected serialize_auxdata of {cls} to return bytes; got "
            f"{type(told).__name__}"
        )
    return {"class": form.name, "data": base64.b64encode(told).decode(), "children": children}


def tree_from_json(stored):
    """The structure that `tree_to_json` was given."""
    if stored == "*":
        return _LEAF
    if stored is None:
        return registry.flatten(None)[1]
    if "class" in stored:
        return _registered(stored)
    kind = next(k for k in ("tuple", "list", "dict") if k in stored)
    children = [tree_from_json(child) for child in stored[kind]]
    if kind == "dict":
        keys = [_KEYS[name](key) for name, key in stored["keys"]]
        return _composed(dict.fromkeys(keys, 0), children)
    return _composed((0,) * len(children) if kind == "tuple" else [0] * len(children), children)


def _composed(node, children):
    """The structure whose root is that of a node, with other children."""
    return _Tree.from_node_data_and_children(
        registry, registry.flatten(node)[1].node_data(), children
    )


def _registered(stored):
    cls = _by_name.get(stored["class"])
    if cls is None:
        raise AttributeValueError(
            "deserialize: Cannot deserialize a PyTreeDef with an unregistered name: expected the "
            f"class that was serialised as {stored['class']!r} to be registered; it is not\n"
            "  Register it as where it was serialised, by weft.export.register_..."
        )
    form = _by_class[cls]
    data = form.from_bytes(base64.b64decode(stored["data"]))
    children = [tree_from_json(child) for child in stored["children"]]
    if form.from_children is None:
        return _Tree.from_node_data_and_children(registry, (cls, data), children)
    return _composed(form.from_children(data, [0] * len(children)), children)


_LEAF = registry.flatten(0)[1]

register_pytree_node_serialization(
    collections.OrderedDict,
    serialized_name="collections.OrderedDict",
    serialize_auxdata=lambda keys: json.dumps(keys).encode(),
    deserialize_auxdata=lambda data: tuple(json.loads(data)),
)
