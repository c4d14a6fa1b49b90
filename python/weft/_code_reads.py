"""What bytecode reads by name: globals, closures, imports, and what it asks of them at once.

A module that a function gets at so is read by the attributes that are asked for right there
(`np.sin` reads `sin`), one chain of names per place. Where it is put to any other use, as an
argument or in a list, the attributes that are read of it cannot be told: its chain ends there.
"""

import functools
import inspect
import opcode
import types
from typing import Any, NamedTuple

_OPS = opcode.opmap
# Arguments of these are shifted by a bit that says how the result is called.
_SHIFTED = {_OPS["LOAD_GLOBAL"]}
if "LOAD_METHOD" not in _OPS or _OPS["LOAD_METHOD"] > 255:
    _SHIFTED.add(_OPS["LOAD_ATTR"])


def _ops(*names):
    return frozenset(_OPS[name] for name in names if name in _OPS)


_ATTRIBUTE = _ops("LOAD_ATTR", "LOAD_METHOD")
_GLOBAL = _ops("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS")
_CELL = _ops("LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF")
_FAST = _ops("LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_FAST_BORROW")
_TWO_FAST = _ops("LOAD_FAST_LOAD_FAST", "LOAD_FAST_BORROW_LOAD_FAST_BORROW")
_STORE = _ops("STORE_FAST", "STORE_DEREF", "STORE_NAME")
_STORE_LOAD = _ops("STORE_FAST_LOAD_FAST")
_TWO_STORE = _ops("STORE_FAST_STORE_FAST")
_BETWEEN = _ops("SWAP", "POP_TOP", "COPY", "NOP", "ROT_TWO")  # parts of one import
_IMPORT, _IMPORT_FROM = _OPS["IMPORT_NAME"], _OPS["IMPORT_FROM"]
# What the compiler makes a class body set.
_OF_CLASS_BODIES = frozenset(("__firstlineno__", "__static_attributes__"))
_EXTENDED, _CACHE = _OPS["EXTENDED_ARG"], 0
_POP_TOP, _SMALL_INT = _OPS["POP_TOP"], _OPS.get("LOAD_SMALL_INT", -1)


class CodeReads(NamedTuple):
    """Chains are tuples of attribute names, sorted.

    A chain that ends with "" is of a name that is imported, whatever comes of it.

    Attributes: text (what of the code decides about what it does: no lines, no files), globals
    (name to chains), free (name in the closure to chains), imports ((level, module, names) to
    chains, of which names of the import are the first), words (all names and strings).
    """

    text: str
    globals: dict[str, list[tuple[str, ...]]]
    free: dict[str, list[tuple[str, ...]]]
    imports: dict[tuple[int, str, Any], list[tuple[str, ...]]]
    words: frozenset[str]


@functools.lru_cache(4096)
def code_reads(code):
    """What code, and the code within it, reads."""
    found: Any = {}
    words: Any = set()
    _collect(code, frozenset(code.co_freevars), {}, found, words)
    of: Any = {"global": {}, "free": {}, "import": {}}
    for (kind, key), chains in found.items():
        of[kind][key] = sorted(chains)
    return CodeReads(_text(code), of["global"], of["free"], of["import"], frozenset(words))


def _collect(code, free, imported, found, words):
    """`free`: the names of the outermost function's closure. `imported`: of variables that modules
    are imported into, the import and the names that were asked of it."""
    is_class = not code.co_flags & inspect.CO_NEWLOCALS
    words.update(set(code.co_names) - _OF_CLASS_BODIES if is_class else code.co_names)
    units = _units(code)
    imported = {name: roots for name, roots in imported.items() if name in code.co_freevars}
    if any(op == _IMPORT for op, _ in units):
        _note_imports(code, units, imported, found)
    _note_loads(code, units, free, imported, found)
    for constant in code.co_consts:
        _note_strings(constant, words)
        if type(constant) is types.CodeType:
            inner = free.intersection(constant.co_freevars).difference(code.co_cellvars)
            _collect(constant, inner, imported, found, words)


def _note_strings(constant, words):
    if type(constant) is str:
        words.add(constant)
    elif type(constant) in (tuple, frozenset):
        for x in constant:
            _note_strings(x, words)


def _units(code):
    """(op, argument) of all instructions."""
    units, high = [], 0
    data = code.co_code
    for op, arg in zip(data[::2], data[1::2], strict=True):
        if op == _CACHE:
            continue
        if op == _EXTENDED:
            high = (high | arg) << 8
            continue
        units.append((op, high | arg))
        high = 0
    return units


def _variable(code, arg):
    return code._varname_from_oparg(arg)


def _name(code, op, arg):
    return code.co_names[arg >> 1 if op in _SHIFTED else arg]


def _note_imports(code, units, imported, found):
    key: Any = None
    prefix: Any = ()
    for i, (op, arg) in enumerate(units):
        if op == _IMPORT:
            (level_op, level), (_, names) = units[i - 2], units[i - 1]
            level = level if level_op == _SMALL_INT else code.co_consts[level]
            key, prefix = (level, code.co_names[arg], code.co_consts[names]), ()
            found.setdefault(("import", key), set())
        elif key is None:
            continue
        elif op == _POP_TOP and key[2]:
            key = None
        elif op == _IMPORT_FROM:
            name = code.co_names[arg]
            prefix = (name,) if key[2] else (*prefix, name)
        elif op in _STORE or op in _STORE_LOAD or op in _TWO_STORE:
            first = arg >> 4 if op in _STORE_LOAD or op in _TWO_STORE else arg
            is_name = op == _OPS["STORE_NAME"]
            target = code.co_names[first] if is_name else _variable(code, first)
            imported.setdefault(target, set()).add((key, prefix))
            # As an attribute of a class that is made here it may be put to any use.
            found["import", key].add(prefix if is_name else (*prefix, ""))
            if not key[2]:
                key = None
        elif op not in _BETWEEN:
            found["import", key].add(prefix)  # its further use is unknown
            key = None


def _note_loads(code, units, free, imported, found):
    current: Any = None  # roots of what is on top of the stack, and the names asked of it

    def flush():
        if current:
            for root, prefix in current[0]:
                found.setdefault(root, set()).add((*prefix, *current[1]))

    def roots_of(variable, is_cell):
        roots = [(("import", key), prefix) for key, prefix in imported.get(variable, ())]
        if is_cell and variable in free:
            roots.append((("free", variable), ()))
        return roots

    for op, arg in units:
        if current and op in _ATTRIBUTE:
            current[1].append(_name(code, op, arg))
            continue
        flush()
        current = None
        if op in _GLOBAL:
            current = ([(("global", _name(code, op, arg)), ())], [])
        elif op in _CELL:
            if roots := roots_of(_variable(code, arg), True):
                current = (roots, [])
        elif not imported:
            continue
        elif op in _FAST:
            if roots := roots_of(_variable(code, arg), False):
                current = (roots, [])
        elif op in _TWO_FAST or op in _STORE_LOAD:
            if op in _TWO_FAST and (roots := roots_of(_variable(code, arg >> 4), False)):
                current = (roots, [])
                flush()
                current = None
            if roots := roots_of(_variable(code, arg & 15), False):
                current = (roots, [])
    flush()


def _text(code):
    return repr(
        (
            *(code.co_code, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars),
            *(code.co_flags, code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount),
            *(code.co_exceptiontable, code.co_name, code.co_qualname),
            tuple(map(_constant_text, code.co_consts)),
        )
    )


def _constant_text(value):
    if type(value) is types.CodeType:
        return _text(value)
    if type(value) is tuple:
        return f"({', '.join(map(_constant_text, value))})"
    if type(value) is frozenset:
        return f"frozenset({sorted(map(_constant_text, value))})"
    return f"{type(value).__name__}:{value!r}"
