"""Node identification: records a bag, and fits it in a child process so that no message is lost."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.node import Node
from std_srvs.srv import Trigger

from youbot_dynamics import __version__
from youbot_dynamics.errors import RecordingError, YoubotDynamicsError
from youbot_dynamics.files import place_to_write
from youbot_dynamics.identification.result_file import read_result
from youbot_dynamics.nodes._diagnostics import ERROR, OK, WARN, Diagnostics, Status
from youbot_dynamics.nodes._messages import answer
from youbot_dynamics.nodes._parameters import NodeParameters, given_files
from youbot_dynamics.nodes._runtime import LATCHED_QOS, run, steady_timer
from youbot_dynamics.nodes._topic_recorder import TopicRecorder
from youbot_dynamics.nodes.processes import start, stop
from youbot_dynamics.parameter_file import other_sections, write_parameters
from youbot_dynamics.parameters import Parameter, fixed_parameter
from youbot_dynamics.recording.mcap_writer import BagWriter, TopicQos
from youbot_dynamics.robot import PREFIX

TABLE = (
    fixed_parameter(
        "output_folder",
        "youbot_identification",
        "Folder for recordings and results; created if needed.",
        source="chosen: in the folder where the node is started",
    ),
    Parameter(
        "max_bag_size",
        1000.0,
        "Size at which a recording ends automatically.",
        unit="MB",
        low=0.001,
        high=1.0e6,
        source="chosen: several hours of a youBot's topics, and a small part of a disk",
    ),
    Parameter(
        "pose_topic",
        "ground_truth",
        "Topic with the pose of the base, for the geometry and the report: PoseStamped, PoseWithCovarianceStamped or "
        "Odometry.",
        source="chosen: the name the twin publishes under",
    ),
)

TOPICS = (
    "wheel_commands",
    "cmd_vel",
    "driver/cmd_vel",
    "driver/joint_states",
    "odom",
    "trajectory",
    "arm_1/joint_torque_command",
    "arm_1/joint_velocity_command",
    "arm_1/joint_position_command",
    "arm_1/arm_controller/joint_trajectory",
    "arm_1/motor_voltage",
    "arm_1/motor_temperature",
    "arm_1/housing_temperature",
)

_REPEATS = ("", *(f"_{k}" for k in range(2, 100)))  # behind a name that is taken
_POLL = 0.2  # [s] between checks of the child
_MATCH = 0.3  # [s] for publishers to discover new subscriptions, before a start is answered [seen: 0.03]


class IdentificationNode(Node):
    """Records from `~/start` to `~/stop`, fits on `~/fit`; what it fits is `youbot identify` on its own bag."""

    def __init__(self) -> None:
        super().__init__("identification")
        self._config = NodeParameters(self, TABLE)
        self._writer: BagWriter | None = None
        self._bag: Path | None = None
        self._count = 0
        self._child: subprocess.Popen[bytes] | None = None
        self._fit_folder = Path()
        self._status = Status(OK, "idle: call ~/start, drive, ~/stop, ~/fit")
        self._topic_recorder: TopicRecorder | None = None  # of the last recording; closed between recordings
        self._result = self.create_publisher(DiagnosticArray, "~/result", LATCHED_QOS)
        for name, callback in (("start", self._on_start), ("stop", self._on_stop), ("fit", self._on_fit)):
            self.create_service(Trigger, f"~/{name}", callback)
        Diagnostics(self, lambda: {"identification": self._status})
        steady_timer(self, _POLL, self._watch)
        steady_timer(self, 1.0, self._flush)

    def _take(self, topic: str, type_name: str, quality: TopicQos, data: bytes) -> None:
        if self._writer is None:
            return
        try:
            self._writer.add_topic(topic, type_name, qos=quality)
            self._writer.write(topic, data, time.time_ns())
            self._count += 1
        except RecordingError as problem:
            self._end_early(ERROR, str(problem))

    def _end_early(self, level: bytes, reason: str) -> None:
        self._close()
        text = f"{reason}: recorded {self._count} messages into {self._bag}, no more"
        self._status = Status(level, f"{text}; call ~/fit, or ~/start for another bag")
        self.get_logger().warning(self._status.message)
        status = DiagnosticStatus(level=level, name="recording", message=self._status.message)
        self._result.publish(DiagnosticArray(status=[status]))

    def _flush(self) -> None:
        if self._writer is None:
            if self._topic_recorder is not None:
                self._topic_recorder.close()
            return
        try:
            self._writer.flush()
        except RecordingError as problem:
            self._end_early(ERROR, str(problem))
            return
        if self._writer.size >= 1e6 * self._config["max_bag_size"]:
            self._end_early(WARN, f"max_bag_size of {self._config['max_bag_size']:g} MB reached")

    def _on_start(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        if self._writer is not None:
            return answer(response, False, f"recording into {self._bag} already: call ~/stop first")
        folder = Path(self._config["output_folder"]).expanduser().absolute()
        name = time.strftime("recording_%Y%m%d_%H%M%S")
        # Twice within a second is no reason to refuse.
        bag = next(bag for bag in (folder / f"{name}{more}" for more in _REPEATS) if not bag.exists())
        metadata = {
            "robot_id": str(self._config[f"{PREFIX}.robot_id"]),
            "youbot_dynamics": __version__,
            "parameters": json.dumps(self._config.below(PREFIX)),
        }
        try:
            self._writer = BagWriter(bag, metadata)
        except YoubotDynamicsError as problem:
            return answer(response, False, str(problem))
        self._bag, self._count = bag, 0
        self._subscribe()
        self._status = Status(OK, f"recording into {bag}")
        return answer(response, True, f"recording into {bag}")

    def _subscribe(self) -> None:
        """Subscribe anew, and wait until publishers have discovered it; messages meanwhile are dropped."""
        if self._topic_recorder is not None:
            self._topic_recorder.close()
        wanted = {self.resolve_topic_name(name) for name in (*TOPICS, self._config["pose_topic"])}
        self._topic_recorder = TopicRecorder(self, lambda topic: topic in wanted, self._take, past=False)
        time.sleep(_MATCH)
        self._topic_recorder.skip()

    def _on_stop(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        if self._writer is None:
            return answer(response, False, "not recording: call ~/start first")
        problem, text = self._close(), f"recorded {self._count} messages into {self._bag}"
        self._status = Status(ERROR if problem else OK, f"{problem or text}: call ~/fit")
        return answer(response, not problem, problem or text)

    def _close(self) -> str:
        """Finish the bag, if there is one; the error of the disk, or empty."""
        writer, self._writer = self._writer, None
        try:
            if writer is not None:
                writer.close()
        except RecordingError as problem:
            self.get_logger().error(str(problem))
            return str(problem)
        return ""

    def _on_fit(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        if self._child is not None:
            return answer(response, False, "a fit is running already: wait for ~/result")
        if self._writer is not None or self._bag is None:
            remedy = "call ~/stop first" if self._writer is not None else "call ~/start, drive, ~/stop first"
            return answer(response, False, f"no finished recording: {remedy}")
        out = self._fit_folder = self._bag.with_name(self._bag.name.replace("recording", "fit"))
        try:
            out.mkdir(parents=True, exist_ok=True)
            robot = out / "robot_before.yaml"
            head = ["The robot as it was when this was fitted."]
            others = other_sections(given_files(), PREFIX)  # so that the robot.yaml of the fit is enough to drive
            write_parameters(robot, "/**", self._config.below(PREFIX), head, others=others)
            with place_to_write(out / "fit.log").open("wb") as log:
                self._child = start(self._command(robot, out), output=log.fileno())
        except (OSError, YoubotDynamicsError) as problem:
            return answer(response, False, f"{out}: {getattr(problem, 'strerror', problem)}")
        self._status = Status(OK, f"fitting {self._bag}")
        return answer(response, True, f"fitting; the result goes to {out} and to ~/result")

    def _command(self, robot: Path, out: Path) -> list[str]:
        command = [sys.executable, "-m", "youbot_dynamics.commands.main", "identify", str(self._bag)]
        command += ["--out", str(out), "--params-file", str(robot)]
        pose = self.resolve_topic_name(self._config["pose_topic"])
        recorded = self._topic_recorder is not None and pose in self._topic_recorder.topics
        return command + (["--pose-topic", pose, "--topic", f"ground_truth={pose}"] if recorded else [])

    def _watch(self) -> None:
        """Publish the result once the child has ended."""
        if self._child is None or self._child.poll() is None:
            return
        code, self._child = self._child.returncode, None
        out = self._fit_folder
        try:
            if code not in (0, 3):
                lines = (out / "fit.log").read_text(encoding="utf-8", errors="replace").strip().splitlines()
                raise RecordingError(lines[-1] if lines else f"the fit ended with exit code {code}")
            content = read_result(out / "result.json")
        except (OSError, YoubotDynamicsError) as problem:
            text = f"the fit failed, and {problem}" if isinstance(problem, OSError) else str(problem)
            self._status = Status(ERROR, text)
            self.get_logger().error(text)
            return
        self._publish(content)
        level, text = (OK, "identified") if code == 0 else (WARN, "finished, but not everything is identifiable")
        nothing = {f"nothing for {stage}": reason for stage, reason in content["missing"].items()}
        warnings = {f"warning {k + 1}": warning for k, warning in enumerate(content["warnings"])}
        self._status = Status(level, f"{text}: {out}", {**nothing, **warnings})
        self.get_logger().info(self._status.message)

    def _publish(self, content: dict) -> None:
        message = DiagnosticArray()
        message.header.stamp = self.get_clock().now().to_msg()
        for entry in content["parameters"]:
            # A stage that had nothing to work with is no finding: it stands in /diagnostics.
            if entry["stage"] in content["missing"]:
                continue
            level = OK if entry["verdict"] == "identified" else WARN
            wanted = ("stage", "value", "unit", "standard_error", "interval_95", "samples", "valid_for")
            values = [KeyValue(key=key, value=json.dumps(entry[key])) for key in wanted]
            fields = {"name": entry["name"], "message": entry["verdict"], "hardware_id": content["robot_id"]}
            message.status.append(DiagnosticStatus(level=level, values=values, **fields))
        self._result.publish(message)

    def stop(self) -> None:
        """Finish the bag; a running fit is ended."""
        self._close()
        if self._child is not None:
            stop(self._child)


def main() -> None:
    """Run the node."""
    run(lambda: [IdentificationNode()])


if __name__ == "__main__":
    main()
