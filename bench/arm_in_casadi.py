"""The youBot's arm as CasADi sees it, with the constants of a Pinocchio model; imported only to be measured."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import casadi
import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

Array = NDArray[np.float64]


def casadi_arm(model: Any) -> tuple[Any, Any]:
    """CasADi functions of (q, v, tau): accelerations, and their Jacobians by q, v and tau.

    Featherstone's recursion written in symbols, with the constants of a Pinocchio model of revolute joints.
    """
    n = model.nv
    q, v, tau = (casadi.SX.sym(name, n) for name in ("q", "v", "tau"))
    axes: list[Array] = []
    lists: list[list[Any]] = [[] for _ in range(5)]
    motions, velocities, biases, inertias, forces = lists
    for k in range(n):
        axis = _axis(model, k)
        axes.append(np.concatenate([np.zeros(3), axis]))
        place = model.jointPlacements[k + 1]
        cross = pin.skew(axis)
        turn = casadi.SX(np.eye(3)) + casadi.sin(q[k]) * cross + (1 - casadi.cos(q[k])) * (cross @ cross)
        rotation = casadi.mtimes(place.rotation, turn)
        motions.append(_to_child(rotation, place.translation))
        own = axes[k] * v[k]
        velocity = own if k == 0 else casadi.mtimes(motions[k], velocities[-1]) + own
        velocities.append(velocity)
        biases.append(casadi.mtimes(_motion_cross(velocity), own))
        inertias.append(casadi.SX(model.inertias[k + 1].matrix()))
        momentum = casadi.mtimes(inertias[k], velocity)
        forces.append(-casadi.mtimes(_motion_cross(velocity).T, momentum))
    ratios: list[tuple[Any, Any, Any]] = [None] * n  # type: ignore[list-item]
    for k in reversed(range(n)):
        column = casadi.mtimes(inertias[k], axes[k])
        size = casadi.dot(axes[k], column) + model.armature[k]
        rest = tau[k] - casadi.dot(axes[k], forces[k])
        ratios[k] = (column, size, rest)
        if k:
            inertia = inertias[k] - casadi.mtimes(column, column.T) / size
            force = forces[k] + casadi.mtimes(inertia, biases[k]) + column * rest / size
            inertias[k - 1] += casadi.mtimes([motions[k].T, inertia, motions[k]])
            forces[k - 1] += casadi.mtimes(motions[k].T, force)
    acceleration = casadi.SX(np.concatenate([-model.gravity.linear, np.zeros(3)]))
    found = []
    for k, (column, size, rest) in enumerate(ratios):
        acceleration = casadi.mtimes(motions[k], acceleration) + biases[k]
        found.append((rest - casadi.dot(column, acceleration)) / size)
        acceleration = acceleration + axes[k] * found[k]
    qdd = casadi.cse(casadi.vertcat(*found))
    derivatives = casadi.cse([casadi.densify(casadi.jacobian(qdd, by)) for by in (q, v, tau)])
    return (
        casadi.Function("forward_dynamics", [q, v, tau], [qdd]),
        casadi.Function("derivatives", [q, v, tau], derivatives),
    )


def casadi_compiled(function: Any) -> Any | None:
    """The function as C code, compiled and loaded; None where there is no C compiler."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / f"{function.name()}.so"
        generator = casadi.CodeGenerator(f"{function.name()}.c")
        generator.add(function)
        source = generator.generate(f"{folder}/")
        command = [compiler, "-O3", "-march=native", "-fPIC", "-shared", source, "-o", str(library), "-lm"]
        subprocess.run(command, check=True)
        return casadi.external(function.name(), str(library))


def casadi_buffer(function: Any, arguments: tuple[Array, ...], results: tuple[Array, ...]) -> Callable[[], object]:
    """CasADi's fastest call: reads and writes fixed arrays, results in column order; nothing is converted."""
    buffer, evaluate = function.buffer()
    for k, argument in enumerate(arguments):
        buffer.set_arg(k, argument.data)
    for k, result in enumerate(results):
        buffer.set_res(k, result.data)
    evaluate.owner = buffer, arguments, results  # a partial that refers to them, but does not hold them
    call: Callable[[], object] = evaluate
    return call


def _axis(model: Any, k: int) -> Array:
    """Axis (3,) of revolute joint k in its own frame."""
    data = model.createData()
    speeds = np.zeros(model.nv)
    speeds[k] = 1.0
    pin.forwardKinematics(model, data, pin.neutral(model), speeds)
    return np.array(data.v[k + 1].angular).round(12)


def _to_child(rotation: Any, position: Array) -> Any:
    """Motion [linear; angular] of the parent seen in the child's frame, (6, 6)."""
    upper = casadi.horzcat(rotation.T, -casadi.mtimes(rotation.T, pin.skew(position)))
    return casadi.vertcat(upper, casadi.horzcat(casadi.SX(3, 3), rotation.T))


def _motion_cross(velocity: Any) -> Any:
    """Cross product (6, 6) of a motion [linear; angular] with motions."""
    linear, angular = casadi.skew(velocity[:3]), casadi.skew(velocity[3:])
    return casadi.vertcat(casadi.horzcat(angular, linear), casadi.horzcat(casadi.SX(3, 3), angular))
