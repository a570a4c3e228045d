"""Readings of a message taken into mean and covariance of the arm's filter: compiled code for `arm_ekf`."""

from __future__ import annotations

import math

from youbot_dynamics.arrays import Vector
from youbot_dynamics.compiled import compiled
from youbot_dynamics.estimation.arm_ekf_model import REACH, READING, TOLD
from youbot_dynamics.estimation.arm_ekf_start import wrapped
from youbot_dynamics.estimation.arm_process import BRISTLE, ERROR, JOINTS, POSITION, SPEED
from youbot_dynamics.estimation.kalman_step import correct_sparsely, even_out

# Places of what is kept of a message (18,): innovations (5) [rad], their variances (5) [rad2], refused readings of each
# joint (5), sum of squared innovations over variances of the readings taken in, their number, what became of it.
INNOVATION, VARIANCE, REFUSED, SQUARES, USED, FATE = 0, 5, 10, 15, 16, 17
READING_PLACES = 18


@compiled
def take_in(
    place: int,
    weight: float,
    surprise: float,
    variance: float,
    gate: float,
    covariance: Vector,
    size: int,
    correction: Vector,
    shift: Vector,
    gain: Vector,
) -> float:
    """Correct state and covariance by one reading, unless it is too far off.

    Args:
        place: of the state that is read.
        weight: by which the reading depends on the last state as well.
        surprise: reading less what the mean says before any of this message's corrections.
        variance: of the reading.
        gate: squared innovation over its variance from which a reading is refused.
        covariance: (m, m), changed.
        size: m.
        correction: (m,) of the mean by this message so far, changed.
        shift: (m,) room.
        gain: (m,) room.

    Returns:
        Squared innovation over its variance; negative where the reading was refused.
    """
    last = size - 1
    innovation = surprise - correction[place] - weight * correction[last]
    for i in range(size):
        shift[i] = covariance[place, i] + weight * covariance[last, i]
    total = shift[place] + weight * shift[last] + variance
    distance: float = innovation * innovation / total
    if not distance <= gate:
        return -1.0
    scale = 1.0 / total
    for i in range(size):
        gain[i] = shift[i] * scale
        correction[i] += gain[i] * innovation
    correct_sparsely(covariance, place, weight, last, variance, shift, gain)
    return distance


@compiled
def read_joints(
    joints: Vector,
    jitter: float,
    lag: float,
    gate: float,
    bristles: int,
    errors: int,
    mean: Vector,
    a: Vector,
    position: Vector,
    velocity: Vector,
    covariance: Vector,
    shift: Vector,
    gain: Vector,
    correction: Vector,
    reading: Vector,
) -> None:
    """Correct mean and covariance by a message of readings; a NaN is a reading that is missing.

    Readings of one message share the error j of its stamp: each is its value at another moment, q + v j. So j stands in
    the spare last row of the covariance while the readings are taken in one after the other. A speed reading lags: it
    is v less lag x acceleration of the last step.

    Args:
        joints: (9, 5) constants.
        jitter: standard deviation of the stamp [s].
        lag: of the speed readings [s].
        gate: squared innovation over its variance from which a reading is refused.
        bristles: first row of the bristles, 0 where they are not estimated.
        errors: first row of the torque errors, 0 where there are none.
        mean: (4, 5), changed.
        a: (5,) accelerations over the last step [rad/s2].
        position: (5,) readings [rad].
        velocity: (5,) readings [rad/s].
        covariance: (m + 1, m + 1), changed.
        shift: (m + 1,) room.
        gain: (m + 1,) room.
        correction: (m + 1,) room.
        reading: (18,) written, see INNOVATION.
    """
    size = len(shift) - 1
    for i in range(size + 1):
        covariance[i, size] = 0.0
        covariance[size, i] = 0.0
        correction[i] = 0.0
    covariance[size, size] = jitter * jitter
    total, count = 0.0, 0
    for i in range(JOINTS):
        reading[INNOVATION + i] = wrapped(position[i] - mean[POSITION, i])
        reading[VARIANCE + i] = covariance[i, i] + joints[READING, i] + (jitter * mean[SPEED, i]) ** 2
        reading[REFUSED + i] = 0.0
    for i in range(JOINTS):
        v, surprise = mean[SPEED, i], reading[INNOVATION + i]
        if not math.isnan(position[i]):
            distance = take_in(i, v, surprise, joints[READING, i], gate, covariance, size + 1, correction, shift, gain)
            if distance >= 0.0:
                total += distance
                count += 1
            else:
                reading[REFUSED + i] += 1.0
    for i in range(JOINTS):
        if not math.isnan(velocity[i]):
            late = lag * a[i]
            distance = take_in(
                JOINTS + i,
                a[i],
                velocity[i] - (mean[SPEED, i] - late),
                joints[TOLD, i] + 0.25 * late * late,
                gate,
                covariance,
                size + 1,
                correction,
                shift,
                gain,
            )
            if distance >= 0.0:
                total += distance
                count += 1
            else:
                reading[REFUSED + i] += 1.0
    even_out(covariance, size)
    for i in range(JOINTS):
        mean[POSITION, i] += correction[i]
        mean[SPEED, i] += correction[JOINTS + i]
        if bristles > 0:
            reach = joints[REACH, i]
            mean[BRISTLE, i] = min(max(mean[BRISTLE, i] + correction[bristles + i], -reach), reach)
        if errors > 0:
            mean[ERROR, i] += correction[errors + i]
    reading[SQUARES] = total
    reading[USED] = count
