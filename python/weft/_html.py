"""What notebooks show: HTML in which every text is escaped, and which stays small.

An object that has something to show has `_repr_html_` beside `__repr__`, and makes it of these
pieces. A piece is a Markup, which goes into others as it is; all else is text.
"""

_ROWS = 30  # of a table
_LETTERS = 20_000  # of a text
_NUMBER = "text-align:right;padding:0 .6em;font-variant-numeric:tabular-nums"
_TEXT = "text-align:left;padding:0 .6em"
_LISTING = "max-height:30em;overflow:auto;margin:.3em 0;line-height:1.35"


class Markup(str):
    """HTML, where other text would be escaped."""

    __slots__ = ()


def element(tag, *children, **attributes):
    """An element: `element("p", "a < b", title="x")`. Children may be iterables of children."""
    given = "".join(f' {name}="{_escaped(value)}"' for name, value in attributes.items())
    return Markup(f"<{tag}{given}>{_joined(children)}</{tag}>")


def _joined(children):
    return "".join(
        _escaped(child) if isinstance(child, (str, int, float)) else _joined(child)
        for child in children
    )


def _escaped(value):
    if isinstance(value, Markup):
        return value
    import html  # loads a table of two thousand names: nothing that import should do

    return html.escape(str(value))


def card(title, facts, *children):
    """The whole of what an object shows: what it is, a line of facts, and more."""
    said = element("span", " · ".join(filter(None, facts)), style="opacity:.75")
    head = element("div", element("b", title), " ", said)
    return element("div", head, *children, **{"class": "weft"})


def table(head, rows, left=(0,)):
    """The first rows of a table; columns not in `left` are numbers."""
    rows = list(rows)

    def line(tag, cells):
        styles = (_TEXT if i in left else _NUMBER for i in range(len(cells)))
        return element("tr", [element(tag, c, style=s) for c, s in zip(cells, styles, strict=True)])

    lines = [line("th", head), *(line("td", row) for row in rows[:_ROWS])]
    more = f"and {len(rows) - _ROWS:,} more" if len(rows) > _ROWS else ""
    return element("table", lines), element("div", more) if more else ""


def listing(text):
    """The first part of a program or of other text whose lines are lines."""
    end = len(text)
    if end > _LETTERS:
        end = text.rfind("\n", 0, _LETTERS) + 1 or _LETTERS
    rest = f"... {len(text) - end:,} letters more; print() shows all" if end < len(text) else ""
    return element("pre", text[:end], rest, style=_LISTING)


def folded(summary, *children):
    """What is seen after a click."""
    return element("details", element("summary", summary), *children)
