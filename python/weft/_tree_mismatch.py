"""Finds where two trees that should have the same structure part, for error messages."""

from typing import Any

from weft.runtime.pytree import registry

# What stands for an array or a number in a tree of which there is only the structure.
LEAF = object()


def _one_level(tree):
    try:
        return registry.flatten_one_level_with_keys(tree)
    except ValueError:
        return None


def _describe(tree, node):
    if tree is None:
        return "None"
    name = type(tree).__name__
    if tree is LEAF:
        return "one array or number"
    if node is None:
        return f"a leaf of type {name}"
    children, data = node
    if isinstance(tree, dict):
        return f"a {name} with keys {[key.key for key, _ in children]}"
    if isinstance(tree, (list, tuple)):
        return f"a {name} of length {len(tree)}"
    return f"a node of type {name} with {len(children)} children and data {data!r}"


def _described_apart(expected, expected_node, got, got_node):
    """Texts of two nodes that differ; of two dicts, also which keys do."""
    texts = _describe(expected, expected_node), _describe(got, got_node)
    if not (isinstance(expected, dict) and isinstance(got, dict)):
        return texts
    missing = [repr(key) for key in expected if key not in got]
    further = [repr(key) for key in got if key not in expected]
    apart = [f"{', '.join(missing)} missing"] if missing else []
    apart += [f"{', '.join(further)} not expected"] if further else []
    return texts[0], texts[1] + (f" ({'; '.join(apart)})" if apart else "")


def first_mismatch(prefix, full, is_leaf=None) -> Any:
    """Returns `(key path, expected, got)` where `full` first departs from `prefix`, or None."""
    stack: list[Any] = [((), prefix, full)]
    while stack:
        path, expected, got = stack.pop()
        if is_leaf is not None and is_leaf(expected):
            continue
        expected_node = _one_level(expected)
        if expected_node is None:
            continue
        got_node = _one_level(got)
        expected_node = (list(expected_node[0]), expected_node[1])
        if got_node is not None:
            got_node = (list(got_node[0]), got_node[1])
        if (
            type(expected) is not type(got)
            or got_node is None
            or len(expected_node[0]) != len(got_node[0])
            or expected_node[1] != got_node[1]
        ):
            return path, *_described_apart(expected, expected_node, got, got_node)
        pairs = zip(expected_node[0], got_node[0], strict=True)
        stack.extend([((*path, key), x, y) for (key, x), (_, y) in pairs][::-1])
    return None


def structure_text(treedef):
    """A structure as text, with `*` for each leaf: `{'a': *, 'b': (*, *)}`."""
    text = str(treedef).removeprefix("PyTreeDef(").removesuffix(")")
    return "one array or number" if text == "*" else text


def explain_difference(expected, got):
    """The difference of two structures as text: `(*,); got (*, *)` and where they part."""
    text = f"{structure_text(expected)}; got {structure_text(got)}"
    try:
        want, have = (t.unflatten([LEAF] * t.num_leaves) for t in (expected, got))
        found = first_mismatch(want, have)
        if found is None:
            path, have, want = first_mismatch(have, want)
        else:
            path, want, have = found
    except Exception:  # a class that cannot be made of placeholders
        return text
    if path:
        text += f"\n  in {''.join(map(str, path))}: expected {want}, got {have}"
    return text


def explain_mismatch(prefix, full, is_leaf=None):
    """The mismatch as text: `at ['a'][0] expected ...; got ...`; empty if there is none."""
    found = first_mismatch(prefix, full, is_leaf)
    if found is None:
        return ""
    path, expected, got = found
    place = "at " + "".join(map(str, path)) if path else "at the root"
    return f"{place} expected {expected}; got {got}"
