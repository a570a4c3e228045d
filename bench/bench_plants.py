"""The plants in simulated time, base and arm in motion: digital twin and contact simulation.

A call simulates 0.2 s in periods of 20 ms while the base drives a mixed twist and the arm goes to and fro between two
poses; where it says so, both are commanded and read every period, as a node or a scenario does. A sample is a cycle of
1 ms, so that the real-time factor is 1 ms over the time shown. Rollers are barrels of 41 spheres, 6 or 9 a wheel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from bench.harness import Candidate, Item, TimeGoal
from youbot_dynamics.robot import load_robot
from youbot_dynamics.simulation.arm import ArmPlant
from youbot_dynamics.simulation.base import BasePlant
from youbot_dynamics.simulation.mujoco_youbot import MujocoYoubot
from youbot_dynamics.simulation.mujoco_youbot._plant import MujocoPlant
from youbot_dynamics.simulation.mujoco_youbot._youbot import MujocoBase
from youbot_dynamics.simulation.truth import load_arm_truth, load_truth
from youbot_dynamics.simulation.youbot import Youbot

CYCLE, PERIOD, PERIODS = 1e-3, 0.02, 10  # [s], [s], of a call
CYCLES = round(PERIOD / CYCLE) * PERIODS
TWIST = [0.2, -0.1, 0.5]
POSES = ([2.5, 1.2, -2.0, 1.5, 2.0], [3.2, 1.6, -2.6, 2.0, 3.0])
LONGEST = 50  # periods on the way to one of the poses

ROBOT = load_robot()
TRUTH, ARM_TRUTH = load_truth(0), load_arm_truth(0)


def drive(
    advance: Callable[[float], None], bases: Sequence[Any], arms: Sequence[Any], *, spoken_to: bool = False
) -> Callable[[], None]:
    """A call that simulates 0.2 s more of what `advance` moves.

    Args:
        advance: up to a time [s].
        bases: what drives.
        arms: what goes to and fro.
        spoken_to: whether all are commanded and read every period.
    """
    now = 0.0
    periods = 0

    def call() -> None:
        nonlocal now, periods
        for _ in range(PERIODS):
            if spoken_to or periods == 0:
                for base in bases:
                    base.command_twist(TWIST)
            if spoken_to or periods % LONGEST == 0:
                for arm in arms:
                    arm.command_positions(POSES[periods // LONGEST % 2])
            now += PERIOD
            advance(now)
            if spoken_to:
                for part in (*bases, *arms):
                    part.read()
            periods += 1

    for _ in range(5):
        call()  # through the dead time
    return call


def twin(*, spoken_to: bool = False) -> Candidate:
    """Base and arm of the twin."""
    plant = Youbot(TRUTH, ARM_TRUTH, ROBOT, 1)
    return Candidate(drive(plant.advance, [plant.base], [plant.arm], spoken_to=spoken_to), samples=CYCLES)


def contact_base(rollers: int) -> Candidate:
    """MuJoCo's base, its arm held."""
    plant = MujocoPlant(replace(TRUTH, rollers=float(rollers)), ROBOT.arm.model(), with_arm=False)
    base = MujocoBase(plant, TRUTH, ROBOT.driver, 1)
    return Candidate(drive(base.advance, [base], [], spoken_to=True), samples=CYCLES)


def contact_robot(rollers: int) -> Candidate:
    """MuJoCo's base and arm."""
    plant = MujocoYoubot(replace(TRUTH, rollers=float(rollers)), ARM_TRUTH, ROBOT, 1)
    return Candidate(drive(plant.advance, [plant.base], [plant.arm], spoken_to=True), samples=CYCLES)


def of_factor(candidate: str, factor: float) -> TimeGoal:
    """Goal of a real-time factor."""
    return TimeGoal(candidate, CYCLE / factor, says=f"real-time factor {factor:g}")


def twins() -> Item:
    """The digital twin and its parts."""
    base, arm = BasePlant(TRUTH, ROBOT.driver, 1), ArmPlant(ARM_TRUTH, ROBOT, 1)
    return Item(
        about="1 ms of the digital twin in motion",
        candidates={
            "twin, base and arm": twin(),
            "twin, base": Candidate(drive(base.advance, [base], []), samples=CYCLES),
            "twin, arm": Candidate(drive(arm.advance, [], [arm]), samples=CYCLES),
            "twin, spoken to": Candidate(twin(spoken_to=True).call, samples=CYCLES, note="commanded, read at 50 Hz"),
        },
        goals=(of_factor("twin, base and arm", 200.0),),
    )


def contacts() -> Item:
    """The contact simulation on 6 and 9 rollers a wheel, without and with the arm, beside the twin."""
    return Item(
        about="1 ms of the robot in MuJoCo, commanded and read at 50 Hz",
        candidates={
            "twin, base and arm": twin(spoken_to=True),
            "MuJoCo, 6 rollers": contact_base(6),
            "MuJoCo, 6 rollers and arm": contact_robot(6),
            "MuJoCo, 9 rollers": contact_base(9),
            "MuJoCo, 9 rollers and arm": contact_robot(9),
        },
        goals=(
            of_factor("MuJoCo, 6 rollers", 4.0),
            of_factor("MuJoCo, 6 rollers and arm", 3.0),
            of_factor("MuJoCo, 9 rollers", 2.0),
        ),
        note="MuJoCo solves a richer problem: 29 to 46 bodies and their contacts with the floor.",
    )


def plain_python() -> Item:
    """The twin where numba is missing; no goal is set."""
    return Item(
        about="1 ms of the digital twin in motion, without numba",
        candidates={"twin, base and arm": twin()},
    )


ITEMS = {"plants-twin": twins, "plants-contact": contacts}
ITEMS_WITHOUT_NUMBA = {"plants-twin-plain": plain_python}
