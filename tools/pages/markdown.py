"""Markdown of the repository: its headings, its links, and the table of contents of the documents.

docs/index.md is the table of contents. Below its heading "Contents" each heading is a section, and
each item of a list names a page by its first link. An item that is indented belongs to the item
above it.
"""

import os
import posixpath
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
INDEX = "docs/index.md"
PICTURES = "docs/pictures"  # in the site beside the pages of docs/
CODE = re.compile(r"^ *(```+)[^\n]*\n.*?^ *\1 *$|(`+)(?!`).+?(?<!`)\2(?!`)", re.M | re.S)
LINK = re.compile(r"\[([^\[\]]*)\]\(([^()\s]*)\)")
OUTSIDE = re.compile(r"[a-z][a-z+.-]*:")
HEADING = re.compile(r"^#{1,6} +(.+?) *$", re.M)
ITEM = re.compile(r"^( *)- \[[^\]]*\]\(([^()\s]+)\)", re.M)


def files():
    """Paths of all Markdown files, relative to the root."""
    command = ["git", "ls-files", "-co", "--exclude-standard", "-z", "*.md"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return sorted(path for path in listed.split("\0") if path and (ROOT / path).exists())


def without_code(text, inline=True):
    """The text with spaces in place of code, so that all else stands where it stood."""

    def blank(found):
        if found[2] and not inline:
            return found[0]
        return re.sub(r"[^\n]", " ", found[0])

    return CODE.sub(blank, text)


def anchors(text):
    """The anchors that code hosts and the site give to headings."""
    found = {}
    for heading in HEADING.finditer(without_code(text, inline=False)):
        title = LINK.sub(r"\1", heading[1]).replace("`", "").lower()
        slug = re.sub(r"[^\w\- ]", "", title).replace(" ", "-")
        count = found.setdefault(slug, 0)
        found[slug] += 1
        if count:
            found[f"{slug}-{count}"] = 1
    return {*found}


def links(text):
    """The matches of LINK outside of code, for links that stay in the repository."""
    for found in LINK.finditer(without_code(text)):
        if not OUTSIDE.match(found[2]):
            yield LINK.match(text, found.start())


def resolved(path, target):
    """(file, anchor) that a link in the file at a path leads to."""
    name, _, anchor = target.partition("#")
    file = posixpath.normpath(posixpath.join(posixpath.dirname(path), name)) if name else path
    return file, anchor


def dead_links(path):
    """(line, target) of every link of a file that leads to a file or anchor that is not there."""
    text = (ROOT / path).read_text()
    for link in links(text):
        file, anchor = resolved(path, link[2])
        there = ROOT / file
        alive = there.exists() and not file.startswith("..")
        if alive and anchor:
            alive = file.endswith(".md") and anchor in anchors(there.read_text())
        if not alive:
            yield text.count("\n", 0, link.start()) + 1, link[2]


def contents():
    """The table of contents: lists of (page, pages below it), by the heading of the section."""
    text = (ROOT / INDEX).read_text().partition("\n## Contents\n")[2]
    sections = {}
    for part in re.split(r"^### ", text, flags=re.M)[1:]:
        title, _, lists = part.partition("\n")
        pages = sections[title.strip()] = []
        for indent, target in ITEM.findall(lists):
            path = resolved(INDEX, target)[0]
            if indent:
                pages[-1][1].append(path)
            else:
                pages.append((path, []))
    return sections


def pages():
    """Every page of the table of contents, in its order."""
    return [p for part in contents().values() for path, below in part for p in (path, *below)]


def site_name(path):
    """The name of a page in the site, without a suffix."""
    folder, name = posixpath.split(path.removesuffix(".md"))
    if folder == "docs":
        return name
    if name == "README" and folder:
        return "internals/" + folder.replace("/", "-")
    return path.removesuffix(".md").lower()


def for_site(path, known):
    """The text of a page, with links to where the known pages are in the site.

    A link to a file that is not in the site becomes its text. Pictures are those of pages in docs/.
    """
    text, out, end = (ROOT / path).read_text(), [], 0
    here = posixpath.dirname(site_name(path))
    for link in links(text):
        file, anchor = resolved(path, link[2])
        to = link[1]
        if text[link.start() - 1 : link.start()] == "!":
            to = f"[{link[1]}]({os.path.relpath(file, 'docs')})"  # see PICTURES
        elif file in known:
            name = os.path.relpath(site_name(file), here or ".")
            to = f"[{link[1]}]({name}.md{'#' + anchor if anchor else ''})"
        out += [text[end : link.start()], to]
        end = link.end()
    return "".join([*out, text[end:]])
