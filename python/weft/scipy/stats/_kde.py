"""Density estimation by Gaussian kernels."""

import math
from dataclasses import dataclass
from typing import Any

from weft import _core, numpy as jnp, random
from weft._arguments import ndim_of, shape_of
from weft._jit import composite
from weft.dtypes import dtype_of, is_complex
from weft.errors import AttributeValueError, NotImplementedRuleError, ShapeError
from weft.lax.linalg import cholesky, triangular_solve
from weft.nn._normalized import logsumexp
from weft.scipy.special import ndtr
from weft.tree_util import register_pytree_node_class


@register_pytree_node_class
@dataclass(frozen=True, init=False)
class gaussian_kde:
    """An estimate of the density that samples are drawn from, by a Gaussian kernel at each sample.

    D. W. Scott, "Multivariate Density Estimation" (1992); B. W. Silverman, "Density Estimation for
    Statistics and Data Analysis" (1986). An estimate is a tree of arrays: `jit`, `grad` and `vmap`
    take it.

    Args:
      dataset: real array `[n]`, or `[d, n]` for d dimensions, of more than one element.
      bw_method: "scott" (as None), "silverman", a number, or a function of the estimate: the factor
        that the standard deviations of the data are multiplied by for those of the kernels.
      weights: array `[n]`, equal ones by default.

    Attributes: dataset `[d, n]`, weights `[n]`, neff (the effective number of samples), covariance
    and inv_cov `[d, d]` of the kernels, d, n.

    Raises:
      ValueError: for other arguments.

    Examples:
      >>> density = weft.scipy.stats.gaussian_kde(wnp.array([-1.0, 0.0, 1.0]))
      >>> density.integrate_box_1d(-wnp.inf, 0.0).round(3)
      Array(0.5, dtype=float32)
    """

    neff: Any
    dataset: Any
    weights: Any
    covariance: Any
    inv_cov: Any

    def __init__(self, dataset, bw_method=None, weights=None):
        if math.prod(shape_of(dataset)) < 2:
            raise ShapeError("[gaussian_kde] expected a dataset of more than one element")
        if ndim_of(dataset) > 2:
            raise ShapeError(
                f"[gaussian_kde] expected a dataset [n] or [d, n]; got shape {shape_of(dataset)}"
            )
        if is_complex(dtype_of(dataset)):
            raise NotImplementedRuleError(
                f"[gaussian_kde] expected a dataset of real numbers; got {dtype_of(dataset)}"
            )
        (dataset,) = _core.promote_dtypes_inexact(jnp.atleast_2d(dataset))
        d, n = dataset.shape
        if weights is None:
            weights = jnp.full(n, 1 / n, dataset.dtype)
        else:
            if shape_of(weights) != (n,):
                raise ShapeError(
                    f"[gaussian_kde] expected weights of shape {(n,)}; got {shape_of(weights)}"
                )
            dataset, weights = _core.promote_dtypes_inexact(dataset, weights)
            weights = weights / jnp.sum(weights)
        self._set("dataset", dataset)
        self._set("weights", weights)
        self._set("neff", 1 / jnp.sum(jnp.square(weights)))
        factor = self._factor(bw_method)
        covariance = jnp.atleast_2d(jnp.cov(dataset, rowvar=True, bias=False, aweights=weights))
        self._set("covariance", covariance * factor**2)
        self._set("inv_cov", jnp.linalg.inv(covariance) / factor**2)

    def _set(self, name, value):
        object.__setattr__(self, name, value)

    def _factor(self, method) -> Any:
        power = -1 / (self.d + 4)
        if method is None or isinstance(method, str) and method == "scott":
            return self.neff**power
        if isinstance(method, str) and method == "silverman":
            return (self.neff * (self.d + 2) / 4) ** power
        if callable(method):
            return method(self)
        if isinstance(method, str) or ndim_of(method):
            raise AttributeValueError(
                "[gaussian_kde] expected bw_method to be 'scott', 'silverman', a number or a "
                f"function; got {method!r}"
            )
        return method

    def tree_flatten(self):
        """The arrays, and None, for what works on trees."""
        return (self.neff, self.dataset, self.weights, self.covariance, self.inv_cov), None

    @classmethod
    def tree_unflatten(cls, aux_data, children):
        """The estimate of given arrays; `aux_data` is ignored."""
        result = object.__new__(cls)
        names = ("neff", "dataset", "weights", "covariance", "inv_cov")
        for name, value in zip(names, children, strict=True):
            result._set(name, value)
        return result

    @property
    def d(self):
        """The number of dimensions."""
        return self.dataset.shape[0]

    @property
    def n(self):
        """The number of samples."""
        return self.dataset.shape[1]

    def _points(self, points):
        points = jnp.atleast_2d(_core.asarray(points))
        if points.ndim > 2:
            raise ShapeError(f"[gaussian_kde] expected points [d, m]; got shape {points.shape}")
        d, m = points.shape
        if d != self.d:
            if d == 1 and m == self.d:
                return jnp.reshape(points, (self.d, 1))
            raise ShapeError(
                f"[gaussian_kde] expected points of {self.d} dimensions; got shape {points.shape}"
            )
        return points

    def evaluate(self, points):
        """The density at points.

        Args:
          points: array `[d, m]`, or `[m]` in one dimension; or `[d]`, one point.

        Returns:
          Array `[m]`.
        """
        return jnp.exp(self.logpdf(points))

    def __call__(self, points):
        """As `evaluate`."""
        return self.evaluate(points)

    def pdf(self, x):
        """As `evaluate`."""
        return self.evaluate(x)

    def logpdf(self, x):
        """Logarithm of the density at points; see `evaluate`."""
        return _log_density(self._points(x), self.dataset, self.weights, self.covariance)

    def integrate_gaussian(self, mean, cov):
        """The integral of the density times a normal density.

        Args:
          mean: array `[d]`, or a number in one dimension.
          cov: array `[d, d]`, or a number in one dimension.

        Returns:
          Array without axes.
        """
        mean, cov = jnp.atleast_1d(mean), jnp.atleast_2d(cov)
        if mean.shape != (self.d,):
            raise ShapeError(
                f"[integrate_gaussian] expected a mean of shape {(self.d,)}; got {mean.shape}"
            )
        if cov.shape != (self.d, self.d):
            raise ShapeError(
                f"[integrate_gaussian] expected a covariance of shape {(self.d, self.d)}; got "
                f"{cov.shape}"
            )
        total = self.covariance + cov
        return jnp.exp(_log_density(mean[:, None], self.dataset, self.weights, total))[0]

    def integrate_box_1d(self, low, high):
        """The probability from `low` to `high`, numbers, in one dimension."""
        if self.d != 1:
            raise ShapeError(f"[integrate_box_1d] expected one dimension; there are {self.d}")
        if ndim_of(low) or ndim_of(high):
            raise ShapeError("[integrate_box_1d] expected the limits to be numbers")
        return _box(self, low, high)

    def integrate_kde(self, other):
        """The integral of the density times that of another estimate in as many dimensions."""
        if other.d != self.d:
            raise ShapeError(
                f"[integrate_kde] expected an estimate in {self.d} dimensions; got {other.d}"
            )
        total = self.covariance + other.covariance
        logs = _log_density(other.dataset, self.dataset, self.weights, total)
        return jnp.sum(jnp.exp(logs) * other.weights)

    def resample(self, key, shape=()):
        """Samples of the density.

        Args:
          key: a key.
          shape: how many.

        Returns:
          Array `[d, *shape]`.
        """
        choice_key, noise_key = random.split(key)
        centers = random.choice(choice_key, self.n, shape=shape, p=self.weights)
        noise = random.normal(noise_key, (*shape, self.d), self.dataset.dtype)
        noise = jnp.matmul(noise, cholesky(self.covariance).T)
        return self.dataset[:, centers] + jnp.moveaxis(noise, -1, 0)

    def integrate_box(self, low_bounds, high_bounds, maxpts=None):
        """Not supported: NotImplementedError. `low_bounds`, `high_bounds`, `maxpts` have no effect.

        In one dimension `integrate_box_1d` does this.
        """
        raise NotImplementedError("[integrate_box] is not supported; use integrate_box_1d")

    def set_bandwidth(self, bw_method=None):
        """Not supported: NotImplementedError. `bw_method` has no effect here.

        Make another estimate with another `bw_method` instead.
        """
        raise NotImplementedError("[set_bandwidth] is not supported: make another gaussian_kde")


@composite
def _log_density(points, centers, weights, covariance):
    """Logarithm of the weighted sum of normal densities around centers `[d, n]`, at `[d, m]`."""
    points, centers, covariance = _core.promote_dtypes_inexact(points, centers, covariance)
    factor = cholesky(covariance)
    points, centers = (
        triangular_solve(factor, x, left_side=True, lower=True) for x in (points, centers)
    )
    squares = jnp.sum(jnp.square(points[:, :, None] - centers[:, None, :]), axis=0)
    logs = jnp.sum(jnp.log(jnp.diagonal(factor))) + 0.5 * len(factor) * math.log(2 * math.pi)
    return logsumexp(-0.5 * squares, axis=1, b=weights) - logs


@composite
def _box(estimate, low, high):
    deviation = jnp.sqrt(estimate.covariance[0, 0])
    centers = estimate.dataset[0]
    low, high = (ndtr((limit - centers) / deviation) for limit in (low, high))
    return jnp.sum((high - low) * estimate.weights)
