"""The hidden truth of the digital twin: what identification must find and must never read."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from youbot_dynamics.errors import ParameterError
from youbot_dynamics.kinematics.mecanum import MecanumBase
from youbot_dynamics.parameter_file import read_parameters
from youbot_dynamics.parameters import Parameter, Value, check_names, fact, facts_of
from youbot_dynamics.resources import config_path

PREFIX = "truth"
_FACTS = "youbot facts, section 5"


@dataclass(frozen=True)
class BaseTruth:
    """One robot as it really is."""

    dead_time_x: float = fact("Transport delay forward.", unit="s", low=0.0, high=1.0, source=_FACTS)
    dead_time_y: float = fact("Transport delay sideways.", unit="s", low=0.0, high=1.0, source=_FACTS)
    dead_time_yaw: float = fact("Transport delay of the turn.", unit="s", low=0.0, high=1.0, source=_FACTS)
    lag: float = fact("First-order response of the motor loop.", unit="s", low=1e-3, high=1.0, source=_FACTS)
    stamp_jitter: float = fact(
        "Standard deviation of the driver's stamps.", unit="s", low=0.0, high=0.005, source=_FACTS
    )
    wheel_radius: float = fact("Rolling radius of the wheels.", unit="m", low=0.02, high=0.2, source=_FACTS)
    half_length: float = fact("Wheel axis to centre, along x.", unit="m", low=0.05, high=1.0, source=_FACTS)
    half_width: float = fact("Wheel centre to centre line.", unit="m", low=0.05, high=1.0, source=_FACTS)
    lateral_factor: float = fact("True over kinematic sideways speed.", unit="1", low=0.8, high=1.1, source=_FACTS)
    mass: float = fact("Whole robot.", unit="kg", low=5.0, high=100.0, source=_FACTS)
    yaw_inertia: float = fact("Whole robot about the vertical.", unit="kg m2", low=0.1, high=10.0, source=_FACTS)
    wheel_inertia: float = fact(
        "Wheel and reflected rotor about the axle: 0.0016 + 0.0090.",
        unit="kg m2",
        low=0.0,
        high=0.1,
        source="youbot facts, sections 2.1 and 2.2",
    )
    torque_noise: float = fact(
        "Standard deviation of a torque that wanders as the wheel rolls (rollers, floor), correlated over 0.3 rad.",
        unit="N m",
        low=0.0,
        high=1.0,
        source="chosen: about a third of the Coulomb torque; none published",
    )
    wheel_coulomb: float = fact("Coulomb torque F1 of each wheel.", unit="N m", low=0.0, high=2.0, source=_FACTS)
    roller_coulomb: float = fact(
        "Coulomb torque over radius of the rollers, F2 / r, of each wheel.",
        unit="N",
        low=0.0,
        high=10.0,
        source=_FACTS,
    )
    viscous_x: float = fact("Viscous friction xi_L, forward.", unit="N s/m", low=0.0, high=200.0, source=_FACTS)
    viscous_y: float = fact("Viscous friction xi_T, sideways.", unit="N s/m", low=0.0, high=200.0, source=_FACTS)

    def dead_times(self) -> tuple[float, float, float]:
        """Transport delays of x, y, yaw [s]."""
        return self.dead_time_x, self.dead_time_y, self.dead_time_yaw

    def mecanum(self) -> MecanumBase:
        """True kinematics."""
        return MecanumBase.rectangular(self.wheel_radius, self.half_length, self.half_width, self.lateral_factor)

    def without_friction(self) -> BaseTruth:
        """Same robot without Coulomb and viscous friction; the wandering torque stays."""
        return dataclasses.replace(self, wheel_coulomb=0.0, roller_coulomb=0.0, viscous_x=0.0, viscous_y=0.0)

    def without_noise(self) -> BaseTruth:
        """Same robot with exact stamps and steady friction."""
        return dataclasses.replace(self, stamp_jitter=0.0, torque_noise=0.0)


def truth_table(path: Path | None = None) -> tuple[Parameter, ...]:
    """Parameters `truth.*`, each (nominal, lowest, highest), with the values of config/mock.yaml as defaults.

    Raises:
        ParameterError: a missing or unknown quantity, or values out of range.
    """
    file = config_path("mock.yaml") if path is None else path
    values = {
        name: value for name, value in read_parameters(file, "mock_youbot").items() if name.split(".")[0] == PREFIX
    }
    leaves = facts_of(BaseTruth, PREFIX)
    check_names(values, (name for name, _, _ in leaves))
    table = []
    for name, _, metadata in leaves:
        if name not in values:
            raise ParameterError(f"parameter {name} in {file}", got="no value", expected="nominal, lowest, highest")
        parameter = Parameter(name, values[name], read_only=True, **{**metadata, "length": 3})
        parameter.check(values[name])
        table.append(parameter)
    return tuple(table)


def draw_truth(values: dict[str, Value], seed: int) -> BaseTruth:
    """Robot of one seed.

    Args:
        values: complete `truth.*` table, each (nominal, lowest, highest).
        seed: 0 for the nominal robot, else each quantity evenly between its bounds, reproducibly.

    Raises:
        ParameterError: a lowest value above its highest.
    """
    generator = np.random.default_rng(seed)
    drawn: dict[str, float] = {}
    for item in dataclasses.fields(BaseTruth):
        spread = values[f"{PREFIX}.{item.name}"]
        nominal, low, high = (float(number) for number in spread)  # type: ignore[union-attr]
        if low > high:
            raise ParameterError(f"parameter {PREFIX}.{item.name}", got=f"lowest {low:g} above highest {high:g}")
        share = float(generator.random())
        drawn[item.name] = nominal if seed == 0 else low + share * (high - low)
    return BaseTruth(**drawn)


def load_truth(seed: int, path: Path | None = None) -> BaseTruth:
    """Robot of one seed from config/mock.yaml, or from a file of that form."""
    return draw_truth({parameter.name: parameter.default for parameter in truth_table(path)}, seed)
