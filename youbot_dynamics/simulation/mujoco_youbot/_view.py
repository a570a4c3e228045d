"""See a robot that runs in MuJoCo: a window, or a picture where there is no screen."""

from __future__ import annotations

import os
import sys
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from youbot_dynamics.errors import ResourceError, missing_package

_OLDEST = (3, 12)  # before, its dcmotor had another controller and other parameters


def engine() -> Any:
    """The module `mujoco`.

    Raises:
        ResourceError: it is not installed, too old or cannot be imported, with what helps.
    """
    try:
        import mujoco
    except ImportError:
        raise missing_package("mujoco", "package mujoco", "MuJoCo, the contact engine of this plant") from None
    except (AttributeError, OSError, RuntimeError) as problem:  # it looks for OpenGL when it is imported
        raise ResourceError(
            "package mujoco",
            got=f"an import that fails: {problem}",
            expected="OpenGL as the environment variable MUJOCO_GL names it",
            remedy="unset MUJOCO_GL, or install what it names (osmesa: libosmesa6; egl: libegl1)",
        ) from None
    if tuple(int(part) for part in mujoco.__version__.split(".")[:2]) < _OLDEST:
        raise ResourceError(
            "package mujoco",
            got=f"version {mujoco.__version__}",
            expected=f"{_OLDEST[0]}.{_OLDEST[1]} or later",
            remedy="pip install --upgrade 'youbot_dynamics[sim]'",
        )
    return mujoco


_WITHOUT_SCREEN = ("egl", "osmesa", "cgl", "wgl")  # of MUJOCO_GL


def open_window(model: Any, data: Any) -> Any:
    """MuJoCo's viewer in a window of its own; call `sync()` on what is returned after each piece of motion.

    Raises:
        ResourceError: MuJoCo is not installed, or there is no screen.
    """
    engine()
    # Without a screen MuJoCo's viewer ends the whole process.
    if not _has_screen():
        raise ResourceError(
            "window of MuJoCo", got="no screen", expected="a desktop (DISPLAY)", remedy="run it without the viewer"
        )
    from mujoco import viewer

    try:
        return viewer.launch_passive(model, data, show_left_ui=False, show_right_ui=False)
    except RuntimeError as problem:  # macOS wants its own program for it
        raise ResourceError("window of MuJoCo", got=str(problem), expected="a viewer") from None


def picture(model: Any, data: Any, width: int = 960, height: int = 640) -> NDArray[np.uint8]:
    """Picture (height, width, 3) of the robot, red green blue 0 to 255, from the front left.

    Raises:
        ResourceError: MuJoCo is not installed, or there is neither a screen nor OpenGL without one: environment
            MUJOCO_GL=egl or osmesa, set before MuJoCo is imported.
    """
    mujoco = engine()
    if os.environ.get("MUJOCO_GL", "").lower() not in _WITHOUT_SCREEN and not _has_screen():
        raise _no_picture("no screen")
    model.vis.global_.offwidth = max(width, model.vis.global_.offwidth)
    model.vis.global_.offheight = max(height, model.vis.global_.offheight)
    camera = mujoco.MjvCamera()
    camera.lookat[:] = [data.qpos[0] + 0.05, data.qpos[1], 0.2]
    camera.distance, camera.azimuth, camera.elevation = 1.1, 225.0, -16.0
    try:
        with mujoco.Renderer(model, height, width) as renderer:
            renderer.update_scene(data, camera)
            pixels: NDArray[np.uint8] = renderer.render()
    except (mujoco.FatalError, ImportError, RuntimeError) as problem:
        raise _no_picture(str(problem)) from None
    return pixels


def _no_picture(got: str) -> ResourceError:
    return ResourceError(
        "picture by MuJoCo",
        got=got,
        expected="OpenGL, on a screen or without one",
        remedy="set MUJOCO_GL=egl (or osmesa, with libosmesa6) in the environment before the start",
    )


def _has_screen() -> bool:
    """Whether windows can be opened, by a library that, unlike the viewer, survives that they cannot."""
    if not sys.platform.startswith("linux"):
        return True
    try:
        import glfw
    except ImportError:
        return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        works = bool(glfw.init())
        if works:
            glfw.terminate()
    return works
