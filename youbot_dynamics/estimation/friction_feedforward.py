"""Feed-forward torque that cancels the identified friction of joints at a given speed. Source: systems 9, 10."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import tanh

import numpy as np
from numpy.typing import ArrayLike

from youbot_dynamics.arrays import MadeOfArguments, Vector, array, number, read_only
from youbot_dynamics.dynamics.arm import ArmModel


@dataclass(frozen=True, eq=False)
class FrictionFeedforward(MadeOfArguments):
    """Friction feed-forward of n joints, to be added to the motor torque of a controller.

    For a commanded speed it may cancel all friction. For an estimated speed it is a positive feedback, which is passive
    only below the true friction; reduce `share` by the relative error of the friction.

    Args:
        arm: of n joints, with identified friction.
        smoothing_speed: speed at which tanh(1) = 76 % of the Coulomb torque is given [rad/s]. Smoothing keeps the noise
            of a zero speed from shaking the joint. At rest friction holds any torque up to the Coulomb torque, which
            depends on the bristle, so the feed-forward is 0 there.
        share: fraction of the friction that is cancelled, 0 to 1.

    Raises:
        ModelError: a smoothing speed that is not positive, or a share outside its range.
    """

    arm: ArmModel
    smoothing_speed: float = 0.02
    share: float = 1.0
    _fastest: Vector = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Check the values and store the largest speeds of the joints."""
        number("smoothing_speed", self.smoothing_speed, "rad/s", above=0.0)
        number("share", self.share, "1", low=0.0, high=1.0)
        speeds = [limit.velocity for limit in self.arm.tree.limits]
        object.__setattr__(self, "_fastest", read_only(np.array(speeds)))

    @property
    def bound(self) -> Vector:
        """Upper bound of the torques (n,) [N m]."""
        return self.torque(self._fastest)

    def torque(self, velocity: ArrayLike) -> Vector:
        """Torque at the joints (n,) [N m] in the direction of the motion.

            tau = share (g(v) tanh(v / v_s) + viscous v),    v limited to the joint's largest speed

        This is the steady friction torque with a smoothed sign.

        Args:
            velocity: (n,) commanded or estimated [rad/s].

        Raises:
            InputError: a wrong shape or a number that is not finite.

        Source: document 001 (9), (16).
        """
        wanted = array("velocity", velocity, (len(self._fastest),)).tolist()
        speeds = [min(max(v, -fastest), fastest) for v, fastest in zip(wanted, self._fastest.tolist(), strict=True)]
        return np.array(
            [
                self.share * (friction.level(v) * tanh(v / self.smoothing_speed) + friction.viscous * v)
                for friction, v in zip(self.arm.friction, speeds, strict=True)
            ]
        )
