"""Written by tools/stubs; do not edit."""

from weft.example_libraries import optimizers as optimizers
from weft.example_libraries import stax as stax


