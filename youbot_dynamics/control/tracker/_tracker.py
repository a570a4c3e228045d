"""Trajectory stabilisation: feed-forward by a model of the robot, plus a PID law on the error it predicts."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from math import ceil, cos, exp, hypot, pi, sin
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from youbot_dynamics.arrays import Vector, array, finite_vector, made_of, positive_time, scalar
from youbot_dynamics.compiled import compiled
from youbot_dynamics.control.tracker._base_lq import LqFeedback, LqSettings
from youbot_dynamics.control.tracker._feed_forward import BasePredictor, FeedForward, Inverse, feed_forward
from youbot_dynamics.control.tracker._gain import GainDrift
from youbot_dynamics.control.tracker._pid import Pid, PidGains, gains_for_delay
from youbot_dynamics.control.trajectory import Trajectory, write_pose
from youbot_dynamics.dynamics.driven_base import STEP, DrivenBase, follow
from youbot_dynamics.kinematics import planar
from youbot_dynamics.parameters import Settings, fixed_setting, setting

# Differences of sent and requested twist below this are rounding, not limits [m/s, rad/s].
_CUT_FLOOR = 1e-6
_READINGS = 51  # poses kept to be compared with pictures, which come late
_SAME_MOMENT = 0.1  # [s] between a picture and the reading that tells where the robot was


class Feedback(Protocol):
    """A law that turns the error to come into a correction."""

    @property
    def slope(self) -> Vector:
        """Rate of the error (3,) [m/s, m/s, rad/s]."""

    def correct(self, error: ArrayLike, time: float, cut: ArrayLike) -> Vector:
        """Twist correction (3,) in the body frame.

        Args:
            error: (3,) actual - desired in the body frame [m, m, rad], yaw wrapped.
            time: [s] increasing; one that is not newer than the last adds nothing to the law's memory.
            cut: (3,) sent minus requested twist of the last command [m/s, m/s, rad/s].
        """


@dataclass(frozen=True)
class TrackerSettings(Settings):
    """Behaviour of the tracker that can be tuned; docs/parameters.md lists meaning, unit and range of each setting.

    Raises:
        ParameterError: a setting outside its range, or another law than "pid" and "lq".

    Example:
        >>> gains = yd.TrackerSettings(aggressiveness=0.5).gains([0.2, 0.2, 0.25], period=0.02)
        >>> gains.derivative
        (0.25, 0.25, 0.25)
    """

    feedback: bool = setting(
        True,
        "Correct the measured error; false means feed-forward only.",
        source="chosen: false is for comparison",
    )
    tracker: str = setting(
        "pid",
        "Control law of the correction.",
        choices=("pid", "lq"),
        source="chosen: a familiar law with few gains; lq is for identified responses",
    )
    aggressiveness: float = setting(
        1.0,
        "pid: proportional gain over 1 / (e delay), the largest of a pure P law that does not overshoot; lq: "
        "how much faster than by default errors and disturbances are corrected.",
        "1",
        (0.05, 2.0),
        source="chosen: double real pole of an integrator behind the delay, no overshoot",
    )
    derivative: float = setting(
        0.25,
        "Derivative gain; with a velocity command it must stay below 1.",
        "1",
        (0.0, 0.7),
        source="chosen: a quarter of the gain 1 at which any delay makes the loop unstable",
    )
    derivative_time: float = setting(
        0.1, "Filter of the derivative.", "s", (0.01, 5.0), source="chosen: five periods at 50 Hz"
    )
    assumed_delay: float = setting(
        0.3,
        "Delay for which the gains are computed while none is identified.",
        "s",
        (0.02, 1.0),
        source="chosen: the largest dead time expected of a youBot",
    )
    delay_uncertainty: float = setting(
        0.5,
        "Relative error of the identified delay that the gains allow for.",
        "1",
        (0.0, 1.0),
        source="chosen: margin for a network that is busier than at the identification",
    )
    trust: float = setting(
        0.3,
        "Share of the difference to a measured pose by which the predicted pose is corrected.",
        "1",
        (0.01, 1.0),
        source="chosen: stamp jitter of 1 ms against a model good to a fraction of a millimetre",
    )
    ease: float = setting(
        0.0,
        "Time over which a trajectory starts and stops smoothly if its own ends are in motion; the trajectory "
        "takes that much longer.",
        "s",
        (0.0, 10.0),
        source="chosen: a trajectory is driven as it was sent",
    )
    line_blend: float = setting(
        0.3,
        "Time constant with which a measured lateral deviation shifts the path.",
        "s",
        (0.0, 10.0),
        source="chosen: as long as the longest delay",
    )
    settle: float = setting(
        1.0,
        "How long the feedback continues after the last point.",
        "s",
        (0.0, 60.0),
        source="chosen: several delays of the loop",
    )

    position_tolerance: float = fixed_setting(
        0.5,
        "Distance from the desired pose at which a trajectory is given up.",
        "m",
        (0.01, 100.0),
        source="chosen: about the length of the robot",
    )
    yaw_tolerance: float = fixed_setting(
        0.8,
        "Angle from the desired pose at which a trajectory is given up.",
        "rad",
        (0.01, 4.0),
        source="chosen: half a right angle",
    )

    def tolerates(self, error: ArrayLike) -> bool:
        """Whether an error (3,) [m, m, rad] is within the tolerances: beyond them something is wrong, not late."""
        ex, ey, eyaw = finite_vector("error", error, 3).tolist()
        return hypot(ex, ey) <= self.position_tolerance and abs(eyaw) <= self.yaw_tolerance

    def gains(self, delays: ArrayLike, period: float) -> PidGains | None:
        """Gains for delays (3,) that the tracker looks ahead over [s], None without feedback.

        The loop has left what the model may have wrong, a share of the delay; where none is known, all of it. It also
        waits for the next command (one period) and holds it (half a period, and as much again until the next
        measurement).
        """
        if not self.feedback:
            return None
        ahead, period = array("delays", delays, (3,)), positive_time("period", period)
        loop = np.where(ahead > 0.0, self.delay_uncertainty * ahead, self.assumed_delay) + 2.0 * period
        return gains_for_delay(loop, self.aggressiveness, self.derivative, self.derivative_time)

    def for_trajectory(self, trajectory: Trajectory, start: float, base: DrivenBase, hold: float) -> Tracker:
        """Tracker of a trajectory for a robot; where a delay is not known, poses are believed as they are.

        An axis without a known delay is commanded as early as the others are on average, since the axes share network
        and driver: if it alone were late, the base would leave its path where without any compensation it is only late
        on it. Its gains are still those for `assumed_delay`.
        """
        made_of("trajectory", trajectory, Trajectory)
        made_of("base", base, DrivenBase)
        known = base.dead_times > 0.0
        gains = self.gains(base.dead_times, hold)
        trust = self.trust if known.all() else 1.0
        law: Feedback | None = None if gains is None else Pid(gains)
        if gains is not None and self.tracker == "lq":
            dead_times = np.where(known, base.dead_times, self.assumed_delay)
            # Of what pushes the base, a period's worth is in each difference of which the predictor believes a share.
            unseen = base.dead_times + hold * (1.0 - trust) / trust
            quicker = LqSettings().quicker(self.aggressiveness)
            law = LqFeedback(dead_times, np.full(3, base.answer_lag), hold, quicker, unseen)
        if known.any() and not known.all():
            alike = np.where(known, base.dead_times, base.dead_times[known].mean())
            base = replace(base, dead_times=alike)
        eased = trajectory.eased(min(self.ease, float(np.ptp(trajectory.times))))
        return Tracker(eased, start, base, law, hold, self.settle, trust, self.line_blend)


@dataclass(frozen=True, eq=False)
class TrackerState:
    """What the tracker knows after one step."""

    twist: Vector  # (3,) commanded twist [m/s, m/s, rad/s]
    correction: Vector  # (3,) what of it the feedback added to the feed-forward [m/s, m/s, rad/s]
    error: Vector  # (3,) actual - desired in the body frame, yaw wrapped [m, m, rad]
    error_rate: Vector  # (3,) filtered [m/s, m/s, rad/s]
    gain: float  # motion of the base over that of its model [1]; the commanded twist is divided by it
    finished: bool  # the trajectory and the time to settle after it are over


class _Moment(NamedTuple):
    """What a step begins with: when the command leaves, stamp of the pose, time of the predictor's state [s].

    The latter is -inf where nothing is predicted. `planned` is the number of commands from now on, `start` that of the
    trajectory [s], `aside` how far the path is moved to the left [m].
    """

    send_time: float
    pose_time: float
    state_time: float
    planned: int
    start: float
    aside: float


@compiled
def _write_desired(inverse: Inverse, time: float, aside: float, pose: Vector) -> None:
    """Write the desired pose (3,) at `time` [s], moved to the left."""
    write_pose(inverse.path, time, pose)
    pose[0] -= sin(pose[2]) * aside
    pose[1] += cos(pose[2]) * aside


@compiled
def _write_error(actual: Vector, desired: Vector, error: Vector) -> None:
    """Write actual less desired pose (3,), in the body frame of the actual one, yaw wrapped."""
    c, s = cos(actual[2]), sin(actual[2])
    dx, dy = actual[0] - desired[0], actual[1] - desired[1]
    turn = (actual[2] - desired[2] + pi) % (2.0 * pi) - pi
    error[0], error[1], error[2] = c * dx + s * dy, c * dy - s * dx, pi if turn == -pi else turn


@compiled
def _look_ahead(
    inverse: Inverse,
    moment: _Moment,
    pose: Vector,
    state: Vector,
    sent: Vector,
    twists: Vector,
    order: NDArray[np.int64],
    errors: Vector,
) -> None:
    """Write the feed-forward, the error, and the error that each axis will have when a command sent now takes effect.

    An axis with a shorter dead time gets commands in between that are not known yet: their feed-forward stands in.
    `pose` (3,) is measured, `state` (12,) that of the base at the moment's `state_time`. Of the commands, `sent` (c,)
    [s] and `twists` (c, 3), the last `planned` are written; `order` (3,) is that of the axes, the shortest dead time
    first. `errors` (2, 3) are written: now, and when a command takes effect.
    """
    first, dead = len(sent) - moment.planned, inverse.drive.dead_times
    feed_forward(inverse, moment.send_time - moment.start, moment.planned, twists[first:])
    desired, error, at, poses = np.zeros(3), np.zeros(3), np.zeros(3), np.zeros((3, 3))
    _write_desired(inverse, moment.pose_time - moment.start, moment.aside, desired)
    _write_error(pose, desired, errors[0])
    if moment.state_time == -np.inf:
        return
    for k in range(moment.planned):
        sent[first + k] = moment.send_time + k * inverse.hold
    for k in range(3):
        at[k] = max(moment.send_time + dead[order[k]], moment.state_time)
        for axis in range(3):
            poses[k, axis] = state[axis]
    follow(inverse.drive, state.copy(), moment.state_time, at[2], STEP, sent, twists, at, poses)
    for k in range(3):
        axis = order[k]
        _write_desired(inverse, moment.send_time + dead[axis] - moment.start, moment.aside, desired)
        _write_error(poses[k], desired, error)
        errors[1, axis] = error[axis]


class Tracker:
    """Follows one trajectory with a robot whose answer to a command is known from a model.

    The feed-forward is the model's inverse (`FeedForward`). The feedback looks ahead: a command that leaves now acts
    one dead time later, so it corrects the error the robot will have then, predicted from the last pose and every
    command sent since (`BasePredictor`). What is left of the delay in the loop is only what the model has wrong. The
    correction is the PID law of system 38 or the LQ law of system 24, on e = actual - desired, rotated into the body
    frame, with the yaw wrapped. Document 003 defines dX as ideal - real and then subtracts it, which is positive
    feedback (D-003-11). It also drops the feed-forward for a constant reference speed: a steady lag stays (D-003-12).

    Args:
        trajectory: desired poses in the odometry frame.
        start: time at which the trajectory begins, in the clock of the odometry stamps [s].
        base: how the robot answers its commands.
        feedback: law of the correction, such as `Pid` or `LqFeedback`, None for feed-forward alone.
        hold: how long a command is held [s].
        settle: how long the feedback goes on after the last point [s].
        trust: share of a measured pose in the predicted one, see `BasePredictor`.
        line_blend: time constant with which `observe_line` moves the path [s].

    Example:
        >>> path = yd.Trajectory([0.0, 2.0], [[0.0, 0.0, 0.0], [0.5, 0.0, 0.0]])
        >>> base = yd.load_robot().base.driven()
        >>> tracker = yd.TrackerSettings().for_trajectory(path, 0.0, base, 0.02)
        >>> state = tracker.step(1.0, 1.0, [0.25, 0.01, 0.0])  # to be sent at 1 s, with the pose of 1 s
        >>> float(state.twist[1]) < 0.0  # back to the line
        True
    """

    def __init__(
        self,
        trajectory: Trajectory,
        start: float,
        base: DrivenBase,
        feedback: Feedback | None,
        hold: float,
        settle: float = 0.0,
        trust: float = 1.0,
        line_blend: float = 0.0,
    ) -> None:
        made_of("trajectory", trajectory, Trajectory)
        made_of("base", base, DrivenBase)
        self.trajectory = trajectory
        self.start = scalar("start", start)
        self.base = base
        self.hold = hold = positive_time("hold", hold)
        self.settle = scalar("settle", settle)
        self._feed_forward = FeedForward(base, trajectory, hold)
        self._predictor = BasePredictor(base, trust)
        self._drift = GainDrift(base, trust)
        self._planned = 1 if feedback is None else ceil(float(np.ptp(base.dead_times)) / hold) + 1
        self._order = np.argsort(base.dead_times)
        self._law = feedback
        self._line_blend = line_blend
        self._line: tuple[float, float] | None = None  # stamp of the last deviation [s], how far the path is moved [m]
        self._readings: deque[tuple[float, Vector]] = deque(maxlen=_READINGS)
        self._request: Vector = np.zeros(3)
        self._requested_at = -np.inf
        self._cut: Vector = np.zeros(3)

    @property
    def _aside(self) -> float:
        return 0.0 if self._line is None else self._line[1]

    def desired_pose(self, time: float) -> Vector:
        """Desired pose (3,) at a stamp [s], moved sideways by what `observe_line` has seen."""
        pose = self.trajectory.pose(scalar("time", time) - self.start)
        pose[:2] += self._aside * planar.rotation(float(pose[2]))[:, 1]
        return pose

    def observe_line(self, stamp: float, deviation: float) -> None:
        """Take a live lateral deviation, such as a line follower's camera sees: it rules over odometry sideways.

        The path is moved so that at the stamp the robot was off it by what was seen: forward and turn stay those of the
        trajectory. Delays are still compensated, since only the path moves; where the camera loses the line, the
        path stays where it was seen last. What is sent ahead stays that of the trajectory: in a bend of yaw rate w,
        beside which the path lies by d, it lacks -d w of forward speed, and the feedback makes up for it.

        Args:
            stamp: of the picture [s]; one that is not newer than the last, or of a moment of which no reading is kept,
                changes nothing.
            deviation: how far the robot is to the left of the line [m].

        Raises:
            InputError: a value that is no finite number.
        """
        stamp, deviation = scalar("stamp", stamp), scalar("deviation", deviation)
        if not self._readings or (self._line is not None and stamp <= self._line[0]):
            return
        taken, pose = min(self._readings, key=lambda reading: abs(reading[0] - stamp))
        if abs(taken - stamp) > _SAME_MOMENT:
            return
        desired = self.trajectory.pose(stamp - self.start)
        own = float((planar.rotation(float(desired[2])).T @ (pose[:2] - desired[:2]))[1])
        seen = own - deviation
        # The path goes to the line smoothly from the first picture on.
        since, moved = self._line or (stamp, seen if self._line_blend <= 0.0 else 0.0)
        share = 1.0 if self._line_blend <= 0.0 else 1.0 - exp(-(stamp - since) / self._line_blend)
        self._line = (stamp, moved + share * (seen - moved))

    def observe_sent(self, stamp: float, twist: ArrayLike) -> None:
        """Learn what became of the last request: the limited twist (3,) that was really sent, at its stamp [s].

        Raises:
            InputError: values that are no finite numbers; nothing is learned from them.
        """
        stamp, sent = scalar("stamp", stamp), finite_vector("twist", twist, 3)
        cut = sent - self._request
        cut[np.abs(cut) <= _CUT_FLOOR] = 0.0
        self._cut = self._drift.gain * cut
        self._predictor.withdraw(self._requested_at)
        self._predictor.sent(stamp, self._drift.gain * sent)

    def step(self, send_time: float, pose_time: float, pose: ArrayLike) -> TrackerState:
        """Command to be sent at `send_time` [s], from the pose (3,) in the odometry frame of `pose_time` [s].

        Raises:
            InputError: values that are no finite numbers; the tracker stays as it was.
        """
        send_time, pose_time = scalar("send_time", send_time), scalar("pose_time", pose_time)
        measured = np.array(finite_vector("pose", pose, 3))
        if not self._readings or pose_time > self._readings[-1][0]:
            self._readings.append((pose_time, measured))
        predictor, law = self._predictor, self._law
        if law is not None:
            seen = predictor.observe(pose_time, measured)
            if seen is not None:
                self._drift.learn(*seen)
        planned, inverse = self._planned, self._feed_forward.numbers
        moment = _Moment(send_time, pose_time, predictor.time, planned, self.start, self._aside)
        sent, twists = predictor.commands(planned)
        errors = np.zeros((2, 3))
        _look_ahead(inverse, moment, measured, predictor.state, sent, twists, self._order, errors)
        request = twists[-planned].copy()
        rate, correction = np.zeros(3), np.zeros(3)
        if law is not None:
            correction = law.correct(errors[1], send_time, self._cut)
            rate = law.slope
        finished = send_time - self.start >= self.trajectory.duration + self.settle
        gain = self._drift.gain
        self._request = np.zeros(3) if finished else (request + correction) / gain
        self._requested_at = send_time
        predictor.sent(send_time, gain * self._request)
        return TrackerState(self._request.copy(), correction, errors[0], rate, gain, finished)


def compile_tracker(base: DrivenBase, hold: float) -> None:
    """Compile what a tracker runs on, and work out its laws: in the middle of a drive that would keep it silent."""
    trajectory = Trajectory(np.array([0.0, 0.1]), np.array([[0.0, 0.0, 0.0], [0.01, 0.0, 0.0]]))
    for law in ("pid", "lq"):
        tracker = TrackerSettings(tracker=law).for_trajectory(trajectory, 0.2, base, hold)
        for step in range(3):
            tracker.step(0.02 * (step + 1), 0.02 * step, np.zeros(3))
