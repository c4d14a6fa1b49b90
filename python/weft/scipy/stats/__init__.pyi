"""Written by tools/stubs; do not edit."""

from weft._core import Array
from weft.scipy.stats import bernoulli as bernoulli
from weft.scipy.stats import beta as beta
from weft.scipy.stats import betabinom as betabinom
from weft.scipy.stats import binom as binom
from weft.scipy.stats import cauchy as cauchy
from weft.scipy.stats import chi2 as chi2
from weft.scipy.stats import dirichlet as dirichlet
from weft.scipy.stats import expon as expon
from weft.scipy.stats import gamma as gamma
from weft.scipy.stats import gennorm as gennorm
from weft.scipy.stats import geom as geom
from weft.scipy.stats import gumbel_l as gumbel_l
from weft.scipy.stats import gumbel_r as gumbel_r
from weft.scipy.stats import laplace as laplace
from weft.scipy.stats import logistic as logistic
from weft.scipy.stats import multinomial as multinomial
from weft.scipy.stats import multivariate_normal as multivariate_normal
from weft.scipy.stats import nbinom as nbinom
from weft.scipy.stats import norm as norm
from weft.scipy.stats import pareto as pareto
from weft.scipy.stats import poisson as poisson
from weft.scipy.stats import t as t
from weft.scipy.stats import truncnorm as truncnorm
from weft.scipy.stats import uniform as uniform
from weft.scipy.stats import vonmises as vonmises
from weft.scipy.stats import wrapcauchy as wrapcauchy
from weft.scipy.stats._kde import gaussian_kde as gaussian_kde
from weft.scipy.stats._ranks import ModeResult
from weft.typing import ArrayLike

def mode(a: ArrayLike, axis: int = 0, nan_policy: str = 'propagate', keepdims: bool = False) -> ModeResult: ...
def rankdata(a: ArrayLike, method: str = 'average', *, axis: int | None = None, nan_policy: str = 'propagate') -> Array: ...
def sem(a: ArrayLike, axis: int = 0, ddof: int = 1, nan_policy: str = 'propagate', *, keepdims: bool = False) -> Array: ...
