"""What the wheels carry, against statics by hand, Pinocchio and the laws of motion; what the node makes of it."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from youbot_dynamics.dynamics.tree import read_urdf
from youbot_dynamics.errors import InputError, ModelError
from youbot_dynamics.estimation.payload import PayloadBelief, SpeedRate
from youbot_dynamics.estimation.support import Carried, Support, SupportEstimator, SupportModel, support_findings
from youbot_dynamics.resources import urdf_path
from youbot_dynamics.robot import Robot, load_robot

ROBOT = load_robot()
POINTS = np.array([[0.235, 0.15], [0.235, -0.15], [-0.235, 0.15], [-0.235, -0.15]])
FOLDED = np.zeros(5)
STRETCHED = np.array([2.967, 2.6, -2.548, 1.789, 2.923])
WHEELS = ROBOT.driver.wheel_joints
GRIP = np.array([0.0, 0.0, 0.07])


@pytest.fixture(scope="module")
def model() -> SupportModel:
    return SupportModel(ROBOT)


def with_base(**changed: object) -> Robot:
    return dataclasses.replace(ROBOT, base=dataclasses.replace(ROBOT.base, **changed))


def test_the_robot_has_the_mass_and_centre_of_its_facts_and_its_wheels_carry_it(model: SupportModel) -> None:
    found = model.support(FOLDED)
    assert found.mass == pytest.approx(ROBOT.base.mass)
    np.testing.assert_allclose(found.centre_of_mass[:2], ROBOT.base.centre_of_mass, atol=1e-12)
    assert found.normal_forces.sum() == pytest.approx(ROBOT.base.mass * 9.81)
    np.testing.assert_allclose(found.normal_forces @ POINTS / found.load[0], found.centre_of_mass[:2], atol=1e-12)
    assert found.margin == found.normal_forces.min()
    np.testing.assert_allclose(found.side_loads[:2].sum(), found.load[0])
    heavy = SupportModel(with_base(mass=40.0, centre_of_mass=(-0.02, 0.01))).support(FOLDED)
    assert heavy.mass == pytest.approx(40.0)
    np.testing.assert_allclose(heavy.centre_of_mass[:2], [-0.02, 0.01], atol=1e-12)


@pytest.mark.parametrize("turn", [0.0, 1.5, -1.5, 2.9])
def test_the_arm_shifts_the_centre_of_mass_to_where_it_reaches(model: SupportModel, turn: float) -> None:
    pose = STRETCHED - [turn, 0.0, 0.0, 0.0, 0.0]
    model.carry(Carried())
    empty = model.support(pose)
    model.carry(Carried(0.5, GRIP))
    full = model.support(pose)
    model.carry(Carried())
    assert full.mass == pytest.approx(empty.mass + 0.5)
    # Joint 1 turns against z: a smaller angle looks left.
    payload = (full.mass * full.centre_of_mass - empty.mass * empty.centre_of_mass) / 0.5
    shoulder = np.array([0.143 + 0.024, 0.0])
    reach = payload[:2] - shoulder
    assert np.arctan2(reach[1], reach[0]) == pytest.approx(turn, abs=0.02)
    assert 0.4 < np.hypot(*reach) < 0.6
    lever = POINTS @ (reach / np.hypot(*reach))
    assert (full.normal_forces - empty.normal_forces)[np.argmax(lever)] > 0.5 * 9.81 / 4.0
    if turn:
        assert full.margin < empty.margin


def test_the_wrench_of_a_moving_robot_is_that_of_pinocchio(model: SupportModel) -> None:
    """Base and arm in full motion, with a payload; wheels at their places on Pinocchio's tree too."""
    pin = pytest.importorskip("pinocchio")
    mass = sum(link.mass for link in read_urdf(urdf_path("youbot.urdf")))
    whole = pin.buildModelFromUrdf(str(urdf_path("youbot.urdf")), pin.JointModelFreeFlyer())
    data = whole.createData()
    pin.centerOfMass(whole, data, pin.neutral(whole))
    # The facts that the URDF itself has.
    ours = SupportModel(with_base(mass=mass, centre_of_mass=tuple(data.com[0][:2])))
    ours.carry(Carried(0.4, GRIP))
    last = whole.getJointId("arm_joint_5")
    whole.inertias[last] += pin.Inertia(0.4, GRIP, np.zeros((3, 3)))
    data = whole.createData()
    random = np.random.default_rng(2)
    for _ in range(5):
        q, v, a = STRETCHED + random.uniform(-0.5, 0.1, 5), random.uniform(-1, 1, 5), random.uniform(-4, 4, 5)
        twist, rate = random.uniform(-0.8, 0.8, 3), random.uniform(-2, 2, 3)
        there, speeds, rates = pin.neutral(whole), np.zeros(whole.nv), np.zeros(whole.nv)
        for k in range(5):
            joint = whole.joints[whole.getJointId(f"arm_joint_{k + 1}")]
            there[joint.idx_q], speeds[joint.idx_v], rates[joint.idx_v] = q[k], v[k], a[k]
        rolling = ROBOT.base.geometry.mecanum().inverse_matrix
        for name, row in zip(WHEELS, rolling, strict=True):
            joint = whole.joints[whole.getJointId(name)]
            speeds[joint.idx_v], rates[joint.idx_v] = row @ twist, row @ rate
        speeds[[0, 1, 5]], rates[[0, 1, 5]] = twist, rate
        wrench = pin.rnea(whole, data, there, speeds, rates)[:6]
        found = ours.support(q, v, a, twist, rate)
        np.testing.assert_allclose(found.load, [wrench[2], -wrench[4], wrench[3]], atol=1e-8)
        np.testing.assert_allclose(found.normal_forces.sum(), found.load[0])
        np.testing.assert_allclose(found.normal_forces @ POINTS, found.load[1:], atol=1e-9)


def test_speeding_up_presses_the_rear_wheels_and_braking_the_front_ones(model: SupportModel) -> None:
    still, faster, braking, aside = (
        model.support(FOLDED, twist_rate=rate) for rate in (np.zeros(3), [1.0, 0, 0], [-1.5, 0, 0], [0, 1.0, 0])
    )
    # m a h over the wheelbase; the wheels' own spin adds to it.
    shift = still.mass * still.centre_of_mass[2] / 0.47
    assert shift < (faster.side_loads - still.side_loads)[1] < 1.2 * shift
    assert (braking.side_loads - still.side_loads)[0] > 1.5 * shift
    assert aside.side_loads[3] > still.side_loads[3] + 0.9 * still.mass * still.centre_of_mass[2] / 0.3


def test_rollers_that_are_known_move_the_contacts_out(model: SupportModel) -> None:
    geometry = dataclasses.replace(ROBOT.base.geometry, roller_phase_error=0.01)
    knowing = SupportModel(with_base(geometry=geometry))
    angles = np.array([0.3, -0.2, 0.1, -0.4])
    found = knowing.support(STRETCHED - [1.5, 0, 0, 0, 0], wheel_angles=angles)
    out = geometry.roller_depth * np.tan(geometry.mecanum().roller_angles) * np.tan(angles)
    points = POINTS + np.column_stack([np.zeros(4), out])
    np.testing.assert_allclose(found.normal_forces @ points, found.load[1:], atol=1e-9)
    plain = model.support(STRETCHED - [1.5, 0, 0, 0, 0], wheel_angles=angles)  # phases not known: the middles
    np.testing.assert_allclose(plain.normal_forces @ POINTS, plain.load[1:], atol=1e-9)


@pytest.mark.parametrize("lag", [0.05, 0.2])
def test_a_rate_is_exact_on_a_ramp_and_settles_within_its_lag(lag: float) -> None:
    rate, random = SpeedRate(lag), np.random.default_rng(0)
    stamps = 1e9 + np.cumsum(random.uniform(0.01, 0.03, 200))
    for stamp in stamps:
        found = rate.take(stamp, np.array([3.0, -2.0]) * (stamp - stamps[0]))
        settled = 1.0 - np.exp(-(stamp - stamps[0]) / lag)
        np.testing.assert_allclose(found, np.array([3.0, -2.0]) * settled, atol=1e-4)
    np.testing.assert_array_equal(rate.take(stamps[-1] + 0.02, [np.nan, 0.0]), found)
    assert rate.take(stamps[-1] + 5.0, [9.0, 9.0]).tolist() == [0.0, 0.0]
    assert rate.take(stamps[-1], [7.0, 7.0]).tolist() == [0.0, 0.0]


def drive(estimator: SupportEstimator, seconds: float, acceleration: float, stamp: float = 100.0) -> Support:
    """What it believes after a drive forward from rest."""
    for k in range(int(seconds / 0.02)):
        speed = acceleration * 0.02 * k / 0.0475
        estimator.take_wheels(stamp + 0.02 * k, np.full(4, 0.5 * speed * 0.02 * k), np.full(4, speed))
        estimator.take_arm(stamp + 0.02 * k, np.zeros(5))
    return estimator.support(stamp + 0.02 * k, FOLDED, np.zeros(5))


def test_the_base_s_acceleration_comes_from_its_wheels(model: SupportModel) -> None:
    estimator = SupportEstimator(ROBOT)
    still = model.support(FOLDED)
    expected = model.support(FOLDED, twist=[0.6, 0.0, 0.0], twist_rate=[1.0, 0.0, 0.0])
    np.testing.assert_allclose(drive(estimator, 0.6, 1.0).normal_forces, expected.normal_forces, atol=0.05)
    # Silent wheels tell nothing any more, messages with a speed that is no number never did.
    np.testing.assert_allclose(
        estimator.support(102.0, FOLDED, np.zeros(5)).normal_forces, still.normal_forces, atol=1e-9
    )
    estimator.take_wheels(102.0, np.zeros(4), np.array([np.nan, 0, 0, 0]))
    assert np.isfinite(estimator.support(102.0, FOLDED, np.zeros(5)).margin)


def test_an_arm_that_is_thrown_up_presses_the_wheels() -> None:
    estimator = SupportEstimator(ROBOT)
    for k in range(40):
        estimator.take_arm(10.0 + 0.02 * k, [0.0, -8.0 * 0.02 * k, 0.0, 0.0, 0.0])
    found = estimator.support(10.8, STRETCHED, np.zeros(5))
    assert found.load[0] > ROBOT.base.mass * 9.81 + 3.0


def test_a_payload_counts_once_it_is_known() -> None:
    estimator = SupportEstimator(ROBOT)
    for mass, identifiable, counted in ((0.4, False, 0.0), (0.4, True, 0.4), (-0.1, True, 0.0), (0.3, True, 0.3)):
        estimator.carry(PayloadBelief(mass, 0.05, GRIP, identifiable, ""))
        found = estimator.support(1.0, STRETCHED, np.zeros(5))
        assert found.mass == pytest.approx(ROBOT.base.mass + counted)


def forces(*values: float) -> Support:
    normal = np.array(values)
    sides = np.array([normal[:2].sum(), normal[2:].sum(), normal[[0, 2]].sum(), normal[[1, 3]].sum()])
    return Support(30.0, np.zeros(3), np.array([normal.sum(), 0.0, 0.0]), normal, sides)


@pytest.mark.parametrize(
    ("support", "name", "level", "words"),
    [
        (forces(80.0, 80.0, 60.0, 60.0), None, "", ()),
        (forces(120.0, 80.0, 80.0, 15.0), "light wheel", "warning", ("wheel_joint_br", "15 N", "30%")),
        (forces(150.0, 80.0, 80.0, -15.0), "lifted wheel", "error", ("wheel_joint_br", "lifts")),
        (forces(150.0, 160.0, -5.0, -10.0), "tip-over", "error", ("rear wheels",)),
        (forces(150.0, -10.0, 160.0, -5.0), "tip-over", "error", ("right wheels",)),
    ],
)
def test_light_and_lifted_wheels_are_told_with_a_remedy(support, name, level, words) -> None:
    found = support_findings(support, WHEELS, 0.3)
    if name is None:
        assert not found
        return
    assert [(one.name, one.level) for one in found] == [(name, level)]
    assert all(word in str(found[0]) for word in words) and "fold the arm" in str(found[0])


def test_what_makes_no_sense_is_refused(model: SupportModel) -> None:
    with pytest.raises(ModelError, match="robot.base.mass"):
        SupportModel(with_base(mass=9.0))
    with pytest.raises(ModelError, match="payload"):
        Carried(-0.1, GRIP)
    with pytest.raises(InputError, match="position"):
        model.support(np.zeros(4))
    with pytest.raises(InputError):
        model.support(FOLDED, twist=[0.0, np.nan, 0.0])
