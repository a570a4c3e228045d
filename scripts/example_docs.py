"""Write the table of docs/library.md from the docstrings of the examples; `--run` first runs them and notes the output.

The docstring of an example asks a question in its first line; its last paragraph is what the example prints, indented.
The last line of that is the answer. `--run NAME ...` runs only these examples.
"""

from __future__ import annotations

import ast
import subprocess
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES, PAGE = ROOT / "examples", ROOT / "docs" / "library.md"
BEGIN, END = "<!-- examples: written by scripts/example_docs.py -->\n", "<!-- end of the examples -->\n"
GROUPS = {
    "Base": (
        "mecanum_odometry omni_top_speed path_within_limits stopping_distance odometry_after_ten_metres slipping_wheel "
        "dead_wheel base_with_casters"
    ),
    "Identification": (
        "delay_of_a_log how_long_to_record only_cmd_vel_and_odom late_base identify_and_track larger_wheel "
        "miswired_wheel tape_measure what_changed"
    ),
    "Arm": (
        "own_robot_dynamics arm_friction_from_csv joint_speed payload_in_gripper motor_heat torque_left_when_hot "
        "will_it_tip lift_a_load stand_up"
    ),
}


def docstring(example: Path) -> str:
    """Docstring of an example."""
    return ast.get_docstring(ast.parse(example.read_text(encoding="utf-8"))) or ""


def output(example: Path) -> str:
    """What the docstring of an example says that it prints; "" if nothing."""
    last = docstring(example).rpartition("\n\n")[2]
    return textwrap.dedent(last) if last.startswith("    ") else ""


def note_output(example: Path) -> None:
    """Run an example and write what it prints into its docstring."""
    told = subprocess.run([sys.executable, str(example)], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    code, old = example.read_text(encoding="utf-8"), output(example)
    text = docstring(example).removesuffix(textwrap.indent(old, "    ")).rstrip()
    new = "\n".join(line.rstrip() for line in textwrap.indent(told.stdout.rstrip(), "    ").splitlines())
    _, _, rest = code.removeprefix('"""').partition('"""')
    example.write_text(f'"""{text}\n\n{new}\n"""{rest}', encoding="utf-8")


def table() -> str:
    """Question, script and answer of each example."""
    lines = []
    for group, names in GROUPS.items():
        lines += [f"| {group} | script | its last line |", "|---|---|---|"]
        for name in names.split():
            example = EXAMPLES / f"{name}.py"
            question, answer = docstring(example).partition("?")[0], output(example).rpartition("\n")[2]
            lines.append(f"| {question}? | [{name}](../examples/{name}.py) | {answer} |")
        lines.append("")
    return "\n".join(lines)


def page() -> str:
    """The whole page: what is written by hand, and the table."""
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    return f"{before}{BEGIN}\n{table()}\n{END}{rest.split(END)[1]}"


if __name__ == "__main__":
    arguments = sys.argv[1:]
    if "--check" in arguments:
        sys.exit(0 if PAGE.read_text(encoding="utf-8") == page() else 1)
    if "--run" in arguments:
        chosen = [name for name in arguments if name != "--run"] or [path.stem for path in EXAMPLES.glob("*.py")]
        for name in sorted(chosen):
            note_output(EXAMPLES / f"{name}.py")
    PAGE.write_text(page(), encoding="utf-8")
