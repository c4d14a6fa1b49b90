"""Written by tools/stubs; do not edit."""

from weft.scipy.sparse import linalg as linalg


