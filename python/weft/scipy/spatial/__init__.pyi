"""Written by tools/stubs; do not edit."""

from weft.scipy.spatial import transform as transform


