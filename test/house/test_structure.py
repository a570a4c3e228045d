"""The house rules of the package: who may import whom, how long a file is, what a docstring says."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from package_imports import imports, reachable, syntax
from repository import ROOT

PACKAGE = ROOT / "youbot_dynamics"
FILES = sorted(PACKAGE.rglob("*.py"))

# Layers of the package: a file imports from layers below its own; within a layer from its own subject, which is a
# folder or a file of the package.
LAYER = {
    "interrupts": 0,
    "errors": 0,
    "files": 0,
    "arrays": 0,
    "compiled": 0,
    "resources": 0,
    "parameters": 0,
    "parameter_file": 0,
    "kinematics": 0,
    "recording": 0,
    "control": 1,
    "dynamics": 1,
    "robot": 1,
    "robot_arm": 1,
    "robot_base": 1,
    "identification": 2,
    "estimation": 2,
    "simulation": 2,
    "source_systems": 2,
    "bringup_plan": 2,
    "gazebo_description": 2,
    "warm_up": 2,
    "report": 3,
    "messages": 3,
    "nodes": 4,
    "commands": 4,
}
# Subjects on one layer that may be imported, and by whom.
MAY_LOOK_SIDEWAYS = {"identification/pipeline/_pipeline.py", "simulation/scenario/_drive.py"}
SIDEWAYS_SUBJECTS = {
    ("control", "robot"),  # limits and geometry of the robot, itself on the second layer
    ("control", "robot_base"),
    ("control", "dynamics"),  # models of what is controlled
    ("robot", "robot_arm"),
    ("robot", "robot_base"),
    ("robot_base", "dynamics"),
    ("robot_arm", "dynamics"),  # friction and motors of the joints
    ("parameter_file", "parameters"),
    ("parameters", "errors"),
    ("parameter_file", "errors"),
    ("parameter_file", "files"),
    ("files", "errors"),
    ("resources", "errors"),
    ("arrays", "errors"),
    ("kinematics", "errors"),
    ("kinematics", "arrays"),
    ("kinematics", "compiled"),
    ("recording", "arrays"),
    ("recording", "errors"),
    ("recording", "files"),
    ("commands", "nodes"),
    ("bringup_plan", "identification"),  # names of the stages
    ("warm_up", "estimation"),  # what is used first by each node
    ("warm_up", "simulation"),
}
ROS = {"rclpy", "ament_index_python", "launch", "launch_ros", "tf2_ros", "builtin_interfaces", "rcl_interfaces"}
ROS |= {"rosgraph_msgs", "std_srvs", "rosbag2_py", "rosidl_runtime_py"}


def subject(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def relative(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def file_of(module: str) -> Path | None:
    """File of a module of the package; None of another module, and of a name in a module."""
    if not module.startswith("youbot_dynamics"):
        return None
    base = ROOT.joinpath(*module.split("."))
    return next((path for path in (base.with_suffix(".py"), base / "__init__.py") if path.is_file()), None)


def subjects_imported(path: Path) -> set[str]:
    own = [name.split(".") for name, _ in imports(path) if name.split(".")[0] == "youbot_dynamics"]
    return {parts[1] for parts in own if len(parts) > 1 and parts[1] != "__version__"}


def test_imports_run_downwards_only() -> None:
    wrong = []
    for path in FILES:
        if path == PACKAGE / "__init__.py":
            continue
        here = subject(path)
        if here not in LAYER:
            wrong.append(f"{relative(path)} has no layer")
            continue
        for other in subjects_imported(path) - {here}:
            if LAYER[other] > LAYER[here]:
                wrong.append(f"{relative(path)} imports {other} from a layer above")
            sideways = LAYER[other] == LAYER[here] and (here, other) not in SIDEWAYS_SUBJECTS
            if sideways and relative(path) not in MAY_LOOK_SIDEWAYS:
                wrong.append(f"{relative(path)} imports {other} of its own layer")
    assert not wrong


@pytest.mark.parametrize("plant", ["youbot", "mujoco_youbot", "robot_driver", "faults", "truth"])
def test_the_plant_never_sees_what_is_tried_on_it(plant: str) -> None:
    forbidden = ("estimation", "control", "identification", "nodes", "commands")
    found = reachable(f"youbot_dynamics.simulation.{plant}")
    assert len(found) > 1
    assert not [name for name in found if name.split(".")[1:2] and name.split(".")[1] in forbidden]


def test_identification_never_sees_the_truth() -> None:
    for path in (PACKAGE / "identification").rglob("*.py"):
        names = [name for name, _ in imports(path)]
        assert not [name for name in names if name.startswith("youbot_dynamics.simulation.truth")], relative(path)


def test_no_circle_of_imports_anywhere() -> None:
    """Files that import each other cannot be read one by one. Imports for types, or in functions, count as well."""
    later = {}
    for path in FILES:
        found = {file_of(name) or file_of(name.rsplit(".", 1)[0]) for name, _ in imports(path)}
        later[path] = {file for file in found if file is not None} - {path}
    later.pop(PACKAGE / "__init__.py")  # imports each of its names when it is first used
    while free := [path for path, others in later.items() if not others & set(later)]:
        for path in free:
            del later[path]
    assert not later, sorted(map(relative, later))


CORE = ("kinematics", "dynamics", "control", "robot", "robot_arm", "robot_base", "estimation", "simulation")
TOPIC = re.compile(r"/?(driver|arm_1|trajectory_tracker|ground_truth)/\w+|/?(cmd_vel|joint_states)")


@pytest.mark.parametrize("room", [*CORE, "source_systems"])
def test_the_core_knows_no_topics_and_serializes_nothing(room: str) -> None:
    for path in (file for file in FILES if subject(file) == room):
        assert "recording" not in subjects_imported(path), relative(path)
        tree = syntax(path)
        texts = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)]
        assert not [text for text in texts if isinstance(text, str) and TOPIC.fullmatch(text)], relative(path)


def of_ros(module: str) -> bool:
    first = module.split(".")[0]
    return first in ROS or first.endswith("_msgs")


def test_ros_is_imported_in_nodes_alone() -> None:
    """The locator of an installed package may ask the ament index, and bags rosbag2, lazily."""
    wrong = []
    for path in (path for path in FILES if subject(path) != "nodes"):
        found = [(name, top) for name, top in imports(path) if of_ros(name)]
        if relative(path) == "resources.py":
            found = [(name, top) for name, top in found if top or not name.startswith("ament_index_python")]
        if subject(path) == "commands" or relative(path) == "recording/bag/_source.py":
            found = [(name, top) for name, top in found if top]
        if found:
            wrong.append(f"{relative(path)} imports {found}")
    assert not wrong


def test_nothing_imports_the_library_of_source_systems() -> None:
    """It is there for importers, as its first line says; only the names of the package itself lead to it."""
    others = [path for path in FILES if subject(path) not in ("__init__", "source_systems")]
    assert not [relative(path) for path in others if "source_systems" in subjects_imported(path)]
    assert "no node and no command" in (PACKAGE / "source_systems" / "__init__.py").read_text(encoding="utf-8")


IMPORT_CORE_WITHOUT_ROS = """
import importlib, importlib.abc, sys
class NoRos(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        first = name.split(".")[0]
        if first in ROS or first.endswith("_msgs"):
            raise ImportError(f"{name} is blocked")
ROS = set(sys.argv[2].split(","))
sys.meta_path.insert(0, NoRos())
sys.path.insert(0, sys.argv[1])
for name in sys.argv[3:]:
    importlib.import_module(name)
from youbot_dynamics.robot import load_robot
from youbot_dynamics.simulation.scenario import identified_model
identified_model(load_robot())
assert not [name for name in sys.modules if name.split(".")[0] == "rclpy"]
print("fine")
"""


def test_the_core_imports_and_loads_its_robot_without_ros() -> None:
    core = [path for path in FILES if subject(path) not in ("nodes", "commands")]
    names = [".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__") for path in core]
    command = [sys.executable, "-c", IMPORT_CORE_WITHOUT_ROS, str(ROOT), ",".join(sorted(ROS)), *names]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.stdout == "fine\n", done.stderr


def test_no_file_is_longer_than_500_lines() -> None:
    written = [path for path in FILES if "generated" not in path.parts]
    lengths = {relative(path): len(path.read_text(encoding="utf-8").splitlines()) for path in written}
    assert not {name: lines for name, lines in lengths.items() if lines > 500}


# Subjects of which all but the face is private.
CLOSED = ("report",)


@pytest.mark.parametrize("name", CLOSED)
def test_a_closed_subject_has_a_small_face(name: str) -> None:
    modules = [path.stem for path in (PACKAGE / name).glob("*.py")]
    assert all(module.startswith("_") for module in modules)
    assert len(importlib.import_module(f"youbot_dynamics.{name}").__all__) <= 10


def test_private_modules_are_imported_by_their_own_folder_alone() -> None:
    wrong = []
    for file, name in [(path, name) for path in FILES for name, _ in imports(path)]:
        here, parts = file.relative_to(ROOT).with_suffix("").parts, name.split(".")
        # The last part may be a private name of a module.
        private = [i for i, part in enumerate(parts[:-1]) if part[:1] == "_" and part[:2] != "__"]
        if name.startswith("youbot_dynamics.") and private:
            owner = tuple(parts[: private[0]])
            if here[: len(owner)] != owner:
                wrong.append(f"{relative(file)} imports {name}, private to {owner}")
    assert not wrong


def test_nothing_is_called_utils_or_common() -> None:
    assert not [path for path in FILES if path.stem in ("utils", "common", "helpers", "misc")]


@cache
def public(path: Path) -> list[tuple[str, ast.AST]]:
    """Public classes, functions and methods of a file with their names."""
    tree = syntax(path)
    found: list[tuple[str, ast.AST]] = [("module", tree)]

    def visit(nodes: list[ast.stmt], prefix: str) -> None:
        for node in nodes:
            if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and node.name[0] != "_":
                found.append((f"{prefix}{node.name}", node))
                if isinstance(node, ast.ClassDef):
                    visit(node.body, f"{prefix}{node.name}.")

    visit(tree.body, "")
    return found


def test_every_public_name_has_a_docstring() -> None:
    found = [(f"{relative(path)}: {name}", node) for path in FILES for name, node in public(path)]
    assert not [name for name, node in found if not (ast.get_docstring(node) or "").strip()]  # type: ignore[arg-type]


ARRAYS = re.compile(r"\b(ArrayLike|Vector|NDArray)\b")
SHAPE = re.compile(r"\((\d+|n[qv]|[a-z])( [-+] \d+)?,|\([a-z]\)")


NUMERICAL = [path for path in FILES if LAYER.get(subject(path), 4) < 4 and path.parent != PACKAGE]


def shapeless(path: Path) -> list[str]:
    """Public functions of a file that take arrays and tell no shape."""
    missing = []
    owners = {name: node for name, node in public(path) if isinstance(node, ast.ClassDef)}
    for name, node in public(path):
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        arguments = [*node.args.args, *node.args.kwonlyargs]
        taken = [a.arg for a in arguments if a.annotation is not None and ARRAYS.search(ast.unparse(a.annotation))]
        owner = owners.get(name.rsplit(".", 1)[0])
        text = (ast.get_docstring(node) or "") + ((ast.get_docstring(owner) or "") if owner is not None else "")
        if taken and not SHAPE.search(text):
            missing.append(f"{relative(path)}: {name}({', '.join(taken)})")
    return missing


def test_the_docstring_of_a_function_that_takes_arrays_mentions_a_shape() -> None:
    assert NUMERICAL and not [line for path in NUMERICAL for line in shapeless(path)]


def test_nothing_is_left_to_do() -> None:
    left = re.compile(r"\b(" + "|".join(["TO" + "DO", "FIX" + "ME", "XX" + "X"]) + r")\b")
    files = [*FILES, *(ROOT / "test").rglob("*.py")]
    assert not [path.name for path in files if left.search(path.read_text(encoding="utf-8"))]


def test_no_test_imports_another() -> None:
    """What two of them share stands in test/support."""
    shared = [f"{path.name}: {name}" for path in (ROOT / "test").rglob("*.py") for name, _ in imports(path)]
    assert len(shared) > 1000 and not [line for line in shared if ": test_" in line]
