"""Compare the calibration over whole drives with published ones: `python -m bench.optiodom FOLDER`.

FOLDER holds sets of the public benchmark OptiOdom (github.com/sousarbarb/optiodom, folder `data/`) as KIND/PATH/ID/,
with KIND diff, tricyc, omni3 or omni4. Nothing is fetched. Each set is left out once: the geometry is fitted to all
other sets of its kind, odometry of the set is integrated from its first pose, and its errors are compared with those of
each published geometry of another set. So no geometry is judged on the set that it was fitted to.

Source: Sousa, Petry, Costa, Moreira 2022, OptiOdom: a generic approach for odometry calibration of wheeled mobile
robots.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.stats import chi2

from youbot_dynamics.arrays import Vector
from youbot_dynamics.identification.calibration import CalibrationSignals, WholeWay, calibrate_whole_way, held
from youbot_dynamics.kinematics import steering
from youbot_dynamics.kinematics.mecanum import MecanumBase

MEASURES = "worst position [m]", "worst heading [deg]", "rms position [m]", "rms heading [deg]"
_OMNI = np.radians([30.0, 150.0, 270.0])
_SIGNS = {"diff": (1.0, 1.0), "omni3": (-1.0, -1.0, -1.0), "omni4": (1.0, -1.0, 1.0, -1.0)}
_FAR, _SHARE, _BELOW = 1.1, 0.9, 0.85  # goals: no cell above, share of the cells at most 1, mean of a kind
_SPANS = 5.0, 10.0, 20.0, 40.0, np.inf  # [s] over which the covariance of odometry is tried
_LEAST_WAY = 0.1  # [m] in a span
_REGION = chi2.ppf(0.95, [1, 2])  # largest squared errors of yaw and position, in units of their covariance

# Published geometry by set: size L [m], diameters [m]; of the tricycle wheelbase, diameter, steering offset [deg].
PUBLISHED = {
    "diff/circular/231220200121": (0.2015, 0.0834, 0.08346),
    "diff/circular/231220200141": (0.2016, 0.08319, 0.08328),
    "diff/circular/250620202104": (0.2008, 0.08334, 0.08338),
    "diff/square/231220200029": (0.2008, 0.08341, 0.08347),
    "diff/square/230620202042": (0.2006, 0.08371, 0.08378),
    "diff/free/030120210006": (0.2017, 0.08374, 0.08376),
    "diff/ivanjko/250620201618": (0.1996, 0.08376, 0.08395),
    "tricyc/circular/140120211415": (0.1519, 0.06247, -1.208),
    "tricyc/circular/140120211513": (0.1507, 0.06142, -1.144),
    "tricyc/square/140120211430": (0.1562, 0.06322, -1.207),
    "tricyc/square/140120211543": (0.1599, 0.06431, -1.087),
    "tricyc/free/140120211508": (0.1542, 0.06326, -1.139),
    "tricyc/free/140120211606": (0.1503, 0.06247, -1.272),
    "omni3/circular/221220201701": (0.1908, 0.09753, 0.09641, 0.09676),
    "omni3/circular/221220201730": (0.194, 0.09634, 0.09603, 0.09583),
    "omni3/square/221220201934": (0.1916, 0.1001, 0.09829, 0.09886),
    "omni3/joystick/221220202228": (0.1885, 0.09725, 0.09688, 0.0972),
    "omni4/circular/080920201015": (0.4118, 0.06345, 0.06348, 0.06336, 0.06425),
    "omni4/circular/231220200440": (0.4091, 0.06239, 0.06334, 0.06327, 0.06309),
    "omni4/circular/231220200502": (0.4115, 0.06284, 0.06352, 0.06364, 0.06354),
    "omni4/square/080920201715": (0.4251, 0.06681, 0.06787, 0.06783, 0.06787),
}


@dataclass(frozen=True, eq=False)
class Run:
    """One run of a set."""

    time: Vector  # (m,) [s]
    poses: Vector  # (m, 3) true [m, m, rad]
    as_logged: Vector  # (m, n) angles that the columns of the geometry rolled [rad]
    mended: Vector  # the same, with readings that the log held counted once
    rows_held: float  # mean number of rows for which the log repeats a reading; 1 if it does not

    def signals(self, number: int) -> CalibrationSignals:
        """As the calibration takes it."""
        return CalibrationSignals(self.time, self.mended, self.time, self.poses, number)


class DataSet(NamedTuple):
    """A set of runs, with the geometry of its metadata."""

    key: str  # KIND/PATH/ID
    runs: list[Run]
    nominal: tuple[float, ...]

    @property
    def kind(self) -> str:
        """Kind of the robot."""
        return self.key.split("/")[0]


def geometry(kind: str, values: Sequence[float]) -> MecanumBase:
    """Wheels of a robot of the benchmark by its size, diameters and, for a tricycle, offset of the steering angle."""
    size, radii = values[0], 0.5 * np.array(values[1:])
    if kind == "tricyc":
        return MecanumBase.tricycle(0.5 * values[1], size, float(np.radians(values[2])))
    if kind == "diff":  # the benchmark names the right wheel first
        return MecanumBase.differential(1.0, size, radii[::-1] - 1.0)
    if kind == "omni3":
        return MecanumBase.omni_circle(1.0, size, _OMNI, radii - 1.0)
    return MecanumBase.rectangular(1.0, 0.25 * size, 0.25 * size, 1.0, radii - 1.0)


def read_set(folder: Path, kind: str, path: str) -> DataSet:
    """Read all runs of a set.

    Raises:
        FileNotFoundError, ValueError, KeyError: it is none of the benchmark's.
    """
    with open(folder / f"{folder.name}_metadata.csv", encoding="utf-8") as lines:
        facts = {row[0]: [cell for cell in row[1:] if cell] for row in csv.reader(lines) if row}
    turns = float(facts["ngear"][0]) * float(facts["encRes"][0])
    lengths, diameters = (list(map(float, facts[name])) for name in ("Li", "Di"))
    nominal = (sum(lengths), *diameters, *((float(facts["Thi"][0]),) if kind == "tricyc" else ()))
    files = sorted(folder.glob(f"{folder.name}_run-*.csv"))
    return DataSet(f"{kind}/{path}/{folder.name}", [_read_run(file, kind, turns) for file in files], nominal)


def _read_run(file: Path, kind: str, turns: float) -> Run:
    """Read a run, with the angles [rad] by `turns` counts a turn."""
    table = np.loadtxt(file, delimiter=",")
    steps = table[:, 4:].copy()
    steps[0] = 0.0  # of the cycle before the first pose
    if kind == "tricyc":
        rolled = steering.rolled(np.column_stack([np.cumsum(2.0 * np.pi / turns * steps[:, 0]), table[:, 5]]))
        return Run(table[:, 0], table[:, 1:4], rolled, rolled, 1.0)
    found = held(steps)
    per_count = 2.0 * np.pi / turns * np.array(_SIGNS[kind])
    logged, mended = (
        np.cumsum(per_count * counts, axis=0)[:, :: -1 if kind == "diff" else 1]
        for counts in (steps, steps if found is None else found.speeds)
    )
    return Run(table[:, 0], table[:, 1:4], logged, mended, 1.0 if found is None else found.rows)


def errors(run: Run, angles: Vector, wheels: MecanumBase, sensor: Vector) -> Vector:
    """Errors (m, 2) [m, deg] of odometry that starts at the first true pose of the tracked body, at `sensor` (3,)."""
    steps = np.diff(angles, axis=0) @ wheels.forward_matrix.T
    yaw = np.concatenate([[0.0], np.cumsum(steps[:, 2])])
    middle, chord = yaw[:-1] + 0.5 * steps[:, 2], np.sinc(0.5 * steps[:, 2] / np.pi)
    base = np.concatenate([[0.0], np.cumsum(chord * (steps[:, 0] + 1j * steps[:, 1]) * np.exp(1j * middle))])
    body = base + (sensor[0] + 1j * sensor[1]) * np.exp(1j * yaw)
    start = run.poses[0, 2] - sensor[2]
    position = np.abs((body - body[0]) * np.exp(1j * start) - (run.poses[:, :2] - run.poses[0, :2]) @ [1.0, 1j])
    turn = yaw + run.poses[0, 2] - run.poses[:, 2]
    return np.column_stack([position, np.degrees(np.abs((turn + np.pi) % (2.0 * np.pi) - np.pi))])


def within(run: Run, found: WholeWay, span: float) -> Vector:
    """Whether errors of odometry that starts anew after each span [s] lie in the 95 % region of its covariance.

    Returns:
        (k, 2): of yaw and position in each span; by the growths that `found` has for other sets.
    """
    steps = np.diff(run.mended, axis=0) @ found.wheels.forward_matrix.T
    ways = np.hypot(steps[:, 0], steps[:, 1]) + found.wheels.reach * np.abs(steps[:, 2])
    parts = max(1, int((run.time[-1] - run.time[0]) // span))
    cuts = np.linspace(0, len(steps), parts + 1).astype(int)
    seen = run.poses - found.sensor * [0.0, 0.0, 1.0]
    rows = []
    for i, j in zip(cuts[:-1], cuts[1:], strict=True):
        yaw = seen[i, 2] + np.concatenate([[0.0], np.cumsum(steps[i:j, 2])])
        chord = np.sinc(0.5 * steps[i:j, 2] / np.pi) * np.exp(1j * (yaw[:-1] + 0.5 * steps[i:j, 2]))
        base = np.concatenate([[0.0], np.cumsum(chord * (steps[i:j, 0] + 1j * steps[i:j, 1]))])
        body = base + complex(*found.sensor[:2]) * np.exp(1j * yaw)
        off = body[-1] - body[0] - complex(*(seen[j, :2] - seen[i, :2]))
        turn = (yaw[-1] - seen[j, 2] + np.pi) % (2.0 * np.pi) - np.pi
        arm = 1j * (body[-1] - 0.5 * (base[1:] + base[:-1]))
        moved = np.column_stack([arm.real, arm.imag])
        way, growth = float(np.sum(ways[i:j])), found.drift.yaw_growth**2
        if way < _LEAST_WAY:
            continue
        position = found.drift.position_growth**2 * way * np.eye(2) + growth * (moved.T * ways[i:j]) @ moved
        error = np.array([off.real, off.imag])
        rows.append((turn**2 <= _REGION[0] * growth * way, error @ np.linalg.solve(position, error) <= _REGION[1]))
    return np.array(rows).reshape(-1, 2)


def measures(runs: Sequence[Run], wheels: MecanumBase, sensor: Vector, logged: bool) -> Vector:
    """The four `MEASURES` (4,) of a set."""
    table = np.vstack([errors(run, run.as_logged if logged else run.mended, wheels, sensor) for run in runs])
    return np.concatenate([np.max(table, axis=0), np.sqrt(np.mean(table**2, axis=0))])


def fitted(sets: Sequence[DataSet]) -> WholeWay:
    """Geometry by all runs of sets of one kind."""
    runs = [run for each in sets for run in each.runs]
    return calibrate_whole_way([run.signals(k) for k, run in enumerate(runs)], geometry(sets[0].kind, sets[0].nominal))


class Left(NamedTuple):
    """A set that was left out."""

    key: str
    ours: Vector  # (4,) `MEASURES`
    ratios: Vector  # (k, 4) over those of each published geometry of another set
    inside: int  # runs whose end lies within the predicted drift
    runs: int
    covered: tuple[Vector, ...]  # (k, 2) of each of `_SPANS`: whether yaw and position lie in their region
    growths: tuple[float, float]  # of yaw and position, by the other sets


def left_out(sets: Sequence[DataSet], each: DataSet) -> Left:
    """Fit the other sets of its kind and compare."""
    others = [other for other in sets if other.kind == each.kind and other.key != each.key]
    result = fitted(others)
    ours = measures(each.runs, result.wheels, result.sensor, logged=False)
    still = np.zeros(3)
    published = [
        measures(each.runs, geometry(each.kind, PUBLISHED[other.key]), still, logged=True)
        for other in others
        if other.key in PUBLISHED
    ]
    inside = 0
    for run in each.runs:
        end = errors(run, run.mended, result.wheels, result.sensor)[-1]
        steps = np.diff(run.mended, axis=0) @ result.wheels.forward_matrix.T
        reach = result.wheels.reach
        way = float(np.sum(np.hypot(steps[:, 0], steps[:, 1]) + reach * np.abs(steps[:, 2])))
        position, yaw = result.drift.within(way, float(np.sum(np.abs(steps[:, 2]))))
        inside += bool(end[0] <= position) + bool(np.radians(end[1]) <= yaw)
    covered = tuple(np.vstack([within(run, result, span) for run in each.runs]) for span in _SPANS)
    growths = result.drift.yaw_growth, result.drift.position_growth
    ratios = ours / np.array(published).reshape(-1, 4)
    return Left(each.key, ours, ratios, inside, 2 * len(each.runs), covered, growths)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the comparison; 0 if the goals hold, 1 if not, 2 for a wrong folder."""
    parser = argparse.ArgumentParser(prog="python -m bench.optiodom", description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="folder that holds KIND/PATH/ID")
    folder: Path = parser.parse_args(arguments).folder
    found = sorted(folder.glob("*/*/*/*_metadata.csv"))
    try:
        sets = [read_set(file.parent, *file.parent.relative_to(folder).parts[:2]) for file in found]
    except (OSError, ValueError, KeyError) as error:
        print(f"bench.optiodom: {folder} is no folder of the benchmark: {error}", file=sys.stderr)
        return 2
    kinds = [kind for kind in ("diff", "tricyc", "omni3", "omni4") if sum(each.kind == kind for each in sets) > 1]
    if not kinds:
        print(f"bench.optiodom: {folder}: two sets of a kind or more as KIND/PATH/ID are needed", file=sys.stderr)
        return 2
    console = Console(width=None if sys.stdout.isatty() else 150)
    met = True
    for kind in kinds:
        met &= _show_kind(console, kind, [each for each in sets if each.kind == kind])
    return 0 if met else 1


def _show_kind(console: Console, kind: str, sets: Sequence[DataSet]) -> bool:
    """Print the comparison of one kind of robot; return whether its goals hold."""
    parts = [left_out(sets, each) for each in sets]
    table = Table(title=f"{kind}: fitted to the other sets; over the published geometries of other sets (best, mean)")
    table.add_column("set left out")
    for measure in MEASURES:
        table.add_column(measure, justify="right")
    for part in parts:
        cells = [
            f"{value:.3g} ({np.max(ratio):.2f}, {np.mean(ratio):.2f})" if len(ratio) else f"{value:.3g}"
            for value, ratio in zip(part.ours, part.ratios.T, strict=True)
        ]
        table.add_row(part.key, *cells)
    console.print(table)
    repeats = [run.rows_held for each in sets for run in each.runs]
    if max(repeats) > 1.0:
        console.print(f"  the log repeats its readings: each over {min(repeats):.2f} to {max(repeats):.2f} rows")
    own = Table(title=f"{kind}: geometry of each set alone, +- 95 %")
    own.add_column("set")
    for estimate in fitted(sets[:1]).estimates:
        own.add_column(f"{estimate.name} {'' if estimate.unit == '1' else estimate.unit}".strip(), justify="right")
    for each in sets:
        values = [
            f"{e.value:.4g} +-{0.5 * (e.interval[1] - e.interval[0]):.1g}{'' if e.identified else ' ?'}"
            for e in fitted([each]).estimates
        ]
        own.add_row(each.key, *values)
    console.print(own)
    _show_cover(console, kind, parts)
    ratios = np.vstack([part.ratios for part in parts])
    if not ratios.size:
        console.print("  no published geometry of these sets is known: nothing to compare with\n")
        return False
    inside, runs = (sum(getattr(part, name) for part in parts) for name in ("inside", "runs"))
    low, mean, far = float(np.mean(ratios <= 1.0)), float(np.mean(ratios)), float(np.max(ratios))
    console.print(
        f"  {ratios.size} cells: {100 * low:.0f} % at most the published (goal {100 * _SHARE:.0f}), mean {mean:.2f} "
        f"of it (goal {_BELOW}), largest {far:.2f} (goal {_FAR}); {100 * inside / runs:.0f} % of {runs} ends within "
        "the predicted drift (goal 90 to 99)\n"
    )
    return low >= _SHARE and mean <= _BELOW and far <= _FAR and 0.9 <= inside / runs <= 0.99


def _show_cover(console: Console, kind: str, parts: Sequence[Left]) -> None:
    """Print how often the covariance of odometry held on sets that were left out."""
    table = Table(title=f"{kind}: spans of sets left out in the 95 % region of the covariance of odometry")
    table.add_column("growth from the other sets")
    for span in _SPANS:
        table.add_column(f"{span:g} s" if np.isfinite(span) else "whole run", justify="right")
    growths = np.array([part.growths for part in parts]).T
    shares = [np.mean(np.vstack(spans), axis=0) for spans in zip(*(part.covered for part in parts), strict=True)]
    for k, name, unit in ((0, "yaw", "rad/sqrt(m)"), (1, "position", "m/sqrt(m)")):
        cells = [f"{100.0 * share[k]:.0f} %" for share in shares]
        table.add_row(f"{name} {min(growths[k]):.3f} to {max(growths[k]):.3f} {unit}", *cells)
    console.print(table)


if __name__ == "__main__":
    sys.exit(main())
