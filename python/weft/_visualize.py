"""Drawings of how arrays are split over devices: as text, SVG and PNG."""

import colorsys
import html
import os
import pathlib
import sys
from typing import NamedTuple

from weft.errors import ShapeError
from weft.sharding import AbstractMesh, Sharding

_LINES = 10  # of a drawing at scale 1, where it is as high as wide
_WIDER = 2.5  # how much higher than wide a character is
_PIXELS = 16  # of a line of text in images
_ANSI = "\x1b[48;2;{};{};{}m\x1b[38;2;{};{};{}m{}\x1b[0m"
_BOX = "─│┌┬┐├┼┤└┴┘"
_PLAIN_BOX = "-|+++++++++"


class _Part(NamedTuple):
    row: int
    column: int
    label: str
    color: tuple[int, ...]
    ink: tuple[int, ...]


class Drawing:
    """A grid of parts, each with the devices that hold it.

    Attributes: parts (row by row), rows, columns (how many), shape (of the array, of two axes).
    """

    def __init__(self, shape, sharding, color_map=None):
        if not isinstance(sharding, Sharding):
            raise TypeError(f"visualize_sharding expected a Sharding; got {sharding!r}")
        shape = tuple(shape)
        if len(shape) not in (1, 2):
            raise ShapeError(
                f"visualize_sharding expected an array of one or two axes; got shape {shape}"
            )
        if isinstance(getattr(sharding, "mesh", None), AbstractMesh):
            raise ValueError(f"visualize_sharding expected a mesh with devices; got {sharding}")
        self.shape = (1, *shape)[-2:]
        held = {}  # by where a part begins: its devices
        for device, index in sharding.devices_indices_map(shape).items():
            start = (0, *(i.indices(n)[0] for i, n in zip(index, shape, strict=True)))[-2:]
            held.setdefault(start, []).append(device)
        tops, lefts = (sorted({start[axis] for start in held}) for axis in (0, 1))
        self.rows, self.columns = len(tops), len(lefts)
        color_map = color_map or _hue
        self.parts = []
        for i, start in enumerate(sorted(held)):
            color = _rgb(color_map(i / len(held)))
            dark = sum(w * c for w, c in zip((0.3, 0.59, 0.11), color, strict=True)) < 128
            row, column = tops.index(start[0]), lefts.index(start[1])
            label = _label(held[start])
            self.parts.append(_Part(row, column, label, color, (255,) * 3 if dark else (0,) * 3))

    def cell(self, scale, narrowest, widest):
        """The size of a part in characters: what is written in it fits if it may be that wide."""
        height, width = self.shape
        ratio = width / height if height and width else 1
        high = max(1, round(_LINES * scale / self.rows)) if height > 1 else 1
        wide = round(_LINES * scale * _WIDER * min(ratio, 3) / self.columns)
        wide = max(wide, 2 + max(len(part.label) for part in self.parts))
        wide = min(max(wide, narrowest), widest)
        written = max(len(_wrapped(part.label, wide)) for part in self.parts)
        return wide, max(high, written)

    def text(self, *, use_color, scale, min_width, max_width, box=_BOX):
        """The drawing as lines of characters; `use_color`: with the codes of terminals."""
        wide, high = self.cell(scale, min_width, max_width)
        side, up, *corners = box
        rule = [
            left + middle.join([side * wide] * self.columns) + right
            for left, middle, right in (corners[i : i + 3] for i in (0, 3, 6))
        ]
        lines = [rule[0]]
        for row in range(self.rows):
            parts = self.parts[row * self.columns : (row + 1) * self.columns]
            cells = [_centred(part.label, wide, high) for part in parts]
            for k in range(high):
                shown = [
                    _ANSI.format(*part.color, *part.ink, cell[k]) if use_color else cell[k]
                    for part, cell in zip(parts, cells, strict=True)
                ]
                lines.append(up + up.join(shown) + up)
            lines.append(rule[1] if row + 1 < self.rows else rule[2])
        return "\n".join(lines)

    def boxes(self, scale):
        """The size of an image, and (part, left, top, lines of text) per part; a part's size."""
        wide, high = self.cell(scale, 9, 80)
        width, height = wide * _PIXELS / 2, (high + 1) * _PIXELS
        placed = [
            (p, p.column * width, p.row * height, _wrapped(p.label, wide)) for p in self.parts
        ]
        return (self.columns * width, self.rows * height), (width, height), placed

    def svg(self, scale):
        """The drawing as an SVG document."""
        (width, height), (w, h), placed = self.boxes(scale)
        out = [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width + 2:g}" height="{height + 2:g}"'
            f' viewBox="-1 -1 {width + 2:g} {height + 2:g}" font-family="monospace" '
            f'font-size="{_PIXELS * 0.8:g}" text-anchor="middle">'
        ]
        for part, left, top, lines in placed:
            fill, ink = ("#" + bytes(c).hex() for c in (part.color, part.ink))
            out.append(
                f'<rect x="{left:g}" y="{top:g}" width="{w:g}" height="{h:g}" fill="{fill}" '
                'stroke="black"/>'
            )
            for k, line in enumerate(lines):
                y = top + h / 2 + (k - len(lines) / 2 + 0.75) * _PIXELS
                out.append(
                    f'<text x="{left + w / 2:g}" y="{y:g}" fill="{ink}">{html.escape(line)}</text>'
                )
        return "\n".join([*out, "</svg>\n"])

    def png(self, path, scale):
        """Writes the drawing as PNG. Raises ImportError without Pillow."""
        try:
            from PIL import Image, ImageDraw, ImageFont
        except ImportError:
            raise ImportError(
                "a PNG expects Pillow to be installed; it is not\n"
                "  Write an SVG, which needs nothing, or install it: pip install pillow"
            ) from None
        (width, height), (w, h), placed = self.boxes(scale)
        image = Image.new("RGB", (round(width) + 2, round(height) + 2), "white")
        draw, font = ImageDraw.Draw(image), ImageFont.load_default(_PIXELS * 0.8)
        for part, left, top, lines in placed:
            draw.rectangle((left, top, left + w, top + h), fill=part.color, outline="black")
            middle = (left + w / 2, top + h / 2)
            draw.multiline_text(
                middle, "\n".join(lines), fill=part.ink, font=font, anchor="mm", align="center"
            )
        image.save(path)


def show(shape, sharding, *, use_color, scale, min_width, max_width, color_map):
    """Prints a drawing, in colours where the terminal has them."""
    drawing = Drawing(shape, sharding, color_map)
    out = sys.stdout
    try:
        _BOX.encode(getattr(out, "encoding", None) or "utf-8")
        box = _BOX
    except UnicodeError:
        box = _PLAIN_BOX
    is_terminal = out.isatty() and "NO_COLOR" not in os.environ
    print(
        drawing.text(
            use_color=use_color and is_terminal and os.environ.get("TERM") != "dumb",
            scale=scale,
            min_width=min_width,
            max_width=max_width,
            box=box,
        )
    )


def save(path, shape, sharding, *, scale, color_map):
    """Writes a drawing to a file, as its name ends."""
    drawing, path = Drawing(shape, sharding, color_map), pathlib.Path(path)
    if path.suffix == ".svg":
        path.write_text(drawing.svg(scale), encoding="utf-8")
    elif path.suffix == ".png":
        drawing.png(path, scale)
    else:
        raise ValueError(f"save_sharding expected a path that ends in .svg or .png; got {path}")


def _label(devices):
    """ "CPU 0,1": the numbers of devices, runs of four and more as "0-3"."""
    numbers = sorted(device.id for device in devices)
    runs = []
    for n in numbers:
        if runs and n == runs[-1][-1] + 1:
            runs[-1].append(n)
        else:
            runs.append([n])
    texts = [f"{run[0]}-{run[-1]}" if len(run) > 3 else ",".join(map(str, run)) for run in runs]
    return f"{devices[0].platform.upper()} {','.join(texts)}"


def _wrapped(label, width):
    """A label in lines of a width, parted after commas."""
    lines = [""]
    *starts, end = label.split(",")
    for word in [*(start + "," for start in starts), end]:
        if lines[-1] and len(lines[-1]) + len(word) > width:
            lines.append("")
        lines[-1] += word
    return [line[:width] for line in lines]


def _centred(label, width, height):
    lines = [line.center(width) for line in _wrapped(label, width)]
    above = (height - len(lines)) // 2
    blank = " " * width
    return [blank] * above + lines + [blank] * (height - len(lines) - above)


def _hue(x):
    return colorsys.hls_to_rgb(x, 0.72, 0.6)


def _rgb(color):
    """(r, g, b, ...) of 0 to 1, or "#rrggbb", as whole numbers."""
    if isinstance(color, str):
        return tuple(bytes.fromhex(color.removeprefix("#")))
    return tuple(round(255 * c) for c in tuple(color)[:3])
