"""Node mock_youbot: the digital twin behind the topics of the real driver, quirks included."""

from __future__ import annotations

import time

import numpy as np
from geometry_msgs.msg import Twist
from nav_msgs.msg import Odometry
from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_srvs.srv import Empty, Trigger

from youbot_dynamics.nodes.diagnostics import OK, Diagnostics, Status
from youbot_dynamics.nodes.messages import joint_message, odometry_message, twist_vector
from youbot_dynamics.nodes.parameters import FRAME_TABLE, NodeParameters
from youbot_dynamics.nodes.runtime import COMMAND_QOS, STATE_QOS, run
from youbot_dynamics.parameters import Parameter
from youbot_dynamics.simulation.truth import PREFIX, draw_truth, truth_table
from youbot_dynamics.simulation.youbot import Youbot

TABLE = (
    Parameter(
        "seed",
        1,
        "Which robot: 0 is the nominal one, every other number draws its hidden truth and its noise.",
        unit="1",
        low=0,
        high=2**31 - 1,
        read_only=True,
        source="design",
    ),
    *FRAME_TABLE,
)

RATE = 50.0  # [Hz] of the driver's loop
# The driver's base message also carries four joints that never move.
CASTERS = ("caster_joint_fl", "caster_joint_fr", "caster_joint_bl", "caster_joint_br")


class MockYoubot(Node):
    """Runs the twin on the steady clock; like the real driver it has no watchdog and holds the last command."""

    def __init__(self) -> None:
        super().__init__("mock_youbot")
        self._config = NodeParameters(self, (*TABLE, *truth_table()))
        self._robot = self._config.robot()
        self._plant = self._make_plant()
        # Compile before anything is subscribed: a late first step would lose messages.
        self._plant.advance(self._plant.time + 0.01)
        self._plant = self._make_plant()
        self._joint_states = self.create_publisher(JointState, "driver/joint_states", STATE_QOS)
        self._odom = self.create_publisher(Odometry, "driver/odom", STATE_QOS)
        self._ground_truth = self.create_publisher(Odometry, "ground_truth", STATE_QOS)
        self.create_subscription(Twist, "driver/cmd_vel", self._on_twist, COMMAND_QOS)
        self.create_subscription(JointState, "driver/wheel_velocity_command", self._on_wheels, COMMAND_QOS)
        self.create_service(Empty, "base/switchOffMotors", lambda q, a: self._switch(False, a))
        self.create_service(Empty, "base/switchOnMotors", lambda q, a: self._switch(True, a))
        self.create_service(Trigger, "~/reset", self._on_reset)
        self._diagnostics = Diagnostics(self, self._report)
        self.create_timer(1.0 / RATE, self._on_timer, clock=Clock(clock_type=ClockType.STEADY_TIME))

    def _make_plant(self) -> Youbot:
        spreads = {n: v for n, v in self._config.values.items() if n.split(".")[0] == PREFIX}
        seed = self._config["seed"]
        return Youbot(draw_truth(spreads, seed), self._robot.driver, seed, start=time.monotonic())

    def _on_twist(self, message: Twist) -> None:
        # No clamp, no NaN check, no timeout: the real driver has none either. A NaN would end the simulation.
        twist = twist_vector(message)
        if np.all(np.isfinite(twist)):
            self._plant.command_twist(twist, time.monotonic())

    def _on_wheels(self, message: JointState) -> None:
        speeds = dict(zip(message.name, message.velocity, strict=False))
        names = self._robot.driver.wheel_joints
        if all(name in speeds and np.isfinite(speeds[name]) for name in names):
            self._plant.command_wheels([speeds[name] for name in names], time.monotonic())

    def _switch(self, on: bool, response: Empty.Response) -> Empty.Response:
        self._plant.switch_motors(on)
        return response

    def _on_reset(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        self._plant = self._make_plant()
        response.success = True
        response.message = "the twin stands at the origin"
        return response

    def _on_timer(self) -> None:
        now = time.monotonic()
        ros_now = 1e-9 * self.get_clock().now().nanoseconds
        self._plant.advance(now)
        reading = self._plant.read()
        stamp = ros_now + reading.stamp - now
        still = np.zeros(len(CASTERS))
        self._joint_states.publish(
            joint_message(
                stamp,
                (*self._robot.driver.wheel_joints, *CASTERS),
                position=np.concatenate([reading.position, still]),
                velocity=np.concatenate([reading.velocity, still]),
            )
        )
        frame, child = self._config.frames()
        self._odom.publish(odometry_message(stamp, frame, child, reading.odometry, reading.twist))
        truth = odometry_message(ros_now, frame, child, self._plant.pose, self._plant.twist)
        self._ground_truth.publish(truth)

    def _report(self) -> dict[str, Status]:
        values = {"seed": str(self._config["seed"]), "rate_hz": f"{RATE:g}"}
        return {"driver": Status(OK, "digital twin, not a robot", values)}


def main() -> None:
    """Run the node."""
    run(lambda: [MockYoubot()])


if __name__ == "__main__":
    main()
