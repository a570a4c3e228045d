"""Rigid-body dynamics of the youBot's five-joint arm beside Pinocchio, MuJoCo and CasADi.

Pinocchio has no batched call for derivatives. What a loop in C++ would take is the call from Python less the same call
on a model without joints: the same binding, conversions and returned arrays, but no recursion. A loop in C++ against
Pinocchio's headers (-O3 -march=native) was compiled once to check it: 2.52 to 2.63 us where this gave 2.58 us.

CasADi runs Featherstone's recursion written in its symbols, common subexpressions merged, as C code where there is a
compiler, called through its buffer interface, its fastest: fixed arrays, nothing checked or allocated.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import mujoco
import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from bench.arm_peers import mujoco_arm, pinocchio_arm
from bench.harness import AccuracyGoal, Candidate, Goal, Item, TimeGoal
from youbot_dynamics.dynamics.arm import arm_tree
from youbot_dynamics.dynamics.tree import Tree
from youbot_dynamics.dynamics.tree._straight_line import StraightLine, find_straight_line
from youbot_dynamics.resources import urdf_path

Array = NDArray[np.float64]

ROTORS = np.array([0.33, 0.33, 0.14, 0.047, 0.018])  # [kg m2] about those of the arm; any value takes as long
BATCH = 1000
LESS = "call from Python less the same call on a model without joints"
BUFFER = "fixed arrays, nothing checked or allocated"
LOOP, PUBLIC, KERNEL = "Tree, batch", "Tree, one call", "compiled kernel, one call"
PIN_BATCH = "Pinocchio, batch, 1 thread"


class States:
    """The arm in all its models, and random states: `q`, `v`, `tau`, `a` (1000, 5), the first of each `*0` (5,)."""

    def __init__(self) -> None:
        self.tree: Tree = arm_tree(ROTORS)
        program = find_straight_line(self.tree.layout)
        if program is None:
            raise RuntimeError("there is no straight-line code of the arm: run scripts/write_straight_line.py")
        self.program: StraightLine = program
        self.model = pinocchio_arm(urdf_path("youbot.urdf"), ROTORS)
        self.data = self.model.createData()
        self.pool = pin.ModelPool(self.model, 1)
        self.jointless = pin.Model()
        self.jointless_data = self.jointless.createData()
        random = np.random.default_rng(5)
        self.q, self.v, self.tau, self.a = (
            random.uniform(-1.0, 1.0, (4, BATCH, 5)) * np.array([3, 2, 5, 5])[:, None, None]
        )
        self.q0, self.v0, self.tau0, self.a0 = (np.ascontiguousarray(x[0]) for x in (self.q, self.v, self.tau, self.a))

    def pinocchio(self, name: str, *arguments: Array, loop: bool = False) -> Candidate:
        """Candidate that calls a function of Pinocchio at (5,) arguments; `loop` takes the entry from Python off."""
        function = getattr(pin, name)
        call = partial(function, self.model, self.data, *arguments)
        if not loop:
            return Candidate(call)
        empty = partial(function, self.jointless, self.jointless_data, *(np.zeros(0) for _ in arguments))
        return Candidate(call, less=empty, note=LESS)

    def pinocchio_batch(self, name: str, *arguments: Array) -> Candidate:
        """Candidate that calls a parallel function of Pinocchio on (1000, 5) arguments with one thread."""
        columns = [np.asfortranarray(argument.T) for argument in arguments]
        out = np.zeros((5, BATCH), order="F")
        return Candidate(partial(getattr(pin, name), 1, self.pool, *columns, out), BATCH)

    def mujoco(self, call: Callable[[Any, Any], object]) -> Candidate:
        """Candidate that calls a function of MuJoCo at the first state."""
        model = mujoco_arm(urdf_path("youbot.urdf"), ROTORS)
        data = mujoco.MjData(model)
        data.qpos[:], data.qvel[:], data.qfrc_applied[:], data.qacc[:] = self.q0, self.v0, self.tau0, self.a0
        return Candidate(partial(call, model, data), note="one call, no contacts, no shapes")

    def casadi(self, which: int) -> dict[str, Candidate]:
        """Candidates of CasADi at the first state: the accelerations (0) or their derivatives (1)."""
        # Only the bench extra brings CasADi: the groups can be listed, and tested, without it.
        from bench.arm_in_casadi import casadi_arm, casadi_buffer, casadi_compiled

        function = casadi_arm(self.model)[which]
        arguments = (self.q0, self.v0, self.tau0)
        results = tuple(np.zeros(function.size_out(k)[0] * function.size_out(k)[1]) for k in range(function.n_out()))
        found = {"CasADi, one call": Candidate(partial(function, *arguments))}
        compiled = casadi_compiled(function)
        if compiled is not None:
            found["CasADi as C, buffer"] = Candidate(casadi_buffer(compiled, arguments, results), note=BUFFER)
        return found


def forward_dynamics() -> Item:
    """Accelerations."""
    s = States()
    out = np.zeros(5)
    arguments = (s.q0, s.v0, s.tau0)
    candidates = {
        LOOP: Candidate(partial(s.tree.forward_dynamics, s.q, s.v, s.tau), BATCH),
        KERNEL: Candidate(partial(s.program.kernels.forward_dynamics, *arguments, s.program.parameters, out)),
        PUBLIC: Candidate(partial(s.tree.forward_dynamics, *arguments)),
        PIN_BATCH: s.pinocchio_batch("abaInParallel", s.q, s.v, s.tau),
        "pin.aba": s.pinocchio("aba", *arguments),
        "pin.aba in a loop": s.pinocchio("aba", *arguments, loop=True),
        "pin.aba, world frame": Candidate(partial(pin.aba, s.model, s.data, *arguments, pin.Convention.WORLD)),
        "mj_forward": s.mujoco(mujoco.mj_forward),
        **s.casadi(0),
    }
    right = np.array([pin.aba(s.model, s.data, *state) for state in zip(s.q, s.v, s.tau, strict=True)])
    accuracy = {"Tree to Pinocchio, relative": off(s.tree.forward_dynamics(s.q, s.v, s.tau), right)}
    goals = (
        Goal(LOOP, PIN_BATCH, 4.0),
        Goal(KERNEL, "pin.aba", 2.5),
        Goal(PUBLIC, "pin.aba", 1.0),
        AccuracyGoal("Tree to Pinocchio, relative", 1e-10),
    )
    return Item("accelerations of the arm", candidates, "us", accuracy, goals)


def derivatives() -> Item:
    """Accelerations with their derivatives by q, v and tau."""
    s = States()
    slopes = np.zeros((3, 5, 5))
    arguments = (s.q0, s.v0, s.tau0)
    candidates = {
        LOOP: Candidate(partial(s.tree.forward_dynamics_derivatives, s.q, s.v, s.tau), BATCH),
        KERNEL: Candidate(partial(s.program.kernels.derivatives, *arguments, s.program.parameters, slopes)),
        PUBLIC: Candidate(partial(s.tree.forward_dynamics_derivatives, *arguments)),
        "pin.computeABADerivatives": s.pinocchio("computeABADerivatives", *arguments),
        "pin.computeABADerivatives in a loop": s.pinocchio("computeABADerivatives", *arguments, loop=True),
        **s.casadi(1),
    }
    goals = (
        Goal(LOOP, "pin.computeABADerivatives in a loop", 4.0),
        Goal(KERNEL, "pin.computeABADerivatives", 2.0),
        Goal(PUBLIC, "pin.computeABADerivatives", 1.0),
        AccuracyGoal("Tree to Pinocchio, relative", 1e-10),
    )
    return Item("accelerations of the arm and all their derivatives", candidates, "us", _derivatives_off(s), goals)


def inverse_dynamics() -> Item:
    """Torques."""
    s = States()
    arguments = (s.q0, s.v0, s.a0)
    candidates = {
        LOOP: Candidate(partial(s.tree.inverse_dynamics, s.q, s.v, s.a), BATCH),
        PUBLIC: Candidate(partial(s.tree.inverse_dynamics, *arguments)),
        PIN_BATCH: s.pinocchio_batch("rneaInParallel", s.q, s.v, s.a),
        "pin.rnea": s.pinocchio("rnea", *arguments),
        "mj_inverse": s.mujoco(mujoco.mj_inverse),
    }
    right = np.array([pin.rnea(s.model, s.data, *state) for state in zip(s.q, s.v, s.a, strict=True)])
    accuracy = {"Tree to Pinocchio, relative": off(s.tree.inverse_dynamics(s.q, s.v, s.a), right)}
    goals = (AccuracyGoal("Tree to Pinocchio, relative", 1e-10),)
    return Item("torques of the arm", candidates, "us", accuracy, goals)


def mass_matrix() -> Item:
    """Mass matrices."""
    s = States()
    candidates = {
        LOOP: Candidate(partial(s.tree.mass_matrix, s.q), BATCH),
        PUBLIC: Candidate(partial(s.tree.mass_matrix, s.q0)),
        "pin.crba": s.pinocchio("crba", s.q0),
    }
    right = []
    for q in s.q:
        upper = np.triu(pin.crba(s.model, s.data, q))
        right.append(upper + np.triu(upper, 1).T)
    accuracy = {"Tree to Pinocchio, relative": off(s.tree.mass_matrix(s.q), np.array(right))}
    goals = (AccuracyGoal("Tree to Pinocchio, relative", 1e-10),)
    return Item("mass matrix of the arm", candidates, "us", accuracy, goals)


def forward_dynamics_plain() -> Item:
    """Accelerations where there is no numba: numpy over the rows of a batch."""
    s = States()
    arguments = (s.q0, s.v0, s.tau0)
    candidates = {
        LOOP: Candidate(partial(s.tree.forward_dynamics, s.q, s.v, s.tau), BATCH),
        PUBLIC: Candidate(partial(s.tree.forward_dynamics, *arguments)),
        PIN_BATCH: s.pinocchio_batch("abaInParallel", s.q, s.v, s.tau),
        "pin.aba": s.pinocchio("aba", *arguments),
    }
    right = np.array([pin.aba(s.model, s.data, *state) for state in zip(s.q, s.v, s.tau, strict=True)])
    accuracy = {"Tree to Pinocchio, relative": off(s.tree.forward_dynamics(s.q, s.v, s.tau), right)}
    goals = (
        Goal(LOOP, PIN_BATCH, 0.8),
        TimeGoal(PUBLIC, 25e-6),
        AccuracyGoal("Tree to Pinocchio, relative", 1e-10),
    )
    return Item("accelerations of the arm, plain Python and numpy", candidates, "us", accuracy, goals)


def derivatives_plain() -> Item:
    """Accelerations with their derivatives where there is no numba."""
    s = States()
    arguments = (s.q0, s.v0, s.tau0)
    candidates = {
        LOOP: Candidate(partial(s.tree.forward_dynamics_derivatives, s.q, s.v, s.tau), BATCH),
        PUBLIC: Candidate(partial(s.tree.forward_dynamics_derivatives, *arguments)),
        "pin.computeABADerivatives": s.pinocchio("computeABADerivatives", *arguments),
    }
    goals = (TimeGoal(PUBLIC, 150e-6), AccuracyGoal("Tree to Pinocchio, relative", 1e-10))
    about = "accelerations of the arm and all their derivatives, plain Python and numpy"
    return Item(about, candidates, "us", _derivatives_off(s), goals)


def off(got: Array, right: Array) -> float:
    """Largest deviation over the largest value."""
    return float(np.max(np.abs(got - right)) / np.max(np.abs(right)))


def _derivatives_off(s: States) -> dict[str, float]:
    """Worst of the three matrices, each over all states."""
    right: list[list[Array]] = [[], [], []]
    for state in zip(s.q, s.v, s.tau, strict=True):
        for found, matrix in zip(right, pin.computeABADerivatives(s.model, s.data, *state), strict=True):
            found.append(np.array(matrix))
    got = s.tree.forward_dynamics_derivatives(s.q, s.v, s.tau)
    worst = max(off(ours, np.array(theirs)) for ours, theirs in zip(got, right, strict=True))
    return {"Tree to Pinocchio, relative": worst}


ITEMS = {
    "arm-forward-dynamics": forward_dynamics,
    "arm-derivatives": derivatives,
    "arm-inverse-dynamics": inverse_dynamics,
    "arm-mass-matrix": mass_matrix,
}
ITEMS_WITHOUT_NUMBA = {
    "arm-forward-dynamics-plain": forward_dynamics_plain,
    "arm-derivatives-plain": derivatives_plain,
}
