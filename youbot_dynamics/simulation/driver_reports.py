"""What the youBot driver says in one pass of its 50 Hz loop, without ROS: the fields of its messages, quirks included.

Read in youbot_driver_ros_interface, branch foxy-devel, YouBotOODLWrapper::computeOODLSensorReadings.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from youbot_dynamics.arrays import Vector, scalar
from youbot_dynamics.errors import InputError
from youbot_dynamics.kinematics import planar
from youbot_dynamics.robot import Driver

# The base message also carries four joints of the URDF that never move.
CASTERS = ("caster_joint_fl", "caster_joint_fr", "caster_joint_bl", "caster_joint_br")
FINGERS = ("gripper_finger_joint_l", "gripper_finger_joint_r")
_WORST_JITTER = 4.0  # deviations
_LONGEST = 3600.0  # [s] to simulate in one call
ODOM_FRAME, BASE_FRAME = "odom", "base_footprint"


@dataclass(frozen=True, eq=False)
class BaseReading:
    """One base message of the driver, in the driver's signs."""

    stamp: float  # when the driver says the reading was taken [s]
    position: Vector  # (n,) wheel angles [rad], quantised
    velocity: Vector  # (n,) wheel speeds [rad/s], 10 ms late and quantised to 15 motor rpm
    odometry: Vector  # (3,) pose the driver itself computes, with the heading after each step [m, m, rad]
    twist: Vector  # (3,) twist the driver itself computes [m/s, m/s, rad/s]


@dataclass(frozen=True, eq=False)
class ArmReading:
    """One arm message of the driver: its joints, then both fingers of the gripper, closed and still."""

    stamp: float  # when the driver says the reading was taken [s]
    position: Vector  # (n + 2,) [rad], quantised to ticks of the motor's encoder; fingers [m]
    velocity: Vector  # (n + 2,) [rad/s], 10 ms late and quantised to 15 motor rpm; fingers [m/s]
    effort: Vector  # (n + 2,) Kt N i [N m] with the Kt of the sheets, the current i noisy and quantised to 1 mA


@dataclass(frozen=True, eq=False)
class JointReport:
    """A JointState of the driver; its header names no frame."""

    stamp: float  # [s]
    names: tuple[str, ...]  # of the n joints
    position: Vector  # (n,) [rad], fingers [m]
    velocity: Vector  # (n,) [rad/s], fingers [m/s]
    effort: Vector  # (m,) [N m], empty in the message of the base; 7 in that of the arm, even where it has no gripper


@dataclass(frozen=True, eq=False)
class OdometryReport:
    """The driver's own odometry, odom to base_footprint; its covariances are zero."""

    stamp: float  # [s]
    pose: Vector  # (3,) [m, m, rad]
    twist: Vector  # (3,) in the body frame [m/s, m/s, rad/s]


def base_report(reading: BaseReading, driver: Driver, effort: Vector | None) -> JointReport:
    """Message of the base: its wheels, then four casters that stand.

    Args:
        reading: of the plant.
        driver: names of the wheels.
        effort: (n,) of the wheels [N m] in the driver's signs, for a robot that reports them; the youBot does not.
    """
    still = np.zeros(len(CASTERS))
    return JointReport(
        reading.stamp,
        (*driver.wheel_joints, *CASTERS),
        np.concatenate([reading.position, still]),
        np.concatenate([reading.velocity, still]),
        np.zeros(0) if effort is None else np.concatenate([effort, still]),
    )


def checked_until(until: float, now: float) -> float:
    """Time `until` which to simulate [s], checked: each second takes a thousand steps.

    Raises:
        InputError: a time that is not finite, or more than an hour after `now` [s].
    """
    time = scalar("until", until)
    if time - now > _LONGEST:
        expected = f"at most {_LONGEST:g} s after the present time, {now:g} s"
        raise InputError("until", got=f"{time:g} s", expected=expected, remedy="advance in several calls")
    return time


def stamped(time: float, normal: float, jitter: float) -> float:
    """Stamp [s] the driver gives to a reading taken at `time` [s]: off by a normal number of deviation `jitter` [s].

    The normal distribution is cut, so that stamps stay in order at 50 Hz.
    """
    return time + min(max(normal, -_WORST_JITTER), _WORST_JITTER) * jitter


def dead_reckoned(pose: Vector, step: Vector) -> Vector:
    """Pose (3,) [m, m, rad] after one step (3,) in the body frame, as the driver adds it: with the heading after it.

    So its odometry is off by half of what each step turns (system 28).
    """
    yaw = pose[2] + step[2]
    return np.append(pose[:2] + planar.rotation(yaw) @ step[:2], yaw)


def arm_report(reading: ArmReading, driver: Driver, stamp: float, gripper: bool) -> JointReport:
    """Message of the arm: its joints, then the fingers where there is a gripper.

    Args:
        reading: of the plant.
        driver: names of the joints.
        stamp: of the base message [s], for the driver stamps all messages of a pass alike.
        gripper: whether the arm has one. Without, two efforts that belong to no joint stay in the message.
    """
    names = (*driver.arm_joints, *FINGERS) if gripper else driver.arm_joints
    count = len(names)
    return JointReport(stamp, names, reading.position[:count], reading.velocity[:count], reading.effort)
