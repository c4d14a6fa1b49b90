"""Written by tools/stubs; do not edit."""

from weft.scipy import cluster as cluster
from weft.scipy import fft as fft
from weft.scipy import integrate as integrate
from weft.scipy import interpolate as interpolate
from weft.scipy import linalg as linalg
from weft.scipy import ndimage as ndimage
from weft.scipy import optimize as optimize
from weft.scipy import signal as signal
from weft.scipy import sparse as sparse
from weft.scipy import spatial as spatial
from weft.scipy import special as special
from weft.scipy import stats as stats


