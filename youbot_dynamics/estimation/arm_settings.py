"""Settings of the arm's estimators, for the node arm_ekf and for a replay."""

from __future__ import annotations

from dataclasses import dataclass, field

from youbot_dynamics.estimation.arm_ekf import ArmEkfTuning
from youbot_dynamics.estimation.motor_heat import HeatTuning
from youbot_dynamics.estimation.payload import PayloadTuning
from youbot_dynamics.parameters import Settings, fixed_setting, setting


@dataclass(frozen=True)
class ArmSettings(Settings):
    """Uncertainty of filter, heat model and sensors, and settings of the published results."""

    filter: ArmEkfTuning = field(default_factory=ArmEkfTuning)
    effort_noise: float = setting(
        0.02,
        "Standard deviation of the efforts.",
        "N m",
        (1e-4, 5.0),
        source="chosen: some 5 mA of current at 3.4 to 5.2 N m/A",
    )
    feedforward_share: float = setting(
        1.0,
        "Part of the identified friction in friction_feedforward; with feedback of the estimated speed keep it "
        "below 1 - friction_error.",
        "1",
        (0.0, 1.0),
        source="chosen: all of it, for controllers that feed back measured speeds",
    )
    smoothing_speed: float = setting(
        0.02,
        "Speed at which friction_feedforward gives 76 % of the Coulomb torque.",
        "rad/s",
        (1e-3, 1.0),
        source="chosen: ten times the deviation of an estimated speed",
    )
    payload: PayloadTuning = field(default_factory=PayloadTuning)
    support_lag: float = setting(
        0.1,
        "Time constant of the accelerations of base and arm behind tip_over_margin.",
        "s",
        (0.01, 2.0),
        source="chosen: speeds of the wheels come in steps of 3 mm/s",
    )
    low_support: float = setting(
        0.3,
        "Share of the mean normal force below which a wheel is reported as nearly lifted.",
        "1",
        (0.0, 1.0),
        source="chosen: the arm stretched out to a side with 0.5 kg leaves 0.58 at rest",
    )
    hold_time: float = setting(
        60.0,
        "How long torque_available can be held.",
        "s",
        (0.1, 3600.0),
        source="chosen: longer than a pose lasts in a work cycle",
    )
    heat_deviations: float = setting(
        2.0,
        "Safety margin for torque_available and seconds to limit: standard deviations by which windings are "
        "assumed hotter than estimated.",
        "1",
        (0.0, 6.0),
        source="chosen: 95 %, one-sided 98 %",
    )
    hot_margin: float = setting(
        10.0,
        "Distance to its limit below which a winding counts as hot.",
        "K",
        (0.0, 100.0),
        source="chosen: time to act before the limit",
    )
    cold_start: bool = fixed_setting(
        True,
        "Whether the motors have the air temperature at the start; then voltages show their resistance.",
        source="chosen: the usual start of a day",
    )
    start_temperature: float = fixed_setting(
        40.0,
        "Temperature of the motors at the start if it is not a cold start.",
        "degC",
        (-20.0, 150.0),
        source="chosen: after some work",
    )
    heat: HeatTuning = field(default_factory=HeatTuning)
    temperature_sensor: str = fixed_setting(
        "winding",
        "Part whose temperature motor_temperature reports, where a robot has it.",
        choices=("winding", "housing"),
        source="chosen: what limits the motor",
    )
    temperature_noise: float = fixed_setting(
        1.0,
        "Standard deviation of motor_temperature.",
        "K",
        (0.01, 50.0),
        source="chosen: accuracy of a common thermistor",
    )

    @property
    def first_temperature(self) -> float | None:
        """Initial temperature of the motors [degC]; None for a cold start."""
        return None if self.cold_start else self.start_temperature
