"""The API reference: pages in reStructuredText of the public names, as they are at run time.

Names come from `__all__` of the public modules, parameters from signatures, the rest from
docstrings. A module has a page of its own if it is just below `weft` or has many names; otherwise
it is a section of the page of the module above. Large modules have a page for each subject.
"""

import enum
import importlib
import inspect
import pkgutil
import re
import types

import docstrings

import weft
from weft import _core

FOLDER = "reference"
INTERNAL = ("weft.runtime", "weft.cli", "weft.as_jax")
MANY = 10


def words(text):
    return text.split()


# The subjects of large modules: where the names of each are defined, below the module, or the type
# that the names have. The first subject that fits a name has it.
SUBJECTS = {
    "weft.numpy": {
        "Making arrays": words("_creation _matrices _index_tricks"),
        "Shapes": words("_shape _join _pad"),
        "Elements": words("_take _edits _select _choices _counted _positions"),
        "Element-wise functions": words(
            "ElementwiseFunction ufunc _ufuncs _division_powers _floats _integers _universal"
        ),
        "Sums and statistics": words(
            "_reductions _moments _quantiles _cumulative _histograms _calculus"
        ),
        "Products": words("_linalg _einsum"),
        "Sorting and sets": words("_sorting _sets"),
        "Polynomials, windows, interpolation": words("_polynomials _signal _interpolation"),
        "Functions applied to parts of arrays": words("_vectorize"),
        "Files and text": words("_files"),
        "Dtypes, constants, classes": [""],
    },
    "weft.lax": {
        "Control flow": words("_branches _loops _scan _associative _solve"),
        "Element-wise operations": words("ElementwiseFunction _elementwise"),
        "Making and moving elements": words("_shape _creation _slice _gather _sharding"),
        "Reductions and sorting": words("_reduce _cumulative _sort _windows"),
        "Products, convolutions, transforms": words("_dot _ragged _conv _fft"),
        "Devices and compilers": words("_collectives _barrier _composite _rng"),
        "Others": [""],
    },
}


def public_modules(module=weft):
    yield module
    for info in pkgutil.iter_modules(getattr(module, "__path__", ()), module.__name__ + "."):
        if not info.name.startswith(INTERNAL) and not info.name.split(".")[-1].startswith("_"):
            yield from public_modules(importlib.import_module(info.name))


MODULES = {module.__name__: module for module in public_modules()}
# Where each object is described: its first name.
HOMES = {}
for _module in MODULES.values():
    for _name in _module.__all__:
        HOMES.setdefault(id(getattr(_module, _name)), f"{_module.__name__}.{_name}")


# ---- pages


def parent(name):
    return name.rpartition(".")[0]


def page_of(name):
    """The module on whose page a module is described."""
    while parent(name) not in ("", "weft") and len(MODULES[name].__all__) < MANY:
        name = parent(name)
    return name


def subject_of(module, name):
    value = getattr(MODULES[module], name)
    marks = {type(value).__name__, str(getattr(value, "__module__", "")).rpartition(".")[2], ""}
    return next(title for title, fits in SUBJECTS[module].items() if marks & {*fits})


def subject_page(module, title):
    return f"{module.rpartition('.')[2]}-{title.lower().replace(',', '').replace(' ', '-')}"


def pages():
    """The text of every page, by its name in the folder."""
    texts = {"index": index()}
    for name in MODULES:
        if page_of(name) == name:
            texts[name] = module_page(name)
        for title in SUBJECTS.get(name, ()):
            lines = heading(f"{name}: {title}", "=")
            lines += entries(name, [n for n in own_names(name) if subject_of(name, n) == title])
            texts[subject_page(name, title)] = "\n".join(lines)
    return texts


def index():
    tops = [n for n in MODULES if page_of(n) == n and parent(n) in ("", "weft")]
    lines = heading("API reference", "=")
    lines += ["Every public name, by module. Search finds them, and so does :ref:`genindex`.", ""]
    for name in tops:
        lines += [f":doc:`{name}`", *docstrings.indented([summary_of(MODULES[name]), ""])]
    return "\n".join([*lines, *toctree(tops)])


def module_page(name):
    lines = section(name, "=")
    for each in MODULES:
        if each != name and page_of(each) == name:
            lines += section(each, "-")
    below = [subject_page(name, title) for title in SUBJECTS.get(name, ())]
    if name != "weft":
        below += [n for n in MODULES if page_of(n) == n and page_of(parent(n)) == name]
    return "\n".join([*lines, *toctree(below)])


def section(name, underline):
    """A module: what it is, and its names, or where these are."""
    lines = heading(name, underline)
    lines += [f".. py:module:: {name}", "", *docstrings.rest(MODULES[name].__doc__ or "")]
    if name not in SUBJECTS:
        return [*lines, *entries(name, own_names(name))]
    for title in SUBJECTS[name]:
        found = [n for n in own_names(name) if subject_of(name, n) == title]
        shown = ", ".join(f":py:obj:`{each}`" for each in found)
        lines += [f":doc:`{title} <{subject_page(name, title)}>`", f"   {shown}", ""]
    return lines


def heading(text, underline):
    return [text, underline * len(text), ""]


def toctree(names):
    return [".. toctree::", "   :hidden:", "", *docstrings.indented(names), ""] if names else []


# ---- names


def own_names(module):
    """The names of a module that are no modules."""
    return [n for n in MODULES[module].__all__ if f"{module}.{n}" not in MODULES]


def entries(module, names):
    lines = [f".. py:currentmodule:: {module}", ""]
    for name in names:
        value = getattr(MODULES[module], name)
        lines += entry(name, value, f"{module}.{name}" == HOMES[id(value)])
    return lines


def is_ours(value):
    return str(getattr(value, "__module__", None) or "weft").startswith("weft")


def own_doc(value):
    """The docstring of a value itself, in place of that of its type."""
    doc = vars(value).get("__doc__") if isinstance(value, type) else value.__doc__
    return doc if doc != type(value).__doc__ and isinstance(doc, str) else ""


def summary_of(module):
    return docstrings.inline(docstrings.summary(module.__doc__ or ""))


class Shown:
    """A default whose repr is a text."""

    def __init__(self, text):
        self.text = text

    def __repr__(self):
        return self.text


def shown_default(value):
    if isinstance(value, enum.Enum):
        return Shown(str(value))
    if value is inspect.Parameter.empty:
        return value
    if isinstance(value, (type, types.FunctionType)):
        return Shown(value.__name__)
    return Shown("...") if re.match("<", repr(value)) else value


def signature(value):
    """Parameters in parentheses, without annotations; nothing where they cannot be known."""
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):
        return ""
    if [*found.parameters] == ["args", "kwargs"]:
        return ""
    parameters = [
        p.replace(annotation=p.empty, default=shown_default(p.default))
        for p in found.parameters.values()
    ]
    return str(found.replace(parameters=parameters, return_annotation=found.empty))


def entry(name, value, with_members):
    """The description of a name."""
    options, members = [], []
    if isinstance(value, type) and is_ours(value):
        kind = "exception" if issubclass(value, BaseException) else "class"
        parameters = "" if kind == "exception" else signature(value)
        members = members_of(value) if with_members else []
    elif callable(value) and (own_doc(value) or not is_ours(value)):
        kind, parameters = "function", signature(value)
    else:
        kind, parameters = "data", ""
        options = value_option(value)
    text = docstrings.rest(own_doc(value)) if is_ours(value) else of_others(value)
    if not any(text):
        text = instance(value)
    lines = [*text, *members]
    return [f".. py:{kind}:: {name}{parameters}", *options, "", *docstrings.indented(lines), ""]


def value_option(value):
    """What a constant is, if that has a short form that stays the same."""
    text = repr(value)
    return [f"   :value: {text}"] if len(text) < 80 and " at 0x" not in text else []


def of_others(value):
    """What is said of an object of another library: its docstring is at home there."""
    name = f"{value.__module__}.{getattr(value, '__qualname__', type(value).__qualname__)}"
    return [f"``{name}``, as it is.", ""]


def instance(value):
    home = HOMES.get(id(type(value)))
    return [f"An instance of :py:obj:`{home}`.", ""] if home else []


def members_of(cls):
    """The descriptions of the methods and attributes of a class."""
    lines = []
    # The type of arrays shows what arrays have, and it is the core that has it.
    bases = [_core.Array] if cls is weft.Array else [c for c in cls.__mro__ if is_ours(c)]
    if issubclass(cls, enum.Enum):
        return [line for each in cls for line in (f".. py:attribute:: {each.name}", "")]
    for name in sorted({n for base in bases for n in vars(base) if not n.startswith("_")}):
        value = inspect.getattr_static(bases[0], name)
        function = value.__func__ if isinstance(value, (classmethod, staticmethod)) else value
        text = docstrings.rest(function.__doc__ or "") if is_ours(function) else []
        kind = "method" if callable(function) else "attribute"
        parameters = method_signature(function) if kind == "method" else ""
        lines += [f".. py:{kind}:: {name}{parameters}", "", *docstrings.indented(text), ""]
    return lines


def method_signature(function):
    return re.sub(r"^\(self(, /)?(, )?", "(", signature(function))
