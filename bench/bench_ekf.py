"""The arm's filter over a log of a swinging arm, positions read at 500 Hz, beside what a user would write.

All candidates run the same filter: the implicit step, its Jacobian, the same noise. filterpy's Jacobian comes from
central differences, since it has no other. The log is made here by the arm's own model under torques that swing it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bench.arm_peers import pinocchio_arm
from bench.ekf_peers import NumpyArm, filterpy_filter, numpy_filter
from bench.harness import AccuracyGoal, Candidate, Goal, Item, TimeGoal
from youbot_dynamics.dynamics.arm import ArmModel
from youbot_dynamics.estimation.arm_ekf import PROPAGATED, ArmEkf, ArmEkfTuning, ArmSensors
from youbot_dynamics.estimation.motor_heat import ArmTemperatures
from youbot_dynamics.resources import urdf_path
from youbot_dynamics.robot import Robot, load_robot

Array = NDArray[np.float64]

STEP = 2e-3  # [s]
START = (2.95, 1.2, -2.4, 1.8, 2.9)  # [rad]
SIZE = (3.0, 2.0, 1.5, 0.6, 0.3)  # [N m]
OTHERS = {name: Path(__file__).parents[1] / "test" / "robots" / f"{name}.yaml" for name in ("ur5e", "panda")}
OURS, NUMPY, FILTERPY = "youbot_dynamics", "numpy + Pinocchio", "filterpy, differences"
KNOWN = ArmEkfTuning(friction_error=0.0, load_error=0.0)
TEN_MINUTES = 600_000  # messages of a log at 1 kHz


class Log:
    """t messages of an arm of n joints under swinging torques: stamps (t,), positions and efforts (t, n)."""

    def __init__(
        self,
        count: int,
        robot: Robot | None = None,
        start: ArrayLike = START,
        size: ArrayLike = SIZE,
        step: float = STEP,
    ) -> None:
        self.robot = load_robot() if robot is None else robot
        self.arm: ArmModel = self.robot.arm.model()
        random = np.random.default_rng(2)
        time = step * np.arange(count)
        held = self.arm.tree.gravity_forces(np.array(start))
        rhythms = np.array([0.7, 0.9, 1.1, 1.3, 1.7, 1.9, 2.3])[: len(held)]
        swing = np.array(size) * np.sin(2.0 * np.pi * rhythms * time[:, None])
        motion = self.arm.simulate(self.arm.at_rest(start), step, torque=held + swing)
        quantum = self.robot.arm_quanta()[0]
        self.stamps = time + step
        self.positions = np.rint(motion.position / quantum) * quantum
        self.efforts = held + swing + 0.02 * random.normal(size=swing.shape)
        self.sensors = ArmSensors.of_robot(self.robot)

    def ours(self, tuning: ArmEkfTuning) -> tuple[ArmEkf, Callable[[], object]]:
        """Our filter and a call that filters the log from the start."""
        ekf = ArmEkf(self.arm, self.sensors, tuning)

        def run() -> object:
            ekf.reset()
            return ekf.replay(self.stamps, self.positions, self.efforts)

        return ekf, run

    def numpy_arm(self) -> NumpyArm:
        """The peer's arm."""
        ekf, _ = self.ours(KNOWN)
        model = pinocchio_arm(urdf_path("youbot.urdf"), ekf.arm.body.joints[:, 10])
        return NumpyArm(model, ekf.arm.body, ekf._rules.joints, self.sensors.stamp_jitter)

    def after_two(self) -> tuple[Array, Array, Array, Array, Array]:
        """The log from its second message on, our mean (15,) and covariance (15, 15) there: speeds are known now."""
        ekf, _ = self.ours(KNOWN)
        for k in range(2):
            ekf.predict(self.stamps[k], self.efforts[k])
            ekf.update(self.positions[k])
        return self.stamps[1:], self.positions[1:], self.efforts[1:], ekf.state.mean, ekf.state.covariance


def replay() -> Item:
    """The filter of positions, speeds and bristles."""
    log, short = Log(2000), Log(60)
    _, run = log.ours(KNOWN)
    arm, logged = short.numpy_arm(), short.after_two()
    ours = short.ours(KNOWN)[1]()
    candidates: dict[str, Candidate] = {
        OURS: Candidate(run, samples=2000),
        NUMPY: Candidate(partial(numpy_filter, arm, *logged), samples=59),
    }
    theirs = numpy_filter(arm, *logged)
    accuracy = {"speed beside numpy + Pinocchio [rad/s]": float(np.abs(theirs[:, 5:10] - ours.speed[1:]).max())}  # type: ignore[attr-defined]
    goals: list[Goal | TimeGoal | AccuracyGoal] = [
        Goal(OURS, NUMPY, 25.0),
        TimeGoal(OURS, 3.0 / TEN_MINUTES, says="10 minutes at 1 kHz in 3 s"),
        AccuracyGoal("speed beside numpy + Pinocchio [rad/s]", 1e-6),
    ]
    note = ""
    try:
        filterpy_filter(arm, *(column[:2] for column in logged[:3]), *logged[3:])
    except ImportError:
        note = "filterpy is not installed"
    else:
        candidates[FILTERPY] = Candidate(partial(filterpy_filter, arm, *logged), samples=59)
        goals.append(Goal(OURS, FILTERPY, 150.0))
    return Item("EKF of the arm, [q, v, z], positions read", candidates, accuracy=accuracy, goals=goals, note=note)


def variants() -> Item:
    """The filter with torque errors, with known bristles and temperatures, and one message at a time."""
    log = Log(2000)
    _, plain = log.ours(KNOWN)
    _, with_errors = log.ours(ArmEkfTuning())
    _, without_bristles = log.ours(ArmEkfTuning(friction_error=0.0, load_error=0.0, bristles=PROPAGATED))
    single, _ = log.ours(ArmEkfTuning())

    def with_heat() -> object:
        without_bristles()
        heat = ArmTemperatures(log.robot.arm)
        for elapsed, effort in zip(np.diff(log.stamps[::5], prepend=0.0), log.efforts[::5], strict=True):
            heat.add(elapsed, effort)
        return heat

    def one_by_one() -> object:
        single.reset()
        for stamp, position, effort in zip(log.stamps[:200], log.positions[:200], log.efforts[:200], strict=True):
            single.predict(stamp, effort)
            single.update(position)
        return single

    return Item(
        "EKF of the arm, variants",
        {
            "[q, v, z]": Candidate(plain, samples=2000),
            "[q, v, z, torque error], as shipped": Candidate(with_errors, samples=2000),
            "[q, v], z propagated": Candidate(without_bristles, samples=2000),
            "[q, v], z propagated, motor heat at 2 Hz": Candidate(with_heat, samples=2000),
            "as shipped, predict and update from Python": Candidate(one_by_one, samples=200),
        },
        goals=(
            TimeGoal("[q, v, z, torque error], as shipped", 3.0 / TEN_MINUTES, says="10 minutes at 1 kHz in 3 s"),
            TimeGoal("as shipped, predict and update from Python", 150e-6, says="3 % of a core at 200 Hz"),
        ),
    )


def other_arms() -> Item:
    """A joint of arms without straight-line code beside one of the youBot's, messages at 200 Hz."""
    logs = {"youBot": Log(2000, step=5e-3)}
    for name, path in OTHERS.items():
        arm = load_robot(robot_file=path).arm
        size = [1.5 * joint.friction.coulomb for joint in arm.joints]
        logs[name] = Log(2000, load_robot(robot_file=path), arm.rest_position, size, 5e-3)
    candidates, goals = {}, []
    for what, tuning in (("[q, v, z]", KNOWN), ("as shipped", ArmEkfTuning())):
        for name, log in logs.items():
            candidates[f"{name}, {what}"] = Candidate(log.ours(tuning)[1], samples=2000 * log.efforts.shape[1])
        goals += [Goal(f"{name}, {what}", f"youBot, {what}", 1.0 / 3.0) for name in OTHERS]
    return Item(
        "EKF of arms of five, six and seven joints, time for each joint",
        candidates,
        goals=goals,
        note="a third as fast as the youBot: at most three times its time for each joint",
    )


ITEMS = {"ekf-replay": replay, "ekf-variants": variants, "ekf-other-arms": other_arms}
