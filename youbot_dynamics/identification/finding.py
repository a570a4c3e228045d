"""What an identification found, in one form for all its stages: numbers with verdicts, curves, correlations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from youbot_dynamics.arrays import read_only
from youbot_dynamics.identification.least_squares import Estimate
from youbot_dynamics.robot import PREFIX

if TYPE_CHECKING:
    from youbot_dynamics.identification.least_squares import Whiteness

from youbot_dynamics.arrays import Vector

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
    def is_parameter(self) -> bool:
        """Whether the robot has a parameter of that name, so that a relaunch can use the value."""
        return self.name.startswith(f"{PREFIX}.")


@dataclass(frozen=True, eq=False)
class FitCurve:
    """How a model follows what was measured, for the report.

    Args:
        title: of the curve, such as "Channel x" or "arm_joint_4".
        quantity: what is drawn, such as "motion" or "torque".
        unit: of all columns but the time.
        time: (n,) [s], increasing.
        measured: (n,).
        modelled: (n,).
        modelled_is: words for the legend, such as "shifted by the delay".
        band: (n,) half-width of the model's 95 % band; None where it is not known.
        reference: (n,) what was commanded; None where that is of no interest.
        whiteness: of all residuals behind this curve; None where there are too few.
        detail: length of a detail worth a second plot [s], 0 for none.
        caption: what is to be said about it, such as the value and its verdict.
    """

    title: str
    quantity: str
    unit: str
    time: Vector
    measured: Vector
    modelled: Vector
    modelled_is: str
    band: Vector | None = None
    reference: Vector | None = None
    whiteness: Whiteness | None = None
    detail: float = 0.0
    caption: str = ""

    def __post_init__(self) -> None:
        """Keep the arrays read-only."""
        for name in ("time", "measured", "modelled", "band", "reference"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, read_only(np.array(value, dtype=float)))


@dataclass(frozen=True, eq=False)
class Correlation:
    """How the estimates of one fit hang together.

    Args:
        title: of the fit.
        names: of the p unknowns.
        matrix: (p, p) correlation of their values; NaN where one is not determined.
        condition: scaled condition number.
        method: how it was solved.
        bounds: unknowns that were put at a physical bound.
    """

    title: str
    names: tuple[str, ...]
    matrix: Vector
    condition: float
    method: str = ""
    bounds: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Keep the matrix read-only."""
        object.__setattr__(self, "matrix", read_only(np.array(self.matrix, dtype=float)))


@dataclass(frozen=True, eq=False)
class StageResult:
    """What one stage of an identification found.

    Args:
        stage: its name, one of stages.STAGES.
        findings: what was looked for.
        missing: what the recordings lack for this stage as a whole, "" where they had what it needs.
        fits: curves for the report.
        correlations: of its fits.
        warnings: what is wrong with the data.
        notes: what the reader of the result should know.
        products: name -> what an export needs beside the numbers, such as the arm with the bodies that were found.
    """

    stage: str
    findings: tuple[Finding, ...] = ()
    missing: str = ""
    fits: tuple[FitCurve, ...] = ()
    correlations: tuple[Correlation, ...] = ()
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    products: Mapping[str, object] = field(default_factory=dict)
