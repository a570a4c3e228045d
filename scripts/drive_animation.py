"""The animated picture of the README: one simulated robot drives a program open loop, is identified, and drives again.

    MUJOCO_GL=egl python scripts/drive_animation.py --out docs/img/drive.webp     # or MUJOCO_GL=osmesa

The robot is the one of contact physics (`--robot mujoco`), with hidden delays, friction and geometry. The open-loop
drive is recorded as a bag, `youbot_dynamics.identify` fits it, and the second drive uses what was found. The script
prints the delays that were found and both errors; the picture shows both drives, with the desired pose as an outline.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageDraw, ImageFont

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import youbot_dynamics as yd  # noqa: E402
from youbot_dynamics.control.trajectory import Trajectory, read_program  # noqa: E402
from youbot_dynamics.resources import program_path  # noqa: E402
from youbot_dynamics.simulation.mujoco_youbot import MujocoYoubot, engine  # noqa: E402

PANEL = (440, 330)  # [px] of each of the two views
HEADER = 34  # [px]
PER_SECOND = 10  # frames of the picture
SPEED = 2.0  # how much faster than the robot the picture runs
FRAME = (0.34, 0.24)  # [m] half length and half width of the outline around the desired pose, wider than the body
DESIRED, DRIVEN = (0.0, 0.6, 0.2, 1.0), (0.1, 0.3, 0.9, 1.0)
WHEELS = ("wheel_joint_fl", "wheel_joint_fr", "wheel_joint_bl", "wheel_joint_br")


@dataclass(frozen=True, eq=False)
class Frames:
    """A drive at the times of the frames.

    Args:
        desired: (n, 3) poses [m, m, rad].
        pose: (n, 3) true poses.
        wheels: (n, 4) angles [rad].
        rmse: root mean square distance of the true position from the desired one over the program [m].
    """

    desired: np.ndarray
    pose: np.ndarray
    wheels: np.ndarray
    rmse: float


def frames_of(run: Any, path: Trajectory) -> Frames:
    """Sample a drive for the picture; its error counts every reading."""
    during = (run.reading_time >= run.start) & (run.reading_time <= run.start + path.duration)
    off = run.true_pose[during] - path.path(run.reading_time[during] - run.start)
    times = np.arange(0.0, path.duration, SPEED / PER_SECOND)

    def sampled(values: np.ndarray) -> np.ndarray:
        return np.column_stack([np.interp(run.start + times, run.reading_time, column) for column in values.T])

    rmse = float(np.sqrt(np.mean(np.sum(off[:, :2] ** 2, axis=1))))
    return Frames(path.path(times), sampled(run.true_pose), sampled(run.wheel_angle), rmse)


def drives(seed: int, path: Trajectory) -> tuple[Frames, Frames, MujocoYoubot]:
    """Drive open loop, identify that drive, drive again: both drives, and the robot to draw."""
    sheets = yd.load_robot()

    def robot() -> MujocoYoubot:
        return MujocoYoubot(yd.load_truth(seed), yd.load_arm_truth(seed), sheets, seed)

    before = yd.drive(path, sheets, robot(), seed, yd.TrackerSettings(feedback=False))
    with tempfile.TemporaryDirectory() as folder:
        yd.write_bag(before, sheets, Path(folder) / "drive", feedback=False)
        found = yd.identify([Path(folder) / "drive"], sheets, yd.Options()).result
    known = found.applied_to(sheets)
    print("effective delays [ms]:", *(f"{1e3 * delay:.1f}" for delay in known.base.delay.effective()))
    last = robot()
    after = yd.drive(path, known, last, seed)
    return frames_of(before, path), frames_of(after, path), last


def line(scene: Any, start: np.ndarray, end: np.ndarray, colour: tuple[float, ...], width: float) -> None:
    """Add a line between two points on the floor to a scene of MuJoCo."""
    mujoco = engine()
    geom = scene.geoms[scene.ngeom]
    mujoco.mjv_initGeom(
        geom, mujoco.mjtGeom.mjGEOM_CAPSULE, np.zeros(3), np.zeros(3), np.zeros(9), np.array(colour, dtype=np.float32)
    )
    ends = [np.array([*point[:2], 0.004]) for point in (start, end)]
    mujoco.mjv_connector(geom, mujoco.mjtGeom.mjGEOM_CAPSULE, width, *ends)
    scene.ngeom += 1


def outline(pose: np.ndarray) -> np.ndarray:
    """Corners (5, 2) of a frame around the desired pose, the first one again at the end."""
    turn = np.array([[np.cos(pose[2]), -np.sin(pose[2])], [np.sin(pose[2]), np.cos(pose[2])]])
    corners = np.array([[1, 1], [-1, 1], [-1, -1], [1, -1], [1, 1]]) * FRAME
    return pose[:2] + corners @ turn.T


def view(robot: MujocoYoubot, renderer: Any, drive: Frames, k: int) -> Image.Image:
    """The robot at one frame, from above and behind, with both paths so far and the desired outline."""
    mujoco = engine()
    model, data = robot.plant.model, robot.plant.data
    x, y, yaw = drive.pose[k]
    data.qpos[:2] = x, y
    data.qpos[3:7] = np.cos(yaw / 2.0), 0.0, 0.0, np.sin(yaw / 2.0)
    for name, angle in zip(WHEELS, drive.wheels[k], strict=True):
        data.qpos[model.joint(name).qposadr[0]] = angle
    mujoco.mj_forward(model, data)
    camera = mujoco.MjvCamera()
    camera.lookat[:] = [*drive.desired[k, :2], 0.05]
    camera.distance, camera.azimuth, camera.elevation = 1.45, 60.0, -62.0
    renderer.update_scene(data, camera)
    corners = outline(drive.desired[k])
    for start, end in zip(corners[:-1], corners[1:], strict=True):
        line(renderer.scene, start, end, DESIRED, 0.006)
    for poses, colour in ((drive.desired, DESIRED), (drive.pose, DRIVEN)):
        for start, end in zip(poses[:k], poses[1 : k + 1], strict=True):
            line(renderer.scene, start, end, colour, 0.004)
    return Image.fromarray(renderer.render())


def picture(views: list[Image.Image], both: list[Frames], k: int) -> Image.Image:
    """Two views beside each other under their headings."""
    width, height = PANEL
    sheet = Image.new("RGB", (2 * width, height + 2 * HEADER), "white")
    draw = ImageDraw.Draw(sheet)
    headings = ("open loop", "identified, compensated, stabilised")
    for n, (image, drive, heading) in enumerate(zip(views, both, headings, strict=True)):
        sheet.paste(image, (n * width, HEADER))
        now = 1e3 * float(np.hypot(*(drive.pose[k] - drive.desired[k])[:2]))
        left = n * width + 12
        draw.text((left, 6), heading, "black", ImageFont.load_default(18))
        text = f"{now:.1f} mm off now, {1e3 * drive.rmse:.1f} mm over the drive (RMSE)"
        draw.text((left, HEADER + height + 8), text, "black", ImageFont.load_default(16))
    return sheet


def main() -> int:
    """Drive, render, write."""
    parser = argparse.ArgumentParser(description="Draw the animated picture of the README.")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "img" / "drive.webp", help="file to write (WebP)")
    parser.add_argument("--seed", type=int, default=1, help="random seed of the robot's hidden truth")
    parser.add_argument("--program", default="combined", help="translation, rotation or combined")
    parser.add_argument("--stride", type=int, default=1, help="take one frame of so many, for a quick look")
    chosen = parser.parse_args()
    path = read_program(program_path(chosen.program), 0.02).trajectory()
    before, after, robot = drives(chosen.seed, path)
    print(
        f"position error (RMSE): {1e3 * before.rmse:.2f} mm open loop, {1e3 * after.rmse:.2f} mm identified and tracked"
    )
    both = [before, after]
    model = robot.plant.model
    model.vis.global_.offwidth, model.vis.global_.offheight = PANEL
    with engine().Renderer(model, PANEL[1], PANEL[0]) as renderer:
        images = [
            picture([view(robot, renderer, drive, k) for drive in both], both, k)
            for k in range(0, len(before.pose), chosen.stride)
        ]
    images[0].save(
        chosen.out,
        save_all=True,
        append_images=images[1:],
        duration=round(1000 / PER_SECOND) * chosen.stride,
        loop=0,
        quality=45,
        method=4,
    )
    print(f"{chosen.out}: {chosen.out.stat().st_size / 1e6:.2f} MB, {len(images)} frames")
    return 0


if __name__ == "__main__":
    sys.exit(main())
