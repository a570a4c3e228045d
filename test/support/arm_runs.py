"""Runs of the twin's arm for the tests of its filter: what the driver reports, and the truth beside it."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np
from kept import kept
from numpy.typing import NDArray

from youbot_dynamics.dynamics.arm import ArmModel
from youbot_dynamics.dynamics.tree import Tree
from youbot_dynamics.estimation.arm_ekf import ArmEkf, ArmEkfTuning, ArmSensors, ArmTrack
from youbot_dynamics.robot import Robot, load_robot
from youbot_dynamics.simulation.arm import ArmPlant
from youbot_dynamics.simulation.truth import ArmTruth, load_arm_truth

Array = NDArray[np.float64]

ROBOT = load_robot()
SHEETS = ROBOT.arm.model()
NOMINAL = load_arm_truth(0)
MIDDLE = np.array([2.95, 1.2, -2.4, 1.8, 2.9])  # [rad] about upright
AMPLITUDE = np.array([0.9, 0.4, 0.5, 0.6, 0.9])  # [rad]
MOVING = 0.02  # [rad/s] slower joints count as standing
JITTER = 3e-4  # [s] of the stamps


@dataclass(frozen=True, eq=False)
class Run:
    """One run at 500 Hz, t messages: reported (t, 5) and true (t, 5) at the stamps."""

    stamp: Array
    position: Array
    velocity: Array
    effort: Array
    true_position: Array
    true_speed: Array
    true_friction: Array
    model: ArmModel

    def every(self, k: int) -> Run:
        """Every k-th message."""
        fields = {f.name: getattr(self, f.name)[::k] for f in dataclasses.fields(self) if f.name != "model"}
        return Run(**fields, model=self.model)

    @property
    def moving(self) -> NDArray[np.bool_]:
        """Messages at which all joints move (t,)."""
        return np.all(np.abs(self.true_speed) > MOVING, axis=1)


def drawn_truth(seed: int, share: float = 0.2, travel: float = 1e-3, jitter: float = JITTER) -> ArmTruth:
    """Masses, rotors, Coulomb, viscous friction and sigma0 of each joint `share` above or below the sheets."""
    random = np.random.default_rng([seed, 6])
    mass, rotor, coulomb, viscous, stiffness = 1.0 + share * random.choice([-1.0, 1.0], (5, 5))
    return dataclasses.replace(
        NOMINAL,
        link_mass=tuple(mass),
        rotor_inertia=tuple(rotor),
        coulomb=tuple(coulomb),
        viscous=tuple(viscous),
        sliding_travel=tuple(travel * coulomb / stiffness),
        stamp_jitter=jitter,
    )


@kept
def swing(
    seed: int,
    truth: ArmTruth,
    seconds: float = 6.0,
    period: int = 2,
    robot: Robot = ROBOT,
    middle: Array = MIDDLE,
    amplitude: Array = AMPLITUDE,
) -> Run:
    """The arm swings all joints, each to its own rhythm; a message every `period` cycles of 1 ms."""
    random, n = np.random.default_rng([seed, 7]), len(middle)
    rate = 2.0 * np.pi / random.uniform(3.0, 6.0, n)
    phase = random.uniform(0.0, 2.0 * np.pi, n)
    second = random.uniform(0.1, 0.3, n)

    def path(time: Array) -> tuple[Array, Array, Array]:
        turn = rate * time[:, None] + phase
        q = middle + amplitude * (np.sin(turn) + second * np.sin(2.3 * turn)) / 1.3
        v = amplitude * rate * (np.cos(turn) + 2.3 * second * np.cos(2.3 * turn)) / 1.3
        a = -amplitude * rate**2 * (np.sin(turn) + 2.3**2 * second * np.sin(2.3 * turn)) / 1.3
        return q, v, a

    times = np.arange(0.0, seconds + 0.5, 0.1)
    q, v, a = path(times)
    plant = ArmPlant(truth, robot, seed, position=q[0])
    plant.command_trajectory(times[1:], q[1:], v[1:], a[1:])
    model = plant.model
    cycles = int(round(seconds / 1e-3))
    truth_rows, readings = np.empty((cycles + 1, 3, n)), []
    state = plant._state
    truth_rows[0] = state[:, :3].T
    for k in range(1, cycles + 1):
        plant.advance(k * 1e-3)
        truth_rows[k] = state[:, :3].T
        if k % period == 0:
            readings.append(plant.read())
    stamp = np.array([reading.stamp for reading in readings])
    keep = (stamp > 0.0) & (stamp < seconds - 1e-3)
    stamp = stamp[keep]
    there = np.floor(stamp / 1e-3).astype(int)
    share = (stamp / 1e-3 - there)[:, None]
    here, after = truth_rows[there], truth_rows[there + 1]
    speed = here[:, 1] + share * (after[:, 1] - here[:, 1])
    position = here[:, 0] + 1e-3 * share * 0.5 * (here[:, 1] + speed)
    bristle = here[:, 2] + share * (after[:, 2] - here[:, 2])
    friction = np.column_stack(
        [f.torque(bristle[:, k].copy(), speed[:, k].copy()) for k, f in enumerate(model.friction)]
    )

    def column(name: str) -> Array:
        return np.array([getattr(reading, name)[:n] for reading in readings])[keep]

    return Run(stamp, column("position"), column("velocity"), column("effort"), position, speed, friction, model)


def sensors(jitter: float = JITTER, robot: Robot = ROBOT) -> ArmSensors:
    return ArmSensors.of_robot(robot, effort_noise=NOMINAL.effort_noise, stamp_jitter=jitter)


def filtered(
    run: Run, arm: ArmModel, tuning: ArmEkfTuning, jitter: float = JITTER, robot: Robot = ROBOT
) -> tuple[ArmTrack, Array]:
    """Filter a run message by message; the track, and NEES (t,) of positions and speeds."""
    ekf = ArmEkf(arm, sensors(jitter, robot), tuning)
    t, n = len(run.stamp), arm.tree.nv
    covariances = np.empty((t, 2 * n, 2 * n))
    track = ekf.replay(run.stamp, run.position, run.effort, covariances=covariances)
    error = np.hstack([track.position - run.true_position, track.speed - run.true_speed])
    nees = np.einsum("ti,ti->t", error, np.linalg.solve(covariances, error[:, :, None])[:, :, 0])
    return track, nees


def rms(values: Array) -> float:
    return float(np.sqrt(np.mean(np.square(values))))


def figures(run: Run, arm: ArmModel, tuning: ArmEkfTuning, settle: float = 2.0) -> dict[str, Array]:
    """What a run shows after `settle` seconds: consistency, and errors over those of the sensors."""
    track, nees = filtered(run, arm, tuning)
    use = (run.stamp > settle) & run.moving
    coulomb = np.array([friction.coulomb for friction in run.model.friction])
    after = run.stamp > settle
    return {
        "nees": nees[use] / 10.0,
        "steps": np.flatnonzero(use),
        "nis": track.nis[after] / np.maximum(track.readings[after], 1),
        "nis_count": track.readings[after],
        "speed": np.mean(np.square(track.speed - run.true_speed)[use], axis=0),
        "told": np.mean(np.square(run.velocity - run.true_speed)[use], axis=0),
        "position": np.mean(np.square(track.position - run.true_position)[use], axis=0),
        "read": np.mean(np.square(run.position - run.true_position)[use], axis=0),
        "friction": np.mean(np.square((track.friction_torque - run.true_friction)[after] / coulomb), axis=0),
    }


PLACE = np.array([0.01, 0.0, 0.075])  # [m] of the payload in the last link's frame


def loaded(truth: ArmTruth, mass: float, tree: Tree = SHEETS.tree, place: Array = PLACE) -> ArmTruth:
    """The arm with a payload: a heavier last link whose centre of mass lies elsewhere."""
    layout, last = tree.layout, tree.nv - 1
    own = truth.link_mass[last] * layout.masses[last]
    centre = layout.first_moments[last] / layout.masses[last]
    together = (own * centre + mass * place) / (own + mass)
    factors = (*truth.link_mass[:last], (own + mass) / layout.masses[last])
    shifts = {
        f"centre_{axis}": (*getattr(truth, f"centre_{axis}")[:last], float(shift))
        for axis, shift in zip("xyz", together - centre, strict=True)
    }
    return dataclasses.replace(truth, link_mass=factors, **shifts)
