"""Colourings of patterns: groups of columns, or rows, that one product can tell apart.

Greedy, in the order of the most entries first. The star colouring and how a symmetric matrix is
read from it are those of Gebremedhin, Manne and Pothen, "What color is your Jacobian?", SIAM Review
47 (2005), sections 4 and 7.
"""

import numpy as np


def _lists(rows, columns, count):
    """For each row its columns, as slices of one array: (array, begin of each row)."""
    order = np.argsort(rows, kind="stable")
    return columns[order], np.searchsorted(rows[order], np.arange(count + 1))


def _order(begins):
    return np.argsort(-np.diff(begins), kind="stable")


def column_colours(rows, columns, shape):
    """A colour for each column; columns of one colour have no row in common.

    Args:
      rows, columns: vectors of ints, the places of a pattern.
      shape: its numbers of rows and columns.
    """
    of_column, begins = _lists(columns, rows, shape[1])
    colours = np.zeros(shape[1], np.int32)
    taken = np.zeros((shape[0], 8), bool)  # by row: which colours its columns have
    for column in _order(begins):
        own = of_column[begins[column] : begins[column + 1]]
        if not len(own):
            break
        used = np.any(taken[own], axis=0)
        colour = int(np.argmin(used))
        if used[colour]:
            colour = taken.shape[1]
            taken = np.concatenate([taken, np.zeros_like(taken)], 1)
        colours[column] = colour
        taken[own, colour] = True
    return colours


def star_colours(rows, columns, size):
    """A colour for each row of a symmetric pattern, so that each element can be read off.

    Neighbours have different colours, and so do the second and fourth, or the first and third, of
    every four vertices along a path. Returns (colours, neighbours): how many neighbours of each
    colour a vertex has.
    """
    off = rows != columns
    near, begins = _lists(rows[off], columns[off], size)
    colours = np.full(size, -1, np.int32)
    count = np.zeros((size, 8), np.int32)
    for vertex in _order(begins):
        own = near[begins[vertex] : begins[vertex + 1]]
        forbidden = np.zeros(count.shape[1] + 1, bool)
        forbidden[colours[own]] = True  # -1, of no colour, is the last
        for w in own:
            others = near[begins[w] : begins[w + 1]]
            if colours[w] >= 0:
                # Those that have another neighbour of the colour of w.
                others = others[count[others, colours[w]] > 1]
            forbidden[colours[others]] = True
        forbidden[-1] = False
        colour = int(np.argmin(forbidden))
        if colour == count.shape[1]:
            count = np.concatenate([count, np.zeros_like(count)], 1)
        colours[vertex] = colour
        count[own, colour] += 1
    return colours, count
