"""The wheels of free rollers in Drake: the model that MuJoCo gets, on a floor with another solver of the contacts."""

from __future__ import annotations

import logging
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass

import numpy as np
import pytest

from youbot_dynamics.dynamics.arm import ArmModel
from youbot_dynamics.kinematics.planar import rotation, yaw_of_quaternion
from youbot_dynamics.simulation.mujoco_youbot._model import BASE, TIMESTEP, contact_model
from youbot_dynamics.simulation.mujoco_youbot._plant import ContactPlant
from youbot_dynamics.simulation.truth import BaseTruth

_WHEELS = ("wheel_joint_fl", "wheel_joint_fr", "wheel_joint_bl", "wheel_joint_br")


@dataclass(frozen=True)
class Contact:
    """How Drake computes the contacts, all by its solver SAP; its other solver, TAMSI, is to be removed from it.

    Args:
        approximation: sap, lagged or similar. Under sap, the convex one, what slides floats on the floor, the less the
            smaller the step: rollers slide as they come to the floor.
        steps: of Drake in a cycle of 1 ms.
        stiffness: of a roller and of the floor [N/m]; one behind the other they have half of it.
        dissipation: of Hunt and Crossley, of each [s/m]; without effect under sap.
        stiction: speed from which on a contact slides [m/s]; without effect under sap.
        every: 2 takes every second sphere of a roller. Drake spends most of its time on spheres beside each other.
    """

    approximation: str = "lagged"
    steps: int = 1
    stiffness: float = 1e7
    dissipation: float = 50.0
    stiction: float = 1e-4
    every: int = 2


class DrakePlant(ContactPlant):
    """Base on a floor, its arm held, at rest at the origin.

    Drake reads the MJCF of `contact_model`. What it does not take from there is added: motors with their rotors, the
    drag of the base, and the Coulomb friction of wheels and rollers, which stops a joint within a step but never turns
    it back.
    """

    def __init__(self, truth: BaseTruth, arm: ArmModel, contact: Contact = Contact()) -> None:
        pytest.importorskip("pydrake", reason="drake is not installed: pip install 'youbot_dynamics[drake]'")
        from pydrake.geometry import (
            CollisionFilterDeclaration,
            DefaultProximityProperties,
            GeometrySet,
            SceneGraphConfig,
        )
        from pydrake.multibody.parsing import Parser
        from pydrake.multibody.plant import AddMultibodyPlant, MultibodyPlantConfig
        from pydrake.systems.analysis import Simulator
        from pydrake.systems.framework import DiagramBuilder

        super().__init__(truth)
        model = ElementTree.fromstring(contact_model(truth, arm, with_arm=False))
        # MuJoCo takes the friction of the floor alone, Drake the harmonic mean of both.
        model.find("default/default[@class='roller']/geom").set("friction", repr(truth.floor_friction))
        for body in model.iter("body"):
            spheres = body.findall("geom[@class='roller']")
            for sphere in set(spheres) - set(spheres[:: contact.every]):
                body.remove(sphere)
        builder = DiagramBuilder()
        self._plant, scene = AddMultibodyPlant(
            MultibodyPlantConfig(
                time_step=TIMESTEP / contact.steps,
                contact_model="point",
                discrete_contact_approximation=contact.approximation,
                stiction_tolerance=contact.stiction,
            ),
            SceneGraphConfig(
                default_proximity_properties=DefaultProximityProperties(
                    point_stiffness=contact.stiffness,
                    relaxation_time=2.0 * TIMESTEP,
                    hunt_crossley_dissipation=contact.dissipation,
                )
            ),
            builder,
        )
        logging.getLogger("drake").setLevel(logging.ERROR)  # a line for each sphere
        Parser(self._plant).AddModelsFromString(ElementTree.tostring(model, encoding="unicode"), "xml")
        joints = {joint.get("name"): joint for joint in model.iter("joint")}
        for name in _WHEELS:
            motor = self._plant.AddJointActuator(name, self._plant.GetJointByName(name))
            motor.set_default_rotor_inertia(float(joints[name].get("armature")))
        self._plant.Finalize()
        rollers = GeometrySet()
        for name in joints:
            body = self._plant.GetJointByName(name).child_body()
            rollers.Add(self._plant.GetCollisionGeometriesForBody(body))
        scene.collision_filter_manager().Apply(CollisionFilterDeclaration().ExcludeWithin(rollers))
        self._simulator = Simulator(builder.Build())
        self._simulator.Initialize()
        self._context = self._plant.GetMyMutableContextFromRoot(self._simulator.get_mutable_context())

        turning = [self._plant.GetJointByName(name) for name in joints]
        self._turning = np.array([joint.velocity_start() for joint in turning])
        self._coulomb = np.array([float(joint.get("frictionloss")) for joint in joints.values()])
        # What a joint that touches nothing has to be turned by, rotors included.
        inertias = np.diag(self._plant.CalcMassMatrix(self._context))[self._turning]
        self._stopping = inertias * contact.steps / TIMESTEP
        wheels = [self._plant.GetJointByName(name) for name in _WHEELS]
        self._angles = np.array([joint.position_start() for joint in wheels])
        self._speeds = np.array([joint.velocity_start() for joint in wheels])
        base = self._plant.GetBodyByName(BASE)
        self._at, self._moves = base.floating_positions_start(), base.floating_velocities_start_in_v()
        turn = truth.viscous_y * truth.half_length**2 + truth.viscous_x * truth.half_width**2
        self._drag = np.array([truth.viscous_x, truth.viscous_y, turn])
        self._steps, self._done = contact.steps, 0
        self._look()

    @property
    def wheel_angles(self) -> np.ndarray:
        return self._position[self._angles]

    @property
    def wheel_speeds(self) -> np.ndarray:
        return self._speed[self._speeds]

    def _in_plane(self) -> tuple[np.ndarray, np.ndarray]:
        qw, qx, qy, qz, x, y, _ = self._position[self._at : self._at + 7].tolist()
        _, _, turn, vx, vy, _ = self._speed[self._moves : self._moves + 6].tolist()
        return np.array([x, y, yaw_of_quaternion(qx, qy, qz, qw)]), np.array([vx, vy, turn])

    def _move(self, torques: np.ndarray) -> None:
        self._plant.get_actuation_input_port().FixValue(self._context, torques)
        for _ in range(self._steps):
            loads = np.zeros(len(self._speed))
            pulls = self._stopping * self._speed[self._turning]
            loads[self._turning] = -np.clip(pulls, -self._coulomb, self._coulomb)
            forward, left, loads[self._moves + 2] = -self._drag * self.twist
            loads[self._moves + 3 : self._moves + 5] = rotation(self._in_plane()[0][2]) @ [forward, left]
            self._plant.get_applied_generalized_force_input_port().FixValue(self._context, loads)
            self._done += 1
            self._simulator.AdvanceTo(self._done * TIMESTEP / self._steps)
            self._look()

    def _look(self) -> None:
        self._position = self._plant.GetPositions(self._context)
        self._speed = self._plant.GetVelocities(self._context)
