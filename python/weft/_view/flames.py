"""What a page of flames shows: a tree whose nodes are as wide as what they take, and tables."""

import re


class Flame:
    """A node of the tree: what it takes with all below it, and how often it was seen."""

    def __init__(self, name):
        self.name = name
        self.own = 0
        self.children = {}

    def add(self, path, value):
        """Adds a value to the node that a path of names leads to."""
        node = self
        for name in path:
            node = node.children.setdefault(name, Flame(name))
        node.own += value

    @property
    def value(self):
        return self.own + sum(child.value for child in self.children.values())

    def data(self):
        """As plain data, largest children first."""
        children = [child.data() for child in self.children.values()]
        children.sort(key=lambda child: -child["value"])
        return {"name": self.name, "value": self.value, "children": children}


def flame_data(title, subtitle, unit, flame, tables):
    """The data of a page. unit: "ns" or "bytes"; tables: a dict from a title to a dict from a name
    to (value, number)."""
    return {
        "title": title,
        "subtitle": subtitle,
        "unit": unit,
        "flame": flame.data(),
        "tables": [
            {"title": name, "rows": [[key, *row] for key, row in rows.items()]}
            for name, rows in tables.items()
        ],
    }


def short_line(text):
    """A line without the folder of its file: "file.py:12 (f)"."""
    return re.sub(r"^.*/(?=[^/]*:\d+)", "", text)
