"""From commanded twists to wheel speeds: refusal, priority, timeout, limits (systems 29-31), rollers to come.

`BaseDriver` is what the node base_controller and `scenario.drive` run.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import hypot, inf, isfinite, remainder, tau
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from youbot_dynamics.arrays import Vector
from youbot_dynamics.control.phase_guard import PhaseGuard
from youbot_dynamics.control.stamp_rhythm import StampRhythm
from youbot_dynamics.errors import InputError
from youbot_dynamics.kinematics.mecanum import MecanumBase
from youbot_dynamics.kinematics.steering import joint_commands, steered, within_steering
from youbot_dynamics.parameters import Settings, setting
from youbot_dynamics.robot import Robot
from youbot_dynamics.robot_base import BaseLimits

if TYPE_CHECKING:
    from youbot_dynamics.control.roller_preview import RollerPreview

# Beyond this multiple of the wheel speed limit a command is a mistake: refused, not scaled.
REFUSAL_FACTOR = 10.0
_TURNS, _TURNS_WITHIN = 10, 1.0  # turns of the commands within so long [s], which no hand does
_NOTHING = 1e-6  # [m/s, rad/s] that rounding leaves of a command along an axis
_STEP_SHARE = 0.1  # of the wheel speed limit: steps of commands below it are noise


def refusal(twist: ArrayLike, base: MecanumBase, limits: BaseLimits) -> str:
    """Reason to refuse a twist (3,), or "" where it is finite and within ten times the wheel speed limit."""
    values = [float(value) for value in np.asarray(twist)]
    if not all(map(isfinite, values)):
        return f"NaN or infinite twist {values}"
    fastest = _fastest_wheel(values, base)
    ceiling = REFUSAL_FACTOR * limits.wheel_speed
    if not fastest <= ceiling:
        return f"twist {values} needs {fastest:.4g} rad/s at a wheel, more than {ceiling:g} rad/s"
    return ""


def _fastest_wheel(twist: Sequence[float], base: MecanumBase) -> float:
    """Speed of the fastest wheel [rad/s]; inf where a product overflows, of which a sum may be NaN."""
    x, y, turn = twist
    speeds = [abs(a * x + b * y + c * turn) for a, b, c in base.inverse_matrix.tolist()]
    fastest = hypot(*speeds) if base.steered else max(speeds)
    return fastest if isfinite(fastest) and all(map(isfinite, speeds)) else inf


def limit_speed(twist: ArrayLike, base: MecanumBase, limits: BaseLimits) -> Vector:
    """Scale a twist (3,) as a whole so that no wheel exceeds its limit: the direction of motion is kept."""
    values = np.array(twist, dtype=float)
    fastest = _fastest_wheel(values.tolist(), base)
    return values if fastest <= limits.wheel_speed else values * (limits.wheel_speed / fastest)


def limit_wheels(wheel_speeds: ArrayLike, fastest: float) -> Vector:
    """Scale wheel speeds (n,) [rad/s] as a whole so that none exceeds the fastest one: direction of motion kept."""
    speeds = np.array(wheel_speeds, dtype=float)
    most = max(map(abs, speeds.tolist()))
    return speeds if most <= fastest else speeds * (fastest / most)


def limit_acceleration(twist: ArrayLike, previous: ArrayLike, limits: BaseLimits, dt: float) -> Vector:
    """Twist (3,) reachable from `previous` within `dt` [s], on the straight line towards `twist`.

    Translation and rotation advance by the same fraction, so the path between the two twists is kept. Where the
    step slows the translation (or the turn) down, its deceleration limit holds, else its acceleration limit.
    """
    x, y, turn = np.asarray(previous, dtype=float).tolist()
    to_x, to_y, to_turn = np.asarray(twist, dtype=float).tolist()
    dx, dy, dturn = to_x - x, to_y - y, to_turn - turn
    linear = (limits.deceleration if x * dx + y * dy < 0.0 else limits.acceleration) * dt
    angular = (limits.angular_deceleration if turn * dturn < 0.0 else limits.angular_acceleration) * dt
    distance, rotation = hypot(dx, dy), abs(dturn)
    fraction = min(1.0, linear / distance if distance > 0.0 else 1.0, angular / rotation if rotation > 0.0 else 1.0)
    return np.array([x + fraction * dx, y + fraction * dy, turn + fraction * dturn])


class CommandTurns:
    """Tells whether commands turn back and forth faster than a hand does, as those of two senders who disagree do.

    A turn is a step of a tenth of the largest speed or more, against the direction of the step before.
    """

    def __init__(self, base: MecanumBase, limits: BaseLimits) -> None:
        self._base, self._least = base, _STEP_SHARE * limits.wheel_speed
        self._last, self._step = [0.0] * 3, [0.0] * 3
        self._turns: deque[float] = deque(maxlen=_TURNS)

    def take(self, twist: Sequence[float], now: float) -> None:
        """Take a command (3,) [m/s, m/s, rad/s] that came at steady time `now` [s]."""
        step = [a - b for a, b in zip(twist, self._last, strict=True)]
        if _fastest_wheel(step, self._base) < self._least:
            return
        if sum(a * b for a, b in zip(step, self._step, strict=True)) < 0.0:
            self._turns.append(now)
        self._last, self._step = list(twist), step

    def contradict(self, now: float) -> bool:
        """Whether there were ten turns in the last second."""
        return len(self._turns) == _TURNS and now - self._turns[0] <= _TURNS_WITHIN


@dataclass(frozen=True)
class CommanderSettings(Settings):
    """Behaviour of the base controller that can be tuned."""

    rate: float = setting(
        50.0,
        "Commands per second.",
        "Hz",
        (5.0, 500.0),
        read_only=True,
        source="youbot/youbot_driver_ros_interface@db124ec launch/youbot_driver.launch: 50 Hz",
    )
    command_timeout: float = setting(
        0.5,
        "Age at which a command expires; then the base brakes.",
        "s",
        (0.05, 0.5),
        read_only=True,
        source="chosen: shortest of the time-outs published for youBot bases, 0.5 to 2 s (docs/robot_facts.md)",
    )


@dataclass(frozen=True, eq=False)
class WheelCommand:
    """What is sent in one control period."""

    twist: Vector  # (3,) limited body twist [m/s, m/s, rad/s]
    wheel_speeds: Vector  # (n,) of the mean rows [rad/s], ours: positive rolls forward; of a steered wheel as `rolled`
    # (n,) for the rollers to come, what the driver is sent [rad/s]; the mean ones without phases
    rolling_speeds: Vector
    source: str  # "operator", "tracker" or "none" (timed out or disabled)
    limited: bool  # the command was cut by a speed, acceleration or steering limit
    steering: float | None = None  # angle of the joint that steers [rad], None without one


class WheelCommander:
    """Decides each control period what the wheels do; time is any steady clock [s].

    A finite operator command rules as long as it is younger than the timeout; then a tracker's; then zero is
    approached at the deceleration limit. Nothing at all is sent before the first valid command.

    Args:
        base: calibrated kinematics.
        limits: of speed and acceleration.
        timeout: age at which a command stops counting [s].
    """

    def __init__(self, base: MecanumBase, limits: BaseLimits, timeout: float) -> None:
        self.base = base
        self.limits = limits
        self.timeout = timeout
        self.enabled = True
        self.refused = self.dropped = 0
        self._free = base.free_axes
        self.turns = CommandTurns(base, limits)  # of the operators' commands
        # Twist and when it was received [s]; who stands first has priority.
        self._commands = {"operator": (np.zeros(3), -np.inf), "tracker": (np.zeros(3), -np.inf)}
        self._twist: Vector = np.zeros(3)
        self._last_step: float | None = None
        self._started = False
        self._steering = 0.0  # angle that was sent last [rad]
        self._idle = True  # nobody wants it to move

    def stand_at(self, steering: float) -> None:
        """Take the angle [rad] at which the steering stands, if the base rests and nobody wants it to move."""
        if self._idle and isfinite(steering) and not np.any(self._twist):
            self._steering = remainder(steering, tau)

    def offer(self, source: str, twist: ArrayLike, now: float) -> str:
        """Take a command (3,) from "operator" or "tracker"; return the reason where it is refused, else "".

        Of a command along an axis along which the base cannot move, that part becomes 0 and is counted in `dropped`.
        """
        reason = refusal(twist, self.base, self.limits)
        if reason:
            self.refused += 1
            return reason
        values = np.array(twist, dtype=float)
        self.dropped += bool(np.any(np.abs(values[~self._free]) > _NOTHING))
        values[~self._free] = 0.0
        self._commands[source] = values, now
        if source == "operator":
            self.turns.take(values.tolist(), now)
        self._started = self._started or self.enabled
        return ""

    def age(self, now: float) -> float:
        """Age of the youngest valid command [s]; infinite before the first."""
        return now - max(received for _, received in self._commands.values())

    def step(self, now: float, period: float) -> WheelCommand | None:
        """Command of this period, None before the first valid one.

        `now` is steady time, `period` the nominal one [s]; after a pause no more than twice of it is made up for.
        """
        if not self._started:
            return None
        wanted, active = np.zeros(3), "none"
        if self.enabled:
            for name, (twist, received) in self._commands.items():
                if now - received < self.timeout:
                    wanted, active = twist, name
                    break
        elapsed = period if self._last_step is None else min(now - self._last_step, 2.0 * period)
        self._last_step, self._idle = now, not np.any(wanted)
        if self.base.steered:
            reached = self._steer(wanted, elapsed)
        else:
            allowed = limit_speed(wanted, self.base, self.limits)
            reached = limit_acceleration(allowed, self._twist, self.limits, elapsed)
        self._twist = reached
        limited = max(map(abs, (reached - wanted).tolist())) > 1e-12
        speeds = self.base.wheel_speeds(reached)
        return WheelCommand(reached, speeds, speeds, active, limited, self._steering if self.base.steered else None)

    def _steer(self, wanted: Vector, elapsed: float) -> Vector:
        """Twist (3,) of a steered wheel after a time [s], on its way to a wanted one.

        The steering turns to the angle of the wanted twist itself, and the wheel's speed follows at that angle within
        the limits of acceleration. An angle for the twist of the next instant would not always lead there.
        """
        base, limits = self.base, self.limits
        steerable = base.twist(within_steering(base.wheel_speeds(wanted), limits.steering))
        wished = base.wheel_speeds(limit_speed(steerable, base, limits))
        before = float(joint_commands(base.wheel_speeds(self._twist), self._steering)[1][0])
        speed, self._steering = steered(wished, self._steering, limits.steering, limits.steering_speed * elapsed)
        at_speed = base.twist(base.rolling([[speed, 0.0], [before, 0.0]], [[0.0, self._steering]] * 2))
        return limit_acceleration(at_speed[0], at_speed[1], limits, elapsed)


class BaseDriver:
    """Decides what the wheels do, and follows them for the rollers they will stand on.

    Args:
        robot: what is believed of it.
        settings: rate and timeout.
        find_phases: whether roller phases may be estimated while driving, for `take_phases`. The preview, and the
            compiler with it, is loaded only where they may, or where phases are known.

    Attributes:
        commander: which takes and limits commands.
        period: [s] between commands.
        phases: whether the roller phases that are known hold.
    """

    def __init__(self, robot: Robot, settings: CommanderSettings, find_phases: bool = False) -> None:
        self.period = 1.0 / settings.rate
        self.commander = WheelCommander(robot.base.geometry.mecanum(), robot.base.limits, settings.command_timeout)
        self.phases = PhaseGuard(robot)
        self._robot = robot
        self._rhythm = StampRhythm()
        self._preview: RollerPreview | None = None
        self._rollers: RollerPreview | None = None  # the preview while phases are known
        if find_phases or not self.phases.lost:
            from youbot_dynamics.control.roller_preview import RollerPreview  # with the compiler: 60 MB

            self._preview = RollerPreview(robot.base.geometry.wheels(), robot.base.driven(), self.period)
            self._rollers = None if self.phases.lost else self._preview

    def take_phases(self, phases: Vector) -> None:
        """Preview the rollers from now on, at phases (n,) [rad] that were estimated while driving.

        Raises:
            InputError: the driver was made without `find_phases` and without known phases.
        """
        if self._preview is None:
            raise InputError(
                "BaseDriver.take_phases", got="a driver with find_phases=False", expected="find_phases=True"
            )
        self.phases.take_phases(phases)
        self._preview.wheels = self._robot.base.geometry.wheels().at_phases(phases)
        self._rollers = self._preview

    def take_wheels(self, stamp: float, angles: Vector) -> str:
        """Take wheel angles (n,) [rad], positive forward, at a stamp [s]; why they lose the phases, "" if not."""
        if self._rollers is None:
            return ""
        stamp = self._rhythm.take(stamp, angles.tolist())
        lost = self.phases.update(stamp, angles)
        if lost:
            self._rollers = None
        else:
            self._rollers.observe(stamp, angles)
        return lost

    def step(self, now: float, stamp: float) -> WheelCommand | None:
        """Command of this period, None before the first valid one, at steady time `now`, `stamp` of readings [s]."""
        command = self.commander.step(now, self.period)
        if command is None or self._rollers is None:
            return command
        rolling = limit_wheels(self._rollers.wheel_speeds(stamp, command.twist), self.commander.limits.wheel_speed)
        return replace(command, rolling_speeds=rolling)
