"""Faults of a gyro that its turn shows beside that of the wheels; imports neither compiler nor scipy."""

from __future__ import annotations

from enum import Enum


class GyroFault(Enum):
    """In what a gyro differs from the wheels; the value says what it does, and what to look at."""

    SIGN = "it turns against the wheels", "angular_velocity.z is positive to the left: is the unit mounted upside down?"
    UNIT = "its scale is that of degrees", "publish it in rad/s: this looks like degrees per second"
    AXIS = (
        "it does not turn with the base",
        "publish the rate about the vertical in angular_velocity.z: is the unit mounted on its side?",
    )
    SCALE = "its scale is wrong", "correct the scale of the gyro, and check the radius and positions of the wheels"

    @property
    def words(self) -> str:
        """What it does."""
        return self.value[0]

    @property
    def remedy(self) -> str:
        """What to look at."""
        return self.value[1]


_ALIKE = 0.5  # difference of the two turns over that of the wheels, which the slip of all wheels may cause
_DEGREES = (40.0, 80.0)  # ratio of a gyro in degrees per second, which slip may change
_OTHER_AXIS = 0.05  # ratio below which a gyro does not see turns about the vertical


def gyro_fault(ratio: float) -> GyroFault | None:
    """Fault of a gyro whose turn is `ratio` times that of the wheels [1]; None where their slip explains it."""
    if abs(ratio - 1.0) <= _ALIKE:
        return None
    if abs(ratio) < _OTHER_AXIS:
        return GyroFault.AXIS
    if _DEGREES[0] < abs(ratio) < _DEGREES[1]:
        return GyroFault.UNIT
    return GyroFault.SIGN if ratio < 0.0 else GyroFault.SCALE
