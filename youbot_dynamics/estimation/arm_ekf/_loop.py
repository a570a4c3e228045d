"""Compiled loop of the arm's filter over messages; one call processes a whole log."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from youbot_dynamics.arrays import Vector
from youbot_dynamics.compiled import compiled
from youbot_dynamics.dynamics.arm import DONE, ROW, ArmBody, StepWork, arm_step
from youbot_dynamics.estimation.arm_ekf import _joints as joint
from youbot_dynamics.estimation.arm_ekf import _model as model
from youbot_dynamics.estimation.arm_ekf._joints import Estimate
from youbot_dynamics.estimation.arm_ekf._model import CONVERGED, ERROR, ITERATIONS, Each, Rules, Work

# Tasks of `follow`.
WHOLE, PREDICT, READ = range(3)


class Messages(NamedTuple):
    """t joint states of the arm; NaN for missing values."""

    stamps: Vector  # (t,) [s]
    positions: Vector  # (t, n) [rad]
    velocities: Vector  # (t, n) [rad/s]; (0, n) if there are none
    efforts: Vector  # (t, n) [N m]


@compiled
def judge(stamp: float, last: float, longest_gap: float) -> int:
    """Outcome of a message by its stamp and the last one [s]: TAKEN, LATE, REPEATED or UNSTAMPED."""
    if not math.isfinite(stamp):
        return joint.UNSTAMPED
    elapsed = stamp - last
    if elapsed == 0.0:
        return joint.REPEATED
    if -longest_gap <= elapsed < 0.0:  # further back, the clock was reset
        return joint.LATE
    return joint.TAKEN


@compiled
def torque_noise(each: Each, parts: int, effort: Vector, before: Vector, joints: Vector, noise: Vector) -> int:
    """Write the variances (n,) [N2 m2] of the torques over each part of the time between two efforts (n,) [N m].

    The noise of an effort affects two steps, and an error over a long time is the same in all its parts. The variances
    of the parts are chosen to give the same total impulse. `joints` (9, n) are the constants. Returns the number of
    missing efforts.
    """
    missing = 0
    unseen = (1.0 - 1.0 / parts) ** 2
    for i in range(len(each)):
        change = effort[i] - before[i]
        if math.isnan(change):
            missing += 1
            noise[i] = parts * (joints[model.DRIVE, i] + joints[model.UNSEEN, i])
        else:
            noise[i] = parts * (
                joints[model.DRIVE, i] + joints[model.UNSEEN, i] * unseen + (joints[model.SWING, i] * change) ** 2
            )
    return missing


@compiled
def torque_between(each: Each, share: float, effort: Vector, before: Vector, torque: Vector) -> None:
    """Write the torque (n,) at a fraction of the time from `before` (n,) to `effort` (n,); NaN keeps the value."""
    for i in range(len(each)):
        change = effort[i] - before[i]
        torque[i] = before[i] + (0.0 if math.isnan(change) else share * change)


@compiled
def forget(
    each: Each, remaining: float, joints: Vector, torque: Vector, table: Vector, mean: Vector, load_part: Vector
) -> None:
    """Multiply the torque errors by `remaining`, and convert the motors' torque (n,) into that on the rigid bodies.

    The error itself is excluded, because it would increase its own variance. `torque`, the mean (4, n) and `load_part`
    (n,) are changed, see `_joints.LOAD_PART`; `table` (22, n) is that of the step.
    """
    for i in range(len(each)):
        torque[i] -= table[ROW.friction, i]
        mean[ERROR, i] *= remaining
        load_error = joints[model.LOAD_ERROR, i] * torque[i]
        load_part[i] += (1.0 - remaining * remaining) * (load_error * load_error - load_part[i])


@compiled
def look_at_refusals(position: Vector, reading: Vector, rules: Rules, estimate: Estimate) -> None:
    """Count refused readings; restart joints at `position` (n,) [rad] after too many refusals in a row."""
    memory = estimate.memory
    for i in range(len(rules.each)):
        if reading[joint.REFUSED, i] > 0.0:
            estimate.counts[joint.SHUT_OUT] += 1
            memory[joint.REFUSALS, i] += 1.0
            if memory[joint.REFUSALS, i] >= rules.patience and not math.isnan(position[i]):
                estimate.counts[joint.JOINT_RESTARTS] += 1
                joint.begin_joint(i, position[i], memory[joint.EFFORT, i], rules, estimate)
        else:
            memory[joint.REFUSALS, i] = 0.0


@compiled
def keep_efforts(each: Each, effort: Vector, known: bool, before: Vector) -> None:
    """Store efforts (n,) [N m] for the next message; a missing one keeps the previous value, or 0 at a start."""
    for i in range(len(each)):
        if not math.isnan(effort[i]):
            before[i] = effort[i]
        elif not known:
            before[i] = 0.0


@compiled
def write_row(
    each: Each,
    known: bool,
    mean: Vector,
    joints: Vector,
    load_part: Vector,
    covariance: Vector,
    row: Vector,
    variances: Vector,
) -> None:
    """Write the rows of the mean, friction's part of the error (5, n), NaN if unknown, and the variances (m,)."""
    for i in range(len(each)):
        for k in range(4):
            row[k, i] = mean[k, i] if known else np.nan
        row[4, i] = model.friction_share(joints[model.FRICTION_ERROR, i], load_part[i]) * row[ERROR, i]
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
    """Process t messages in order: check the stamp, predict, and correct by the readings.

    The motors' torques are linear between efforts, so a step uses the mean of both. A time longer than the longest step
    is divided into equal parts. Arrays are unpacked from their tuples once: separate functions for prediction and
    correction that take tuples cost a quarter more.

    `task` is WHOLE, or only PREDICT, or only READ after a PREDICT. `estimate` is changed. Outputs are `means` (t, 5, n)
    and `variances` (t, m) as in `write_row`, `readings` (t, 6, n) as in `_joints.INNOVATION`, and the leading part
    of the `covariances` (t, k, k); an output without rows is skipped.
    """
    stamps, positions, velocities, efforts = messages
    table, derivatives, slopes = step.table, step.derivatives, work.slopes
    layout, constants, halfway = body.layout, body.joints, body.halfway
    first, second, shift, gain, correction = work.first, work.second, work.shift, work.gain, work.correction
    noise, torque, joints, each = work.noise, work.torque, rules.joints, rules.each
    clock, mean, covariance, memory, counts = estimate
    a, before = memory[joint.ACCELERATION], memory[joint.EFFORT]
    load_part, refusals = memory[joint.LOAD_PART], memory[joint.REFUSALS]
    firsts, first_stamps = memory[joint.FIRST], memory[joint.FIRST_STAMP]
    velocity, seen = np.full(len(each), np.nan), np.empty(len(each))
    for t in range(len(stamps)):
        fate, stamp, effort = joint.TAKEN, stamps[t], efforts[t]
        if task != READ:
            elapsed = stamp - clock[joint.LAST]
            fate = judge(stamp, clock[joint.LAST], rules.longest_gap)
            readings[t] = 0.0
            readings[t, joint.FATE, 0] = fate
            counts[fate] += 1
        if task != READ and fate == joint.TAKEN:
            clock[joint.ANNOUNCED], clock[joint.LAST] = stamp, np.nan
            if 0.0 < elapsed <= rules.longest_gap:
                parts = max(1, math.ceil(elapsed / rules.longest_step - 1e-9))
                dt = elapsed / parts
                remaining = math.exp(-dt / rules.memory)
                counts[joint.NO_EFFORT] += torque_noise(each, parts, effort, before, joints, noise)
                clock[joint.LAST] = stamp
                for k in range(parts):
                    torque_between(each, (k + 0.5) / parts, effort, before, torque)
                    solved = model.is_sane(each, mean)
                    if solved:
                        model.begin_step(each, mean, a, torque, table)
                        end = arm_step(layout, constants, halfway, ITERATIONS, CONVERGED, True, dt, True, step)
                        solved = end == DONE
                    if not (solved and model.total_slopes(each, derivatives, table, dt, slopes)):
                        counts[joint.UNSOLVED] += 1
                        clock[joint.LAST] = np.nan
                        break
                    model.move(each, mean, a, table, dt)
                    forget(each, remaining, joints, torque, table, mean, load_part)
                    model.spread(slopes, table, rules, noise, torque, remaining, dt, mean, covariance, first, second)
            keep_efforts(each, effort, not math.isnan(clock[joint.LAST]), before)
        if task != PREDICT and fate == joint.TAKEN:
            if len(velocities) > 0:
                velocity = velocities[t]
            position, reading = positions[t], readings[t]
            for i in range(len(each)):
                if math.isnan(position[i]):
                    counts[joint.NO_POSITION] += 1
            if math.isnan(clock[joint.LAST]):
                if joint.begin(position, rules, estimate):
                    clock[joint.LAST] = clock[joint.ANNOUNCED]
            else:
                starting = joint.find_second(each, firsts, first_stamps, clock[joint.ANNOUNCED], position, seen)
                joint.read_joints(rules, mean, a, seen, velocity, covariance, shift, gain, correction, reading)
                refused = 0.0
                for i in range(len(each)):
                    refused += reading[joint.REFUSED, i] + refusals[i]
                if refused > 0.0:
                    look_at_refusals(seen, reading, rules, estimate)
                if starting:
                    joint.set_moving_joints(position, seen, rules, estimate, reading)
        if len(means) > 0:
            known = not math.isnan(clock[joint.LAST])
            write_row(each, known, mean, joints, load_part, covariance, means[t], variances[t])
        if len(covariances) > 0:
            size = covariances.shape[1]
            covariances[t] = covariance[:size, :size]
