"""Dead times of the base for Nav2's MPPI controller.

Its parameters model_delay_vx, model_delay_vy and model_delay_wz (controller server, plugin nav2_mppi_controller; Nav2
from mid-2026 on, navigation2 pull request 6154) are the times from a published command to its effect: predictions begin
with the commands of that time, which are on their way already. It moves the commands and does not low-pass them, so
these are dead times alone: a lag in them would be replayed as if the base stood still and then jumped.
"""

from __future__ import annotations

from pathlib import Path

from youbot_dynamics.identification.result import Result
from youbot_dynamics.parameter_file import write_parameters
from youbot_dynamics.parameters import Value

SECTION = "/**/controller_server"
PLUGIN = "FollowPath"
# Two stages look for dead times: the delay axis by axis, the response with friction taken into account.
_DELAYS = (("x", "vx"), ("y", "vy"), ("yaw", "wz"))
_GROUPS = ("robot.base.delay", "robot.base.response")


def nav2_parameters(result: Result) -> dict[str, Value]:
    """Parameters of the controller server, names with the plugin's; only of the dead times that were identified [s].

    Of two for one axis the surer one counts. One that is of use only as part of the whole response is not among them:
    Nav2 takes it without the rest.
    """
    errors = {one.name: one.estimate.standard_error for one in result.findings if one.identified}
    found = {name: value for name, value in result.parameters().items() if name in errors}
    delays: dict[str, Value] = {}
    for ours, theirs in _DELAYS:
        known = [name for group in _GROUPS if (name := f"{group}.dead_time_{ours}") in found]
        if known:
            delays[f"{PLUGIN}.model_delay_{theirs}"] = found[min(known, key=errors.__getitem__)]
    return delays


def write_nav2(path: Path, result: Result, head: list[str]) -> bool:
    """Write the parameter file; nothing where no dead time was identified.

    Args:
        path: of the file, in an existing folder.
        result: what was identified.
        head: lines for the head of the file.

    Returns:
        Whether there was anything to write.

    Raises:
        OSError: it cannot be written.
    """
    values = nav2_parameters(result)
    if not values:
        return False
    comments = [
        *head,
        "Dead times [s] of the base for Nav2's MPPI controller, which rounds them to its model_dt.",
        f"Load it after your own Nav2 parameters; replace {PLUGIN} if your controller plugin has another name.",
    ]
    write_parameters(path, SECTION, values, comments)
    return True
