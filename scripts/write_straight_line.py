"""Write the straight-line code of the youBot arm from the recursions of the package; --check only compares.

The recursions of dynamics/tree (_recursion.py, _sweeps.py) run on symbols: sines, cosines, speeds, torques and inertial
parameters stay free, the geometry of the arm is folded in. Run it after a change of the recursions or of the arm's
joints in urdf/youbot.urdf; a test compares what is shipped with what it writes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "scripts")]

from tracing import Node, Tape, Writer  # noqa: E402

from youbot_dynamics.dynamics.arm import arm_tree  # noqa: E402
from youbot_dynamics.dynamics.tree import Layout  # noqa: E402
from youbot_dynamics.dynamics.tree import _articulated_body as articulated_body  # noqa: E402
from youbot_dynamics.dynamics.tree import _recursion as recursion  # noqa: E402
from youbot_dynamics.dynamics.tree import _spatial as spatial  # noqa: E402
from youbot_dynamics.dynamics.tree import _sweeps as sweeps  # noqa: E402
from youbot_dynamics.dynamics.tree._straight_line import spared_axis, structure_of  # noqa: E402
from youbot_dynamics.files import write_atomically  # noqa: E402

TARGET = ROOT / "youbot_dynamics" / "dynamics" / "generated" / "youbot_arm.py"


def uncompile() -> None:
    """Let the recursions call each other as plain Python, so that symbols can pass through them."""
    for module in (spatial, recursion, articulated_body, sweeps):
        for name, value in list(vars(module).items()):
            if hasattr(value, "py_func"):
                setattr(module, name, value.py_func)


def filled(tape: Tape, *shape: int) -> Any:
    """Return an array of zero nodes."""
    array = np.empty(shape, dtype=object)
    array[...] = tape.constant(0.0)
    return array


def symbolic_layout(tape: Tape, layout: Layout) -> Layout:
    """Return the layout with symbols for masses, moments, inertias and rotors, and gravity of free size."""
    n = len(layout.parents)
    masses, first, inertias, rotors = filled(tape, n), filled(tape, n, 3), filled(tape, n, 3, 3), filled(tape, n)
    for i in range(n):
        p = [tape.symbol(f"p[{10 * i + k}]") for k in range(10)]
        rotors[i] = p[9]
        first[i] = p[:3]
        inertias[i] = [[p[3], p[6], p[7]], [p[6], p[4], p[8]], [p[7], p[8], p[5]]]
        # What regrouping clears.
        first[i, int(np.argmax(np.abs(layout.axes[i])))] = tape.constant(0.0)
        spared = spared_axis(layout.axes[i])
        inertias[i, spared, spared] = tape.constant(0.0)
    size = tape.symbol(f"p[{10 * n}]")
    direction = layout.gravity / np.linalg.norm(layout.gravity)
    gravity = np.array([size * float(component) for component in direction], dtype=object)
    return layout._replace(
        masses=masses, first_moments=first, inertias=inertias, rotor_inertias=rotors, gravity=gravity
    )


class ArmTrace:
    """The arithmetic of one arm of n joints.

    The first joint turns about the direction of gravity, so nothing depends on its angle: what is written in common
    axes is written in those of the first body.
    """

    def __init__(self, layout: Layout) -> None:
        self.tape = Tape()
        self.n = n = len(layout.parents)
        self.layout = symbolic_layout(self.tape, layout)
        symbols = {name: [self.tape.symbol(f"{name}{k}") for k in range(n)] for name in "scvat"}
        self.s, self.c, self.v, self.a, self.t = (np.array(symbols[name], dtype=object) for name in "scvat")
        self.rotations, self.positions = filled(self.tape, n, 3, 3), filled(self.tape, n, 3)
        recursion.place(self.layout, self.s, self.s, self.c, self.rotations, self.positions)
        self.rotations[0], self.positions[0] = np.eye(3), 0.0

    def lifted(self, values: Any) -> Any:
        """Return an array whose plain numbers have become nodes."""
        nodes = [value if isinstance(value, Node) else self.tape.constant(value) for value in values.ravel()]
        return np.array(nodes, dtype=object).reshape(values.shape)

    def inverse_dynamics(self) -> Any:
        """Return joint torques (n,) for the accelerations a0, a1, ..."""
        n, tape = self.n, self.tape
        velocity, acceleration, joint = (filled(tape, n, 6) for _ in range(3))
        momentum, force, tau = filled(tape, n, 6), filled(tape, n, 6), filled(tape, n)
        arguments = (self.layout, self.rotations, self.positions)
        recursion.motions(*arguments, self.v, self.a, velocity, acceleration, joint)
        recursion.forces(self.layout, velocity, acceleration, filled(tape, n, 6), momentum, force)
        recursion.gather(*arguments, force, tau)
        return tau + self.layout.rotor_inertias * self.a

    def placed(self) -> tuple[Any, Any]:
        """Return the sweeps' work space at the angles of the symbols, and the mass matrix (n, n)."""
        n, tape = self.n, self.tape
        numbers, matrix = sweeps.room_in(np.zeros(sweeps.room_size(n, n)), n, n), filled(tape, n, n)
        placed = sweeps.Placed(*(filled(tape, *array.shape) for array in numbers.placed))
        room = sweeps.Room(placed, *(filled(tape, *array.shape) for array in numbers[1:]))

        def place(_: Layout, q: Any, sines: Any, cosines: Any, rotations: Any, positions: Any) -> None:
            rotations[:], positions[:] = self.rotations, self.positions

        sweeps.sines_and_cosines, sweeps.place = (lambda *_: None), place
        sweeps.mass_matrix_at(self.layout, self.s, placed, matrix)
        return room, self.lifted(matrix)

    def sweeps(self, a: Any) -> tuple[Any, Any, Any, Any]:
        """Return torques (n,), their derivatives by q and v (n, n) and the mass matrix at accelerations a (n,)."""
        n, tape = self.n, self.tape
        room, matrix = self.placed()
        tau, by_q, by_v = filled(tape, n), filled(tape, n, n), filled(tape, n, n)
        sweeps.slopes_at(self.layout, self.v, a, room.none, room, tau, by_q, by_v)
        return self.lifted(tau), self.lifted(by_q), self.lifted(by_v), matrix

    def mass_matrix(self) -> Any:
        """Return the mass matrix (n, n)."""
        return self.placed()[1]

    def factors(self, matrix: Any) -> Any:
        """Return L and the reciprocals of D, L D L' = matrix (n, n)."""
        n = self.n
        lower, pivots, inverse = filled(self.tape, n, n), [self.tape.constant(0.0)] * n, [self.tape.constant(0.0)] * n
        for column in range(n):
            for row in range(column, n):
                entry = matrix[row, column]
                for k in range(column):
                    entry = entry - lower[row, k] * (lower[column, k] * pivots[k])
                if row == column:
                    pivots[column], inverse[column] = entry, 1.0 / entry
                else:
                    lower[row, column] = entry * inverse[column]
        return lower, inverse

    def solve(self, factors: Any, right: Any) -> list[Node]:
        """Return M^-1 right for right (n,)."""
        lower, inverse = factors
        x = list(right)
        for row in range(self.n):
            for k in range(row):
                x[row] = x[row] - lower[row, k] * x[k]
        x = [value * pivot for value, pivot in zip(x, inverse, strict=True)]
        for row in range(self.n - 1, -1, -1):
            for k in range(row + 1, self.n):
                x[row] = x[row] - lower[k, row] * x[k]
        return x

    def accelerations(self) -> tuple[Any, Any]:
        """Return M^-1 (tau - bias) and the factors of M."""
        bias, _, _, matrix = self.sweeps(filled(self.tape, self.n))
        factors = self.factors(matrix)
        return self.solve(factors, self.t - bias), factors

    def derivatives(self) -> list[Node]:
        """Return accelerations, then rows of d a/d q, d a/d v, d a/d tau."""
        n = self.n
        accelerations, factors = self.accelerations()
        _, by_q, by_v, _ = self.sweeps(np.array(accelerations, dtype=object))
        unit = [[self.tape.constant(float(i == k)) for i in range(n)] for k in range(n)]
        inverse = np.array([self.solve(factors, unit[k]) for k in range(n)], dtype=object)
        inverse = np.array([[inverse[min(i, j), max(i, j)] for j in range(n)] for i in range(n)], dtype=object)
        slopes = [-(inverse @ right) for right in (by_q, by_v)]
        return [*accelerations, *(node for matrix in (*slopes, inverse) for node in matrix.ravel())]


def names(letter: str, n: int) -> str:
    """Return `q0, q1, ...`."""
    return ", ".join(f"{letter}{k}" for k in range(n))


def core(title: str, about: str, inputs: str, outputs: list[Node]) -> tuple[list[str], int]:
    """Return the lines of a function of scalars with straight-line code, and its number of operations."""
    writer = Writer(outputs)
    results = [writer.text(node) for node in outputs]
    lines = ["@compiled", f"def {title}({inputs}, p):", f'    """{about}"""']
    lines += [f"    {line}" for line in writer.lines]
    lines.append("    return (")
    lines += [f"        {result}," for result in results]
    return [*lines, "    )", "", ""], writer.operations


HEADER = '''"""Straight-line dynamics of the youBot arm. Written by scripts/write_straight_line.py; do not edit.

Operations: {operations}.
"""
# ruff: noqa
# fmt: off
# mypy: ignore-errors

from math import cos, isfinite, sin
from typing import Any

import numpy as np

from youbot_dynamics.compiled import compiled

PARENTS = {parents}
GRAVITY_DIRECTION = {direction}
GEOMETRY = (
{geometry}
)


'''


def around(
    core_name: str, n: int, last: str, writes: Iterable[str], title: str, about: str, row: str = ""
) -> list[str]:
    """Return a function of arrays around a core.

    Args:
        core_name: of the core.
        n: joints.
        last: array behind q and v; "" where the core takes angles alone.
        writes: where the last results of the core go.
        title: name and arguments.
        about: docstring.
        row: "" for one configuration; "i" for many, row by row; ":" for many as whole columns, which needs no compiler.
    """
    index, of = f"{row}, " if row else "", "np." if row == ":" else ""
    space = "        " if row == "i" else "    "
    arguments = [f"{of}sin(q[{index}{k}]), {of}cos(q[{index}{k}])" for k in range(n)]
    arguments += [", ".join(f"{array}[{index}{k}]" for k in range(n)) for array in (("v", last) if last else ())]
    places = list(writes)
    results = n + 3 * n * n if core_name == "_derivatives" else len(places)
    lines = [] if row == ":" else ["@compiled"]
    lines += [f"def {title}:", f'    """{about}"""', *(["    for i in range(q.shape[0]):"] if row == "i" else [])]
    lines += [f"{space}r = {core_name}(", *(f"{space}    {argument}," for argument in (*arguments, "p")), f"{space})"]
    lines += [f"{space}{place} = r[{results - len(places) + k}]" for k, place in enumerate(places)]
    if not row:
        checked = len(places) if core_name == "_mass_matrix" else n
        lines.append(f"    return isfinite(q[0] + {' + '.join(f'r[{k}]' for k in range(checked))})")
    return [*lines, "", ""]


def functions(n: int) -> list[str]:
    """Return the functions of arrays: of one configuration, of many row by row, of many as whole columns."""
    entries = [f"{i}, {j}" for i in range(n) for j in range(n)]

    def vector(array: str, row: str = "") -> list[str]:
        return [f"{array}[{row}{k}]" for k in range(n)]

    def matrix(row: str = "") -> list[str]:
        return [f"matrix[{row}{entry}]" for entry in entries]

    def slopes(row: str = "") -> list[str]:
        return [f"slopes[{k}, {row}{entry}]" for k in range(3) for entry in entries]

    lines: list[str] = []
    typed = "forward_dynamics(q: Any, v: Any, tau: Any, p: Any, out: Any) -> bool"
    for core_name, last, writes, title, about in (
        ("_accelerations", "tau", vector("out"), typed, f"accelerations ({n},) of q, v, tau ({n},)"),
        (
            "_derivatives",
            "tau",
            slopes(),
            "derivatives(q, v, tau, p, slopes)",
            f"slopes (3, {n}, {n}) by q, v, tau ({n},)",
        ),
        ("_torques", "a", vector("tau"), "inverse_dynamics(q, v, a, p, tau)", f"torques ({n},) of q, v, a ({n},)"),
        ("_mass_matrix", "", matrix(), "mass_matrix(q, p, matrix)", f"the mass matrix ({n}, {n}) of q ({n},)"),
    ):
        lines += around(core_name, n, last, writes, title, f"Write {about}; False where a number is not finite.")
    of_rows = {
        "mass_matrix": f"Write mass matrices (t, {n}, {n}) of q (t, {n}).",
        "forward_dynamics": f"Write accelerations (t, {n}) of q, v, tau (t, {n}).",
        "inverse_dynamics": f"Write torques (t, {n}) of q, v, a (t, {n}).",
        "derivative": f"Write accelerations (t, {n}) and their slopes (3, t, {n}, {n}) of q, v, tau (t, {n}).",
    }
    of_columns = {name: f"Do what {name}_rows does, by whole columns." for name in of_rows}
    of_columns["mass_matrix"] = "Do what mass_matrix_rows does, by whole columns: the way without a compiler."
    for row, ending, about in (("i", "rows", of_rows), (":", "columns", of_columns)):
        at = f"{row}, "
        for name, core_name, last, writes, arguments_of in (
            ("mass_matrix", "_mass_matrix", "", matrix(at), "q, p, matrix"),
            ("forward_dynamics", "_accelerations", "tau", vector("out", at), "q, v, tau, p, out"),
            ("inverse_dynamics", "_torques", "a", vector("tau", at), "q, v, a, p, tau"),
            ("derivative", "_derivatives", "tau", [*vector("a", at), *slopes(at)], "q, v, tau, p, a, slopes"),
        ):
            lines += around(core_name, n, last, writes, f"{name}_{ending}({arguments_of})", about[name], row)
    return lines


def text_of(layout: Layout) -> str:
    """Return the whole generated file."""
    uncompile()
    trace = ArmTrace(layout)
    n = trace.n
    structure = structure_of(layout)
    assert structure is not None, "only arms of revolute joints in order"
    first_axis = layout.rotations[0] @ layout.axes[0]
    assert abs(first_axis @ layout.gravity) == np.linalg.norm(layout.gravity), "the first joint must be upright"
    angles = ", ".join(f"s{k}, c{k}" for k in range(n))
    forward, _ = trace.accelerations()
    arguments = {last: f"{angles}, {names('v', n)}, {names(last, n)}" for last in "ta"}
    forward_lines, forward_count = core(
        "_accelerations", f"Accelerations ({n},) of sines, cosines, speeds, torques and p.", arguments["t"], forward
    )
    inverse_lines, inverse_count = core(
        "_torques",
        f"Torques ({n},) of sines, cosines, speeds, accelerations and p.",
        arguments["a"],
        list(trace.inverse_dynamics()),
    )
    matrix_lines, matrix_count = core(
        "_mass_matrix",
        f"Rows of the mass matrix ({n} x {n}) of sines, cosines and p.",
        angles,
        list(trace.mass_matrix().ravel()),
    )
    slope_lines, slope_count = core(
        "_derivatives",
        f"Accelerations ({n},), rows of their derivatives by q, v, tau (3 x {n} x {n}), of the same as _accelerations.",
        arguments["t"],
        trace.derivatives(),
    )
    operations = (
        f"forward dynamics {forward_count}, with all derivatives {slope_count}, inverse dynamics {inverse_count}, "
        f"mass matrix {matrix_count}"
    )
    geometry = "\n".join(f"    {tuple(float(x) for x in row)!r}," for row in structure[1])
    direction = tuple(float(x) for x in layout.gravity / np.linalg.norm(layout.gravity))
    lines = [*forward_lines, *inverse_lines, *slope_lines, *matrix_lines]
    lines += functions(n)
    header = HEADER.format(operations=operations, parents=structure[0], direction=direction, geometry=geometry)
    return header + "\n".join(lines).rstrip() + "\n"


def main() -> int:
    """Write or, with --check, compare; 1 where they differ."""
    text = text_of(arm_tree().layout)
    if "--check" in sys.argv[1:]:
        same = TARGET.read_text(encoding="utf-8") == text
        print(f"{TARGET.name} is {'up to date' if same else 'out of date: run scripts/write_straight_line.py'}")
        return 0 if same else 1
    write_atomically(TARGET, text)
    print(f"wrote {TARGET.name}, {len(text.splitlines())} lines")
    return 0


if __name__ == "__main__":
    sys.exit(main())
