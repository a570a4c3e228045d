"""What an identification found, in one form for all its stages: numbers with verdicts, curves, correlations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from youbot_dynamics.arrays import Vector
from youbot_dynamics.identification.least_squares import Estimate, Fit, Whiteness
from youbot_dynamics.robot import PREFIX

BODIES = "arm_bodies"  # name of a product: the ConsistentInertia of the arm


@dataclass(frozen=True)
class Finding:
    """One number that was looked for.

    Args:
        name: of the robot's parameter, such as "robot.base.friction.viscous_x"; where the robot has none, the same
            without "robot.", such as "base.friction.missed_inertia_x".
        estimate: value, unit, standard error, interval and verdict.
        samples: readings or rows it rests on.
        valid_for: range of the data it holds for, such as "wheel speeds of 0.2 to 9.1 rad/s".
        details: further numbers of this estimate, such as the gain of a delay.
        part_of: what this number is a part of that is only ever used as a whole, and as a whole is identified: then it
            is of use even where the data leave it open by itself; "" for a number that stands alone.
    """

    name: str
    estimate: Estimate
    samples: int = 0
    valid_for: str = ""
    details: Mapping[str, float | str] = field(default_factory=dict)
    part_of: str = ""

    @property
    def identified(self) -> bool:
        """The verdict as a switch."""
        return self.estimate.identified

    @property
    def usable(self) -> bool:
        """Whether a relaunch should use the value: identified, or part of a whole that is."""
        return self.identified or bool(self.part_of)

    @property
    def is_part_of_delay(self) -> bool:
        """Whether it is dead time or lag, to be read after the one delay of an axis."""
        return self.name.rpartition(".")[2].startswith(("dead_time", "lag"))

    @property
    def is_parameter(self) -> bool:
        """Whether the robot has a parameter of that name, so that a relaunch can use the value."""
        return self.name.startswith(f"{PREFIX}.")


@dataclass(frozen=True, eq=False)
class FitCurve:
    """How a model follows what was measured, for the report."""

    title: str  # of the curve, such as "Channel x" or "arm_joint_4"
    quantity: str  # what is drawn, such as "motion" or "torque"
    unit: str  # of all columns but the time
    time: Vector  # (n,) [s], increasing
    measured: Vector  # (n,)
    modelled: Vector  # (n,)
    modelled_is: str  # words for the legend, such as "shifted by the delay"
    band: Vector | None = None  # (n,) half-width of the model's 95 % band; None where it is not known
    reference: Vector | None = None  # (n,) what was commanded; None where that is of no interest
    whiteness: Whiteness | None = None  # of all residuals behind this curve; None where there are too few
    detail: float = 0.0  # length of a detail worth a second plot [s], 0 for none
    caption: str = ""  # what is to be said about it, such as the value and its verdict
    held_out: bool = False  # the model was fitted to other data than these


@dataclass(frozen=True, eq=False)
class Correlation:
    """How the estimates of one fit hang together."""

    title: str  # of the fit
    names: tuple[str, ...]  # of the p unknowns
    matrix: Vector  # (p, p) correlation of their values; NaN where one is not determined
    condition: float  # scaled condition number
    method: str = ""  # how it was solved
    bounds: tuple[str, ...] = ()  # unknowns that were put at a physical bound

    @classmethod
    def of_fit(cls, title: str, fit: Fit | None) -> tuple[Correlation, ...]:
        """That of a fit; none where there was nothing to fit."""
        if fit is None:
            return ()
        names = tuple(unknown.name for unknown in fit.unknowns)
        return (cls(title, names, fit.correlation, fit.condition, fit.method, fit.active_bounds),)


@dataclass(frozen=True, eq=False)
class StageResult:
    """What one stage of an identification found."""

    stage: str  # its name, one of stages.STAGES
    findings: tuple[Finding, ...] = ()  # what was looked for
    missing: str = ""  # what the recordings lack for this stage as a whole, "" where they had what it needs
    fits: tuple[FitCurve, ...] = ()  # curves for the report
    correlations: tuple[Correlation, ...] = ()  # of its fits
    warnings: tuple[str, ...] = ()  # what is wrong with the data
    notes: tuple[str, ...] = ()  # what the reader of the result should know
    # Name -> what an export needs beside the numbers, such as the arm with the bodies that were found
    products: Mapping[str, object] = field(default_factory=dict)
