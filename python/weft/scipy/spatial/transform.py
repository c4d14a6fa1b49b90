"""Rotations of three-dimensional space, as unit quaternions."""

import functools
import math
from typing import Any, NamedTuple

from weft import _core, numpy as jnp
from weft._arguments import ndim_of, shape_of, strong
from weft._jit import composite
from weft._surface import open_to_users as _open_to_users, public as _public
from weft.dtypes import dtype_of, requested_dtype
from weft.errors import AttributeValueError, OperandError, ShapeError

__all__ = ["Rotation", "Slerp"]
__getattr__, __dir__ = _public(__name__, __all__)


class Rotation(NamedTuple):
    """A rotation, or a sequence of rotations; a tree with one array.

    Attributes:
      quat: the quaternion `[4]`, or quaternions `[n, 4]`, of norm 1; the scalar part comes last.
    """

    quat: Any

    @classmethod
    def from_quat(cls, quat):
        """Rotations given by quaternions `[..., 4]`, the scalar part last, of any norm."""
        return cls(_normalized(jnp.asarray(quat)))

    @classmethod
    def from_matrix(cls, matrix):
        """Rotations given by orthogonal matrices `[..., 3, 3]`; of larger ones the first corners.

        Raises ShapeError for other shapes.
        """
        matrix = jnp.asarray(matrix)
        rows, columns = (0, 0, *matrix.shape)[-2:]
        if rows != columns or rows < 3:
            raise ShapeError(
                f"[from_matrix] expected matrices [..., 3, 3]; got shape {matrix.shape}"
            )
        return cls(_quaternions_of_matrices(matrix))

    @classmethod
    def from_rotvec(cls, rotvec, degrees=False):
        """Rotations about the vectors `[..., 3]`, by angles that are their lengths.

        Args:
          rotvec: the vectors.
          degrees: whether angles are in degrees.
        """
        return cls(_quaternions_of_vectors(jnp.asarray(rotvec), degrees=bool(degrees)))

    @classmethod
    def from_mrp(cls, mrp):
        """Rotations given by modified Rodrigues parameters `[..., 3]`: the axis times the tangent
        of a quarter of the angle."""
        return cls(_quaternions_of_mrp(jnp.asarray(mrp)))

    @classmethod
    def from_euler(cls, seq, angles, degrees=False):
        """Rotations about several axes, one after another.

        Args:
          seq: up to three axes: "xyz" for those of space, "XYZ" for those that turn along.
          angles: array `[..., k]` for k axes; or a scalar for one.
          degrees: whether angles are in degrees.
        """
        axes, turning = _axes("from_euler", seq)
        angles = jnp.asarray(angles)
        single = not ndim_of(angles) and len(axes) == 1
        if not single and (not ndim_of(angles) or shape_of(angles)[-1] != len(axes)):
            raise ShapeError(
                f"[from_euler] expected angles [..., {len(axes)}], one for each of the axes "
                f"{seq!r}; got shape {shape_of(angles)}"
            )
        if single:
            angles = jnp.reshape(angles, (1,))
        return cls(
            _quaternions_of_angles(angles, axes=axes, turning=turning, degrees=bool(degrees))
        )

    @classmethod
    def identity(cls, num=None, dtype=float):
        """The rotation that changes nothing; `num` of it, if given."""
        dtype = requested_dtype(dtype, "identity")
        quat = jnp.array([0, 0, 0, 1], dtype=dtype)
        return cls(quat if num is None else jnp.broadcast_to(quat, (num, 4)))

    @classmethod
    def random(cls, random_key, num=None):
        """A rotation drawn uniformly; `num` of them, if given.

        Args:
          random_key: key of `weft.random`.
          num: how many.
        """
        from weft.random import normal

        return cls(_normalized(normal(random_key, (4,) if num is None else (num, 4))))

    @classmethod
    def concatenate(cls, rotations):
        """A sequence of all the rotations in several."""
        return cls(jnp.concatenate([jnp.atleast_2d(each.quat) for each in rotations]))

    @property
    def single(self):
        """Whether this is a single rotation, not a sequence."""
        return ndim_of(self.quat) == 1

    def __len__(self):
        if self.single:
            raise TypeError("[Rotation] a single rotation has no length")
        return shape_of(self.quat)[0]

    def __bool__(self):
        return True

    def __getitem__(self, indexer):
        if self.single:
            raise TypeError("[Rotation] a single rotation cannot be indexed")
        return Rotation(self.quat[indexer])

    def __mul__(self, other):
        """The rotation `other` followed by this one; sequences broadcast."""
        if not isinstance(other, Rotation):
            raise OperandError(f"[Rotation] expected a Rotation; got {other!r:.60}")
        return Rotation(_normalized(_products(self.quat, other.quat)))

    def apply(self, vectors, inverse=False):
        """Vectors `[..., 3]` rotated; those of a sequence broadcast.

        Args:
          vectors: array.
          inverse: whether to apply the inverses.
        """
        vectors = jnp.asarray(vectors)
        shape = vectors.shape
        if not shape or shape[-1] != 3:
            raise ShapeError(f"[apply] expected vectors [..., 3]; got shape {shape}")
        return _applied(self.quat, vectors, inverse=bool(inverse))

    def as_euler(self, seq, degrees=False):
        """Angles `[..., 3]` about three axes; see `from_euler`.

        Of rotations that have several, the angle about the axis that comes last is 0 for axes of
        space, and the first one for axes that turn along.
        """
        axes, turning = _axes("as_euler", seq)
        if len(axes) != 3:
            raise AttributeValueError(f"[as_euler] expected three axes; got {seq!r}")
        return _angles(self.quat, axes=axes, turning=turning, degrees=bool(degrees))

    def as_matrix(self):
        """Orthogonal matrices `[..., 3, 3]`."""
        return _matrices(self.quat)

    def as_mrp(self):
        """Modified Rodrigues parameters `[..., 3]`; see `from_mrp`."""
        return _mrp(self.quat)

    def as_quat(self, canonical=False, scalar_first=False):
        """Quaternions `[..., 4]` of norm 1.

        Args:
          canonical: whether to choose, of the two quaternions of a rotation, that with a positive
            scalar part, or if that is 0, a positive first part that is not.
          scalar_first: whether the scalar part comes first, not last.
        """
        return _quaternions(self.quat, canonical=bool(canonical), scalar_first=bool(scalar_first))

    def as_rotvec(self, degrees=False):
        """Vectors `[..., 3]` along the axes, whose lengths are the angles; see `from_rotvec`."""
        return _vectors(self.quat, degrees=bool(degrees))

    def inv(self):
        """The inverse rotations."""
        return Rotation(_conjugate(self.quat))

    def magnitude(self):
        """The angles `[...]`, from 0 to pi."""
        return _magnitudes(self.quat)

    def mean(self, weights=None):
        """The rotation nearest to all of a sequence (Markley et al., 2007).

        Args:
          weights: how much each counts, `[n]`.
        """
        count = len(self)
        if weights is not None and shape_of(weights) != (count,):
            raise ShapeError(
                f"[mean] expected weights of shape ({count},), one for each rotation; got "
                f"{shape_of(weights)}"
            )
        return Rotation(_mean(self.quat, weights))


class Slerp(NamedTuple):
    """Interpolation between rotations, at constant speeds; `Slerp.init` makes it.

    Attributes:
      times: when the rotations take place, `[n]`.
      timedelta: the time between neighbours, `[n - 1]`.
      rotations: all rotations but the last one.
      rotvecs: the ways from each to the next, `[n - 1, 3]`.
    """

    times: Any
    timedelta: Any
    rotations: Any
    rotvecs: Any

    @classmethod
    def init(cls, times, rotations):
        """The interpolation between `rotations`, two at least, at increasing `times` `[n]`."""
        if not isinstance(rotations, Rotation) or rotations.single or len(rotations) < 2:
            raise AttributeValueError("[Slerp] expected a sequence of at least 2 rotations")
        times = jnp.asarray(times)
        if shape_of(times) != (len(rotations),):
            raise ShapeError(
                f"[Slerp] expected times of shape ({len(rotations)},), one for each rotation; got "
                f"{shape_of(times)}"
            )
        starts, ends = Rotation(rotations.quat[:-1]), Rotation(rotations.quat[1:])
        return cls(times, jnp.diff(times), starts, (starts.inv() * ends).as_rotvec())

    def __call__(self, times):
        """The rotations at times, a number or an array `[m]`."""
        times = jnp.asarray(times)
        if ndim_of(times) > 1:
            raise ShapeError(
                f"[Slerp] expected a time, or an array [m]; got shape {shape_of(times)}"
            )
        quats = _interpolated(self.times, self.timedelta, self.rotations.quat, self.rotvecs, times)
        return Rotation(quats)


def _axes(function, seq):
    """The axes as numbers, and whether they turn along."""
    turning = seq.isupper() if isinstance(seq, str) else False
    letters = "XYZ" if turning else "xyz"
    if not isinstance(seq, str) or not 1 <= len(seq) <= 3 or not set(seq) <= set(letters):
        raise AttributeValueError(
            f"[{function}] expected up to three axes out of 'xyz', or out of 'XYZ'; got {seq!r}"
        )
    if any(map(str.__eq__, seq, seq[1:])):
        raise AttributeValueError(
            f"[{function}] expected axes of which neighbours differ; got {seq!r}"
        )
    return tuple(map(letters.index, seq)), turning


# ---- to quaternions


@composite
def _normalized(quat):
    (quat,) = _core.promote_dtypes_inexact(quat)
    return quat / jnp.linalg.norm(quat, axis=-1, keepdims=True)


@composite
def _quaternions_of_matrices(matrix):
    (m,) = _core.promote_dtypes_inexact(matrix)
    diagonal = [m[..., i, i] for i in range(3)]
    trace = sum(diagonal)
    # Each part times a quaternion; the greatest part is the one to divide by (Shepperd, 1978).
    rows = []
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        row = {
            i: 1 - trace + 2 * diagonal[i],
            j: m[..., j, i] + m[..., i, j],
            k: m[..., k, i] + m[..., i, k],
            3: m[..., k, j] - m[..., j, k],
        }
        rows.append(jnp.stack([row[part] for part in range(4)], -1))
    turns = [m[..., (i + 2) % 3, (i + 1) % 3] - m[..., (i + 1) % 3, (i + 2) % 3] for i in range(3)]
    rows.append(jnp.stack([*turns, 1 + trace], -1))
    greatest = jnp.argmax(jnp.stack([*diagonal, trace], -1), -1)
    rows = jnp.stack(rows, -2)
    return _normalized(jnp.take_along_axis(rows, greatest[..., None, None], -2)[..., 0, :])


@composite(static_argnames=("degrees",))
def _quaternions_of_vectors(vectors, *, degrees):
    (vectors,) = _core.promote_dtypes_inexact(vectors)
    vectors = jnp.deg2rad(vectors) if degrees else vectors
    square = jnp.sum(vectors * vectors, -1, keepdims=True)
    small = square <= 1e-6
    angle = jnp.sqrt(jnp.where(small, 1, square))
    # Taylor's polynomials near 0, where the length has no derivative.
    scale = jnp.where(small, 0.5 - square / 48 + square * square / 3840, jnp.sin(angle / 2) / angle)
    scalar = jnp.where(small, 1 - square / 8 + square * square / 384, jnp.cos(angle / 2))
    return jnp.concatenate([scale * vectors, scalar], -1)


@composite
def _quaternions_of_mrp(mrp):
    (mrp,) = _core.promote_dtypes_inexact(mrp)
    size = 1 + jnp.sum(mrp * mrp, -1, keepdims=True)
    return jnp.concatenate([2 * mrp / size, (2 - size) / size], -1)


@composite(static_argnames=("axes", "turning", "degrees"))
def _quaternions_of_angles(angles, *, axes, turning, degrees):
    angles = strong(*_core.promote_dtypes_inexact(angles))
    angles = jnp.deg2rad(angles) if degrees else angles
    single = []
    for i, axis in enumerate(axes):
        half = angles[..., i] / 2
        parts = [jnp.zeros_like(half)] * 3 + [jnp.cos(half)]
        parts[axis] = jnp.sin(half)
        single.append(jnp.stack(parts, -1))
    return functools.reduce(_products, single if turning else reversed(single))


@composite
def _products(p, q):
    p, q = _core.promote_dtypes_inexact(p, q)
    (pv, ps), (qv, qs) = ((x[..., :3], x[..., 3:]) for x in (p, q))
    vector = ps * qv + qs * pv + jnp.cross(pv, qv)
    scalar = ps * qs - jnp.sum(pv * qv, -1, keepdims=True)
    return jnp.concatenate([vector, scalar], -1)


@composite
def _conjugate(quat):
    return quat * jnp.array([-1, -1, -1, 1], dtype=dtype_of(quat))


# ---- from quaternions


@composite
def _matrices(quat):
    x, y, z, w = (quat[..., i] for i in range(4))
    rows = [
        [x * x - y * y - z * z + w * w, 2 * (x * y - z * w), 2 * (x * z + y * w)],
        [2 * (x * y + z * w), -x * x + y * y - z * z + w * w, 2 * (y * z - x * w)],
        [2 * (x * z - y * w), 2 * (y * z + x * w), -x * x - y * y + z * z + w * w],
    ]
    return jnp.stack([jnp.stack(row, -1) for row in rows], -2)


@composite(static_argnames=("inverse",))
def _applied(quat, vectors, *, inverse):
    matrices = _matrices(_conjugate(quat) if inverse else quat)
    matrices, vectors = _core.promote_dtypes_inexact(matrices, vectors)
    return jnp.matvec(matrices, vectors)


@composite(static_argnames=("canonical", "scalar_first"))
def _quaternions(quat, *, canonical, scalar_first):
    quat = _core.asarray(quat)
    if canonical:
        sign = jnp.zeros_like(quat[..., :1])
        for i in (3, 0, 1, 2):
            sign = jnp.where(sign == 0, jnp.sign(quat[..., i : i + 1]), sign)
        quat = jnp.where(sign < 0, -quat, quat)
    return jnp.roll(quat, 1, -1) if scalar_first else quat


def _upper(quat):
    """The quaternions with a scalar part that is not negative."""
    return jnp.where(quat[..., 3:] < 0, -quat, quat)


@composite(static_argnames=("degrees",))
def _vectors(quat, *, degrees):
    quat = _upper(quat)
    vector, scalar = quat[..., :3], quat[..., 3:]
    square = jnp.sum(vector * vector, -1, keepdims=True)
    small = square <= 1e-7
    length = jnp.sqrt(jnp.where(small, 1, square))
    # asin(s) / s near 0.
    scale = jnp.where(
        small,
        2 + square / 3 + 3 * square * square / 20,
        2 * jnp.arctan2(length, scalar) / length,
    )
    vectors = scale * vector
    return jnp.rad2deg(vectors) if degrees else vectors


@composite
def _mrp(quat):
    quat = _upper(quat)
    return quat[..., :3] / (1 + quat[..., 3:])


@composite
def _magnitudes(quat):
    length = jnp.linalg.norm(quat[..., :3], axis=-1)
    return 2 * jnp.arctan2(length, jnp.abs(quat[..., 3]))


@composite(static_argnames=("axes", "turning", "degrees"))
def _angles(quat, *, axes, turning, degrees):
    """The algorithm of Bernardes and Viollet (2022)."""
    i, j, k = axes[::-1] if turning else axes
    symmetric = i == k
    if symmetric:
        k = 3 - i - j
    parity = (i - j) * (j - k) * (k - i) // 2
    q = [quat[..., part] for part in range(4)]
    if symmetric:
        a, b, c, d = q[3], q[i], q[j], q[k] * parity
    else:
        a, b = q[3] - q[j], q[i] + q[k] * parity
        c, d = q[j] + q[3], q[k] * parity - q[i]
    middle = 2 * jnp.arctan2(jnp.hypot(c, d), jnp.hypot(a, b))
    half_sum, half_difference = jnp.arctan2(b, a), jnp.arctan2(d, c)
    near = 1e-7
    flat, opposite = jnp.abs(middle) <= near, jnp.abs(middle - math.pi) <= near
    # Of the first and last axis, that which space has and that which turned furthest.
    fixed = jnp.where(flat | opposite, 0, half_sum + half_difference)
    turned = half_sum - half_difference
    alone = 2 * jnp.where(flat, half_sum, half_difference * (1 if turning else -1))
    if turning:
        first = jnp.where(flat | opposite, alone, fixed)
        last = jnp.where(flat | opposite, 0, turned)
        first = first if symmetric else first * parity
    else:
        first = jnp.where(flat | opposite, alone, turned)
        last = fixed if symmetric else fixed * parity
    middle = middle if symmetric else middle - math.pi / 2
    angles = jnp.stack([first, middle, last], -1)
    angles = jnp.where(angles < -math.pi, angles + 2 * math.pi, angles)
    angles = jnp.where(angles > math.pi, angles - 2 * math.pi, angles)
    return jnp.rad2deg(angles) if degrees else angles


@composite
def _mean(quat, weights):
    weighted = quat if weights is None else quat * weights[:, None]
    return jnp.linalg.eigh(weighted.T @ quat).eigenvectors[:, -1]


@composite
def _interpolated(times, steps, quats, vectors, at):
    after = jnp.searchsorted(times, at, side="right")
    index = jnp.clip(after - 1, 0, shape_of(steps)[0] - 1)
    share = (at - times[index]) / steps[index]
    turn = _quaternions_of_vectors(vectors[index] * share[..., None], degrees=False)
    return _products(quats[index], turn)


_open_to_users(__name__)
