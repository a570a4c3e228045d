"""Node arm_ekf over DDS: its estimates against the twin's truth, messages with everything wrong, and its life."""

from __future__ import annotations

import dataclasses
import signal

import numpy as np
import pytest

pytest.importorskip("rclpy")

from arm_runs import NOMINAL, PLACE, ROBOT, loaded, swing  # noqa: E402
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus  # noqa: E402
from geometry_msgs.msg import InertiaStamped, PointStamped  # noqa: E402
from rcl_interfaces.msg import Parameter, ParameterType, ParameterValue  # noqa: E402
from rcl_interfaces.srv import SetParameters  # noqa: E402
from ros_processes import PATIENCE, Observer, Processes, end, joint_message  # noqa: E402
from sensor_msgs.msg import JointState, Temperature  # noqa: E402
from std_msgs.msg import Float64  # noqa: E402
from std_srvs.srv import Trigger  # noqa: E402

from youbot_dynamics.control.stamp_rhythm import RateLimiter  # noqa: E402
from youbot_dynamics.estimation.support import Carried, SupportModel  # noqa: E402
from youbot_dynamics.nodes._messages import seconds  # noqa: E402

ARM = [f"arm_joint_{k}" for k in range(1, 6)]
FINGERS = ["gripper_finger_joint_l", "gripper_finger_joint_r"]
WHEELS = [f"wheel_joint_{place}" for place in ("fl", "fr", "bl", "br")]
STATES = "driver/joint_states"
ESTIMATES = ("estimated_joint_states", "friction", "friction_feedforward", "torque_available")
COULOMB = np.array([1.25, 0.7, 0.5, 0.24, 0.159])


@pytest.mark.parametrize(("rate", "sent"), [(50.0, 1.0), (200.0, 0.25), (1000.0, 0.05), (10.0, 1.0)])
def test_a_rate_limiter_keeps_its_rate_whatever_the_stamps_jitter(rate: float, sent: float) -> None:
    random, limiter = np.random.default_rng(0), RateLimiter(50.0)
    stamps = 1.7e9 + np.arange(2000) / rate + np.clip(0.1 / rate * random.normal(size=2000), -0.3 / rate, 0.3 / rate)
    assert np.mean([limiter.due(stamp) for stamp in stamps]) == pytest.approx(sent, rel=0.02)
    assert limiter.due(5.0) and not limiter.due(5.001) and limiter.due(1e10)


class Listener(Observer):
    """Hears all that the node says."""

    def __init__(self) -> None:
        super().__init__()
        for name in ESTIMATES:
            self.listen(JointState, f"arm_1/{name}")
        for part in ("winding", "housing"):
            self.listen(Temperature, f"arm_1/arm_joint_2/{part}_temperature")
        self.listen(InertiaStamped, "payload")
        self.listen(Float64, "tip_over_margin")
        self.listen(JointState, "wheel_normal_forces")
        self.listen(PointStamped, "centre_of_mass")
        self.listen(DiagnosticArray, "/diagnostics")

    def statuses(self) -> dict[str, DiagnosticStatus]:
        """The node's last ones, by item."""
        found = {}
        for array in self.received["/diagnostics"]:
            for status in array.status:
                if status.name.startswith("/arm_ekf: "):
                    found[status.name.removeprefix("/arm_ekf: ")] = status
        return found

    def values(self, item: str = "joints") -> dict[str, str]:
        return {pair.key: pair.value for pair in self.statuses()[item].values}

    def fresh(self) -> None:
        """Wait for diagnostics that know of all before."""
        count = sum(any("/arm_ekf" in s.name for s in a.status) for a in self.received["/diagnostics"])

        def again() -> bool:
            return sum(any("/arm_ekf" in s.name for s in a.status) for a in self.received["/diagnostics"]) >= count + 2

        self.wait(again, "diagnostics of arm_ekf")


def rows(messages: list[JointState], field: str) -> tuple[np.ndarray, np.ndarray]:
    """Stamps (t,) and a field (t, 5) of messages of the arm."""
    own = [message for message in messages if ARM[0] in message.name]
    return np.array([seconds(m.header.stamp) for m in own]), np.array([getattr(m, field)[:5] for m in own])


def at(stamps: np.ndarray, truth: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    return np.column_stack([np.interp(stamps, truth[0], column) for column in truth[1].T])


@pytest.mark.ros
def test_estimates_follow_the_truth_of_a_moving_arm() -> None:
    with Processes() as processes, Listener() as observer:
        processes.node("mock_youbot", "-p", "seed:=0", "-p", "motor_sensors:=true")
        child = processes.node("arm_ekf")
        for topic in (STATES, "ground_truth/arm", "ground_truth/winding_temperature"):
            observer.listen(JointState, topic, 1000)  # compared one by one
        command = observer.node.create_publisher(JointState, "arm_1/joint_position_command", 1)
        heard = ("arm_1/estimated_joint_states", "ground_truth/arm")
        observer.wait(lambda: all(observer.received[topic] for topic in heard), "estimates and truth")
        observer.wait(lambda: command.get_subscription_count() > 0, "the arm's ear")
        rest = np.array(observer.received["ground_truth/arm"][-1].position)
        reach = rest + np.array([0.8, 0.9, -0.7, 0.9, 0.8])
        for k in range(7):
            command.publish(joint_message(0.0, ARM, position=reach if k % 2 == 0 else rest + 0.1 * (reach - rest)))
            observer.follow("ground_truth/arm", 1.0)
        observer.fresh()

        estimates = observer.received["arm_1/estimated_joint_states"]
        stamps, speed = rows(estimates, "velocity")
        truth = {name: rows(observer.received["ground_truth/arm"], name) for name in ("position", "velocity", "effort")}
        inside = (stamps > truth["velocity"][0][0] + 1.5) & (stamps < truth["velocity"][0][-1])
        true_speed = at(stamps, truth["velocity"])[inside]
        moving = np.abs(true_speed) > 0.05
        assert moving.sum(axis=0).min() > 40
        driver_stamps, driver_speed = rows(observer.received[STATES], "velocity")
        driver_speed = at(stamps, (driver_stamps, driver_speed))[inside]
        ours, theirs = (np.sqrt(np.mean((guess - true_speed)[moving] ** 2)) for guess in (speed[inside], driver_speed))
        print(f"speed RMSE {ours:.4f} rad/s, the driver's {theirs:.4f} rad/s")
        assert ours < 0.8 * theirs
        position = rows(estimates, "position")[1][inside]
        off = np.abs(position - at(stamps, truth["position"])[inside])
        assert np.percentile(off, 90) < 3e-3  # 2 ms of jitter at the speeds of this motion
        after_start = driver_stamps >= stamps[0]  # the driver may be up before the node
        # A process that the machine held up loses messages in a row; one that is too slow loses single ones throughout.
        losses = np.diff(stamps) > 1.5 * np.median(np.diff(driver_stamps))
        print(f"{len(stamps)} estimates of {after_start.sum()} messages since the start, {losses.sum()} losses")
        assert losses.sum() < 0.1 * after_start.sum()

        friction_stamps, friction = rows(observer.received["arm_1/friction"], "effort")
        ahead_stamps, ahead = rows(observer.received["arm_1/friction_feedforward"], "effort")
        both = np.intersect1d(friction_stamps, ahead_stamps)
        assert len(both) >= len(friction_stamps) - 5  # the first and last may be under way on one topic
        friction, ahead = friction[np.isin(friction_stamps, both)], ahead[np.isin(ahead_stamps, both)]
        sliding = np.abs(at(both, truth["velocity"])) > 0.1
        signed = friction * np.sign(at(both, truth["velocity"]))
        for k in range(5):
            true = COULOMB[k] + 0.5  # viscous friction and the estimate's error
            assert 0.5 * COULOMB[k] < np.median(signed[sliding[:, k], k]) < 1.5 * true
        assert np.mean(ahead[sliding] * signed[sliding] * np.sign(at(both, truth["velocity"]))[sliding] > 0) > 0.9
        assert np.median(np.diff(both)) < 0.03

        winding = observer.received["arm_1/arm_joint_2/winding_temperature"][-1]
        true_winding = observer.received["ground_truth/winding_temperature"][-1].effort[1]
        assert abs(winding.temperature - true_winding) < 3.0 * np.sqrt(winding.variance) + 0.5
        assert winding.header.frame_id == "arm_link_2" and 0.0 < winding.variance < 4.0
        housing = observer.received["arm_1/arm_joint_2/housing_temperature"]
        assert 1.0 < len(housing) / (stamps[-1] - stamps[0]) < 3.0
        available = np.array(observer.received["arm_1/torque_available"][-1].effort)
        assert np.all(available > 2.0 * COULOMB) and np.all(available < 31.0)

        statuses = observer.statuses()
        assert {item: status.level for item, status in statuses.items()} == dict.fromkeys(
            ("joints", "temperatures", "payload", "support"), DiagnosticStatus.OK
        ), statuses
        assert observer.values("temperatures")["arm_joint_2.seconds_to_limit"] == "inf"
        weight = observer.values("payload")
        assert abs(float(weight["mass_kg"])) < 2.0 * float(weight["mass_deviation_kg"])
        for message in observer.received["payload"]:
            assert message.header.frame_id == "arm_link_5" and 0.0 <= message.inertia.m < 0.5

        # A machine that holds the node up for half a second costs no message.
        child.send_signal(signal.SIGSTOP)
        observer.follow("ground_truth/arm", 0.5)
        child.send_signal(signal.SIGCONT)
        observer.fresh()
        assert observer.values()["voltages_without_an_effort"] == "0"


class Driver(Listener):
    """Speaks as the driver does, or as none should."""

    def __init__(self) -> None:
        super().__init__()
        self.out = self.node.create_publisher(JointState, STATES, 10)
        self.stamp = 0.0
        self.position = np.array([2.9, 1.1, -2.5, 1.8, 2.9])

    def now(self) -> float:
        return 1e-9 * self.node.get_clock().now().nanoseconds

    def say(self, ahead: float = 0.02, names: list[str] | None = None, position=None, effort=(0.5,) * 7) -> None:
        """One message, stamped `ahead` of the last one."""
        self.stamp += ahead
        where = [*self.position, 0.0, 0.0] if position is None else position
        message = joint_message(self.stamp, [*ARM, *FINGERS] if names is None else names, where, [0.0] * 7, effort)
        self.out.publish(message)
        self.spin(0.01)

    def listen_on(self) -> None:
        """Speak on until diagnostics know of all before: silence is a finding of its own."""
        count = len(self.received["/diagnostics"])
        while len(self.received["/diagnostics"]) < count + 2:
            self.speak(1)

    def speak(self, count: int) -> None:
        """Good messages in real time, but with no gap in their stamps where the machine holds this process up."""
        for _ in range(count):
            self.say(min(max(1e-3, self.now() - self.stamp), 0.5))
            self.spin(0.01)


def raised(observer: Driver, before: dict[str, str]) -> dict[str, int]:
    """What was counted besides good messages."""
    now = observer.values()
    counts = {name: int(now[name]) - int(value) for name, value in before.items() if value.isdigit()}
    return {name: count for name, count in counts.items() if count and name != "messages_taken_in"}


@pytest.mark.ros
def test_bad_messages_are_each_counted_and_none_ends_the_node() -> None:
    with Processes() as processes, Driver() as driver:
        child = processes.node("arm_ekf")
        driver.wait(lambda: driver.out.get_subscription_count() > 0, "the node")
        driver.stamp = driver.now()
        driver.speak(40)
        driver.fresh()
        driver.wait(lambda: "no states of arm_joint_1" in driver.statuses()["joints"].message, "a report of silence")
        driver.listen_on()
        before = driver.values()

        nan = float("nan")
        for _ in range(3):
            driver.say(effort=[0.5, nan, 0.5, float("inf"), 0.5, 0.0, 0.0])
        for _ in range(4):
            driver.say(effort=())
        for _ in range(5):
            driver.say(0.0)  # a duplicate
        driver.say(-0.01)
        driver.stamp += 0.01  # out of order; the stamps go on
        driver.say(names=["elbow", "wrist"])
        driver.say(names=ARM[:3])
        driver.say(names=[])
        driver.say(names=[*WHEELS, "caster_joint_fl"])
        driver.say(position=[nan, *driver.position[1:], 0.0, 0.0])
        driver.say(position=[1e3, *driver.position[1:], 0.0, 0.0])
        driver.say(position=[])
        stamp, driver.stamp = driver.stamp, 0.0
        driver.say(0.0)
        driver.stamp = stamp
        driver.say(names=[*ARM, ARM[0], "x"])
        driver.listen_on()
        assert raised(driver, before) == {
            "missing_efforts": 3 * 2 + 4 * 5,
            "messages_with_an_effort_that_is_not_a_number": 3,
            "messages_without_efforts": 4,
            "repeated_stamps": 5,
            "late_stamps": 1,
            "messages_without_a_known_joint": 2,
            "messages_that_lack_a_joint": 1,
            "messages_of_other_joints": 1,
            "missing_positions": 1 + 5,
            "messages_with_a_position_that_is_missing_or_not_a_number": 2,
            "readings_beyond_the_gate": 1,
            "messages_without_a_stamp": 1,
            "messages_that_name_a_joint_twice": 1,
        }
        text = driver.statuses()["joints"].message
        for cause in (
            "efforts are missing",
            "stamps repeat",
            "lack a joint (arm_joint_4, arm_joint_5)",
            "positions jump",
        ):
            assert cause in text
        for message in driver.received["arm_1/estimated_joint_states"]:
            assert np.all(np.isfinite([*message.position, *message.velocity, *message.effort]))
        assert driver.received["arm_1/estimated_joint_states"][-1].position == pytest.approx(driver.position, abs=0.01)

        # A clock that jumps an hour ahead and back: it begins anew, each time once, and the motors stay cold.
        before = driver.values()
        for jump in (3600.0, -3600.0):
            driver.stamp += jump
            for _ in range(10):
                driver.say()
        driver.listen_on()
        assert raised(driver, before) == {"starts_after_a_gap": 2}
        assert driver.received["arm_1/arm_joint_2/winding_temperature"][-1].temperature < 35.0

        voltage = driver.node.create_publisher(JointState, "arm_1/motor_voltage", 10)
        warmth = driver.node.create_publisher(JointState, "arm_1/motor_temperature", 10)
        for out in (voltage, warmth):
            driver.wait(lambda out=out: out.get_subscription_count() > 0, "the node")
        before = driver.values()
        voltage.publish(joint_message(driver.stamp - 5.0, ARM, effort=[1.0] * 5))
        voltage.publish(joint_message(driver.stamp, ARM[:2], effort=[1.0] * 5))
        warmth.publish(joint_message(driver.stamp, ARM, effort=[nan] * 5))
        warmth.publish(joint_message(driver.stamp, [], effort=[]))
        driver.listen_on()
        counted = raised(driver, before)
        assert counted["voltages_without_an_effort"] == 1 and counted["motor_messages_refused"] == 2

        assert driver.call(Trigger, "arm_ekf/reset", Trigger.Request()).success
        before = driver.values()
        driver.listen_on()
        assert "starts_after_a_gap" not in raised(driver, before)
        output = end(child)
        assert child.returncode == 0, output
        assert "Traceback" not in output


@pytest.mark.ros
def test_a_payload_is_weighed_and_the_wheels_feel_it_and_the_base_s_acceleration() -> None:
    """A swing of the twin's arm with 0.4 kg in its gripper, faster than in real time: the filter goes by stamps."""
    mass, seed = 0.4, 1
    run = swing(seed, loaded(dataclasses.replace(NOMINAL, stamp_jitter=3e-4), mass), 12.0).every(10)
    with Processes() as processes, Driver() as driver:
        processes.node("arm_ekf", "-p", "frame_prefix:=yb1_")
        driver.wait(lambda: driver.out.get_subscription_count() > 0, "the node")
        begin = driver.now()
        assert not driver.call(Trigger, "arm_ekf/tare", Trigger.Request()).success  # nothing was felt yet
        signs = np.array(ROBOT.driver.velocity_sign)
        estimates = driver.received["arm_1/estimated_joint_states"]
        for k, (stamp, position, effort) in enumerate(zip(run.stamp, run.position, run.effort, strict=True)):
            message = joint_message(begin + stamp, ARM, position, np.zeros(5), effort)
            driver.out.publish(message)
            # The base stands; at last it brakes for half a second, as the driver tells it.
            left = len(run.stamp) - k
            speed = np.full(4, 0.02 * min(0, left - 25) * 1.5 / 0.0475)
            driver.out.publish(joint_message(begin + stamp, WHEELS, np.zeros(4), signs * speed))
            driver.spin(0.006)
            # Faster than in real time, but no faster than it takes them in.
            driver.wait(
                lambda now=begin + stamp: not estimates or seconds(estimates[-1].header.stamp) > now - 0.1, "estimates"
            )
        for topic in ("payload", "tip_over_margin"):
            driver.wait(lambda topic=topic: driver.received[topic], topic)
        driver.drain("payload", "tip_over_margin", "wheel_normal_forces", "centre_of_mass")

        weight = driver.received["payload"][-1]
        print(f"{mass} kg weighed as {weight.inertia.m:.3f} kg")
        assert weight.inertia.m == pytest.approx(mass, rel=0.1) and weight.header.frame_id == "yb1_arm_link_5"
        normals, centres = driver.received["wheel_normal_forces"], driver.received["centre_of_mass"]
        assert normals[-1].name == WHEELS and len(normals[-1].position) == 0
        assert centres[-1].header.frame_id == "yb1_base_footprint"
        assert len(normals) == pytest.approx(10.0 * 12.0, rel=0.15)
        # Against the model with what is true: pose, payload, and the base by the wheels.
        model = SupportModel(ROBOT)
        model.carry(Carried(mass, PLACE))
        for at, rate in ((len(run.stamp) // 2, 0.0), (len(run.stamp) - 1, -1.5)):
            message, centre = (
                min(found, key=lambda m: abs(seconds(m.header.stamp) - begin - run.stamp[at]))
                for found in (normals, centres)
            )
            row = int(np.argmin(np.abs(run.stamp + begin - seconds(message.header.stamp))))
            true = model.support(run.true_position[row], run.true_speed[row], twist_rate=[rate, 0.0, 0.0])
            np.testing.assert_allclose(message.effort, true.normal_forces, rtol=0.05)
            found = [centre.point.x, centre.point.y, centre.point.z]
            np.testing.assert_allclose(found, true.centre_of_mass, atol=3e-3)
        assert driver.received["tip_over_margin"][-1].data == pytest.approx(min(normals[-1].effort), abs=1e-9)
        driver.fresh()
        assert "carries" in driver.statuses()["support"].message or "not known" in driver.statuses()["support"].message
        assert driver.call(Trigger, "arm_ekf/tare", Trigger.Request()).success
        driver.fresh()
        assert driver.values("payload")["mass_kg"] == "0.000"


@pytest.mark.ros
def test_parameters_are_checked_and_some_may_change_while_it_runs() -> None:
    with Processes() as processes, Driver() as driver:
        wrong = processes.node("arm_ekf", "-p", "smoothing_sped:=0.1")
        child = processes.node("arm_ekf", "-p", "heat_deviations:=0.0", "-r", "__ns:=/yb1")
        assert wrong.wait(PATIENCE) == 1
        assert "did you mean smoothing_speed?" in wrong.stdout.read()
        driver.listen(JointState, "/yb1/arm_1/friction_feedforward")
        out = driver.node.create_publisher(JointState, "/yb1/driver/joint_states", 10)
        driver.wait(lambda: out.get_subscription_count() > 0, "the node")

        def setting(name: str, value: float):
            parameter = Parameter(
                name=name, value=ParameterValue(type=ParameterType.PARAMETER_DOUBLE, double_value=value)
            )
            request = SetParameters.Request(parameters=[parameter])
            return driver.call(SetParameters, "/yb1/arm_ekf/set_parameters", request).results[0]

        def feedforward() -> np.ndarray:
            """What it gives while joint 1 turns at 0.5 rad/s."""
            topic, begin = "/yb1/arm_1/friction_feedforward", driver.now()
            heard = driver.received[topic]
            while (passed := driver.now() - begin) < 1.0 or not heard or seconds(heard[-1].header.stamp) < begin + 0.8:
                assert passed < PATIENCE, "no estimates"
                position = driver.position + [0.5 * passed, 0.0, 0.0, 0.0, 0.0]
                out.publish(joint_message(driver.now(), ARM, position, [0.5, 0, 0, 0, 0], [2.0, 0, 0, 0, 0]))
                driver.spin(0.02)
            return np.array(heard[-1].effort)

        whole = feedforward()
        assert whole[0] == pytest.approx(COULOMB[0] + 1.5 * 0.5, rel=0.1)
        assert setting("feedforward_share", 0.5).successful
        assert feedforward()[0] == pytest.approx(0.5 * whole[0], rel=0.1)
        assert setting("gate", 8.0).successful
        assert not setting("feedforward_share", 1.5).successful
        assert not setting("cold_start", 1.0).successful
        output = end(child, signal.SIGTERM)
        assert child.returncode == 0, output
