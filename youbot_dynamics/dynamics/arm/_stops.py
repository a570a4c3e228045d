"""End stops of joints: stiff springs with damping that never pull and never supply energy.

With the signed depth s of a joint beyond its limit and U = stiffness s^2 / 2, the mean torque over a step from q to q+
is

    torque = -(U(q+) - U(q)) / (q+ - q) - stiffness damping |s|_mean (q+ - q) / dt

The first term is the discrete gradient of U: its work over the step equals the change of U to rounding, for any
stiffness and step. The second term only dissipates; it grows with the depth, so the torque has no jump at the contact.
Where the sum would pull the joint into the stop it is zero.
"""

from __future__ import annotations

from youbot_dynamics.arrays import Vector
from youbot_dynamics.compiled import compiled

# Columns of the constants of stops (n, 4).
LOWER, UPPER, STIFFNESS, DAMPING = range(4)


@compiled
def depth_beyond(position: float, stop: Vector) -> float:
    """Signed depth [rad] of a position [rad] beyond the limits of `stop` (4,), 0 between them."""
    lower: float = stop[LOWER]
    upper: float = stop[UPPER]
    if position > upper:
        return position - upper
    return position - lower if position < lower else 0.0


@compiled
def stop_torque(position: float, moved: float, dt: float, stop: Vector) -> tuple[float, float]:
    """Mean torque [N m] of a stop over a step and its derivative by the speed at the end [N m s/rad].

    Args:
        position: at the start [rad].
        moved: displacement in the step [rad]: dt times the mean of both speeds.
        dt: [s].
        stop: (4,) lower and upper limit [rad], stiffness [N m/rad], damping [s/rad].
    """
    there = position + moved
    if min(position, there) >= stop[LOWER] and max(position, there) <= stop[UPPER]:
        return 0.0, 0.0
    before, after = depth_beyond(position, stop), depth_beyond(there, stop)
    stiffness = stop[STIFFNESS]
    if (before > 0.0 and after > 0.0) or (before < 0.0 and after < 0.0):
        torque, slope = -0.5 * stiffness * (before + after), -0.5 * stiffness
    else:
        torque = -0.5 * stiffness * (after - before) * (after + before) / moved
        slope = -(stiffness * after + torque) / moved
    damping = stiffness * stop[DAMPING]
    depth = 0.5 * (abs(before) + abs(after))
    torque -= damping * depth * moved / dt
    deeper = 0.0 if after == 0.0 else (0.5 if after > 0.0 else -0.5)
    slope -= damping * (deeper * moved + depth) / dt
    if torque * (before + after) > 0.0:
        return 0.0, 0.0
    # The position at the end changes with the speed there by dt / 2.
    return torque, 0.5 * dt * slope


@compiled
def stop_energy(position: float, stop: Vector) -> float:
    """Energy [J] in the spring of `stop` (4,) at a position [rad]."""
    depth = depth_beyond(position, stop)
    stiffness: float = stop[STIFFNESS]
    return 0.5 * stiffness * depth * depth
