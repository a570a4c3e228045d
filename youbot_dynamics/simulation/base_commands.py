"""Wheel speeds as the driver hands them to the motor controllers: in whole rpm of the motors."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from youbot_dynamics.arrays import Vector
from youbot_dynamics.robot import Driver

_READ_RPM = 15.0  # of the motor: the velocity quantum of the driver


def counted_wheel_speeds(driver: Driver, wheel_speeds: ArrayLike) -> Vector:
    """Wheel speeds (4,) rounded to 1 motor rpm, 0.19 mm/s of travel; exact for a driver whose speeds have no quantum.

    Source: youbot facts, section 1.4.

    Args:
        driver: how it speaks; its velocity quantum is 15 motor rpm.
        wheel_speeds: (4,) [rad/s].
    """
    speeds, rpm = np.asarray(wheel_speeds, dtype=float), driver.velocity_quantum / _READ_RPM
    return np.rint(speeds / rpm) * rpm if rpm > 0.0 else speeds.copy()
