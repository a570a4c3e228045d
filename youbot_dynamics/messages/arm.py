"""Estimates of an arm as messages: topics of node arm_ekf and of the bag of `youbot replay`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from numpy.typing import ArrayLike

from youbot_dynamics.arrays import Vector
from youbot_dynamics.control.stamp_rhythm import RateLimiter
from youbot_dynamics.estimation.arm_estimator import ArmEstimates
from youbot_dynamics.estimation.arm_settings import ArmSettings
from youbot_dynamics.estimation.friction_feedforward import FrictionFeedforward
from youbot_dynamics.recording.message_types import JOINT_STATE, float_cdr, joint_state_cdr, stamped_cdr
from youbot_dynamics.robot import Robot

_FRICTION_RATE = 50.0  # [Hz]
_PAYLOAD_RATE = 1.0  # [Hz] while the arm moves

Message = tuple[int, str, str, bytes]  # stamp [ns], topic, type, CDR


class ArmMessages:
    """Serializes estimates of an arm of n joints, friction and payload at limited rates.

    Args:
        robot: its joints, wheels and links.
        settings: of the friction feed-forward.
        frame_prefix: of all frames.
        base_frame: on the floor below the middle of the wheels.
        origin: time 0 of the stamps [ns since 1970].
    """

    def __init__(
        self, robot: Robot, settings: ArmSettings, frame_prefix: str, base_frame: str, origin: int = 0
    ) -> None:
        self._joints, self._wheels, self._arm = robot.driver.arm_joints, robot.driver.wheel_joints, robot.arm.model()
        self._frames = tuple(frame_prefix + name for name in self._arm.tree.names)
        self._base_frame, self._origin = frame_prefix + base_frame, origin
        self._friction_limiter, self._payload_limiter = RateLimiter(_FRICTION_RATE), RateLimiter(_PAYLOAD_RATE)
        self.retune(settings)

    def retune(self, settings: ArmSettings) -> None:
        """Use other settings from now on."""
        self._ahead = FrictionFeedforward(self._arm, settings.smoothing_speed, settings.feedforward_share)

    def of(self, estimates: ArmEstimates) -> Iterator[Message]:
        """Messages of what is new."""
        if (warm := estimates.temperatures) is not None:
            yield from self.temperatures(warm.stamp, warm.rows)
            yield self.torques(warm.stamp, warm.torque)
        if (belief := estimates.belief) is None or (effort := estimates.effort) is None:
            return
        yield from self.states(belief.stamp, belief.position, belief.speed, effort, belief.friction_torque)
        if (payload := estimates.payload) is not None:
            yield from self.payload(belief.stamp, payload.mass, payload.centre.tolist())
        if (support := estimates.support) is not None:
            yield from self.support(belief.stamp, support.normal_forces, support.centre_of_mass.tolist())

    def states(
        self, stamp: float, position: Vector, speed: Vector, effort: Vector, friction: Vector
    ) -> Iterator[Message]:
        """States and friction at a stamp [s]: (n,) each [rad, rad/s, N m, N m]."""
        ns, names = self._ns(stamp), self._joints
        yield ns, "arm_1/estimated_joint_states", JOINT_STATE, joint_state_cdr(ns, names, position, speed, effort)
        if self._friction_limiter.due(stamp):
            ahead = joint_state_cdr(ns, names, effort=self._ahead.torque(speed))
            yield ns, "arm_1/friction", JOINT_STATE, joint_state_cdr(ns, names, effort=friction)
            yield ns, "arm_1/friction_feedforward", JOINT_STATE, ahead

    def temperatures(self, stamp: float, rows: Sequence[Sequence[float]]) -> Iterator[Message]:
        """Temperatures of the motors at a stamp [s]; `rows` as of `ArmEstimator.temperature_rows`."""
        ns = self._ns(stamp)
        for joint, frame, row in zip(self._joints, self._frames, rows, strict=True):
            for part, (value, deviation) in (("winding", row[:2]), ("housing", row[2:])):
                cdr = stamped_cdr(ns, frame, value, deviation**2)
                yield ns, f"arm_1/{joint}/{part}_temperature", "sensor_msgs/msg/Temperature", cdr

    def torques(self, stamp: float, torque: ArrayLike) -> Message:
        """Torques available (n,) [N m] at a stamp [s]."""
        ns = self._ns(stamp)
        return ns, "arm_1/torque_available", JOINT_STATE, joint_state_cdr(ns, self._joints, effort=torque)

    def payload(self, stamp: float, mass: float, centre: Sequence[float]) -> Iterator[Message]:
        """A known payload at a stamp [s]: mass [kg], and centre (3,) in the frame of the last link [m]."""
        if self._payload_limiter.due(stamp):
            cdr = stamped_cdr(ns := self._ns(stamp), self._frames[-1], max(0.0, mass), *centre, *[0.0] * 6)
            yield ns, "payload", "geometry_msgs/msg/InertiaStamped", cdr

    def support(self, stamp: float, forces: Vector, centre_of_mass: Sequence[float]) -> Iterator[Message]:
        """Normal forces of the wheels (4,) [N] and centre of mass (3,) [m] at a stamp [s]."""
        ns = self._ns(stamp)
        yield ns, "wheel_normal_forces", JOINT_STATE, joint_state_cdr(ns, self._wheels, effort=forces)
        yield ns, "tip_over_margin", "std_msgs/msg/Float64", float_cdr(float(forces.min()))
        point = stamped_cdr(ns, self._base_frame, *centre_of_mass)
        yield ns, "centre_of_mass", "geometry_msgs/msg/PointStamped", point

    def _ns(self, stamp: float) -> int:
        whole = int(stamp // 1)
        return self._origin + whole * 1_000_000_000 + round((stamp - whole) * 1e9)
