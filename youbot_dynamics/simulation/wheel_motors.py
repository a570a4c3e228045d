"""The motors of the wheels, for every plant: what their speed loops want, and what current and supply let them have.

Each motor turns its wheel through 9405/364. The limit of its current is chosen as that of the arm's joints 1 and 2,
which have the same motor and controller; youbot/youbot_applications@6ca1861, joint_configurator/config/base.cfg, sets
3.564 A.
"""

from __future__ import annotations

from math import exp
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from youbot_dynamics.arrays import Vector
from youbot_dynamics.compiled import compiled
from youbot_dynamics.simulation.arm_controller import limited

GEAR_RATIO = 9405.0 / 364.0  # youbot-base.cfg
TORQUE_CONSTANT = 0.0335 * GEAR_RATIO  # [N m/A] at the wheel, also [V s/rad]: youbot facts, section 2.1
RESISTANCE = 1.03  # [Ohm] of the winding at 25 degC: youbot facts, motor of joints 1 to 3 and the wheels
CURRENT_LIMIT = 5.768  # [A] chosen, see above: 5 N m at the wheel


class WheelLoop(NamedTuple):
    """The four speed loops and their motors in numbers.

    Args:
        inertia: (4, 4) torques of the motors over accelerations of the wheels the loops reckon with [kg m2].
        lag: time constant of the answer to a command [s].
        torque_constants: (4,) of the true motors, at the wheels [N m/A].
    """

    inertia: Vector
    lag: float
    torque_constants: Vector


def loop_of(inertia: ArrayLike, lag: float, torque_constant_factors: ArrayLike) -> WheelLoop:
    """Loops of one robot.

    Args:
        inertia: (4, 4) [kg m2].
        lag: [s].
        torque_constant_factors: (4,) true torque constants over `TORQUE_CONSTANT`.
    """
    factors = np.asarray(torque_constant_factors, dtype=float)
    return WheelLoop(np.ascontiguousarray(inertia, dtype=float), float(lag), TORQUE_CONSTANT * factors)


@compiled
def drive_wheels(
    loop: WheelLoop,
    command: Vector,
    speeds: Vector,
    dt: float,
    reference: Vector,
    lagging: Vector,
    torques: Vector,
) -> None:
    """Advance the speed loops by one step and write the torques of the motors at the wheels.

    The loops answer a command exactly to first order (time constant `lag`) and hold the answer wr against friction with
    a PI law of the same bandwidth: torques = J (dwr/dt + (wr - w) / lag + int (wr - w) / (4 lag^2)), J the inertia;
    as far as currents of `CURRENT_LIMIT` and 24 V against the back-EMF give them. A wheel that lacks current
    lets its integral wait. So weak a feedback lets friction add to the delay; how much, `BaseTruth` says.

    Args:
        loop: the loops.
        command: (4,) mean over the step [rad/s].
        speeds: (4,) of the wheels now [rad/s].
        dt: step [s].
        reference: (4,) answer wr [rad/s]; changed.
        lagging: (4,) integral of wr - w [rad]; changed.
        torques: (4,) written, held over the step [N m].
    """
    decay, lag = exp(-dt / loop.lag), loop.lag
    torques[:] = 0.0
    for k in range(4):
        answer = command[k] + (reference[k] - command[k]) * decay
        pull = (answer - reference[k]) / dt + (reference[k] - speeds[k]) / lag + lagging[k] / (4.0 * lag * lag)
        for i in range(4):
            torques[i] += loop.inertia[i, k] * pull
    for i in range(4):
        constant = loop.torque_constants[i]
        wanted = torques[i] / constant
        current = limited(wanted, CURRENT_LIMIT, constant * speeds[i], RESISTANCE)
        if current == wanted:
            lagging[i] += (reference[i] - speeds[i]) * dt
        else:
            torques[i] = constant * current
        reference[i] = command[i] + (reference[i] - command[i]) * decay
