"""Base on one driven and steered wheel and an axle of fixed wheels: its readings to displacements."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import cos, pi, sin

import numpy as np
from numpy.typing import ArrayLike

from youbot_dynamics.arrays import MadeOfArguments, Vector, array, number, read_only
from youbot_dynamics.errors import ModelError


@dataclass(frozen=True, eq=False)
class Tricycle(MadeOfArguments):
    """A driven wheel at (wheelbase, 0) that is steered, and fixed wheels on the y axis, which allow no sideways slip.

    With b = steering + steering_offset the wheel rolls R dq = cos(b) dx + sin(b) (dy + wheelbase turn) and does not
    slip across, 0 = -sin(b) dx + cos(b) (dy + wheelbase turn); the axle allows dy = 0. So dx = R dq cos(b) and turn = R
    dq sin(b) / wheelbase. These are linear in the two columns of `rolled`, as those of other bases in their wheels.

    Args:
        wheel_radius: of the driven wheel [m], positive.
        wheelbase: distance of the driven wheel ahead of the axle [m], positive.
        steering_offset: true steering angle minus the measured one [rad], at most a quarter turn.

    Attributes:
        forward_matrix: (3, 2) from columns of `rolled` [rad] to displacements [m, m, rad]; read-only.

    Raises:
        ModelError: values that no such base has.

    Source: Campion, Bastin and d'Andrea-Novel 1996, type (1, 1); Muir and Neuman 1987; document 004.
    """

    wheel_radius: float
    wheelbase: float
    steering_offset: float = 0.0
    forward_matrix: Vector = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Check the values and store the matrix."""
        radius = number("wheel_radius", self.wheel_radius, "m", above=0.0)
        length = number("wheelbase", self.wheelbase, "m", above=0.0)
        offset = number("steering_offset", self.steering_offset, "rad")
        if abs(offset) > 0.5 * pi:
            expected = "at most a quarter turn, pi / 2"
            raise ModelError("steering_offset", got=f"{offset:g}", expected=expected, remedy="is it in rad?")
        forward, turn = [cos(offset), -sin(offset)], [sin(offset) / length, cos(offset) / length]
        object.__setattr__(self, "forward_matrix", read_only(radius * np.array([forward, [0.0, 0.0], turn])))

    @staticmethod
    def rolled(wheel_angles: ArrayLike, steering: ArrayLike) -> Vector:
        """Angles (m, 2) [rad] that the wheel rolled along and across the base, from its readings.

        Args:
            wheel_angles: (m,) of the driven wheel about its axle [rad].
            steering: (m,) measured steering angles at these times [rad]; between two, their mean counts. They may
                be wrapped.

        Raises:
            InputError: other shapes, or values that are not finite.
        """
        angles = array("wheel_angles", wheel_angles, (None,))
        measured = np.unwrap(array("steering", steering, (len(angles),)))
        step, middle = np.diff(angles), 0.5 * (measured[1:] + measured[:-1])
        steps = step[:, None] * np.column_stack([np.cos(middle), np.sin(middle)])
        return np.vstack([np.zeros((1, 2)), np.cumsum(steps, axis=0)])[: len(angles)]
