"""Wheel loads: base, arm and payload as one floating tree on the floor.

The Newton-Euler recursion gives the wrench of the floor at the root: weight with the arm in any pose, and the inertial
forces of base, wheels and arm. The normal forces balance three of its components,

    sum N = F_z,   sum x N = -M_y,   sum y N = M_x     about the point on the floor below the middle of the wheels,

where no force along the floor has a moment. These determine the sums over an axle or a side. The division within a pair
of wheels is statically indeterminate for four wheels; it follows from springs of equal stiffness under a rigid base
(`dynamics/normal_forces`). The floor is assumed to be level. A force below 0 means that the floor would have to pull:
that wheel has lifted.
Source: systems 26, 47, 48, 54; D-004-4.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike

from youbot_dynamics.arrays import LARGEST, Vector, array, number, read_only
from youbot_dynamics.dynamics.normal_forces import support_matrix
from youbot_dynamics.dynamics.rigid_body import point_inertia
from youbot_dynamics.dynamics.tree import Tree, read_urdf, without_fixed_joints
from youbot_dynamics.errors import ModelError
from youbot_dynamics.estimation.arm_health import ERROR, WARNING, Finding
from youbot_dynamics.estimation.payload import PayloadBelief, SpeedRate
from youbot_dynamics.robot import Robot
from youbot_dynamics.robot_base import WHEELS

SIDES = ("front", "rear", "left", "right")
_WHEEL = "wheel_joint_"  # with which the names of the wheels in a URDF begin
_PAIRS = np.array([[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0], [1.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 1.0]])


@dataclass(frozen=True, eq=False)
class Carried:
    """A body in the gripper that is small compared with its distance from the shoulder.

    Raises:
        ModelError: a negative mass.
    """

    mass: float = 0.0  # [kg]
    centre: Vector = field(default_factory=lambda: np.zeros(3))  # (3,) in the frame of the last link [m]

    def __post_init__(self) -> None:
        """Check both values."""
        number("mass of the payload", self.mass, "kg", low=0.0)
        object.__setattr__(self, "centre", read_only(array("centre", self.centre, (3,)).copy()))


@dataclass(frozen=True, eq=False)
class Support:
    """Wheel loads at one instant; wheels FL, FR, RL, RR."""

    mass: float  # of robot and payload [kg]
    centre_of_mass: Vector  # (3,) of both, in base_footprint [m]
    load: Vector  # (3,) weight and its first moments sum x N, sum y N, with inertial forces [N, N m, N m]
    normal_forces: Vector  # (4,) [N]; below 0 the floor would have to pull
    side_loads: Vector  # (4,) of front, rear, left and right pair of wheels [N]: the robot tips over if one is below 0

    @property
    def margin(self) -> float:
        """Smallest normal force of a wheel [N]: the margin until the first wheel lifts."""
        return float(self.normal_forces.min())


class SupportModel:
    """The whole robot as one tree on its four wheels.

    Links are those of the arm's URDF, which must have the base and its wheels, too. The body of the base gets the rest
    of `robot.base.mass` and, with the arm folded, of `robot.base.centre_of_mass`.

    Args:
        robot: robot with its masses and wheels.

    Raises:
        ModelError: a URDF without the base, or a robot lighter than its arm and wheels.
    """

    def __init__(self, robot: Robot) -> None:
        wheels = robot.base.geometry.wheels()
        self._wheels = wheels
        self._speeds_of_twist = wheels.base.inverse_matrix
        self._shares = support_matrix(wheels.base.positions, np.ones(4))
        self._empty = _whole_tree(robot)
        self._tree = self._empty
        self._tip = robot.arm.tip_link
        slots = [self._empty.slots(name) for name in robot.arm.tree().joint_names]
        self._q = np.array([q.start for q, _ in slots])
        self._v = np.array([v.start for _, v in slots])
        # The URDF's wheels in the order FL, FR, RL, RR, independent of the driver's names.
        names = [name for name in self._empty.joint_names if name.startswith(_WHEEL)]
        self._wheel_v = np.array([self._empty.slots(name)[1].start for name in names])

    def carry(self, payload: Carried) -> None:
        """Set the payload; a mass of 0 removes it."""
        tree, layout, mass = self._empty, self._empty.layout, payload.mass
        self._tree = tree
        if mass > 0.0:
            tip = tree.body(self._tip)
            moment = layout.first_moments[tip] + mass * payload.centre
            inertia = layout.inertias[tip] + point_inertia(mass, payload.centre)
            self._tree = _with_body(tree, tip, float(layout.masses[tip]) + mass, moment, inertia)

    def support(
        self,
        position: ArrayLike,
        speed: ArrayLike | None = None,
        acceleration: ArrayLike | None = None,
        twist: ArrayLike | None = None,
        twist_rate: ArrayLike | None = None,
        wheel_angles: ArrayLike | None = None,
    ) -> Support:
        """Wheel loads; arguments that are not given are at rest.

        Args:
            position: (n,) of the arm [rad].
            speed: (n,) [rad/s].
            acceleration: (n,) [rad/s2].
            twist: (3,) of the base [m/s, m/s, rad/s].
            twist_rate: (3,) its derivative in the turning frame of the base [m/s2, m/s2, rad/s2].
            wheel_angles: (4,) [rad]: with known roller phases they determine the contact points.

        Raises:
            InputError: a wrong shape, or a number that is not finite.
        """
        tree = self._tree
        q, v, a = tree.neutral(), np.zeros(tree.nv), np.zeros(tree.nv)
        q[self._q] = array("position", position, self._q.shape)
        for motion, arm, base in ((v, speed, twist), (a, acceleration, twist_rate)):
            if arm is not None:
                motion[self._v] = array("motion of the arm", arm, self._v.shape)
            if base is not None:
                moved = array("motion of the base", base, (3,))
                motion[[0, 1, 5]] = moved
                motion[self._wheel_v] = self._speeds_of_twist @ moved
        wrench = tree.inverse_dynamics(q, v, a)[:6]
        load = np.array([wrench[2], -wrench[4], wrench[3]])
        forces = self._shares_at(wheel_angles) @ load
        bodies = tree.bodies(q)
        return Support(
            bodies.mass,
            read_only(bodies.centre_of_mass),
            read_only(load),
            read_only(forces),
            read_only(_PAIRS @ forces),
        )

    def _shares_at(self, wheel_angles: ArrayLike | None) -> Vector:
        """Matrix (4, 3) from a load to normal forces, for the contact points of the wheels.

        Rollers at known angles phi touch the floor off the wheel's middle, at y = y_w + b tan(d) tan(phi).
        Source: system 31.
        """
        wheels = self._wheels
        if wheel_angles is None or wheels.phases is None:
            return self._shares
        points = wheels.base.positions.copy()
        points[:, 1] += wheels.constants.depths * np.tan(wheels.roller_angles(wheel_angles))
        return support_matrix(points, np.ones(4))


def _whole_tree(robot: Robot) -> Tree:
    """Floating robot in the frame base_footprint, fingers closed, with the mass and centre of its parameters."""
    file, moving = robot.arm.urdf_file(), robot.arm.tree().joint_names
    joints = [link.joint for link in read_urdf(file, tip=robot.arm.tip_link)[1:]]
    locked = [name for name in joints if name not in moving and not name.startswith(_WHEEL)]
    tree = without_fixed_joints(Tree.from_urdf(file, floating_base=True, locked=locked))
    layout, whole = tree.layout, tree.bodies(tree.neutral())
    mass = float(layout.masses[0]) + robot.base.mass - whole.mass
    if mass <= 0.0:
        least = whole.mass - float(layout.masses[0])
        raise ModelError("robot.base.mass", got=f"{robot.base.mass:g} kg", expected=f"more than its parts, {least:g}")
    own = layout.first_moments[0]
    shift = robot.base.mass * np.array(robot.base.centre_of_mass) - whole.mass * whole.centre_of_mass[:2]
    first = np.r_[own[:2] + shift, own[2] * mass / layout.masses[0]]
    central = layout.inertias[0] - point_inertia(float(layout.masses[0]), own / layout.masses[0])
    inertia = central * (mass / layout.masses[0]) + point_inertia(mass, first / mass)
    return _with_body(tree, 0, mass, first, inertia)


def _with_body(tree: Tree, body: int, mass: float, first_moment: Vector, inertia: Vector) -> Tree:
    masses, first_moments, inertias = (
        values.copy() for values in (tree.layout.masses, tree.layout.first_moments, tree.layout.inertias)
    )
    masses[body], first_moments[body], inertias[body] = mass, first_moment, inertia
    changed = tree.layout._replace(masses=masses, first_moments=first_moments, inertias=inertias)
    return replace(tree, layout=changed)


_SILENT = 0.5  # [s] after the last message of the wheels the base counts as standing
_SAME_MASS = 1e-3  # [kg] change of a payload below which the tree is not rebuilt
_SAME_PLACE = 1e-3  # [m]


def supports(robot: Robot) -> bool:
    """Whether the URDF of the arm has the four wheels of a base, whose loads can be estimated."""
    links = read_urdf(robot.arm.urdf_file(), tip=robot.arm.tip_link)
    return sum(link.joint.startswith(_WHEEL) for link in links) == len(WHEELS)


class SupportEstimator:
    """Wheel loads from the speeds of base and arm, by numerical accelerations.

    A payload is included if it is known; otherwise the gripper counts as empty. The wheels are assumed to roll: while
    they slip, the base accelerates less than they indicate.

    Args:
        robot: robot with its masses and wheels.
        lag: time constant of the accelerations [s].

    Raises:
        ModelError: as for `SupportModel`.
    """

    def __init__(self, robot: Robot, lag: float = 0.1) -> None:
        self._model = SupportModel(robot)
        self._base = robot.base.geometry.mecanum()
        self._carried = Carried()
        self._angles: Vector | None = None
        self._twist, self._twist_rate, self._heard = np.zeros(3), np.zeros(3), -math.inf
        self._acceleration: Vector = np.zeros(len(robot.arm.joints))
        self._of_base, self._of_arm = SpeedRate(lag), SpeedRate(lag)

    def take_wheels(self, stamp: float, angles: ArrayLike, speeds: ArrayLike) -> None:
        """Process angles (4,) [rad] and speeds (4,) [rad/s] of the wheels in our signs at a stamp [s].

        A message with a value that is not finite, or absurd, is ignored.
        """
        wheel_speeds, turned = np.asarray(speeds, dtype=np.float64), np.asarray(angles, dtype=np.float64)
        if not np.abs([wheel_speeds, turned]).max() <= LARGEST:  # NaN is not
            return
        self._angles, self._twist, self._heard = turned, self._base.twist(wheel_speeds), stamp
        self._twist_rate = self._of_base.take(stamp, self._twist)

    def take_arm(self, stamp: float, speed: ArrayLike) -> None:
        """Process speeds (n,) [rad/s] of the arm at a stamp [s]."""
        self._acceleration = self._of_arm.take(stamp, speed)

    def carry(self, payload: PayloadBelief) -> None:
        """Set the payload to its estimate."""
        mass = max(0.0, payload.mass) if payload.identifiable else 0.0
        moved = float(np.abs(payload.centre - self._carried.centre).max()) if mass > 0.0 else 0.0
        if abs(mass - self._carried.mass) > _SAME_MASS or moved > _SAME_PLACE:
            self._carried = Carried(mass, payload.centre)
            self._model.carry(self._carried)

    def support(self, stamp: float, position: ArrayLike, speed: ArrayLike) -> Support:
        """Wheel loads at a stamp [s], with the arm at positions (n,) [rad] and speeds (n,) [rad/s]."""
        drives = abs(stamp - self._heard) < _SILENT
        twist, rate = (self._twist, self._twist_rate) if drives else (np.zeros(3), np.zeros(3))
        return self._model.support(position, speed, self._acceleration, twist, rate, self._angles)


def support_findings(support: Support, wheels: Sequence[str], low_share: float) -> tuple[Finding, ...]:
    """Findings on wheels with little load: less than `low_share` of the mean force."""
    remedy = "fold the arm or move it over the base, put the payload down, or accelerate less"
    side = int(np.argmin(support.side_loads))
    if support.side_loads[side] < 0.0:
        cause = f"the robot tips over: its {SIDES[side]} wheels carry no load"
        return (Finding("tip-over", ERROR, cause, remedy),)
    weakest, mean = int(np.argmin(support.normal_forces)), float(support.load[0]) / len(wheels)
    if support.margin < 0.0:
        return (Finding("lifted wheel", ERROR, f"{wheels[weakest]} lifts off the floor", remedy),)
    if support.margin < low_share * mean:
        cause = f"{wheels[weakest]} carries {support.margin:.0f} N, less than {low_share:.0%} of the mean {mean:.0f} N"
        return (Finding("light wheel", WARNING, cause, remedy),)
    return ()
