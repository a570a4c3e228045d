"""Geometry of a base together with the phases of its rollers: each disturbs the fit of the other (system 31).

Mean rows leave the ripple of the rollers in the poses, which bends radii, size and lateral factor by a few parts in a
thousand. Once phases are found, the ripple is taken out of the wheel angles: each step becomes the turn that wheels
with the mean rows would have made on the same way. The geometry is then fitted again, and the phases with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from youbot_dynamics.arrays import Vector
from youbot_dynamics.errors import YoubotDynamicsError
from youbot_dynamics.identification.base.calibration_poses import CalibrationSignals
from youbot_dynamics.identification.base.roller_phase_fit import RollerPhaseFit, fit_roller_phases
from youbot_dynamics.identification.calibration import Calibration, calibrate
from youbot_dynamics.kinematics.roller_phase import RollingWheels

_LONGEST = 300.0  # [s] of a recording in which phases are looked for


@dataclass(frozen=True, eq=False)
class RollerCalibration:
    """Geometry and phases.

    Args:
        calibration: the geometry.
        phases: of the rollers at the counts of the newest recording; None where they could not be asked for.
        reason: why they could not, "" where they were.
    """

    calibration: Calibration
    phases: RollerPhaseFit | None
    reason: str = ""


def calibrate_with_rollers(recordings: Sequence[CalibrationSignals], wheels: RollingWheels) -> RollerCalibration:
    """Calibrate a base, and find where its rollers stand.

    Phases hang on the driver's count of the wheels, which may begin anew with each recording: they are looked for in
    every one, and those of the newest are told.

    Args:
        recordings: of one robot, in the order of time.
        wheels: as configured: base, number of rollers and depth; phases do not matter.

    Raises:
        InputError: as `calibrate`.
    """
    found = calibrate(recordings, wheels.base)
    fits, reason = _phases(recordings, found, wheels)
    if not any(fit is not None and fit.identified for fit in fits):
        return RollerCalibration(found, fits[-1], reason)
    smooth = [
        signals if fit is None or not fit.identified else without_ripple(signals, fit.wheels)
        for signals, fit in zip(recordings, fits, strict=True)
    ]
    again = calibrate(smooth, wheels.base)
    fits, reason = _phases(recordings, again, wheels)
    return RollerCalibration(again, fits[-1], reason)


def without_ripple(signals: CalibrationSignals, wheels: RollingWheels) -> CalibrationSignals:
    """Signals with the wheel angles that the mean rows would have had on the same way, slip kept.

    Args:
        signals: of a recording.
        wheels: with phases that are known.
    """
    angles = signals.wheel_angles.copy()
    for k in range(1, len(angles)):
        rolled = wheels.roll(signals.wheel_angles[k - 1], signals.wheel_angles[k])
        angles[k] = angles[k - 1] + wheels.base.wheel_speeds(rolled.displacement) + rolled.residual
    return replace(signals, wheel_angles=angles)


def _phases(
    recordings: Sequence[CalibrationSignals], found: Calibration, wheels: RollingWheels
) -> tuple[list[RollerPhaseFit | None], str]:
    """Phases in each recording, None where they could not be asked for, and why not in the newest."""
    fits: list[RollerPhaseFit | None] = []
    reason = ""
    for signals, offset in zip(recordings, found.offsets.tolist(), strict=True):
        try:
            fits.append(_fit(signals, offset, found, wheels))
            reason = ""
        except YoubotDynamicsError as problem:
            fits.append(None)
            reason = str(problem)
    return fits, reason


def _fit(signals: CalibrationSignals, offset: float, found: Calibration, wheels: RollingWheels) -> RollerPhaseFit:
    """Phases of one recording, by the poses of the base that its tracked body tells."""
    recent = signals.wheel_time >= signals.wheel_time[-1] - _LONGEST
    rolling = RollingWheels(found.base, wheels.rollers, wheels.depth)
    poses = _of_base(signals.poses, found.sensor)
    times = signals.wheel_time[recent]
    return fit_roller_phases(times, signals.wheel_angles[recent], signals.pose_time - offset, poses, rolling)


def _of_base(poses: Vector, sensor: Vector) -> Vector:
    """Poses (k, 3) of the base, the tracked body standing at (3,) on it; the yaw goes on over whole turns."""
    moved: Vector = poses.copy()
    moved[:, 2] = np.unwrap(poses[:, 2]) - sensor[2]
    c, s = np.cos(moved[:, 2]), np.sin(moved[:, 2])
    moved[:, 0] -= c * sensor[0] - s * sensor[1]
    moved[:, 1] -= s * sensor[0] + c * sensor[1]
    return moved
