"""Bags of the twin for the stages of an identification: base with efforts, arm with efforts, motors with sensors."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
from friction_runs import FrictionRun
from kept import kept

from youbot_dynamics.identification.excitation import ArmExcitation, MultiSine
from youbot_dynamics.recording.mcap_writer import BagWriter
from youbot_dynamics.recording.message_types import joint_state_cdr
from youbot_dynamics.robot import load_robot
from youbot_dynamics.simulation.arm import ArmPlant
from youbot_dynamics.simulation.truth import ArmTruth

JOINT_STATE = "sensor_msgs/msg/JointState"
ROBOT = load_robot()
BASE = ROBOT.base.geometry.mecanum()
WHEELS, ARM = ROBOT.driver.wheel_joints, ROBOT.driver.arm_joints
UPRIGHT = np.array([2.95, 1.13, -2.55, 1.79, 2.92])

Row = tuple[float, str, bytes]  # time [s], topic, message
TypedRow = tuple[float, str, str, bytes]  # time [s], topic, type, message


def nanoseconds(time: float) -> int:
    return 1_700_000_010 * 1_000_000_000 + round(time * 1e9)


def base_rows(run: FrictionRun, effort: bool = True, command: bool = True) -> list[Row]:
    """Messages of a drive of the base: time [s], topic, bytes."""
    driver, rows = ROBOT.driver, []
    for stamp, position, torque in zip(run.stamps, run.positions, run.efforts, strict=True):
        efforts = torque * np.array(driver.velocity_sign) if effort else ()
        angles = position * np.array(driver.position_sign)
        cdr = joint_state_cdr(nanoseconds(stamp), WHEELS, angles, np.zeros(4), efforts)
        rows.append((stamp, "/driver/joint_states", cdr))
    for sent, twist in zip(run.command_time, run.twist, strict=True) if command else ():
        cdr = joint_state_cdr(nanoseconds(sent), WHEELS, velocity=BASE.wheel_speeds(twist))
        rows.append((sent, "/wheel_commands", cdr))
    return rows


@cache
def swing(duration: float = 40.0, moving: tuple[float, ...] = (1, 1, 1, 1, 1)) -> ArmExcitation:
    """A motion of all joints, or of some, without the search for the best one."""
    random = np.random.default_rng(2)
    frequencies = np.geomspace(0.06, 0.3, 15).reshape(3, 5).T
    phases = random.uniform(0.0, 2.0 * np.pi, (5, 3))
    amplitudes = np.array([0.8, 0.4, 0.5, 0.6, 0.9])[:, None] * np.array([1.0, 0.5, 0.25]) / 1.75
    sines = MultiSine(duration, frequencies, amplitudes * np.array(moving)[:, None], phases)
    times = np.linspace(0.0, duration, round(10 * duration) + 1)
    x, v, a = sines.at(times)
    return ArmExcitation(times, UPRIGHT + x, v, a)


@kept
def arm_rows(
    truth: ArmTruth,
    motion: ArmExcitation,
    seed: int,
    *,
    sensors: bool = False,
    effort: bool = True,
    scale: float = 1.0,
    shift: float = 0.0,
) -> list[Row]:
    """Messages of the arm that follows a motion; `scale` and `shift` make other angles of its own."""
    plant = ArmPlant(truth, ROBOT, seed, position=motion.positions[0])
    plant.command_trajectory(motion.times, motion.positions, motion.velocities, motion.accelerations)
    rows = []
    for k in range(1, int(motion.times[-1] * 50)):
        plant.advance(0.02 * k)
        read = plant.read()
        efforts = read.effort[:5] if effort else ()
        cdr = joint_state_cdr(
            nanoseconds(read.stamp), ARM, shift + scale * read.position[:5], read.velocity[:5], efforts
        )
        rows.append((read.stamp, "/driver/joint_states", cdr))
        if sensors:
            rows += sensor_rows(plant, k)
    return rows


def sensor_rows(plant: ArmPlant, k: int) -> list[Row]:
    """Voltages at 50 Hz, temperatures at 2 Hz, in the k-th pass of the driver's loop."""
    volts = plant.read_voltages()
    rows = [(volts.stamp, "/arm_1/motor_voltage", joint_state_cdr(nanoseconds(volts.stamp), ARM, effort=volts.voltage))]
    if k % 25 == 0:
        warm = plant.read_temperatures()
        for topic, values in (("motor", warm.winding), ("housing", warm.housing)):
            cdr = joint_state_cdr(nanoseconds(warm.stamp), ARM, effort=values)
            rows.append((warm.stamp, f"/arm_1/{topic}_temperature", cdr))
    return rows


def write_rows(folder: Path, rows: Sequence[Row | TypedRow], robot_id: str = "youbot") -> Path:
    """A bag of messages, in the order of their times; those without a type are joint states."""
    with BagWriter(folder, {"robot_id": robot_id}) as bag:
        for time, topic, *kind, cdr in sorted(rows, key=lambda row: row[0]):
            bag.add_topic(topic, *(kind or [JOINT_STATE]))
            bag.write(topic, cdr, nanoseconds(time))
    return folder


@kept
def heat_rows(truth: ArmTruth, seed: int, duration: float, stretched: bool = False) -> list[Row]:
    """Messages of an arm that works for 80 s and rests for 40 s, again and again, on a robot with motor sensors.

    Stretched out, its motors get warmer.
    """
    random = np.random.default_rng(seed)
    plant, rows = ArmPlant(truth, ROBOT, seed, position=UPRIGHT), []
    for k in range(1, int(duration * 50)):
        if k % 250 == 1:
            away = random.uniform(-1.0, 1.0, 5) * ([0.3] * 5 if stretched else [1.0, 0.8, 0.8, 0.9, 1.5])
            middle = UPRIGHT + [0.0, 1.2 * stretched, 0.0, 0.0, 0.0]
            plant.command_positions(middle + away if (k // 250) % 24 < 16 else UPRIGHT)
        plant.advance(0.02 * k)
        read = plant.read()
        cdr = joint_state_cdr(nanoseconds(read.stamp), ARM, read.position[:5], read.velocity[:5], read.effort[:5])
        rows.append((read.stamp, "/driver/joint_states", cdr))
        rows += sensor_rows(plant, k)
    return rows


@kept
def torque_rows(truth: ArmTruth, seed: int) -> list[Row]:
    """Messages of an arm whose joints 1 and 5 are pushed out of rest by torques, twelve times to and fro."""
    weight = ROBOT.arm.model().tree.gravity_forces
    plant, rows, k = ArmPlant(truth, ROBOT, seed, position=UPRIGHT), [], 0
    for leg in range(12):
        plant.command_velocities(np.zeros(5))
        for step in range(110):
            if step >= 50:
                way = 1.0 if leg % 2 == 0 else -1.0
                push = way * np.array([2.0 if step < 65 else 1.2, 0.0, 0.0, 0.0, 0.6 if step < 60 else 0.22])
                torque = weight(plant.position) + push
                plant.command_torques(torque)
                cdr = joint_state_cdr(nanoseconds(0.02 * k), ARM, effort=torque)
                rows.append((0.02 * k, "/arm_1/joint_torque_command", cdr))
            k += 1
            plant.advance(0.02 * k)
            read = plant.read()
            cdr = joint_state_cdr(nanoseconds(read.stamp), ARM, read.position[:5], read.velocity[:5], read.effort[:5])
            rows.append((read.stamp, "/driver/joint_states", cdr))
    return rows
