"""The arm's filter on recordings of real youBots, kept outside the repository; run with -s to see the figures."""

from __future__ import annotations

import numpy as np
import pytest
from arm_runs import MIDDLE, ROBOT, SHEETS
from keiser_arm import Recording, ljung_box
from numpy.typing import NDArray
from repository import DATA

from youbot_dynamics.dynamics.arm import ArmModel
from youbot_dynamics.estimation.arm_ekf import ArmEkf, ArmEkfTuning, ArmSensors

Array = NDArray[np.float64]


pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="data folder absent")

SETTLED = 1.0  # [s]

SENSORS = ArmSensors(np.full(5, 8.22e-5), ROBOT.arm_quanta()[1], np.full(5, 0.024), 1.58e-4)
TUNING = ArmEkfTuning(
    friction_error=0.28,
    load_error=1.31,
    torque_memory=0.0036,
    effort_swing=2.0,
    bristle_noise=83.7,
    gate=12.0,
)


def test_speeds_of_a_real_arm_are_nearer_to_those_of_its_positions_than_the_drivers(
    keiser: Recording, arm: ArmModel
) -> None:
    """Reference: zero-phase derivative of the positions, so the driver's lag counts. Joint 5 rests."""
    ekf = ArmEkf(arm, SENSORS, TUNING)
    track = ekf.replay(keiser.time, keiser.position, keiser.effort)
    after = keiser.time > SETTLED
    ratios, correlations = [], []
    for joint in range(4):
        ours, drivers = (
            np.sqrt(np.mean((speed - keiser.reference)[after, joint] ** 2)) for speed in (track.speed, keiser.velocity)
        )
        q, r = ljung_box(track.innovation[after, joint])
        nis = float(np.mean(track.innovation[after, joint] ** 2 / track.innovation_variance[after, joint]))
        ratios.append(ours / drivers)
        correlations.append(r[0])
        print(f"joint {joint + 1}: ratio {ratios[-1]:.2f}, NIS {nis:.2f}, Q {q:.0f}, r1..r3 {r.round(2)}")
    nis = float(track.nis[after].sum() / track.readings[after].sum())
    print(f"NIS for each reading {nis:.2f}; {ekf.counts}")
    assert np.all(np.array(ratios) <= RATIOS)
    assert 0.5 <= nis <= 2.0
    # Vibration at 22 to 28 Hz and the jitter of the stamps forbid whiteness; joint 3 moves fastest.
    assert np.all(np.abs(np.array(correlations)[[0, 1, 3]]) <= 0.25)
    assert ekf.counts["joints restarted"] == 0


RATIOS = np.array([1.0, 0.6, 0.6, 0.6])


@pytest.mark.parametrize("gap", [0.15, 0.25, 0.35])
def test_gaps_cut_into_a_real_log_are_caught_up(keiser: Recording, arm: ArmModel, gap: float) -> None:
    keep = np.ones(len(keiser.time), dtype=bool)
    ends = []
    for start in (2.0, 4.0, 6.0, 8.0):
        keep &= ~((keiser.time > start) & (keiser.time < start + gap))
        ends.append(start + gap)
    ekf = ArmEkf(arm, SENSORS, TUNING)
    track = ekf.replay(keiser.time[keep], keiser.position[keep], keiser.effort[keep])
    assert np.all(np.isfinite(track.speed)) and ekf.counts["starts"] == 1
    error = np.abs(track.position - keiser.position[keep])
    for end in ends:
        later = (keiser.time[keep] > end + 0.1) & (keiser.time[keep] < end + 0.6)
        assert np.quantile(error[later], 0.99) < 2e-3 and error[later].max() < 2e-2
    assert ekf.counts["steps without a solution"] == 0


@pytest.mark.parametrize(
    ("joint", "file"),
    [
        (4, "joint5_manipulator/innerlooptuning/manipulator_joint5_innerloop_1rads.txt"),
        (3, "joint4_manipulator/innerlooptuning/manipulator_joint4_innerloop_1rads.txt"),
    ],
)
def test_the_gaps_of_a_real_log_without_positions_are_caught_up(joint: int, file: str) -> None:
    """Speeds and commanded torques of one joint, the last message 0.31 or 0.35 s late; the others are held in place."""
    table = np.loadtxt(DATA / "youbot_arm_rajagopal" / file, delimiter=",")
    speed, time, torque = table.T
    time = np.maximum.accumulate(time + 1e-9 * np.arange(len(time)))
    start = MIDDLE.copy()
    start[3] = 1.73184
    effort = np.tile(SHEETS.tree.gravity_forces(start), (len(time), 1))
    effort[:, joint] = np.clip(torque, *((-1.755, 1.755) if joint == 4 else (-4.1748, 4.1748)))
    position, velocity = np.tile(start, (len(time), 1)), np.full((len(time), 5), np.nan)
    position[1:, joint] = np.nan
    velocity[:, joint] = speed
    ekf = ArmEkf(SHEETS, ArmSensors.of_robot(ROBOT, effort_noise=0.05), ArmEkfTuning(friction_error=0.5))
    track = ekf.replay(time, position, effort, velocity)
    gap = int(np.argmax(np.diff(time)))
    assert np.diff(time)[gap] > 0.3
    assert np.all(np.isfinite(track.speed)) and np.all(track.variance > 0.0)
    assert ekf.counts["starts"] == 1 and ekf.counts["steps without a solution"] == 0
    before, after = (
        float(np.abs(track.speed[k, joint] - speed[k]).max()) for k in (slice(gap - 200, gap), slice(gap + 1, None))
    )
    gap_line = f"joint {joint + 1}: gap {np.diff(time)[gap]:.3f} s"
    print(f"{gap_line}, off the driver's speed {before:.3f}, then {after:.3f} rad/s")
    assert after < 0.1
