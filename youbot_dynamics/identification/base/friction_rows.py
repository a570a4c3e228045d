"""Rows H p = b of the friction of a mecanum base, out of wheel speeds and wheel torques (systems 35, 36)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from youbot_dynamics.dynamics.mecanum_dynamics import effective_inertia
from youbot_dynamics.identification.fitting.block_sums import Rows
from youbot_dynamics.identification.fitting.half_windows import HalfWindows, half_windows
from youbot_dynamics.identification.fitting.verdict import Unknown
from youbot_dynamics.kinematics.mecanum import MecanumBase

Vector = NDArray[np.float64]

HALF_WINDOW = 0.15  # [s] several readings of a 50 Hz driver, a fraction of the period of any sensible motion
_FEWEST_IN_HALF = 4
_LOOKED_AT = 10_000  # samples that tell the rate
# Below these speeds the sign of the friction is noise, and the bristles of the contact are still bending: no rows.
WHEEL_DEADBAND = 0.2  # [rad/s]
ROLLER_DEADBAND = 0.012  # [m/s]
# [s] several turns' worth of the torque that wanders as a wheel rolls, which is what the residual is made of.
BLOCK = 2.0
_MOST_BLOCKS = 600  # of a recording; longer ones get longer blocks, so that their sums stay below 1 MB
_CHUNK = 4000  # half windows worked off at a time: bounds the memory

_SIDEWAYS = "the robot never moved sideways in these data"
_FORWARD = "the robot never moved forward in these data"


@dataclass(frozen=True, eq=False)
class FrictionModel:
    """Which coefficients the rows hold, for a base of n wheels.

    Common to all wheels: viscous_x (xi_L), viscous_y (xi_T), wheel_coulomb (F1), roller_coulomb (F2 / r: the radius r
    of the rollers is not published, and only the ratio acts). `each_wheel` has a Coulomb torque for each wheel instead
    of F1, and how far each wheel's viscous torque differs from their mean.

    The inertia is the effective one, J' J_w J of wheels and rotors included. What the efforts show of it is free all
    the same, axis by axis: a load adds to it, and a motor loop that answers each command within a few milliseconds
    pushes between two readings, so that efforts read in step with the commands miss part of the push, or see it early
    or late. `missed_inertia` and `missed_impulse`, of the asked acceleration and of its rate, keep that out of the
    friction: a late effort would look like viscous friction otherwise. They are no masses.

    Args:
        base: kinematics.
        mass: of the body [kg].
        yaw_inertia: of the body about the vertical [kg m2].
        wheel_inertia: J_w of a wheel with its reflected rotor [kg m2].
        each_wheel: Coulomb and viscous friction of each wheel apart.
    """

    base: MecanumBase
    mass: float
    yaw_inertia: float
    wheel_inertia: float
    each_wheel: bool = False

    @property
    def wheel_names(self) -> tuple[str, ...]:
        """Wheels by name: FL, FR, RL, RR for four, else numbers."""
        count = len(self.base.radii)
        return ("fl", "fr", "rl", "rr") if count == 4 else tuple(str(k + 1) for k in range(count))

    @property
    def coefficients(self) -> int:
        """Number of unknowns, the first ones, that are coefficients of friction."""
        return 3 + (len(self.wheel_names) if self.each_wheel else 1)

    def unknowns(self) -> tuple[Unknown, ...]:
        """Unknowns p in the order of the columns."""
        coulomb = [f"wheel_coulomb_{name}" for name in self.wheel_names] if self.each_wheel else ["wheel_coulomb"]
        found = [
            Unknown("viscous_x", "N s/m", low=0.0, resolution=0.5, unexcited=_FORWARD),
            Unknown("viscous_y", "N s/m", low=0.0, resolution=0.5, unexcited=_SIDEWAYS),
            Unknown("roller_coulomb", "N", low=0.0, resolution=0.02, unexcited=_SIDEWAYS),
            *(Unknown(name, "N m", low=0.0, resolution=0.005, unexcited="no wheel ever turned") for name in coulomb),
        ]
        still = "the robot never changed its speed on this axis"
        late = "no command is known, or its acceleration never changed on this axis"
        axes = (("x", "kg"), ("y", "kg"), ("yaw", "kg m2"))
        found += [Unknown(f"missed_inertia_{axis}", unit, unexcited=still) for axis, unit in axes]
        found += [Unknown(f"missed_impulse_{axis}", f"{unit} s", unexcited=late) for axis, unit in axes]
        if self.each_wheel:
            turn = "the motion never told the wheels apart: turn while driving"
            found += [
                Unknown(f"viscous_pattern_{k + 1}", "N m s", unexcited=turn) for k in range(len(self.wheel_names) - 1)
            ]
        return tuple(found)

    def patterns(self) -> Vector:
        """Ways (n, n - 1) in which the wheels' viscous torques can differ from their mean: orthogonal to (1 .. 1)."""
        count = len(self.wheel_names)
        basis = np.linalg.svd(np.ones((1, count)))[2][1:].T
        if count == 4:
            basis = 0.5 * np.array([[-1.0, -1.0, 1.0], [1.0, 1.0, 1.0], [1.0, -1.0, -1.0], [-1.0, 1.0, -1.0]])
        return basis

    def columns(
        self, twist: Vector, pushes: tuple[Vector, Vector], wheel_signs: Vector, roller_signs: Vector
    ) -> Vector:
        """Regressors (k, 3, p) of k windows for the rows x, y, yaw.

        Args:
            twist: (k, 3) mean body twist [m/s, m/s, rad/s].
            pushes: (k, 3) the asked acceleration, and (k, 3) its rate; zeros where no command is known.
            wheel_signs: (k, n).
            roller_signs: (k, n) of V_T + Omega x at each wheel.
        """
        base = self.base
        x, y = base.positions[:, 0], base.positions[:, 1]
        jacobian = base.inverse_matrix
        zero = np.zeros(len(twist))
        vx, vy, wz = twist.T
        gains = np.abs(1.0 / np.cos(base.roller_angles))
        along = np.stack([vx - y.mean() * wz, zero, np.mean(y * y) * wz - y.mean() * vx], axis=1)
        across = np.stack([zero, vy + x.mean() * wz, x.mean() * vy + np.mean(x * x) * wz], axis=1)
        rollers = np.stack([zero, roller_signs @ gains, roller_signs @ (gains * x)], axis=1)
        parts = [along[:, :, None], across[:, :, None], rollers[:, :, None]]
        coulomb = wheel_signs[:, None, :] * jacobian.T
        parts.append(coulomb if self.each_wheel else coulomb.sum(axis=2, keepdims=True))
        parts += [push[:, :, None] * np.eye(3) for push in pushes]
        if self.each_wheel:
            wheel_speeds = twist @ jacobian.T
            parts.append(np.einsum("kn,na,np->kap", wheel_speeds, jacobian, self.patterns(), optimize=True))
        return np.concatenate(parts, axis=2)

    def known_force(self, twist: Vector, rate: Vector) -> Vector:
        """M V' + m Omega x V (k, 3) at twists (k, 3) and their rates (k, 3) [N, N, N m]; M is the effective inertia.

        The centripetal part is the body's alone (system 35).
        """
        inertia = effective_inertia(self.base, self.mass, self.yaw_inertia, self.wheel_inertia)
        vx, vy, wz = twist.T
        turning = self.mass * np.stack([-wz * vy, wz * vx, np.zeros(len(twist))], axis=1)
        force: Vector = rate @ inertia.T + turning
        return force


def friction_rows(
    model: FrictionModel,
    time: Vector,
    speeds: Vector,
    torques: Vector,
    commanded: Vector | None = None,
    recording: int = 0,
) -> Iterator[Rows]:
    """Rows of the windows in which every wheel that matters rolls one way, in pieces of bounded size.

    A row needs the signs of all wheels, the rows y and yaw those of all rollers too. Windows in which a sign is not
    clear are left out: to put 0 there instead drives xi_L to -18 N s/m where it is 15 (system 36).

    Args:
        model: what to identify.
        time: (s,) increasing [s].
        speeds: (s, n) wheel speeds [rad/s].
        torques: (s, n) of the motors at the wheels [N m].
        commanded: (s, n) wheel speeds the robot was asked for, free of noise and moved by the delay: instruments.
        recording: number of the recording.
    """
    base = model.base
    places = np.unique(base.positions[:, 0])
    sideways = base.forward_matrix[1] + places[:, None] * base.forward_matrix[2]
    usual = float(np.median(np.diff(time[:_LOOKED_AT]))) if len(time) > 1 else 0.0
    span = max(HALF_WINDOW, _FEWEST_IN_HALF * usual)
    deadband = np.concatenate([np.full(len(base.radii), WHEEL_DEADBAND), np.full(len(places), ROLLER_DEADBAND)])
    which = np.searchsorted(places, base.positions[:, 0])
    first, last = np.floor(time[[0, -1]] / span) if len(time) else (0.0, -1.0)
    duration = float(time[-1] - time[0]) if len(time) else 0.0
    block = max(BLOCK, duration / _MOST_BLOCKS)
    for begin in np.arange(first, last + 1.0, float(_CHUNK)):
        # The outer windows of a piece have no neighbour: a piece takes one half from before and two from after it.
        a, b = np.searchsorted(time, [(begin - 1.0) * span, (begin + _CHUNK + 2.0) * span])
        piece = slice(int(a), int(b))
        measured = half_windows(time[piece], speeds[piece], torques[piece], sideways, span)
        asked = None if commanded is None else commanded[piece]
        wished = None if asked is None else half_windows(time[piece], asked, asked, sideways, span)
        yield _rows_of_windows(model, measured, wished, deadband, which, recording, block)


def _rows_of_windows(
    model: FrictionModel,
    measured: HalfWindows,
    wished: HalfWindows | None,
    deadband: Vector,
    which: NDArray[np.intp],
    recording: int,
    block: float,
) -> Rows:
    """Rows of the sound windows; deadband (n + m,), which (n,) of the m sideways speeds is each wheel's."""
    base, count = model.base, len(which)
    signs = measured.rolling(deadband)
    # The rate of the acceleration takes a neighbour on either side.
    inner = measured.sound & np.concatenate([[False], measured.sound[:-1]]) & np.append(measured.sound[1:], False)
    rolling = inner & np.all(signs[:, :count] != 0.0, axis=1)
    sliding = np.all(signs[:, count:] != 0.0, axis=1)
    keep = np.flatnonzero(rolling)
    usable = np.stack([rolling, rolling & sliding, rolling & sliding], axis=1)[keep]
    twist = measured.averaged(measured.speed, measured.speed_late)[keep] @ base.forward_matrix.T
    rate = measured.rate()[keep] @ base.forward_matrix.T
    force = measured.averaged(measured.torque, measured.torque_late)[keep] @ base.inverse_matrix
    target = force - model.known_force(twist, rate)
    time = np.repeat(measured.time[keep][:, None], 3, axis=1)[usable]
    wheels, rollers = signs[keep, :count], signs[keep, count:][:, which]
    if wished is None:
        regressors = model.columns(twist, (rate, np.zeros_like(rate)), wheels, rollers)[usable]
        return Rows(time, regressors, target[usable], None, recording, block)
    asked = wished.averaged(wished.speed, wished.speed_late)[keep] @ base.forward_matrix.T
    rates = wished.rate() @ base.forward_matrix.T
    pushes = rates[keep], (rates[keep + 1] - rates[keep - 1]) / (2.0 * wished.span)
    turning = np.sign(asked @ base.inverse_matrix.T)
    sliding_asked = np.sign(asked[:, 1:2] + asked[:, 2:3] * base.positions[:, 0])
    regressors = model.columns(twist, pushes, wheels, rollers)[usable]
    instruments = model.columns(asked, pushes, turning, sliding_asked)[usable]
    return Rows(time, regressors, target[usable], instruments, recording, block)
