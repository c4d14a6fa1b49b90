"""Pages of HTML: data and what draws it in one file, that refers to nothing outside of itself."""

import base64
import html
import json
import re
import tempfile
import zlib
from pathlib import Path

_FOLDER = Path(__file__).parent
_SCRIPTS = ("model.js", "layout.js", "graph.js", "panels.js", "flames.js", "main.js")


def page_html(data):
    """The page of data that `page_data` or `flame_data` made, as text."""
    programs = data.get("programs")
    text = json.dumps({k: v for k, v in data.items() if k != "programs"})
    if programs is not None:
        text = f'{text[:-1]}, "programs": {programs}}}'
    packed = base64.b64encode(zlib.compress(text.encode())).decode()
    parts = {
        "title": html.escape(f"{data['title']} · weft"),
        "style": _text("page.css"),
        "script": "\n".join(map(_text, _SCRIPTS)),
        "data": packed,
    }
    return re.sub(r"\{(title|style|script|data)\}", lambda m: parts[m[1]], _text("page.html"))


def write_page(data, path=None):
    """Writes the page of data; returns its path. None: a file named after its title in a new
    folder for temporary files."""
    if path is None:
        name = "".join(c if c.isalnum() or c in "-_." else "_" for c in data["title"])
        path = Path(tempfile.mkdtemp(prefix="weft-"), name + ".html")
    path = Path(path)
    path.write_text(page_html(data), encoding="utf-8")
    return path


def data_of(page):
    """The data of a page: what `page_html` was given, with its programs as objects."""
    packed = page.partition('id="data">')[2].partition("</script>")[0]
    return json.loads(zlib.decompress(base64.b64decode(packed)))


def _text(name):
    return (_FOLDER / name).read_text(encoding="utf-8")
