"""A log of an arm: what its messages said, as arrays, wherever it was read from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from youbot_dynamics.arrays import Vector
from youbot_dynamics.errors import InputError
from youbot_dynamics.estimation import joint_intake as intake


@dataclass(frozen=True, eq=False)
class MotorReadings:
    """What motors tell beside their efforts.

    Args:
        stamp: (m,) [s].
        value: (m, 5) [V or degC], NaN where missing.
    """

    stamp: Vector
    value: Vector


@dataclass(frozen=True, eq=False)
class ArmLog:
    """t messages of an arm of five joints; NaN where they say nothing.

    Args:
        joints: names (5,).
        stamp: (t,) [s].
        received: (t,) [s]; the stamps where nothing else is known.
        position: (t, 5) [rad].
        velocity: (t, 5) as the driver tells them [rad/s].
        effort: (t, 5) [N m].
        voltage: of the motors, None where they are not measured.
        temperature: of the motors, None where it is not measured.
        left_out: what was not read: reason -> number of messages.

    Raises:
        InputError: shapes that do not fit, or no messages.
    """

    joints: tuple[str, ...]
    stamp: Vector
    received: Vector
    position: Vector
    velocity: Vector
    effort: Vector
    voltage: MotorReadings | None = None
    temperature: MotorReadings | None = None
    left_out: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check the shapes."""
        t = len(self.stamp)
        if t == 0:
            raise InputError("log of the arm", got="no messages", expected="at least one")
        for name, shape in (
            ("received", (t,)),
            ("position", (t, 5)),
            ("velocity", (t, 5)),
            ("effort", (t, 5)),
        ):
            if getattr(self, name).shape != shape:
                raise InputError(f"log of the arm, {name}", got=f"{getattr(self, name).shape}", expected=f"{shape}")

    @property
    def counts(self) -> Mapping[str, int]:
        """What was not read, and messages without a number in their positions or efforts."""
        no_effort = ~np.isfinite(self.effort)
        found = {
            intake.NO_EFFORT: no_effort.all(axis=1),
            intake.NAN_EFFORT: no_effort.any(axis=1) & ~no_effort.all(axis=1),
            intake.NAN_POSITION: ~np.isfinite(self.position).all(axis=1),
        }
        return {**self.left_out, **{name: int(rows.sum()) for name, rows in found.items()}}
