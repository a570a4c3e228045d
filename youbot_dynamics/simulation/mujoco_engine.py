"""The one door to MuJoCo, which is an optional package: found on first use."""

from __future__ import annotations

from typing import Any

from youbot_dynamics.errors import ResourceError

_OLDEST = (3, 12)  # before, its dcmotor had another controller and other parameters


def engine() -> Any:
    """The module `mujoco`.

    Raises:
        ResourceError: it is not installed, too old or cannot be imported, with what helps.
    """
    try:
        import mujoco
    except ImportError:
        raise ResourceError(
            "package mujoco",
            got="not installed",
            expected="MuJoCo, the contact engine of this plant",
            remedy="pip install 'youbot_dynamics[sim]'",
        ) from None
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
