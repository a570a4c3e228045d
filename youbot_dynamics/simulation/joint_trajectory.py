"""Trajectories of joints: knots joined by polynomials, evaluated inside compiled loops."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from youbot_dynamics.arrays import Vector, array, read_only
from youbot_dynamics.compiled import compiled
from youbot_dynamics.errors import InputError

# Coefficients of s^0 ... s^5 (rows) from position, speed and acceleration at 0, then at 1 (columns).
_QUINTIC = 0.5 * np.array(
    [
        [2, 0, 0, 0, 0, 0],
        [0, 2, 0, 0, 0, 0],
        [0, 0, 1, 0, 0, 0],
        [-20, -12, -3, 20, -8, 1],
        [30, 16, 3, -30, 14, -2],
        [-12, -6, -1, 12, -6, 1],
    ]
)
# d/ds of s^1 ... s^5 (rows) at places from 0 to 1 (columns).
_SLOPES = np.array([k * np.linspace(0.0, 1.0, 11) ** (k - 1) for k in range(1, 6)])
FASTEST = 1000.0  # [rad/s] chosen: 600 times what the joints can; faster is a mistake
_CUBIC = np.array([[1, 0, 0, 0], [0, 1, 0, 0], [-3, -2, 3, -1], [2, 1, -2, 1]])


@dataclass(frozen=True, eq=False)
class JointTrajectory:
    """m >= 1 knots of n joints, joined as FollowJointTrajectory's drivers join them.

    Positions alone: by straight lines; with velocities: by cubics; with accelerations too: by quintics.

    Args:
        times: (m,) after the start [s], not negative, strictly increasing.
        positions: (m, n) [rad].
        velocities: (m, n) [rad/s], or None.
        accelerations: (m, n) [rad/s2], or None; only with velocities.

    Raises:
        InputError: a wrong shape, a number that is not finite, times that do not increase, or accelerations alone.
    """

    times: Vector
    positions: Vector
    velocities: Vector | None = None
    accelerations: Vector | None = None

    def __post_init__(self) -> None:
        """Check the knots and keep them read-only."""
        times = array("times", self.times, (None,)).copy()
        if len(times) == 0:
            raise InputError("times", got="no knot", expected="at least one")
        if times[0] < 0.0 or np.any(np.diff(times) <= 0.0):
            raise InputError("times", got=str(times), expected="times from 0 on that strictly increase")
        positions = array("positions", self.positions, (len(times), None)).copy()
        object.__setattr__(self, "times", read_only(times))
        object.__setattr__(self, "positions", read_only(positions))
        if self.accelerations is not None and self.velocities is None:
            raise InputError("accelerations", got="no velocities beside them", expected="both or velocities alone")
        for name in ("velocities", "accelerations"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, read_only(array(name, value, positions.shape).copy()))

    def beginning_at(self, position: ArrayLike) -> JointTrajectory:
        """Same trajectory with a knot at rest in front, where its first one comes later than its start.

        Args:
            position: (n,) of the joints when it starts [rad].
        """
        if self.times[0] == 0.0:
            return self
        first = array("position", position, (self.positions.shape[1],))[None]
        still = np.zeros_like(first)
        return JointTrajectory(
            np.concatenate([[0.0], self.times]),
            np.concatenate([first, self.positions]),
            None if self.velocities is None else np.concatenate([still, self.velocities]),
            None if self.accelerations is None else np.concatenate([still, self.accelerations]),
        )

    def check_speeds(self, position: ArrayLike) -> None:
        """Refuse what no arm could be meant to follow.

        Args:
            position: (n,) of the joints now, as if it started [rad].

        Raises:
            InputError: speeds on the way that are above `FASTEST` or overflow.
        """
        with np.errstate(all="ignore"):
            whole = self.beginning_at(position)
            speeds = np.abs(whole.pieces()[:, :, 1:] @ _SLOPES) / np.diff(whole.times)[:, None, None]
        slow = speeds <= FASTEST
        if not slow.all():
            piece, joint, _ = np.argwhere(~slow)[0]
            raise InputError(
                f"trajectory, joint {joint + 1} on the way to {whole.times[piece + 1]:g} s",
                got=f"speeds of up to {speeds[piece, joint].max():.3g} rad/s",
                expected=f"at most {FASTEST:g} rad/s",
            )

    def pieces(self) -> Vector:
        """Coefficients (m - 1, n, 6) of each piece in powers of its own time s in 0..1."""
        steps = np.diff(self.times)[:, None]
        p = self.positions
        out = np.zeros((len(steps), p.shape[1], 6))
        if self.velocities is None:
            out[:, :, 0], out[:, :, 1] = p[:-1], p[1:] - p[:-1]
            return out
        v = self.velocities
        ends = [p[:-1], v[:-1] * steps, p[1:], v[1:] * steps]
        powers = _CUBIC
        if self.accelerations is not None:
            a = self.accelerations
            ends = [*ends[:2], a[:-1] * steps**2, *ends[2:], a[1:] * steps**2]
            powers = _QUINTIC
        out[:, :, : len(ends)] = np.einsum("ke,emn->mnk", powers, np.array(ends))
        return out


@compiled
def piece_at(times: Vector, time: float) -> int:
    """Index of the piece of `times` (m,) that holds `time` [s], not before the first; m - 1 from the end on."""
    low, high = 0, len(times)
    while high - low > 1:
        middle = (low + high) // 2
        if time >= times[middle]:
            low = middle
        else:
            high = middle
    return low


@compiled
def point_of(times: Vector, pieces: Vector, last: Vector, piece: int, time: float, joint: int) -> tuple[float, float]:
    """Position [rad] and speed [rad/s] of one joint at `time` [s]; after the end it rests at the last knot.

    Args:
        times: (m,) [s].
        pieces: (m - 1, n, 6).
        last: (n,) last knot [rad].
        piece: that of `piece_at`.
        time: since the start [s].
        joint: its index.
    """
    if piece >= len(times) - 1:
        return last[joint], 0.0
    length = times[piece + 1] - times[piece]
    s = (time - times[piece]) / length
    c = pieces[piece, joint]
    position = c[0] + s * (c[1] + s * (c[2] + s * (c[3] + s * (c[4] + s * c[5]))))
    speed = c[1] + s * (2.0 * c[2] + s * (3.0 * c[3] + s * (4.0 * c[4] + s * 5.0 * c[5])))
    return position, speed / length
