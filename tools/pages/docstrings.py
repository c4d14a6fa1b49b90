"""Docstrings as reStructuredText.

A docstring is Markdown in its prose: `code`, lists, indented code. Sections (Args, Returns, Raises,
Attributes, Examples) stand at its margin, and what is in them is indented.
"""

import inspect
import re
import textwrap

SECTION = re.compile(r"(Args|Attributes|Examples|Raises|Returns|Yields):$")
TITLES = {"Args": "Arguments"}
NAMES = re.compile(r"(\*{0,2}[\w.]+(?:, \*{0,2}[\w.]+)*):(?: (.*))?$")
SPECIAL = re.compile(r"`([^`]+)`|\bdocs/([\w-]+)\.md\b|(https?://[^\s,)]+[^\s,).])")


def inline(text):
    """A line of prose."""
    out, end = [], 0
    for found in SPECIAL.finditer(text):
        out.append(escaped(text[end : found.start()]))
        code, page, url = found.groups()
        if url:
            out.append(url)
        else:
            role = f":doc:`/{page}`" if page else f"``{code.strip()}``"
            # Markup has to stand apart from words around it; an escaped space shows as nothing.
            out.append(rf"\ {role}\ ")
        end = found.end()
    return "".join([*out, escaped(text[end:])])


def escaped(text):
    return re.sub(r"([\\*_`|])", r"\\\1", text)


def indented(lines, by=3):
    return [" " * by + line if line else "" for line in lines]


def taken(lines, start, belongs):
    """(the lines from `start` on that belong, where they end)"""
    end = start
    while end < len(lines) and belongs(lines[end]):
        end += 1
    return lines[start:end], end


def flow(lines):
    """Paragraphs, lists, and code, which is indented or begins with a prompt."""
    out, at = [], 0
    while at < len(lines):
        line = lines[at]
        if not line.strip():
            at += 1
        elif line.startswith(">>>"):
            block, at = taken(lines, at, lambda each: each.strip())
            out += [*block, ""]
        elif line.startswith("  "):
            block, at = taken(lines, at, lambda each: not each.strip() or each.startswith("  "))
            code = textwrap.dedent("\n".join(block)).strip("\n").split("\n")
            out += ["::", "", *indented(code), ""]
        elif line.startswith("- "):
            block, at = taken(lines, at + 1, lambda each: each.startswith("  "))
            out += ["- " + inline(" ".join([line[2:], *map(str.strip, block)])), ""]
        else:
            block, at = taken(lines, at, lambda each: each.strip() and not each.startswith("- "))
            text = re.sub(":: *$", ":", " ".join(map(str.strip, block)))
            out += [("\\" if text[0] in "+-.:=" else "") + inline(text), ""]
    return out


def section(title, lines):
    """A field of the description: a list of names with what they mean, or prose."""
    items, at = [], 0
    while at < len(lines):
        names = NAMES.match(lines[at])
        if not names and lines[at].strip():
            items = flow(lines)
            break
        block, at = taken(lines, at + 1, lambda each: not each.strip() or each.startswith("  "))
        if names:
            shown = ", ".join(f"`{name}`" for name in names[1].split(", "))
            text = flow([f"{shown}: {names[2] or ''}", *(line[2:] for line in block)])
            items += ["- " + text[0], *indented(text[1:], 2)]
    return [f":{TITLES.get(title, title)}:", *indented(items), ""]


def rest(text):
    """The lines of a docstring."""
    lines = inspect.cleandoc(text).split("\n")
    prose, fields, at = [], [], 0
    while at < len(lines):
        found = SECTION.match(lines[at])
        if not found:
            prose.append(lines[at])
            at += 1
            continue
        block, at = taken(lines, at + 1, lambda each: not each.strip() or each.startswith("  "))
        block = textwrap.dedent("\n".join(block)).strip("\n").split("\n")
        fields += section(found[1], block)
    return [*flow(prose), *fields]


def summary(text):
    """The first sentence, or the first paragraph if it has no end."""
    first = inspect.cleandoc(text).split("\n\n")[0].replace("\n", " ")
    return re.split(r"(?<=\.) (?=[A-Z`])", first)[0]
