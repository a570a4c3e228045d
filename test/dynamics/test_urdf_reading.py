"""A URDF with all that a tree knows of, read as Pinocchio and MuJoCo read it; and files that are none."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from random_trees import full, relative

from youbot_dynamics.dynamics.tree import Tree
from youbot_dynamics.errors import ModelError
from youbot_dynamics.resources import urdf_path

# Bodies and joints in an order of their own; frames, inertial frames and axes turned; a link without mass.
ROBOT = """<?xml version="1.0"?>
<robot name="crane">
  <link name="hook">
    <inertial>
      <origin xyz="0.01 0.02 -0.1" rpy="0.3 -0.4 0.5"/>
      <mass value="0.7"/>
      <inertia ixx="0.004" ixy="0.0003" ixz="-0.0002" iyy="0.005" iyz="0.0001" izz="0.003"/>
    </inertial>
  </link>
  <link name="foot">
    <inertial>
      <origin xyz="0.1 0 0.05"/>
      <mass value="5.0"/>
      <inertia ixx="0.2" ixy="0" ixz="0" iyy="0.25" iyz="0" izz="0.3"/>
    </inertial>
  </link>
  <joint name="lift" type="prismatic">
    <parent link="mast"/><child link="slide"/>
    <origin xyz="0 0.1 0.4" rpy="0.1 0.2 -0.3"/>
    <axis xyz="0 0.6 0.8"/>
    <limit lower="-0.2" upper="0.5" effort="300" velocity="0.4"/>
    <dynamics damping="12.5" friction="3.5"/>
  </joint>
  <joint name="turn" type="continuous">
    <parent link="foot"/><child link="mast"/>
    <origin xyz="0.2 -0.1 0.3" rpy="0 0 1.2"/>
    <axis xyz="0 0 2"/>
    <limit effort="50" velocity="3.0"/>
  </joint>
  <link name="mast">
    <inertial>
      <origin xyz="0 0 0.2" rpy="0 0.1 0"/>
      <mass value="3.0"/>
      <inertia ixx="0.06" ixy="0.001" ixz="0" iyy="0.05" iyz="0.002" izz="0.02"/>
    </inertial>
  </link>
  <link name="slide">
    <inertial>
      <mass value="1.2"/>
      <inertia ixx="0.01" ixy="0" ixz="0" iyy="0.01" iyz="0" izz="0.01"/>
    </inertial>
  </link>
  <link name="camera">
    <inertial>
      <origin xyz="0.02 0 0"/>
      <mass value="0.3"/>
      <inertia ixx="0.001" ixy="0" ixz="0" iyy="0.001" iyz="0" izz="0.001"/>
    </inertial>
  </link>
  <link name="marker"/>
  <joint name="camera_mount" type="fixed">
    <parent link="slide"/><child link="camera"/>
    <origin xyz="0.05 0 0.1" rpy="0 0.7 0"/>
  </joint>
  <joint name="marker_mount" type="fixed">
    <parent link="hook"/><child link="marker"/>
    <origin xyz="0 0 -0.2"/>
  </joint>
  <joint name="swing" type="revolute">
    <parent link="slide"/><child link="hook"/>
    <origin xyz="0.3 0 0"/>
    <limit lower="-1.5" upper="0.75" effort="20" velocity="2"/>
    <dynamics damping="0.25"/>
  </joint>
</robot>
"""
JOINTS = ["turn", "lift", "swing"]


def test_links_limits_damping_and_friction_are_read() -> None:
    tree = Tree.from_urdf(ROBOT)
    assert tree.names[0] == "foot"
    assert set(tree.names) == {"foot", "mast", "slide", "camera", "hook", "marker"}
    assert (tree.nq, tree.nv) == (3, 3)
    found = {name: k for k, name in enumerate(tree.joint_names)}
    limits = {name: tree.limits[k] for name, k in found.items()}
    assert [limits[name].lower for name in JOINTS] == [-np.inf, -0.2, -1.5]
    assert [limits[name].upper for name in JOINTS] == [np.inf, 0.5, 0.75]
    assert [limits[name].velocity for name in JOINTS] == [3.0, 0.4, 2.0]
    assert [limits[name].effort for name in JOINTS] == [50.0, 300.0, 20.0]
    assert [tree.damping[found[name]] for name in JOINTS] == [0.0, 12.5, 0.25]
    assert [tree.friction[found[name]] for name in JOINTS] == [0.0, 3.5, 0.0]


def test_damping_of_a_urdf_is_read_but_not_applied() -> None:
    """Friction is a model of its own."""
    without = ROBOT.replace('<dynamics damping="12.5" friction="3.5"/>', "").replace('<dynamics damping="0.25"/>', "")
    q, v = np.array([0.1, 0.2, 0.3]), np.array([1.0, 2.0, 3.0])
    np.testing.assert_array_equal(Tree.from_urdf(ROBOT).bias_forces(q, v), Tree.from_urdf(without).bias_forces(q, v))


def test_a_file_and_its_text_are_the_same_tree(tmp_path: Path) -> None:
    path = tmp_path / "crane.urdf"
    path.write_text(ROBOT, encoding="utf-8")
    q = np.array([0.1, 0.2, 0.3])
    wanted = Tree.from_urdf(ROBOT).mass_matrix(q)
    for source in (path, str(path), "\n  " + ROBOT.split("?>")[1].strip()):
        np.testing.assert_array_equal(Tree.from_urdf(source).mass_matrix(q), wanted)


@pytest.mark.parametrize("floating_base", [False, True])
def test_pinocchio_reads_the_same_robot(floating_base: bool) -> None:
    pin = pytest.importorskip("pinocchio")
    root = (pin.JointModelFreeFlyer(),) if floating_base else ()
    # Pinocchio counts sine and cosine of a continuous joint as two positions.
    model = pin.buildModelFromXML(ROBOT, *root)
    data, tree = model.createData(), Tree.from_urdf(ROBOT, floating_base)
    order = [name for name in model.names[1:] if name in JOINTS]
    joints = list(tree.joint_names)
    mine = [int(tree.layout.v_start[joints.index(name)]) for name in order]
    theirs = [model.joints[model.getJointId(name)].idx_v for name in order]
    base = list(range(6)) if floating_base else []
    rng = np.random.default_rng(0)
    for _ in range(10):
        q, v, a = np.zeros(tree.nq), rng.normal(size=tree.nv), rng.normal(size=tree.nv)
        if floating_base:
            quaternion = rng.normal(size=4)
            q[:7] = [*rng.normal(size=3), *quaternion / np.linalg.norm(quaternion)]
        other, speeds, accelerations = pin.neutral(model), np.zeros(model.nv), np.zeros(model.nv)
        other[: len(base) + (1 if base else 0)] = q[: len(base) + (1 if base else 0)]
        for name in order:
            joint = model.joints[model.getJointId(name)]
            angle = rng.uniform(-1.0, 1.0)
            q[int(tree.layout.q_start[joints.index(name)])] = angle
            other[joint.idx_q : joint.idx_q + joint.nq] = [angle] if joint.nq == 1 else [np.cos(angle), np.sin(angle)]
        speeds[base + theirs], accelerations[base + theirs] = v[base + mine], a[base + mine]
        wanted = pin.rnea(model, data, other, speeds, accelerations)
        assert relative(tree.inverse_dynamics(q, v, a)[base + mine], wanted[base + theirs]) < 1e-10
        matrix = full(pin.crba(model, data, other))
        chosen = np.ix_(base + mine, base + mine), np.ix_(base + theirs, base + theirs)
        assert relative(tree.mass_matrix(q)[chosen[0]], matrix[chosen[1]]) < 1e-10
        pin.framesForwardKinematics(model, data, other)
        poses = tree.poses(q)
        for name in tree.names:
            frame = data.oMf[model.getFrameId(name, pin.FrameType.BODY)]
            np.testing.assert_allclose(poses[tree.body(name)], frame.homogeneous, rtol=0, atol=1e-12)
        assert tree.bodies(q).mass == pytest.approx(10.2)


def test_mujoco_reads_the_same_robot() -> None:
    mujoco = pytest.importorskip("mujoco")
    compiler = '<mujoco><compiler fusestatic="false" balanceinertia="false"/></mujoco>'
    model = mujoco.MjModel.from_xml_string(ROBOT.replace('<robot name="crane">', f'<robot name="crane">{compiler}'))
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    model.dof_damping[:] = 0.0
    data, tree = mujoco.MjData(model), Tree.from_urdf(ROBOT)
    joints = list(tree.joint_names)
    mine = [int(tree.layout.v_start[joints.index(name)]) for name in JOINTS]
    theirs = [int(model.joint(name).dofadr[0]) for name in JOINTS]
    limits = [tree.limits[joints.index(name)] for name in JOINTS[1:]]
    for name, limit in zip(JOINTS[1:], limits, strict=True):
        np.testing.assert_allclose(model.joint(name).range, [limit.lower, limit.upper], rtol=0, atol=1e-12)
    rng = np.random.default_rng(0)
    for _ in range(10):
        q, v, tau = rng.uniform(-1, 1, 3), rng.normal(size=3), 5.0 * rng.normal(size=3)
        data.qpos[theirs], data.qvel[theirs], data.qfrc_applied[theirs] = q[mine], v[mine], tau[mine]
        mujoco.mj_forward(model, data)
        assert relative(tree.forward_dynamics(q, v, tau)[mine], data.qacc[theirs]) < 1e-9
        assert relative(tree.bias_forces(q, v)[mine], data.qfrc_bias[theirs]) < 1e-9


def test_a_tree_may_begin_at_any_link() -> None:
    """What does not hang on it is left out, and the chosen link stands at the world's origin."""
    tree = Tree.from_urdf(ROBOT, root="mast")
    assert set(tree.names) == {"mast", "slide", "camera", "hook", "marker"}
    np.testing.assert_array_equal(tree.poses(np.zeros(2))[0], np.eye(4))
    whole = Tree.from_urdf(ROBOT)
    q = np.array([0.0, 0.3, -0.4])
    carried = np.linalg.inv(whole.poses(q)[whole.body("mast")]) @ whole.poses(q)[whole.body("hook")]
    np.testing.assert_allclose(tree.poses(q[1:])[tree.body("hook")], carried, rtol=0, atol=1e-14)
    floating = Tree.from_urdf(ROBOT, True, root="slide")
    assert (floating.nq, floating.nv) == (8, 7)


def test_locked_joints_stay_at_zero() -> None:
    tree, whole = Tree.from_urdf(ROBOT, locked=["lift"]), Tree.from_urdf(ROBOT)
    assert tree.nv == 2
    kept = [0, 2]
    q = np.array([0.4, 0.0, -0.5])
    np.testing.assert_allclose(tree.mass_matrix(q[kept]), whole.mass_matrix(q)[np.ix_(kept, kept)], rtol=1e-12)
    np.testing.assert_allclose(tree.gravity_forces(q[kept]), whole.gravity_forces(q)[kept], rtol=0, atol=1e-12)


def test_gravity_and_rotors_can_be_given() -> None:
    tree = Tree.from_urdf(ROBOT, gravity=(0.0, 0.0, 0.0), rotor_inertias=[0.1, 0.2, 0.3])
    q = np.array([0.1, 0.2, 0.3])
    assert not tree.gravity_forces(q).any()
    more = tree.mass_matrix(q) - Tree.from_urdf(ROBOT).mass_matrix(q)
    np.testing.assert_allclose(more, np.diag([0.1, 0.2, 0.3]), rtol=0, atol=1e-13)


def test_a_floating_joint_of_a_urdf_floats() -> None:
    text = ROBOT.replace('name="turn" type="continuous"', 'name="turn" type="floating"')
    assert (Tree.from_urdf(text).nq, Tree.from_urdf(text).nv) == (9, 8)


def test_the_youbot_is_read_whole() -> None:
    tree = Tree.from_urdf(urdf_path("youbot.urdf"), floating_base=True)
    assert tree.nv == 6 + 4 + 5 + 2
    assert tree.bodies(tree.step(np.array([0, 0, 0, 0, 0, 0, 1] + [0.0] * 11), np.zeros(17), 0.0)).mass > 29.0


LINKS = '<link name="a"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"/></inertial></link><link name="b"/>'
JOINT = '<joint name="j" type="fixed"><parent link="a"/><child link="b"/></joint>'


def robot(inside: str) -> str:
    return f'<robot name="r">{inside}</robot>'


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("<robot name='r'><link", "the URDF text: got no XML: .*expand xacro files first"),
        ("<sdf/>", "the URDF text: got <sdf>; expected <robot>"),
        (robot(""), "the URDF text: got no link; expected at least one; expand xacro files first"),
        ('<robot name="r"><xacro:include filename="x"/></robot>', "got no XML: unbound prefix.*expand xacro files"),
        (
            '<robot name="r" xmlns:xacro="http://ros.org/wiki/xacro"><xacro:include filename="x"/></robot>',
            "got no link.*expand xacro files",
        ),
        (robot("<link/>"), "<link> of the URDF text: got no name"),
        (robot(LINKS + '<link name="a"/>'), "link 'a' of the URDF text: got 2 of that name; expected one"),
        (robot(LINKS + JOINT + JOINT), "joint 'j' of the URDF text: got 2 of that name"),
        (robot(LINKS), "links of the URDF text: got roots a, b; expected one root"),
        (robot(LINKS + JOINT.replace('"b"', '"c"')), "joint 'j' of the URDF text: got link 'c'; expected a link"),
        (robot(LINKS + JOINT.replace('"a"', '"c"')), "joint 'j' of the URDF text: got link 'c'; expected a link"),
        (robot(LINKS + JOINT.replace('<child link="b"/>', "")), "joint 'j' of the URDF text: got no child"),
        (
            robot(LINKS + JOINT + JOINT.replace('"j"', '"k"')),
            "link 'b' of the URDF text: got two joints that carry it, 'j' and 'k'; expected an open tree",
        ),
        (
            robot(LINKS + JOINT + '<joint name="k" type="fixed"><parent link="b"/><child link="a"/></joint>'),
            "links of the URDF text: got a loop: every link is carried by another",
        ),
        (
            robot(
                '<link name="c"/><link name="d"/>'
                + LINKS
                + JOINT
                + '<joint name="k" type="fixed"><parent link="c"/><child link="d"/></joint>'
                + '<joint name="l" type="fixed"><parent link="d"/><child link="c"/></joint>'
            ),
            "links of the URDF text: got a loop of c, d; expected an open tree",
        ),
        (
            robot(LINKS + JOINT.replace("fixed", "planar")),
            "joint 'j' of the URDF text: got type 'planar'; expected one of",
        ),
        (robot(LINKS + JOINT.replace('type="fixed"', "")), "joint 'j' of the URDF text: got type ''"),
        (
            robot(LINKS + JOINT.replace("fixed", "continuous").replace("</joint>", '<axis xyz="0 0 0"/></joint>')),
            "axis of the joint of body 'b'.*expected a direction",
        ),
        (
            robot(LINKS + JOINT.replace("</joint>", '<axis xyz="0 1"/></joint>')),
            r"joint 'j' of the URDF text xyz: got '0 1'; expected 3 number",
        ),
        (
            robot(LINKS.replace('value="1"', 'value="heavy"') + JOINT),
            "link 'a' of the URDF text mass value: got 'heavy'",
        ),
        (robot(LINKS.replace('value="1"', 'value="nan"') + JOINT), "link 'a' of the URDF text mass value: got 'nan'"),
        (robot(LINKS.replace('value="1"', 'value="${m}"') + JOINT), r"link 'a' of the URDF text mass value: got '\$"),
        (robot(LINKS.replace('value="1"', 'value="-1"') + JOINT), "mass of body 'a': got -1"),
        (robot(LINKS.replace('izz="1"', 'izz="3"') + JOINT), "inertia of body 'a'.*sum of the other two"),
        (robot(LINKS + JOINT.replace("fixed", "continuous")), "joint of body 'b': got no mass beyond it"),
        (
            robot(
                LINKS + JOINT.replace("fixed", "revolute").replace("</joint>", '<limit lower="1" upper="0"/></joint>')
            ),
            "joint 'j' of the URDF text: got limits 1 to 0; expected lower <= upper",
        ),
    ],
)
def test_what_is_no_robot_is_refused_with_what_and_where(text: str, says: str) -> None:
    with pytest.raises(ModelError, match=says):
        Tree.from_urdf(text)


def jointed(kind: str, inside: str, end: str = "") -> str:
    """Two links, each with mass, on a joint of a kind with something in it."""
    second = LINKS.replace('<link name="b"/>', "").replace('"a"', '"b"')
    joint = JOINT.replace("fixed", kind).replace("</joint>", f"{inside}</joint>")
    return robot(LINKS.replace('<link name="b"/>', "") + second + joint + end)


LIMIT = '<limit lower="-1" upper="1" effort="5" velocity="2"/>'


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (robot(LINKS.replace('value="1"', 'value="inf"') + JOINT), "link 'a' of the URDF text mass value: got 'inf'"),
        (robot(LINKS.replace('ixx="1"', 'ixx="1e999"') + JOINT), "link 'a' of the URDF text inertia ixx: got '1e999'"),
        (jointed("fixed", '<origin xyz="0 inf 0"/>'), "joint 'j' of the URDF text xyz: got '0 inf 0'"),
        (jointed("revolute", ""), "joint 'j' of the URDF text: got no <limit> of a revolute joint; expected its lower"),
        (jointed("prismatic", ""), "joint 'j' of the URDF text: got no <limit> of a prismatic joint"),
        (jointed("revolute", LIMIT.replace('"5"', '"-5"')), "joint 'j' of the URDF text effort: got -5; expected 0 or"),
        (jointed("continuous", '<limit velocity="-2"/>'), "joint 'j' of the URDF text velocity: got -2; expected 0 or"),
        (jointed("revolute", LIMIT + '<dynamics damping="-1"/>'), "joint 'j' of the URDF text damping: got -1; expect"),
        (jointed("revolute", LIMIT + '<dynamics friction="-2"/>'), "joint 'j' of the URDF text friction: got -2"),
        (jointed("revolute", LIMIT + '<dynamics damping="inf"/>'), "joint 'j' of the URDF text damping: got 'inf'"),
        (
            jointed("revolute", LIMIT + '<mimic joint="k" multiplier="-1"/>'),
            "joint 'j' of the URDF text: got <mimic> of joint 'k'; expected an independent joint; lock it",
        ),
    ],
)
def test_a_joint_or_body_with_impossible_numbers_is_refused_by_name(text: str, says: str) -> None:
    with pytest.raises(ModelError, match=says):
        Tree.from_urdf(text)


def test_a_joint_that_mimics_another_may_be_locked_or_left_out() -> None:
    text = jointed("revolute", LIMIT + '<mimic joint="k"/>')
    assert Tree.from_urdf(text, locked=["j"]).nv == 0
    assert Tree.from_urdf(text, root="b", floating_base=True).nv == 6


def test_limits_may_be_infinite_and_continuous_joints_go_without() -> None:
    tree = Tree.from_urdf(jointed("revolute", LIMIT.replace('"2"', '"inf"')))
    assert (tree.limits[1].velocity, tree.limits[1].effort) == (np.inf, 5.0)
    assert Tree.from_urdf(jointed("continuous", "")).limits[1].upper == np.inf


def test_messages_about_joints_name_their_file(tmp_path: Path) -> None:
    path = tmp_path / "grip.urdf"
    path.write_text(jointed("revolute", ""), encoding="utf-8")
    with pytest.raises(ModelError, match=r"^joint 'j' of grip\.urdf: got no <limit>"):
        Tree.from_urdf(path)
    path.write_text(jointed("revolute", LIMIT), encoding="utf-8")
    with pytest.raises(ModelError, match=r"^locked joint 'k' of grip\.urdf: got no such joint; expected one of j"):
        Tree.from_urdf(path, locked=["k"])


def test_files_that_cannot_be_read_are_refused_by_path(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="URDF file .*nowhere.urdf: got .*No such file.*expected a file that can be"):
        Tree.from_urdf(tmp_path / "nowhere.urdf")
    with pytest.raises(ModelError, match="URDF file .*got a folder"):
        Tree.from_urdf(str(tmp_path))
    binary = tmp_path / "mesh.urdf"
    binary.write_bytes(b"\xff\xfe\x00\x80")
    with pytest.raises(ModelError, match=r"^mesh\.urdf: got no XML"):
        Tree.from_urdf(binary)
    broken = tmp_path / "broken.urdf"
    broken.write_text("no robot", encoding="utf-8")
    with pytest.raises(ModelError, match=r"^broken\.urdf: got no XML"):
        Tree.from_urdf(broken)


def test_unknown_links_and_joints_are_refused_with_those_there_are() -> None:
    with pytest.raises(
        ModelError, match="root link 'arm' of the URDF text: got no such link; expected one of foot, mast"
    ):
        Tree.from_urdf(ROBOT, root="arm")
    with pytest.raises(
        ModelError, match="locked joint 'grip' of the URDF text: got no such joint; expected one of turn, lift"
    ):
        Tree.from_urdf(ROBOT, locked=["lift", "grip"])
