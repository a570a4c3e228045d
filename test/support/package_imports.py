"""What a module of the package imports, read from its source."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

from repository import ROOT


@cache
def imports(path: Path) -> list[tuple[str, bool]]:
    """Modules a file imports, and whether at the top level (not inside a function)."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    lazy = {
        id(n) for f in ast.walk(tree) if isinstance(f, (ast.FunctionDef, ast.AsyncFunctionDef)) for n in ast.walk(f)
    }
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [(alias.name, id(node) not in lazy) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            # `from package import module` names the module as much as `from package.module import name`.
            found += [(f"{node.module}.{alias.name}", id(node) not in lazy) for alias in node.names]
    return found


def reachable(module: str, seen: set[str] | None = None) -> set[str]:
    """Modules of the package that importing `module` brings in."""
    seen = set() if seen is None else seen
    base = ROOT / module.replace(".", "/")
    path = base.with_suffix(".py") if base.with_suffix(".py").exists() else base / "__init__.py"
    if module in seen or not path.exists():
        return seen
    seen.add(module)
    for name, _ in imports(path):
        if name.startswith("youbot_dynamics."):
            reachable(name, seen)
            reachable(name.rsplit(".", 1)[0], seen)
    return seen
