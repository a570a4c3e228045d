"""Wheel speeds for the rollers that will be on the floor when a command acts (systems 29 and 31).

A body twist V takes wheel speeds J(phi) V, and J wanders with the rollers about its mean. Sent are the mean rows' J u
of a commanded twist u, which `driven_base` knows how to answer, and the ripple

    d = (J(phi) - J) V

besides, at the wheel angles and the twist that the model predicts for the moment the command acts: one dead time
ahead, each axis with its own. The body carries its motion through the rollers by its own inertia, and all that the
loops have to give it is the torque that the wheels' inertia takes. For loops that answer a command with `lag` and hold
it against a disturbance with e'' + b e' + c e, an axis with the share k of its inertia in the wheels is sent

    u = r + lag r',    r = k d + (1 - k) g,    g = d (b s + c) / (s^2 + b s + c)

where the loops are fed the torque for an acceleration, and else r = d + k d s^2 / (b s + c),

and less by the rate of the droop that friction makes beside that of the mean rows: where a wheel rolls the other way
than they say; where a roller's contact is nearer to its axis, so that its friction is (R - b) / (R cos(phi) - b) of
that in its middle; and since the torques that balance friction and inertia come to the body through the rows, as they
are. k = 1 is what four wheels do that no motion explains, their part beside the three axes. With no rate the loops are
stiff, and r = d.
"""

from __future__ import annotations

from math import cos, tanh
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from youbot_dynamics.arrays import Vector
from youbot_dynamics.compiled import compiled
from youbot_dynamics.control.tracker import BasePredictor
from youbot_dynamics.dynamics.driven_base import DrivenBase, write_inverse_droop
from youbot_dynamics.dynamics.mecanum_dynamics import ROLLER_SPEED_SCALE, WHEEL_SPEED_SCALE
from youbot_dynamics.kinematics import planar
from youbot_dynamics.kinematics.roller_phase import RollingWheels, RowConstants, contact_angle, write_row

_STEP = 4e-3  # [s] of the prediction: a roller passes in 60 ms at the wheels' top speed
_LEAST_LEVER = 0.1  # of a roller's friction at its ends, over that in its middle: what is configured may be nonsense
_LONGEST_AHEAD = 2.0  # [s] from a reading to the end of what is predicted; older readings say nothing any more


class _Loops(NamedTuple):
    """What the axes make of a ripple."""

    shares: Vector  # (4,) k of x, y, yaw and what is beside them [1]
    damping: Vector  # (4,) b of them [1/s]
    stiffness: Vector  # (4,) c of them [1/s2]
    fed: bool  # whether the loops are
    lag: float  # [s]
    forward: Vector  # (3, n) twist of wheel speeds, mean rows
    mean: Vector  # (n, 3) mean rows
    coulomb: float  # F1 of a wheel as the loops feel it [N m]
    sideways: Vector  # (n,) F2 / r over |cos d| of the rollers of each wheel, its mean over their length [N]
    viscous: Vector  # (2,) xi_L, xi_T of the base [N s/m]
    depth: float  # b of the roller axes [m]
    mean_lever: float  # mean over a roller of the share its friction has of that in its middle [1]
    body: Vector  # (3,) inertia without the wheels [kg, kg, kg m2]
    inverse_inertia: Vector  # (3, 3) with them [1/kg, 1/kg, 1/(kg m2)]


@compiled
def _lever(radius: float, depth: float, phi: float) -> float:
    """Friction of a roller whose contact is phi off its middle, over that in its middle: its torque is one."""
    return (radius - depth) / max(radius * cos(phi) - depth, _LEAST_LEVER * (radius - depth))


@compiled
def _unbalanced(
    wheels: RowConstants,
    loops: _Loops,
    angles: Vector,
    twist: Vector,
    acceleration: Vector,
    torques: Vector,
    forces: Vector,
) -> None:
    """Write the forces (3,) against the base that its motors' torques do not balance at a twist (3,) and angles (n,).

    With f the friction of the wheels and g all else that holds the body back, its inertia included, motors balance both
    in the mean, T = P f + (J^+)' g with P the projection on what moves the base. Through the rows of the rollers there
    remains J(phi)' (f(phi) - T) + g(phi). `acceleration` (3,) is the derivative of the twist.
    `torques` (n,) is a work array.
    """
    n = len(angles)
    row, mean, felt = np.zeros(3), np.zeros(3), np.zeros(3)
    for axis in range(3):
        mean[axis] = felt[axis] = loops.body[axis] * acceleration[axis]
    for i in range(n):
        x, y = wheels.positions[i, 0], wheels.positions[i, 1]
        speed = loops.mean[i, 0] * twist[0] + loops.mean[i, 1] * twist[1] + loops.mean[i, 2] * twist[2]
        lateral = loops.sideways[i] * tanh((twist[1] + twist[2] * x) / ROLLER_SPEED_SCALE)
        drag_x = loops.viscous[0] / n * (twist[0] - twist[2] * y)
        drag_y = loops.viscous[1] / n * (twist[1] + twist[2] * x)
        lever = 1.0
        if wheels.pitch > 0.0:
            phi = contact_angle(angles[i], wheels.phases[i], wheels.pitch)
            lever = _lever(wheels.radii[i], loops.depth, phi) / loops.mean_lever
        mean[0] += drag_x
        mean[1] += lateral + drag_y
        mean[2] += x * (lateral + drag_y) - y * drag_x
        felt[0] += drag_x
        felt[1] += lever * lateral + drag_y
        felt[2] += x * (lever * lateral + drag_y) - y * drag_x
        for axis in range(3):
            mean[axis] += loops.mean[i, axis] * loops.coulomb * tanh(speed / WHEEL_SPEED_SCALE)
    for i in range(n):
        torques[i] = 0.0
        for axis in range(3):
            torques[i] += loops.forward[axis, i] * mean[axis]
    for axis in range(3):
        forces[axis] = felt[axis]
    for i in range(n):
        write_row(wheels, i, angles[i], row)
        rolling = row[0] * twist[0] + row[1] * twist[1] + row[2] * twist[2]
        off_balance = loops.coulomb * tanh(rolling / WHEEL_SPEED_SCALE) - torques[i]
        for axis in range(3):
            forces[axis] += row[axis] * off_balance


@compiled
def _ripple(wheels: RowConstants, loops: _Loops, angles: Vector, twist: Vector, ripple: Vector) -> None:
    """Write what a twist (3,) takes beside the mean rows at angles (n,): of x, y, yaw and the n wheels, (3 + n,)."""
    n = len(angles)
    row = np.zeros(3)
    for i in range(n):
        write_row(wheels, i, angles[i], row)
        ripple[3 + i] = 0.0
        for axis in range(3):
            ripple[3 + i] += (row[axis] - loops.mean[i, axis]) * twist[axis]
    for axis in range(3):
        ripple[axis] = 0.0
        for i in range(n):
            ripple[axis] += loops.forward[axis, i] * ripple[3 + i]
    for i in range(n):
        for axis in range(3):
            ripple[3 + i] -= loops.mean[i, axis] * ripple[axis]


@compiled
def _follow(
    wheels: RowConstants,
    loops: _Loops,
    angles: Vector,
    held: Vector,
    steps: Vector,
    dt: float,
    references: Vector,
    at_ends: Vector,
) -> None:
    """Roll along displacements (k, 3) of dt [s] each; write the references in each, and at their ends.

    Changed are the wheel angles (n,) [rad] and `held` (4, 3 + n): g and the integral of d - g, for loops without feed
    the filtered d' and d; droop and its rate. Written
    are `references` (k, 3 + n), the mean r in each step, and `at_ends` (k + 1, 3 + n), r where the steps meet.
    """
    n = len(angles)
    twist, middle, ripple, row, forces = np.zeros(3), np.zeros(n), np.zeros(3 + n), np.zeros(3), np.zeros(3)
    torques, acceleration, droop = np.zeros(n), np.zeros(3), np.zeros((3, 2, 3))
    droops = loops.damping[0] > 0.0
    if droops:
        for axis in range(3):
            write_inverse_droop(loops.damping[axis], loops.stiffness[axis], loops.fed, dt, droop[axis])
    for k in range(len(steps)):
        for axis in range(3):
            twist[axis] = steps[k, axis] / dt
        # Angles half a step on, by the rows of its begin.
        for i in range(n):
            write_row(wheels, i, angles[i], row)
            turned = row[0] * steps[k, 0] + row[1] * steps[k, 1] + row[2] * steps[k, 2]
            middle[i] = angles[i] + 0.5 * turned
        _ripple(wheels, loops, middle, twist, ripple)
        for i in range(n):
            write_row(wheels, i, middle[i], row)
            angles[i] += row[0] * steps[k, 0] + row[1] * steps[k, 1] + row[2] * steps[k, 2]
        if droops:
            if k > 0:
                for axis in range(3):
                    acceleration[axis] = (steps[k, axis] - steps[k - 1, axis]) / (dt * dt)
            _unbalanced(wheels, loops, middle, twist, acceleration, torques, forces)
        for part in range(3 + n):
            kind = min(part, 3)
            share, b, c = loops.shares[kind], loops.damping[kind], loops.stiffness[kind]
            d = references[k, part] = ripple[part]
            if droops and loops.fed and share < 1.0:
                # Implicit in g and its integral over the step.
                g = held[0, part] + dt * c * held[1, part] + (b * dt + c * dt * dt) * d
                g /= 1.0 + b * dt + c * dt * dt
                held[1, part] += dt * (d - g)
                held[0, part] = g
                references[k, part] = share * d + (1.0 - share) * g
            elif droops and not loops.fed:
                # d s^2 / (b s + c) = (d' - c q) / b with b q' + c q = d', implicit in q.
                change = (d - held[1, part]) / dt
                held[0, part] = (b * held[0, part] + dt * change) / (b + c * dt)
                held[1, part] = d
                references[k, part] = d + share * (change - c * held[0, part]) / b
            if part < 3 and droops:
                against = 0.0
                for axis in range(3):
                    against += loops.inverse_inertia[part, axis] * forces[axis]
                step, old, rate = droop[part], held[2, part], held[3, part]
                held[2, part] = step[0, 0] * old + step[0, 1] * rate + step[0, 2] * against
                held[3, part] = step[1, 0] * old + step[1, 1] * rate + step[1, 2] * against
                references[k, part] -= (held[2, part] - old) / dt
            at_ends[k + 1, part] = references[k, part]
            if k == 0:
                at_ends[0, part] = references[k, part]
            else:
                at_ends[k, part] = 0.5 * (references[k - 1, part] + references[k, part])


class RollerPreview:
    """Turns limited twists into wheel speeds; without a reading of the wheels, into those of the mean rows.

    Args:
        wheels: with phases that are known.
        base: how the base follows what it is sent.
        hold: how long a command is held [s].
    """

    def __init__(self, wheels: RollingWheels, base: DrivenBase, hold: float) -> None:
        self.wheels = wheels
        self.base = base
        self.hold = hold
        mecanum, dynamics = wheels.base, base.dynamics
        phis = wheels.pitch * np.linspace(-0.5, 0.5, 101)
        of_wheels = dynamics.wheel_inertia * np.sum(mecanum.inverse_matrix**2, axis=0)
        numbers, shares = base.constants, of_wheels / np.diag(dynamics.effective_inertia)
        # What is beside the axes has the inertia of the wheels alone.
        alone = 1.0 / shares[0] if dynamics.wheel_inertia > 0.0 else 0.0
        self._loops = _Loops(
            np.append(shares, 1.0 if alone else 0.0),
            np.append(numbers.damping, numbers.damping[0] * (alone or 1.0)),
            np.append(numbers.stiffness, numbers.stiffness[0] * (alone or 1.0)),
            base.feed == 1.0,
            base.lag,
            np.ascontiguousarray(mecanum.forward_matrix),
            np.ascontiguousarray(mecanum.inverse_matrix),
            dynamics.wheel_coulomb,
            dynamics.roller_coulomb * numbers.roller_gains,
            numbers.viscous,
            wheels.depth,
            float(np.mean([_lever(float(mecanum.radii.mean()), wheels.depth, phi) for phi in phis])),
            np.diag(dynamics.effective_inertia) - of_wheels,
            np.ascontiguousarray(numbers.inverse_inertia),
        )
        # Compiled now: a node that compiles at its first message would not answer for seconds.
        self._forget()
        for k in range(2):
            self.observe(k * hold, np.zeros(len(mecanum.radii)))
            self.wheel_speeds(k * hold, np.zeros(3))
        self._forget()

    def _forget(self) -> None:
        """Restart at rest: the driver fell silent or a clock jumped."""
        self._predictor = BasePredictor(self.base, 1.0)
        self._reading: tuple[float, Vector] | None = None
        self._held = np.zeros((4, 3 + len(self.wheels.base.radii)))

    def observe(self, stamp: float, wheel_angles: ArrayLike) -> None:
        """Take a reading of the wheels, (n,) [rad] in our signs at its stamp [s]; one that is not newer is dropped."""
        angles = np.array(wheel_angles, dtype=float)
        if self._reading is not None:
            before, old = self._reading
            if stamp <= before:
                return
            moved = self.wheels.roll(old, angles).displacement
            references, at_ends = np.empty((1, len(angles) + 3)), np.empty((2, len(angles) + 3))
            _follow(
                self.wheels.constants,
                self._loops,
                old.copy(),
                self._held,
                moved[None, :],
                stamp - before,
                references,
                at_ends,
            )
        self._predictor.observe(stamp, np.zeros(3))
        self._reading = (stamp, angles)

    def wheel_speeds(self, send_time: float, twist: ArrayLike) -> Vector:
        """Wheel speeds (n,) [rad/s] to be sent at `send_time` [s] for a twist (3,), which counts as sent from now on.

        The time is on the clock of the readings, the twist within the limits.
        """
        command = np.asarray(twist, dtype=float)
        mean: Vector = self._loops.mean @ command
        dead = self.base.dead_times
        last = send_time + float(np.max(dead)) + self.hold
        if self._reading is None or not 0.0 < last - self._reading[0] < _LONGEST_AHEAD:
            self._forget()
            return mean
        self._predictor.sent(send_time, command)
        begin, angles = self._reading
        count = max(2, int(np.ceil((last - begin) / _STEP)))
        moments = np.linspace(begin, last, count + 1)
        poses = self._predictor.poses(moments, np.zeros(0), np.zeros((0, 3)))
        dt = float(moments[1] - moments[0])
        steps = np.ascontiguousarray(planar.steps_of_path(poses))
        references, at_ends = np.empty((count, 3 + len(angles))), np.empty((count + 1, 3 + len(angles)))
        _follow(self.wheels.constants, self._loops, angles.copy(), self._held.copy(), steps, dt, references, at_ends)
        sums = np.vstack([np.zeros(references.shape[1]), np.cumsum(references, axis=0) * dt])
        speeds = mean
        for axis in range(3):
            begins = send_time + float(dead[axis])
            speeds = speeds + self._loops.mean[:, axis] * self._held_mean(moments, sums, at_ends, begins)[axis]
        beside = self._held_mean(moments, sums, at_ends, send_time + float(dead[0]))[3:]
        return speeds + beside

    def _held_mean(self, moments: Vector, sums: Vector, at_ends: Vector, begin: float) -> Vector:
        """Mean (3 + n,) of r + lag r' over the hold from `begin` [s] on."""
        dt, last = moments[1] - moments[0], len(moments) - 1
        change = []
        for table in (sums, at_ends):
            ends = []
            for moment in (begin, begin + self.hold):
                place = min(max((moment - moments[0]) / dt, 0.0), float(last))
                k = min(int(place), last - 1)
                ends.append(table[k] + (place - k) * (table[k + 1] - table[k]))
            change.append(ends[1] - ends[0])
        mean: Vector = (change[0] + self.base.lag * change[1]) / self.hold
        return mean
