"""Written by tools/stubs; do not edit."""

from weft.extend import backend as backend
from weft.extend import core as core
from weft.extend import random as random


