"""Freeze what `identify` finds in public and drawn recordings, and compare two such records.

    python scripts/frozen_results.py run OUT [NAME ...]     one JSON a recording in OUT; all of them by default
    python scripts/frozen_results.py compare BEFORE AFTER   what differs by more than 1e-9, and texts that changed

A change of structure must leave all of it as it is. Public recordings lie in ../shared/data and ../shared/cases; those
that are absent are skipped. Drawn ones are made once, in the folder bags beside OUT. A recording has 120 s of processor
time; one that needs more is recorded as such.
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import resource
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "test" / "support"), str(ROOT / "test" / "identification")]

from youbot_dynamics.errors import YoubotDynamicsError  # noqa: E402
from youbot_dynamics.robot import load_robot  # noqa: E402

DATA, CASES = (ROOT.parent / "shared" / name for name in ("data", "cases"))
LIMIT = 120  # [s] of processor time for a recording
SAME = 1e-9  # relative difference that is none
_FURTHER = {  # left out, and why
    "base/tape_inches": "a recording of `calibrate --tape`, which is no stage of `identify`",
    "base/live_gyro_and_rate.py": "a live robot",
    "arm/two_messages.mcap": "is refused on reading, before any stage",
    "arm/topic_echo.csv": "cannot be described by columns",
}

Made = Callable[[Path], dict[str, Any]]  # folder for drawn bags -> record


def _number(value: float) -> float | str:
    return float(value) if math.isfinite(value) else str(value)


def _estimates(found: Iterable[Any], names: Iterable[str] | None = None) -> dict[str, Any]:
    """Record of estimates, by their own names or others."""
    estimates = list(found)
    return {
        name: {
            "value": _number(one.value),
            "standard_error": _number(one.standard_error),
            "interval": [_number(end) for end in one.interval],
            "identified": bool(one.identified),
            "verdict": one.verdict,
        }
        for name, one in zip(names or (one.name for one in estimates), estimates, strict=True)
    }


# Recordings that are read as a user gives them


def _identified(path: Path, robot_file: Path | str | None = None, columns: str = "", **options: Any) -> dict[str, Any]:
    from youbot_dynamics.identification.pipeline import identify
    from youbot_dynamics.identification.reading import Options

    only = options.pop("only", ())
    if robot_file is not None and not isinstance(robot_file, Path):
        robot_file = ROOT / "config" / "robots" / f"{robot_file}.yaml"
    robot = load_robot(robot_file=robot_file)
    found = identify([path], robot, Options(columns=columns, **options), only=only)
    result, folder = found.result, str(path.parent)
    record = _estimates((one.estimate for one in result.findings), (one.name for one in result.findings))
    for one in result.findings:
        record[one.name]["usable"] = one.usable
    texts = {"missing": result.missing, "notes": found.notes, "warnings": found.warnings}
    return {"findings": record, **json.loads(json.dumps(texts).replace(folder, ""))}


def _log(path: Path, **options: Any) -> dict[str, Any]:
    """A text log whose first line gives the columns."""
    with path.open() as lines:
        columns = next(lines).strip()
    robot_file = path.with_suffix(".yaml")
    return _identified(path, robot_file if robot_file.exists() else None, columns, **options)


def _case(name: str, **options: Any) -> tuple[Path, Made]:
    path = CASES / "base" / name
    return path, lambda bags: _identified(path, options.get("robot_file", "rosbot_xl"), **_without(options))


def _without(options: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in options.items() if key != "robot_file"}


def _public() -> Iterator[tuple[str, Path, Made]]:
    pose = {"only": ("calibration",), "pose_topic": "/mocap/base"}
    for name, options in {
        "radii_left_bigger": pose,
        "stop_commands_unstamped": {"only": ("delay",)},
        "deadman_4hz": {},
        "velocities_only": {},
        "wrapped_10hz": {},
        "rollover_16bit": {},
        "stamps_since_boot": {},
        "odom_pose_half_heading": {"only": ("body",)},
        "clean_60s_slow": {},
        "pure_dead_time_20hz": {"robot_file": CASES / "base" / "homemade.yaml"},
        "time_g.csv": {"columns": "time=t,command.x=cx,measured.x=vx"},
    }.items():
        yield f"base/{name}", *_case(name, **options)
    for name in (
        "direction_s4 effort_in_ampere effort_unsigned excel_date joints_in_driver_order kinova_wrap large_arm "
        "lift_column milliseconds mimic_gripper motor_3hz nan_rows no_inertials velocity_zero"
    ).split():
        path = CASES / "arm" / f"{name}.csv"
        yield f"arm/{path.name}", path, lambda bags, path=path: _log(path)
    for name in ("dynamic_torque", "ros1_in"):
        path = CASES / "arm" / f"{name}.mcap"
        yield f"arm/{path.name}", path, lambda bags, path=path: _identified(path)
    path = DATA / "drive_warthog" / "warthog.csv"
    columns = "time,_,_,_,_,command.x,command.yaw,measured.x,measured.yaw,_"
    yield "warthog", path, lambda bags, path=path, columns=columns: _identified(path, columns=columns)
    folder = DATA / "robotino2_brylev" / "dc_motor_model_identification"
    for kind in ("with", "without"):
        path = folder / f"data_for_identification_{kind}_integral.csv"
        yield (
            f"robotino_motors_{kind}_integral",
            path,
            lambda bags, path=path: _identified(path, columns=importlib.import_module("test_delay_recordings").MOTORS),
        )
    yield "polimi_calibration", DATA / "mecanum_polimi", _polimi
    yield "robotino_floors", DATA / "robotino2_brylev" / "one_surface_type", _robotino_floors
    yield "youbot_swing", DATA / "youbot_arm_keiser", _youbot_swing
    yield "youbot_joint_4", DATA / "youbot_arm_rajagopal", _youbot_joint_4
    yield "youbot_joint_5", DATA / "youbot_arm_rajagopal", _youbot_joint_5
    yield "damiao", DATA / "openarm_damiao", _damiao
    yield "tiago", DATA / "tiago_figaroh", _tiago
    yield "regbot", DATA / "regbot_dc_motor", _regbot
    yield "tmotor_heat", DATA / "tmotor_ak_thermal", _tmotor_heat
    yield "bldc_heat", DATA / "bldc_thermal_tassrv", _bldc_heat


# Recordings of single joints and motors, as the tests of recordings read them


def _arm(found: Any, prefix: str = "") -> dict[str, Any]:
    """Record of an arm's friction."""
    record: dict[str, Any] = {}
    for joint in found.joints:
        record |= _estimates((*joint.estimates, *joint.totals))
    record |= _estimates((*found.inertial, *found.readings))
    return {f"{prefix}{name}": one for name, one in record.items()}


def _polimi(bags: Path) -> dict[str, Any]:
    from youbot_dynamics.identification.calibration import calibrate

    test = importlib.import_module("test_calibration_recordings")
    tick = 2.0 * np.pi / 37.5 / test.GEAR
    record = {}
    for numbers in ((1, 3), (3,), (1,)):
        found = calibrate([test.turns(number, tick) for number in numbers], test.NOMINAL)
        record |= {f"{numbers} {name}": one for name, one in _estimates(found.estimates).items()}
    return {"findings": record}


def _robotino_floors(bags: Path) -> dict[str, Any]:
    test = importlib.import_module("test_robotino_friction")
    floors = {floor: test.fitted(*test.run_means(f"{floor}_surface")).estimates for floor in ("table", "gray")}
    return {"findings": {f"{f} {name}": one for f, found in floors.items() for name, one in _estimates(found).items()}}


def _youbot_swing(bags: Path) -> dict[str, Any]:
    from youbot_dynamics.identification.arm_friction import ArmFrictionModel, identify_arm_friction

    test, names = importlib.import_module("test_arm_recordings"), tuple(f"joint_{k + 1}" for k in range(5))
    model = ArmFrictionModel(names, load_robot().arm.model().tree, half_width=0.15)
    return {"findings": _arm(identify_arm_friction([test.swing()], model))}


def _youbot_joint_4(bags: Path) -> dict[str, Any]:
    from youbot_dynamics.identification.arm_friction import ArmFrictionModel, identify_arm_friction

    test, record = importlib.import_module("test_arm_recordings"), {}
    half = len(test.joint_4(slice(None)).time) // 2
    for name, part in (("all ", slice(None)), ("first ", slice(0, half)), ("second ", slice(half, None))):
        record |= _arm(identify_arm_friction([test.joint_4(part)], ArmFrictionModel(("joint_4",))), name)
    return {"findings": record}


def _youbot_joint_5(bags: Path) -> dict[str, Any]:
    from youbot_dynamics.identification.arm_friction import ArmFrictionModel, identify_arm_friction
    from youbot_dynamics.identification.arm_friction._torque_delay import estimate_torque_delay

    test, record = importlib.import_module("test_arm_recordings"), {}
    model, runs = ArmFrictionModel(("joint_5",), weighed=False), test.runs_of_joint_5()
    for name, chosen in (("both ", runs), ("slow ", runs[:1]), ("fast ", runs[1:])):
        record |= _arm(identify_arm_friction(chosen, model), name)
    delay = estimate_torque_delay([test.joint_5("0pt5rads"), test.joint_5("1rads")])
    return {"findings": record | _estimates((delay.delay, delay.inertia))}


def _damiao(bags: Path) -> dict[str, Any]:
    from youbot_dynamics.identification.arm_friction import ArmFrictionModel, identify_arm_friction

    test = importlib.import_module("test_damiao_recordings")
    motor = identify_arm_friction([test.motor()], ArmFrictionModel(("joint",), weighed=False))
    joint = identify_arm_friction([test.joint_1()], ArmFrictionModel(("joint",)))
    return {"findings": _arm(motor, "motor ") | _arm(joint, "arm ")}


def _tiago(bags: Path) -> dict[str, Any]:
    from youbot_dynamics.identification.arm_friction import ArmFrictionModel, identify_arm_friction
    from youbot_dynamics.identification.signals import ArmSignals

    folder = DATA / "tiago_figaroh"
    tables = (np.loadtxt(folder / f"tiago_{kind}.csv", delimiter=",", skiprows=1) for kind in ("position", "effort"))
    position, effort = tables
    record = {}
    for joint in range(2, 6):
        signals = ArmSignals(position[:, 0], position[:, joint : joint + 1], effort[:, joint : joint + 1])
        record |= _arm(identify_arm_friction([signals], ArmFrictionModel((f"arm_{joint - 1}",))))
    return {"findings": record}


def _regbot(bags: Path) -> dict[str, Any]:
    from youbot_dynamics.identification.thermal import identify_armature

    test, record = importlib.import_module("test_thermal_identification"), {}
    for log in sorted(test.REGBOT.glob("*.txt")):
        for side in (0, 1):
            found = identify_armature(*test.regbot(log, side), speed_unit="m/s")
            names = (f"{log.stem} {side} {name}" for name in ("resistance", "constant"))
            record |= _estimates((found.resistance, found.constant), names)
    return {"findings": record}


def _tmotor_heat(bags: Path) -> dict[str, Any]:
    from youbot_dynamics.identification.thermal import identify_heat

    test, record = importlib.import_module("test_thermal_identification"), {}
    for name, runs in {"3 and 4": ("ak109Run3", "ak109Run4"), "all": tuple(test.CURRENTS)}.items():
        found = identify_heat([test.actuator(run) for run in runs], resistance=(0.09, 0.005))
        record |= {f"{name} {k}": one for k, one in _estimates((*found.ratios, *found.constants)).items()}
    return {"findings": record}


def _bldc_heat(bags: Path) -> dict[str, Any]:
    from youbot_dynamics.identification.thermal import HeatRun, identify_heat

    record = {}
    for name, of_winding in (("Run13-Throttle8", True), ("Run3-Throttle48", False)):
        table = np.loadtxt(DATA / "bldc_thermal_tassrv" / f"{name}_unified.csv", delimiter=",", skiprows=1)[::10]
        current = np.sqrt(np.maximum(table[:, 1], 0.0))  # heat is proportional to the power
        read = (table[:, 2], None) if of_winding else (None, table[:, 2])
        found = identify_heat([HeatRun(table[:, 0], current, *read)])
        record |= {f"{name} {k}": one for k, one in _estimates(found.ratios).items()}
    return {"findings": record}


# Recordings of simulated robots, from seeds


def _cached(bags: Path, name: str, write: Callable[[Path], object]) -> Path:
    if not (bags / name).exists():
        bags.mkdir(parents=True, exist_ok=True)
        write(bags / f"{name}.part")
        (bags / f"{name}.part").rename(bags / name)
    return bags / name


def _twin(bags: Path, seed: int, arm: bool, duration: float) -> dict[str, Any]:
    """Base of a drawn youBot, and its arm."""
    acceptance = importlib.import_module("acceptance_bags")
    motion = acceptance.arm_motion(0, duration) if arm else None
    twists = acceptance.base_motion(duration)
    bag = _cached(bags, f"twin_{seed}", lambda folder: acceptance.bag_of_twin(folder, seed, twists, motion))
    return _identified(bag)


def _motors(bags: Path, seed: int, sensors: bool) -> dict[str, Any]:
    """Arm of a drawn youBot with motor sensors, or pushed by torques."""
    from youbot_dynamics.simulation.truth import load_arm_truth

    stage_bags, truth = importlib.import_module("stage_bags"), load_arm_truth(seed)
    rows = (
        partial(stage_bags.heat_rows, truth, seed, 600.0) if sensors else partial(stage_bags.torque_rows, truth, seed)
    )
    name = f"{'heat' if sensors else 'torque'}_{seed}"
    return _identified(_cached(bags, name, lambda folder: stage_bags.write_rows(folder, rows())))


def _friction(bags: Path, seed: int) -> dict[str, Any]:
    """Stairs of speed and sines of a drawn base."""
    report_bags = importlib.import_module("report_bags")
    return _identified(_cached(bags, f"stairs_{seed}", partial(report_bags.effort_bag, duration=30.0 + 10.0 * seed)))


def _body(bags: Path, seed: int) -> dict[str, Any]:
    """Base without wheel states."""
    body_runs = importlib.import_module("body_runs")
    stepped = np.column_stack([body_runs.steps(seed + axis, fastest) for axis, fastest in enumerate((0.2, 0.2, 0.4))])
    twists = body_runs.ramps(seed) if seed < 3 else stepped
    return _identified(
        _cached(bags, f"body_{seed}", lambda folder: body_runs.body_bag(folder, body_runs.twin_drive(seed, twists)))
    )


def _other_base(bags: Path, name: str) -> dict[str, Any]:
    """Program of another robot's base, as its digital twin drives it with the tracker."""
    from youbot_dynamics.identification.excitation import base_program
    from youbot_dynamics.messages.drive_bag import write_bag
    from youbot_dynamics.simulation.scenario import drive
    from youbot_dynamics.simulation.truth import load_truth
    from youbot_dynamics.simulation.youbot import BaseOnly

    robot_file = ROOT / "config" / "robots" / f"{name}.yaml"
    robot = load_robot(robot_file=robot_file)

    def write(folder: Path) -> None:
        program = base_program(robot, 40.0, 1.0, 0.02)
        plant = BaseOnly(load_truth(1, robot_file), robot.driver, 1)
        write_bag(drive(program.trajectory(), robot, plant, 1), robot, folder)

    return _identified(_cached(bags, name, write), robot_file)


def _other_arm(bags: Path, name: str) -> dict[str, Any]:
    """Swings of an arm with six or seven joints."""
    from youbot_dynamics.identification.arm_friction import ArmFrictionModel, identify_arm_friction
    from youbot_dynamics.identification.signals import ArmSignals

    arms = importlib.import_module("other_arms")
    robot = arms.ROBOTS[name]

    def write(path: Path) -> None:
        run = arms.swing_of(name, arms.truth_of(name, 1), 1, 20.0, 10)
        with path.open("wb") as file:
            np.savez(file, time=run.stamp, position=run.position, torque=run.effort)

    log = np.load(_cached(bags, f"{name}.npz", write))
    names = tuple(f"joint_{k + 1}" for k in range(log["position"].shape[1]))
    signals = ArmSignals(log["time"], log["position"], log["torque"])
    found = identify_arm_friction([signals], ArmFrictionModel(names, robot.arm.model().tree))
    return {"findings": _arm(found)}


def _drawn() -> Iterator[tuple[str, Path, Made]]:
    def drawn(name: str, make: Callable[..., dict[str, Any]], *given: Any) -> tuple[str, Path, Made]:
        return f"drawn/{name}", ROOT, lambda bags: make(bags, *given)

    for seed, arm, duration in ((1, True, 60.0), (2, False, 40.0), (3, True, 40.0)):
        yield drawn(f"twin_{seed}", _twin, seed, arm, duration)
    yield drawn("heat", _motors, 2, True)
    yield drawn("torque", _motors, 1, False)
    for seed in (0, 1):
        yield drawn(f"stairs_{seed}", _friction, seed)
    for seed in (1, 2, 3):
        yield drawn(f"body_{seed}", _body, seed)
    for name in ("rosbot_xl", "ridgeback", "robotino_2"):
        yield drawn(name, _other_base, name)
    for name in ("ur5e", "panda"):
        yield drawn(name, _other_arm, name)


def recordings() -> dict[str, tuple[Path, Made]]:
    """Name -> path that it needs, and how its record is made."""
    return {name: (path, made) for name, path, made in (*_public(), *_drawn())}


def record_of(name: str, bags: Path) -> dict[str, Any]:
    """Record of one recording; an error is recorded as its text."""
    path, made = recordings()[name]
    try:
        return made(bags)
    except YoubotDynamicsError as problem:
        return {"error": str(problem).replace(str(path.parent), "")}


def run(out: Path, names: Iterable[str]) -> None:
    """Record all recordings, each in a process of its own."""
    out.mkdir(parents=True, exist_ok=True)
    for name, reason in _FURTHER.items():
        print(f"{name}: left out: {reason}")
    for name in names or recordings():
        if not recordings()[name][0].exists():
            print(f"{name}: skipped: {recordings()[name][0]} is absent")
            continue
        words = [sys.executable, __file__, "one", name, str(out)]
        limit = partial(resource.setrlimit, resource.RLIMIT_CPU, (LIMIT, LIMIT))
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(words, check=False, preexec_fn=limit, capture_output=True, text=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        last = done.stderr.strip().splitlines()[-1:] if done.returncode > 0 else []
        ended = {0: "", -9: "time limit"}.get(done.returncode, f"exit code {done.returncode}: {''.join(last)}")
        print(f"{name}: {used:.0f} s {ended}", flush=True)


def _file(out: Path, name: str) -> Path:
    return out / f"{name.replace('/', '_')}.json"


def _differences(before: Any, after: Any, place: str = "") -> Iterator[str]:
    """Lines of what two records differ in."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in dict.fromkeys([*before, *after]):
            if key in before and key in after:
                yield from _differences(before[key], after[key], f"{place}/{key}" if place else key)
            else:
                yield f"{place}/{key}: only {'before' if key in before else 'after'}"
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for k, pair in enumerate(zip(before, after, strict=True)):
            yield from _differences(*pair, f"{place}[{k}]")
    elif type(before) is type(after) is float:
        if abs(before - after) > SAME * max(abs(before), abs(after)):
            yield f"{place}: {before:.9g} -> {after:.9g}"
    elif before != after:
        yield f"{place}: {before} -> {after}"


def compare(before: Path, after: Path) -> int:
    """Print the differences of two folders of records; the exit code is 1 if there are any."""
    count = 0
    for name in sorted({path.name for folder in (before, after) for path in folder.glob("*.json")}):
        pair = [json.loads(path.read_text()) if (path := folder / name).exists() else {} for folder in (before, after)]
        for line in _differences(*pair):
            print(f"{name}: {line}")
            count += 1
    print(f"{count} differences")
    return 1 if count else 0


def main() -> int:
    """Run or compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    modes = parser.add_subparsers(dest="mode", required=True)
    running = modes.add_parser("run")
    running.add_argument("out", type=Path)
    running.add_argument("names", nargs="*")
    one = modes.add_parser("one", help="one recording in this process")
    one.add_argument("name")
    one.add_argument("out", type=Path)
    comparing = modes.add_parser("compare")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    given = parser.parse_args()
    if given.mode == "compare":
        return compare(given.before, given.after)
    if given.mode == "run":
        run(given.out, given.names)
        return 0
    record = record_of(given.name, given.out.parent / "bags")
    _file(given.out, given.name).write_text(json.dumps(record, indent=1, default=str) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
