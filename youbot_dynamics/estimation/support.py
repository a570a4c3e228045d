"""What the wheels carry: base, arm and payload as one tree on the floor (systems 26, 47, 48, 54; D-004-4).

The tree floats. Newton and Euler, handed down to its root, leave the wrench by which the floor holds it: weight, arm in
any pose, and what the accelerations of base, wheels and arm take. Three of its numbers have to come from the normal
forces,

    sum N = F_z,   sum x N = -M_y,   sum y N = M_x     about the point on the floor below the middle of the wheels,

where no force along the floor has a moment. Sums over an axle or a side follow from these alone. How the two wheels of
a pair share theirs does not, for four wheels on a floor are one too many: springs of equal stiffness under a rigid base
share it (`dynamics/normal_forces`). The floor is taken for level. Where a force comes out below 0, the floor would have
to pull: that wheel has lifted.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from youbot_dynamics.arrays import Vector, array, number, read_only
from youbot_dynamics.dynamics.normal_forces import support_matrix
from youbot_dynamics.dynamics.rigid_body import point_inertia
from youbot_dynamics.dynamics.tree import Tree, without_fixed_joints
from youbot_dynamics.errors import ModelError
from youbot_dynamics.estimation.arm_health import ERROR, WARNING, Finding
from youbot_dynamics.estimation.payload import PayloadBelief, SpeedRate
from youbot_dynamics.resources import urdf_path
from youbot_dynamics.robot import Robot

SIDES = ("front", "rear", "left", "right")
_FINGERS = ("gripper_finger_joint_l", "gripper_finger_joint_r")
_PAIRS = np.array([[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0], [1.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 1.0]])


@dataclass(frozen=True, eq=False)
class Carried:
    """A body in the gripper, small beside its distance from the shoulder.

    Args:
        mass: [kg].
        centre: (3,) in the frame of the last link [m].

    Raises:
        ModelError: a negative mass.
    """

    mass: float = 0.0
    centre: Vector = field(default_factory=lambda: np.zeros(3))

    def __post_init__(self) -> None:
        """Check both."""
        number("mass of the payload", self.mass, "kg", low=0.0)
        object.__setattr__(self, "centre", read_only(array("centre", self.centre, (3,)).copy()))


@dataclass(frozen=True, eq=False)
class Support:
    """What carries the robot at one moment; wheels FL, FR, RL, RR.

    Args:
        mass: of robot and payload [kg].
        centre_of_mass: (3,) of both, in base_footprint [m].
        load: (3,) weight and its first moments sum x N, sum y N, what accelerations take included [N, N m, N m].
        normal_forces: (4,) [N]; below 0 the floor would have to pull.
        side_loads: (4,) of front, rear, left and right pair of wheels [N]: the robot falls over where one is below 0.
    """

    mass: float
    centre_of_mass: Vector
    load: Vector
    normal_forces: Vector
    side_loads: Vector

    @property
    def margin(self) -> float:
        """Smallest normal force of a wheel [N]: what is left until the first wheel lifts."""
        return float(self.normal_forces.min())


class SupportModel:
    """The whole robot as one tree on its four wheels.

    Links are those of urdf/youbot.urdf; the body of the base has what `robot.base.mass` and, with the arm folded,
    `robot.base.centre_of_mass` leave it.

    Args:
        robot: whose masses and wheels these are.

    Raises:
        ModelError: a robot lighter than its arm and wheels.
    """

    def __init__(self, robot: Robot) -> None:
        wheels = robot.base.geometry.wheels()
        self._wheels = wheels
        self._speeds_of_twist = wheels.base.inverse_matrix
        self._shares = support_matrix(wheels.base.positions, np.ones(4))
        self._empty = _whole_tree(robot)
        self._tree = self._empty
        slots = [self._empty.slots(name) for name in robot.driver.arm_joints]
        self._q = np.array([q.start for q, _ in slots])
        self._v = np.array([v.start for _, v in slots])
        # The URDF's wheels, in the order FL, FR, RL, RR whatever the driver calls them.
        names = [name for name in self._empty.joint_names if name.startswith("wheel_joint_")]
        self._wheel_v = np.array([self._empty.slots(name)[1].start for name in names])

    def carry(self, payload: Carried) -> None:
        """Take up a payload, or put it down: that of a mass of 0."""
        self._tree = self._empty if payload.mass == 0.0 else _with_payload(self._empty, payload)

    def support(
        self,
        position: ArrayLike,
        speed: ArrayLike | None = None,
        acceleration: ArrayLike | None = None,
        twist: ArrayLike | None = None,
        twist_rate: ArrayLike | None = None,
        wheel_angles: ArrayLike | None = None,
    ) -> Support:
        """What carries the robot; whatever is not given is at rest.

        Args:
            position: (5,) of the arm [rad].
            speed: (5,) [rad/s].
            acceleration: (5,) [rad/s2].
            twist: (3,) of the base [m/s, m/s, rad/s].
            twist_rate: (3,) its derivative in the turning frame of the base [m/s2, m/s2, rad/s2].
            wheel_angles: (4,) [rad]: with roller phases that are known, they tell where the wheels touch the floor.

        Raises:
            InputError: a wrong shape, or a number that is not finite.
        """
        tree = self._tree
        q, v, a = tree.neutral(), np.zeros(tree.nv), np.zeros(tree.nv)
        q[self._q] = array("position", position, (5,))
        for motion, arm, base in ((v, speed, twist), (a, acceleration, twist_rate)):
            if arm is not None:
                motion[self._v] = array("motion of the arm", arm, (5,))
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
        """Matrix (4, 3) from a load to normal forces, by where the wheels touch the floor.

        Rollers at known angles phi touch it out along their axes, at y = y_w + b tan(d) tan(phi) (system 31).
        """
        wheels = self._wheels
        if wheel_angles is None or wheels.phases is None:
            return self._shares
        points = wheels.base.positions.copy()
        points[:, 1] += wheels.constants.depths * np.tan(wheels.roller_angles(wheel_angles))
        return support_matrix(points, np.ones(4))


def _whole_tree(robot: Robot) -> Tree:
    """Robot that floats, in the frame base_footprint, its fingers closed, of the mass and centre of its facts."""
    file = urdf_path("youbot.urdf")
    tree = without_fixed_joints(Tree.from_urdf(file, floating_base=True, locked=_FINGERS))
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


def _with_payload(tree: Tree, payload: Carried) -> Tree:
    """Tree whose last link carries a payload too."""
    last, layout, first = tree.body("arm_link_5"), tree.layout, payload.mass * payload.centre
    return _with_body(
        tree,
        last,
        float(layout.masses[last]) + payload.mass,
        layout.first_moments[last] + first,
        layout.inertias[last] + point_inertia(payload.mass, payload.centre),
    )


def _with_body(tree: Tree, body: int, mass: float, first_moment: Vector, inertia: Vector) -> Tree:
    masses, first_moments, inertias = (
        values.copy() for values in (tree.layout.masses, tree.layout.first_moments, tree.layout.inertias)
    )
    masses[body], first_moments[body], inertias[body] = mass, first_moment, inertia
    changed = tree.layout._replace(masses=masses, first_moments=first_moments, inertias=inertias)
    return dataclasses.replace(tree, layout=changed)


_SILENT = 0.5  # [s] after the last message of the wheels the base counts as standing
_SAME_MASS = 1e-3  # [kg] below which another payload is not worth another tree
_SAME_PLACE = 1e-3  # [m]


class SupportEstimator:
    """Accelerations of base and arm out of their speeds, and the support that follows.

    A payload counts where it is known; else the gripper counts as empty. The wheels are taken to roll: where they
    slip, the base accelerates less than they say.

    Args:
        robot: whose masses and wheels these are.
        lag: time constant of the accelerations [s].

    Raises:
        ModelError: as `SupportModel`.
    """

    def __init__(self, robot: Robot, lag: float = 0.1) -> None:
        self._model = SupportModel(robot)
        self._base = robot.base.geometry.mecanum()
        self._carried = Carried()
        self._angles: Vector | None = None
        self._twist, self._twist_rate, self._heard = np.zeros(3), np.zeros(3), -math.inf
        self._acceleration: Vector = np.zeros(5)
        self._of_base, self._of_arm = SpeedRate(lag), SpeedRate(lag)

    def take_wheels(self, stamp: float, angles: ArrayLike, speeds: ArrayLike) -> None:
        """Take in angles (4,) [rad] and speeds (4,) [rad/s] of the wheels in our signs at a stamp [s].

        With one that is no number the message says nothing.
        """
        told, turned = np.asarray(speeds, dtype=np.float64), np.asarray(angles, dtype=np.float64)
        if not (np.isfinite(told).all() and np.isfinite(turned).all()):
            return
        self._angles, self._twist, self._heard = turned, self._base.twist(told), stamp
        self._twist_rate = self._of_base.take(stamp, self._twist)

    def take_arm(self, stamp: float, speed: ArrayLike) -> None:
        """Take in speeds (5,) [rad/s] of the arm at a stamp [s]."""
        self._acceleration = self._of_arm.take(stamp, speed)

    def carry(self, payload: PayloadBelief) -> None:
        """Take up what is believed of the payload."""
        mass = max(0.0, payload.mass) if payload.identifiable else 0.0
        moved = float(np.abs(payload.centre - self._carried.centre).max()) if mass > 0.0 else 0.0
        if abs(mass - self._carried.mass) > _SAME_MASS or moved > _SAME_PLACE:
            self._carried = Carried(mass, payload.centre)
            self._model.carry(self._carried)

    def support(self, stamp: float, position: ArrayLike, speed: ArrayLike) -> Support:
        """What carries the robot at a stamp [s], with the arm at positions (5,) [rad] and speeds (5,) [rad/s]."""
        drives = abs(stamp - self._heard) < _SILENT
        twist, rate = (self._twist, self._twist_rate) if drives else (np.zeros(3), np.zeros(3))
        return self._model.support(position, speed, self._acceleration, twist, rate, self._angles)


def support_findings(support: Support, wheels: Sequence[str], low_share: float) -> tuple[Finding, ...]:
    """Findings on wheels that hardly press on the floor any more: with less than `low_share` of the mean force."""
    remedy = "fold the arm or move it over the base, put the payload down, or accelerate less"
    side = int(np.argmin(support.side_loads))
    if support.side_loads[side] < 0.0:
        cause = f"the robot falls over: its {SIDES[side]} wheels carry nothing"
        return (Finding("tip-over", ERROR, cause, remedy),)
    weakest, mean = int(np.argmin(support.normal_forces)), float(support.load[0]) / len(wheels)
    if support.margin < 0.0:
        return (Finding("lifted wheel", ERROR, f"{wheels[weakest]} lifts off the floor", remedy),)
    if support.margin < low_share * mean:
        cause = f"{wheels[weakest]} carries {support.margin:.0f} N, less than {low_share:.0%} of the mean {mean:.0f} N"
        return (Finding("light wheel", WARNING, cause, remedy),)
    return ()
