"""Which parameters any program may set while the robot drives: only those on which no promise rests."""

from __future__ import annotations

import importlib
import importlib.util
from types import ModuleType

import pytest
from repository import ROOT

pytest.importorskip("rclpy")

# By node, with what each of them changes. docs/reliability.md and docs/safety.md promise nothing that depends on it.
HARMLESS = {
    "base_controller": set(),
    "odometry": {
        # how much a gyro counts
        *("gyro_noise", "gyro_largest_bias", "gyro_bias_drift", "gyro_scale_error", "gyro_standstill"),
        "gyro_longest_gap",
    },
    # The law of the next trajectory; what ends one is read-only.
    "trajectory_tracker": {
        *("feedback", "tracker", "aggressiveness", "derivative", "derivative_time", "assumed_delay"),
        *("delay_uncertainty", "trust", "ease", "line_blend", "settle"),
    },
    # Estimates of the arm, which command nothing.
    "arm_ekf": {
        *("friction_error", "load_error", "torque_memory", "bristle_noise", "gate", "effort_noise"),
        *("feedforward_share", "smoothing_speed", "payload_share", "support_lag", "low_support", "hold_time"),
        *("heat_deviations", "hot_margin"),
    },
    # What of a recording is kept.
    "identification": {"max_bag_size", "pose_topic"},
    # The faults of the simulated robot are there to be set.
    "mock_youbot": {"fault"},
    "stop_base": set(),
    "check_driver": set(),
}


def parameter_docs() -> ModuleType:
    spec = importlib.util.spec_from_file_location("parameter_docs", ROOT / "scripts" / "parameter_docs.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_list_has_every_node_with_parameters() -> None:
    assert set(HARMLESS) == set(parameter_docs().NODES)


@pytest.mark.parametrize("node", HARMLESS)
def test_a_parameter_changes_while_its_node_runs_only_if_no_promise_rests_on_it(node: str) -> None:
    table = importlib.import_module(f"youbot_dynamics.nodes.{node}").TABLE
    assert {parameter.name for parameter in table if not parameter.read_only} == HARMLESS[node]


@pytest.mark.parametrize(
    ("node", "name"),
    [("base_controller", "command_timeout"), ("trajectory_tracker", "odom_timeout"), ("stop_base", "silence")],
)
def test_no_file_makes_the_base_go_on_for_more_than_half_a_second(node: str, name: str) -> None:
    table = importlib.import_module(f"youbot_dynamics.nodes.{node}").TABLE
    (parameter,) = (parameter for parameter in table if parameter.name == name)
    assert parameter.high == 0.5 and parameter.read_only
