"""What can be set of node arm_ekf."""

from __future__ import annotations

from dataclasses import dataclass

from youbot_dynamics.estimation.arm_ekf_tuning import ESTIMATED, PROPAGATED, ArmEkfTuning
from youbot_dynamics.estimation.motor_heat import HeatTuning
from youbot_dynamics.estimation.payload import PayloadTuning
from youbot_dynamics.parameters import setting

_SHARE = "1"


@dataclass(frozen=True)
class ArmEkfSettings:
    """How far filter, heat model and sensors are trusted, and what is published."""

    bristles: str = setting(
        ESTIMATED,
        "Whether the friction's bristles are estimated, or propagated and taken for known.",
        read_only=True,
        choices=(ESTIMATED, PROPAGATED),
        source="seed 001 propagates; see docs/estimation.md",
    )
    friction_error: float = setting(
        0.2,
        "Share of the Coulomb torque by which the identified friction may be off.",
        unit=_SHARE,
        low=0.01,
        high=2.0,
        source="issue 6",
    )
    load_error: float = setting(
        0.2,
        "Share of the load by which the identified links may be off.",
        unit=_SHARE,
        low=0.0,
        high=2.0,
        source="issue 6",
    )
    torque_memory: float = setting(
        0.5, "Time constant of the torque error.", unit="s", low=0.05, high=10.0, source="issue 6: 0.2-1 s"
    )
    bristle_noise: float = setting(
        3.0,
        "Travels by which a bristle strays in a root of a second while the sign of its speed is in doubt.",
        unit="1/sqrt(s)",
        low=0.0,
        high=100.0,
        source="tuned on the twin",
    )
    effort_noise: float = setting(
        0.02, "Standard deviation of the efforts.", unit="N m", low=1e-4, high=5.0, source="youbot facts, section 5"
    )
    gate: float = setting(6.0, "Deviations beyond which a position is left out.", unit="1", low=2.0, high=100.0)
    feedforward_share: float = setting(
        1.0,
        "Part of the identified friction in friction_feedforward; with feedback of the estimated speed stay below "
        "one less friction_error.",
        unit=_SHARE,
        low=0.0,
        high=1.0,
    )
    smoothing_speed: float = setting(
        0.02,
        "Speed at which friction_feedforward gives 76 % of the Coulomb torque.",
        unit="rad/s",
        low=1e-3,
        high=1.0,
        source="chosen: ten times the deviation of an estimated speed",
    )
    payload_limit: float = setting(
        0.2,
        "Deviation of the payload's mass above which it counts as not identifiable and is not published.",
        unit="kg",
        low=1e-3,
        high=10.0,
        source="chosen: 40 % of what the youBot may carry",
    )
    support_lag: float = setting(
        0.1,
        "Time constant of the accelerations of base and arm behind tip_over_margin.",
        unit="s",
        low=0.01,
        high=2.0,
        source="chosen: speeds of the wheels come in steps of 3 mm/s",
    )
    low_support: float = setting(
        0.3,
        "Share of the mean normal force below which a wheel is reported as nearly lifted.",
        unit=_SHARE,
        low=0.0,
        high=1.0,
        source="chosen: the arm stretched out to a side with 0.5 kg leaves 0.58 at rest",
    )
    hold_time: float = setting(
        60.0, "How long torque_available can be held.", unit="s", low=0.1, high=3600.0, source="chosen"
    )
    heat_deviations: float = setting(
        2.0,
        "Deviations by which windings are taken for hotter than believed in torque_available and seconds to limit.",
        unit="1",
        low=0.0,
        high=6.0,
        source="chosen: 95 %, one-sided 98 %",
    )
    hot_margin: float = setting(
        10.0, "Below its limit by less than this a winding counts as hot.", unit="K", low=0.0, high=100.0
    )
    cold_start: bool = setting(
        True,
        "Whether the motors are as warm as the air at the start; then voltages teach their resistance.",
        read_only=True,
    )
    start_temperature: float = setting(
        40.0,
        "Temperature of the motors at the start where that is not cold.",
        unit="degC",
        low=-20.0,
        high=150.0,
        read_only=True,
        source="chosen: after some work",
    )
    ambient_deviation: float = setting(
        5.0,
        "By how much the air may differ from robot.arm.ambient_temperature.",
        unit="K",
        low=0.1,
        high=50.0,
        read_only=True,
        source="chosen",
    )
    heat_error: float = setting(
        0.2,
        "Share by which thermal resistances, heat capacities and winding resistance may be off.",
        unit=_SHARE,
        low=0.001,
        high=1.0,
        read_only=True,
        source="issue 6; sheets differ by up to 35 %",
    )
    voltage_noise: float = setting(
        0.05,
        "Standard deviation of motor voltages, where a robot has them.",
        unit="V",
        low=1e-3,
        high=10.0,
        read_only=True,
        source="chosen",
    )
    temperature_sensor: str = setting(
        "winding",
        "Which temperature motor_temperature tells, where a robot has it.",
        read_only=True,
        choices=("winding", "housing"),
    )
    temperature_noise: float = setting(
        1.0,
        "Standard deviation of motor_temperature.",
        unit="K",
        low=0.01,
        high=50.0,
        read_only=True,
        source="chosen",
    )

    def tuning(self) -> ArmEkfTuning:
        """That of the joints' filter."""
        return ArmEkfTuning(
            bristles=self.bristles,
            friction_error=self.friction_error,
            load_error=self.load_error,
            torque_memory=self.torque_memory,
            bristle_noise=self.bristle_noise,
            gate=self.gate,
        )

    def heat_tuning(self) -> HeatTuning:
        """That of the motors' filters."""
        return HeatTuning(
            thermal_resistance=self.heat_error,
            heat_capacity=self.heat_error,
            resistance=self.heat_error,
            ambient=self.ambient_deviation,
            voltage_noise=self.voltage_noise,
        )

    def payload_tuning(self) -> PayloadTuning:
        """That of the payload's estimate."""
        return PayloadTuning(largest_deviation=self.payload_limit)

    def first_temperature(self) -> float | None:
        """Of the motors [degC]; None for a cold start."""
        return None if self.cold_start else float(self.start_temperature)
