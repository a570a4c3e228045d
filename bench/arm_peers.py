"""The youBot's arm as Pinocchio and MuJoCo see it, each from the URDF file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

Array = NDArray[np.float64]

ARM_JOINTS = tuple(f"arm_joint_{k}" for k in range(1, 6))


def pinocchio_arm(urdf: Path, rotor_inertias: Array) -> Any:
    """Pinocchio model of the arm, all other joints locked at 0; rotor_inertias (5,) [kg m2]."""
    whole = pin.buildModelFromUrdf(str(urdf))
    locked = [whole.getJointId(name) for name in whole.names[1:] if name not in ARM_JOINTS]
    arm = pin.buildReducedModel(whole, locked, pin.neutral(whole))
    arm.armature = np.array(rotor_inertias)
    return arm


def mujoco_arm(urdf: Path, rotor_inertias: Array) -> Any:
    """MuJoCo model of the arm without shapes, contacts and joint stops; rotor_inertias (5,) [kg m2]."""
    spec = mujoco.MjSpec.from_string(urdf.read_text(encoding="utf-8"))
    for joint in list(spec.joints):
        if joint.name in ARM_JOINTS:
            joint.armature = rotor_inertias[ARM_JOINTS.index(joint.name)]
        else:
            spec.delete(joint)
    for geom in list(spec.geoms):
        spec.delete(geom)
    spec.option.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT | mujoco.mjtDisableBit.mjDSBL_LIMIT
    return spec.compile()
