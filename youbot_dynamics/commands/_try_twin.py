"""`youbot try`: one drive of the digital twin in a minute with its delay live, then the hidden truth."""

from __future__ import annotations

import os
import time
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING

from rich.live import Live

from youbot_dynamics.commands._demo import (
    IDENTIFICATION,
    OPEN_LOOP_SETTINGS,
    Begin,
    drive,
    folder_of_demo,
    print_truth,
    private_network,
    same_twin,
    true_values,
    twin,
)
from youbot_dynamics.commands._terminal import CONSOLE, announce, steps
from youbot_dynamics.commands._warm_up import warm_up
from youbot_dynamics.identification.pipeline import identify
from youbot_dynamics.identification.reading import Options
from youbot_dynamics.report import write_outputs
from youbot_dynamics.robot import load_robot

if TYPE_CHECKING:
    from youbot_dynamics.nodes.watch import Watch

_COUNT = 3  # countdown [s]


def try_twin(out: Path, seed: int) -> int:
    """Count down, drive the twin of a seed once, show its delay live, identify it, and show the truth.

    Raises:
        YoubotDynamicsError: a step failed; the message names the log to read.
    """
    began = time.monotonic()
    with folder_of_demo(out, seed):
        warm_up()
        environment = private_network()
        os.environ.update(environment)
        live: dict[str, str] = {}
        announce(f"a simulated robot, twin {seed}: its delays, wheels and friction are hidden from the identification")
        with twin(out, environment, OPEN_LOOP_SETTINGS, None):
            drive(out, environment, IDENTIFICATION, "identification", follow=lambda begin: _follow(begin, live))
        title = f"youbot try: digital twin, seed {seed} (simulated, not a robot)"
        with steps("youbot try") as step:
            step("identifying delays and geometry from the recording")
            found = identify([out / "identification"], load_robot(), Options(), only=("calibration", "delay"))
            truth = true_values(seed, out / "identification")
            write_outputs(out, found, (), title, truth, same_twin(out))
    for axis, text in live.items():
        true = 1e3 * truth[f"robot.base.delay.effective_{axis}"]
        announce(f"live estimate at the end: delay of {axis} {text}; truth over the whole drive: {true:.0f} ms")
    print_truth(found.result, truth, seed)
    announce(f"took {time.monotonic() - began:.0f} s; next: `youbot demo` drives again with compensation")
    _open(out / "report.html")
    return 0 if found.result.complete else 3


def _follow(begin: Begin, live: dict[str, str]) -> int:
    """Count down, start the player, and show the delay while it drives; `live` receives the last values."""
    from youbot_dynamics.nodes.watch import AXES, live_delays, watch

    with Live(console=CONSOLE, transient=True) as view:
        for left in range(_COUNT, 0, -1):
            view.update(f"drive starts in {left} s")
            time.sleep(1.0)
        player = begin()

        def show(node: Watch) -> None:
            live.update(live_delays(node.statuses))
            x, y, yaw = node.pose
            known = [f"delay of {axis} {live.get(axis, 'not known yet')}" for axis in AXES]
            view.update("\n".join([f"driving; pose {x:.2f} m, {y:.2f} m, {yaw:.2f} rad", *known]))

        watch(lambda: player.poll() is not None, show)
    return player.wait()


def _open(page: Path) -> None:
    """Open a page in a browser if there is a display; otherwise print its path."""
    display = any(name in os.environ for name in ("DISPLAY", "WAYLAND_DISPLAY"))
    if not (display and webbrowser.open(page.resolve().as_uri())):
        announce(f"open {page} in a browser")
