"""Which tests a change can reach, by the definitions that use each other, read from the sources.

A definition at the top level of a file (function, class, constant, test) uses those that it names, in its own file or
through an import. A test is reached if it uses, directly or through others, a definition of a changed file. As a
program: prints the tests for pytest, one a line, with `everything` where a change may reach all.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path

from repository import ROOT

FOLDERS = ("youbot_dynamics", "launch", "examples", "bench", "scripts", "test")
# What every test depends on, and what no test looks at but those of test/house, which always run.
EVERYTHING = re.compile(
    r"(config|urdf|resource)/.*|test/(robots|support)/.*(?<!\.py)|(.*/)?conftest\.py|youbot_dynamics/(__init__|compiled)\.py"
    r"|pytest\.ini|setup\.(py|cfg)|pyproject\.toml|constraints\.txt|package\.xml|scripts/(environment|test)\.sh"
    r"|test/support/reached_tests\.py"
)
# Tests of the house that run programs of the package; they are chosen as all others are.
PROGRAMS = ("test_examples.py", "test_first_session.py", "test_without_numba.py", "test_bench.py", "test_install")
# A file and a name in it; "" is what the file does when it is imported, "*" all of it.
Definition = tuple[Path, str]
NODES = Path("youbot_dynamics/nodes")
MAIN = Path("youbot_dynamics/commands/main.py")


class _File:
    """Definitions of one file, and what they name.

    Attributes:
        definitions: syntax of each definition by its names; "" has all other statements.
        aliases: what an imported name stands for, (module, name) or (module, "*").
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        tree = ast.parse(path.read_text(encoding="utf-8"))
        self.definitions: dict[str, list[ast.AST]] = {"": []}
        self.aliases: dict[str, tuple[str, str]] = {}
        self.fixtures_of_all: list[str] = []
        for statement in tree.body:
            for name in _names(statement) or [""]:
                self.definitions.setdefault(name, []).append(statement)
            if isinstance(statement, ast.FunctionDef) and any(
                "autouse" in ast.unparse(d) for d in statement.decorator_list
            ):
                self.fixtures_of_all.append(statement.name)
        self._find_imports(tree)

    def _find_imports(self, node: ast.AST) -> None:
        for one in ast.iter_child_nodes(node):
            if isinstance(one, ast.Import):
                for item in one.names:
                    module = item.name if item.asname else item.name.split(".")[0]
                    self.aliases[item.asname or module] = module, "*"
            elif isinstance(one, ast.ImportFrom) and one.module:
                self.aliases |= {item.asname or item.name: (one.module, item.name) for item in one.names}
            elif not isinstance(one, ast.expr):  # there are none inside
                self._find_imports(one)


def _names(statement: ast.stmt) -> list[str]:
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return [statement.name]
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    return [
        node.id for target in targets if target is not None for node in ast.walk(target) if isinstance(node, ast.Name)
    ]


def _verbs(node: ast.If | ast.IfExp) -> set[str]:
    """Commands that a condition names; the one option that is as much as a command."""
    if "given.until" in ast.unparse(node.test):
        return {"--until"}
    if "verb" not in ast.unparse(node.test):
        return set()
    return {one.value for one in ast.walk(node.test) if isinstance(one, ast.Constant)}


class Reached:
    """The definitions of a repository and who uses them."""

    def __init__(self, root: Path = ROOT) -> None:
        self.root = root
        paths = [path for folder in FOLDERS for path in sorted((root / folder).rglob("*.py"))]
        self._files = {path: _File(path) for path in paths}
        self._found: dict[tuple[str, Path], Path | None] = {}
        nodes = [path for path in paths if path.parent == root / NODES and path.stem[0] != "_"]
        self._programs = {path.name: [path] for path in paths if path.parent == root / "launch"}
        self._programs |= {path.stem: [path] for path in paths if path.parent == root / "examples" or path in nodes}
        if (root / MAIN) in self._files:
            self._commands(self._files[root / MAIN])
        self._users: dict[Definition, set[Definition]] = {}
        for file in self._files.values():
            for name, statements in file.definitions.items():
                here = file.path, name
                self._users.setdefault(here, set()).add((file.path, "*"))
                used = {(file.path, "")} | {(file.path, one) for one in file.fixtures_of_all}
                for statement in statements:
                    used |= set(self._used(file, statement))
                for one in used - {here}:
                    self._users.setdefault(one, set()).add(here)

    def _commands(self, main: _File) -> None:
        """Take what the commands of `youbot` import out of their common functions: a test names its command."""

        def visit(node: ast.AST, verbs: set[str]) -> None:
            if isinstance(node, (ast.If, ast.IfExp)) and (named := _verbs(node)):
                for one in node.body if isinstance(node, ast.If) else [node.body]:
                    visit(one, named)
                for one in node.orelse if isinstance(node, ast.If) else [node.orelse]:
                    visit(one, verbs - named)
            elif isinstance(node, ast.ImportFrom) and node.module:
                path = self._file_of(node.module, main.path)
                for verb in verbs or {"play"} if path is not None else ():
                    self._programs.setdefault(verb, []).append(path)
                for one in node.names:
                    main.aliases.pop(one.asname or one.name, None)
            else:
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id.startswith("_run_"):
                    for function in main.definitions[node.func.id]:
                        visit(function, verbs)
                for one in ast.iter_child_nodes(node):
                    visit(one, verbs)
                    if isinstance(one, ast.If) and isinstance(one.body[-1], ast.Return):
                        verbs = verbs - _verbs(one)

        for function in main.definitions["_run"]:
            visit(function, set())

    def _file_of(self, module: str, user: Path) -> Path | None:
        """File of a module; test/support and the folder of a test are on the path of its imports."""
        key = module, user.parent
        if key not in self._found:
            folders = (self.root, self.root / "test" / "support", user.parent)
            bases = [folder.joinpath(*module.split(".")) for folder in folders]
            paths = [path for base in bases for path in (base.with_name(f"{base.name}.py"), base / "__init__.py")]
            self._found[key] = next((path for path in paths if path in self._files), None)
        return self._found[key]

    def _resolved(self, module: str, name: str, user: Path) -> Iterator[Definition]:
        """Definitions that `name` of `module` stands for: all of it for "*"; through imports of a package's face."""
        inner = self._file_of(f"{module}.{name}", user) if name != "*" else self._file_of(module, user)
        if inner is not None:
            yield inner, "*"
            return
        path = self._file_of(module, user)
        if path is None:
            return
        file = self._files[path]
        if name in file.definitions:
            yield path, name
        elif name in file.aliases:
            yield from self._resolved(*file.aliases[name], path)
        else:
            yield from self._lazily(file, name)

    def _lazily(self, file: _File, name: str) -> Iterator[Definition]:
        """A name in the table _MODULES of a package that imports it when it is first used; else all of the file."""
        for statement in file.definitions.get("_MODULES", []):
            table = ast.literal_eval(statement.value)  # type: ignore[attr-defined]
            if name in table:
                yield from self._resolved(f"{file.path.parent.name}.{table[name]}", name, file.path)
                return
        yield file.path, "*"

    def _used(self, file: _File, statement: ast.AST) -> Iterator[Definition]:
        nodes = list(ast.walk(statement))
        documentation = {
            id(node.body[0].value)
            for node in nodes
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and isinstance(node.body[0], ast.Expr)
        }
        of_module = set()
        for node in nodes:
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in file.aliases:
                module, name = file.aliases[node.value.id]
                inner = module if name == "*" else f"{module}.{name}"
                if self._file_of(inner, file.path) is not None:
                    of_module.add(id(node.value))
                    yield from self._resolved(inner, node.attr, file.path)
        names: set[str] = set()
        for node in nodes:
            if isinstance(node, ast.Name) and id(node) not in of_module:
                names.add(node.id)
            elif isinstance(node, ast.arg):
                names.add(node.arg)  # a fixture
            elif isinstance(node, ast.JoinedStr):
                yield from self._pattern(file, node)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation:
                yield from self._text(file, node.value)
        for name in names:
            yield from self._named(file, name)

    def _named(self, file: _File, name: str) -> Iterator[Definition]:
        if name in file.definitions:
            yield file.path, name
        elif name in file.aliases:
            yield from self._resolved(*file.aliases[name], file.path)

    def _pattern(self, file: _File, text: ast.JoinedStr) -> Iterator[Definition]:
        """All modules that a text with gaps, such as f"{__package__}.{name}.stage", may name."""
        own = ".".join(file.path.relative_to(self.root).parent.parts)
        parts = []
        for value in text.values:
            if isinstance(value, ast.Constant):
                parts.append(re.escape(str(value.value)))
            else:
                of_own = ast.unparse(value.value) == "__package__"  # type: ignore[attr-defined]
                parts.append(re.escape(own) if of_own else r"[\w.]+")
        pattern = re.compile("".join(parts))
        if (
            not pattern.pattern.startswith("youbot_dynamics")
            or file.path == self.root / "youbot_dynamics" / "__init__.py"
        ):
            return
        for path in self._files:
            if pattern.fullmatch(".".join(path.relative_to(self.root).with_suffix("").parts)):
                yield path, "*"

    def _text(self, file: _File, text: str) -> Iterator[Definition]:
        """A fixture, a program, or modules of the package in a text, as for another process."""
        if text and text in file.definitions:
            yield file.path, text
        if file.path.is_relative_to(self.root / "test"):
            yield from ((program, "*") for program in self._programs.get(text, ()))
        if "youbot_dynamics." not in text:
            return
        for module, name in re.findall(r"from (youbot_dynamics[\w.]*) import (\w+)", text):
            yield from self._resolved(module, name, file.path)
        for module in re.findall(r"(?<!from )\byoubot_dynamics\.[\w.]+\w", text):
            if self._file_of(module, file.path) is not None:
                yield from self._resolved(module, "*", file.path)
            else:
                yield from self._resolved(*module.rsplit(".", 1), file.path)  # type: ignore[misc]

    def _changed(self, changed: Iterable[Path]) -> Iterator[Definition]:
        """Definitions of changed files; of a folder of the package, if what else it holds has changed."""
        for path in changed:
            near = [path] if path.suffix == ".py" else self._around(path)
            for one in near:
                if one in self._files:
                    yield from ((one, name) for name in self._files[one].definitions)
                else:  # removed: those that imported it
                    module = ".".join(one.relative_to(self.root).with_suffix("").parts).removesuffix(".__init__")
                    users = (
                        file
                        for file in self._files.values()
                        if any(module in (m, f"{m}.{n}") for m, n in file.aliases.values())
                    )
                    yield from ((file.path, name) for file in users for name in file.definitions)

    def _around(self, path: Path) -> list[Path]:
        parts = path.relative_to(self.root).parts
        if parts[0] not in ("youbot_dynamics", "test"):
            return []
        subject = self.root.joinpath(*parts[:2])
        return [file for file in self._files if file.is_relative_to(subject)]

    def tests(self, changed: Iterable[Path]) -> list[str]:
        """Names for pytest of the tests that a change of files can reach, with all of the house; ["everything"]."""
        changed = list(changed)
        if any(EVERYTHING.fullmatch(path.relative_to(self.root).as_posix()) for path in changed):
            return ["everything"]
        seen = set(self._changed(changed))
        waiting = deque(seen)
        while waiting:
            for user in self._users.get(waiting.popleft(), ()):
                if user not in seen:
                    seen.add(user)
                    waiting.append(user)
        house = self.root / "test" / "house"
        found = [
            path.relative_to(self.root).as_posix()
            for path in self._files
            if path.parent == house and path.name.startswith("test_") and not path.name.startswith(PROGRAMS)
        ]
        for path, name in sorted(seen):
            where = path.relative_to(self.root).as_posix()
            if path.name.startswith("test_") and where not in found and name.startswith(("test_", "Test")):
                found.append(f"{where}::{name}")
        return found


def changed_files(base: str = "") -> list[Path]:
    """Files that differ from a revision, committed or not; by default from the last common one with `main`.

    Raises:
        SystemExit: git knows no such revision.
    """

    def git(*words: str) -> list[str]:
        done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"git {' '.join(words)}: {done.stderr.strip()}; name a revision: --changed=REVISION")
        return done.stdout.splitlines()

    revision = base or git("merge-base", "HEAD", "main")[0]
    names = git("diff", "--name-only", "--no-renames", revision, "--") + git(
        "ls-files", "--others", "--exclude-standard"
    )
    return [ROOT / name for name in sorted(set(names))]


if __name__ == "__main__":
    print("\n".join(Reached().tests(changed_files(*sys.argv[1:]))))
