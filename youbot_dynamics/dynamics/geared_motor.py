"""A motor seen from the joint its gear drives (systems 1 and 6)."""

from __future__ import annotations

from dataclasses import dataclass

from youbot_dynamics.arrays import number, scalar
from youbot_dynamics.dynamics.thermal_motor import ThermalMotor


@dataclass(frozen=True)
class GearedMotor:
    """Joint torque, current and speed of a motor behind a reduction N with efficiency eta; joint and rotor turn alike.

    Power that flows from the motor to the joint loses the share 1 - eta, and so does power that flows back:

        joint torque = N eta K i      while K i and the speed have one sign, or at standstill (motoring)
        joint torque = N K i / eta    while the joint drives the motor (generating)

    so that the gear takes |power| (1 - eta) from its input side in all four quadrants. The torques are static ones:
    the rotor's own inertia is added at the joint as `reflected_inertia`. Where the joint's friction was fitted on
    effort = N K i, the losses of the gear are in that friction already: leave the efficiency at 1, the only one
    `arm.ArmModel` takes. Seed 000 leaves sign and gear side of its external load open; here a load torque opposes a
    positive speed (system 6).

    Args:
        motor: the motor.
        ratio: N, rotor turns for each joint turn [1], positive.
        efficiency: eta [1], above 0 and at most 1.

    Raises:
        ModelError: ratio or efficiency outside its range.
    """

    motor: ThermalMotor
    ratio: float
    efficiency: float = 1.0

    def __post_init__(self) -> None:
        """Check ratio and efficiency."""
        object.__setattr__(self, "ratio", number("ratio", self.ratio, "rotor/joint", above=0.0))
        object.__setattr__(self, "efficiency", number("efficiency", self.efficiency, above=0.0, high=1.0))

    @property
    def reflected_inertia(self) -> float:
        """N^2 J [kg m^2], what the rotor adds to the joint's inertia (with an ideal gear)."""
        return self.ratio**2 * self.motor.rotor_inertia

    def motor_speed(self, joint_speed: float) -> float:
        """Rotor speed N w [rad/s] of a joint speed [rad/s].

        Raises:
            InputError: it is not finite.
        """
        return self.ratio * _finite("joint_speed", joint_speed)

    def joint_torque(self, current: float, joint_speed: float) -> float:
        """Torque [N m] at the joint from the current [A] while the joint turns at joint_speed [rad/s].

        Raises:
            InputError: a value is not finite.
        """
        ideal = self.ratio * self.motor.torque_constant * _finite("current", current)
        motoring = ideal * _finite("joint_speed", joint_speed) >= 0.0
        return ideal * self.efficiency if motoring else ideal / self.efficiency

    def motor_torque(self, joint_torque: float, joint_speed: float) -> float:
        """Torque [N m] at the rotor that balances a joint torque [N m]: the load of `ThermalMotor.derivative`.

        Joint torque and load are positive where the motor drives the joint in the positive direction.

        Raises:
            InputError: a value is not finite.
        """
        ideal = _finite("joint_torque", joint_torque) / self.ratio
        motoring = ideal * _finite("joint_speed", joint_speed) >= 0.0
        return ideal / self.efficiency if motoring else ideal * self.efficiency

    def current(self, joint_torque: float, joint_speed: float) -> float:
        """Current [A] for a joint torque [N m] at joint_speed [rad/s]: the inverse of `joint_torque`.

        Raises:
            InputError: a value is not finite.
        """
        return self.motor_torque(joint_torque, joint_speed) / self.motor.torque_constant


def _finite(thing: str, value: float) -> float:
    return scalar(thing, value)
