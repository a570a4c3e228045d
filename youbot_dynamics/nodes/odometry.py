"""Node odometry: wheel states and a gyro to odom and joint_states; its executable also runs the trajectory_tracker."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Sequence
from functools import lru_cache, partial
from math import cos, sin

import numpy as np
from geometry_msgs.msg import TransformStamped
from nav_msgs.msg import Odometry as OdometryMessage
from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_msgs.msg import Header
from std_srvs.srv import Trigger

from youbot_dynamics.arrays import Vector
from youbot_dynamics.control.tracking_run import StampWatch
from youbot_dynamics.control.wheel_commands import REFUSAL_FACTOR
from youbot_dynamics.estimation import odometry as core
from youbot_dynamics.estimation.response_monitor import Figure, ResponseMonitor
from youbot_dynamics.kinematics.planar import covariance_in_space
from youbot_dynamics.kinematics.steering import JointMotion, RolledAngles
from youbot_dynamics.nodes import _messages as messages
from youbot_dynamics.nodes._diagnostics import ERROR, MEMORY, OK, WARN, Diagnostics, Growth, Status
from youbot_dynamics.nodes._listening import joint_samples, listen, listen_joints, listen_yaw_rate
from youbot_dynamics.nodes._messages import answer, of_joints, twice
from youbot_dynamics.nodes._parameters import FIND_ROLLER_PHASES, FRAME_TABLE, NodeParameters
from youbot_dynamics.nodes._runtime import DRIVER_QOS, LATCHED_QOS, STATE_QOS, TF_QOS, node_time, run
from youbot_dynamics.nodes._topic_graph import endpoints_of
from youbot_dynamics.nodes.trajectory_tracker import TrajectoryTracker
from youbot_dynamics.parameters import Parameter, settings_table
from youbot_dynamics.recording.message_types import joint_state_cdr, odometry_cdr
from youbot_dynamics.recording.series import JointSample
from youbot_dynamics.warm_up import first_use, use_odometry

STABILIZE = Parameter(
    "stabilize",
    True,
    "Whether the executable also runs the trajectory_tracker.",
    read_only=True,
    source="chosen: one process for both",
)
_SETTINGS = core.SlipSettings, core.GyroSettings
TABLE = (
    *(parameter for settings in _SETTINGS for parameter in settings_table(settings)),
    *FRAME_TABLE,
    Parameter(
        "publish_tf",
        True,
        "Whether the transform odom -> base is published on /tf.",
        read_only=True,
        source="chosen: the driver's own transform is remapped away",
    ),
    STABILIZE,
    FIND_ROLLER_PHASES,
)

_MOST_FOREIGN = 250.0  # [1/s] messages without joints of this robot: five times those of the wheels
_LATE = 0.1  # [s] by which all readings of a second may be delayed: five periods of the driver
_SILENCE = 0.5  # [s] without a message after which the topic counts as silent
_AXES = ("x", "y", "yaw")
_FIGURES = (("delay", 1e3, "ms", 1), ("gain", 1.0, "", 3), ("lag", 1e3, "ms", 0))  # field, factor, unit, decimals


@lru_cache(maxsize=16)
def _signs_of(names: tuple[str, ...], joints: tuple[str, ...], signs: tuple[float, ...]) -> Vector:
    """Signs (k,) of all joints of a message, those of other joints 1."""
    return np.array([signs[joints.index(name)] if name in joints else 1.0 for name in names])


class OdometryNode(Node):
    """Reads the driver's joint states; it never commands anything.

    Attributes:
        tracker: in this process, where there is one: gets wheel angles, odometry and wheel commands from this node.
    """

    def __init__(self) -> None:
        super().__init__("odometry")
        self.config = NodeParameters(self, TABLE)
        self._robot = self.config.robot()
        driver = self._robot.driver
        self._names = driver.wheel_joints
        self._position_sign = np.array(driver.position_sign)
        self._velocity_sign = np.array(driver.velocity_sign)
        self._base = self._robot.base.geometry.mecanum()
        self._rolled, self._joint_motion = RolledAngles(self._base.steered), JointMotion()
        finds: bool = self.config["find_roller_phases"]
        slip, gyro = self.config.settings(core.SlipSettings), self.config.settings(core.GyroSettings)
        self._estimator = core.BaseEstimator(self._robot, slip, gyro, finds)
        self._published_phases = self._estimator.found_phases
        self._monitor = ResponseMonitor(self._robot)
        with first_use(self.get_logger().info):
            use_odometry(self._robot)
        self.config.on_change(self._retune)
        self._logged: set[str] = set()
        self._twice = ("", -np.inf)  # problem with a message that names a joint twice, and when it was received [s]
        self._jumps = Growth()
        self._frame, self._child = self.config.frames()
        self._ready = False  # whether it was said
        self._last_message, self._read = -np.inf, np.zeros(len(self._names))  # when, and the positions [rad]
        self._known = frozenset((*driver.wheel_joints, *driver.arm_joints))
        # Of the present second: messages without these joints, and the least delay of a reading of the wheels [s].
        self._counted, self._foreign, self._delay, self._stamps = time.monotonic(), 0, np.inf, StampWatch()
        simulated: bool = self.get_parameter("use_sim_time").value
        self._clock_time = partial(node_time, self) if simulated else time.monotonic
        self.tracker: TrajectoryTracker | None = None
        self._last_tracking = -np.inf
        self._odom = self.create_publisher(OdometryMessage, "odom", STATE_QOS)
        self._joint_states = self.create_publisher(JointState, "joint_states", STATE_QOS)
        self._phases = self.create_publisher(JointState, "roller_phases", LATCHED_QOS) if finds else None
        self._tf = self._make_tf()
        self.create_service(Trigger, "~/reset_odometry", self._on_reset)
        if not self.config["stabilize"]:
            self.create_subscription(JointState, "trajectory_tracker/error", self._on_tracking, STATE_QOS)
        self._samples = joint_samples()
        listen(self, JointState, "driver/joint_states", self._on_joint_states, DRIVER_QOS, raw=True)
        listen_yaw_rate(self, self._estimator.take_rate)
        listen_joints(self, "wheel_commands", self._on_wheel_commands, STATE_QOS)
        Diagnostics(self, self._report)

    def _make_tf(self):
        if not self.config["publish_tf"]:
            return None
        if importlib.util.find_spec("tf2_msgs") is None:
            self.get_logger().warning("tf2_msgs is not installed: the transform is on odom, but not on /tf")
            return None
        from tf2_msgs.msg import TFMessage

        return self.create_publisher(TFMessage, "/tf", TF_QOS)

    def _retune(self) -> None:
        self._estimator.gyro.settings = self.config.settings(core.GyroSettings)

    def _on_tracking(self, message: JointState) -> None:
        self._last_tracking = time.monotonic()

    def _on_joint_states(self, data: bytes) -> None:
        """Pass joint states on, with the signs of the wheels corrected, and take the wheels; no other bytes."""
        sample = self._samples(data)
        if sample is None:
            return
        if problem := twice(sample.names):
            self._twice = problem, time.monotonic()
            return
        fields = [np.frombuffer(field) for field in sample[2:]]
        self._joint_states.publish(self._with_our_signs(data, sample, fields))
        picked = of_joints(sample.names, self._names, *(field.tolist() for field in fields[:2]))
        if picked is None:
            self._foreign += self._known.isdisjoint(sample.names)
            return
        self._last_message, self._read = time.monotonic(), picked[0]
        if not self._ready:
            self._say_ready()
        whole, part = divmod(sample.stamp, 1_000_000_000)
        stamp = whole + 1e-9 * part
        self._stamps.take(self._clock_time(), stamp)
        self._delay = min(self._delay, self._stamps.delay)
        stamp -= self._robot.base.delay.stamps
        position, velocity = picked[0] * self._position_sign, picked[1] * self._velocity_sign
        motion = None
        if self._base.steered:
            motion = self._base.of_joints(self._joint_motion.take(stamp, position))
            position, velocity = self._rolled.take(position), self._base.rolling(velocity, position)
        if self.tracker is not None:
            self.tracker.take_wheels(stamp, position)
        self._monitor.read(stamp, position if motion is None else motion)
        state = self._estimator.take_wheels(stamp, position, velocity)
        self._publish_phases(stamp)
        if state is not None:
            self._publish(state)

    def _publish_phases(self, stamp: float) -> None:
        """Publish new roller phases; a message without positions says that they are no longer valid."""
        phases = None if self._estimator.odometry.phases_lost else self._estimator.found_phases
        if self._phases is not None and phases is not self._published_phases:
            self._published_phases = phases
            self._phases.publish(joint_state_cdr(messages.nanoseconds(stamp), self._names, phases))

    def _on_wheel_commands(self, stamp: float, names: tuple[str, ...], *fields: Sequence[float]) -> None:
        """Take the commands for the response of the running drive; absurd speeds are dropped."""
        picked = of_joints(names, self._names, *fields[:2])
        if picked is None:
            return
        speeds = self._base.rolling(picked[1], picked[0])
        if self.tracker is not None:
            self.tracker.take_sent(stamp, speeds)
        if np.all(np.abs(speeds) <= REFUSAL_FACTOR * self._robot.base.limits.wheel_speed):
            joints = np.array([picked[1][0], picked[0][1]])
            self._monitor.sent(stamp, self._base.of_joints(joints) if self._base.steered else self._base.twist(speeds))

    def _with_our_signs(self, data: bytes, sample: JointSample, fields: Sequence[Vector]) -> bytes:
        """Message in which every wheel turns positive when it rolls forward; one without wheels stays as it is."""
        driver, names = self._robot.driver, sample.names
        if not any(name in self._names for name in names):
            return data
        kinds = (driver.position_sign, driver.velocity_sign, driver.velocity_sign)
        position, velocity, effort = (field.copy() for field in fields)
        for field, signs in zip((position, velocity, effort), kinds, strict=True):
            field[: len(names)] *= _signs_of(names, self._names, signs)[: len(field)]
        return joint_state_cdr(sample.stamp, names, position, velocity, effort, messages.frame_of(data))

    def _publish(self, state: core.OdometryState) -> None:
        covariances = covariance_in_space(state.covariance), covariance_in_space(state.twist_covariance)
        stamp, names = messages.nanoseconds(state.stamp), (self._frame, self._child)
        self._odom.publish(odometry_cdr(stamp, *names, state.pose, state.twist, *covariances))
        if self.tracker is not None:
            self.tracker.take_odometry(state.stamp, state.pose)
        if self._tf is not None:
            header = Header(stamp=messages.to_time(state.stamp), frame_id=self._frame)
            transform = TransformStamped(header=header, child_frame_id=self._child)
            place, turn = transform.transform.translation, transform.transform.rotation
            place.x, place.y, half = state.pose[0], state.pose[1], 0.5 * state.pose[2]
            turn.z, turn.w = sin(half), cos(half)
            self._tf.publish(self._tf.msg_type(transforms=[transform]))

    def _on_reset(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        tracking = time.monotonic() - self._last_tracking < _SILENCE if self.tracker is None else self.tracker.active
        if tracking:
            text = "a trajectory is being followed: cancel it first (trajectory_tracker/cancel)"
            return answer(response, False, text)
        self._estimator.reset()
        return answer(response, True, f"the base is at the origin of {self._frame}")

    def _report(self) -> dict[str, Status]:
        return {
            "wheels": self._wheels_status(),
            "pattern": self._pattern_status(),
            "response": self._response_status(),
            "load": self._load_status(),
        }

    def _say_ready(self) -> None:
        """Say once that the robot can drive: wheels are read, and a base_controller is there for the tracker."""
        controlled = self.tracker is None or self.count_publishers("wheel_commands") > 0
        if controlled and np.all(np.isfinite(self._read)):
            self._ready = True
            self.get_logger().info("ready")

    def _load_status(self) -> Status:
        """Whether other programs' messages, or a queue of readings, are more than this process can take."""
        topic, now = self.resolve_topic_name("driver/joint_states"), time.monotonic()
        rate, delay = self._foreign / (now - self._counted), max(0.0, self._delay) if self._delay < np.inf else 0.0
        self._counted, self._foreign, self._delay = now, 0, np.inf
        values = {"foreign_messages_per_s": f"{rate:.0f}", "delay_s": f"{delay:.3f}"}
        if rate > _MOST_FOREIGN:
            senders = ", ".join(sorted(endpoints_of(self, topic).publisher_nodes()))
            text = f"{topic} carries {rate:.0f} messages/s without joints of this robot"
            return Status(WARN, f"{text}; its publishers: {senders}. End the one that sends them, or remap it", values)
        if delay > _LATE:
            text = f"readings of the wheels are processed {delay:.2f} s later than the promptest one"
            return Status(WARN, f"{text}: this computer or its network is overloaded; end other programs", values)
        return Status(OK, "readings are processed as they come", values)

    def _wheels_status(self) -> Status:
        silent, odometry = time.monotonic() - self._last_message, self._estimator.odometry
        self._jumps.update(odometry.jumps)
        age = self._jumps.age
        values = {
            "encoder_jumps": str(odometry.jumps),
            "late_messages": str(odometry.late),
            "jump_age_s": f"{age:.0f}",
            "window_s": f"{MEMORY:.0f}",
            "silent_for_s": f"{silent:.2f}",
        }
        if time.monotonic() - self._twice[1] < _SILENCE:
            return Status(
                ERROR,
                f"{self._twice[0]}: check for two drivers on one topic, or a node that merges joint states wrongly",
                values,
            )
        if silent > _SILENCE:
            text = f"no wheel states of {', '.join(self._names)} on {self.resolve_topic_name('driver/joint_states')}"
            return Status(ERROR, f"{text}: is the driver running and remapped?", values)
        if lacking := [name for name, read in zip(self._names, self._read, strict=True) if not np.isfinite(read)]:
            text = f"readings without a finite position of {', '.join(lacking)}"
            return Status(ERROR, f"{text}: the pose stands still until the driver reports it", values)
        if contradicting := self._estimator.contradictions():
            text = f"position and velocity of {', '.join(contradicting)} move in opposite directions"
            return Status(ERROR, f"{text}: check robot.driver.position_sign, velocity_sign", values)
        if age < MEMORY:
            text = f"encoders or stamps jumped {age:.0f} s ago: the pose has the error of the jump"
            return Status(WARN, text, values)
        return Status(OK, "integrating", values)

    def _pattern_status(self) -> Status:
        """Whether the wheel speeds fit the motion of one body, and which other sensors are used."""
        estimator = self._estimator
        odometry, bias = estimator.odometry, estimator.gyro.bias
        lost = "lost" if odometry.phases_lost else "not known"
        values = {
            "slips": str(odometry.slips),
            "window_s": f"{MEMORY:.0f}",
            "residual_of_bound": f"{odometry.slip.level:.2f}",
            "roller_phases": lost if odometry.wheels.phases is None else "used",
            "gyro": "used" if estimator.gyro_used else "not used",
            "gyro_bias_rad_s": "not known" if bias is None else f"{bias[0]:.5f} +- {bias[1]:.5f}",
        }
        complaints = estimator.complaints()
        # Each problem is logged once; the levels in its text change all the time.
        problems = {text.split(":")[0]: text for text in complaints}
        for problem in problems.keys() - self._logged:
            self.get_logger().warning(problems[problem])
        self._logged = set(problems)
        if complaints:
            return Status(WARN, "; ".join(complaints), values)
        return Status(OK, "the wheel speeds fit the motion of one body", values)

    def _response_status(self) -> Status:
        """Response of the base to its commands in this drive, with the identified one."""
        values, deviating, measured = {}, [], []
        for k, (axis, response) in enumerate(zip(_AXES, self._monitor.axes, strict=True)):
            age = self._monitor.age(k)
            values[f"{axis}_age_s"] = f"{age:.0f}"
            for name, factor, unit, decimals in _FIGURES:
                figure: Figure = getattr(response, name)
                text = "not determined by this drive"
                if figure.valid:
                    value, deviation, identified = (
                        f"{factor * number:.{decimals}f}"
                        for number in (figure.value, figure.deviation, figure.identified)
                    )
                    text = f"{value} +- {deviation} {unit}".strip()
                    text += ", none identified" if identified == "nan" else f", identified {identified}"
                    measured.append(axis)
                values[f"{axis}_{name}"] = text
                if figure.off and age < MEMORY:
                    deviating.append(f"{name} of {axis} is {text}")
        if deviating:
            text = f"the response of the base differs from the identified one: {'; '.join(deviating)}"
            return Status(WARN, f"{text}: look for a loaded computer, network or motor, or identify again", values)
        axes = ", ".join(dict.fromkeys(measured))
        return Status(OK, f"measured: {axes}" if axes else "not determined yet: no drive with wheel_commands", values)


def main() -> None:
    """Run the odometry and, unless `stabilize` is false, the trajectory tracker in one process."""

    def make():
        odometry = OdometryNode()
        if not odometry.config["stabilize"]:
            return [odometry]
        odometry.tracker = TrajectoryTracker(fed=True)
        return [odometry, odometry.tracker]

    run(make, driving=True)


if __name__ == "__main__":
    main()
