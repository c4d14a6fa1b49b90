"""Written by tools/stubs; do not edit."""

from weft.experimental.compilation_cache import compilation_cache as compilation_cache


