"""Findings of an identification in one form for all stages: numbers with verdicts, curves, correlations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from youbot_dynamics.arrays import Vector
from youbot_dynamics.identification.least_squares import Estimate, Fit, Reason, Whiteness
from youbot_dynamics.robot import PREFIX

# Names of products: the ConsistentInertia of the arm; RMS error (3,) of the twist of calibrated odometry
BODIES = "arm_bodies"
TWIST_ERROR = "twist_error"


@dataclass(frozen=True)
class Finding:
    """One estimated number."""

    # Of the robot parameter, such as "robot.base.friction.viscous_x"; without "robot." if the robot has no such
    # parameter, as "base.friction.missed_inertia_x"
    name: str
    estimate: Estimate  # value, unit, standard error, interval and verdict
    samples: int = 0  # number of readings or rows used
    valid_for: str = ""  # range of the data, such as "wheel speeds of 0.2 to 9.1 rad/s"
    # Further numbers of this estimate, such as the gain of a delay
    details: Mapping[str, float | str] = field(default_factory=dict)
    # Name of the model that was identified as a whole and contains this number; the number is then usable even if
    # it is not identifiable on its own. "" for a number that stands alone.
    part_of: str = ""

    @property
    def identified(self) -> bool:
        """Whether the verdict is "identified"."""
        return self.estimate.identified

    @property
    def usable(self) -> bool:
        """Whether a relaunch should use the value: identified, or part of a model identified as a whole."""
        return self.identified or bool(self.part_of)

    def refused(self, reason: Reason) -> Finding:
        """The same, not identifiable for a reason and not usable."""
        return replace(self, estimate=self.estimate.refused(reason), part_of="")

    @property
    def is_part_of_delay(self) -> bool:
        """Whether it is a dead time or a lag of a delay, shown after the one delay of an axis."""
        owner, _, name = self.name.rpartition(".")
        return owner.endswith("delay") and name.startswith(("dead_time", "lag"))

    @property
    def is_parameter(self) -> bool:
        """Whether the robot has a parameter of this name, so that a relaunch can use the value."""
        return self.name.startswith(f"{PREFIX}.")


_MOST_POINTS = 4000  # of a curve, about: one with twice as many keeps every second


@dataclass(frozen=True, eq=False)
class FitCurve:
    """A model and the measurement it was fitted to, for the report; long ones are thinned."""

    title: str  # such as "Channel x" or "arm_joint_4"
    quantity: str  # such as "motion" or "torque"
    unit: str  # of all columns but the time
    time: Vector  # (n,) [s], increasing
    measured: Vector  # (n,)
    modelled: Vector  # (n,)
    modelled_is: str  # legend text, such as "shifted by the delay"
    band: Vector | None = None  # (n,) half-width of the model's 95 % band; None if unknown
    reference: Vector | None = None  # (n,) command; None if it is not shown
    whiteness: Whiteness | None = None  # of all residuals of this curve; None if there are too few
    detail: float = 0.0  # length of the part shown in a second plot [s], 0 for none
    caption: str = ""  # caption, such as the value and its verdict
    held_out: bool = False  # whether the model was fitted to other data

    def __post_init__(self) -> None:
        """Thin the columns evenly."""
        stride = max(1, len(self.time) // _MOST_POINTS)
        for name in ("time", "measured", "modelled", "band", "reference"):
            column = getattr(self, name)
            if column is not None and stride > 1:
                object.__setattr__(self, name, column[::stride].copy())


@dataclass(frozen=True, eq=False)
class Correlation:
    """Correlation of the estimates of one fit."""

    title: str  # of the fit
    names: tuple[str, ...]  # of the p unknowns
    matrix: Vector  # (p, p) correlation of their values; NaN where one is not determined
    condition: float  # scaled condition number
    method: str = ""  # solution method
    bounds: tuple[str, ...] = ()  # unknowns set to a physical bound

    @classmethod
    def of_fit(cls, title: str, fit: Fit | None) -> tuple[Correlation, ...]:
        """Correlation of a fit; empty if there was nothing to fit."""
        if fit is None:
            return ()
        names = tuple(unknown.name for unknown in fit.unknowns)
        return (cls(title, names, fit.correlation, fit.condition, fit.method, fit.active_bounds),)


@dataclass(frozen=True, eq=False)
class StageResult:
    """Findings of one stage of an identification."""

    stage: str  # its name, one of stages.STAGES
    findings: tuple[Finding, ...] = ()  # all numbers, identified or not
    missing: str = ""  # what the recordings lack for the whole stage, "" if nothing
    fits: tuple[FitCurve, ...] = ()  # curves for the report
    correlations: tuple[Correlation, ...] = ()  # of its fits
    warnings: tuple[str, ...] = ()  # about the data
    notes: tuple[str, ...] = ()  # for the reader of the result
    provisional: bool = False  # whether a later stage that gives the same numbers knows them better
    # Name -> objects for exports, such as the arm with the identified bodies
    products: Mapping[str, object] = field(default_factory=dict)
