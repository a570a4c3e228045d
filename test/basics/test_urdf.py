"""The robot description: one robot to every reader, physically possible, and what its sources say."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from mujoco_urdf import in_mujoco

from youbot_dynamics.resources import urdf_path
from youbot_dynamics.robot import load_robot

PATH = urdf_path("youbot.urdf")
ROOT = ElementTree.parse(PATH).getroot()
LINKS = {link.get("name"): link for link in ROOT.findall("link")}
JOINTS = {joint.get("name"): joint for joint in ROOT.findall("joint")}
WHEELS = {"fl": (1, 1), "fr": (1, -1), "bl": (-1, 1), "br": (-1, -1)}

# youbot_facts.yaml, inertial_recommended and urdf_joints.
MASSES = [0.961, 1.390, 1.318, 0.821, 0.769, 0.687]
CENTRES = [
    [0, 0, 0],
    [0.01489, 0.00213, 0.00213],
    [0.01053, -0.0307, 0.08597],
    [0.0001, 0.0207, 0.07107],
    [0.00011, -0.0200, 0.05019],
    [0, 0.00115, -0.01683],
]
MOMENTS = [
    [0.01, 0.01, 0.01],
    [0.0029525, 0.0060091, 0.0058821],
    [0.0031145, 0.0005843, 0.0031631],
    [0.00172767, 0.00041967, 0.0018468],
    [0.0006764, 0.0010573, 0.0006610],
    [0.0001934, 0.0001602, 0.0000689],
]
ARM_JOINTS = [
    ([0.143, 0, 0.046], [0, 0, 0], None, None),
    ([0.024, 0, 0.096], [0, 0, 2.96706], [0, 0, -1], [0, 5.89921]),
    ([0.033, 0, 0.019], [0, -1.13446, 0], [0, 1, 0], [0, 2.70526]),
    ([0, 0, 0.155], [0, 2.54818, 0], [0, 1, 0], [-5.18363, 0]),
    ([0, 0, 0.135], [0, -1.78896, 0], [0, 1, 0], [0, 3.57792]),
    ([-0.002, 0, 0.130], [0, 0, 2.92343], [0, 0, -1], [0, 5.84685]),
]
CANDLE = [2.9496, 1.1344, -2.5482, 1.7890, 2.9234]  # all links upright


def numbers(element: ElementTree.Element, path: str, name: str) -> list[float]:
    found = element.find(path)
    assert found is not None
    return [float(word) for word in found.get(name, "").split()]


def inertial(name: str) -> tuple[float, np.ndarray, np.ndarray]:
    """Mass, centre of mass (3,) and inertia (3, 3) about it, of a link."""
    link = LINKS[name]
    xx, xy, xz, yy, yz, zz = (numbers(link, "inertial/inertia", f"i{ab}")[0] for ab in "xx xy xz yy yz zz".split())
    inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    return numbers(link, "inertial/mass", "value")[0], np.array(numbers(link, "inertial/origin", "xyz")), inertia


WITH_MASS = [name for name, link in LINKS.items() if link.find("inertial") is not None]


def test_arm_has_the_recommended_inertials() -> None:
    for k, (mass, centre, moments) in enumerate(zip(MASSES, CENTRES, MOMENTS, strict=True)):
        found = inertial(f"arm_link_{k}")
        assert found[0] == mass
        np.testing.assert_array_equal(found[1], centre)
        np.testing.assert_array_equal(found[2], np.diag(moments))


def test_arm_has_the_joints_of_its_sources() -> None:
    for k, (place, turn, axis, limits) in enumerate(ARM_JOINTS):
        joint = JOINTS[f"arm_joint_{k}"]
        assert numbers(joint, "origin", "xyz") == place and numbers(joint, "origin", "rpy") == turn
        assert joint.get("type") == ("revolute" if k else "fixed")
        if axis is not None:
            assert numbers(joint, "axis", "xyz") == axis
            assert [numbers(joint, "limit", name)[0] for name in ("lower", "upper")] == limits
            assert numbers(joint, "limit", "velocity") == [1.5708]


def test_the_arm_described_is_heavier_to_its_joints_than_the_one_measured() -> None:
    """First moments along the links beyond joints 2, 3, 4, fitted on 233 static poses of a real arm.

    The slopes in the URDF's comment, 0.88, 0.82, 0.75, are measured over model, not the other way round.
    """
    beyond = np.array([sum(MASSES[k + 1 :]) for k in (2, 3)])
    own = np.array([MASSES[k] * CENTRES[k][2] for k in (2, 3)]) + beyond * [ARM_JOINTS[3][0][2], ARM_JOINTS[4][0][2]]
    wrist = MASSES[4] * CENTRES[4][2] + MASSES[5] * (ARM_JOINTS[5][0][2] + CENTRES[5][2])
    measured, slopes = np.array([0.4057, 0.2216, 0.0879]), np.array([0.88, 0.82, 0.75])
    np.testing.assert_allclose(measured / [*own, wrist], slopes, rtol=0, atol=0.06)


def test_joints_carry_no_placeholders_of_friction() -> None:
    assert not list(ROOT.iter("dynamics"))


@pytest.mark.parametrize("name", WITH_MASS)
def test_inertia_of_every_link_is_one_a_body_can_have(name: str) -> None:
    """Positive moments, none above the sum of the two others; a turned tensor has the same principal moments."""
    mass, _, inertia = inertial(name)
    small, middle, large = np.linalg.eigvalsh(inertia)
    assert mass > 0 and small > 0
    assert large <= small + middle


def about(point: np.ndarray, mass: float, centre: np.ndarray, inertia: np.ndarray) -> np.ndarray:
    """Inertia (3, 3) of a body about another point (3,) (Steiner)."""
    arm = centre - point
    return inertia + mass * (arm @ arm * np.eye(3) - np.outer(arm, arm))


def test_base_and_wheels_are_a_uniform_box_of_24_kg() -> None:
    """0.580 x 0.376 m, from 0.030 to 0.140 m above the floor."""
    bodies = [inertial("base_link")]
    for name in WHEELS:
        mass, centre, inertia = inertial(f"wheel_link_{name}")
        bodies.append((mass, centre + numbers(JOINTS[f"wheel_joint_{name}"], "origin", "xyz"), inertia))
    mass = sum(body[0] for body in bodies)
    assert mass == pytest.approx(20.0 + 4.0)
    middle = np.sum([body[0] * body[1] for body in bodies], axis=0) / mass
    height = numbers(JOINTS["base_footprint_joint"], "origin", "xyz")[2]
    np.testing.assert_allclose(middle, [0.0, 0.0, 0.085 - height], atol=1e-9)
    squares = np.array([0.580, 0.376, 0.140 - 0.030]) ** 2
    box = np.diag(mass / 12 * (squares.sum() - squares))
    np.testing.assert_allclose(sum(about(middle, *body) for body in bodies), box, atol=1e-8)


def test_wheels_are_cylinders_at_the_places_of_the_driver() -> None:
    driver = load_robot().driver
    axles = 0.0815 - driver.wheel_radius
    for joint, (front, left) in zip(driver.wheel_joints, WHEELS.values(), strict=True):
        place = [front * driver.half_length, left * driver.half_width, -axles]
        assert JOINTS[joint].get("type") == "continuous"
        np.testing.assert_allclose(numbers(JOINTS[joint], "origin", "xyz"), place, atol=1e-15)
        assert numbers(JOINTS[joint], "axis", "xyz") == [0, 1, 0]
        mass, _, inertia = inertial(joint.replace("joint", "link"))
        across = mass * (3 * driver.wheel_radius**2 + 0.076**2) / 12
        expected = np.diag([across, mass * driver.wheel_radius**2 / 2, across])
        np.testing.assert_allclose(inertia, expected, rtol=1e-6, atol=1e-20)


def test_efforts_are_what_the_motors_hold_for_ever() -> None:
    """Two sources: nominal torque x gear in the URDF, current x constant x gear in the facts; up to 8 % apart."""
    robot = load_robot()
    for name, joint in zip(robot.driver.arm_joints, robot.arm.joints, strict=True):
        motor = joint.motor
        held = motor.nominal_current * motor.torque_constant * motor.gear_ratio
        assert numbers(JOINTS[name], "limit", "effort")[0] == pytest.approx(held, rel=0.08), name


def test_facts_of_the_base_agree_with_the_description() -> None:
    pin = pytest.importorskip("pinocchio")
    base = load_robot().base
    model = pin.buildModelFromUrdf(str(PATH), pin.JointModelFreeFlyer())
    data = model.createData()
    for arm in (np.zeros(5), CANDLE):
        q = pin.neutral(model)
        for k, angle in enumerate(arm, start=1):
            q[model.joints[model.getJointId(f"arm_joint_{k}")].idx_q] = angle
        pin.ccrba(model, data, q, np.zeros(model.nv))
        assert data.Ig.mass == pytest.approx(base.mass, rel=2e-3)
        assert data.Ig.inertia[2, 2] == pytest.approx(base.yaw_inertia, rel=0.06)
        wheels = [data.oMi[model.getJointId(f"wheel_joint_{place}")].translation for place in ("fl", "fr", "bl", "br")]
        ahead = pin.centerOfMass(model, data, q) - np.mean(wheels, axis=0)
        np.testing.assert_allclose(ahead[:2], base.centre_of_mass, atol=3e-3)
    rotor = 1.35e-5 * (9405 / 364) ** 2
    assert base.wheel_inertia == pytest.approx(inertial("wheel_link_fl")[2][1, 1] + rotor, rel=2e-3)


def test_gripper_adds_no_mass_to_speak_of() -> None:
    """What the source of the fact robot.base.mass says of this file: 29.946 kg."""
    total = sum(inertial(name)[0] for name in WITH_MASS)
    assert total == pytest.approx(29.946, abs=5e-4)
    assert total == pytest.approx(24.0 + sum(MASSES), abs=2.1e-4)


def test_bristles_are_damped_by_seven_tenths_at_the_mean_inertia_of_the_joint() -> None:
    pin = pytest.importorskip("pinocchio")
    whole = pin.buildModelFromUrdf(str(PATH))
    robot = load_robot()
    locked = [whole.getJointId(name) for name in whole.names[1:] if name not in robot.driver.arm_joints]
    model = pin.buildReducedModel(whole, locked, pin.neutral(whole))
    data = model.createData()
    poses = np.random.default_rng(0).uniform(model.lowerPositionLimit, model.upperPositionLimit, (2000, 5))
    links = np.mean([np.diag(pin.crba(model, data, q)) for q in poses], axis=0)
    inertia = links + robot.arm.reflected_rotor_inertia()
    for joint, felt in zip(robot.arm.joints, inertia, strict=True):
        friction = joint.friction
        ratio = (friction.sigma1 + friction.viscous) / (2 * np.sqrt(friction.sigma0 * felt))
        assert ratio == pytest.approx(0.7, rel=0.01)


def test_pinocchio_and_mujoco_load_the_same_robot() -> None:
    """Mass, centre of mass, frames of all joints and mass matrix over random poses, to 1e-9."""
    pin = pytest.importorskip("pinocchio")
    mujoco, other = in_mujoco(PATH)
    model = pin.buildModelFromUrdf(str(PATH))
    data = model.createData()
    state = mujoco.MjData(other)
    assert other.njnt == model.njoints - 1 == 11
    assert other.body_mass.sum() == pytest.approx(sum(body.mass for body in model.inertias), rel=1e-12)
    places = {name: model.joints[model.getJointId(name)] for name in model.names[1:]}
    generator = np.random.default_rng(1)
    for _ in range(10):
        q = pin.neutral(model)
        for name, joint in places.items():
            angle = generator.uniform(0.0, 0.01) if "finger" in name else generator.uniform(-3.0, 3.0)
            q[joint.idx_q : joint.idx_q + joint.nq] = [angle] if joint.nq == 1 else [np.cos(angle), np.sin(angle)]
            state.joint(name).qpos = angle
        mujoco.mj_forward(other, state)
        pin.forwardKinematics(model, data, q)
        # Pinocchio's own centre of mass leaves out what is fixed to the world, here the base.
        bodies = [(body.mass, place.act(body.lever)) for body, place in zip(model.inertias, data.oMi, strict=True)]
        centre = sum(mass * place for mass, place in bodies) / sum(mass for mass, _ in bodies)
        np.testing.assert_allclose(state.subtree_com[0], centre, rtol=0, atol=1e-9)
        for k, name in enumerate(model.names[1:], start=1):
            child = state.body(JOINTS[name].find("child").get("link"))
            np.testing.assert_allclose(child.xpos, data.oMi[k].translation, rtol=0, atol=1e-9)
            np.testing.assert_allclose(child.xmat.reshape(3, 3), data.oMi[k].rotation, rtol=0, atol=1e-9)
        # The mass matrix holds every inertia; MuJoCo names its joints in another order.
        full = np.zeros((other.nv, other.nv))
        mujoco.mj_fullM(other, state, full)
        index = [int(other.joint(name).dofadr[0]) for name in model.names[1:]]
        upper = np.triu(pin.crba(model, data, q))
        np.testing.assert_allclose(full[np.ix_(index, index)], upper + np.triu(upper, 1).T, rtol=0, atol=1e-9)


def test_candle_stands_upright() -> None:
    """Driver's offsets of the candle pose and the frames of the description fit: the gripper is above joint 2."""
    pin = pytest.importorskip("pinocchio")
    model = pin.buildModelFromUrdf(str(PATH))
    data = model.createData()
    q = pin.neutral(model)
    for k, angle in enumerate(CANDLE, start=1):
        q[model.joints[model.getJointId(f"arm_joint_{k}")].idx_q] = angle
    pin.forwardKinematics(model, data, q)
    second, fifth = (data.oMi[model.getJointId(f"arm_joint_{k}")] for k in (2, 5))
    rise = fifth.translation - second.translation
    np.testing.assert_allclose(rise, [-0.002, 0.0, 0.155 + 0.135 + 0.130], atol=1e-3)
    np.testing.assert_allclose(fifth.rotation[:, 2], [0.0, 0.0, 1.0], atol=1e-3)
