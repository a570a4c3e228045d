"""Node base_controller: cmd_vel to wheel velocities, within the limits of the robot."""

from __future__ import annotations

import sys
import time
from contextlib import nullcontext

import numpy as np
from geometry_msgs.msg import Twist, TwistStamped
from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_srvs.srv import SetBool

from youbot_dynamics.control.wheel_commands import BaseDriver, CommanderSettings
from youbot_dynamics.kinematics.steering import joint_commands
from youbot_dynamics.nodes._diagnostics import ERROR, MEMORY, OK, WARN, Diagnostics, Status
from youbot_dynamics.nodes._driver import COMMAND_INTERFACE, DriverOutput
from youbot_dynamics.nodes._listening import listen
from youbot_dynamics.nodes._messages import answer, joint_positions, nanoseconds, seconds, twist_vector
from youbot_dynamics.nodes._parameters import FIND_ROLLER_PHASES, STAMPED_CMD_VEL, NodeParameters
from youbot_dynamics.nodes._runtime import (
    COMMAND_QOS,
    DRIVER_QOS,
    LATCHED_QOS,
    STATE_QOS,
    acknowledged,
    node_time,
    run,
    steady_timer,
)
from youbot_dynamics.nodes._topic_graph import (
    COMMANDS,
    DISCOVERY,
    EVIDENCE,
    EndpointCache,
    contradicting_operators,
    driver_on_cmd_vel,
    refuse_rivals,
    type_mismatch,
)
from youbot_dynamics.nodes.local_socket import ControllerSocket, claim
from youbot_dynamics.parameters import Parameter, settings_table
from youbot_dynamics.recording.message_types import joint_state_cdr
from youbot_dynamics.warm_up import first_use

TABLE = (
    *settings_table(CommanderSettings),
    STAMPED_CMD_VEL,
    FIND_ROLLER_PHASES,
    COMMAND_INTERFACE,
    Parameter(
        "guarded",
        False,
        "Drive only once stop_base has answered, which guards this node.",
        read_only=True,
        source="chosen: a bringup, which starts both, sets it to true",
    ),
)

_DROPPED = "the base cannot move sideways: that part of commands is dropped"
_BURST_GAP = 1.0  # [s] without a refusal that separates one burst from the next
_GRAPH_PERIOD = 0.5  # [s] between checks of the publishers and subscribers of the topics
_NEWCOMER = 10.0  # [s] for which a new node gives way to an earlier one, while DDS discovers it


class BaseController(Node):
    """Translates between topics and a `BaseDriver`; time here is the steady clock, which never jumps."""

    def __init__(self) -> None:
        super().__init__("base_controller")
        self._born = time.monotonic()
        self._claim = claim(self, "base_controller", "wheel_commands")
        self._config = NodeParameters(self, TABLE)
        self._robot = self._config.robot()
        settings = self._config.settings(CommanderSettings)
        self._phases_lost = np.inf  # time at which they were [s]
        # Without phases there is nothing to compile, and the compiler with its 60 MB is not loaded.
        finds: bool = self._config["find_roller_phases"]
        rolls = finds or self._robot.base.geometry.roller_phases is not None
        with first_use(self.get_logger().info) if rolls else nullcontext():
            self._base = BaseDriver(self._robot, settings, finds)
        self._commander = self._base.commander
        if rolls or self._commander.base.steered:
            listen(self, JointState, "driver/joint_states", self._on_joint_states, DRIVER_QOS)
        if finds:
            self.create_subscription(JointState, "roller_phases", self._on_phases, LATCHED_QOS)
        refuse_rivals(self, "wheel_commands", COMMANDS, until=self._born + DISCOVERY)
        self._output = DriverOutput(self, self._robot, self._config[COMMAND_INTERFACE.name])
        self._wheel_commands = self.create_publisher(JointState, "wheel_commands", STATE_QOS)
        # A parameter file for this node alone would win over the argument of the bringup, and take the guard away.
        self._guard_socket = ControllerSocket(self, self._config["guarded"] or "guarded:=true" in sys.argv)
        self._sent = 0
        self._limited = 0
        self._steering: float | None = None  # angle that was sent last [rad]
        self._source = "none"
        self._last_refusal = ("", -np.inf)
        self._dropped = (0, -np.inf)  # commands of which a part was dropped, and when the last of them came [s]
        self._contradiction = ("", -np.inf)  # of several operators, and when it was last seen [s]
        self._endpoints = EndpointCache(self, ("cmd_vel", *EVIDENCE))
        self._enabled = True  # by ~/enable
        self._bypass = ""  # of driver_on_cmd_vel
        self._hindrance = self._guard_socket.missing  # why it refuses to drive
        self._commander.enabled = not self._hindrance
        self._mismatch = ""  # of type_mismatch
        self._stamped: bool = self._config["enable_stamped_cmd_vel"]
        kind = TwistStamped if self._stamped else Twist
        listen(self, kind, "cmd_vel", lambda twist: self._offer("operator", twist), COMMAND_QOS)
        tracker = "trajectory_tracker/cmd_vel"
        self.create_subscription(Twist, tracker, lambda twist: self._offer("tracker", twist), COMMAND_QOS)
        self.create_service(SetBool, "~/enable", self._on_enable)
        self._diagnostics = Diagnostics(self, self._report)
        steady_timer(self, self._base.period, self._on_timer)
        steady_timer(self, _GRAPH_PERIOD, self._check_graph)

    def _check_graph(self) -> None:
        """Check for an earlier base_controller, for the guard, and for what `_judge` judges."""
        self._guard_socket.connect()
        if time.monotonic() < self._born + _NEWCOMER:
            refuse_rivals(self, "wheel_commands", COMMANDS, mine=1)
        ends = self._endpoints.endpoints()
        self._bypass = driver_on_cmd_vel(ends, {self.get_fully_qualified_name()})
        now, text = time.monotonic(), contradicting_operators(ends["cmd_vel"])
        if text and self._commander.turns.contradict(now):
            anew, self._contradiction = now - self._contradiction[1] > MEMORY, (text, now)
            if anew:
                self.get_logger().warning(text)
                self._diagnostics.publish()
        self._judge(type_mismatch(ends["cmd_vel"], self._stamped))

    def _judge(self, mismatch: str) -> None:
        """Refuse to drive without the guard, or while the driver subscribes to cmd_vel; report a type mismatch."""
        hindrance = self._guard_socket.missing or self._bypass
        if (hindrance, mismatch) == (self._hindrance, self._mismatch):
            return
        for before, now in ((self._hindrance, hindrance), (self._mismatch, mismatch)):
            if now and now != before:
                self.get_logger().error(now)
        if self._hindrance and not hindrance:
            self.get_logger().info("commands are accepted")
        self._hindrance, self._mismatch = hindrance, mismatch
        self._commander.enabled = self._enabled and not hindrance
        self._diagnostics.publish()

    def _offer(self, source: str, message: Twist | TwistStamped) -> None:
        now = time.monotonic()
        reason = self._commander.offer(source, twist_vector(message), now)
        if self._commander.dropped > self._dropped[0]:
            anew, self._dropped = self._dropped[0] == 0, (self._commander.dropped, now)
            if anew:
                self.get_logger().warning(_DROPPED)
                self._diagnostics.publish()
        if not reason:
            return
        new_burst = now - self._last_refusal[1] > _BURST_GAP
        self._last_refusal = (f"refused a command of the {source}: {reason}", now)
        if new_burst:
            self.get_logger().warning(self._last_refusal[0])
            self._diagnostics.publish()

    def _on_timer(self) -> None:
        self._guard_socket.heartbeat(self._sent > 0)
        self._judge(self._mismatch)
        stamp = node_time(self)
        command = self._base.step(time.monotonic(), stamp)
        if command is None:
            return
        if self._sent == 0:
            self._guard_socket.heartbeat(True)  # a guard that knows of no command would not stop the first one
        self._sent += 1
        self._send(stamp, command.wheel_speeds, command.rolling_speeds, command.steering)
        self._limited += command.limited
        self._steering = command.steering
        if command.source != self._source:
            self.get_logger().info(f"driven by: {command.source}")
            self._source = command.source

    def _on_joint_states(self, message: JointState) -> None:
        """Follow the wheels for the rollers they stand on, as long as their phases hold; or look where one is steered.

        A driver that is told angles has the last one; one that is told twists steers by itself.
        """
        driver = self._robot.driver
        picked = joint_positions(message, driver.wheel_joints)
        if picked is None:
            return
        positions = picked[0] * np.array(driver.position_sign)
        if self._commander.base.steered:
            if not self._sent or self._output.interface == "twist":
                self._commander.stand_at(float(positions[1]))
            return
        lost = self._base.take_wheels(seconds(message.header.stamp), positions)
        if lost:
            self.get_logger().warning(f"roller phases are no longer valid: {lost}; mean kinematics from now on")
            self._phases_lost = time.monotonic()

    def _on_phases(self, message: JointState) -> None:
        """Take roller phases that odometry found; whether they still hold is seen from the wheels here, too."""
        picked = joint_positions(message, self._robot.driver.wheel_joints)
        if picked is not None and np.all(np.isfinite(picked[0])):
            self._base.take_phases(picked[0])
            self.get_logger().info("roller phases found by odometry are used from now on")

    def _send(
        self, stamp: float, wheel_speeds: np.ndarray, rolling_speeds: np.ndarray, steering: float | None = None
    ) -> None:
        """Send wheel speeds (n,): to the driver for the rollers to come; wheel_commands are the mean ones."""
        self._output.send(rolling_speeds, stamp, steering)
        names, position, velocity = self._robot.driver.wheel_joints, None, wheel_speeds
        if self._commander.base.steered:
            position, velocity = joint_commands(wheel_speeds, steering)
        self._wheel_commands.publish(joint_state_cdr(nanoseconds(stamp), names, position, velocity))

    def _on_enable(self, request: SetBool.Request, response: SetBool.Response) -> SetBool.Response:
        self._enabled = request.data
        self._commander.enabled = self._enabled and not self._hindrance
        if self._commander.enabled != request.data:
            return answer(response, False, self._hindrance)
        return answer(response, True, "commands are accepted" if request.data else "braking, then commanding zero")

    def _report(self) -> dict[str, Status]:
        now = time.monotonic()
        refusal_age = now - self._last_refusal[1]
        values = {
            "driven_by": self._source,
            "enabled": str(self._commander.enabled),
            "sent": str(self._sent),
            "limited": str(self._limited),
            "refused": str(self._commander.refused),
            "dropped": str(self._commander.dropped),
            "refusal_age_s": f"{refusal_age:.0f}",
            "window_s": f"{MEMORY:.0f}",
            "command_age_s": f"{self._commander.age(now):.2f}",
            "roller_phases": self._base.phases.lost or "used",
        }
        return {"commands": Status(*self._judged(now, refusal_age), values)}

    def _judged(self, now: float, refusal_age: float) -> tuple[bytes, str]:
        """Level and text of the status, the worst one."""
        if error := self._hindrance or self._mismatch:
            return ERROR, error
        if self._sent and self._output.publisher.get_subscription_count() == 0:
            return ERROR, f"no driver listens on {self._output.publisher.topic_name}"
        if timeout := self._guard_socket.timeout():
            return WARN, timeout
        if now - self._contradiction[1] < MEMORY:
            return WARN, self._contradiction[0]
        if refusal_age < MEMORY:
            return WARN, self._last_refusal[0]
        if now - self._dropped[1] < MEMORY:
            return WARN, _DROPPED
        if self._base.phases.lost and self._robot.base.geometry.roller_phases is not None:
            lost = f"{self._base.phases.lost} {now - self._phases_lost:.0f} s ago"
            return WARN, f"roller phases are no longer valid: {lost}; identify them again"
        if not self._commander.enabled:
            return OK, "disabled"
        return OK, "sending" if self._sent else "waiting for a first command"

    def destroy_node(self) -> None:
        """Release the claim."""
        self._claim.close()
        super().destroy_node()

    def stop(self) -> None:
        """Send zero, if anything was ever sent, and wait until it has arrived."""
        if self._sent == 0:
            return
        zero = np.zeros(len(self._robot.driver.wheel_joints))
        self._send(node_time(self), zero, zero, self._steering)
        if not acknowledged(self._output.publisher):
            self.get_logger().error("the last zero command was not confirmed: does the driver still run?")
        else:
            self._guard_socket.goodbye()


def main() -> None:
    """Run the node."""
    run(lambda: [BaseController()], driving=True)


if __name__ == "__main__":
    main()
