"""How much better does my robot drive with what its recording shows?

A simulated youBot with hidden delays is driven, identified from its recording, and driven again with what was found.

    effective delay x: 239.4 ms
    effective delay y: 347.6 ms
    effective delay yaw: 147.3 ms
    written: result.json, result.yaml
    position error: 56.3 mm open loop, 0.2 mm identified and tracked
"""

import tempfile
from pathlib import Path

import numpy as np

import youbot_dynamics as yd
from youbot_dynamics.control.trajectory import read_program
from youbot_dynamics.resources import program_path

SEED = 1  # which robot: its truth is drawn from it
path = read_program(program_path("combined"), dt=0.02).trajectory()
sheets = yd.load_robot()


def drive(robot: yd.Robot, **settings):
    """Drive the program with what is believed of the robot."""
    plant = yd.BaseOnly(yd.load_truth(SEED), sheets.driver, SEED)
    return yd.drive(path, robot, plant, SEED, tracker_settings=yd.TrackerSettings(**settings))


def error(run) -> float:
    """Root mean square distance [mm] of the true position from the desired one."""
    during = (run.reading_time >= run.start) & (run.reading_time <= run.start + path.duration)
    desired = path.path(run.reading_time[during] - run.start)
    return 1e3 * float(np.sqrt(np.mean(np.sum((run.true_pose[during] - desired)[:, :2] ** 2, axis=1))))


open_loop = drive(sheets, feedback=False)
with tempfile.TemporaryDirectory() as folder:
    yd.write_bag(open_loop, sheets, Path(folder) / "drive", feedback=False)
    found = yd.identify([Path(folder) / "drive"], sheets, yd.Options())
    yd.write_outputs(Path(folder) / "result", found, (), "An example")  # result.yaml, result.json, report.html
    written = ", ".join(sorted(file.name for file in (Path(folder) / "result").glob("result.*")))

known = found.result.applied_to(sheets)
for axis, delay in zip("x y yaw".split(), known.base.delay.effective(), strict=True):
    print(f"effective delay {axis}: {1e3 * delay:.1f} ms")
print(f"written: {written}")
print(f"position error: {error(open_loop):.1f} mm open loop, {error(drive(known)):.1f} mm identified and tracked")
