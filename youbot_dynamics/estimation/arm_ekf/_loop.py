"""The arm's filter from message to message: compiled code for `arm_ekf`, one call for a whole log."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from youbot_dynamics.arrays import Vector
from youbot_dynamics.compiled import compiled
from youbot_dynamics.dynamics.arm import DONE, ROW, ArmBody, StepWork, implicit_step, plain_step
from youbot_dynamics.estimation.arm_ekf import _process as process
from youbot_dynamics.estimation.arm_ekf._joints import (
    ACCELERATION,
    ANNOUNCED,
    EFFORT,
    FATE,
    FIRST,
    FIRST_STAMP,
    JOINT_RESTARTS,
    LAST,
    LATE,
    LOAD_PART,
    NO_EFFORT,
    NO_POSITION,
    REFUSALS,
    REFUSED,
    REPEATED,
    SHUT_OUT,
    TAKEN,
    UNSOLVED,
    UNSTAMPED,
    Estimate,
    begin,
    begin_joint,
    find_second,
    read_joints,
    set_moving_joints,
)
from youbot_dynamics.estimation.arm_ekf._model import (
    DRIVE,
    FRICTION_ERROR,
    LOAD_ERROR,
    SWING,
    UNSEEN,
    Rules,
    Work,
    spread,
)
from youbot_dynamics.estimation.arm_ekf._process import CONVERGED, ERROR, ITERATIONS, JOINTS

# What `follow` is to do.
WHOLE, PREDICT, READ = range(3)


class Messages(NamedTuple):
    """Joint states of the arm, t of them.

    Args:
        stamps: (t,) [s].
        positions: (t, 5) [rad], NaN where missing.
        velocities: (t, 5) [rad/s], NaN where missing or not wanted; (0, 5) for none at all.
        efforts: (t, 5) [N m], NaN where missing.
    """

    stamps: Vector
    positions: Vector
    velocities: Vector
    efforts: Vector


@compiled
def judge(stamp: float, last: float, longest_gap: float) -> int:
    """What becomes of a message by its stamp, beside that of the last one [s]: TAKEN, LATE, REPEATED or UNSTAMPED."""
    if not math.isfinite(stamp):
        return UNSTAMPED
    elapsed = stamp - last
    if elapsed == 0.0:
        return REPEATED
    if -longest_gap <= elapsed < 0.0:  # further back the clock was set anew
        return LATE
    return TAKEN


@compiled
def torque_noise(parts: int, effort: Vector, before: Vector, joints: Vector, noise: Vector) -> int:
    """Write the variances of the torques over each part of the time between two efforts.

    Noise of an effort reaches two steps, and what is off in a long time is so in all its parts: the parts' variances
    are those that add up to the same impulse.

    Args:
        parts: their number.
        effort: (5,) [N m], NaN where missing.
        before: (5,) the last ones [N m].
        joints: (9, 5) constants.
        noise: (5,) written [N2 m2].

    Returns:
        Number of efforts missing.
    """
    missing = 0
    unseen = (1.0 - 1.0 / parts) ** 2
    for i in range(JOINTS):
        change = effort[i] - before[i]
        if math.isnan(change):
            missing += 1
            noise[i] = parts * (joints[DRIVE, i] + joints[UNSEEN, i])
        else:
            noise[i] = parts * (joints[DRIVE, i] + joints[UNSEEN, i] * unseen + (joints[SWING, i] * change) ** 2)
    return missing


@compiled
def torque_between(share: float, effort: Vector, before: Vector, torque: Vector) -> None:
    """Write the torque (5,) at a share of the way from efforts `before` (5,) to `effort` (5,), NaN for no change."""
    for i in range(JOINTS):
        change = effort[i] - before[i]
        torque[i] = before[i] + (0.0 if math.isnan(change) else share * change)


@compiled
def forget(left: float, joints: Vector, torque: Vector, table: Vector, mean: Vector, load_part: Vector) -> None:
    """Let torque errors fade, and turn the motors' torque into that on the rigid bodies.

    The error itself is left out of that, for it would feed its own variance.

    Args:
        left: share of an error that is left after the step.
        joints: (9, 5) constants.
        torque: (5,) changed [N m].
        table: (22, 5) of the step.
        mean: (4, 5) changed.
        load_part: (5,) changed, see LOAD_PART.
    """
    for i in range(JOINTS):
        torque[i] -= table[ROW.friction, i]
        mean[ERROR, i] *= left
        load_error = joints[LOAD_ERROR, i] * torque[i]
        load_part[i] += (1.0 - left * left) * (load_error * load_error - load_part[i])


@compiled
def look_at_refusals(position: Vector, reading: Vector, rules: Rules, estimate: Estimate) -> None:
    """Count refused readings; joints refused too often in a row begin anew.

    Args:
        position: (5,) [rad].
        reading: (18,) of the message.
        rules: of the filter.
        estimate: changed.
    """
    memory = estimate.memory
    for i in range(JOINTS):
        if reading[REFUSED + i] > 0.0:
            estimate.counts[SHUT_OUT] += 1
            memory[REFUSALS, i] += 1.0
            if memory[REFUSALS, i] >= rules.patience and not math.isnan(position[i]):
                estimate.counts[JOINT_RESTARTS] += 1
                begin_joint(i, position[i], memory[EFFORT, i], rules, estimate)
        else:
            memory[REFUSALS, i] = 0.0


@compiled
def keep_efforts(effort: Vector, known: bool, before: Vector) -> None:
    """Keep efforts (5,) [N m] for the next message; one that is missing counts as the one before, or 0 at a start."""
    for i in range(JOINTS):
        if not math.isnan(effort[i]):
            before[i] = effort[i]
        elif not known:
            before[i] = 0.0


@compiled
def write_row(
    known: bool, mean: Vector, joints: Vector, load_part: Vector, covariance: Vector, row: Vector, variances: Vector
) -> None:
    """Write the mean's rows, then friction's part of the error (5, 5), NaN where not known, and the variances (m,)."""
    for i in range(JOINTS):
        for k in range(4):
            row[k, i] = mean[k, i] if known else np.nan
        row[4, i] = process.friction_share(joints[FRICTION_ERROR, i], load_part[i]) * row[ERROR, i]
    for i in range(len(variances)):
        variances[i] = covariance[i, i]


@compiled
def follow(
    body: ArmBody,
    step: StepWork,
    work: Work,
    rules: Rules,
    task: int,
    messages: Messages,
    estimate: Estimate,
    means: Vector,
    variances: Vector,
    readings: Vector,
    covariances: Vector,
) -> None:
    """Take in t messages, one after the other; each is judged by its stamp, predicted to, and read.

    The motors' torques run straight from effort to effort, so that a step is driven by the mean of both; a longer time
    than the longest step is walked in equal parts. Arrays are taken out of their tuples once: functions of their own
    for prediction and reading, which tuples are handed to, cost a quarter more.

    `task` is WHOLE, or PREDICT alone, or READ alone what a PREDICT before has moved to. `estimate` is changed; written
    are `means` (t, 5, 5) and `variances` (t, m) as `write_row` says, `readings` (t, 18) as `_joints.INNOVATION` says,
    and the leading part of the `covariances` (t, k, k); what has no rows is not wanted.
    """
    stamps, positions, velocities, efforts = messages
    table, numbers, derivatives, slopes = step.table, step.numbers, step.derivatives, work.slopes
    joint_constants, halfway, straight = body.joints, body.halfway, body.written_out
    first, second, shift, gain, correction = work.first, work.second, work.shift, work.gain, work.correction
    noise, torque, joints = work.noise, work.torque, rules.joints
    clock, mean, covariance, memory, counts = estimate
    a, before, load_part, refusals = memory[ACCELERATION], memory[EFFORT], memory[LOAD_PART], memory[REFUSALS]
    firsts, first_stamps = memory[FIRST], memory[FIRST_STAMP]
    velocity, seen = np.full(JOINTS, np.nan), np.empty(JOINTS)
    for t in range(len(stamps)):
        fate, stamp, effort = TAKEN, stamps[t], efforts[t]
        if task != READ:
            elapsed = stamp - clock[LAST]
            fate = judge(stamp, clock[LAST], rules.longest_gap)
            readings[t] = 0.0
            readings[t, FATE] = fate
            counts[fate] += 1
        if task != READ and fate == TAKEN:
            clock[ANNOUNCED], clock[LAST] = stamp, np.nan
            if 0.0 < elapsed <= rules.longest_gap:
                parts = max(1, math.ceil(elapsed / rules.longest_step - 1e-9))
                dt = elapsed / parts
                left = math.exp(-dt / rules.memory)
                counts[NO_EFFORT] += torque_noise(parts, effort, before, joints, noise)
                clock[LAST] = stamp
                for k in range(parts):
                    torque_between((k + 0.5) / parts, effort, before, torque)
                    solved = process.is_sane(mean)
                    if solved:
                        process.begin_step(mean, a, torque, table)
                        solved = straight and DONE == plain_step(
                            joint_constants, halfway, ITERATIONS, CONVERGED, dt, True, table, numbers, derivatives
                        )
                        if not solved:  # anew, with strides that are cut
                            table[ROW.acceleration] = 0.0
                            solved = implicit_step(body, dt, True, step) == DONE
                    if not (solved and process.total_slopes(derivatives, table, dt, slopes)):
                        counts[UNSOLVED] += 1
                        clock[LAST] = np.nan
                        break
                    process.move(mean, a, table, dt)
                    forget(left, joints, torque, table, mean, load_part)
                    spread(slopes, table, rules, noise, torque, left, dt, mean, covariance, first, second)
            keep_efforts(effort, not math.isnan(clock[LAST]), before)
        if task != PREDICT and fate == TAKEN:
            if len(velocities) > 0:
                velocity = velocities[t]
            position, reading = positions[t], readings[t]
            for i in range(JOINTS):
                if math.isnan(position[i]):
                    counts[NO_POSITION] += 1
            if math.isnan(clock[LAST]):
                if begin(position, rules, estimate):
                    clock[LAST] = clock[ANNOUNCED]
            else:
                starting = find_second(firsts, first_stamps, clock[ANNOUNCED], position, seen)
                read_joints(rules, mean, a, seen, velocity, covariance, shift, gain, correction, reading)
                refused = 0.0
                for i in range(JOINTS):
                    refused += reading[REFUSED + i] + refusals[i]
                if refused > 0.0:
                    look_at_refusals(seen, reading, rules, estimate)
                if starting:
                    set_moving_joints(position, seen, rules, estimate, reading[REFUSED : REFUSED + JOINTS])
        if len(means) > 0:
            known = not math.isnan(clock[LAST])
            write_row(known, mean, joints, load_part, covariance, means[t], variances[t])
        if len(covariances) > 0:
            size = covariances.shape[1]
            covariances[t] = covariance[:size, :size]
