"""Names that other frameworks of this kind keep under `experimental`."""

from weft._callback import io_callback as io_callback
