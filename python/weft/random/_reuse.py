"""Keys that were used, where the setting weft_debug_key_reuse is on.

A key is known again as an object, and by its words: those of `keys[0]` are the same each time. Keys
that are made anew (from a seed, by `split`, `clone` and so on) may be used, whatever their words.
"""

import inspect
import sys
import weakref

import numpy as np

from weft import _core
from weft._surface import named_after
from weft.errors import KeyReuseError
from weft.random._keys import unwrapped, used_words
from weft.tree_util import tree_leaves

_objects = {}  # id -> weak reference, for as long as the array lives
# id -> a reference to an array made by `clone`, not used so far, and those of its words that are
# used when it is, as they were before.
_clones = {}
_whole = {}  # id -> a traced key of one lane of vmap, and the array that has those of all lanes


def note_use(key, function, frame):
    """Marks a key as used; KeyReuseError if it is marked.

    What weft.random does with a key that a function of it was given is part of that one use;
    `frame` is the first one that is asked whether it is the function's.
    """
    if _is_within_another(frame):
        return
    while id(key) in _whole:
        key = _whole[id(key)][1]
    known = _objects.get(id(key))
    clone, before = _clones.pop(id(key), (None, None))
    is_clone = clone is not None and clone() is key
    marks = before if is_clone else set(_marks(key))
    if (known is not None and known() is key) or (marks & used_words and not is_clone):
        raise KeyReuseError(
            f"[{function}] expected a key that was not used before; got one whose bits were drawn, "
            "or that was split\n  Make new keys of it first, with weft.random.split, or take "
            "weft.random.clone(key) where the same numbers are wanted."
        )
    if isinstance(key, _core.Array):
        at = id(key)
        _objects[at] = weakref.ref(key, lambda _: _objects.pop(at, None))
    used_words.update(marks)


def of_lanes(fun, args, kwargs):
    """`fun` for a call under vmap: that a lane uses its key is a use of the array of all keys."""
    arrays = tree_leaves((args, kwargs))

    def lane(*args, **kwargs):
        pairs = zip(tree_leaves((args, kwargs)), arrays, strict=True)
        noted = {id(key): (key, array) for key, array in pairs if type(key) is _core.Tracer}
        _whole.update(noted)
        try:
            return fun(*args, **kwargs)
        finally:
            for each in noted:
                del _whole[each]

    return named_after(fun)(lane)


def _is_within_another(frame):
    """Whether there are two public functions of weft.random between the frame and the user's."""
    module = sys.modules["weft.random"]
    public = (vars(module).get(name) for name in module.__all__)
    functions = (inspect.unwrap(f) for f in public if callable(f))
    codes = {f.__code__ for f in functions if inspect.isfunction(f)}
    found = 0
    while frame is not None and frame.f_globals.get("__name__", "").startswith("weft."):
        found += frame.f_code in codes
        frame = frame.f_back
    return found > 1


def note_new(keys):
    """The keys are new ones, which may be used."""
    used_words.difference_update(_marks(keys))


def note_clone(key):
    """The key may be used once, whatever becomes of the one that it is a copy of; and so may its
    elements."""
    before = used_words & set(_marks(key))
    used_words.difference_update(before)
    if isinstance(key, _core.Array):
        at = id(key)
        _clones[at] = weakref.ref(key, lambda _: _clones.pop(at, None)), before


def _marks(keys):
    if isinstance(keys, _core.Tracer):
        keys = _core.concrete_value(keys)  # None under vmap, in loops and branches
        if keys is None:
            return
    dtype = keys.dtype
    words = np.asarray(unwrapped(keys)).reshape(-1, dtype.itemsize // 4)
    yield from ((dtype, row.tobytes()) for row in words)
