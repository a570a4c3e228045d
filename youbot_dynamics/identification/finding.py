"""Findings of an identification in one form for all stages: tables, numbers with verdicts, curves, correlations."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from youbot_dynamics.arrays import Vector
from youbot_dynamics.errors import IdentificationError
from youbot_dynamics.identification.least_squares import Estimate, Fit, Reason, Whiteness, whiteness
from youbot_dynamics.robot import PREFIX

# Names of products: the ConsistentInertia of the arm; RMS error (3,) of the twist of calibrated odometry
BODIES = "arm_bodies"
TWIST_ERROR = "twist_error"
# What some of the keys in names stand for, in words; other keys, such as {joint}, have names of their own.
CASES: Mapping[str, Mapping[str, str]] = {
    "axis": {"x": "forward", "y": "sideways", "yaw": "in yaw"},
    "wheel": {"fl": "front left", "fr": "front right", "rl": "rear left", "rr": "rear right"},
}


@dataclass(frozen=True)
class Row:
    """One row of a stage's table of findings: a number that it may find, or one for each axis, wheel, joint, ..."""

    # Name with keys, such as "robot.arm.{joint}.friction.coulomb"; with "robot." it is a parameter of the robot.
    pattern: str
    unit: str  # or several, separated by commas, if it depends on what the keys stand for
    words: str  # for people, with the same keys, such as "delay {axis}"
    # Model that is used as a whole and contains this number, even if it is not identifiable on its own; "" for none
    part_of: str = ""
    needed: bool = False  # whether that model is not used without this number
    optional: bool = False  # whether it may be listed only: then the robot's parameter stays as it is
    folded: bool = False  # whether it is a part of another finding, shown after that
    # Line of the short answer that tells it, with the same keys, and what it is called there; () for the tables alone
    told: tuple[str, ...] = ()
    quiet: bool = False  # whether the answer tells it only where it is refused
    since_command: bool = False  # whether it is a time that passes after a command
    # Whether a base that cannot move sideways lacks it, such as all of rollers; None: if it is of the axis y
    sideways: bool | None = None
    # Axis -> keys of findings of earlier stages that it is in proportion to, as far as these are identified
    scales: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    of: dict[str, str] = field(default_factory=dict)  # what the keys stand for, such as {"axis": "x"}
    called: Mapping[str, str] = field(default_factory=dict)  # words for some of them, such as {"joint_1": "elbow"}

    def refused(self, reason: Reason) -> Finding:
        """Finding without a value, for a reason."""
        return Finding(self, Estimate(self.key, self.unit.split(", ")[0], np.nan, np.nan, (np.nan, np.nan), reason))

    def at(self, **of: str) -> Row:
        """The row of one axis, wheel, joint, ..., by its key."""
        return replace(self, of=self.of | of)

    @property
    def key(self) -> str:
        """Last part of the name, with keys."""
        return self.pattern.rpartition(".")[2]

    @property
    def group(self) -> str:
        """What the number belongs to, such as "base.friction" or "arm.joint_3.motor"."""
        return self.pattern.removeprefix(f"{PREFIX}.").rpartition(".")[0].format(**self.of)

    @property
    def of_sideways(self) -> bool:
        """Whether only a base that can move sideways has it."""
        return self.of.get("axis") == "y" if self.sideways is None else self.sideways

    @property
    def is_parameter(self) -> bool:
        """Whether the robot has a parameter of this name."""
        return self.pattern.startswith(f"{PREFIX}.")

    @property
    def in_words(self) -> str:
        """The words with those of its axis, wheel, joint, ..."""
        return self.words.format(**self.cases)

    @property
    def cases(self) -> dict[str, str]:
        """What its keys stand for, in words."""
        own = self.called
        return {key: own.get(one) or CASES.get(key, {}).get(one, one.replace("_", " ")) for key, one in self.of.items()}


def joint_words(names: Sequence[str]) -> dict[str, str]:
    """Words for the joints of an arm by their keys: "elbow" for joint_2 if they are named shoulder_joint, elbow_joint.

    Parts that all names share are left out, unless numbers alone would remain. The name arm_joint_1 is "joint 1".
    """
    parts = [name.split("_") for name in names]
    while len(parts) > 1 and min(map(len, parts)) > 1 and len({part[-1] for part in parts}) == 1:
        parts = [part[:-1] for part in parts]
    while len(parts) > 1 and min(map(len, parts)) > 1 and len({part[0] for part in parts}) == 1:
        parts = [part[1:] for part in parts]
    short = ["_".join(part) for part in parts]
    if any(one.isdecimal() for one in short):
        short = list(names)
    keys = [f"joint_{k}" for k in range(1, len(names) + 1)]
    return {
        key: key.replace("_", " ") if name.endswith(key) else one
        for key, name, one in zip(keys, names, short, strict=True)
    }


class Table:
    """All findings that a stage may give; it cannot give others."""

    def __init__(self, *rows: Row) -> None:
        self.rows = rows

    def row(self, name: str, joint: str = "") -> Row:
        """Row of an estimate of a fit by its name, such as "wheel_coulomb_fl", with its axis, wheel, ...

        Its name is the last part of that in the result; if it is of a joint, the name of the joint may precede it.

        Raises:
            IdentificationError: the table has no such number.
        """
        own = name.removeprefix(f"{joint}_")
        for row in self.rows:
            parts = re.sub(r"{(\w+)}", lambda key: f"(?P<{key[1]}>{'|'.join(CASES.get(key[1], ['.+']))})", row.key)
            if found := re.fullmatch(parts, own):
                return row.at(**found.groupdict(), **({"joint": joint} if joint else {}))
        raise IdentificationError("finding", got=name, expected=", ".join(row.key for row in self.rows))


@dataclass(frozen=True)
class Finding:
    """One estimated number of a stage's table."""

    row: Row  # with what its keys stand for
    estimate: Estimate  # value, unit, standard error, interval and verdict
    samples: int = 0  # number of readings or rows used
    valid_for: str = ""  # range of the data, such as "wheel speeds of 0.2 to 9.1 rad/s"
    # Further numbers of this estimate, such as the gain of a delay
    details: Mapping[str, float | str] = field(default_factory=dict)
    # Whether an optional parameter is listed only; if it is not given, where it is not identified
    listed: bool | None = None
    together: bool = False  # whether the model of which it is a part was identified as a whole

    def __post_init__(self) -> None:
        """Check the unit; list an optional parameter only."""
        if self.listed is None:
            object.__setattr__(self, "listed", self.row.optional and not self.identified)
        if self.estimate.unit not in self.row.unit.split(", "):
            raise IdentificationError(f"finding {self.name}", got=f"in {self.estimate.unit}", expected=self.row.unit)

    @property
    def name(self) -> str:
        """Name in results, such as "robot.base.friction.viscous_x"; without "robot." if it is listed only."""
        name = self.row.pattern.format(**self.row.of)
        return name.removeprefix(f"{PREFIX}.") if self.listed else name

    @property
    def part_of(self) -> str:
        """Name of the model in which the number is used, "" for a number that stands alone."""
        return self.row.part_of if self.together else ""

    @property
    def identified(self) -> bool:
        """Whether the verdict is "identified"."""
        return self.estimate.identified

    @property
    def usable(self) -> bool:
        """Whether a relaunch should use the value: identified, or part of a model identified as a whole."""
        return self.identified or self.together

    @property
    def is_parameter(self) -> bool:
        """Whether the robot has a parameter of this name, so that a relaunch can use the value."""
        return self.row.is_parameter and not self.listed

    def refused(self, reason: Reason) -> Finding:
        """The same, not identifiable for a reason and not usable."""
        return replace(self, estimate=self.estimate.refused(reason), listed=self.listed or None, together=False)


def asked(findings: Sequence[Finding]) -> list[Finding]:
    """Findings of a stage that count and are shown first: parameters of the robot, or all if there are none."""
    first = [finding for finding in findings if not finding.row.folded]
    return [finding for finding in first if finding.is_parameter] or first


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
    whiteness: Whiteness | None = None  # of the residuals of the fit; those of all of this curve if it is not given
    detail: float = 0.0  # length of the part shown in a second plot [s], 0 for none
    caption: str = ""  # caption, such as the value and its verdict
    held_out: bool = False  # whether the model was fitted to other data

    def __post_init__(self) -> None:
        """Test the residuals, then thin the columns evenly."""
        sound = np.isfinite(self.measured - self.modelled)
        if self.whiteness is None and sound.any():
            test = whiteness(self.time[sound], (self.measured - self.modelled)[sound])
            object.__setattr__(self, "whiteness", test)
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
    matrix: Vector  # (p, p) correlation of their values
    condition: float  # scaled condition number
    method: str = ""  # solution method
    bounds: tuple[str, ...] = ()  # unknowns set to a physical bound

    @classmethod
    def of_fit(cls, title: str, fit: Fit | None, first: int = 0) -> tuple[Correlation, ...]:
        """Correlation of what a fit determines, from unknown `first` on; empty if there was nothing to fit."""
        if fit is None:
            return ()
        used = [k for k in range(first, len(fit.unknowns)) if np.isfinite(fit.covariance[k, k])]
        names, matrix = tuple(fit.unknowns[k].name for k in used), fit.correlation[np.ix_(used, used)]
        return (cls(title, names, matrix, fit.condition, fit.method, fit.active_bounds),)


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
