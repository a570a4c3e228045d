"""What a row of the matrix may promise: the verbs under `promise`, each a function of the same name.

Each takes the attack and its argument from the table, raises AssertionError where the promise is broken, and returns
what was measured, or "". `fault_words` says in the docs what each promises.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from fault_actions import Attack
from fault_stack import SPEED, STANDS, TRACKED

from youbot_dynamics.nodes._messages import seconds
from youbot_dynamics.recording.bag import open_bag

_WATCH = 0.4  # [s] it is watched on after a deadline
_ERROR = "trajectory_tracker/error"
GIVEN_UP = "trajectory_tracker.*given up.*"


def _until(moment: float) -> None:
    time.sleep(max(0.0, moment - time.time()))


def _motion(attack: Attack, duration: float) -> np.ndarray:
    """True speeds (n, 2) from the attack until `duration` [s] later, by their stamps; waits until they are there."""
    end = attack.began + duration

    def there() -> bool:
        return bool(np.any(attack.robot.speeds(attack.began)[:, 0] >= end))

    attack.robot.wait(there, "the true motion: the simulated robot fell silent", duration + 5.0)
    speeds = attack.robot.speeds(attack.began)
    assert len(speeds) > 5, "the true motion fell silent"
    return speeds


def _in_time(what: str, took: float, limit: float, attack: Attack) -> str:
    """Compare a time with what was promised; what this machine held up in that very while is no fault of ours."""
    held_up = attack.robot.held_up(attack.began)
    assert took < limit + held_up, (
        f"{what}: {took:.2f} s, {limit:g} s promised ({held_up:.2f} s held up by the machine)"
    )
    return f"{took:.2f} s"


def stops(attack: Attack, argument: float) -> str:
    """By stamps of the true motion."""
    speeds = _motion(attack, argument + _WATCH)
    moving = speeds[speeds[:, 1] > STANDS]
    return _in_time("stood", float(moving[-1, 0]) - attack.began if len(moving) else 0.0, argument, attack)


def zero(attack: Attack, argument: float) -> str:
    """By the observer's clock: a zero comes to the driver within so long, and no other command after that."""

    def sent() -> list[tuple[float, bool]]:
        return [
            (when - attack.began, abs(m.linear.x) + abs(m.linear.y) + abs(m.angular.z) > 1e-9)
            for when, m in attack.robot.heard("driver/cmd_vel", attack.began)
        ]

    attack.robot.wait(lambda: sent() and not sent()[-1][1], "a zero to the driver", argument + 5.0)
    time.sleep(_WATCH)
    moving = [after for after, moves in sent() if moves]
    zeros = [after for after, moves in sent() if not moves and after > (moving[-1] if moving else 0.0)]
    assert zeros, f"a command that moves came after the zero, {moving[-1]:.2f} s after the fault"
    return _in_time("zero", zeros[0], argument, attack)


def drives(attack: Attack, argument: float) -> str:
    """The base goes on at the operator's speed; by stamps of the true motion."""
    return _goes_on(attack, argument, SPEED)


def tracks(attack: Attack, argument: float) -> str:
    """The trajectory goes on: not given up, and the base moves at its speed."""
    measured = _goes_on(attack, argument, TRACKED)
    assert attack.robot.heard(_ERROR, time.time() - 0.5), "the tracker no longer tracks"
    return measured


def _goes_on(attack: Attack, duration: float, speed: float) -> str:
    speeds = _motion(attack, duration)
    speeds = speeds[speeds[:, 0] < attack.began + duration]
    assert speeds[:, 1].min() > 0.8 * speed, f"slowed down to {speeds[:, 1].min():.3f} m/s"
    return f"{speeds[:, 1].min():.2f} m/s at least"


def stands(attack: Attack, argument: float) -> str:
    """The base never moves."""
    speeds = _motion(attack, argument)
    assert speeds[:, 1].max() < STANDS, f"it moved at {speeds[:, 1].max():.3f}"
    return f"{speeds[:, 1].max():.3f} at most"


def drives_again(attack: Attack, argument: float) -> str:
    """Within so long it obeys the operator (again); by stamps of the true motion."""

    def obeys() -> bool:
        speeds = attack.robot.speeds(time.time() - 0.3)
        return len(speeds) > 5 and bool(np.all(speeds[:, 1] > 0.8 * SPEED))

    attack.robot.wait(obeys, "a base that drives again", argument + 5.0)
    return _in_time("drives again", time.time() - attack.began, argument, attack)


def within_limits(attack: Attack, argument: float) -> str:
    """No command to the driver that is not finite or faster than this [m/s]."""
    _until(attack.began + 1.0)
    twists = np.array(
        [(m.linear.x, m.linear.y, m.angular.z) for _, m in attack.robot.heard("driver/cmd_vel", attack.began)]
    ).reshape(-1, 3)
    assert np.all(np.isfinite(twists)), "a command that is not finite reached the driver"
    fastest = float(np.hypot(twists[:, 0], twists[:, 1]).max(initial=0.0))
    assert fastest < argument, f"{fastest:.2f} m/s was commanded"
    return f"{fastest:.2f} m/s at most"


def given_up(attack: Attack, argument: list[Any]) -> str:
    """[s, regex]: the tracker gives the trajectory up within so long and says why."""
    return named(attack, [argument[0], GIVEN_UP + argument[1]])


def named(attack: Attack, argument: list[Any]) -> str:
    """[s, regex]: /diagnostics names it, WARN or worse, within so long."""
    pattern = re.compile(argument[1])

    def matching() -> list[float]:
        return [when for when, level, text in attack.robot.told(attack.began) if level > 0 and pattern.search(text)]

    end = time.time() + argument[0] + 2.0
    while not matching() and time.time() < end:
        time.sleep(0.02)
    complaints = sorted({text for _, level, text in attack.robot.told(attack.began) if level > 0})
    assert matching(), f"/diagnostics never named {argument[1]!r}, but:\n" + "\n".join(complaints)
    return _in_time("named", matching()[0] - attack.began, argument[0], attack)


def logged(attack: Attack, argument: list[Any]) -> str:
    """[s, regex]: the bringup's log says so within so long, after the attack began."""
    end = attack.began + argument[0]
    while not (match := re.search(argument[1], attack.robot.log("bringup")[attack.logged_before :])):
        assert time.time() < end, f"the log never said {argument[1]!r}\n{attack.robot.end_of_logs()}"
        time.sleep(0.05)
    return match.group(0)


def refused(attack: Attack, argument: str) -> str:
    """The service, the parameter or the program said no, with this reason."""
    assert attack.refusal, f"it was accepted {attack.output}"
    assert re.search(argument, attack.refusal), f"refused for another reason: {attack.refusal}"
    return " ".join(attack.refusal.split())[-160:]


def accepted(attack: Attack, argument: bool) -> str:
    """The service or the parameter said yes."""
    assert not attack.refusal, attack.refusal
    return ""


def exits(attack: Attack, argument: int) -> str:
    """Exit code of the program."""
    assert attack.code == argument, f"exit code {attack.code}\n{attack.output}"
    return ""


def lives(attack: Attack, argument: list[str]) -> str:
    """The same process still runs."""
    for name in argument:
        assert attack.pids[name] is not None and attack.robot.pid(name) == attack.pids[name], f"{name} ended"
    return ""


def back(attack: Attack, argument: list[Any]) -> str:
    """[node, s]: another process of it runs within so long."""
    name, limit = argument
    attack.robot.wait(
        lambda: attack.robot.pid(name) not in (None, attack.pids[name]), f"{name} to be started again", limit
    )
    return f"after {time.time() - attack.began:.1f} s"


def bringup_ends(attack: Attack, argument: float) -> str:
    """The whole bringup ends within so long, no process of it left."""
    attack.robot.wait(lambda: attack.robot.children["bringup"].poll() is not None, "the end of the bringup", argument)
    left = [name for name in attack.pids if name not in ("driver", "bringup") and attack.robot.pid(name)]
    assert not left, f"{left} still run"
    return f"after {time.time() - attack.began:.2f} s"


def odom_goes_on(attack: Attack, argument: list[float]) -> str:
    """[s, gap]: for so long no gap between receptions of odom is longer."""
    duration, limit = argument
    _until(attack.began + duration)
    times = np.array([attack.began, *(when for when, _ in attack.robot.heard("odom", attack.began))])
    worst = float(np.diff(times[times < attack.began + duration]).max(initial=duration if len(times) < 2 else 0.0))
    return _in_time("longest gap", worst, limit, attack)


def odom_moves_less(attack: Attack, argument: float) -> str:
    """Odom steps by less than this [m] from message to message, beyond the way driven meanwhile by their stamps."""

    def rows() -> np.ndarray:
        messages = [m for _, m in attack.robot.heard("odom", attack.began)]
        return np.array(
            [(seconds(m.header.stamp), m.pose.pose.position.x, m.pose.pose.position.y) for m in messages]
        ).reshape(-1, 3)

    attack.robot.wait(lambda: np.any(rows()[:, :1] > attack.began + 1.0), "a second of odom", 10.0)
    steps = np.diff(rows(), axis=0)
    assert np.all(np.isfinite(steps)), "odom is not finite"
    beyond = float((np.hypot(steps[:, 1], steps[:, 2]) - SPEED * np.abs(steps[:, 0])).max())
    assert beyond < argument, f"odom jumped by {beyond:.3f} m"
    return f"{beyond:.4f} m at most"


def bag_opens(attack: Attack, argument: list[str]) -> str:
    """The recording so far can be read and holds these topics."""
    topics = open_bag(attack.robot.bag).topics
    for topic in argument:
        assert topic in topics and topics[topic].count > 0, f"{topic} is not in the bag"
    return f"{sum(info.count for info in topics.values())} messages"


PROMISES: dict[str, Callable[[Attack, Any], str]] = {
    promise.__name__: promise
    for promise in (
        stops,
        zero,
        drives,
        tracks,
        stands,
        drives_again,
        within_limits,
        given_up,
        named,
        logged,
        refused,
        accepted,
        exits,
        lives,
        back,
        bringup_ends,
        odom_goes_on,
        odom_moves_less,
        bag_opens,
    )
}
