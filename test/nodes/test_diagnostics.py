"""Who is late on /diagnostics: a process that other work held up, and not one that has waited on purpose; no nodes."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest

pytest.importorskip("rclpy")

from builtin_interfaces.msg import Time  # noqa: E402
from diagnostic_msgs.msg import DiagnosticArray  # noqa: E402

from youbot_dynamics.nodes import _diagnostics, stop_base  # noqa: E402
from youbot_dynamics.nodes._diagnostics import OK, Diagnostics, Status  # noqa: E402


@pytest.mark.parametrize(("pause", "excused", "blamed"), [(1.0, False, False), (4.0, False, True), (4.0, True, False)])
def test_a_callback_that_comes_late_is_told_unless_the_node_waited_itself(pause, excused, blamed, monkeypatch):
    clock = SimpleNamespace(now=time.monotonic())
    published: list[DiagnosticArray] = []
    timer = SimpleNamespace(time_until_next_call=lambda: 1_000_000_000)  # of the period: it came in time
    node = SimpleNamespace(
        create_publisher=lambda *arguments: SimpleNamespace(publish=published.append),
        create_timer=lambda *arguments, **more: timer,
        get_clock=lambda: SimpleNamespace(now=lambda: SimpleNamespace(to_msg=Time)),
        get_fully_qualified_name=lambda: "/stop_base",
        get_parameter=lambda name: SimpleNamespace(value={"robot.robot_id": "homemade"}[name]),
    )
    monkeypatch.setattr(_diagnostics, "time", SimpleNamespace(monotonic=lambda: clock.now))
    diagnostics = Diagnostics(node, lambda: {"guard": Status(OK, "stands by")})
    diagnostics._on_timer()
    clock.now += pause
    if excused:
        diagnostics.excuse()
    diagnostics._on_timer()
    names = ["/stop_base: guard", *["/stop_base: load of this process"][: int(blamed)]]
    assert [status.name for status in published[-1].status] == names
    assert {status.hardware_id for status in published[-1].status} == {"homemade"}


def test_a_guard_that_has_stopped_the_base_excuses_the_time_that_took(monkeypatch):
    done: list[str] = []

    class Guard:
        """Of a controller that hangs while the base moves."""

        moving, goodbye, driving = True, False, False

        def __init__(self, node: object) -> None:
            self.notifications = dict
            self.heartbeat_age = lambda: float("inf")

    class Flag:
        """Set after two passes."""

        looks = 0

        @property
        def set(self) -> bool:
            self.looks += 1
            return self.looks > 2

    logger = SimpleNamespace(info=lambda text: None, error=lambda text: None)
    node = SimpleNamespace(
        _config={"standby": True, "silence": 0.45, "wait": 4.0},
        _executor=SimpleNamespace(spin_once=lambda timeout: None),
        _diagnostics=SimpleNamespace(excuse=lambda: done.append("excused")),
        _take=lambda notifications: None,
        _finish=lambda wait: done.append(f"stopped in {wait:g} s"),
        get_logger=lambda: logger,
    )
    monkeypatch.setattr(stop_base, "GuardSocket", Guard)
    monkeypatch.setattr(stop_base, "raise_priority", lambda above: "")
    assert stop_base.StopBase.execute(node, Flag())
    assert done == ["stopped in 4 s", "excused"]
