"""A wheel off pattern: seen soon, never where there is none, the pose's covariance honest about it, the wheel not named
unless gyro and sign tell it."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np
import pytest
from roller_drives import PERIOD, PROGRAMS, ROBOT, RollerDrive, mujoco_drive, run, twin_drive, twin_truth, twin_wheels

from youbot_dynamics.control.phase_guard import RollerWatch
from youbot_dynamics.estimation.odometry import GyroSettings, Odometry, SlipSettings
from youbot_dynamics.estimation.odometry._gyro import GyroTurn, GyroYaw
from youbot_dynamics.estimation.odometry._slip import CoherentErrors, SlipTest, displacement_jacobians
from youbot_dynamics.kinematics import planar
from youbot_dynamics.simulation.base import BasePlant

KNOWN = pytest.mark.parametrize("known", [True, False], ids=["phases known", "phases unknown"])
BIAS = 0.02  # [rad/s] of the gyro


@dataclass(frozen=True, eq=False)
class Reckoned:
    """What odometry made of a drive, a row a reading but the first."""

    odometry: Odometry
    time: np.ndarray
    error: np.ndarray
    deviations: np.ndarray
    level: np.ndarray
    alarm: np.ndarray
    wheels: tuple[int | None, ...]

    def seen_after(self, since: float) -> float:
        """From a moment to the alarm [s]; infinite for none."""
        later = self.time[self.alarm & (self.time >= since)]
        return float(later[0]) - since if len(later) else np.inf


def reckon(
    drive: RollerDrive, known: bool = True, *, gyro: bool = False, overrun: bool = False, noise: float = 2e-4
) -> Reckoned:
    """Odometry of a drive, by default with roller phases and without gyro."""
    wheels = drive.wheels if known else drive.wheels.at_phases(None)
    odometry = Odometry(ROBOT, wheels, SlipSettings(wheels_overrun=overrun))
    yaw = GyroYaw(GyroSettings(gyro_noise=noise))
    random = np.random.default_rng(5)
    rows = []
    for k, stamp in enumerate(drive.stamp.tolist()):
        turn = None
        if gyro:
            for back, rate in zip((0.5, 0.0), drive.rate[k], strict=True):
                noisy = rate + BIAS + noise * np.sqrt(2.0 / PERIOD) * random.standard_normal()
                yaw.update(float(drive.time[k]) - back * PERIOD, float(noisy), odometry.standing)
            if odometry.last_stamp is not None:
                turn = yaw.turn(odometry.last_stamp, stamp)
        state = odometry.update(stamp, drive.position[k], turn)
        if state is None:
            continue
        error = state.pose - drive.pose[k]
        error[2] = planar.wrap(float(error[2]))
        # A pose is as exact as a count of the wheels.
        deviations = np.sqrt(error @ np.linalg.solve(state.covariance + 1e-10 * np.eye(3), error))
        slip = odometry.slip
        rows.append((drive.time[k], error, deviations, slip.level, slip.alarm, slip.wheel))
    *columns, named = zip(*rows, strict=True)
    return Reckoned(odometry, *(np.array(column) for column in columns), wheels=named)


def speed_after(drive: RollerDrive, wheel: int, since: float) -> float:
    """Mean speed of a wheel [rad/s] over 0.3 s from a moment on."""
    k = int(np.searchsorted(drive.time, since))
    return float(np.abs(np.diff(drive.angle[k : k + 16, wheel])).mean()) / PERIOD


@KNOWN
@pytest.mark.parametrize("program", PROGRAMS)
def test_wheels_on_pattern_raise_no_alarm_on_the_twin(program: str, known: bool) -> None:
    """A robot that is not calibrated: wheels up to 1 % off."""
    found = reckon(twin_drive(program, 2, calibrated=False, seconds=10.0), known)
    assert found.odometry.slips == 0 and found.level.max() < 0.9
    assert found.odometry.slip.text(ROBOT.driver.wheel_joints) == ""


@KNOWN
def test_wheels_on_pattern_raise_no_alarm_in_contact_physics(known: bool) -> None:
    pytest.importorskip("mujoco")
    found = reckon(mujoco_drive("combined", 1, seconds=8.0), known)
    assert found.odometry.slips == 0 and found.level.max() < 0.9


@pytest.mark.slow
@pytest.mark.parametrize("plant", ["twin", "mujoco"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_no_false_alarm_in_half_an_hour(program: str, plant: str) -> None:
    """Ten minutes of each of the three programs, phases known and unknown."""
    if plant == "mujoco":
        pytest.importorskip("mujoco")
    drive = twin_drive(program, 3, repeats=30) if plant == "twin" else mujoco_drive(program, 7, repeats=30)
    assert drive.time[-1] > 600.0
    for known in (True, False):
        found = reckon(drive, known)
        told = "known" if known else "unknown"
        print(f"{plant}, {program}, phases {told}: at most {found.level.max():.2f} of the bound")
        assert found.odometry.slips == 0 and found.odometry.phases_lost == ""


def check_detection(drive: RollerDrive, known: bool, slowest: float, moments: np.ndarray) -> list[float]:
    """Times to the alarm from moments on at which a wheel turns faster than `slowest`; the truth within 3 sigma."""
    seen = []
    for wheel in range(4):
        fast = [moment for moment in moments.tolist() if speed_after(drive, wheel, moment) > slowest]
        for since in fast[:: max(1, len(fast) // 5)]:
            found = reckon(drive.off_pattern(wheel, since), known)
            seen.append(found.seen_after(since))
            assert np.max(found.deviations[5:]) < 3.0, f"wheel {wheel} from {since} s on"
            assert found.seen_after(0.0) >= since - 1e-9, "an alarm before the fault"
    return seen


@pytest.mark.parametrize(("known", "slowest"), [(True, 2.0), (False, 3.0)], ids=["phases known", "phases unknown"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_wheel_20_percent_off_is_seen_in_03_seconds_and_the_truth_stays_within_3_sigma(
    program: str, known: bool, slowest: float
) -> None:
    """At 0.1 m/s along the wheel where phases are known, 0.15 m/s where they are not."""
    seen = check_detection(twin_drive(program, 1, seconds=8.0), known, slowest, np.arange(2.0, 5.0, 0.7))
    print(f"{program}: {len(seen)} onsets, seen after {np.median(seen):.2f} s, at most {np.max(seen):.2f} s")
    assert len(seen) >= 4 and max(seen) <= 0.3 + 1e-9


@pytest.mark.slow
@pytest.mark.parametrize(("known", "slowest"), [(True, 2.0), (False, 3.0)], ids=["phases known", "phases unknown"])
@pytest.mark.parametrize("rollers", [6, 9])
@pytest.mark.parametrize("program", PROGRAMS)
def test_it_is_seen_so_in_contact_physics(program: str, rollers: int, known: bool, slowest: float) -> None:
    pytest.importorskip("mujoco")
    seen = check_detection(mujoco_drive(program, 1, rollers=rollers), known, slowest, np.arange(1.0, 18.0, 0.7))
    print(f"{program}: {len(seen)} onsets, seen after {np.median(seen):.2f} s, at most {np.max(seen):.2f} s")
    assert len(seen) >= 8 and max(seen) <= 0.3 + 1e-9


def test_wheels_alone_do_not_say_which() -> None:
    """The covariance widens the way of all four wheels; none is named, whatever the sign is known to be."""
    found = reckon(twin_drive("translation", 1, seconds=8.0).off_pattern(2, 6.0), overrun=True)
    assert found.odometry.slips >= 1 and set(found.wheels) == {None}
    text = found.odometry.slip.text(ROBOT.driver.wheel_joints)
    assert text.startswith("a wheel does not fit") and text.endswith("is unknown")
    assert all(name in text for name in ROBOT.driver.wheel_joints)
    excess = found.odometry.slip.excess
    np.testing.assert_allclose(np.abs(excess), np.abs(excess[0]), rtol=1e-9)


def final_errors(found: Reckoned) -> tuple[float, float]:
    """Largest error of place [m] and heading [rad] in the last second."""
    return float(np.hypot(*found.error[-50:, :2].T).max()), float(np.abs(found.error[-50:, 2]).max())


@pytest.mark.parametrize("wheel", range(4))
@pytest.mark.parametrize("program", ["translation", "combined"])
def test_with_gyro_and_known_sign_the_error_is_a_third_of_that_of_plain_odometry(program: str, wheel: int) -> None:
    drive = twin_drive(program, 1, standing=4.0, seconds=12.0).off_pattern(wheel, 9.0)
    plain, helped = reckon(drive), reckon(drive, gyro=True, overrun=True)
    (place, heading), (place_left, heading_left) = final_errors(plain), final_errors(helped)
    print(f"{program}, wheel {wheel}: {place:.4f} m, {heading:.4f} rad; {place_left:.4f} m, {heading_left:.4f} rad")
    assert place_left < place / 3.0 and heading_left < heading / 3.0
    assert set(helped.wheels) == {None, wheel}
    # While the base stops (a stiff servo turns the wheel back) an alarm may fade unnamed, never with another's name.
    slip = helped.odometry.slip
    text = slip.text(ROBOT.driver.wheel_joints)
    others = [name for k, name in enumerate(ROBOT.driver.wheel_joints) if k != wheel]
    assert not slip.alarm or not any(text.startswith(name) for name in others)
    assert np.max(helped.deviations[5:]) < 3.0


def test_while_the_base_turns_on_the_spot_two_wheels_of_a_diagonal_stay_suspects() -> None:
    """One turning too far forward and one too far backward are one and the same: no wheel may be named."""
    drive = twin_drive("rotation", 1, standing=4.0, seconds=12.0).off_pattern(0, 9.0)
    plain, helped = reckon(drive), reckon(drive, gyro=True, overrun=True)
    assert helped.odometry.slips >= 1 and set(helped.wheels) == {None}
    assert np.abs(helped.error[:, 2]).max() < np.abs(plain.error[:, 2]).max() / 3.0
    assert np.max(helped.deviations[5:]) < 3.0


def sliding(turn: float, forward: float) -> RollerDrive:
    """Smooth wheels on ice, told a jump of speed: they do as told, the base comes late."""
    truth = dataclasses.replace(twin_truth(0, rollers=0).without_noise(), floor_friction=0.03)
    twists = np.vstack([np.zeros((200, 3)), np.tile([forward, 0.0, turn], (75, 1)), np.zeros((200, 3))])
    return run(BasePlant(truth, ROBOT.driver, 0), twin_wheels(truth), twists)


def test_contact_slip_at_commanded_speed_is_unobservable_without_imu_or_pose() -> None:
    """All wheels keep the pattern: the residual says nothing, and the pose is off by what nobody could know."""
    for turn, forward in ((0.0, 0.5), (1.5, 0.0)):
        found = reckon(sliding(turn, forward), known=False)
        print(f"level {found.level.max():.2f}, off by {np.abs(found.error).max(axis=0).round(3)}")
        assert found.odometry.slips == 0 and found.level.max() < 0.5
        assert np.abs(found.error[:, 2 if turn else 0]).max() > 0.1


def test_a_gyro_sees_the_part_of_it_that_is_a_turn() -> None:
    turning = reckon(sliding(1.5, 0.0), known=False, gyro=True)
    assert turning.odometry.slips >= 1 and np.abs(turning.error[:, 2]).max() < 0.01
    forward = reckon(sliding(0.0, 0.5), known=False, gyro=True)
    assert forward.odometry.slips == 0 and np.abs(forward.error[:, 0]).max() > 0.1


def test_a_gyro_is_used_for_the_turn_and_its_bias_for_the_covariance() -> None:
    found = reckon(twin_drive("combined", 1, standing=4.0, seconds=12.0), gyro=True)
    assert found.odometry.slips == 0 and np.max(found.deviations[5:]) < 3.5
    assert np.abs(found.error[:, 2]).max() < 0.01


def test_restarted_counts_lose_the_phases_and_say_so() -> None:
    drive = twin_drive("combined", 1, seconds=8.0)
    odometry = Odometry(ROBOT, drive.wheels)
    for k in range(300):
        odometry.update(float(drive.stamp[k]), drive.position[k])
    assert odometry.phases_lost == "" and odometry.wheels.phases is not None
    odometry.update(float(drive.stamp[300]), drive.position[300] + 100.0)
    assert "counts" in odometry.phases_lost and odometry.wheels.phases is None
    assert odometry.update(float(drive.stamp[301]), drive.position[301] + 100.0) is not None


@pytest.mark.parametrize("program", ["translation", pytest.param("combined", marks=pytest.mark.slow)])
def test_phases_that_do_not_hold_are_noticed_by_the_ripple(program: str) -> None:
    """As after a restart of the driver that nobody saw: a third of the pitch off, each wheel another way."""
    drive = twin_drive(program, 1)
    phases = np.array(drive.wheels.phases) + drive.wheels.pitch / 3.0 * np.array([1.0, -1.0, 1.0, 1.0])
    odometry = Odometry(ROBOT, drive.wheels.at_phases(phases))
    lost_at = np.inf
    for time, stamp, position in zip(drive.time, drive.stamp, drive.position, strict=True):
        odometry.update(float(stamp), position)
        if odometry.phases_lost and lost_at == np.inf:
            lost_at = float(time)
    print(f"{program}: lost after {lost_at:.1f} s")
    assert "rollers" in odometry.phases_lost and lost_at < 20.0


def test_the_watch_takes_a_slip_for_no_loss() -> None:
    """A residual that has nothing to do with the rollers makes it unsure, not mistaken."""
    random, watch = np.random.default_rng(2), RollerWatch(1e-5)
    for _ in range(2000):
        ripple, slip = 5e-3 * random.standard_normal(1), 0.05 * random.standard_normal(1)
        watch.update(0.25, slip, slip + ripple)
    assert not watch.lost and watch.share[1] > 0.1
    wrong = RollerWatch(1e-5)
    for _ in range(200):
        told, true = 5e-3 * random.standard_normal((2, 1))
        wrong.update(0.25, true - told, true)
    assert wrong.lost and wrong.share[0] == pytest.approx(0.0, abs=0.3)


def test_errors_that_are_one_and_the_same_add_up_and_not_their_squares() -> None:
    """A wheel that turns 20 % too far for 200 steps: off by one deviation at most, whichever wheel it is."""
    base = ROBOT.base.geometry.mecanum()
    step = base.wheel_speeds([0.004, 0.002, 0.01])
    for wheel in range(4):
        told, true, errors = np.zeros(3), np.zeros(3), CoherentErrors(4)
        for _ in range(200):
            counted = step.copy()
            counted[wheel] *= 1.2
            displacement = base.twist(counted)
            true = planar.compose(true, planar.exponential(base.twist(step)))
            null = np.array([1.0, 1.0, -1.0, -1.0]) / 2.0
            excess = null @ counted / null
            told = errors.move(told, displacement, base.forward_matrix.T * excess[:, None])
        off = planar.logarithm(planar.between(true, told))
        covariance = errors.covariance()
        assert np.linalg.norm(off[:2]) > 5e-3
        assert off @ np.linalg.pinv(covariance) @ off < 1.05**2
        kept = covariance.copy()
        errors.close()
        np.testing.assert_allclose(errors.covariance(), kept, atol=1e-15)
        np.testing.assert_array_equal(errors.errors, 0.0)


@pytest.mark.parametrize(
    "displacement", [[0.01, -0.004, 0.02], [0.02, 0.0, -0.05], [0.0, 0.0, 0.09], [0.03, 0.02, 0.0]]
)
def test_jacobians_agree_with_differences(displacement: list[float]) -> None:
    pose, h = np.array([0.4, -0.9, 1.3]), 1e-6
    end = planar.compose(pose, planar.exponential(displacement))
    a, b = displacement_jacobians(np.array(displacement))

    def body_error(pose_off: np.ndarray, displacement_off: np.ndarray) -> np.ndarray:
        start = planar.compose(pose, planar.exponential(pose_off))
        return planar.logarithm(planar.between(end, planar.compose(start, planar.exponential(displacement_off))))

    d = np.array(displacement)
    zero, unit = np.zeros(3), np.eye(3) * h
    by_pose = np.column_stack([(body_error(e, d) - body_error(-e, d)) / (2 * h) for e in unit])
    by_displacement = np.column_stack([(body_error(zero, d + e) - body_error(zero, d - e)) / (2 * h) for e in unit])
    np.testing.assert_allclose(a, by_pose, atol=1e-8)
    np.testing.assert_allclose(b, by_displacement, atol=2e-3)
    # The promised accuracy of B is that of a first-order series: its error falls with the square of the step.
    assert np.max(np.abs(b - by_displacement)) <= 0.2 * np.max(np.abs(d)) ** 2


def slip_test(**settings: float) -> SlipTest:
    wheels = twin_wheels(twin_truth(1))
    return SlipTest(wheels.at_phases(None), SlipSettings(**settings), 1e-5, 1e-3)


def level_of(test: SlipTest, twist: tuple[float, float, float], steps: int = 30, turn: GyroTurn | None = None) -> float:
    """Level after some steps in which wheel 0 turned 10 % too far."""
    base = ROBOT.base.geometry.mecanum()
    step = base.wheel_speeds(np.array(twist) * PERIOD)
    step[0] *= 1.1
    report = None
    for k in range(steps):
        moved = base.twist(step)
        report = test.update(PERIOD, k * step, step, moved, step - base.wheel_speeds(moved), turn)
    assert report is not None
    return report.level


def test_the_bound_grows_with_what_is_allowed_for() -> None:
    """Tolerance of the radii; ripple: none is possible where only driving forward, much sideways."""
    forward, sideways = (0.3, 0.0, 0.0), (0.0, 0.3, 0.0)
    assert level_of(slip_test(), forward) > 1.0
    assert level_of(slip_test(slip_tolerance=0.05), forward) < level_of(slip_test(), forward)
    assert level_of(slip_test(), sideways) < 0.7 * level_of(slip_test(), forward)


def test_a_bias_within_its_error_is_no_slip_however_many_steps_a_window_has() -> None:
    """It adds up over the window as it is, three deviations in all; squares of steps would make it ten."""
    base = ROBOT.base.geometry.mecanum()
    test, error = slip_test(), 0.01 * PERIOD
    for k in range(30):
        told = np.array([0.0, 0.0, 3.0 * error])
        report = test.update(
            PERIOD, np.zeros(4), np.zeros(4), told, -base.wheel_speeds(told), GyroTurn(told[2], 1e-14, error)
        )
        assert not report.alarm, k
    assert report.level > 0.5


def test_at_rest_sensors_without_quantum_leave_nothing() -> None:
    test = SlipTest(twin_wheels(twin_truth(1)), SlipSettings(), 0.0, 0.0)
    assert level_of(test, (0.0, 0.0, 0.0)) == 0.0


@pytest.mark.parametrize(("rate", "alarm"), [(1.3e-3, False), (0.01, True)])
def test_wheels_at_rest_that_creep_against_each_other_are_no_slip(rate: float, alarm: bool) -> None:
    """1.3 mrad/s is the fastest seen in MuJoCo, where servos with an integral hold the wheels against each other."""
    test, step = slip_test(), 0.5 * rate * PERIOD * np.array([1.0, 1.0, -1.0, -1.0])
    reports = [test.update(PERIOD, k * step, step, np.zeros(3), step) for k in range(100)]
    assert reports[-1].alarm is alarm


def test_the_window_is_forgotten_after_a_jump() -> None:
    test = slip_test()
    assert level_of(test, (0.3, 0.0, 0.0)) > 1.0
    test.clear()
    assert level_of(test, (0.0, 0.0, 0.0)) == 0.0
