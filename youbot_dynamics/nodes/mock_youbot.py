"""Node mock_youbot: a simulated robot behind the topics of the real driver, quirks and faults included."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from geometry_msgs.msg import Twist, TwistStamped
from nav_msgs.msg import Odometry
from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from rosgraph_msgs.msg import Clock as ClockMessage
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from std_srvs.srv import Empty, Trigger

from youbot_dynamics.errors import ParameterError
from youbot_dynamics.nodes._diagnostics import MEMORY, OK, WARN, Diagnostics, Growth, Status
from youbot_dynamics.nodes._messages import answer, nanoseconds, to_time, twist_vector, values_of
from youbot_dynamics.nodes._mock_arm import ArmTopics
from youbot_dynamics.nodes._parameters import FRAME_TABLE, NodeParameters
from youbot_dynamics.nodes._runtime import COMMAND_QOS, DRIVER_QOS, STATE_QOS, node_time, run, steady_timer
from youbot_dynamics.nodes._topic_graph import DISCOVERY, refuse_rivals
from youbot_dynamics.nodes.local_socket import claim
from youbot_dynamics.parameters import Parameter, fixed_parameter
from youbot_dynamics.recording.message_types import joint_state_cdr, odometry_cdr
from youbot_dynamics.resources import robot_path
from youbot_dynamics.robot import load_robot
from youbot_dynamics.simulation.driver_reports import JointReport, OdometryReport
from youbot_dynamics.simulation.faults import ARM, BASE, KINDS, ODOMETRY, parse_faults
from youbot_dynamics.warm_up import first_use, use_driver

_AT_ONCE = 2e-4  # [s] within which two clocks are read together: a fifth of the jitter of the driver's stamps
_READINGS = 20  # of both, at most
_CAUGHT_UP = 0.5  # [s] of missed passes that are caught up
_STOOD_STILL = 60.0  # [s] without a pass, beyond which the process was stopped and the robot stood still with it
_EARLY = 0.25  # of a period by which a pass may come before its time and shift the following ones


def report_message(report: JointReport | OdometryReport, shift: float, frames: tuple[str, str]) -> bytes:
    """Serialised message of a report; `shift` from the plant's clock to that of the stamps [s], and frames."""
    stamp = nanoseconds(report.stamp + shift)
    if isinstance(report, JointReport):
        return joint_state_cdr(stamp, report.names, report.position, report.velocity, report.effort)
    return odometry_cdr(stamp, *frames, report.pose, report.twist)


class _MachineTime:
    """The plant runs on the steady clock, its stamps are those of the node's clock.

    Its loop has a fixed `period` [s]: passes that the machine delayed are caught up. A process that was stopped for
    longer than `_STOOD_STILL` goes on from now: what passed meanwhile is no time of the plant.
    """

    def __init__(self, node: Node, period: float) -> None:
        self._node, self._period = node, period
        self._last = math.inf  # the first pass is still to come
        self._left_out = 0.0  # time that is none of the plant [s]

    def now(self) -> float:
        """Time of the plant [s]."""
        now = time.monotonic() - self._left_out
        if now - self._last <= _STOOD_STILL:
            return now
        stopped = now - self._last - self._period
        self._left_out += stopped
        self._node.get_logger().warning(f"this process stood still for {stopped:.0f} s: the robot goes on from now")
        return now - stopped

    def passes(self) -> list[float]:
        """Times up to which to simulate in the passes of the loop that are due [s]."""
        now = self.now()
        if self._last == math.inf:
            self._last = now
            return [now]
        due = (now - self._last) / self._period
        if due * self._period > _CAUGHT_UP or 1.0 - _EARLY < due < 1.0:
            self._last = now
            return [now]
        times = [self._last + (k + 1) * self._period for k in range(int(due))]
        self._last = times[-1] if times else self._last
        return times

    def shift(self) -> float:
        """From the plant's time to that of the stamps [s]; clocks are read again after an interruption between them."""
        for _ in range(_READINGS):
            before, now, after = time.monotonic(), node_time(self._node), time.monotonic()
            if after - before < _AT_ONCE:
                break
        return now - 0.5 * (before + after) + self._left_out


class _OwnTime:
    """The plant is the clock, in whole periods of its loop.

    `period` is that of the loop in simulated time [s], `factor` simulated over real time.
    """

    def __init__(self, node: Node, period: float, factor: float) -> None:
        self._publisher = node.create_publisher(ClockMessage, "/clock", COMMAND_QOS)
        self._period, self._factor = period, factor
        # It begins as the machine's, so that bags need not start in 1970; a jump back by a fault stays positive.
        self._start = float(int(Clock(clock_type=ClockType.SYSTEM_TIME).now().nanoseconds * 1e-9))
        self._passes = 0
        self._since = time.monotonic()

    def now(self) -> float:
        """Time of the plant [s]: within the running period, by the steady clock."""
        return self._passes * self._period + min(self._factor * (time.monotonic() - self._since), self._period)

    def passes(self) -> list[float]:
        """Time up to which to simulate in the one pass of the loop that is due [s]; goes out on /clock."""
        self._passes += 1
        self._since = time.monotonic()
        self._publisher.publish(ClockMessage(clock=to_time(self._start + self._passes * self._period)))
        return [self._passes * self._period]

    def shift(self) -> float:
        """From the plant's time to that of the stamps [s]."""
        return self._start


# The plants bring in the compiler: 0.2 s of every start.
if TYPE_CHECKING:
    from youbot_dynamics.simulation.mujoco_youbot import MujocoYoubot
    from youbot_dynamics.simulation.robot_driver import RobotDriver

_TRUTH = "truth"  # prefix of the plant's hidden parameters
TABLE = (
    fixed_parameter(
        "seed",
        1,
        "Random seed that selects the robot: 0 is the nominal one; with any other number its hidden values and "
        "its noise are random.",
        unit="1",
        low=0,
        high=2**31 - 1,
        source="chosen: a robot that has to be identified",
    ),
    fixed_parameter(
        "plant",
        "twin",
        "Simulator behind the driver: the digital twin, or contact physics in MuJoCo (extra `sim`).",
        choices=("twin", "mujoco"),
        source="chosen: runs everywhere, faster than real time",
    ),
    fixed_parameter(
        "geometry",
        "drawn",
        "Wheel radii, wheel positions and lateral factor: those of config/youbot.yaml, or random hidden ones.",
        choices=("known", "drawn"),
        source="chosen: a robot that has to be calibrated",
    ),
    fixed_parameter(
        "identified",
        False,
        "Whether the base is the one that robot.* describes, with identified delays, geometry and friction, instead of "
        "a random one; of that it has the noise. For the plant twin.",
        source="chosen: a robot that has to be identified",
    ),
    fixed_parameter(
        "robot_file",
        "",
        "Robot file of the simulated robot; empty for config/youbot.yaml.",
        source="chosen: the youBot",
    ),
    fixed_parameter(
        "arm",
        True,
        "Whether the robot has its arm; without effect if robot.has_arm is false.",
        source="chosen: the youBot as sold",
    ),
    fixed_parameter(
        "gripper",
        True,
        "Whether the arm has a gripper; without it, its messages have 5 names but still 7 efforts.",
        source="a2s-institute/youbot_driver_ros_interface@4c6795f YouBotOODLWrapper.cpp computeOODLSensorReadings",
    ),
    fixed_parameter(
        "wheel_effort",
        False,
        "Whether the base reports efforts; the youBot's driver does not.",
        source="a2s-institute/youbot_driver_ros_interface@4c6795f YouBotOODLWrapper.cpp computeOODLSensorReadings",
    ),
    fixed_parameter(
        "motor_sensors",
        False,
        "Whether the arm reports motor voltages (50 Hz) and temperatures (2 Hz); the youBot does not.",
        source="chosen: as the youBot",
    ),
    Parameter(
        "fault",
        "",
        "Faults that begin now, such as `frozen_encoder joint=wheel_joint_fl after=2; lost share=0.1`; empty for "
        f"none. There are: {', '.join(kind.name for kind in KINDS)}.",
        source="chosen: a healthy robot",
    ),
    fixed_parameter(
        "publish_clock",
        False,
        "Whether the simulated time is published on /clock, for nodes with use_sim_time.",
        source="chosen: as a real robot",
    ),
    fixed_parameter(
        "real_time_factor",
        1.0,
        "Simulated time divided by real time, as far as the machine is fast enough; other than 1 only with "
        "publish_clock. Controllers and watchdogs of other nodes keep the machine's time.",
        unit="1",
        low=0.01,
        high=100.0,
        source="chosen: as a real robot",
    ),
    Parameter(
        "viewer", False, "Whether to open MuJoCo's window.", read_only=True, source="chosen: runs without a screen"
    ),
    *FRAME_TABLE,
)

_BURST_GAP = 5.0  # [s] without a refusal, after which the next one is logged again


class MockYoubot(Node):
    """Runs a plant behind its driver; like the real one it has no watchdog and holds the last command."""

    def __init__(self) -> None:
        from youbot_dynamics.simulation.truth import own_stream, truth_table

        super().__init__("mock_youbot")
        look_until = time.monotonic() + DISCOVERY
        self._claim = claim(self, "mock_youbot", "driver/joint_states")
        of_file = self._parameter_overrides.get("robot_file")
        self._file = robot_path(str(of_file.value)) if of_file is not None else None
        self._stream = own_stream(self._file)
        self._config = NodeParameters(self, (*TABLE, *truth_table(self._file)), self._check_fault)
        self._robot = self._config.robot()
        self._faults = parse_faults(self._config["fault"], self._robot.driver)
        self._config.on_change(self._take_fault)
        self._refused = Growth()
        factor = self._config["real_time_factor"]
        if factor != 1.0 and not self._config["publish_clock"]:
            raise ParameterError("parameter real_time_factor", got=f"{factor:g}", remedy="set publish_clock too")
        if self._config["identified"] and self._config["plant"] == "mujoco":
            raise ParameterError("parameter identified", got="true", expected="plant twin")
        if self._config["viewer"] and self._config["plant"] != "mujoco":
            remedy = "the twin has no window"
            raise ParameterError("parameter viewer", got="true", expected="plant mujoco", remedy=remedy)
        with first_use(self.get_logger().info):
            use_driver(self._make_driver(0.0))
        own_time, period = self._config["publish_clock"], 1.0 / self._robot.driver.rate
        self._time = _OwnTime(self, period, factor) if own_time else _MachineTime(self, period)
        self._driver = self._make_driver(self._time.now())
        self._show()
        refuse_rivals(self, "driver/joint_states", ("driver/odom",), until=look_until)
        self._publishers_of = {
            BASE: self.create_publisher(JointState, "driver/joint_states", DRIVER_QOS),
            ODOMETRY: self.create_publisher(Odometry, "driver/odom", DRIVER_QOS),
        }
        self._publishers_of[ARM] = self._publishers_of[BASE]
        self._ground_truth = self.create_publisher(Odometry, "ground_truth", STATE_QOS)
        self._arm = None
        if self._has_arm:
            sensors = self._config["motor_sensors"]
            joints = self._robot.driver.arm_joints
            self._arm = ArmTopics(self, joints, lambda: self._driver, self._time.now, sensors)
        kind = TwistStamped if self._robot.driver.stamped_twist else Twist
        self.create_subscription(kind, "driver/cmd_vel", self._on_twist, COMMAND_QOS)
        topic = "wheel_velocity_controller/commands"
        self.create_subscription(Float64MultiArray, topic, self._on_array, COMMAND_QOS)
        self.create_subscription(JointState, "driver/wheel_velocity_command", self._on_wheels, COMMAND_QOS)
        self.create_service(Empty, "base/switchOffMotors", lambda q, a: self._switch(False, a))
        self.create_service(Empty, "base/switchOnMotors", lambda q, a: self._switch(True, a))
        self.create_service(Trigger, "~/reset", self._on_reset)
        Diagnostics(self, self._report)
        steady_timer(self, period / factor, self._on_timer)
        self.get_logger().info("ready")

    @property
    def _has_arm(self) -> bool:
        return bool(self._config["arm"]) and self._robot.has_arm

    def _make_driver(self, start: float) -> RobotDriver:
        from youbot_dynamics.simulation.robot_driver import RobotDriver

        options = {name: self._config[name] for name in ("gripper", "wheel_effort")}
        plant, seed = self._make_plant(start), self._config["seed"]
        driver = RobotDriver(plant, self._robot.driver, seed, arm=self._has_arm, **options)
        driver.set_faults(self._faults)
        return driver

    def _make_plant(self, start: float) -> Any:
        from youbot_dynamics.simulation.mujoco_youbot import MujocoYoubot, engine
        from youbot_dynamics.simulation.scenario import identified_twin
        from youbot_dynamics.simulation.truth import draw_arm_truth, draw_truth
        from youbot_dynamics.simulation.youbot import Youbot

        seed = self._config["seed"]
        spreads = self._config.below(_TRUTH)
        if self._config["identified"]:
            base = identified_twin(self._robot, draw_truth(spreads, seed, stream=self._stream))
            arm = draw_arm_truth(spreads, 0, len(self._robot.arm.joints))
            return Youbot(base, arm, self._robot, seed, start)
        # By its data sheets, not as identified: an identification must not change the robot.
        sheets = load_robot(robot_file=self._file)
        angles = sheets.base.geometry.drive_angles
        base = draw_truth(spreads, seed, angles, self._stream)
        sheets = sheets if self._has_arm else replace(sheets, arm=self._robot.arm, driver=self._robot.driver)
        arm = draw_arm_truth(spreads, seed, len(sheets.arm.joints))
        if self._config["geometry"] == "known":
            base = base.with_geometry(sheets.base.geometry)
        if self._config["plant"] == "mujoco":
            sheets.base.geometry.mecanum().refuse_steered("parameter plant mujoco")
        make = MujocoYoubot if self._config["plant"] == "mujoco" else Youbot
        if make is MujocoYoubot:
            # By default it writes a file into the working directory.
            engine().set_mju_user_warning(lambda text: self.get_logger().warning(f"MuJoCo: {text}"))
        return make(base, arm, replace(sheets, driver=self._robot.driver), seed, start)

    def _show(self) -> None:
        if self._config["viewer"]:
            cast("MujocoYoubot", self._driver.plant).open_window()

    def _check_fault(self, name: str, value: Any) -> None:
        if name == "fault":
            parse_faults(value, self._robot.driver)

    def _take_fault(self) -> None:
        """Begin the faults, also those of an unchanged text: no other parameter changes while the node runs."""
        self._faults = parse_faults(self._config["fault"], self._robot.driver)
        self._driver.set_faults(self._faults)

    def _on_twist(self, message: Twist | TwistStamped) -> None:
        # No timeout, as in the real driver; the motors limit it. A NaN is refused: it would end the simulation.
        self._driver.command_twist(twist_vector(message), self._time.now())

    def _on_wheels(self, message: JointState) -> None:
        driver = self._robot.driver
        speeds = values_of(message, message.velocity, driver.wheel_joints)
        if speeds is not None and driver.wheelbase > 0.0:
            angles, signs = values_of(message, message.position, driver.wheel_joints), np.array(driver.command_sign)
            still = angles is None or math.isnan(angles[1])  # the steering stays where it is
            speeds = np.zeros(2) if still else signs * driver.mecanum().rolling(signs * speeds, signs * angles)
        if speeds is None:
            self._driver.skip("driver/wheel_velocity_command lacks joints or values")
        else:
            self._driver.command_wheels(speeds, self._time.now())

    def _on_array(self, message: Float64MultiArray) -> None:
        places = self._robot.driver.array_places()
        if self._robot.driver.wheelbase > 0.0:
            self._driver.skip("wheel_velocity_controller/commands is for wheels that do not steer")
        elif len(message.data) != len(places):
            self._driver.skip(f"wheel_velocity_controller/commands has {len(message.data)} values, not {len(places)}")
        else:
            self._driver.command_wheels([message.data[places.index(k)] for k in range(len(places))], self._time.now())

    def _switch(self, on: bool, response: Empty.Response) -> Empty.Response:
        self._driver.switch_base(on)
        return response

    def _on_reset(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        self._driver = self._make_driver(self._time.now())
        if self._arm is not None:
            self._arm.reset()
        self._show()
        return answer(response, True, "the robot stands at the origin, its arm folded; its faults restart")

    def _on_timer(self) -> None:
        for until in self._time.passes():
            self._pass(until)
        if self._refused.update(self._driver.refused + self._driver.incomplete, _BURST_GAP):
            self.get_logger().warning(f"a command was refused: {self._driver.last_refusal}; see /diagnostics for more")

    def _pass(self, until: float) -> None:
        """Simulate up to a time [s], and publish what is read then."""
        self._driver.advance(until)
        plant, shift, frames = self._driver.plant, self._time.shift(), self._config.frames()
        for channel, report in self._driver.read():
            self._publishers_of[channel].publish(report_message(report, shift, frames))
        base = plant.base
        self._ground_truth.publish(odometry_cdr(nanoseconds(plant.time + shift), *frames, base.pose, base.twist))
        if self._arm is not None:
            self._arm.publish(shift)

    def _report(self) -> dict[str, Status]:
        driver = self._driver
        values = {
            "plant": self._config["plant"],
            "seed": str(self._config["seed"]),
            "rate_hz": f"{self._robot.driver.rate:g}",
            "fault": self._config["fault"] or "none",
            "refused_commands": str(driver.refused),
            "incomplete_commands": str(driver.incomplete),
        }
        if self._refused.age < MEMORY:
            return {"driver": Status(WARN, f"simulated robot; a command was refused: {driver.last_refusal}", values)}
        return {"driver": Status(OK, "simulated, not a robot", values)}

    def destroy_node(self) -> None:
        """Release the claim."""
        self._claim.close()
        super().destroy_node()


def main() -> None:
    """Run the node."""
    run(lambda: [MockYoubot()], driving=True)


if __name__ == "__main__":
    main()
