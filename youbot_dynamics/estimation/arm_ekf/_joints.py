"""Start of a joint in the filter, and correction of the estimate by readings of the joints."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from youbot_dynamics.arrays import Vector
from youbot_dynamics.compiled import compiled
from youbot_dynamics.estimation.arm_ekf._model import (
    BRISTLE,
    ERROR,
    FRICTION_ERROR,
    LOAD_ERROR,
    POSITION,
    REACH,
    READING,
    SPEED,
    TOLD,
    Each,
    Rules,
)
from youbot_dynamics.estimation.ekf import correct_sparsely, even_out

# Outcome of a message: accepted, or refused because its stamp is before or equal to the last one's, or invalid.
TAKEN, LATE, REPEATED, UNSTAMPED = range(4)
# The filter counts those four (10,), and also missing efforts and positions, readings rejected by the gate, joints
# restarted after too many of those, starts of all joints, and steps without a solution.
NO_EFFORT, NO_POSITION, SHUT_OUT, JOINT_RESTARTS, STARTS, UNSOLVED = range(4, 10)
COUNTS = 10
# Rows of the filter's memory (6, n): accelerations of the last step, last efforts, refusals in a row, prior variance of
# the load part of the torque error [N2 m2]; and, for a joint that started with the last message and whose speed is not
# known yet, position [rad] and stamp [s] of that message, NaN for all others.
ACCELERATION, EFFORT, REFUSALS, LOAD_PART, FIRST, FIRST_STAMP = range(6)
# Elements of its clock (2,): stamp of the state [s], NaN before the start; stamp of the announced message.
LAST, ANNOUNCED = range(2)
START_TIME = 0.1  # [s] in which a joint may reach the standard deviation of the initial speed
LEAST_LEFT = 1e-6  # smallest remaining fraction of a bristle's initial variance after any travel


class Estimate(NamedTuple):
    """State that a filter keeps from message to message; every array is changed in place."""

    clock: Vector  # (2,) see LAST
    mean: Vector  # (4, n), see `_model.POSITION`
    covariance: Vector  # (m + 1, m + 1); its last row is work space
    memory: Vector  # (6, n), see ACCELERATION
    counts: Vector  # (10,) see TAKEN


def nothing_known(rules: Rules) -> Estimate:
    """Initial estimate of a filter, before any message."""
    n, size = len(rules.each), rules.size
    return Estimate(
        np.full(2, np.nan),
        np.zeros((4, n)),
        np.zeros((size + 1, size + 1)),
        np.vstack([np.zeros((4, n)), np.full((2, n), np.nan)]),
        np.zeros(COUNTS, dtype=np.int64),
    )


@compiled
def begin_joint(i: int, position: float, effort: float, rules: Rules, estimate: Estimate) -> None:
    """Start joint i from only a position reading [rad] and an effort [N m]."""
    joints, covariance = rules.joints, estimate.covariance
    for row in range(4):
        estimate.mean[row, i] = 0.0
    estimate.mean[POSITION, i] = position
    load_error = joints[LOAD_ERROR, i] * effort
    for block in range(4):
        if block == POSITION:
            place, variance = i, joints[READING, i]
        elif block == SPEED:
            place, variance = len(rules.each) + i, rules.start_speed**2
        elif block == BRISTLE:
            place, variance = rules.bristles + i, joints[REACH, i] ** 2 / 3.0  # uniform distribution
            if rules.bristles == 0:
                continue
        else:
            place, variance = rules.errors + i, joints[FRICTION_ERROR, i] ** 2 + load_error**2
            if rules.errors == 0:
                continue
        covariance[place, :] = 0.0
        covariance[:, place] = 0.0
        covariance[place, place] = variance
    estimate.memory[ACCELERATION, i] = 0.0
    estimate.memory[REFUSALS, i] = 0.0
    estimate.memory[LOAD_PART, i] = load_error**2
    estimate.memory[FIRST, i] = position
    estimate.memory[FIRST_STAMP, i] = estimate.clock[ANNOUNCED]


@compiled
def begin(position: Vector, rules: Rules, estimate: Estimate) -> bool:
    """Start from position readings (n,) [rad]; False if one is missing."""
    for i in range(len(rules.each)):
        if math.isnan(position[i]):
            return False
    for i in range(len(rules.each)):
        begin_joint(i, position[i], estimate.memory[EFFORT, i], rules, estimate)
    estimate.counts[STARTS] += 1
    return True


@compiled
def find_second(
    each: Each, firsts: Vector, first_stamps: Vector, announced: float, position: Vector, seen: Vector
) -> bool:
    """Find joints that started with the previous message; their readings are not for the normal update.

    `firsts` (n,) and `first_stamps` (n,) [s] belong to FIRST; a joint without a second reading continues without it.
    The readings `position` (n,) [rad] of all other joints are written into `seen` (n,). Returns whether any joint
    started with the previous message.
    """
    there = False
    for i in range(len(each)):
        seen[i] = position[i]
        if not math.isnan(firsts[i]) and first_stamps[i] < announced:
            if math.isnan(position[i]):
                firsts[i] = math.nan
            else:
                seen[i] = math.nan
                there = True
    return there


@compiled
def wrapped(angle: float) -> float:
    """Angle [rad] wrapped to -pi to pi; NaN stays NaN."""
    if not math.isfinite(angle):
        return math.nan
    return angle - 2.0 * math.pi * math.floor((angle + math.pi) / (2.0 * math.pi))


@compiled
def set_moving(i: int, position: float, rules: Rules, estimate: Estimate) -> bool:
    """Set the speed of joint i from its first and second reading [rad].

    With a speed of 0 the model would step with stuck bristles and be certain of the wrong speed. Therefore

        v = (q2 - q1) / dt,    variances of r = READING + (jitter v)^2 in each position, and of an acceleration a:
        var(q) = r,  cov(q, v) = r / dt,  var(v) = 2 r / dt^2 + (a dt / 2)^2

    and the bristle has moved along the path |q2 - q1| from an unknown deflection within its reach. Returns False for a
    speed that no arm has; the joint then restarts with this reading.
    """
    joints, mean, covariance, n = rules.joints, estimate.mean, estimate.covariance, len(rules.each)
    dt = estimate.clock[ANNOUNCED] - estimate.memory[FIRST_STAMP, i]
    travel = wrapped(position - estimate.memory[FIRST, i])
    begin_joint(i, position, estimate.memory[EFFORT, i], rules, estimate)
    v = travel / dt
    reading = joints[READING, i] + (rules.jitter * v) ** 2
    bend = 0.5 * dt * rules.start_speed / START_TIME
    variance = 2.0 * reading / (dt * dt) + bend * bend
    if v * v > rules.gate * (rules.start_speed**2 + variance):
        return False
    estimate.memory[FIRST, i] = math.nan
    mean[SPEED, i] = v
    covariance[i, i] = reading
    covariance[i, n + i] = covariance[n + i, i] = reading / dt
    covariance[n + i, n + i] = variance
    largest = joints[REACH, i]
    remaining = math.exp(-abs(travel) / largest)
    mean[BRISTLE, i] = math.copysign(largest * (1.0 - remaining), travel)
    if rules.bristles > 0:
        place = rules.bristles + i
        covariance[place, place] *= max(remaining * remaining, LEAST_LEFT)
    return True


@compiled
def set_moving_joints(position: Vector, seen: Vector, rules: Rules, estimate: Estimate, reading: Vector) -> None:
    """Set the speeds of joints from `find_second`, NaN in `seen` (n,); `reading` counts those that are too fast."""
    for i in range(len(rules.each)):
        second = math.isnan(seen[i]) and not math.isnan(position[i])
        if second and not set_moving(i, position[i], rules, estimate):
            estimate.counts[SHUT_OUT] += 1
            reading[REFUSED, i] += 1.0


# Rows of the record of a message (6, n): innovations [rad], their variances [rad2], refused readings of each joint;
# and, in the first column, sum of squared innovations over variances of the accepted readings, their number, outcome.
INNOVATION, VARIANCE, REFUSED, SQUARES, USED, FATE = range(6)
RECORD_ROWS = 6


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
    """Correct state and covariance by one reading, unless the gate rejects it.

    The reading measures the state at `place` plus `weight` times the last state. `surprise` is the reading minus the
    mean before this message. `gate` is the squared innovation over its variance above which a reading is rejected.
    `correction` (m,) is the correction of the mean by this message so far. It and the covariance (m, m) are changed;
    `shift` and `gain` (m,) are work space. Returns the squared innovation over its variance, negative for a rejected
    reading.
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
    rules: Rules,
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
    """Correct mean (4, n) and covariance (m + 1, m + 1) by positions [rad] and speeds [rad/s] (n,), NaN if missing.

    All readings of a message share the error j of its stamp: each is the value at another time, q + v j. So j occupies
    the spare last row of the covariance while the readings are processed one after the other. A speed reading has a
    lag: it is v minus lag x acceleration `a` (n,) of the last step. `shift`, `gain` and `correction` (m + 1,) are work
    space; `reading` (6, n) is output, see INNOVATION.
    """
    joints, jitter, lag, gate = rules.joints, rules.jitter, rules.lag, rules.gate
    bristles, errors, size, n = rules.bristles, rules.errors, len(shift) - 1, len(rules.each)
    for i in range(size + 1):
        covariance[i, size] = 0.0
        covariance[size, i] = 0.0
        correction[i] = 0.0
    covariance[size, size] = jitter * jitter
    total, count = 0.0, 0
    for i in range(n):
        reading[INNOVATION, i] = wrapped(position[i] - mean[POSITION, i])
        reading[VARIANCE, i] = covariance[i, i] + joints[READING, i] + (jitter * mean[SPEED, i]) ** 2
        reading[REFUSED, i] = 0.0
    for place in range(2 * n):  # positions, then speeds
        i = place % n
        if place < n:
            weight, surprise, variance = mean[SPEED, i], reading[INNOVATION, i], joints[READING, i]
        else:
            late = lag * a[i]
            weight, surprise = a[i], velocity[i] - (mean[SPEED, i] - late)
            variance = joints[TOLD, i] + 0.25 * late * late
        if math.isnan(surprise):
            continue
        distance = take_in(place, weight, surprise, variance, gate, covariance, size + 1, correction, shift, gain)
        if distance >= 0.0:
            total += distance
            count += 1
        else:
            reading[REFUSED, i] += 1.0
    even_out(covariance, size)
    for i in range(n):
        mean[POSITION, i] += correction[i]
        mean[SPEED, i] += correction[n + i]
        if bristles > 0:
            largest = joints[REACH, i]
            mean[BRISTLE, i] = min(max(mean[BRISTLE, i] + correction[bristles + i], -largest), largest)
        if errors > 0:
            mean[ERROR, i] += correction[errors + i]
    reading[SQUARES, 0] = total
    reading[USED, 0] = count
