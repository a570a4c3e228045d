"""The documentation site: pages, snippets, API reference; what needs the built site runs in scripts/docs.sh."""

from __future__ import annotations

import ast
import importlib
import json
import os
import re
import shlex
import subprocess
import sys
import zlib
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import numpy as np
import pytest
from repository import ROOT

import youbot_dynamics as yd
from youbot_dynamics.commands.main import parser

DOCS = ROOT / "docs"
# What the build of the site writes into docs/generated are parts of pages.
IN_DOCS = [page for page in sorted(DOCS.rglob("*.md")) if DOCS / "generated" not in page.parents]
PAGES = [ROOT / "README.md", *IN_DOCS]
API = "\n".join(page.read_text(encoding="utf-8") for page in sorted((DOCS / "api").glob("*.rst")))
# Described by pages of their own, or written by a script.
NO_API = ("nodes", "commands", "dynamics.generated")
SITE = os.environ.get("DOCS_SITE")
NODES = re.search(r"NODES = \(([^)]*)\)", (ROOT / "setup.py").read_text(encoding="utf-8")).group(1)


def blocks(page: Path, language: str) -> list[str]:
    """Code blocks of a page in a language, in their order."""
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(encoding="utf-8"), re.S)


def public_modules() -> list[str]:
    """Public modules of the package without its name, such as `dynamics.tree`."""
    package = ROOT / "youbot_dynamics"
    names = []
    for file in package.rglob("*.py"):
        parts = file.relative_to(package).with_suffix("").parts
        parts = parts[:-1] if parts[-1] == "__init__" else parts
        name = ".".join(parts)
        if parts and not any(part.startswith("_") for part in parts) and not name.startswith(NO_API):
            names.append(name)
    return sorted(names)


def public_names(module: str) -> list[str]:
    """Public functions and classes of a module, `module.name`: those of its `__all__`, or all that it defines."""
    loaded = importlib.import_module(f"youbot_dynamics.{module}")
    if hasattr(loaded, "__all__"):
        return [f"youbot_dynamics.{module}.{name}" for name in loaded.__all__]
    tree = ast.parse(Path(loaded.__file__).read_text(encoding="utf-8"))
    kinds = (ast.FunctionDef, ast.ClassDef)
    named = [node.name for node in tree.body if isinstance(node, kinds) and not node.name.startswith("_")]
    return [f"youbot_dynamics.{module}.{name}" for name in named]


# A folder that only holds others has no names of its own.
MODULES = [module for module in public_modules() if public_names(module)]


def test_the_api_reference_has_every_public_module():
    there = re.findall(r"^\.\. automodule:: youbot_dynamics\.(\S+)$", API, re.M)
    assert MODULES and not set(MODULES) - set(there), "add them in docs/api"


def test_the_api_reference_lists_every_name_of_the_library():
    names = set(yd.__all__) - {"__version__"}
    assert names and not [name for name in names if f"~youbot_dynamics.{yd._MODULES[name]}.{name}\n" not in API]


def test_the_api_reference_names_no_module_that_is_gone():
    named = re.findall(r"^\.\. automodule:: youbot_dynamics\.(\S+)$", API, re.M)
    assert sorted(named) == sorted(MODULES)


def test_every_page_is_in_the_contents_once():
    contents = re.findall(r"^```\{toctree\}\n(?::[^\n]*\n)*\n([^`]*)```", (DOCS / "index.md").read_text(), re.M)
    listed = [line for part in contents for line in part.split()]
    there = [page.relative_to(DOCS).with_suffix("").as_posix() for page in IN_DOCS if page.stem != "index"]
    assert sorted(listed) == sorted([*there, "api/index"])


def test_python_of_the_pages_is_python():
    found = [(code, page.name) for page in PAGES for code in blocks(page, "python")]
    assert found
    for code, name in found:
        compile(code, name, "exec")


def command_lines(page: Path) -> list[list[str]]:
    """Words of every line of bash on a page."""
    joined = "\n".join(blocks(page, "bash")).replace("\\\n", " ")
    return [words for line in joined.splitlines() if (words := shlex.split(line, comments=True))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_bash_of_the_pages_is_bash_and_its_commands_exist(page):
    for code in blocks(page, "bash"):
        checked = subprocess.run(["bash", "-n"], input=code, text=True, capture_output=True)
        assert checked.returncode == 0, checked.stderr
    for words in command_lines(page):
        if words[0] == "youbot":
            parser().parse_args(words[1:])
        elif words[0] == "bash" and words[1].startswith("scripts/"):
            assert (ROOT / words[1]).is_file(), words
        elif words[:3] == ["ros2", "run", "youbot_dynamics"]:
            assert words[3] == "youbot" or f'"{words[3]}"' in NODES, words


def test_a_wrong_command_on_a_page_is_seen(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```bash\nyoubot identify drive_1 --no-such-option\n```\n", encoding="utf-8")
    with pytest.raises(SystemExit):
        test_bash_of_the_pages_is_bash_and_its_commands_exist(page)


@pytest.mark.slow
def test_the_tutorial_leads_from_a_bag_to_a_better_drive(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    scope: dict[str, object] = {}
    for language, code in re.findall(r"```(python|bash)\n(.*?)```", (DOCS / "tutorial.md").read_text(), re.S):
        if language == "python":
            exec(compile(code, "tutorial.md", "exec"), scope)
        elif "youbot" in code:
            command = [sys.executable, "-m", "youbot_dynamics.commands.main", *shlex.split(code)[1:]]
            done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
            assert done.returncode in (0, 3), done.stderr
    assert scope["position_error"](scope["before"]) == pytest.approx(56.3, abs=1.0)
    assert scope["position_error"](scope["after"]) < 0.3
    assert np.all(np.abs(scope["delay"] - [0.239, 0.348, 0.147]) < 0.005)


def test_the_measured_bench_can_be_drawn():
    measured = json.loads((DOCS / "bench_measured.json").read_text(encoding="utf-8"))
    groups = {item["group"] for item in measured["items"]}
    assert groups >= {"arm", "base", "ekf", "identification", "lugre", "plants", "growth"}
    assert all(not item["error"] for item in measured["items"])


class Page(HTMLParser):
    """Targets and anchors of an HTML page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.anchors: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.anchors |= {values[key] for key in ("id", "name") if values.get(key)}
        self.targets += [values[key] for key in ("href", "src") if values.get(key)]


def dead_links(site: Path) -> list[str]:
    """Links between pages of a built site that lead nowhere."""
    pages = {path.resolve(): Page(path) for path in site.rglob("*.html")}
    dead = []
    for path, page in pages.items():
        for target in page.targets:
            link = urlsplit(target)
            if link.scheme or link.netloc:
                continue
            there = (path.parent / unquote(link.path)).resolve() if link.path else path
            anchors = pages[there].anchors if there in pages else None
            if not there.exists() or (link.fragment and anchors is not None and unquote(link.fragment) not in anchors):
                dead.append(f"{path.relative_to(site)}: {target}")
    return dead


def known_names(site: Path) -> set[str]:
    """Names that the built reference describes."""
    header, _, packed = (site / "objects.inv").read_bytes().partition(b"zlib.\n")
    assert header.startswith(b"# Sphinx inventory version 2")
    return {line.split(" ", 1)[0] for line in zlib.decompress(packed).decode().splitlines()}


def test_a_dead_link_is_seen(tmp_path):
    (tmp_path / "a.html").write_text('<a href="b.html#there">b</a> <a href="b.html#gone">b</a> <a href="c.html">c</a>')
    (tmp_path / "b.html").write_text('<p id="there">b</p>')
    assert dead_links(tmp_path) == ["a.html: b.html#gone", "a.html: c.html"]


if SITE:  # set by scripts/docs.sh, which has built it

    def test_every_internal_link_of_the_site_leads_somewhere():
        assert len(list(Path(SITE).rglob("*.html"))) > 30
        assert dead_links(Path(SITE)) == []

    def test_the_built_reference_holds_every_public_name():
        known = known_names(Path(SITE))
        assert [name for module in MODULES for name in public_names(module) if name not in known] == []
