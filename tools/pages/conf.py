"""Settings of Sphinx, links from code in prose to the reference, and lists of a page's names."""

import html
import re

from docutils import nodes
from sphinx import addnodes
from sphinx.util.nodes import make_refnode

import weft

project = "weft"
author = "The weft authors"
copyright = author
version = release = weft.__version__

extensions = ["myst_parser"]
myst_heading_anchors = 6
html_theme = "furo"
html_title = f"weft {version}"
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False
highlight_language = "python"
smartquotes = False
python_maximum_signature_line_length = 88
html_domain_indices = False
toc_object_entries = False  # list_names does it, once a page

NAME = re.compile(r"[A-Za-z_][\w.]*$")
MODULE = "module-"  # what Sphinx puts before names of modules, for their anchors
SHORT = re.compile(r"wnp(?=\.)")


def link_names(app, doctree, docname):
    """Makes links of code in prose that is the name of something public.

    Prose gives full names. In the reference, names of the same module, of `weft` and of its errors
    may stand alone; those of parameters stay as they are.
    """
    objects = app.env.get_domain("py").objects
    for literal in doctree.findall(nodes.literal):
        text = SHORT.sub("weft.numpy", literal.astext())
        if isinstance(literal.parent, nodes.reference) or not NAME.match(text):
            continue
        module, parameters = context(literal)
        prefixes = [""]
        if module and text not in parameters:
            prefixes += [f"{module}.", "weft.", "weft.errors."]
        names = [prefix + text for prefix in prefixes if (prefix + text).startswith("weft.")]
        found = next((name for name in names if name in objects), None)
        if found:
            entry = objects[found]
            link = make_refnode(
                app.builder, docname, entry.docname, entry.node_id, literal.deepcopy(), found
            )
            literal.replace_self(link)


def context(node):
    """(module, parameters of the function) that a place in the reference tells of."""
    while node.parent is not None:
        node = node.parent
        if isinstance(node, addnodes.desc):
            parameters = node[0].findall(addnodes.desc_parameter)
            return node[0]["module"], {p.astext().split("=")[0].lstrip("*") for p in parameters}
        for name in node.get("ids", ()):
            if name.startswith(MODULE):
                return name.removeprefix(MODULE), ()
    return None, ()


def list_names(app, pagename, templatename, context, doctree):
    """Lists the names that a page of the reference describes, beside it.

    Sphinx would do so by toc_object_entries. It then copies the lists of all pages for every page.
    """
    modules = {}
    for name, entry in app.env.get_domain("py").objects.items():
        if entry.docname == pagename and entry.objtype not in ("attribute", "method", "module"):
            module, _, short = name.rpartition(".")
            link = f'<li><a href="#{entry.node_id}"><code>{html.escape(short)}</code></a></li>'
            modules.setdefault(module, []).append(link)
    parts = [
        f'<li><a href="#{MODULE}{module}">{module}</a><ul>{"".join(links)}</ul></li>'
        for module, links in modules.items()
    ]
    if parts:
        context["toc"] = f"<ul>{''.join(parts)}</ul>"
        context["furo_hide_toc"] = False


def setup(app):
    app.connect("doctree-resolved", link_names)
    app.connect("html-page-context", list_names, priority=600)  # after the theme
    return {"parallel_read_safe": True, "parallel_write_safe": True}
