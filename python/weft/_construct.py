"""Which construct of the user's program asked for a value: the `if`, `while`, `for`, ... at hand.

Only errors ask, so the user's file is parsed when there is one.
"""

import ast
import linecache

from weft._warnings import user_frame


def construct():
    """ "if", "if expression", "while", "for", "assert", "and", "or" or "not"; None if unknown.

    It is looked up for the innermost frame outside of weft.
    """
    frame = user_frame()
    at = list(frame.f_code.co_positions())[frame.f_lasti // 2]
    if None in at:
        return None
    first, last, begin, end = at
    try:
        lines = linecache.getlines(frame.f_code.co_filename, frame.f_globals)
        tree = ast.parse("".join(lines))
    except (
        SyntaxError,
        ValueError,
    ):  # not Python as it was run: a notebook's magic, no source, no file's name
        return None
    found = [
        (_extent(part), name)
        for node in ast.walk(tree)
        for name, part in _tests(node)
        if _starts(part) <= (first, begin) and (last, end) <= _ends(part)
    ]
    return min(found)[1] if found else None


def _tests(node):
    """(construct, expression whose value it asks for) of a node of the syntax tree."""
    if isinstance(node, (ast.If, ast.While)):
        yield type(node).__name__.lower(), node.test
    elif isinstance(node, ast.Assert):
        yield "assert", node  # what asks is the statement, here and for `not`
    elif isinstance(node, ast.IfExp):
        yield "if expression", node.test
    elif isinstance(node, ast.BoolOp):
        for value in node.values[:-1]:
            yield type(node.op).__name__.lower(), value
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield "not", node
    elif isinstance(node, ast.For):
        yield "for", node.iter
    elif isinstance(node, ast.comprehension):
        yield "for", node.iter
        for test in node.ifs:
            yield "if", test


def _starts(node):
    return node.lineno, node.col_offset


def _ends(node):
    return node.end_lineno, node.end_col_offset


def _extent(node):
    """For telling the innermost of nodes that contain each other."""
    return node.end_lineno - node.lineno, node.end_col_offset - node.col_offset
