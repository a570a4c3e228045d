"""Sphinx configuration of the documentation site: `bash scripts/docs.sh` builds it, rosdoc2 uses it too.

The pages are Markdown that GitHub shows as well. The API reference comes from the docstrings of the package.
"""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

DOCS = Path(__file__).resolve().parent
sys.path[:0] = [str(DOCS.parent), str(DOCS)]

import bench_plots  # noqa: E402

import youbot_dynamics  # noqa: E402

project = "youbot_dynamics"
author = "youbot_dynamics developers"
project_copyright = author
version = release = youbot_dynamics.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx.ext.napoleon"]
html_theme = "sphinx_rtd_theme"
html_css_files = ["site.css"]
html_static_path = ["static"]
html_show_sourcelink = False
exclude_patterns = ["_build", "generated"]

# Links to headings work as on GitHub.
myst_heading_anchors = 4

autosummary_generate = False
autodoc_default_options = {"members": True, "undoc-members": True, "member-order": "bysource"}
autodoc_typehints_format = "short"
napoleon_use_ivar = True
python_use_unqualified_type_names = True
add_module_names = False
python_maximum_signature_line_length = 100
toc_object_entries_show_parents = "hide"

_CODE = re.compile(r"(``?[^`]+``?)")
_SECTION = re.compile(
    r"^(Args|Returns|Raises|Attributes|Example|Examples|Note|Yields|Methods|Keyword Args):$", re.MULTILINE
)


def _prose(lines: list[str]) -> list[str]:
    """Lines with `code` in single backticks, as reStructuredText: code literal, everything else as it stands."""
    parts = _CODE.split("\n".join(lines))
    parts[::2] = [re.sub(r"([\\*|]|_(?!\w))", r"\\\1", part) for part in parts[::2]]
    parts[1::2] = [f"``{part.strip('`')}``" for part in parts[1::2]]
    return "".join(parts).split("\n")


def _read_docstring(app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Prepare a docstring of the package for napoleon: formulas, indented by four spaces, become blocks."""
    out: list[str] = []
    prose: list[str] = []
    section, block = "", False
    for line in lines:
        if heading := _SECTION.match(line):
            section, block = heading[1], False
        elif line.startswith("    ") and not section and not block and not (prose or out or [""])[-1].strip():
            block = True
            out += [*_prose(prose), ".. code-block:: text", ""]
            prose = []
        elif block and line and not line.startswith(" "):
            block = False
            out.append("")
        if block or section.startswith("Example"):
            out += [*_prose(prose), line] if prose else [line]
            prose = []
        else:
            prose.append(line)
    lines[:] = [*out, *_prose(prose)] if prose else out


def _constants(app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Add the constants of `__all__`, with value and comment: autodoc leaves out those that are imported."""
    if what != "module":
        return
    for constant in getattr(thing, "__all__", ()):
        value = getattr(thing, constant)
        if callable(value) or inspect.ismodule(value):
            continue
        shown = repr(value)
        lines += ["", f".. py:data:: {constant}", f"   :value: {shown if len(shown) < 60 else '...'}", ""]
        for source in sorted(Path(thing.__file__).parent.glob("*.py")):
            if found := re.search(rf"^{constant}\b[^=\n]* = .*  # (.+)$", source.read_text(encoding="utf-8"), re.M):
                lines.append(f"   {_prose([found[1]])[0]}")
    lines.append("")


def _read_page(app: Sphinx, page: str, source: list[str]) -> None:
    """Name Markdown files beside docs/, such as CONTRIBUTING.md, where GitHub links to them: the site has none."""
    up = re.escape("../" * (page.count("/") + 1))
    source[0] = re.sub(rf"\[([^\]]+)\]\({up}([\w/]+\.md)(#[^)]*)?\)", r"\1 (`\2`)", source[0])


def _skip(app: Sphinx, what: str, name: str, thing: Any, skip: bool, options: Any) -> bool | None:
    """Leave out fields that the section Args or Attributes of their class describes already."""
    if what == "class" and not callable(thing) and not isinstance(thing, property | classmethod | staticmethod):
        return True
    return None


def setup(app: Sphinx) -> None:
    """Draw the plots of the bench, and read the docstrings before napoleon does."""
    app.connect("builder-inited", lambda _: bench_plots.write(DOCS / "bench_measured.json", DOCS / "generated"))
    app.connect("source-read", _read_page)
    app.connect("autodoc-process-docstring", _read_docstring, priority=400)
    app.connect("autodoc-process-docstring", _constants, priority=600)
    app.connect("autodoc-skip-member", _skip)
