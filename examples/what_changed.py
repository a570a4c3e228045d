"""What has changed since the last identification? A new version of a driver makes the base 25 ms later sideways.

The same drive is identified before and after; a value counts as changed if it differs by more than its error.
`youbot compare` does this with two results.

    robot.base.delay.effective_x: 242.5 to 243.2 ms, by +0.7 +- 5.6 ms: within error
    robot.base.delay.effective_y: 345.3 to 370.7 ms, by +25.4 +- 5.5 ms: changed
    robot.base.delay.effective_yaw: 144.2 to 144.0 ms, by -0.1 +- 2.3 ms: within error
    changed: robot.base.delay.effective_y
"""

import tempfile
from dataclasses import replace
from pathlib import Path

import youbot_dynamics as yd
from youbot_dynamics.control.trajectory import read_program
from youbot_dynamics.identification.result import Result, Verdict, changes
from youbot_dynamics.resources import program_path, robot_path

SEED, FILE = 1, robot_path("ridgeback")
robot, before = yd.load_robot(robot_file=FILE), yd.load_truth(SEED, FILE)
after = replace(before, dead_time_y=before.dead_time_y + 0.025)
path = read_program(program_path("combined"), dt=0.02).trajectory()


def identified(truth, seed: int) -> Result:
    """Drive in open loop, record, and identify the delays."""
    run = yd.drive(path, robot, yd.BaseOnly(truth, robot.driver, seed), seed, yd.TrackerSettings(feedback=False))
    with tempfile.TemporaryDirectory() as folder:
        yd.write_bag(run, robot, Path(folder) / "drive", feedback=False)
        return yd.identify(Path(folder) / "drive", robot, yd.Options(), only=["delay"]).result


first, second = identified(before, seed=1), identified(after, seed=2)
compared = [change for change in changes(first.as_dict(), second.as_dict()) if second[change.after.name].is_parameter]
for change in compared:
    old, new = change.before.value, change.after.value
    print(f"{change.after.name}: {1e3 * old:.1f} to {1e3 * new:.1f} ms, ", end="")
    print(f"by {1e3 * change.difference:+.1f} +- {1e3 * change.error:.1f} ms: {change.verdict.value}")
print("changed:", ", ".join(change.after.name for change in compared if change.verdict is Verdict.CHANGED))
