"""All exports of an identification, each written only if there is something in it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from youbot_dynamics import __version__
from youbot_dynamics.identification.arm.arm_inertia import ConsistentInertia
from youbot_dynamics.identification.export.mujoco import write_mujoco
from youbot_dynamics.identification.export.nav2 import write_nav2
from youbot_dynamics.identification.export.urdf import write_urdf
from youbot_dynamics.identification.finding import BODIES
from youbot_dynamics.identification.result import SCHEMA_VERSION, Result
from youbot_dynamics.robot import Robot

FOLDER = "exports"


def export_all(folder: Path, result: Result, robot: Robot, products: Mapping[str, object]) -> tuple[Path, ...]:
    """Write exports/nav2.yaml, youbot.urdf and motors.xml into an existing folder, each whole or not at all.

    Only what was identified is in them. A file of an earlier identification in this folder, for which there is nothing
    now, goes: it would not belong to the result beside it.

    Args:
        folder: that of result.yaml.
        result: what was identified.
        robot: the robot as it was read, before the result was applied to it.
        products: of the stages, by name; "arm_bodies" is a ConsistentInertia.

    Returns:
        Paths of the files that were written.

    Raises:
        OSError: the folder cannot be written.
    """
    place = folder / FOLDER
    place.mkdir(exist_ok=True)
    head = provenance(result)
    bodies = products.get(BODIES)
    arm = bodies if isinstance(bodies, ConsistentInertia) else None
    nav2, urdf, motors = place / "nav2.yaml", place / "youbot.urdf", place / "motors.xml"
    written = {
        nav2: write_nav2(nav2, result, head),
        urdf: write_urdf(urdf, result, robot, arm, head),
        motors: write_mujoco(motors, result, robot, head),
    }
    for path, is_there in written.items():
        if not is_there:
            path.unlink(missing_ok=True)
    if not any(written.values()) and not any(place.iterdir()):
        place.rmdir()
    return tuple(path for path, is_there in written.items() if is_there)


def provenance(result: Result) -> list[str]:
    """Lines that say where a file comes from: tool, robot and recordings."""
    robot_id = "".join(c if c.isprintable() else " " for c in result.robot_id)
    count = len(result.sources)
    recordings = f"{count} recording{'s' if count != 1 else ''}"
    return [
        f"Identified by youbot_dynamics {__version__} (schema {SCHEMA_VERSION}) of robot '{robot_id}', {recordings};",
        "intervals, verdicts, ranges and hashes of the recordings: result.json beside this folder.",
    ]
