"""First use of all that the nodes run on, so that nothing is compiled while they listen.

A node that compiles at its first message would not answer for seconds. Each node calls its own of these functions
before it subscribes; `youbot warm-up` calls all of them, and what is compiled then is kept: see `compiled`.
What only `youbot identify` runs on is compiled in some seconds when it is first used.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from youbot_dynamics.robot import Robot, load_robot

if TYPE_CHECKING:
    from youbot_dynamics.dynamics.driven_base import DrivenBase
    from youbot_dynamics.estimation.arm_estimator import ArmEstimator
    from youbot_dynamics.simulation.robot_driver import RobotDriver

_STEP = 0.02  # [s]
_NOTICE_HOLDS = 180.0  # [s] that the notice of one process holds for all others
NOTICE = (
    "compiling, once after an installation or an update: a minute at most on two idle cores (`youbot warm-up` compiles "
    "the code of the nodes beforehand)"
)


@contextmanager
def first_use(say: Callable[[str], object]) -> Iterator[list[str]]:
    """Say `NOTICE` where something is compiled within, not just loaded; yields the functions' names.

    Of several processes, such as the nodes of a bringup, the first says it for all.
    """
    names: list[str] = []
    from youbot_dynamics.compiled import HAVE_NUMBA  # here: a node without compiled code does not load the compiler

    if not HAVE_NUMBA:
        yield names
        return
    from numba.core import event

    class Listener(event.Listener):
        def on_start(self, event: Any) -> None:
            function = event.data["dispatcher"].py_func
            if function.__module__.startswith("youbot_dynamics."):
                names.append(f"{function.__module__}.{function.__name__}")
                if len(names) == 1 and not _announced():
                    say(NOTICE)

        def on_end(self, event: Any) -> None:
            pass

    with event.install_listener("numba:compile", Listener()):
        yield names


def _announced() -> bool:
    """Whether another process has announced the compilation in the last minutes; if not, record that this one does."""
    import fcntl

    from youbot_dynamics.compiled import kept_in

    with suppress(OSError), (kept_in() / "announced").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        if file.tell() and time.time() - os.fstat(file.fileno()).st_mtime < _NOTICE_HOLDS:
            return True
        file.write(".")
    return False


def _use_preview(robot: Robot) -> None:
    """What base_controller runs on where it knows the rollers of its wheels."""
    from youbot_dynamics.control.roller_preview import RollerPreview

    base = robot.base
    RollerPreview(base.geometry.wheels(), base.driven(), _STEP)  # which uses itself once


def use_odometry(robot: Robot) -> None:
    """What odometry runs on."""
    from youbot_dynamics.estimation.odometry import BaseEstimator

    estimator = BaseEstimator(robot)
    for k in range(2):
        estimator.take_wheels(_STEP * k, np.zeros(len(robot.driver.wheel_joints)))
    robot.base.driven().path([0.0], np.zeros((1, 3)), [0.0])  # which the monitor of the response follows


def use_tracker(base: DrivenBase, period: float) -> None:
    """What trajectory_tracker runs on, commanding every `period` [s]; it works out its laws, too."""
    from youbot_dynamics.control.tracker import compile_tracker

    compile_tracker(base, period)


def use_arm_estimator(estimator: ArmEstimator) -> None:
    """What arm_ekf runs on; the estimator is of no use afterwards."""
    tree, driver = estimator.arm.tree, estimator.robot.driver
    position = np.array([0.5 * (limit.lower + limit.upper) for limit in tree.limits])
    effort = tree.gravity_forces(position)
    names, still = (*driver.arm_joints, *driver.wheel_joints), np.zeros(len(driver.wheel_joints))
    for k in range(60):
        stamp, moved = 1.0 + _STEP * k, np.r_[position + 0.1 * _STEP * k, still]
        estimator.take_states(stamp, names, (moved, 0.0 * moved, np.r_[effort, still]), stamp, stamp)
        estimator.take_voltages(stamp, driver.arm_joints, [1.0] * len(effort))
        estimator.take_temperatures(stamp, driver.arm_joints, [25.0] * len(effort))


def use_driver(driver: RobotDriver) -> None:
    """What mock_youbot runs on; the driver has moved on afterwards."""
    driver.advance(_STEP)
    driver.read()


def _arm_estimator(robot: Robot) -> None:
    from youbot_dynamics.estimation.arm_estimator import ArmEstimator

    use_arm_estimator(ArmEstimator(robot))


def _twin(robot: Robot) -> None:
    from youbot_dynamics.simulation.robot_driver import RobotDriver
    from youbot_dynamics.simulation.truth import load_arm_truth, load_truth
    from youbot_dynamics.simulation.youbot import Youbot

    use_driver(RobotDriver(Youbot(load_truth(0), load_arm_truth(0), robot, 0), robot.driver, 0))


# What each node runs on by the robot's sheets; what takes longest first.
NODES: dict[str, Callable[[Robot], None]] = {
    "arm_ekf": _arm_estimator,
    "mock_youbot": _twin,
    "base_controller": _use_preview,
    "trajectory_tracker": lambda robot: use_tracker(robot.base.driven(), _STEP),
    "odometry": use_odometry,
}


def use_node(name: str) -> tuple[int, str]:
    """What a node of `NODES` runs on; returns how many functions were compiled for it, and why any was not kept."""
    from youbot_dynamics.compiled import not_kept

    with first_use(lambda notice: None) as names:
        NODES[name](load_robot())
    return len(names), next(iter(not_kept), "")
