"""My robot has no wheel encoders that I can read: what do its commands and its odometry tell?

A CSV file with cmd_vel and the speeds of odom, in steps of 0.01 m/s 20 times a second, shows gain [1] and delay [s].

    base.body.gain_x: 0.9296, 95 % from 0.9281 to 0.9311 (true 0.9300), identified
    robot.base.delay.effective_x: 0.1995, 95 % from 0.1985 to 0.2005 (true 0.2000), identified
"""

import tempfile
from pathlib import Path

import numpy as np

import youbot_dynamics as yd

DELAY, LAG, GAIN = 0.120, 0.080, 0.93  # [s], [s], [1] of the robot that writes the file
COLUMNS = "time:ms,command.x,measured.x"


def write_log(file: Path) -> None:
    """Log of a minute: time [ms], commanded and measured speed forward [m/s]."""
    fine = np.arange(0.0, 60.0, 1e-3)
    command = 0.25 * np.sin(0.8 * fine) + 0.15 * np.sign(np.sin(1.7 * fine + 0.3 * np.sin(0.2 * fine)))
    command = command[np.arange(len(fine)) // 20 * 20]  # held for 20 ms
    late = GAIN * np.concatenate([np.full(round(1e3 * DELAY), command[0]), command])[: len(fine)]
    motion = np.zeros_like(fine)
    for k in range(1, len(fine)):
        motion[k] = late[k - 1] + (motion[k - 1] - late[k - 1]) * np.exp(-1e-3 / LAG)
    rows = [[f"{1e3 * t:.0f}", f"{u:.4f}", "nan"] for t, u in zip(fine[::20], command[::20], strict=True)]
    rows += [
        [f"{1e3 * t + 7:.0f}", "nan", f"{round(v, 2):.2f}"] for t, v in zip(fine[::50], motion[7::50], strict=True)
    ]
    rows.sort(key=lambda row: float(row[0]))
    file.write_text("\n".join(",".join(row) for row in rows) + "\n", encoding="utf-8")


with tempfile.TemporaryDirectory() as folder:
    log = Path(folder) / "log.csv"
    write_log(log)
    found = yd.identify(log, yd.load_robot(), yd.Options(columns=COLUMNS), only=["body"]).result

true = {"base.body.gain_x": GAIN, "robot.base.delay.effective_x": DELAY + LAG}
for name, value in true.items():
    estimate = found[name].estimate
    low, high = estimate.interval
    print(f"{name}: {estimate.value:.4f}, 95 % from {low:.4f} to {high:.4f} (true {value:.4f}), {estimate.verdict}")
