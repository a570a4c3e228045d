"""The arm for a contact engine: bodies of our tree, joints moved by MuJoCo's own motors with friction and heat."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from youbot_dynamics.arrays import Vector, array
from youbot_dynamics.dynamics.arm import ArmModel
from youbot_dynamics.dynamics.rigid_body import inertia_about
from youbot_dynamics.errors import ModelError
from youbot_dynamics.simulation.mujoco_wheels import inertial, placed, text


def arm_bodies(arm: ArmModel, position: ArrayLike, moves: bool, shapes: dict[str, str]) -> str:
    """MJCF of the arm's bodies, to stand within the body of its first link.

    Args:
        arm: n joints in a chain.
        position: (n,) at which an arm that does not move is held [rad].
        moves: whether it has its joints.
        shapes: MJCF of what is seen of the bodies, by their names.
    """
    tree, layout = arm.tree, arm.tree.layout
    held = array("position of the arm", position, (tree.nv,))
    poses = tree.poses(held)
    opened, parent = [], np.eye(4)
    for i, name in enumerate(tree.names):
        mass = float(layout.masses[i])
        centre = layout.first_moments[i] / mass
        place = np.eye(4)
        place[:3, :3], place[:3, 3] = layout.rotations[i], layout.positions[i]
        joint, limits = "", tree.limits[i]
        if moves:
            joint = (
                f'<joint name="{tree.joint_names[i]}" axis="{text(layout.axes[i])}"'
                f' armature="{float(layout.rotor_inertias[i])!r}" damping="{float(arm.friction[i].viscous)!r}"'
                f' range="{text([limits.lower, limits.upper])}"/>'
            )
        else:
            place = np.linalg.inv(parent) @ poses[i]
            parent = poses[i]
        central = layout.inertias[i] - inertia_about(np.zeros((3, 3)), mass, centre)
        body = inertial(mass, centre, central)
        opened.append(f'<body name="{name}" {placed(place)}>{joint}{body}{shapes.get(name, "")}')
    return "".join(opened) + "</body>" * len(opened)


def arm_motors(arm: ArmModel) -> str:
    """MJCF of the motors, driven by torques [N m] at the joints and named as these.

    A motor of torque constant K behind a gear N is one of constant N K at the joint: the same current for a torque,
    so the same heat. Its one thermal node is the winding; the air around it is the housing, which the plant moves
    (`MujocoYoubot`). The friction is MuJoCo's LuGre model, its viscous part the damping of the joint.

    Raises:
        ModelError: a gear with an efficiency, which MuJoCo's motor does not have.
    """
    rows = []
    for name, geared, friction in zip(arm.tree.joint_names, arm.motors, arm.friction, strict=True):
        if geared.efficiency != 1.0:
            raise ModelError(f"gear of {name}", got=f"efficiency {geared.efficiency:g}", expected="1 for MuJoCo")
        motor = geared.motor
        coulomb, _, sigma0, sigma1, static, stribeck_speed = friction.constants
        heat = [
            motor.winding_housing_resistance,
            motor.winding_capacity,
            0.0,
            motor.temperature_coefficient,
            motor.reference_temperature,
            motor.ambient_temperature,
        ]
        rows.append(
            f'<dcmotor name="{name}" joint="{name}" input="ff"'
            f' motorconst="{geared.ratio * motor.torque_constant!r}" resistance="{motor.resistance!r}"'
            f' lugre="{text([sigma0, sigma1, coulomb, static, stribeck_speed])}" thermal="{text(heat)}"/>'
        )
    return "".join(rows)


def fixed_arm_model(arm: ArmModel, timestep: float) -> str:
    """MJCF text of the arm alone, its first link fixed to the world.

    Args:
        arm: n joints in a chain.
        timestep: of the simulation [s].
    """
    gravity = text(arm.tree.layout.gravity)
    return (
        f'<mujoco model="arm"><compiler angle="radian" autolimits="true"/>'
        f'<option timestep="{timestep!r}" integrator="Euler" gravity="{gravity}"/>'
        f"<worldbody>{arm_bodies(arm, np.zeros(arm.tree.nv), True, {})}</worldbody>"
        f"<actuator>{arm_motors(arm)}</actuator></mujoco>"
    )


def arm_at(arm: ArmModel, position: ArrayLike) -> tuple[float, Vector, Vector]:
    """Mass [kg], centre of mass (3,) [m] and inertia (3, 3) [kg m2] about it of the whole arm at position (n,) [rad].

    In the frame of the arm's first link; rotors, which turn with their joints, are not in it.
    """
    layout = arm.tree.layout
    mass, first, second = 0.0, np.zeros(3), np.zeros((3, 3))
    for i, pose in enumerate(arm.tree.poses(array("position of the arm", position, (arm.tree.nv,)))):
        m, turned = float(layout.masses[i]), pose[:3, :3]
        centre = layout.first_moments[i] / m
        central = turned @ (layout.inertias[i] - inertia_about(np.zeros((3, 3)), m, centre)) @ turned.T
        at = turned @ centre + pose[:3, 3]
        mass, first, second = mass + m, first + m * at, second + inertia_about(central, m, at)
    return mass, first / mass, second - inertia_about(np.zeros((3, 3)), mass, first / mass)
