"""A plant whose joints do at once what they are told, to see what a driver and its faults make of it."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from youbot_dynamics.errors import InputError
from youbot_dynamics.robot import load_robot
from youbot_dynamics.simulation.driver_reports import dead_reckoned

ROBOT = load_robot()
DRIVER = ROBOT.driver
PERIOD = 0.02


class SimpleBase:
    """Wheels turn as commanded, in the driver's geometry; no delay, no quanta, no noise."""

    def __init__(self) -> None:
        self.mecanum = DRIVER.mecanum()
        self.time, self.powered = 0.0, True
        self.speeds, self.angles = np.zeros(4), np.zeros(4)
        self.odometry, self.last = np.zeros(3), np.zeros(4)
        self.calls: list[tuple[str, list[float]]] = []
        self.call_times: list[float] = []

    def command_twist(self, twist, time=None):
        self.calls.append(("twist", np.asarray(twist).tolist()))
        self.call_times.append(time)
        self.speeds = self.mecanum.wheel_speeds(twist)

    def command_wheels(self, wheel_speeds, time=None):
        self.calls.append(("wheels", np.asarray(wheel_speeds).tolist()))
        self.call_times.append(time)
        self.speeds = np.asarray(wheel_speeds) * np.array(DRIVER.command_sign)

    def switch_motors(self, on):
        self.powered = on

    def advance(self, until):
        if self.powered:
            self.angles = self.angles + (until - self.time) * self.speeds
        self.time = until

    def read(self):
        self.odometry = dead_reckoned(self.odometry, self.mecanum.twist(self.angles - self.last))
        self.last = self.angles
        speeds = self.speeds * self.powered
        return SimpleNamespace(
            stamp=self.time,
            position=self.angles * np.array(DRIVER.position_sign),
            velocity=speeds * np.array(DRIVER.velocity_sign),
            odometry=self.odometry,
            twist=self.mecanum.twist(speeds),
        )

    def read_efforts(self):
        return SimpleNamespace(stamp=self.time, effort=np.array([0.1, 0.2, 0.3, 0.4]))


class SimpleArm:
    """Joints turn as commanded; 1 N m in each."""

    def __init__(self) -> None:
        self.time, self.position, self.speed, self.powered = 0.0, np.zeros(5), np.zeros(5), True

    def command_velocities(self, velocity, time=None):
        if np.any(np.abs(velocity) > 10.0):
            raise InputError("velocity", got="too much")
        self.speed = np.asarray(velocity, dtype=float)

    def switch_motors(self, on):
        self.powered = on

    def advance(self, until):
        self.position = self.position + (until - self.time) * self.speed
        self.time = until

    def read(self):
        values = [np.append(v, [0.0, 0.0]) for v in (self.position, self.speed, np.ones(5))]
        return SimpleNamespace(stamp=self.time + 1e-4, position=values[0], velocity=values[1], effort=values[2])


class SimplePlant:
    def __init__(self) -> None:
        self.base, self.arm, self.time = SimpleBase(), SimpleArm(), 0.0

    def advance(self, until):
        self.base.advance(until)
        self.arm.advance(until)
        self.time = until
