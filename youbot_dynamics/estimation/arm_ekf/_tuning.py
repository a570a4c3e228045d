"""Assumptions of the arm's filter about the sensors and its own model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from youbot_dynamics.arrays import Vector, array, number, read_only
from youbot_dynamics.dynamics.arm import ArmModel
from youbot_dynamics.errors import ModelError
from youbot_dynamics.estimation.arm_ekf import _model as model
from youbot_dynamics.estimation.arm_ekf._model import Rules
from youbot_dynamics.parameters import fixed_setting, setting
from youbot_dynamics.robot import Robot

ESTIMATED, PROPAGATED = "estimated", "propagated"
_OF_JOINTS = ("position_quantum", "velocity_quantum", "effort_noise")


@dataclass(frozen=True, eq=False)
class ArmSensors:
    """Resolution and noise of the driver's reports for each of n joints; one number stands for all of them.

    Raises:
        ModelError: a wrong shape or a value that is not positive.
    """

    position_quantum: Vector  # (n,) step of the positions [rad]
    velocity_quantum: Vector  # (n,) step of the speeds [rad/s]
    effort_noise: Vector  # (n,) standard deviation of the efforts [N m]
    stamp_jitter: float = 3e-4  # standard deviation of the stamps [s]; at speed v all positions err by v x jitter
    velocity_lag: float = 0.010  # time constant of the reported speeds [s]

    def __post_init__(self) -> None:
        """Check all values."""
        for name in _OF_JOINTS:
            object.__setattr__(self, name, _each(name, getattr(self, name)))
        for name in ("stamp_jitter", "velocity_lag"):
            object.__setattr__(self, name, number(name, getattr(self, name), "s", low=0.0))

    @classmethod
    def of_robot(cls, robot: Robot, effort_noise: ArrayLike = 0.02, stamp_jitter: float = 3e-4) -> ArmSensors:
        """Sensors of a robot's driver, whose 50 Hz loop jitters by 0.3 to 2 ms; `effort_noise` () or (n,) is in N m."""
        positions, speeds = robot.arm_quanta()
        return cls(positions, speeds, np.asarray(effort_noise), stamp_jitter)


@dataclass(frozen=True)
class ArmEkfTuning:
    """Uncertainty of the model in the filter.

    The ranges are those of the node's parameters. `__init__` accepts any value that the equations allow, such as errors
    of 0 for an arm with known parameters; the state then has no torque errors.

    The torque error has a part of the friction and one of the links: `friction_error` and `load_error` are their
    standard deviations, relative to the Coulomb torque and to the torque that holds and moves the links.

    Bristles are "estimated" with speeds and positions, or "propagated" with the mean and taken as known, as in document
    001. Both are equally good where steps resolve the bristles. Where they do not (Coulomb / sigma0 = 1e-4 rad at 50
    Hz, parameters 20 % off), the position errors of "propagated" are 1.7 times as large. `bristle_noise` is in units of
    Coulomb / sigma0: without it stiff bristles at 50 Hz can keep the wrong sign. While a joint certainly slides, its
    bristle is known and has no noise.

    Raises:
        ModelError: a value outside its range.

    Source: Canudas de Wit et al. 1995; document 001.
    """

    bristles: str = fixed_setting(
        ESTIMATED,
        "Whether the LuGre bristle states are estimated, or only propagated.",
        choices=(ESTIMATED, PROPAGATED),
        source="chosen: follows reversals the model is late for; the model itself: Canudas de Wit et al. 1995",
    )
    friction_error: float = setting(
        0.2,
        "Relative error of the identified Coulomb torque.",
        "1",
        (0.01, 2.0),
        source="chosen: identified friction still changes with warmth and wear",
    )
    load_error: float = setting(
        0.2,
        "Relative error of the load of the identified links.",
        "1",
        (0.0, 2.0),
        source="chosen: measured over modelled gravity torques are 0.75 to 0.88, docs/robot_facts.md",
    )
    torque_memory: float = setting(
        0.5,
        "Time constant of the torque error.",
        "s",
        (0.05, 10.0),
        source="chosen: longer than a reversal, shorter than a work cycle",
    )
    bristle_noise: float = setting(
        3.0,
        "Noise of a bristle state while the sign of its speed is uncertain, in travels per square root of a second.",
        "1/sqrt(s)",
        (0.0, 100.0),
        source="chosen: least error on the twin",
    )
    gate: float = setting(
        6.0,
        "Innovation, in standard deviations, above which a position is rejected.",
        "1",
        (2.0, 100.0),
        source="chosen: six deviations are a fault, not noise",
    )
    effort_swing: float = 0.3  # error of the mean of two efforts, relative to their difference
    unseen_torque: float = 1.0  # error of a missing effort, relative to the Coulomb torque
    patience: int = 10  # refusals of a joint in a row after which the joint restarts from its readings
    longest_step: float = 0.021  # longer times between messages are divided [s]
    longest_gap: float = 1.0  # after a longer one the filter restarts [s]
    start_speed: float = 0.3  # standard deviation of the initial speeds [rad/s]

    def __post_init__(self) -> None:
        """Check all values."""
        if self.bristles not in (ESTIMATED, PROPAGATED):
            raise ModelError("bristles", got=repr(self.bristles), expected=f'"{ESTIMATED}" or "{PROPAGATED}"')
        for name in ("friction_error", "load_error", "bristle_noise", "effort_swing", "unseen_torque"):
            number(name, getattr(self, name), low=0.0)
        for name in ("torque_memory", "longest_step", "longest_gap"):
            number(name, getattr(self, name), "s", above=0.0)
        number("start_speed", self.start_speed, "rad/s", above=0.0)
        number("gate", self.gate, above=0.0)
        number("patience", self.patience, low=1.0)

    def rules(self, arm: ArmModel, sensors: ArmSensors) -> Rules:
        """Constants for the compiled steps.

        Raises:
            ModelError: sensors of another number of joints than the arm.
        """
        n = arm.tree.nv
        for name in _OF_JOINTS:
            if len(getattr(sensors, name)) not in (1, n):
                got = f"{len(getattr(sensors, name))} numbers"
                expected = f"one, or one for each of the arm's {n} joints"
                raise ModelError(f"{name} of the filter's sensors", got=got, expected=expected)
        coulomb = np.array([friction.coulomb for friction in arm.friction])
        largest_bristle = np.array([friction.reach for friction in arm.friction])
        joints = np.zeros((model.JOINT_ROWS, n))
        joints[model.REACH] = largest_bristle
        joints[model.READING] = sensors.position_quantum**2 / 12.0
        joints[model.TOLD] = sensors.velocity_quantum**2 / 12.0
        joints[model.DRIVE] = sensors.effort_noise**2
        joints[model.SWING] = self.effort_swing
        joints[model.BENDING] = (self.bristle_noise * largest_bristle) ** 2
        joints[model.FRICTION_ERROR] = self.friction_error * coulomb
        joints[model.LOAD_ERROR] = self.load_error
        joints[model.UNSEEN] = (self.unseen_torque * coulomb) ** 2
        blocks = 2
        bristles = errors = 0
        if self.bristles == ESTIMATED:
            bristles, blocks = n * blocks, blocks + 1
        if self.friction_error > 0.0 or self.load_error > 0.0:
            errors, blocks = n * blocks, blocks + 1
        return Rules(
            ((),) * n,
            read_only(joints),
            bristles,
            errors,
            n * blocks,
            sensors.stamp_jitter,
            sensors.velocity_lag,
            self.torque_memory,
            self.gate**2,
            self.longest_step,
            self.longest_gap,
            self.start_speed,
            int(self.patience),
        )


def _each(name: str, value: ArrayLike) -> Vector:
    """Return positive numbers (n,) of the joints, or one (1,) for all."""
    values = array(name, np.atleast_1d(np.asarray(value, dtype=np.float64)), (None,)).copy()
    for k, noise in enumerate(values):
        number(f"{name}[{k}]", float(noise), above=0.0)
    return read_only(values)
