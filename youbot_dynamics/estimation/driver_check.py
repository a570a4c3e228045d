"""Check of a driver by its messages: rates, clock, signs, odometry, gyro, efforts; each finding has a remedy.

Messages alone do not show everything: if a wheel is reversed in both readings and commands, all signs agree, and only
looking at the robot shows it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from youbot_dynamics.arrays import Vector
from youbot_dynamics.errors import doubled, listed
from youbot_dynamics.estimation.gyro_fault import GyroFault, gyro_fault
from youbot_dynamics.robot import Driver


class Verdict(Enum):
    """Verdict on one item, in ascending weight; the values are the words for it."""

    OK = "ok"
    WARNING = "warning"
    NOT_TOLD = "not checked"
    ERROR = "error"


@dataclass(frozen=True)
class DriverFinding:
    """One item of the check."""

    item: str  # what was checked
    verdict: Verdict
    text: str  # what was observed
    remedy: str = ""  # what to do next; empty if nothing is needed
    values: Mapping[str, float] = field(default_factory=dict)  # related figures, by name with unit


def worst(findings: Iterable[DriverFinding]) -> Verdict:
    """Overall verdict: errors first, then items that could not be checked, then warnings."""
    return max((finding.verdict for finding in findings), key=list(Verdict).index, default=Verdict.OK)


@dataclass(frozen=True, eq=False)
class Times:
    """Times of n messages of one kind."""

    stamp: Vector  # (n,) of their headers [s]
    received: Vector  # (n,) by the clock of this machine [s], which should agree with the stamps
    arrived: Vector  # (n,) by the steady clock, which never jumps [s]

    @property
    def count(self) -> int:
        """Number of messages."""
        return len(self.stamp)

    def rate(self, expected: float) -> float:
        """Messages per second, by their stamps or their arrival, what is nearer to the expected rate.

        Messages that waited while their reader started arrive in a burst, of which their stamps show nothing; stamps
        that jump, or are 0, say nothing of a rate. 0 for fewer than two messages.
        """
        lasted = [float(times[-1] - times[0]) for times in (self.arrived, self.stamp) if self.count > 1]
        rates = [(self.count - 1) / seconds for seconds in lasted if seconds > 0.0]
        return min(rates, key=lambda rate: abs(rate - expected), default=0.0)

    def gaps(self, longest: float) -> Vector:
        """Gaps [s] of more than `longest` [s] in which messages are missing, or whose delivery stalled for long."""
        came, stamped = np.diff(self.arrived), np.diff(self.stamp)
        told = stamped > longest if np.any(stamped > 0.0) else came > longest
        missing: Vector = came[(came > longest) & (told | (came > _STALL))]
        return missing


@dataclass(frozen=True, eq=False)
class JointsHeard:
    """n messages on k joints, in the driver's signs; NaN for missing values."""

    joints: tuple[str, ...]  # names, k
    times: Times  # of the messages
    position: Vector  # (n, k) [rad]
    velocity: Vector  # (n, k) [rad/s]
    effort: Vector  # (n, k) [N m]


@dataclass(frozen=True, eq=False)
class OdometryHeard:
    """n messages of the driver's own odometry."""

    times: Times  # of the messages
    twist: Vector  # (n, 3) in the body frame [m/s, m/s, rad/s]


def joints_heard(
    joints: Sequence[str], rows: Sequence[tuple[float, float, float, Sequence[float], Sequence[float], Sequence[float]]]
) -> JointsHeard:
    """Joint messages from rows (stamp, received, arrived, position (k,), velocity (k,), effort (k,)) in SI units."""
    columns = list(zip(*rows, strict=True)) if rows else [()] * 6
    fields = [np.array(column, dtype=float).reshape(len(rows), len(joints)) for column in columns[3:]]
    return JointsHeard(tuple(joints), Times(*(np.array(c, dtype=float) for c in columns[:3])), *fields)


@dataclass(frozen=True, eq=False)
class GyroHeard:
    """n messages of an inertial measurement unit."""

    times: Times  # of the messages
    rate: Vector  # (n,) about its z axis [rad/s]


def gyro_heard(rows: Sequence[tuple[float, float, float, float]]) -> GyroHeard:
    """Gyro from rows (stamp, received, arrived, rate [rad/s])."""
    columns = [np.array(column, dtype=float) for column in zip(*rows, strict=True)] if rows else [np.zeros(0)] * 4
    return GyroHeard(Times(*columns[:3]), columns[3])


def odometry_heard(rows: Sequence[tuple[float, float, float, Vector]]) -> OdometryHeard:
    """Odometry from rows (stamp, received, arrived, twist (3,)) in SI units."""
    columns = list(zip(*rows, strict=True)) if rows else [()] * 4
    times = Times(*(np.array(column, dtype=float) for column in columns[:3]))
    return OdometryHeard(times, np.array(columns[3], dtype=float).reshape(len(rows), 3))


_RATE_MARGIN = 0.1  # relative tolerance
_GAP = 5.0  # periods between messages: 4 are missing
_STALL = 0.2  # [s] of late delivery without a gap in the stamps, which is bridged: as of readers that just started
_OTHER_CLOCK = 1.0  # [s] offset above which stamps and receive times are of different clocks
_CLOCK_OFF = 0.1  # [s] offset above the delay of any driver at 50 Hz
_EARLY = 0.005  # [s] tolerance for a stamp in the future
_JUMP = 0.3  # [s] tolerance between steps of the stamps and of the steady clock
_BURST = 25  # messages, half a second of them: largest burst after a stalled delivery
_JITTER = 0.005  # [s] of the stamps; the driver's loop has 1 ms
_TURNED = 0.2  # [rad] that a wheel must turn before its signs are checked
_PAIRS = 10  # pairs of readings in motion, likewise
_QUANTA = 3.0  # speeds below this number of quanta are noise
_SCALE = 0.2  # relative tolerance between derivative of the position and velocity
_ODOMETRY_SCALE = 0.05  # relative tolerance between the driver's odometry and ours of the same wheels
_MOVED = (0.02, 0.02, 0.05)  # [m/s, m/s, rad/s] smallest root mean square of a twist for a comparison
_OTHER_ROBOT = (
    "this is another robot: record a drive, make its file with youbot new-robot, and pass that by --robot-file"
)
_STOP_NODE = "find the node that publishes such values, and correct or stop it"  # remedy


def judge_rate(item: str, times: Times, expected: float, needed: bool = True) -> DriverFinding:
    """Check that messages come at the expected rate [Hz]; `needed` marks messages that everything depends on."""
    if times.count < 2:
        verdict = Verdict.ERROR if needed else Verdict.NOT_TOLD
        remedy = "start the driver, its joint_states and odom remapped under driver/"
        remedy += "" if needed else "; ignore this if the robot has none"
        return DriverFinding(item, verdict, "no messages", remedy)
    rate, longest = times.rate(expected), _GAP / expected
    gaps = times.gaps(longest)
    late = len(gaps)
    values = {"rate_hz": rate, "longest_gap_s": float(np.diff(times.arrived).max()), "gaps": float(late)}
    text = f"{rate:.1f} Hz"
    if abs(rate - expected) > _RATE_MARGIN * expected:
        slow = "does the driver's loop also read a gripper, which slows it?"
        cause = slow if rate < expected else "do two drivers publish on one topic?"
        remedy = f"{cause} Otherwise set the rate in the driver, or robot.driver.rate to what the driver has"
        return DriverFinding(item, Verdict.WARNING, f"{text}, {expected:g} expected", remedy, values)
    if late:
        many = "gap" if late == 1 else "gaps"
        text = f"{text}, but {late} {many} of more than {longest:g} s, the longest {gaps.max():.2f} s"
        remedy = "load of the robot's PC, or a radio link: run the nodes on the same computer"
        return DriverFinding(item, Verdict.WARNING, text, remedy, values)
    return DriverFinding(item, Verdict.OK, text, "", values)


def _jumps(times: Times) -> int:
    """Number of times that the stamps went back, or left the steady clock permanently.

    Delayed messages look like stamps behind the clock until they catch up. So a step ahead counts only after a whole
    burst, a step back only before one. At both ends of the recording the two cases cannot be distinguished.
    """
    ahead = times.stamp - times.arrived
    jumps = int(np.count_nonzero(np.diff(times.stamp) < 0.0))
    for k in np.flatnonzero((np.diff(times.stamp) >= 0.0) & (np.abs(np.diff(ahead)) > _JUMP)) + 1:
        step = ahead[k : k + _BURST].max() - ahead[max(0, k - _BURST) : k].max()
        jumps += bool(abs(step) > _JUMP and _BURST <= (k if step > 0.0 else times.count - k))
    return jumps


def judge_clock(item: str, times: Times) -> DriverFinding:
    """Check that stamps are set, agree with this machine's clock, and are regular.

    The offset is the median of receive time minus stamp. The jitter is 1.48 times the median absolute deviation of the
    steps between stamps, over sqrt(2), because each step has the jitter of two stamps.
    """
    if times.count < _PAIRS:
        return DriverFinding(item, Verdict.NOT_TOLD, "too few messages")
    if not np.all(times.stamp > 0.0):
        remedy = "delays and odometry need the driver's stamps"
        return DriverFinding(item, Verdict.ERROR, "messages without a stamp", remedy)
    offset = float(np.median(times.received - times.stamp))
    steps = np.diff(times.stamp)
    jitter = 1.4826 * float(np.median(np.abs(steps - np.median(steps)))) / np.sqrt(2.0)
    jumps = _jumps(times)
    twice = float(np.mean(steps == 0.0))
    values = {"offset_s": offset, "jitter_s": jitter, "jumps": float(jumps), "equal_stamps": twice}
    synchronise = "synchronise the clocks of both machines with chrony or ntp, and check again"
    if jumps:
        text = f"the stamps jumped: {jumps} of {len(steps)} steps"
        return DriverFinding(item, Verdict.ERROR, text, "stop the program that sets the clock", values)
    if abs(offset) > _OTHER_CLOCK:
        text = f"stamps of another clock: {abs(offset):.3g} s {'behind' if offset > 0.0 else 'ahead of'} this machine's"
        return DriverFinding(item, Verdict.ERROR, text, f"{synchronise}; or use_sim_time", values)
    if offset > _CLOCK_OFF or offset < -_EARLY:
        text = f"stamps {abs(offset):.3f} s {'behind' if offset > 0.0 else 'ahead of'} this machine's clock"
        return DriverFinding(item, Verdict.WARNING, text, synchronise, values)
    if twice > 0.1:
        text = f"{100.0 * twice:.0f} % of the messages have the stamp of the previous one"
        return DriverFinding(item, Verdict.WARNING, text, "two publishers on one topic?", values)
    if jitter > _JITTER:
        remedy = "set robot.driver.stamp_jitter to it; delays are less precise"
        return DriverFinding(item, Verdict.WARNING, f"stamps jitter by {1e3 * jitter:.1f} ms", remedy, values)
    text = f"{1e3 * offset:.1f} ms from stamp to reception, jitter {1e3 * jitter:.2f} ms"
    return DriverFinding(item, Verdict.OK, text, "", values)


def judge_signs(wheels: JointsHeard, driver: Driver) -> DriverFinding:
    """Check that each wheel's position moves as its velocity says, by the robot's sign map.

    The derivative of the position over the velocity v between readings k and k+1 is fitted by least squares to those in
    motion: s = sum(dp/dt v) / sum(v^2). With the signs sp and sv of the map, s sp sv is 1. The youBot's driver inverts
    the position of FL and BL, but not their velocity: there s = -1.
    """
    item = "signs of the wheels"
    if wheels.times.count < _PAIRS:
        return DriverFinding(item, Verdict.NOT_TOLD, "no wheel states")
    unreadable = _named(wheels.joints, _unreadable(wheels.position) | _unreadable(wheels.velocity))
    if unreadable:
        text = f"{unreadable}: NaN, infinite or missing in some messages, in position or velocity"
        return DriverFinding(item, Verdict.ERROR, text, _STOP_NODE)
    if np.all(np.isnan(wheels.velocity)):
        text = "the driver sends no velocities: they are taken from the positions"
        remedy = "look at the robot: joint_states rise where a wheel rolls forward"
        return DriverFinding(item, Verdict.NOT_TOLD, text, remedy)
    slopes = _slopes(wheels, _QUANTA * driver.velocity_quantum, _GAP / driver.rate)
    expected = np.array(driver.position_sign) * np.array(driver.velocity_sign)
    agreement = slopes * expected
    values = {f"slope_{name}": float(s) for name, s in zip(wheels.joints, slopes, strict=True) if np.isfinite(s)}
    wrong = _named(wheels.joints, agreement < 0.0)
    if wrong:
        remedy = "correct robot.driver.position_sign or robot.driver.velocity_sign in a params_file"
        text = f"position and velocity of {wrong} contradict the configured signs"
        return DriverFinding(item, Verdict.ERROR, text, f"{remedy}: forward is positive in our signs", values)
    still = _named(wheels.joints, np.isnan(agreement))
    if still:
        text = f"not checked for {still}: stood still"
        return DriverFinding(item, Verdict.NOT_TOLD, text, "turn the wheel by hand or drive, and check again", values)
    odd = _named(wheels.joints, np.abs(agreement - 1.0) > _SCALE)
    if odd:
        text = f"position of {odd} does not change at the reported speed"
        return DriverFinding(item, Verdict.WARNING, text, "gear ratio or ticks in the driver's configuration", values)
    return DriverFinding(item, Verdict.OK, "positions move as the velocities and the configured signs say", "", values)


def _unreadable(values: Vector) -> NDArray[np.bool_]:
    """Joints (k,) with some unusable values among values (n, k); one that never has values is allowed."""
    unusable: NDArray[np.bool_] = np.any(~np.isfinite(values), axis=0)
    some: NDArray[np.bool_] = np.any(~np.isnan(values), axis=0)
    return np.logical_and(unusable, some)


def _slopes(wheels: JointsHeard, slowest: float, longest: float) -> Vector:
    """Slope (k,) of each position over its velocity; NaN for a wheel at rest.

    Pairs of readings count that are at most `longest` [s] apart, of wheels that turn at `slowest` [rad/s] at least.
    """
    steps = np.diff(wheels.times.stamp)
    usable = (steps > 0.0) & (steps < longest)
    slopes = np.full(len(wheels.joints), np.nan)
    for k in range(len(wheels.joints)):
        v = wheels.velocity[:, k]
        mean, turned = 0.5 * (v[1:] + v[:-1]), np.diff(wheels.position[:, k])
        moving = usable & (np.minimum(np.abs(v[1:]), np.abs(v[:-1])) >= slowest) & (v[1:] * v[:-1] > 0.0)
        moving &= np.isfinite(turned)
        if np.count_nonzero(moving) >= _PAIRS and np.abs(turned[moving]).sum() >= _TURNED:
            slopes[k] = (turned[moving] / steps[moving]) @ mean[moving] / (mean[moving] @ mean[moving])
    return slopes


def judge_odometry(wheels: JointsHeard, odometry: OdometryHeard, driver: Driver) -> DriverFinding:
    """Check that the driver's odometry and its wheel velocities in our signs agree.

    The comparison is by axis and least squares, with the driver's own geometry: reported twist = c * twist of the
    wheels; c is 1.
    """
    item = "wheels against the driver's odometry"
    stamps, ours = _twists(wheels, driver)
    if odometry.times.count < _PAIRS or len(stamps) < _PAIRS:
        return DriverFinding(item, Verdict.NOT_TOLD, f"no odometry of the driver, or {_missing(driver)}")
    if not np.isfinite(odometry.twist).all():
        text = "the driver's odometry has twists with NaN or infinite values"
        return DriverFinding(item, Verdict.ERROR, text, _STOP_NODE)
    reported = np.column_stack([np.interp(stamps, odometry.times.stamp, odometry.twist[:, axis]) for axis in range(3)])
    moved = np.sqrt(np.mean(ours**2, axis=0)) > _MOVED
    names = ("vx", "vy", "wz")
    if not moved.any():
        remedy = "turn the wheels by hand or drive, and check again"
        return DriverFinding(item, Verdict.NOT_TOLD, "the base stood still", remedy)
    if not reported.any():
        return DriverFinding(item, Verdict.NOT_TOLD, "the driver's odometry carries no twist")
    ratios = np.sum(reported * ours, axis=0)[moved] / np.sum(ours**2, axis=0)[moved]
    seen = [name for name, moves in zip(names, moved, strict=True) if moves]
    values = {f"ratio_{name}": float(c) for name, c in zip(seen, ratios, strict=True)}
    shown = ", ".join(f"{name} {c:.2f}" for name, c in zip(seen, ratios, strict=True))
    if np.any(ratios < 0.5):
        remedy = f"check {_signs(driver)} and the order of robot.driver.wheel_joints: {_order(driver)}"
        return DriverFinding(item, Verdict.ERROR, f"they contradict each other: ratios {shown}", remedy, values)
    if np.any(np.abs(ratios - 1.0) > _ODOMETRY_SCALE):
        remedy = "give the wheel radius and the lengths in robot.driver the values of the driver's configuration"
        return DriverFinding(item, Verdict.WARNING, f"another scale: ratios {shown}", remedy, values)
    return DriverFinding(item, Verdict.OK, f"one motion: ratios {shown}", "", values)


def _twists(wheels: JointsHeard, driver: Driver) -> tuple[Vector, Vector]:
    """Stamps (m,) [s] of the messages that tell how all wheels roll, and twists (m, 3) by the driver's own geometry."""
    base, position = driver.mecanum(), wheels.position * np.array(driver.position_sign)
    position[~np.isfinite(position)] = np.nan  # an infinite angle has no direction
    rolling = base.rolling(wheels.velocity * np.array(driver.velocity_sign), position)
    told = np.all(np.isfinite(rolling), axis=1)
    return wheels.times.stamp[told], base.twist(rolling[told])


def _missing(driver: Driver) -> str:
    """What is missing where too few messages tell how the wheels roll."""
    return "no velocities of the wheel or no angles of its steering" if driver.mecanum().steered else "no velocities"


def _signs(driver: Driver) -> str:
    """Signs by which the wheels' twist is known."""
    if not driver.mecanum().steered:
        return "robot.driver.velocity_sign"
    wheel, steering = driver.wheel_joints
    return f"robot.driver.velocity_sign of {wheel}, robot.driver.position_sign of {steering},"


def _order(driver: Driver) -> str:
    """Places of four wheels in the order of their joints; names of the joints for other bases."""
    return "FL, FR, BL, BR" if len(driver.wheel_joints) == 4 else ", ".join(driver.wheel_joints)


def judge_gyro(wheels: JointsHeard, gyro: GyroHeard, driver: Driver) -> DriverFinding:
    """Check that a gyro turns as the wheels do.

    With the wheels' yaw rate w, by the driver's own geometry, the gyro's rate is c w + bias; both are fitted by least
    squares, and c is 1.
    """
    item = "gyro against the wheels"
    if gyro.times.count < _PAIRS:
        return DriverFinding(item, Verdict.OK, "no messages on imu: odometry uses the wheels alone")
    if not np.isfinite(gyro.rate).all():
        text = "rates with NaN or infinite values"
        return DriverFinding(item, Verdict.ERROR, text, _STOP_NODE)
    stamps, twists = _twists(wheels, driver)
    if len(stamps) < _PAIRS:
        return DriverFinding(item, Verdict.NOT_TOLD, _missing(driver))
    turned = twists[:, 2]
    if np.std(turned) <= _MOVED[2]:
        return DriverFinding(item, Verdict.NOT_TOLD, "the base did not turn", "turn the base, and check again")
    rates = np.interp(stamps, gyro.times.stamp, gyro.rate)
    ratio = float(np.cov(turned, rates)[0, 1] / np.var(turned, ddof=1))
    values = {"ratio": ratio}
    fault = gyro_fault(ratio)
    if fault is None:
        return DriverFinding(item, Verdict.OK, f"it turns as the wheels do: ratio {ratio:.2f}", "", values)
    remedy = fault.remedy
    if fault is GyroFault.SIGN and driver.mecanum().steered:
        remedy += f" Otherwise check {_signs(driver)}"
    text = f"its turn is {ratio:.2f} times that of the wheels; odometry leaves it out"
    return DriverFinding(item, Verdict.ERROR, text, remedy, values)


def judge_wheel_effort(wheels: JointsHeard) -> DriverFinding:
    """Report what the wheel efforts, or their absence, mean for identification."""
    item = "efforts of the wheels"
    if wheels.times.count == 0:
        return DriverFinding(item, Verdict.NOT_TOLD, "no wheel states")
    if np.all(np.isnan(wheels.effort)):
        text = "none, as usual: without them only friction over mass is identified, from coasting with the motors off"
        return DriverFinding(item, Verdict.OK, text)
    if not np.any(np.nan_to_num(wheels.effort)):
        text = "all zero: the driver does not measure them, or the motors are off"
        return DriverFinding(item, Verdict.WARNING, text, "switch the motors on, drive, and check again")
    return DriverFinding(item, Verdict.OK, "available: friction of the wheels can be identified")


def judge_arm_effort(arm: JointsHeard) -> DriverFinding:
    """Report what the arm efforts, or their absence, mean for arm_ekf and identification."""
    item = "efforts of the arm"
    if arm.times.count == 0:
        return DriverFinding(item, Verdict.NOT_TOLD, "no states of the arm")
    if np.all(np.isnan(arm.effort)):
        text = "none: without them no friction, payload or motor heat of the arm"
        return DriverFinding(item, Verdict.WARNING, text, "use a driver that fills the effort of arm_1/joint_states")
    if not np.any(np.nan_to_num(arm.effort)):
        text = "all zero: the motors of the arm are off, or it rests on its end stops"
        return DriverFinding(item, Verdict.WARNING, text, "call arm_1/switchOnMotors, raise the arm, and check again")
    return DriverFinding(item, Verdict.OK, "available: friction, payload and motor heat of the arm can be estimated")


def judge_names(
    driver: Driver, heard: Sequence[Sequence[str]], arm: bool, strangers: Sequence[str] = (), on: str = ""
) -> DriverFinding:
    """Check that each kind of message in `heard` has the joints of the robot's description, each once in a message.

    `arm` states whether the arm is required, too; `strangers` are other joints that are heard `on` another topic alone.
    """
    item, seen = "names of the joints", sorted({name for names in heard for name in names})
    twice = sorted({name for names in heard for name in doubled(names)})
    if twice:
        text = f"{', '.join(twice)} named twice in one message, which is refused"
        remedy = "check for two drivers on one topic, or a node that merges joint states wrongly"
        return DriverFinding(item, Verdict.ERROR, text, remedy)
    if not seen and strangers:
        text = f"no joint states of this robot, but on {on} those of {listed(strangers)}"
        return DriverFinding(item, Verdict.ERROR, text, _OTHER_ROBOT)
    if not seen:
        return DriverFinding(item, Verdict.NOT_TOLD, "no joint states")
    wanted = (*driver.wheel_joints, *(driver.arm_joints if arm else ()))
    missing = [name for name in wanted if name not in seen]
    if not missing:
        wanted_in = "robot.driver.wheel_joints" + (" and robot.driver.arm_joints" if arm else "")
        return DriverFinding(item, Verdict.OK, f"as in {wanted_in}")
    text = f"no messages on {', '.join(missing)}; received {', '.join(seen)}"
    joints = f"robot.driver.wheel_joints ({_order(driver)})" + (" and robot.driver.arm_joints" if arm else "")
    remedy = f"set {joints} to the driver's names"
    remedy = remedy if len(missing) < len(wanted) else f"{_OTHER_ROBOT}; or {remedy}"
    verdict = Verdict.ERROR if set(missing) & set(driver.wheel_joints) else Verdict.WARNING
    return DriverFinding(item, verdict, text, remedy)


def _named(joints: Sequence[str], chosen: NDArray[np.bool_]) -> str:
    return ", ".join(name for name, yes in zip(joints, chosen, strict=True) if yes)


def judge_driver(
    wheels: JointsHeard,
    arm: JointsHeard | None,
    odometry: OdometryHeard,
    gyro: GyroHeard,
    names: Sequence[Sequence[str]],
    driver: Driver,
    strangers: Sequence[str] = (),
    on: str = "",
) -> tuple[DriverFinding, ...]:
    """All findings on a driver's messages on wheels, arm, odometry and gyro, and on the `names` in them.

    `arm` is None for a robot without one: then nothing is said of it. `strangers` are as in `judge_names`.
    """
    findings = [judge_rate("states of the wheels", wheels.times, driver.rate)]
    if arm is not None:
        findings.append(judge_rate("states of the arm", arm.times, driver.rate, needed=False))
    own = odometry.times.rate(driver.rate) or driver.rate  # it may come at a rate of its own
    findings += [
        judge_rate("odometry of the driver", odometry.times, own, needed=False),
        judge_names(driver, names, arm is not None and arm.times.count > 0, strangers, on),
        judge_clock("clock of the wheels", wheels.times),
        judge_signs(wheels, driver),
        judge_odometry(wheels, odometry, driver),
        judge_gyro(wheels, gyro, driver),
        judge_wheel_effort(wheels),
    ]
    return (*findings, *(() if arm is None else (judge_arm_effort(arm),)))
