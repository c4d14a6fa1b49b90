"""Figures and tables as text: sizes, times, counts, columns."""


def count(n, what):
    """ "3 operations"; "1 operation"."""
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def size(n):
    """Bytes: "72 B", "1.5 MB". A KB is 1000 bytes."""
    if abs(n) < 1000:
        return f"{n:g} B"
    for unit in ("KB", "MB", "GB"):
        n /= 1000
        if abs(n) < 999.5:
            return f"{n:.3g} {unit}"
    return f"{n / 1000:,.3g} TB"


def seconds(t):
    """ "12.3 ms"; "4.20 s"."""
    return f"{t:.2f} s" if t >= 0.1 else f"{t * 1e3:.1f} ms"


def duration(t):
    """ "4.2 s"; "3 min 20 s"; "2 h 5 min"."""
    if t < 99.95:
        return f"{t:.1f} s"
    minutes, rest = divmod(round(t), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def columns(lines, left=(0,)):
    """Rows of texts in columns: those numbered in `left` begin alike, the others end alike."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(
            text.ljust(width) if i in left else text.rjust(width)
            for i, (text, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )
