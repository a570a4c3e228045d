"""Error against effort of the tracker's two laws: a table, and a figure if asked for.

    python scripts/error_effort.py                                     the digital twin
    python scripts/error_effort.py --plant mujoco --out curve.svg      contact physics, with a figure

Effort is what the feedback adds: the root mean square of command less feed-forward over a program. Error is the
standard deviation of the true pose about the desired one. Both are means over the seeds; all are of robots whose
response was identified from another drive, as in the tests.
"""

from __future__ import annotations

import argparse
import math
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "test" / "support")]

import response_runs  # noqa: E402
import tracking_runs  # noqa: E402
from delay_runs import calibrated_truth  # noqa: E402

from youbot_dynamics.control.tracker import TrackerSettings  # noqa: E402
from youbot_dynamics.files import place_to_write  # noqa: E402
from youbot_dynamics.robot import Robot  # noqa: E402
from youbot_dynamics.simulation.scenario._drive import Drive  # noqa: E402

LAWS = ("pid", "lq")
PLANTS = ("twin", "mujoco")
SETTINGS = (0.25, 0.5, 1.0, 1.5, 2.0)  # aggressiveness; 1 is shipped
AXES = ("x", "y", "yaw")
_ROLLERS = 6


@dataclass(frozen=True)
class Point:
    """One setting of one law in one cell.

    Args:
        error: (3,) standard deviations [m, m, rad].
        effort: (3,) of the feedback [m/s, m/s, rad/s].
    """

    error: np.ndarray
    effort: np.ndarray


def feedback_effort(run: Drive) -> np.ndarray:
    """Root mean square (3,) of command less feed-forward, from the first command to the end of the trajectory."""
    rows = [
        request.state.correction
        for request in run.tracker_requests
        if request.stamp <= run.start + run.desired.duration
    ]
    return np.sqrt(np.mean(np.square(rows), axis=0))


@cache
def identified(seed: int) -> Robot:
    """Our robot with the response that one drive of the twin told."""
    return response_runs.with_response(
        *response_runs.response_of(response_runs.excitation(), calibrated_truth(seed), seed)
    )


def measure(plant: str, program: str, law: str, aggressiveness: float, seed: int) -> Point:
    """Drive a program once."""
    settings = TrackerSettings(tracker=law, aggressiveness=aggressiveness)
    if plant == "twin":
        run = response_runs.drive_program(program, identified(seed), calibrated_truth(seed), seed + 1000, settings)
        return Point(response_runs.errors_of(run).std(axis=0), feedback_effort(run))
    robot = tracking_runs.identified_in_mujoco(seed, _ROLLERS).robot
    run = tracking_runs.drive_in_mujoco(program, robot, seed, _ROLLERS, settings=settings, interface="wheels")
    return Point(tracking_runs.errors_of(run).truth.std(axis=0), feedback_effort(run))


def mean(points: list[Point]) -> Point:
    """Means over the seeds."""
    return Point(np.mean([p.error for p in points], axis=0), np.mean([p.effort for p in points], axis=0))


def lq_holds(pid: Point, lq: Point) -> bool:
    """Whether LQ's errors are within 10 % or 0.1 mm, 0.1 mrad of those of PID."""
    return bool(np.all(lq.error <= np.maximum(1.1 * pid.error, pid.error + 1e-4)))


def curves(
    plant: str, programs: list[str], settings: list[float], seeds: list[int]
) -> dict[tuple[str, str], list[Point]]:
    """Points of each program and law, one a setting; printed as they come, as a table."""
    print("| plant | program | law | aggressiveness | error x, y, yaw [mm, mm, mrad] | effort [mm/s, mm/s, mrad/s] |")
    print("|---|---|---|---|---|---|")
    points: dict[tuple[str, str], list[Point]] = {}
    for program in programs:
        for law in LAWS:
            for setting in settings:
                point = mean([measure(plant, program, law, setting, seed) for seed in seeds])
                points.setdefault((program, law), []).append(point)
                error, effort = (", ".join(f"{1e3 * v:.3f}" for v in part) for part in (point.error, point.effort))
                print(f"| {plant} | {program} | {law} | {setting:g} | {error} | {effort} |", flush=True)
    return points


def draw(points: dict[tuple[str, str], list[Point]], settings: list[float], path: Path) -> None:
    """Figure of a row a program, a column an axis."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.rcParams.update({"svg.hashsalt": "error_effort", "svg.fonttype": "none"})
    programs = list(dict.fromkeys(program for program, _ in points))
    figure, panels = plt.subplots(len(programs), 3, figsize=(9.0, 2.4 * len(programs)), squeeze=False)
    for row, program in zip(panels, programs, strict=True):
        for axis, panel in enumerate(row):
            for law, colour in zip(LAWS, ("tab:blue", "tab:orange"), strict=True):
                errors = [1e3 * point.error[axis] for point in points[program, law]]
                efforts = [1e3 * point.effort[axis] for point in points[program, law]]
                panel.plot(efforts, errors, "o-", color=colour, markersize=3, label=law)
                if 1.0 in settings:
                    shipped = settings.index(1.0)
                    panel.plot(efforts[shipped], errors[shipped], "s", color=colour, markersize=7)
            panel.set_ylim(0.0, 1.15 * panel.get_ylim()[1])
            panel.set_title(f"{program}, {AXES[axis]}", fontsize=9)
            panel.set_xlabel(f"effort [{'mrad/s' if axis == 2 else 'mm/s'}]", fontsize=8)
            panel.set_ylabel(f"error [{'mrad' if axis == 2 else 'mm'}]", fontsize=8)
            panel.tick_params(labelsize=7)
            panel.grid(alpha=0.3)
    panels[0, 0].legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(place_to_write(path), metadata={"Date": None} if path.suffix == ".svg" else None)


def main() -> int:
    """Measure, print, draw; exit code 1 where LQ does not hold beside the shipped PID."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plant", choices=PLANTS, default="twin")
    parser.add_argument("--programs", nargs="+", default=list(response_runs.PROGRAMS), choices=response_runs.PROGRAMS)
    parser.add_argument("--settings", nargs="+", type=float, default=list(SETTINGS), help="aggressiveness")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2], help="robots")
    parser.add_argument("--out", type=Path, help="figure, .svg or .png")
    arguments = parser.parse_args()
    # Before minutes of driving.
    if not all(0.0 < setting < math.inf for setting in arguments.settings):
        parser.error(f"argument --settings: got {arguments.settings}, expected finite numbers above 0")
    if min(arguments.seeds) < 0:
        parser.error(f"argument --seeds: got {min(arguments.seeds)}, expected 0 or more")
    out = arguments.out
    if out is not None and (out.suffix not in (".svg", ".png") or not out.absolute().parent.is_dir()):
        parser.error(f"argument --out: got {out}, expected a file .svg or .png in a folder that is there")
    points = curves(arguments.plant, arguments.programs, arguments.settings, arguments.seeds)
    if arguments.out is not None:
        draw(points, arguments.settings, arguments.out)
    if 1.0 not in arguments.settings:
        return 0
    shipped = arguments.settings.index(1.0)
    lost = [
        name for name in arguments.programs if not lq_holds(points[name, "pid"][shipped], points[name, "lq"][shipped])
    ]
    print(f"\nLQ beside the shipped PID: {'holds in every cell' if not lost else 'loses in ' + ', '.join(lost)}")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
