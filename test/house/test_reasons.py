"""Texts for people carry no logic: the code asks for kinds and numbers, and never compares, parses or edits a text."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest
from repository import ROOT

from youbot_dynamics import errors

PACKAGE = ROOT / "youbot_dynamics"
OF_ERRORS = {"got", "expected", "remedy"}  # attributes
OF_REASONS = OF_ERRORS | {"text", "verdict", "reason"}
VARIABLES = {"verdict", "reason", "note", "refusal"}  # in `identification`; elsewhere a verdict may be a constant
EQUALITIES = (ast.Eq, ast.NotEq, ast.In, ast.NotIn)
METHODS = {name for name in dir(str) if not name.startswith("_")} - {"format", "join", "encode", "count"}
PARSERS = {"match", "fullmatch", "search", "sub", "findall", "split"}
RECORDED = "recorded_reason"  # reads the verdict of a result file


OURS = {name for name in dir(errors) if name.endswith("Error")}


def texts_of_errors(tree: ast.AST) -> Iterator[ast.AST]:
    """Each `str(problem)` of an error of ours that was caught as `problem`."""
    for handler in ast.walk(tree):
        if (
            isinstance(handler, ast.ExceptHandler)
            and handler.type
            and OURS & set(re.findall(r"\w+", ast.unparse(handler.type)))
        ):
            yield from (node for node in ast.walk(handler) if ast.unparse(node) == f"str({handler.name})")


def is_text(node: ast.AST, attributes: set[str]) -> bool:
    """Whether an expression is a text for people, by its name."""
    if isinstance(node, ast.Attribute):
        return node.attr in attributes
    return attributes == OF_REASONS and isinstance(node, ast.Name) and node.id in VARIABLES


def logic_on_texts(tree: ast.AST, attributes: set[str]) -> Iterator[int]:
    """Lines on which a text is compared, parsed, cut or edited."""
    of_errors = set(texts_of_errors(tree))
    own = {node for one in ast.walk(tree) if getattr(one, "name", "") == RECORDED for node in ast.walk(one)}
    for node in ast.walk(tree):
        if node in own:
            continue
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], EQUALITIES):
            parts = [node.left, *node.comparators]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            parts = [node.func.value] if node.func.attr in METHODS else []
            parts += node.args if node.func.attr in PARSERS else []
        elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
            parts = [node.value]
        else:
            continue
        if any(part in of_errors or is_text(part, attributes) for part in parts):
            yield node.lineno


@pytest.mark.parametrize(("folder", "attributes"), [("identification", OF_REASONS), (".", OF_ERRORS)])
def test_no_code_compares_parses_or_edits_a_text_for_people(folder: str, attributes: set[str]) -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}"
        for path in sorted((PACKAGE / folder).rglob("*.py"))
        for line in logic_on_texts(ast.parse(path.read_text(encoding="utf-8")), attributes)
    ]
    assert not found


@pytest.mark.parametrize(
    "line",
    [
        "count = exception.got.split()[0]",
        'coasts = problem.got.replace("usable time blocks", "coasts")',
        "notes = [note for note in notes if not note.endswith(tuple(missing.values()))]",
        'wrong = joint["coulomb"].reason == AGAINST',
        "if STILL in estimate.reason: pass",
        'late = "ms" in estimate.verdict',
        'share = re.search(r"[0-9]+", problem.expected)',
        "short = estimate.reason.text[:20]",
        "try: read()\nexcept InputError as problem: short = str(problem).replace(folder, '')",
    ],
)
def test_such_a_line_is_found(line: str) -> None:
    assert list(logic_on_texts(ast.parse(line), OF_REASONS)) == [line.count("\n") + 1]
