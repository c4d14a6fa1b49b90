"""Written by tools/stubs; do not edit."""

from weft.scipy.cluster import vq as vq


