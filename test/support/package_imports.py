"""What a module of the package imports, read from its source."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

from repository import ROOT


@cache
def syntax(path: Path) -> ast.Module:
    """Syntax of a file, parsed once."""
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def imports(path: Path) -> list[tuple[str, bool]]:
    """Modules a file imports, and whether at the top level (not inside a function)."""
    found: list[tuple[str, bool]] = []

    def visit(node: ast.AST, top: bool) -> None:
        for one in ast.iter_child_nodes(node):
            if isinstance(one, ast.Import):
                found.extend((alias.name, top) for alias in one.names)
            elif isinstance(one, ast.ImportFrom):
                assert one.level == 0, f"{path}: relative import"
                # `from package import module` names the module as much as `from package.module import name`.
                found.extend((f"{one.module}.{alias.name}", top) for alias in one.names)
            elif not isinstance(one, ast.expr):
                visit(one, top and not isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef)))

    visit(syntax(path), True)
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
