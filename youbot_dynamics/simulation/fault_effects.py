"""What faults do to the commands and messages that pass between a driver and the rest of the world."""

from __future__ import annotations

import dataclasses
import heapq
import math
from collections.abc import Sequence
from typing import Generic, TypeVar

import numpy as np

from youbot_dynamics.arrays import Vector
from youbot_dynamics.robot import Driver
from youbot_dynamics.simulation.driver_reports import JointReport
from youbot_dynamics.simulation.faults import COMMANDS, STATES, Fault

Item = TypeVar("Item")

# Reported over true turning of a joint, and given over asked speed of a wheel.
_READ = {"frozen_encoder": 0.0, "dead_wheel": 0.0, "reversed_wheel": -1.0}
_DRIVEN = {"dead_wheel": 0.0, "reversed_wheel": -1.0}


class ActiveFaults:
    """Faults that were asked for at one time, and which of them act at another.

    Args:
        faults: as parsed.
        asked: when they were asked for [s].
    """

    def __init__(self, faults: Sequence[Fault], asked: float) -> None:
        self.faults = tuple(faults)
        self._asked = asked

    def since(self, time: float) -> float:
        """Time since they were asked for [s]."""
        return time - self._asked

    def at(self, time: float, *kinds: str) -> list[Fault]:
        """Those of some kinds that act at `time` [s], in their order."""
        return [fault for fault in self.faults if fault.kind in kinds and fault.active(self.since(time))]

    def driven(self, time: float, driver: Driver) -> Vector:
        """Given over asked speed of each wheel (4,), at `time` [s]."""
        factors = np.ones(len(driver.wheel_joints))
        for fault in self.at(time, *_DRIVEN):
            factors[driver.wheel_joints.index(fault.joint)] *= _DRIVEN[fault.kind]
        return factors

    def deaf(self, time: float) -> bool:
        """Whether the driver is away at `time` [s]: restarting."""
        return bool(self.at(time, "restart"))

    def stamp(self, time: float, stamp: float) -> float:
        """A stamp [s] that is given at `time` [s] by the driver's clock."""
        return stamp + sum(fault.numbers["size"] for fault in self.at(time, "clock_jump"))

    def read(self, time: float, joint: str) -> float:
        """Reported over true turning of a joint at `time` [s]."""
        factor = 1.0
        for fault in self.at(time, *_READ, "off_pattern"):
            if fault.joint == joint:
                factor *= fault.numbers.get("factor", _READ.get(fault.kind, 1.0))
        return factor

    def jumps(self, time: float) -> dict[int, int]:
        """How often each jumping encoder has jumped until `time` [s], by the index of its fault."""
        counts = {}
        for index, fault in enumerate(self.faults):
            span = min(self.since(time) - fault.after, fault.lasting)
            if fault.kind == "jumping_encoder" and span >= 0.0:
                counts[index] = 1 + math.floor(span / fault.numbers["every"])
        return counts


class Encoders:
    """Counts of the joints as the driver has them: what it missed or miscounted stays wrong.

    Without faults, every report passes as it is, bit by bit.

    Args:
        seed: of the signs of jumps.
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._active = ActiveFaults((), 0.0)
        self._random: dict[int, np.random.Generator] = {}
        self._jumped: dict[int, int] = {}
        self._to_jump: dict[str, float] = {}
        self._true: dict[str, float] = {}
        self._shown: dict[str, float] = {}
        self._off: dict[str, float] = {}

    def set(self, active: ActiveFaults) -> None:
        """Let other faults act from now on; wrong counts stay wrong."""
        self._active = active
        self._jumped = dict.fromkeys(range(len(active.faults)), 0)
        self._random = {k: np.random.default_rng([self._seed, 16, k]) for k in self._jumped}

    def restart(self, joints: Sequence[str]) -> None:
        """Count some joints from zero, beginning where they last were seen."""
        for joint in joints:
            self._off[joint] = -self._true.get(joint, 0.0)
            self._shown[joint] = 0.0

    def report(self, time: float, report: JointReport) -> JointReport:
        """Positions and velocities of a report as the driver has them at `time` [s]."""
        position, velocity = report.position.copy(), report.velocity.copy()
        self._draw_jumps(time)
        for k, joint in enumerate(report.names):
            true, factor = float(position[k]), self._active.read(time, joint)
            off = self._off.get(joint, 0.0)
            shown = true + off
            if factor != 1.0:
                shown = self._shown.get(joint, shown) + factor * (true - self._true.get(joint, true))
                velocity[k] = factor * velocity[k] + 0.0  # no negative zero
            jump = self._to_jump.pop(joint, 0.0)
            shown += jump
            if factor != 1.0 or jump:
                self._off[joint] = shown - true
            position[k], self._true[joint], self._shown[joint] = shown, true, shown
        return dataclasses.replace(report, position=position, velocity=velocity)

    @property
    def wrong(self) -> bool:
        """Whether any joint has ever been counted wrongly."""
        return bool(self._off)

    def _draw_jumps(self, time: float) -> None:
        for index, count in self._active.jumps(time).items():
            fault = self._active.faults[index]
            signs = self._random[index].choice([-1.0, 1.0], count - self._jumped[index])
            self._jumped[index] = count
            size = fault.numbers["size"] * float(signs.sum())
            self._to_jump[fault.joint] = self._to_jump.get(fault.joint, 0.0) + size


class Mail(Generic[Item]):
    """What is sent on one channel and may be lost or come late.

    Args:
        channel: one of the CHANNELS of `faults`, or COMMANDS.
        seed: of losses and delays.
    """

    def __init__(self, channel: str, seed: int) -> None:
        # Apart for each channel, so that losses of one leave the others as they are.
        self._random = np.random.default_rng([seed, 17, *channel.encode()])
        self._of = (channel,) if channel == COMMANDS else (channel, STATES)
        self._waiting: list[tuple[float, int, Item]] = []
        self._sent = 0

    def send(self, time: float, item: Item, active: ActiveFaults) -> None:
        """Hand in an item at `time` [s]."""
        delay = 0.0
        for fault in active.at(time, "lost", "late"):
            if fault.of in self._of and self._random.random() < fault.numbers["share"]:
                if fault.kind == "lost":
                    return
                delay = max(delay, fault.numbers["delay"])
        heapq.heappush(self._waiting, (time + delay, self._sent, item))
        self._sent += 1

    def due(self, time: float) -> list[tuple[float, Item]]:
        """What has arrived by `time` [s] and has not been handed out yet, each with its arrival [s]."""
        found = []
        while self._waiting and self._waiting[0][0] <= time:
            arrival, _, item = heapq.heappop(self._waiting)
            found.append((arrival, item))
        return found


def with_wrong_fields(time: float, report: JointReport, active: ActiveFaults) -> JointReport:
    """A report whose names and efforts are as the faults want them at `time` [s]."""
    names, values = list(report.names), [report.position, report.velocity, report.effort]
    for fault in active.at(time, "missing_effort", "zero_effort", "duplicate_names", "partial_names"):
        if fault.kind == "missing_effort":
            values[2] = np.zeros(0)
        elif fault.kind == "zero_effort":
            values[2] = values[2].copy()
            if fault.joint == "all":
                values[2][:] = 0.0
            elif fault.joint in names[: len(values[2])]:
                values[2][names.index(fault.joint)] = 0.0
        elif fault.joint in names:
            place = names.index(fault.joint)
            if fault.kind == "duplicate_names":
                values = [np.insert(v, len(names), 0.0) if len(v) >= len(names) else v for v in values]
                names.append(fault.joint)
            else:
                del names[place]
                values = [np.delete(v, place) if place < len(v) else v for v in values]
    return JointReport(report.stamp, tuple(names), *values)
