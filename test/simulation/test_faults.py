"""Faults on demand: how they are written, and what each does to commands and messages."""

from __future__ import annotations

import numpy as np
import pytest
from simple_plant import DRIVER, PERIOD, SimplePlant

from youbot_dynamics.errors import ParameterError
from youbot_dynamics.simulation.driver_reports import CASTERS, FINGERS
from youbot_dynamics.simulation.faults import ARM, BASE, FOREVER, KINDS, ODOMETRY, parse_faults
from youbot_dynamics.simulation.robot_driver import RobotDriver

WHEELS = list(DRIVER.wheel_joints)
JOINTS = list(DRIVER.arm_joints)
FORWARD = (0.2, 0.0, 0.0)
SPEED = 0.2 / DRIVER.wheel_radius


class Run:
    """A robot driven forward, its arm turning, with faults set at the start."""

    def __init__(self, text="", duration=2.0, twist=FORWARD, seed=1, arm=True, **options):
        self.plant = SimplePlant()
        self.driver = RobotDriver(self.plant, DRIVER, seed, arm=arm, **options)
        self.driver.set_faults(parse_faults(text, DRIVER))
        self.out = []
        self.driver.command_twist(twist, 0.0)
        if arm:
            self.driver.command_arm(lambda arm, time: arm.command_velocities(np.full(5, 0.1), time), 0.0)
        self.go(duration)

    def go(self, duration):
        for _ in range(round(duration / PERIOD)):
            self.driver.advance(self.plant.time + PERIOD)
            self.out += [(self.plant.time, channel, report) for channel, report in self.driver.read()]
        return self

    def of(self, channel):
        return [report for _, found, report in self.out if found == channel]

    def joint(self, name, channel=BASE, field="position"):
        """Time series of one joint in our signs."""
        sign = np.array(DRIVER.position_sign if field == "position" else DRIVER.velocity_sign)
        reports = self.of(channel)
        k = reports[0].names.index(name)
        return np.array([getattr(report, field)[k] for report in reports]) * (sign[k] if channel == BASE else 1.0)


def test_without_faults_every_field_passes_bit_by_bit():
    run, other = Run(), SimplePlant()
    other.base.command_twist(FORWARD)
    other.arm.command_velocities(np.full(5, 0.1))
    for _, channel, report in run.out:
        if channel == ODOMETRY:  # first of each pass
            other.advance(other.time + PERIOD)
            reading, arm = other.base.read(), other.arm.read()
            assert report.pose.tobytes() == reading.odometry.tobytes()
            assert report.twist.tobytes() == reading.twist.tobytes()
        elif channel == BASE:
            assert report.position[:4].tobytes() == reading.position.tobytes()
            assert report.velocity[:4].tobytes() == reading.velocity.tobytes()
        else:
            assert [v.tobytes() for v in (report.position, report.velocity, report.effort)] == [
                v.tobytes() for v in (arm.position, arm.velocity, arm.effort)
            ]
        assert report.stamp == reading.stamp
    assert [channel for _, channel, _ in run.out[:3]] == [ODOMETRY, BASE, ARM]


def test_frozen_encoder_stands_and_what_it_missed_is_lost():
    run = Run("frozen_encoder joint=wheel_joint_fr after=0.5 lasting=1.0")
    position, velocity = run.joint("wheel_joint_fr"), run.joint("wheel_joint_fr", field="velocity")
    still = slice(24, 74)
    assert np.ptp(position[still]) == 0.0 and not np.any(velocity[25:74])
    assert np.diff(position[75:]) == pytest.approx(SPEED * PERIOD)
    assert position[-1] == pytest.approx(1.0 * SPEED, abs=1.01 * SPEED * PERIOD)
    assert run.joint("wheel_joint_fl")[-1] == pytest.approx(2.0 * SPEED)


def test_frozen_encoder_of_the_arm():
    run = Run("frozen_encoder joint=arm_joint_3")
    assert np.ptp(run.joint("arm_joint_3", ARM)) == 0.0 and not np.any(run.joint("arm_joint_3", ARM, "velocity"))
    assert run.joint("arm_joint_2", ARM)[-1] == pytest.approx(0.2)


def test_jumping_encoder_jumps_by_its_size_and_stays_off():
    run = Run("jumping_encoder joint=wheel_joint_bl size=0.5 after=1.0")
    off = run.joint("wheel_joint_bl") - run.joint("wheel_joint_fl")
    assert off[:49] == pytest.approx(0.0, abs=1e-12)
    assert np.abs(off[49:]) == pytest.approx(0.5)
    assert np.ptp(run.joint("wheel_joint_bl", field="velocity")) == 0.0


def test_jumping_encoder_jumps_again_up_and_down():
    run = Run("jumping_encoder joint=arm_joint_1 size=0.25 every=0.1", duration=4.0)
    jumps = np.diff(run.joint("arm_joint_1", ARM) - run.joint("arm_joint_2", ARM))
    found = jumps[np.abs(jumps) > 0.1]
    assert len(found) == 40 and np.abs(found) == pytest.approx(0.25)
    assert 5 < np.count_nonzero(found > 0.0) < 35


def test_dead_wheel_gets_no_speed_even_if_the_command_was_sent_before():
    run = Run("dead_wheel joint=wheel_joint_br after=1.0")
    before, after = run.plant.base.calls[0], run.plant.base.calls[-1]
    assert before == ("twist", list(FORWARD))
    assert after[0] == "wheels"
    assert np.array(after[1]) * DRIVER.command_sign == pytest.approx([SPEED, SPEED, SPEED, 0.0])
    assert np.ptp(run.joint("wheel_joint_br")[50:]) == 0.0
    assert not np.any(run.joint("wheel_joint_br", field="velocity")[50:])


def test_wheel_runs_again_when_its_fault_has_passed_or_is_taken_back():
    run = Run("dead_wheel joint=wheel_joint_br lasting=1.0")
    assert run.plant.base.calls[-1] == ("twist", list(FORWARD))
    run.driver.set_faults(parse_faults("reversed_wheel joint=wheel_joint_fl", DRIVER))
    run.go(0.1)
    assert run.plant.base.calls[-1][0] == "wheels"
    run.driver.set_faults(())
    run.go(0.1)
    assert run.plant.base.calls[-1] == ("twist", list(FORWARD))


def test_reversed_wheel_is_driven_backwards_and_read_as_if_it_went_forward():
    run = Run("reversed_wheel joint=wheel_joint_fl after=1.0")
    assert run.plant.base.angles == pytest.approx(np.array([0.0, 2.0, 2.0, 2.0]) * SPEED, abs=0.05 * SPEED)
    assert run.joint("wheel_joint_fl")[-1] == pytest.approx(2.0 * SPEED)
    assert run.joint("wheel_joint_fl", field="velocity") == pytest.approx(SPEED)


def test_a_fault_reaches_wheel_commands_too():
    run = Run("reversed_wheel joint=wheel_joint_fl; dead_wheel joint=wheel_joint_fr")
    run.driver.command_wheels(np.array([1.0, 2.0, 3.0, 4.0]), run.plant.time)
    assert run.plant.base.calls[-1] == ("wheels", [-1.0, 0.0, 3.0, 4.0])


def test_wheel_off_pattern_is_off_by_the_factor_in_position_and_velocity():
    run = Run("off_pattern joint=wheel_joint_fr factor=1.2 after=1.0")
    steps = np.diff(run.joint("wheel_joint_fr")) / (SPEED * PERIOD)
    assert steps[:48] == pytest.approx(1.0) and steps[49:] == pytest.approx(1.2)
    assert run.joint("wheel_joint_fr", field="velocity")[50:] == pytest.approx(1.2 * SPEED)
    slip = [DRIVER.mecanum().slip(np.array(DRIVER.velocity_sign) * report.velocity[:4]) for report in run.of(BASE)]
    assert np.abs(slip[40]) == pytest.approx(0.0, abs=1e-12) and np.abs(slip[60]) > 0.1


def test_the_drivers_odometry_is_reckoned_with_the_wrong_wheels():
    honest, off = Run(twist=(0.2, 0.1, 0.3)), Run("off_pattern joint=wheel_joint_fr factor=1.2", twist=(0.2, 0.1, 0.3))
    pose = np.zeros(3)
    angles = np.array([off.joint(name) for name in WHEELS]).T
    for step in np.diff(angles, axis=0, prepend=0.0):
        dx, dy, turn = DRIVER.mecanum().twist(step)
        yaw = pose[2] + turn
        pose += [np.cos(yaw) * dx - np.sin(yaw) * dy, np.sin(yaw) * dx + np.cos(yaw) * dy, turn]
    assert off.of(ODOMETRY)[-1].pose == pytest.approx(pose, abs=1e-9)
    assert np.abs(off.of(ODOMETRY)[-1].pose - honest.of(ODOMETRY)[-1].pose).max() > 0.01
    assert off.of(ODOMETRY)[-1].twist[0] == pytest.approx(
        DRIVER.mecanum().twist([off.joint(name, field="velocity")[-1] for name in WHEELS])[0]
    )


@pytest.mark.parametrize(("of", "fewer"), [("states", (BASE, ARM, ODOMETRY)), ("base", (BASE,)), ("odom", (ODOMETRY,))])
def test_lost_messages_are_a_share_of_those_named(of, fewer):
    run = Run(f"lost share=0.3 of={of}", duration=20.0)
    for channel in (BASE, ARM, ODOMETRY):
        count = len(run.of(channel))
        assert (600 < count < 800) if channel in fewer else count == 1000


def test_commands_can_be_lost_and_late():
    assert Run("lost share=1.0 of=commands").plant.base.calls == []
    run = Run("late delay=0.507 of=commands", duration=0.4)
    assert run.plant.base.calls == []
    assert run.go(0.2).plant.base.calls == [("twist", list(FORWARD))]
    assert run.plant.base.call_times == [0.507]


def test_late_messages_arrive_behind_newer_ones_with_their_own_stamps():
    run = Run("late delay=0.1 share=0.2 of=base", duration=10.0)
    arrival = np.array([time for time, channel, _ in run.out if channel == BASE])
    stamp = np.array([report.stamp for report in run.of(BASE)])
    lateness = arrival - stamp
    late = lateness > 1e-9
    assert 0.1 < late.mean() < 0.3
    assert lateness[late] == pytest.approx(0.1, abs=PERIOD + 1e-9)
    assert np.any(np.diff(stamp) < 0.0)
    assert len(set(stamp)) == len(stamp) >= 494


def test_restart_stops_the_base_is_deaf_and_silent_and_counts_from_zero():
    run = Run("restart after=1.0 lasting=0.5", duration=1.2)
    assert run.out[-1][0] < 1.0 + 1e-9
    assert run.plant.base.calls[-1] == ("twist", [0.0, 0.0, 0.0])
    run.driver.command_twist(FORWARD, run.plant.time)
    assert run.plant.base.calls[-1] == ("twist", [0.0, 0.0, 0.0])
    run.go(0.5)
    first = next(report for time, channel, report in run.out if channel == BASE and time > 1.1)
    assert first.stamp == pytest.approx(1.5)
    assert first.position[:4] == pytest.approx(np.zeros(4), abs=1e-9)
    run.driver.command_twist(FORWARD, run.plant.time)
    run.go(1.0)
    assert run.joint("wheel_joint_fl")[-1] == pytest.approx(SPEED)
    assert run.of(ODOMETRY)[-1].pose == pytest.approx([0.2, 0.0, 0.0], abs=1e-9)
    # The arm's angles are absolute: it is calibrated at its stops.
    assert run.joint("arm_joint_1", ARM)[-1] == pytest.approx(0.27)


@pytest.mark.parametrize("size", [3.0, -3.0])
def test_clock_jump_moves_the_stamps_of_all_messages(size):
    run = Run(f"clock_jump size={size} after=1.0")
    for channel in (BASE, ARM, ODOMETRY):
        stamps = np.array([report.stamp for report in run.of(channel)])
        steps = np.diff(stamps)
        assert np.argmax(np.abs(steps)) == 48
        assert steps[48] == pytest.approx(size + PERIOD)


def test_missing_and_zero_effort():
    assert len(Run("missing_effort").of(ARM)[-1].effort) == 0
    assert not np.any(Run("zero_effort").of(ARM)[-1].effort) and len(Run("zero_effort").of(ARM)[-1].effort) == 7
    assert Run("zero_effort joint=arm_joint_2").of(ARM)[-1].effort.tolist() == [1, 0, 1, 1, 1, 0, 0]
    assert Run("zero_effort joint=arm_joint_5", gripper=False).of(ARM)[-1].effort.tolist() == [1, 1, 1, 1, 0, 0, 0]
    with_wheels = Run("zero_effort joint=wheel_joint_fl", wheel_effort=True)
    assert with_wheels.of(BASE)[-1].effort.tolist() == [0, 0.2, 0.3, 0.4, 0, 0, 0, 0]
    assert len(Run("zero_effort").of(BASE)[-1].effort) == 0


def test_duplicate_names_come_twice_the_second_time_with_zeros():
    base = Run("duplicate_names joint=wheel_joint_fl").of(BASE)[-1]
    assert base.names == (*WHEELS, *CASTERS, "wheel_joint_fl")
    assert base.position[0] > 1.0 and base.position[8] == 0.0
    assert len(base.position) == len(base.velocity) == 9 and len(base.effort) == 0
    arm = Run("duplicate_names joint=arm_joint_2").of(ARM)[-1]
    assert arm.names == (*JOINTS, *FINGERS, "arm_joint_2") and arm.effort.tolist() == [1, 1, 1, 1, 1, 0, 0, 0]


def test_partial_names_lack_the_joint_and_its_values():
    run = Run("partial_names joint=wheel_joint_fr; partial_names joint=arm_joint_1")
    base, arm = run.of(BASE)[-1], run.of(ARM)[-1]
    assert base.names == ("wheel_joint_fl", "wheel_joint_bl", "wheel_joint_br", *CASTERS)
    assert len(base.position) == len(base.velocity) == 7
    assert arm.names == (*JOINTS[1:], *FINGERS) and len(arm.effort) == 6


def test_several_faults_act_at_once():
    run = Run("clock_jump size=5; frozen_encoder joint=wheel_joint_fl; missing_effort; partial_names joint=arm_joint_5")
    assert run.of(BASE)[0].stamp == pytest.approx(5.0 + PERIOD)
    assert np.ptp(run.joint("wheel_joint_fl")) == 0.0
    assert len(run.of(ARM)[-1].effort) == 0 and "arm_joint_5" not in run.of(ARM)[-1].names


def test_same_seed_same_faults_another_seed_others():
    text = "lost share=0.5; jumping_encoder joint=wheel_joint_fl every=0.1"

    def trace(seed):
        return [(t, c, r.stamp, r.position.tolist()) for t, c, r in Run(text, seed=seed).out if c != ODOMETRY]

    assert trace(3) == trace(3)
    assert trace(3) != trace(4)


def test_faults_begin_when_they_are_asked_for():
    run = Run(duration=3.0)
    run.driver.set_faults(parse_faults("frozen_encoder joint=wheel_joint_fl after=0.5", DRIVER))
    run.go(1.0)
    moving = np.diff(run.joint("wheel_joint_fl")) > 0.0
    assert np.count_nonzero(moving[150:]) == pytest.approx(24, abs=1)


def test_robot_without_arm_or_gripper():
    assert not Run(arm=False, duration=0.1).of(ARM)
    arm = Run(gripper=False, duration=0.1).of(ARM)[-1]
    assert arm.names == tuple(JOINTS) and len(arm.position) == len(arm.velocity) == 5 and len(arm.effort) == 7


def test_refused_commands_are_counted_with_their_reason():
    run = Run(duration=0.1)
    calls = len(run.plant.base.calls)
    run.driver.command_twist((np.nan, 0.0, 0.0), run.plant.time)
    run.driver.command_arm(lambda arm, time: arm.command_velocities(np.full(5, 99.0), time), run.plant.time)
    assert run.driver.refused == 2 and "velocity" in run.driver.last_refusal
    assert len(run.plant.base.calls) == calls


def test_a_command_after_motors_off_switches_them_on_and_on_means_standing():
    run = Run(duration=0.1)
    run.driver.switch_base(False)
    run.go(0.5)
    assert not run.plant.base.powered
    run.driver.command_twist(FORWARD, run.plant.time)
    assert run.plant.base.powered
    run.driver.switch_base(False)
    run.driver.switch_base(True)
    assert run.plant.base.powered and run.plant.base.calls[-1] == ("twist", [0.0, 0.0, 0.0])


def test_a_fault_that_passes_leaves_switched_off_motors_off():
    run = Run("dead_wheel joint=wheel_joint_fl lasting=0.5", duration=0.1)
    run.driver.switch_base(False)
    run.go(1.0)
    assert not run.plant.base.powered


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("frozen_encodr joint=wheel_joint_fl", ("frozen_encodr", "did you mean frozen_encoder?")),
        ("melting", tuple(kind.name for kind in KINDS)),
        ("frozen_encoder", ("joint of frozen_encoder", "nothing", "wheel_joint_fl", "arm_joint_5")),
        ("frozen_encoder joint=weel_joint_fl", ("weel_joint_fl", "did you mean wheel_joint_fl?")),
        ("dead_wheel joint=arm_joint_1", ("arm_joint_1", "wheel_joint_br")),
        ("lost shre=0.5", ("option 'shre'", "did you mean share?")),
        ("lost share=1.5", ("share of lost", "1.5", "0 to 1")),
        ("lost share=half", ("'half'", "a number")),
        ("lost share=nan", ("'nan'", "a number")),
        ("lost share", ("'share'", "after=1.5")),
        ("lost share=", ("'share='",)),
        ("lost share=0.1 share=0.2", ("'share' twice",)),
        ("lost of=everything", ("'everything'", "states, base, arm, odom, commands")),
        ("clock_jump after=-1", ("after of clock_jump", "0 to 1e+06")),
        ("restart, lost", ("'restart,'", "did you mean restart?")),
    ],
)
def test_a_typo_is_refused_in_one_line_with_what_there_is(text, expected):
    with pytest.raises(ParameterError) as caught:
        parse_faults(f"clock_jump size=1; {text}", DRIVER)
    message = str(caught.value)
    assert message.startswith("parameter fault") and "\n" not in message
    for part in expected:
        assert part in message


def test_text_is_read_with_any_spacing_and_order():
    assert parse_faults("", DRIVER) == parse_faults(" ; ;", DRIVER) == ()
    one = parse_faults("late delay=0.2   of=arm after=1", DRIVER)
    assert one == parse_faults(" late after=1.0 of=arm delay=.2;", DRIVER)
    assert (one[0].kind, one[0].of, one[0].after, one[0].lasting) == ("late", "arm", 1.0, FOREVER)
    assert one[0].numbers == {"delay": 0.2, "share": 1.0}


def test_every_kind_is_described_and_can_be_written():
    for kind in KINDS:
        assert kind.description.endswith(".")
        joint = " joint=wheel_joint_fl" if "joint" in kind.all_options else ""
        assert parse_faults(f"{kind.name}{joint}", DRIVER)[0].kind == kind.name
