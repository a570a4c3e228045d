"""Dynamics of a wheeled base that rolls without slip, with Coulomb and viscous friction. Source: system 35."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import tanh

import numpy as np
from numpy.typing import ArrayLike

from youbot_dynamics.arrays import MadeOfArguments, Vector, array, number, read_only
from youbot_dynamics.compiled import compiled
from youbot_dynamics.kinematics.mecanum import MecanumBase

# Coulomb friction rises from 0 to its full value over about these speeds. Explicit steps come to rest without a change
# of sign if the slope over the effective inertia is below 1 / step, and oscillate forever above 2 / step. Turning has
# the largest slope: on the youBot at 1 ms the limits are F1 = 0.72 N m and 1.44 N m; its 0.12 N m gives 173 1/s.
WHEEL_SPEED_SCALE = 0.05  # [rad/s]
ROLLER_SPEED_SCALE = 0.003  # [m/s]


def effective_inertia(
    base: MecanumBase,
    mass: float,
    yaw_inertia: float,
    wheel_inertia: float,
    roller_mass: float = 0.0,
    centre_of_mass: tuple[float, float] = (0.0, 0.0),
) -> Vector:
    """Effective mass matrix (3, 3) seen by the motors: M + J' J_w J plus the rollers on the floor.

    For four wheels at 45 degrees: m + 4 J_w/R^2 forward, m + 4 J_w/R^2 + 8 J_r/r^2 sideways. Document 003 uses the bare
    mass of the robot as m_a; the reflected inertia of the youBot's rotors alone adds 16 kg.

    Args:
        base: kinematics, twist to wheel speeds J (n, 3).
        mass: total mass m [kg].
        yaw_inertia: total, about the vertical through the centre of mass [kg m2].
        wheel_inertia: J_w of a wheel about its axle with the reflected rotor [kg m2].
        roller_mass: J_r / r^2 of the roller on the floor [kg].
        centre_of_mass: x and y from the centre of the base [m]; Steiner's theorem adds m (x^2 + y^2) to the yaw
            inertia, and turning couples with the translation by m (-y, x).

    Source: system 35; D-003-10.
    """
    inverse = base.inverse_matrix
    x, y = centre_of_mass
    body = mass * np.array([[1.0, 0.0, -y], [0.0, 1.0, x], [-y, x, x**2 + y**2]])
    body[2, 2] += yaw_inertia
    matrix: Vector = body + wheel_inertia * inverse.T @ inverse
    if roller_mass > 0.0:
        (x, y), (c, s) = base.positions.T, base.drives.T
        spun = np.column_stack([-s, c, x * c + y * s]) * base.roller_gains[:, None]
        matrix = matrix + roller_mass * spun.T @ spun
    return matrix


@compiled
def friction_forces(
    twist: Vector,
    wheels_of_twist: Vector,
    positions: Vector,
    drives: Vector,
    roller_gains: Vector,
    wheel_coulomb: float,
    roller_coulomb: float,
    viscous: Vector,
    forces: Vector,
) -> None:
    """Write the generalised friction forces (3,) at a twist; they oppose it.

    F = J' F1 sign(w) + sum over the wheels of F2/r |1/cos d| sign(V_T + Omega h_i) sideways + xi (V at the wheel)/n.
    The rollers turn at (V_T + Omega h_i)/(r cos d); of a wheel that drives at an angle a, at the speed across its drive
    over r cos(d - a). sign is smoothed to tanh(speed / scale). Document 003 omits the sum
    in its T row; here it has the signs of the pattern of J.

    Args:
        twist: (3,) of the body [m/s, m/s, rad/s].
        wheels_of_twist: (n, 3) matrix J.
        positions: (n, 2) wheel centres [m].
        drives: (n, 2) unit vectors along which the wheels drive.
        roller_gains: (n,) |1/cos d|, sqrt(2) at 45 degrees.
        wheel_coulomb: F1 [N m].
        roller_coulomb: F2 / r [N].
        viscous: (2,) xi_L, xi_T of the whole base [N s/m].
        forces: (3,) output [N, N, N m].

    Source: document 003 eq. (1); D-003-9.
    """
    vx, vy, yaw_rate = twist[0], twist[1], twist[2]
    forces[:] = 0.0
    share = 1.0 / len(positions)
    for i in range(len(positions)):
        speed = wheels_of_twist[i, 0] * vx + wheels_of_twist[i, 1] * vy + wheels_of_twist[i, 2] * yaw_rate
        torque = wheel_coulomb * tanh(speed / WHEEL_SPEED_SCALE)
        sideways = vy + yaw_rate * positions[i, 0]
        along = vx - yaw_rate * positions[i, 1]
        across = drives[i, 0] * sideways - drives[i, 1] * along
        rub = roller_gains[i] * roller_coulomb * tanh(across / ROLLER_SPEED_SCALE)
        lateral = drives[i, 0] * rub + share * viscous[1] * sideways
        longitudinal = share * viscous[0] * along - drives[i, 1] * rub
        forces[0] += wheels_of_twist[i, 0] * torque + longitudinal
        forces[1] += wheels_of_twist[i, 1] * torque + lateral
        forces[2] += wheels_of_twist[i, 2] * torque + positions[i, 0] * lateral - positions[i, 1] * longitudinal


@compiled
def accelerate(
    twist: Vector,
    inverse_inertia: Vector,
    mass: float,
    centre: Vector,
    drive: Vector,
    friction: Vector,
    acceleration: Vector,
) -> None:
    """Write the derivative of the body twist (3,): M V' = drive - friction + m Omega b.

    b = (V_T + Omega x, -V_L + Omega y, -(x V_L + y V_T)) for a centre of mass at x, y. This centripetal term comes only
    from the body: in body quasi-velocities the wheels contribute J' J_w J V'. Document 003 omits the term; its rows
    hold without rotation.

    Args:
        twist: (3,) of the body [m/s, m/s, rad/s].
        inverse_inertia: (3, 3) inverse of the effective inertia.
        mass: m of the body, without reflected inertias [kg].
        centre: (2,) x and y of the centre of mass from the centre of the base [m].
        drive: (3,) generalised force J' M of the motors [N, N, N m].
        friction: (3,) from `friction_forces`.
        acceleration: (3,) output [m/s2, m/s2, rad/s2].

    Source: system 35.
    """
    vx, vy, yaw_rate = twist[0], twist[1], twist[2]
    swung = mass * yaw_rate
    force_x = drive[0] + (swung * (vy + yaw_rate * centre[0]) - friction[0])
    force_y = drive[1] + (swung * (yaw_rate * centre[1] - vx) - friction[1])
    moment = drive[2] - swung * (centre[0] * vx + centre[1] * vy) - friction[2]
    for row in range(3):
        acceleration[row] = (
            inverse_inertia[row, 0] * force_x + inverse_inertia[row, 1] * force_y + inverse_inertia[row, 2] * moment
        )


@dataclass(frozen=True, eq=False)
class MecanumDynamics(MadeOfArguments):
    """A base whose wheels roll without slip: the friction model of document 003 with the effective inertia.

    Fixed wheels hold the base across their drive: it accelerates in its `motions` only.

    `source_systems.wheeled_base.WheeledBase` with mecanum wheels adds contact forces, slip and tipping. The methods
    raise InputError for a wrong shape, NaN or infinity.

    Attributes:
        effective_inertia: (3, 3) mass matrix of the function `effective_inertia`, read-only.

    Raises:
        InputError: a centre of mass that is not two finite numbers.
        ModelError: a mass or inertia that is not positive, or negative friction, as document 003 reports in places (it
            would accelerate the base).

    Source: document 003 eq. (1), system 35.
    """

    base: MecanumBase  # kinematics of n wheels
    mass: float  # total mass m [kg]
    yaw_inertia: float  # total, about the vertical through the centre of mass [kg m2]
    wheel_inertia: float  # J_w of a wheel about its axle with the reflected rotor [kg m2]
    roller_mass: float = 0.0  # J_r / r^2 of the roller on the floor [kg]
    wheel_coulomb: float = 0.0  # F1 of each wheel [N m]
    roller_coulomb: float = 0.0  # F2 / r of each wheel [N]
    viscous_x: float = 0.0  # xi_L, forward [N s/m]
    viscous_y: float = 0.0  # xi_T, sideways [N s/m]
    # x and y from the centre of the base [m]. The youBot's is 0.035 m ahead with the arm folded and 0.065 m with the
    # arm stretched forward (urdf/youbot.urdf). The folded arm adds 0.9 % to the effective yaw inertia and couples
    # turning with sideways forces.
    centre_of_mass: tuple[float, float] = (0.0, 0.0)
    effective_inertia: Vector = field(init=False, repr=False)
    _inverse: Vector = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Check the constants and store the matrices, read-only."""
        units = {"wheel_inertia": "kg m2", "roller_mass": "kg", "wheel_coulomb": "N m", "roller_coulomb": "N"}
        units.update(viscous_x="N s/m", viscous_y="N s/m")
        set_ = object.__setattr__
        for name, unit in {"mass": "kg", "yaw_inertia": "kg m2"}.items():
            set_(self, name, number(f"{name} of the base", getattr(self, name), unit, above=0.0))
        for name, unit in units.items():
            set_(self, name, number(f"{name} of the base", getattr(self, name), unit, low=0.0))
        x, y = array("centre_of_mass", self.centre_of_mass, (2,)).tolist()
        set_(self, "centre_of_mass", (x, y))
        inertia = effective_inertia(
            self.base, self.mass, self.yaw_inertia, self.wheel_inertia, self.roller_mass, (x, y)
        )
        set_(self, "effective_inertia", read_only(inertia))
        motions = self.base.motions
        inverse = motions @ np.linalg.inv(motions.T @ inertia @ motions) @ motions.T
        set_(self, "_inverse", read_only(np.asarray(inverse, dtype=np.float64)))

    def friction(self, twist: ArrayLike) -> Vector:
        """Generalised friction forces (3,) [N, N, N m] at a twist (3,), against it; see `friction_forces`."""
        return self._friction(array("twist", twist, (3,)))

    def dissipation(self, twist: ArrayLike) -> float:
        """Friction power at a twist (3,): F1 sum|w| + F2 sum|rho'| + xi V^2 at the wheels, never negative [W]."""
        speeds = array("twist", twist, (3,))
        return float(self._friction(speeds) @ speeds)

    def acceleration(self, twist: ArrayLike, wheel_torques: ArrayLike) -> Vector:
        """Derivative (3,) of a body twist (3,) under motor torques (n,) at the wheels [N m]; see `accelerate`."""
        speeds = array("twist", twist, (3,))
        torques = array("wheel_torques", wheel_torques, (len(self.base.radii),))
        result = np.zeros(3)
        drive = self.base.inverse_matrix.T @ torques
        centre = np.array(self.centre_of_mass)
        accelerate(speeds, self._inverse, self.mass, centre, drive, self._friction(speeds), result)
        return result

    def _friction(self, twist: Vector) -> Vector:
        forces = np.zeros(3)
        friction_forces(
            twist,
            self.base.inverse_matrix,
            self.base.positions,
            self.base.drives,
            self.base.roller_gains,
            self.wheel_coulomb,
            self.roller_coulomb,
            np.array([self.viscous_x, self.viscous_y]),
            forces,
        )
        return forces
