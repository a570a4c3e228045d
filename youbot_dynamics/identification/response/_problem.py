"""Displacements of the simulated drives against the measured ones, as the model of a search."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from youbot_dynamics.arrays import Flags, Indices, Vector
from youbot_dynamics.compiled import compiled
from youbot_dynamics.dynamics.driven_base import STATE_SIZE, DrivenBase, follow
from youbot_dynamics.dynamics.mecanum_dynamics import MecanumDynamics
from youbot_dynamics.identification.least_squares import Model, slopes_of
from youbot_dynamics.identification.response._signals import (
    DriveSignals,
    displacements,
    lagged_positions,
    rolled_path,
    span_of,
)
from youbot_dynamics.identification.response._unknowns import (
    CENTRE,
    GAINS,
    HIGH,
    INNER,
    INTEGRAL,
    LAG,
    LOW,
    RATE,
    STEPS,
    TURN,
    priors,
)

_STEP = 4e-3  # time step of the model [s], twice that of a prediction; it changes estimates by a tenth of their error
ARMS = np.array([1.0, 1.0, 0.3])  # [1, 1, m] of the axes: the last converts yaw to a length
_LEAST_NOISE = 0.1  # smallest noise of an axis relative to the largest
_RESOLVED = 1e-5  # RMS residual [m] that no reading resolves: the noise is never taken to be smaller
_SETTLED = 5e-3  # distance of the best values, in standard errors, at which the search ends


@dataclass(frozen=True)
class Loops:
    """A kind of speed loops."""

    feed: float  # as in `DrivenBase`
    integral: bool  # PI or P
    loaded: bool = True  # whether friction and inertia disturb them
    lagged: bool = True  # whether they have a lag


# Wheels that follow their commands whatever the load, after a dead time alone or through a lag as well. The lag of the
# second is never 0, where it could not be told from a dead time.
DELAYED, LAGGED = Loops(1.0, False, loaded=False, lagged=False), Loops(1.0, False, loaded=False)


class Problem:
    """Displacements of model and readings, weighted by the noise of their axis, for the excited unknowns."""

    def __init__(self, drives: Sequence[DriveSignals], dynamics: MecanumDynamics, driven: Flags) -> None:
        self.drives = drives
        self.dynamics = dynamics
        self.driven = driven
        self.friction = (dynamics.wheel_coulomb, dynamics.roller_coulomb, dynamics.viscous_x, dynamics.viscous_y)
        self.centre = float(dynamics.centre_of_mass[0])
        x, y, yaw = driven.tolist()
        coulomb, turning = [True, (y or yaw) and np.any(dynamics.base.roller_gains)], [yaw and (x or y), yaw and y]
        # In the order of UNKNOWNS: dead times; lag and rate; Coulomb and viscous friction; turn and centre; gains.
        self.free = np.flatnonzero([x, y, yaw, True, True, *coulomb, x, y, *turning, x, y, yaw, True])
        self.spans = [span_of(drive) for drive in drives]
        self.moved = [displacements(drive.poses, span) for drive, span in zip(drives, self.spans, strict=True)]
        self.known = [drive.commands_known(span) for drive, span in zip(drives, self.spans, strict=True)]
        self.readings = max(1.0, float(sum(np.sum(known) for known in self.known)))
        self.span = float(np.mean(self.spans))
        # [m, m, rad] scale of the residuals; infinite for an axis that was not driven
        self.scale = np.where(driven, 1.0 / ARMS, np.inf)

    def excited(self, kind: Loops) -> Indices:
        """Indices (f,) of the unknowns that the drives of a base with loops of this kind depend on."""
        none = ((INNER, kind.loaded), ((LAG,), kind.lagged), ((INTEGRAL,), kind.integral))
        return np.setdiff1d(self.free, [k for unknowns, has in none if not has for k in unknowns])

    def weigh(self, kind: Loops, x: Vector) -> None:
        """Set the weights of the axes from the residuals of a kind of loops at a first solution (15,)."""
        self.scale = np.ones(3)
        rms = np.sqrt(np.sum(self.stacked(kind, x).reshape(-1, 3) ** 2, axis=0) / self.readings)
        # An axis that hardly moved has little noise, but still has model errors.
        largest = float(np.max(rms[self.driven] * ARMS[self.driven]))
        scale = np.maximum(rms, _LEAST_NOISE * largest / ARMS) if largest > 0.0 else 1.0 / ARMS
        self.scale = np.where(self.driven, scale, np.inf)

    def stacked(self, kind: Loops, x: Vector) -> Vector:
        """Measured minus modelled displacements (r,) of all drives, in the body frame, over the scale of their axis."""
        constants = base_of(x, kind, self.dynamics).constants
        parts = []
        for drive, known, moved in zip(self.drives, self.known, self.moved, strict=True):
            poses, residual = np.zeros((len(drive.stamps), 3)), np.empty_like(moved)
            twists = np.ascontiguousarray(drive.twists * x[GAINS])
            if kind.loaded:
                sent, stamps = drive.sent.copy(), drive.stamps.copy()  # `follow` is compiled for arrays of one kind
                begin, end, state = float(sent[0]), float(stamps[-1]) + _STEP, np.zeros(STATE_SIZE)
                follow(constants, state, begin, end, _STEP, sent, twists, stamps, poses)
            else:
                poses = rolled_path(lagged_positions(drive, twists, x[:3], float(x[LAG])))
            _write_residual(moved, poses, known, self.scale, residual)
            parts.append(residual.ravel())
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def squares(self, residual: Vector) -> Vector:
        """Sums (3,) of the squared residuals of x, y, yaw [m2, m2, rad2], 0 for an axis that was not driven."""
        sums, driven = np.zeros(3), self.driven
        sums[driven] = np.sum(residual.reshape(-1, 3)[:, driven] ** 2, axis=0) * self.scale[driven] ** 2
        return sums

    def noise(self, misfit: float) -> float:
        """Variance of independent residuals [1] for a sum of squared residuals; never less than readings resolve."""
        resolved = self.readings * float(np.sum((_RESOLVED / ARMS / self.scale) ** 2))
        return self.span * max(misfit, resolved) / (3.0 * self.readings)

    def slopes(self, kind: Loops, x: Vector, residual: Vector, unknowns: Indices) -> Vector:
        """Slopes (r, f) of a residual (r,) over some unknowns, at values (15,)."""
        steps = np.zeros(len(x))
        steps[unknowns] = STEPS[unknowns]
        return slopes_of(partial(self.stacked, kind), x, steps, residual, HIGH)

    def model(self, kind: Loops, worst: float = math.inf) -> Model:
        """A kind of loops for `search_costly`.

        It is hopeless where the sum of the logarithms of `squares` will hardly fall below `worst`.
        """

        def hopeless(residual: Vector, remaining: float) -> bool:
            squares = self.squares(residual)[self.driven] * remaining
            return bool(np.sum(np.log(np.maximum(squares, 1e-300))) > worst)

        return Model(
            partial(self.stacked, kind),
            partial(self.slopes, kind),
            LOW,
            HIGH,
            self.noise,
            _SETTLED,
            lambda x: priors(x, self.centre),
            hopeless,
        )


@compiled
def _write_residual(moved: Vector, poses: Vector, known: Vector, scale: Vector, residual: Vector) -> None:
    """Write measured displacements (k, 3) minus those between poses (k + span, 3), where known, over their scale."""
    span = len(poses) - len(moved)
    for k in range(len(moved)):
        x, y = poses[k + span, 0] - poses[k, 0], poses[k + span, 1] - poses[k, 1]
        c, s = np.cos(poses[k, 2]), np.sin(poses[k, 2])
        residual[k, 0] = (moved[k, 0] - (c * x + s * y)) * known[k] / scale[0]
        residual[k, 1] = (moved[k, 1] - (c * y - s * x)) * known[k] / scale[1]
        residual[k, 2] = (moved[k, 2] - (poses[k + span, 2] - poses[k, 2])) * known[k] / scale[2]


def base_of(x: Vector, kind: Loops, dynamics: MecanumDynamics) -> DrivenBase:
    """Model with the values (15,)."""
    adjusted = replace(
        dynamics,
        wheel_coulomb=x[5],
        roller_coulomb=x[6],
        viscous_x=x[7],
        viscous_y=x[8],
        centre_of_mass=(float(x[CENTRE]), dynamics.centre_of_mass[1]),
    )
    return DrivenBase(adjusted, x[:3], float(x[LAG]), float(x[RATE]), float(x[TURN]), float(x[INTEGRAL]), kind.feed)
